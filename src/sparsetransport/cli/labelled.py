"""Tables whose rows and columns have names, from CSV files; every error names the file, the row and the column."""

from collections.abc import Container, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._checks import Floats
from .cells import like_a_number, read_rows
from .table import text_table


class Labelled(NamedTuple):
    """Numbers with the names of their rows and columns."""

    path: Path
    rows: list[str]
    columns: list[str]
    values: Floats


def read_labelled(path: Path, *, negative: bool = False, what: str = "rows", expected: Container[str] = ()) -> Labelled:
    """A table of numbers: the first line names the columns, the first column the rows.

    The first line may be missing in a file with one column of numbers that begins with the name of an ``expected`` row.
    """
    rows = read_rows(path)
    first = rows.cells[0]
    if len(first) < 2:
        raise ValueError(f"{path} must have a column of names and at least one of numbers, it has {len(first)}")
    headless = len(first) == 2 and first[0] in expected and like_a_number(first[1])
    table = text_table(rows, lambda _: not headless)
    names = table.text(0)
    if not names:
        raise ValueError(f"{path} has no {what}: there is nothing below its header")
    columns = [f"column {k + 2}" for k in range(len(first) - 1)] if table.names is None else table.names[1:]
    if not any(columns):
        raise ValueError(
            f"{path}, line {rows.lines[0]} must name the columns; if it is a title, delete what is above the header"
        )
    _require_names(path, "column", columns, [f"column {k + 2}" for k in range(len(columns))])
    _require_names(path, "row", names, [f"line {line}" for line in table.lines or ()])
    table.rows = names
    return Labelled(path, names, columns, table.numbers(range(1, len(first)), negative=negative))


def read_pairs(path: Path, plants: Sequence[str], products: Sequence[str]) -> dict[tuple[int, int], int]:
    """Links by name, and the line that each is on first.

    The file has a column ``plant`` and a column ``product``, in upper or lower case; others are ignored.
    """
    table = text_table(read_rows(path), lambda _: True)
    at, titles = [], [title.lower() for title in table.names or ()]
    for name in ("plant", "product"):
        if name not in titles:
            raise ValueError(f"{path} must have a column {name!r}, it has {', '.join(map(repr, table.names or ()))}")
        at.append(titles.index(name))
    found: dict[tuple[int, int], int] = {}
    for row, line in enumerate(table.lines or ()):
        ends = []
        for column, known, what in zip(at, (plants, products), ("plant", "product"), strict=True):
            name = table.text(column)[row]
            if name not in known:
                raise ValueError(f"{table.place(row, column)}: there is no {what} {name!r} in the profits")
            ends.append(list(known).index(name))
        found.setdefault((ends[0], ends[1]), line)
    return found


def in_order(table: Labelled, names: Sequence[str], axis: int, of: Path) -> Floats:
    """The numbers with their rows (axis 0) or columns (axis 1) in the order of the names, which must be the same."""
    held = table.rows if axis == 0 else table.columns
    what = "row" if axis == 0 else "column"
    for name in names:
        if name not in held:
            raise ValueError(f"{table.path} has no {what} {name!r}, which {of} has")
    for name in held:
        if name not in names:
            raise ValueError(f"{table.path}, {what} {name!r}: {of} has nothing of that name")
    return np.take(table.values, [held.index(name) for name in names], axis=axis)


def _require_names(path: Path, what: str, names: Sequence[str], places: Sequence[str]) -> None:
    """Raise an error unless every row and column has a unique name."""
    seen: dict[str, str] = {}
    for name, place in zip(names, places, strict=True):
        if not name:
            raise ValueError(f"{path}, {place}: the {what} has no name")
        if name in seen:
            raise ValueError(f"{path}, {place}: the {what} {name!r} appears twice, first in {seen[name]}")
        seen[name] = place
