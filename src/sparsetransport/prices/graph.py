"""The pairs that an ascent looks at, by row and by column."""

from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints


class Graph(NamedTuple):
    """Candidate pairs sorted by row, and the same sorted by column."""

    shape: tuple[int, int]
    key: Ints  # row times columns plus column, ascending
    row: Ints  # of every pair
    col: Ints
    first: Ints  # (m + 1,) where a row begins
    by_col: Ints  # which pair comes next by column
    row_by_col: Ints
    first_by_col: Ints  # (n + 1,)

    def matched(self, other: "Graph", values: Floats) -> Floats:
        """Values of the pairs of another graph on the pairs of this one; zero where they are not among them."""
        found = np.zeros(self.key.size)
        at = np.minimum(np.searchsorted(self.key, other.key), max(self.key.size - 1, 0))
        both = self.key[at] == other.key if self.key.size else np.zeros(other.key.size, bool)
        found[at[both]] = values[both]
        return found


def graph_of(shape: tuple[int, int], *lists: tuple[Ints, Ints]) -> Graph:
    """The graph of all pairs in some lists of rows and columns, without those that have a negative row or column."""
    m, n = shape
    keys = [np.empty(0, np.int64), *((row * n + col)[(row >= 0) & (col >= 0)] for row, col in lists)]
    key = distinct(np.concatenate(keys))
    row, col = np.divmod(key, n)
    by_col = np.argsort(col, kind="stable")
    return Graph(shape, key, row, col, _firsts(row, m), by_col, row[by_col], _firsts(col, n))


def distinct(keys: Ints) -> Ints:
    """All different keys in ascending order: by sorting, which is a hundred times as fast as `numpy.unique` here."""
    keys = np.sort(keys)
    return keys[np.append(True, keys[1:] > keys[:-1])] if keys.size else keys


def lists_by_row(found: Ints) -> tuple[Ints, Ints]:
    """Rows and columns of lists of columns, one a row; -1 stands for none."""
    return np.where(found < 0, -1, np.arange(len(found))[:, None]).ravel(), found.ravel()


def _firsts(line: Ints, lines: int) -> Ints:
    return np.append(0, np.cumsum(np.bincount(line, minlength=lines)))
