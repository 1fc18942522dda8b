"""The next pair to add, compiled: the best of all pairs, or of a candidate list while that is nearly as good."""

import numpy as np

from .._checks import Floats, Ints
from .._numba.callback import call_address
from .._numba.compiling import inlined_part, part, small_part
from ..geometry._entries import BLOCK, MATRIX, cost_block, cost_entry, smoothed
from .room import Room, has_capacity
from .state import Data, Work, holds, refresh


@part
def _mask_support(line: Floats, row: Floats, entry: int, link: Ints, columns: Ints) -> None:
    """Copy the row to ``line`` with ``inf`` where it has support entries, the first of which is ``entry``."""
    for j in range(line.size):
        line[j] = row[j]
    while entry >= 0:
        line[columns[entry]] = np.inf
        entry = link[entry]


@part
def _mask_full_groups(line: Floats, room: Room, i: int) -> None:
    """``inf`` where a labelled group has no capacity left; of rows and columns the caller knows."""
    labels = room.labels
    groups = room.left[1 + labels.shape[1] + labels.shape[2] :]
    for q in range(labels.shape[0]):
        row = labels[q, i]
        for j in range(line.size):
            if row[j] >= 0 and groups[row[j]] <= 0:
                line[j] = np.inf


@part
def _lower(best: Floats, row: Floats, shift: float) -> None:
    """``best = min(best, row + shift)``; a loop of its own, since only so it vectorises."""
    for j in range(best.size):
        value = row[j] + shift
        best[j] = value if value < best[j] else best[j]


@part
def _lower_by_four(best: Floats, rows: Floats, s0: float, s1: float, s2: float, s3: float) -> None:
    """The same for four rows, which reads and writes ``best`` a quarter as often."""
    r0, r1, r2, r3 = rows[0], rows[1], rows[2], rows[3]
    for j in range(best.size):
        v0, v1, v2, v3 = r0[j] + s0, r1[j] + s1, r2[j] + s2, r3[j] + s3
        low = v0 if v0 < v1 else v1
        other = v2 if v2 < v3 else v3
        low = low if low < other else other
        best[j] = low if low < best[j] else best[j]


@part
def _scan_copy(matrix: Floats, label: Ints, held: Floats, shift: Floats, free: Ints, best: Floats) -> None:
    """`scan_columns` on a matrix of our own: ``inf`` stands at the support for as long as the scan takes.

    The support are the first pairs of ``label``, as many as ``held`` has room for; rows that are not ``free`` are left
    out.
    """
    for t in range(held.size):
        held[t] = matrix[label[0, t], label[1, t]]
        matrix[label[0, t], label[1, t]] = np.inf
    best[:] = np.inf
    i = 0
    while i + 4 <= shift.size:
        s0 = shift[i] if free[i] > 0 else np.inf
        s1 = shift[i + 1] if free[i + 1] > 0 else np.inf
        s2 = shift[i + 2] if free[i + 2] > 0 else np.inf
        s3 = shift[i + 3] if free[i + 3] > 0 else np.inf
        _lower_by_four(best, matrix[i : i + 4], s0, s1, s2, s3)
        i += 4
    while i < shift.size:
        if free[i] > 0:
            _lower(best, matrix[i], shift[i])
        i += 1
    for t in range(held.size):
        matrix[label[0, t], label[1, t]] = held[t]


@part
def best_of_matrix(
    matrix: Floats, label: Ints, held: Floats, r: Floats, c: Floats, left: Ints, best: Floats
) -> tuple[float, int, int]:
    """`_best_pair` where only the whole plan, its rows and its columns can be full; it takes single arrays."""
    m = r.size
    free_rows, free_cols = left[1 : 1 + m], left[1 + m : 1 + m + c.size]
    _scan_copy(matrix, label, held, r, free_rows, best)
    value, column, row = np.inf, -1, -1
    for j in range(c.size):
        if free_cols[j] > 0 and best[j] + c[j] < value:
            value, column = best[j] + c[j], j
    smallest = np.inf
    for i in range(m):
        if column < 0 or free_rows[i] <= 0 or matrix[i, column] + r[i] >= smallest:
            continue
        known = False
        for t in range(held.size):
            known |= label[0, t] == i and label[1, t] == column
        if not known:
            smallest, row = matrix[i, column] + r[i], i
    return value, row, column


@part
def is_priced(data: Data, work: Work, depth: int, counted: int) -> bool:
    """True if a function has put the least ``C + r`` of every column and their rows into ``best`` and ``where``.

    It is called where there is one and no labelled groups; if it fails, no pair is found, and an error follows later.
    """
    if data.pricer == 0 or (counted > 0 and work.room.labels.shape[0] > 0):
        return False
    work.best[:depth] = np.inf
    call_address(data.pricer, depth, counted)
    return True


@small_part
def scan_columns(data: Data, work: Work, counted: bool) -> None:
    """The smallest ``C + r`` of every column off the support into ``best[0]``; only where free, if ``counted``.

    Inlined, as `find_row` is, for the sake of ``counted``, which every caller knows.
    """
    m = data.base_r.size
    if is_priced(data, work, 1, int(counted)):
        return
    labelled, left = counted and work.room.labels.shape[0] > 0, work.room.left
    best, line = work.best[0], work.best[data.tuning.list_depth]
    if not (labelled or data.listed) and data.cost.kind == MATRIX:
        free = left[1 : 1 + m] if counted else np.ones(m, np.int64)
        held = work.factor.scratch[0, : work.factor.size[0]]
        _scan_copy(data.cost.matrix, work.factor.label, held, work.r, free, best)
        return
    best[:] = np.inf
    for first in range(0, m, BLOCK):
        last = min(first + BLOCK, m)
        block = cost_block(data.cost, first, last)
        for i in range(first, last):
            if counted and left[1 + i] <= 0:
                continue
            if work.head[i] < 0 and not labelled:
                _lower(best, block[i - first], work.r[i])
                continue
            _mask_support(line, block[i - first], work.head[i], work.link, work.factor.label[1])
            if labelled:
                _mask_full_groups(line, work.room, i)
            _lower(best, line, work.r[i])


@part
def _smallest(line: Floats, shift: Floats) -> int:
    """Where ``line + shift`` is smallest; -1 if it is nowhere below ``inf``."""
    smallest, place = np.inf, -1
    for j in range(line.size):
        value = line[j] + shift[j]
        if value < smallest:
            smallest, place = value, j
    return place


@inlined_part
def scan_rows(data: Data, work: Work, where: Ints) -> None:
    """The column with the smallest ``C + c`` off the support of every row, free or not; -1: none."""
    line = work.best[data.tuning.list_depth]
    for first in range(0, where.size, BLOCK):
        last = min(first + BLOCK, where.size)
        block = cost_block(data.cost, first, last)
        for i in range(first, last):
            if work.head[i] < 0:
                where[i] = _smallest(block[i - first], work.c)
                continue
            _mask_support(line, block[i - first], work.head[i], work.link, work.factor.label[1])
            where[i] = _smallest(line, work.c)


@small_part
def find_row(data: Data, work: Work, j: int, counted: bool) -> int:
    """The row with the smallest ``C + r`` in column ``j`` off the support; only where free, if ``counted``."""
    smallest, row = np.inf, -1
    for i in range(data.base_r.size):
        if counted and work.room.left[1 + i] <= 0:
            continue
        value = cost_entry(data.cost, i, j) + work.r[i]
        if value >= smallest or holds(work.head, work.link, work.factor.label[1], i, j):
            continue
        if not counted or has_capacity(work.room, i, j):
            smallest, row = value, i
    return row


@inlined_part
def _best_pair(data: Data, work: Work) -> tuple[float, int, int]:
    """The free pair with the smallest gradient: ``(gradient, row, column)``."""
    scan_columns(data, work, True)
    m, n = data.base_r.size, data.base_c.size
    value, column = np.inf, n
    for j in range(n):
        if work.room.left[1 + m + j] > 0 and work.best[0, j] + work.c[j] < value:
            value, column = work.best[0, j] + work.c[j], j
    if column == n:
        return value, -1, -1
    return value, find_row(data, work, column, True), column


@part
def _insert(best: Floats, where: Ints, row: Floats, shift: float, i: int) -> None:
    """Sort ``row + shift`` into the smallest values of every column."""
    last = best.shape[0] - 1
    last_best = best[last]
    for j in range(row.size):
        value = row[j] + shift
        if value < last_best[j]:
            depth = last
            while depth > 0 and value < best[depth - 1, j]:
                best[depth, j] = best[depth - 1, j]
                where[depth, j] = where[depth - 1, j]
                depth -= 1
            best[depth, j] = value
            where[depth, j] = i


@inlined_part
def _fill_list(data: Data, work: Work) -> tuple[int, float]:
    """Fill the candidate list with the best free pairs; ``(count, smallest gradient left out)``.

    A column offers a few of its best pairs, so whatever it has besides is no better than the last of them.
    """
    m, n, listed, left = data.base_r.size, data.base_c.size, work.listed, work.room.left
    depth_of_list, size = data.tuning.list_depth, listed.shape[1]
    labelled = work.room.labels.shape[0] > 0
    best, where, line = work.best[:depth_of_list], work.where, work.best[depth_of_list]
    best[:] = np.inf
    for first in range(0, 0 if is_priced(data, work, depth_of_list, 1) else m, BLOCK):
        last = min(first + BLOCK, m)
        block = cost_block(data.cost, first, last)
        for i in range(first, last):
            if left[1 + i] <= 0:
                continue
            if work.head[i] < 0 and not labelled:
                _insert(best, where, block[i - first], work.r[i], i)
                continue
            _mask_support(line, block[i - first], work.head[i], work.link, work.factor.label[1])
            if labelled:
                _mask_full_groups(line, work.room, i)
            _insert(best, where, line, work.r[i], i)
    gradient = np.empty(size)
    count, worst, left_out = 0, 0, np.inf
    for depth in range(depth_of_list):
        for j in range(n):
            value = best[depth, j] + work.c[j]
            if left[1 + m + j] <= 0 or value >= -data.tol:
                continue
            if depth == depth_of_list - 1:
                left_out = min(left_out, value)
            place = count
            if count < size:
                count += 1
            elif value < gradient[worst]:
                left_out = min(left_out, gradient[worst])
                place = worst
            else:
                left_out = min(left_out, value)
                continue
            gradient[place] = value
            listed[0, place], listed[1, place] = where[depth, j], j
            if count == size:
                worst = int(np.argmax(gradient))
    return count, left_out


@inlined_part
def _best_of_list(data: Data, work: Work, count: int) -> tuple[float, int]:
    """The free pair of the candidate list with the smallest gradient: ``(gradient, place in the list)``.

    ``r`` and ``c`` are brought up to date only where the list needs them.
    """
    factor, size, listed = work.factor, work.factor.size[0], work.listed
    work.mass_a[:] = 0.0
    work.mass_b[:] = 0.0
    for t in range(size):
        work.mass_a[factor.label[0, t]] += factor.mass[t]
        work.mass_b[factor.label[1, t]] += factor.mass[t]
    for k in range(count):
        work.r[listed[0, k]] = np.nan
        work.c[listed[1, k]] = np.nan
    value, place = np.inf, -1
    for k in range(count):
        i, j = listed[0, k], listed[1, k]
        if np.isnan(work.r[i]):
            work.r[i] = data.base_r[i] + smoothed(data.gram_a, work.mass_a, factor.label[0], factor.mass, size, i)
        if np.isnan(work.c[j]):
            work.c[j] = data.base_c[j] + smoothed(data.gram_b, work.mass_b, factor.label[1], factor.mass, size, j)
        gradient = cost_entry(data.cost, i, j) + work.r[i] + work.c[j]
        if gradient < value and has_capacity(work.room, i, j):
            value, place = gradient, k
    return value, place


@inlined_part
def next_pair(data: Data, work: Work) -> tuple[float, int, int]:
    """The next pair to add: the best of all, or the best of the candidate list while that is nearly as good."""
    given = work.list_state[3] > 0.0
    if not (data.listed or given):
        refresh(data, work)
        return _best_pair(data, work)
    listed, state = work.listed, work.list_state
    while True:
        rescanned = state[1] <= 0.0 and not given
        if rescanned:
            refresh(data, work)
            count, left_out = _fill_list(data, work)
            state[0], state[1], state[2] = count, data.tuning.list_refresh, left_out
        count = int(state[0])
        value, place = _best_of_list(data, work, count)
        good = value < -data.tol and value <= data.tuning.list_slack * state[2]
        if place >= 0 and (rescanned or good):
            i, j = listed[0, place], listed[1, place]
            listed[0, place], listed[1, place] = listed[0, count - 1], listed[1, count - 1]
            state[0] -= 1.0
            state[1] -= 1.0
            return value, i, j
        if rescanned or given:
            return np.inf, -1, -1
        state[1] = 0.0
