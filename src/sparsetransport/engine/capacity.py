"""Capacities in machine code: one array for the whole plan, its rows, its columns and labelled groups, in this order.

``labels`` has shape (q, m, n) and holds the group of every pair in each of ``q`` families of groups; -1: in none.
"""

import numpy as np
from numpy.typing import NDArray

from .._checks import Ints
from .._numba.compiling import compiled, small_part


@small_part
def count(left: Ints, labels: NDArray[np.int32], i: int, j: int, change: int) -> None:
    """Give back (+1) or take (-1) the capacity that the pair uses."""
    m, n = labels.shape[1], labels.shape[2]
    left[0] += change
    left[1 + i] += change
    left[1 + m + j] += change
    for q in range(labels.shape[0]):
        if labels[q, i, j] >= 0:
            left[1 + m + n + labels[q, i, j]] += change


@small_part
def is_free(left: Ints, labels: NDArray[np.int32], i: int, j: int) -> bool:
    """May the pair be added?"""
    m, n = labels.shape[1], labels.shape[2]
    if left[0] <= 0 or left[1 + i] <= 0 or left[1 + m + j] <= 0:
        return False
    for q in range(labels.shape[0]):
        if labels[q, i, j] >= 0 and left[1 + m + n + labels[q, i, j]] <= 0:
            return False
    return True


@small_part
def is_over(left: Ints, labels: NDArray[np.int32], i: int, j: int) -> bool:
    """Does the pair use a capacity that is exceeded?"""
    m, n = labels.shape[1], labels.shape[2]
    if left[0] < 0 or left[1 + i] < 0 or left[1 + m + j] < 0:
        return True
    for q in range(labels.shape[0]):
        if labels[q, i, j] >= 0 and left[1 + m + n + labels[q, i, j]] < 0:
            return True
    return False


@compiled
def used_capacity(rows: Ints, cols: Ints, labels: NDArray[np.int32], groups: int) -> Ints:
    """How much of every capacity the pairs use, in the order of ``Work.left``."""
    used = np.zeros(1 + labels.shape[1] + labels.shape[2] + groups, np.int64)
    for k in range(rows.size):
        count(used, labels, rows[k], cols[k], 1)
    return used
