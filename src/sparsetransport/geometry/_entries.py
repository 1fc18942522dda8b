"""Entries of costs and kernels, dense or computed on demand, for compiled functions.

``Cost`` and ``Gram`` are what compiled functions see of a geometry: a matrix, or the points it is computed from. Dense
matrices are filled by the same functions, so that every formula is written once.
"""

import math
from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.compiling import compiled, part, small_part
from .radial import kernel_value

MATRIX, SQEUCLIDEAN, EUCLIDEAN = 0, 1, 2
DELTA, DENSE, RADIAL = 0, 1, 2  # a radial kernel has the kind RADIAL plus its number in the table of `radial`
CLOSE = 1e-6  # of |x|^2 + |y|^2: a squared distance below this is computed from the differences
BLOCK = 64  # rows of a lazy cost that exist at one time
SUMMED = 256  # rows of a cost that are summed at one time
FAR = 1e-4  # a cost below this share of another is far below it


@by_address
class Cost(NamedTuple):
    """Costs between two point sets: ``matrix`` where there is one, else a formula of ``x @ y``.

    For distances ``x`` has rows ``(-2 x_i, |x_i|^2, 1)`` and ``y`` columns ``(y_j, 1, |y_j|^2)``, so that the product
    is the squared distance.
    """

    kind: int
    matrix: Floats  # (m, n), or (0, 0)
    x: Floats  # (m, d)
    y: Floats  # (d, n)
    scale: float


@by_address
class Gram(NamedTuple):
    """The kernel of one side: a Gram matrix, or points and the columns computed so far, or nothing (``DELTA``)."""

    kind: int
    weight: float  # 2 lambda of this side
    bandwidth: float
    columns: Floats  # (m, m); (slots, m) if lazy
    slot: Ints  # (m + 1,) the slot of the column of each point (-1: not computed yet); at the end, slots in use
    points: Floats  # (m, d)


@small_part
def _is_close(x: Floats, y: Floats, i: int, j: int, product: float) -> bool:
    """True if the terms of ``|x|^2 - 2xy + |y|^2`` cancel so far that rounding shows."""
    d = y.shape[0]
    return product < CLOSE * (x[i, d - 2] + y[d - 1, j])


@small_part
def _square(x: Floats, y: Floats, i: int, j: int) -> float:
    """The squared distance from the differences: exactly zero for equal points."""
    square = 0.0
    for k in range(y.shape[0] - 2):
        difference = 0.5 * x[i, k] + y[k, j]
        square += difference * difference
    return square


@part
def cost_block(cost: Cost, first: int, last: int) -> Floats:
    """Rows ``first`` to ``last`` of the cost: a view of the matrix, or new."""
    return cost.matrix[first:last] if cost.kind == MATRIX else lazy_block(cost, first, last)


@compiled
def lazy_block(cost: Cost, first: int, last: int) -> Floats:
    """Rows ``first`` to ``last`` of a cost without a matrix."""
    block = np.dot(cost.x[first:last], cost.y)
    for i in range(block.shape[0]):
        row = block[i]
        close = 0
        for j in range(row.size):  # separate from the next loop, so that it vectorises
            close += _is_close(cost.x, cost.y, first + i, j, row[j])
        if close > 0:
            for j in range(row.size):
                if _is_close(cost.x, cost.y, first + i, j, row[j]):
                    row[j] = _square(cost.x, cost.y, first + i, j)
        for j in range(row.size):
            row[j] = (math.sqrt(row[j]) if cost.kind == EUCLIDEAN else row[j]) * cost.scale
    return block


@part
def _lazy_entry(x: Floats, y: Floats, kind: int, scale: float, i: int, j: int) -> float:
    product = 0.0
    for k in range(x.shape[1]):
        product += x[i, k] * y[k, j]
    if _is_close(x, y, i, j, product):
        product = _square(x, y, i, j)
    return (math.sqrt(product) if kind == EUCLIDEAN else product) * scale


@small_part
def cost_entry(cost: Cost, i: int, j: int) -> float:
    """One entry of the cost."""
    if cost.kind == MATRIX:
        return cost.matrix[i, j]
    return _lazy_entry(cost.x, cost.y, cost.kind, cost.scale, i, j)


@compiled
def summarise(block: Floats) -> tuple[int, float, float]:
    """How many entries are finite, the lowest of them, and the sum of their absolute values."""
    count, lowest, total = 0, np.inf, 0.0
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            value = block[i, j]
            if value < np.inf:
                count += 1
                lowest = min(lowest, value)
                total += abs(value)
    return count, lowest, total


@compiled
def apply_kernel(kind: int, bandwidth: float, square: Floats) -> None:
    """Turn squared distances into kernel values, in place."""
    for k in range(square.size):
        square[k] = kernel_value(kind - RADIAL, square[k], bandwidth)


@compiled
def cost_entries(cost: Cost, rows: Ints, cols: Ints) -> Floats:
    """The entries at the pairs ``(rows[k], cols[k])``."""
    values = np.empty(rows.size)
    for k in range(rows.size):
        values[k] = cost_entry(cost, rows[k], cols[k])
    return values


@part
def _squared(points: Floats, others: Floats, lengths: Floats, other_lengths: Floats, square: Floats) -> None:
    """Squared distances between two lists of points, into ``square``; by products if there are squared lengths."""
    if lengths.size == 0:
        for i in range(len(points)):
            row, point = square[i], points[i]
            row[:] = 0.0
            for k in range(point.size):
                for j in range(row.size):
                    row[j] += (point[k] - others[j, k]) * (point[k] - others[j, k])
        return
    np.dot(points, np.ascontiguousarray(others.T), square)
    for i in range(len(points)):
        row, near, close = square[i], lengths[i], 0
        for j in range(row.size):  # separate from the next loop, so that it vectorises
            size = near + other_lengths[j]
            row[j] = size - 2.0 * row[j]
            close += row[j] < CLOSE * size
        if close > 0:
            for j in range(row.size):
                if row[j] < CLOSE * (near + other_lengths[j]):
                    row[j] = 0.0
                    for k in range(points.shape[1]):
                        row[j] += (points[i, k] - others[j, k]) * (points[i, k] - others[j, k])


@compiled
def gram_block(kind: int, bandwidth: float, points: Floats, lengths: Floats, rows: Ints, cols: Ints) -> Floats:
    """Kernel values between two lists of points.

    ``lengths`` are the squared lengths of all points where distances come from products, else there are none.
    """
    block = np.empty((rows.size, cols.size))
    empty = lengths.size == 0
    _squared(
        points[rows], points[cols], lengths if empty else lengths[rows], lengths if empty else lengths[cols], block
    )
    apply_kernel(kind, bandwidth, block.reshape(-1))
    return block


@compiled
def square_block(points: Floats, lengths: Floats, rows: tuple[int, int], cols: tuple[int, int], block: Floats) -> None:
    """Squared distances between two runs of points, into ``block``; ``lengths`` as in `gram_block`."""
    (top, end), (left, right) = rows, cols
    _squared(points[top:end], points[left:right], lengths[top:end], lengths[left:right], block)


@part
def _compute_column(gram: Gram, i: int) -> bool:
    slot = gram.slot[gram.slot.size - 1]
    if slot == gram.columns.shape[0]:
        return False
    column = gram.columns[slot]
    for k in range(column.size):
        square = 0.0
        for d in range(gram.points.shape[1]):
            difference = gram.points[k, d] - gram.points[i, d]
            square += difference * difference
        column[k] = square
    apply_kernel(gram.kind, gram.bandwidth, column)
    gram.slot[i] = slot
    gram.slot[gram.slot.size - 1] = slot + 1
    return True


@small_part
def fetch(gram: Gram, i: int) -> bool:
    """Compute column ``i`` if it is missing; False if all slots are taken."""
    return gram.kind <= DENSE or gram.slot[i] >= 0 or _compute_column(gram, i)


@small_part
def gram_entry(gram: Gram, i: int, k: int) -> float:
    """``2 lambda G[i, k]``, where column ``k`` has been computed."""
    if gram.kind == DELTA:
        return gram.weight if i == k else 0.0
    return gram.weight * gram.columns[gram.slot[k], i]


@small_part
def gram_diagonal(gram: Gram, i: int) -> float:
    """``2 lambda G[i, i]``."""
    if gram.kind == DELTA:
        return gram.weight
    if gram.kind == DENSE:
        return gram.weight * gram.columns[i, i]
    return gram.weight * kernel_value(gram.kind - RADIAL, 0.0, gram.bandwidth)


@part
def potential(gram: Gram, base: Floats, mass: Floats, active: Ints, count: int, out: Floats) -> None:
    """``out = base + 2 lambda G mass``, where ``mass`` is zero off ``active[:count]``."""
    size = base.size
    for i in range(size):
        out[i] = base[i]
    if gram.kind == DELTA:
        for k in range(count):
            i = active[k]
            out[i] += gram.weight * mass[i]
        return
    k = 0
    while k + 4 <= count:  # four columns at a time: out is read and written a quarter as often
        i0, i1, i2, i3 = active[k], active[k + 1], active[k + 2], active[k + 3]
        f0, f1, f2, f3 = gram.weight * mass[i0], gram.weight * mass[i1], gram.weight * mass[i2], gram.weight * mass[i3]
        g0, g1 = gram.columns[gram.slot[i0]], gram.columns[gram.slot[i1]]
        g2, g3 = gram.columns[gram.slot[i2]], gram.columns[gram.slot[i3]]
        for i in range(size):
            out[i] += f0 * g0[i] + f1 * g1[i] + f2 * g2[i] + f3 * g3[i]
        k += 4
    while k < count:
        i0 = active[k]
        f0 = gram.weight * mass[i0]
        g0 = gram.columns[gram.slot[i0]]
        for i in range(size):
            out[i] += f0 * g0[i]
        k += 1


@part
def smoothed(gram: Gram, mass: Floats, label: Ints, entry_mass: Floats, entries: int, i: int) -> float:
    """``(2 lambda G mass)_i``, where ``mass`` is the sum of ``entry_mass[:entries]`` at ``label``."""
    total = 0.0
    if gram.kind == DELTA:
        return gram.weight * mass[i]
    if gram.kind == DENSE and 8 * entries > mass.size:
        column = gram.columns[i]
        for k in range(mass.size):
            total += column[k] * mass[k]
    else:
        for t in range(entries):
            total += entry_mass[t] * gram.columns[gram.slot[label[t]], i]
    return gram.weight * total
