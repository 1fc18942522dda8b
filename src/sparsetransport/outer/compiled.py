"""The common case in machine code: OMP with reclaim, then swaps, for budgets that count entries.

The general loop (``loop.py``) does the same for any rule, matroid and objective; a test asserts that both give the
same plan. ``Data`` is the problem and is only read (but for the cache of lazy Gram columns); ``Work`` is the state, and
a call may stop at any step and go on from there.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._jit import borrowed, kernel, shared, small_kernel
from ..geometry._entries import (
    BLOCK,
    DENSE,
    MATRIX,
    Cost,
    Floats,
    Gram,
    Ints,
    cost_block,
    cost_entry,
    fetch,
    gram_diagonal,
    gram_entry,
    potential,
    smoothed,
)
from ..inner._cholesky import forward
from ..inner.active_set import SOLVED, Factor, copy_factor, extend, gain, new_factor, push, settle
from .capacity import count, is_free

FULL, OPTIMAL, NEEDS_ROOM, PAUSED, UNBOUNDED = 0, 1, 2, 3, 4
DEPTH = 4  # pairs a column that a scan for the pool keeps
POOL = 256  # pairs in the pool
POOL_ADDITIONS = 64  # additions between two scans
POOL_SLACK = 0.95  # how good a pooled pair must be against the best one left out


class Data(NamedTuple):
    """The problem as arrays."""

    cost: Cost  # where not pooled, its matrix is a copy, which scans mark for a moment
    gram_a: Gram
    gram_b: Gram
    base_r: Floats  # (m,) r of the empty plan: -2 lambda_a Ga a
    base_c: Floats  # (n,)
    reg: float
    tol: float  # a gradient above -tol counts as zero
    labels: NDArray[np.int32]  # (q, m, n) groups other than rows and columns; -1: in no group
    pooled: bool


class Work(NamedTuple):
    """The state of a solve."""

    factor: Factor
    r: Floats
    c: Floats
    mass_a: Floats  # row sums of the plan
    mass_b: Floats
    left: Ints  # (1 + m + n + groups,) free capacity of the whole plan, of rows, of columns, of labelled groups
    active: Ints  # (2, max(m, n)) scratch: rows and columns with mass
    head: Ints  # (m,) first support entry of a row, -1: none
    link: Ints  # (capacity,) next one in the same row
    best: Floats  # (DEPTH + 1, n) smallest gradients of a column; at last, scratch for one row of the cost
    where: Ints  # (DEPTH, n) their rows
    pool: Ints  # (2, POOL) rows and columns of pooled pairs
    pool_state: Floats  # (3,) pairs in the pool, additions it is still good for, smallest gradient it left out
    progress: Floats  # (2,) the best gain so far, and steps since it was reached


class Trace(NamedTuple):
    """What a call did, step by step: the pair added, the gain reached, the entries left, the pairs that went."""

    added: Ints  # (2, steps)
    gain: Floats  # (steps,)
    entries: Ints  # (steps,)
    gone: Ints  # (2, departures)
    gone_until: Ints  # (steps,) departures up to and with this step
    steps: Ints  # (2,) steps, departures


@shared
def new_trace(steps: int, capacity: int) -> Trace:
    """Room for ``steps`` additions. Every departure follows an addition or one of ``capacity`` entries at the start."""
    return Trace(
        np.zeros((2, steps), np.int64),
        np.zeros(steps),
        np.zeros(steps, np.int64),
        np.zeros((2, steps + capacity), np.int64),
        np.zeros(steps, np.int64),
        np.zeros(2, np.int64),
    )


@shared
def new_work(data: Data, capacity: int, left: Ints) -> Work:
    """The empty plan with room for ``capacity`` entries, and with the capacities ``left``."""
    m, n = data.base_r.size, data.base_c.size
    return Work(
        new_factor(capacity),
        data.base_r.copy(),
        data.base_c.copy(),
        np.zeros(m),
        np.zeros(n),
        left.copy(),
        np.zeros((2, max(m, n)), np.int64),
        np.zeros(m, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros((DEPTH + 1, n)),
        np.zeros((DEPTH, n), np.int64),
        np.zeros((2, POOL), np.int64),
        np.zeros(3),
        np.zeros(2),
    )


@kernel
def copy_work(source: Work, destination: Work) -> None:
    """Make ``destination`` the same as ``source``, scratch aside."""
    copy_factor(source.factor, destination.factor)
    for k in range(source.left.size):
        destination.left[k] = source.left[k]


@kernel
def _couple(gram_a: Gram, gram_b: Gram, label: Ints, coupling: Floats, i: int, j: int) -> None:
    """The Hessian between the pair and the first pairs of ``label``, as many as ``coupling`` has room for."""
    for t in range(coupling.size):
        coupling[t] = gram_entry(gram_a, i, label[0, t]) + gram_entry(gram_b, j, label[1, t])


@small_kernel
def couple(data: Data, work: Work, i: int, j: int) -> None:
    """Put the Hessian between the pair and the support into ``factor.coupling``."""
    factor = work.factor
    _couple(data.gram_a, data.gram_b, factor.label, factor.coupling[: factor.size[0]], i, j)


@small_kernel
def diagonal(data: Data, i: int, j: int) -> float:
    """The Hessian's diagonal entry of a pair."""
    return gram_diagonal(data.gram_a, i) + gram_diagonal(data.gram_b, j) + data.reg


@small_kernel
def slope(data: Data, i: int, j: int) -> float:
    """The linear term of a pair."""
    return cost_entry(data.cost, i, j) + data.base_r[i] + data.base_c[j]


@kernel
def fetch_all(data: Data, rows: Ints, cols: Ints) -> bool:
    """Make sure that the Gram columns of the pairs are there; False if there is no room for them."""
    for k in range(rows.size):
        if not (fetch(data.gram_a, rows[k]) and fetch(data.gram_b, cols[k])):
            return False
    return True


@kernel
def place(data: Data, work: Work, rows: Ints, cols: Ints, mass: Floats, lower: Floats, slopes: Floats) -> None:
    """Fill the empty plan with pairs whose factor is known, solve, and let go what comes out empty."""
    factor = work.factor
    for t in range(rows.size):
        for s in range(t + 1):
            factor.upper[s, t] = lower[t, s]
        factor.target[t] = -slopes[t]
        factor.mass[t] = mass[t]
        factor.label[0, t], factor.label[1, t] = rows[t], cols[t]
    factor.size[0], factor.size[1] = rows.size, 0
    forward(factor.upper, rows.size, factor.target)
    settle(factor)
    factor.size[1] = 0
    for t in range(factor.size[0]):
        count(work.left, data.labels, factor.label[0, t], factor.label[1, t], -1)


@kernel
def _call_back(data: Data, work: Work) -> int:
    """Put departed entries that want back in into the plan again, until it is optimal on the whole support."""
    factor = work.factor
    k = 0
    while k < factor.size[1]:
        i, j = factor.gone[0, k], factor.gone[1, k]
        couple(data, work, i, j)
        gradient = slope(data, i, j)
        for t in range(factor.size[0]):
            gradient += factor.coupling[t] * factor.mass[t]
        if gradient >= -data.tol:
            k += 1
            continue
        last, before = factor.size[1] - 1, gain(factor)
        factor.gone[0, k], factor.gone[1, k] = factor.gone[0, last], factor.gone[1, last]
        factor.size[1] = last
        if push(factor, i, j, diagonal(data, i, j), slope(data, i, j)) != SOLVED:
            return UNBOUNDED
        if gain(factor) <= before:  # only rounding is left to gain
            break
        k = 0
    return SOLVED


@kernel
def _tally(
    label: Ints, mass: Floats, size: int, mass_a: Floats, mass_b: Floats, active: Ints, head: Ints, link: Ints
) -> tuple[int, int]:
    """Sums of rows and columns, lists of those with mass, and of the entries of each row; the lengths of the first."""
    mass_a[:] = 0.0
    mass_b[:] = 0.0
    head[:] = -1
    count_a = count_b = 0
    for t in range(size):
        i, j = label[0, t], label[1, t]
        if mass_a[i] == 0.0:
            active[0, count_a] = i
            count_a += 1
        if mass_b[j] == 0.0:
            active[1, count_b] = j
            count_b += 1
        mass_a[i] += mass[t]
        mass_b[j] += mass[t]
        link[t] = head[i]
        head[i] = t
    return count_a, count_b


@small_kernel
def _refresh(data: Data, work: Work) -> None:
    factor, active = work.factor, work.active
    count_a, count_b = _tally(
        factor.label, factor.mass, factor.size[0], work.mass_a, work.mass_b, active, work.head, work.link
    )
    potential(data.gram_a, data.base_r, work.mass_a, active[0], count_a, work.r)
    potential(data.gram_b, data.base_c, work.mass_b, active[1], count_b, work.c)


@kernel
def refresh(data: Data, work: Work) -> None:
    """Marginals, ``r`` and ``c`` of the present plan, and the lists of support entries by row."""
    _refresh(data, work)


@kernel
def _mask_support(line: Floats, row: Floats, entry: int, link: Ints, columns: Ints) -> None:
    """Copy the row to ``line`` with ``inf`` where it has support entries, the first of which is ``entry``."""
    for j in range(line.size):
        line[j] = row[j]
    while entry >= 0:
        line[columns[entry]] = np.inf
        entry = link[entry]


@kernel
def _mask_full_groups(line: Floats, labels: NDArray[np.int32], left: Ints, i: int) -> None:
    """``inf`` where a labelled group has no capacity left."""
    for j in range(line.size):
        if not is_free(left, labels, i, j):
            line[j] = np.inf


@kernel
def _lower(best: Floats, row: Floats, shift: float) -> None:
    """``best = min(best, row + shift)``; a loop of its own, since only so it vectorises."""
    for j in range(best.size):
        value = row[j] + shift
        best[j] = value if value < best[j] else best[j]


@kernel
def _lower_by_four(best: Floats, rows: Floats, s0: float, s1: float, s2: float, s3: float) -> None:
    """The same for four rows, which reads and writes ``best`` a quarter as often."""
    r0, r1, r2, r3 = rows[0], rows[1], rows[2], rows[3]
    for j in range(best.size):
        v0, v1, v2, v3 = r0[j] + s0, r1[j] + s1, r2[j] + s2, r3[j] + s3
        low = v0 if v0 < v1 else v1
        other = v2 if v2 < v3 else v3
        low = low if low < other else other
        best[j] = low if low < best[j] else best[j]


@kernel
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


@kernel
def _best_of_matrix(
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


@kernel
def scan_columns(data: Data, work: Work, counted: bool) -> None:
    """The smallest ``C + r`` of every column off the support into ``best[0]``; only where free, if ``counted``."""
    m = data.base_r.size
    labelled = counted and data.labels.shape[0] > 0
    best, line = work.best[0], work.best[DEPTH]
    if not (labelled or data.pooled) and data.cost.kind == MATRIX:
        free = work.left[1 : 1 + m] if counted else np.ones(m, np.int64)
        held = work.factor.scratch[0, : work.factor.size[0]]
        _scan_copy(data.cost.matrix, work.factor.label, held, work.r, free, best)
        return
    best[:] = np.inf
    for first in range(0, m, BLOCK):
        last = min(first + BLOCK, m)
        block = cost_block(data.cost, first, last)
        for i in range(first, last):
            if counted and work.left[1 + i] <= 0:
                continue
            if work.head[i] < 0 and not labelled:
                _lower(best, block[i - first], work.r[i])
                continue
            _mask_support(line, block[i - first], work.head[i], work.link, work.factor.label[1])
            if labelled:
                _mask_full_groups(line, data.labels, work.left, i)
            _lower(best, line, work.r[i])


@kernel
def find_row(data: Data, work: Work, j: int, counted: bool) -> int:
    """The row with the smallest ``C + r`` in column ``j`` off the support; only where free, if ``counted``."""
    smallest, row = np.inf, -1
    for i in range(data.base_r.size):
        if counted and work.left[1 + i] <= 0:
            continue
        value = cost_entry(data.cost, i, j) + work.r[i]
        if value >= smallest or holds(work.head, work.link, work.factor.label[1], i, j):
            continue
        if not counted or is_free(work.left, data.labels, i, j):
            smallest, row = value, i
    return row


@kernel
def _best_pair(data: Data, work: Work) -> tuple[float, int, int]:
    """The free pair with the smallest gradient: ``(gradient, row, column)``."""
    scan_columns(data, work, True)
    m, n = data.base_r.size, data.base_c.size
    value, column = np.inf, n
    for j in range(n):
        if work.left[1 + m + j] > 0 and work.best[0, j] + work.c[j] < value:
            value, column = work.best[0, j] + work.c[j], j
    if column == n:
        return value, -1, -1
    return value, find_row(data, work, column, True), column


@kernel
def _insert(best: Floats, where: Ints, row: Floats, shift: float, i: int) -> None:
    """Sort ``row + shift`` into the ``DEPTH`` smallest values of every column."""
    last_best = best[DEPTH - 1]
    for j in range(row.size):
        value = row[j] + shift
        if value < last_best[j]:
            depth = DEPTH - 1
            while depth > 0 and value < best[depth - 1, j]:
                best[depth, j] = best[depth - 1, j]
                where[depth, j] = where[depth - 1, j]
                depth -= 1
            best[depth, j] = value
            where[depth, j] = i


@kernel
def _scan_pool(data: Data, work: Work, pool: Ints) -> tuple[int, float]:
    """Fill ``pool[:, :count]`` with the best free pairs; ``(count, smallest gradient left out)``.

    A column offers its ``DEPTH`` best pairs, so whatever it has besides is no better than the last of them.
    """
    m, n = data.base_r.size, data.base_c.size
    labelled = data.labels.shape[0] > 0
    best, where, line = work.best, work.where, work.best[DEPTH]
    best[:DEPTH] = np.inf
    for first in range(0, m, BLOCK):
        last = min(first + BLOCK, m)
        block = cost_block(data.cost, first, last)
        for i in range(first, last):
            if work.left[1 + i] <= 0:
                continue
            if work.head[i] < 0 and not labelled:
                _insert(best, where, block[i - first], work.r[i], i)
                continue
            _mask_support(line, block[i - first], work.head[i], work.link, work.factor.label[1])
            if labelled:
                _mask_full_groups(line, data.labels, work.left, i)
            _insert(best, where, line, work.r[i], i)
    gradient = np.empty(POOL)
    count, worst, left_out = 0, 0, np.inf
    for depth in range(DEPTH):
        for j in range(n):
            value = best[depth, j] + work.c[j]
            if work.left[1 + m + j] <= 0 or value >= -data.tol:
                continue
            if depth == DEPTH - 1:
                left_out = min(left_out, value)
            place = count
            if count < POOL:
                count += 1
            elif value < gradient[worst]:
                left_out = min(left_out, gradient[worst])
                place = worst
            else:
                left_out = min(left_out, value)
                continue
            gradient[place] = value
            pool[0, place], pool[1, place] = where[depth, j], j
            if count == POOL:
                worst = int(np.argmax(gradient))
    return count, left_out


@kernel
def _best_of_pool(data: Data, work: Work, pool: Ints, count: int) -> tuple[float, int]:
    """The free pair of the pool with the smallest gradient: ``(gradient, place in the pool)``.

    ``r`` and ``c`` are brought up to date only where the pool needs them.
    """
    factor, size = work.factor, work.factor.size[0]
    work.mass_a[:] = 0.0
    work.mass_b[:] = 0.0
    for t in range(size):
        work.mass_a[factor.label[0, t]] += factor.mass[t]
        work.mass_b[factor.label[1, t]] += factor.mass[t]
    for k in range(count):
        work.r[pool[0, k]] = np.nan
        work.c[pool[1, k]] = np.nan
    value, place = np.inf, -1
    for k in range(count):
        i, j = pool[0, k], pool[1, k]
        if not is_free(work.left, data.labels, i, j):
            continue
        if np.isnan(work.r[i]):
            work.r[i] = data.base_r[i] + smoothed(data.gram_a, work.mass_a, factor.label[0], factor.mass, size, i)
        if np.isnan(work.c[j]):
            work.c[j] = data.base_c[j] + smoothed(data.gram_b, work.mass_b, factor.label[1], factor.mass, size, j)
        gradient = cost_entry(data.cost, i, j) + work.r[i] + work.c[j]
        if gradient < value:
            value, place = gradient, k
    return value, place


@kernel
def _next_pair(data: Data, work: Work) -> tuple[float, int, int]:
    """The next pair to add: the best of all, or the best of the pool while that is nearly as good."""
    if not data.pooled:
        refresh(data, work)
        return _best_pair(data, work)
    pool, pool_state = work.pool, work.pool_state
    while True:
        rescanned = pool_state[1] <= 0.0
        if rescanned:
            refresh(data, work)
            count, left_out = _scan_pool(data, work, pool)
            pool_state[0], pool_state[1], pool_state[2] = count, POOL_ADDITIONS, left_out
        count = int(pool_state[0])
        value, place = _best_of_pool(data, work, pool, count)
        good = value < -data.tol and value <= POOL_SLACK * pool_state[2]
        if place >= 0 and (rescanned or good):
            i, j = pool[0, place], pool[1, place]
            pool[0, place], pool[1, place] = pool[0, count - 1], pool[1, count - 1]
            pool_state[0] -= 1.0
            pool_state[1] -= 1.0
            return value, i, j
        if rescanned:
            return np.inf, -1, -1
        pool_state[1] = 0.0


@kernel
def log(data: Data, work: Work, trace: Trace) -> int:
    """Move the departed from the factor's log to the trace and reclaim their capacity; how many there were."""
    factor, gone = work.factor, trace.steps[1]
    departed = factor.size[1]
    for k in range(departed):
        trace.gone[0, gone + k] = factor.gone[0, k]
        trace.gone[1, gone + k] = factor.gone[1, k]
        trace.steps[1] += 1
        count(work.left, data.labels, factor.gone[0, k], factor.gone[1, k], 1)
    factor.size[1] = 0
    return departed


@kernel
def add_and_log(data: Data, work: Work, i: int, j: int, trace: Trace) -> int:
    """Add the pair, solve, reclaim, and write the step down."""
    factor = work.factor
    if not (fetch(data.gram_a, i) and fetch(data.gram_b, j)):
        return NEEDS_ROOM
    couple(data, work, i, j)
    if push(factor, i, j, diagonal(data, i, j), slope(data, i, j)) != SOLVED:
        return UNBOUNDED
    count(work.left, data.labels, i, j, -1)
    if factor.size[1] > 0:
        if _call_back(data, work) != SOLVED:
            return UNBOUNDED
        log(data, work, trace)
    _note(trace, i, j, gain(factor), factor.size[0])
    return SOLVED


@small_kernel
def _note(trace: Trace, i: int, j: int, reached: float, entries: int) -> None:
    """Write a step down."""
    step = trace.steps[0]
    trace.added[0, step], trace.added[1, step] = i, j
    trace.gain[step] = reached
    trace.entries[step] = entries
    trace.gone_until[step] = trace.steps[1]
    trace.steps[0] = step + 1


@kernel
def start_afresh(work: Work) -> None:
    """Forget the pool and the progress: the plan has changed behind their back."""
    work.pool_state[1] = 0.0
    work.progress[0] = work.progress[1] = 0.0


@kernel
def _stalls(progress: Floats, reached: float) -> bool:
    """Has nothing but rounding been gained for a while?"""
    if reached > progress[0] * (1.0 + 1e-14):
        progress[0], progress[1] = reached, 0.0
    else:
        progress[1] += 1.0
    return progress[1] > 8.0


@small_kernel
def _is_plain(data: Data) -> bool:
    """Are all entries there, and no groups but rows and columns?"""
    there = data.cost.kind == MATRIX and data.gram_a.kind <= DENSE and data.gram_b.kind <= DENSE
    return there and data.labels.shape[0] == 0 and not data.pooled


@kernel
def grow(data: Data, work: Work, trace: Trace, effort: Floats, limit: float) -> int:
    """Add the best free pair, solve, reclaim; until nothing helps or is free, or ``effort[0]`` passes ``limit``."""
    data, work, trace = borrowed(data), borrowed(work), borrowed(trace)
    factor, left, plain = work.factor, work.left, _is_plain(data)
    pairs, points = float(data.base_r.size * data.base_c.size), float(data.base_r.size + data.base_c.size)
    while True:
        size = factor.size[0]
        if left[0] <= 0:
            return FULL
        if trace.steps[0] == trace.gain.size or effort[0] > limit:
            return PAUSED
        if size == factor.mass.size:
            return NEEDS_ROOM
        if plain:
            _refresh(data, work)
            value, i, j = _best_of_matrix(
                data.cost.matrix, factor.label, factor.scratch[0, :size], work.r, work.c, left, work.best[0]
            )
        else:
            value, i, j = _next_pair(data, work)
        if not value < -data.tol:
            return FULL if value == np.inf else OPTIMAL
        done = False
        if plain:
            coupling = factor.coupling[:size]
            _couple(data.gram_a, data.gram_b, factor.label, coupling, i, j)
            done = extend(
                factor.upper,
                factor.target,
                factor.mass,
                coupling,
                factor.scratch,
                diagonal(data, i, j),
                data.cost.matrix[i, j] + data.base_r[i] + data.base_c[j],
            )
        if done:
            factor.label[0, size], factor.label[1, size] = i, j
            factor.size[0] = size + 1
            count(left, data.labels, i, j, -1)
            _note(trace, i, j, gain(factor), size + 1)
        else:
            code = add_and_log(data, work, i, j, trace)
            if code != SOLVED:
                return code
        used = float(factor.size[0])
        effort[0] += 2.0 * used * used + (POOL * used if data.pooled else pairs + points * used)
        if _stalls(work.progress, gain(factor)):
            return OPTIMAL


@kernel
def grow_within(data: Data, work: Work, trace: Trace, effort: Floats, limit: float, rows: Ints, cols: Ints) -> int:
    """As `grow`, with only the given pairs to choose from."""
    factor = work.factor
    while True:
        if trace.steps[0] == trace.gain.size or effort[0] > limit:
            return PAUSED
        if factor.size[0] == factor.mass.size:
            return NEEDS_ROOM
        refresh(data, work)
        value, place = np.inf, -1
        for k in range(rows.size):
            i, j = rows[k], cols[k]
            gradient = cost_entry(data.cost, i, j) + work.r[i] + work.c[j]
            if gradient >= value or holds(work.head, work.link, work.factor.label[1], i, j):
                continue
            if is_free(work.left, data.labels, i, j):
                value, place = gradient, k
        if not value < -data.tol:
            return OPTIMAL
        code = add_and_log(data, work, rows[place], cols[place], trace)
        if code != SOLVED:
            return code
        effort[0] += 2.0 * factor.size[0] ** 2 + rows.size + (work.r.size + work.c.size) * factor.size[0]
        if _stalls(work.progress, gain(factor)):
            return OPTIMAL


@small_kernel
def holds(head: Ints, link: Ints, columns: Ints, i: int, j: int) -> bool:
    """Is the pair in the support? Asks the lists that ``refresh`` made."""
    t = head[i]
    while t >= 0 and columns[t] != j:
        t = link[t]
    return t >= 0


@kernel
def wants_more(data: Data, work: Work) -> bool:
    """Would any pair at all, free or not, lower the objective by more than what rounding leaves to gain?"""
    refresh(data, work)
    scan_columns(data, work, False)
    for j in range(data.base_c.size):
        if work.best[0, j] + work.c[j] < -1000.0 * data.tol:
            return True
    return False
