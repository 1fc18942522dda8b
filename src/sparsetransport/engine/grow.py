"""The common case in machine code: OMP with reclaim, for budgets that count entries.

The general loop (``loop.py``) does the same for any rule, matroid and objective; a test asserts that both give the
same plan.
"""

import numpy as np

from .._checks import Floats, Ints
from .._numba.codes import BUDGET_USED, DEPENDS, LOCAL, NEEDS_ROOM, PAUSED, SOLVED, UNBOUNDED
from .._numba.compiling import compiled, inlined_part, part, small_part
from ..geometry._entries import DENSE, MATRIX, cost_entry, fetch
from ..inner._cholesky import forward
from ..inner.active_set import extend, gain, push, settle
from ..plan import Trace
from .capacity import count, is_free
from .scan import best_of_matrix, next_pair, scan_columns
from .state import (
    CLOSE,
    POOL,
    Data,
    Work,
    couple,
    couple_arrays,
    diagonal,
    holds,
    refresh,
    refresh_inline,
    slope,
    stalls,
)


@compiled
def fetch_all(data: Data, rows: Ints, cols: Ints) -> bool:
    """Make sure that the Gram columns of the pairs are there; False if there is no room for them."""
    for k in range(rows.size):
        if not (fetch(data.gram_a, rows[k]) and fetch(data.gram_b, cols[k])):
            return False
    return True


@compiled
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


@inlined_part
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


@part
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


@part
def add_and_log(data: Data, work: Work, i: int, j: int, trace: Trace) -> int:
    """Add the pair, solve, reclaim, and write the step down."""
    if not (fetch(data.gram_a, i) and fetch(data.gram_b, j)):
        return NEEDS_ROOM
    couple(data, work, i, j)
    if push(work.factor, i, j, diagonal(data, i, j), slope(data, i, j)) != SOLVED:
        return UNBOUNDED
    return _reclaim_and_log(data, work, i, j, trace)


@part
def _reclaim_and_log(data: Data, work: Work, i: int, j: int, trace: Trace) -> int:
    """What follows when the pair has been added and the masses are settled."""
    factor = work.factor
    count(work.left, data.labels, i, j, -1)
    if factor.size[1] > 0:
        if _call_back(data, work) != SOLVED:
            return UNBOUNDED
        log(data, work, trace)
    note(trace, i, j, gain(factor), factor.size[0])
    return SOLVED


@small_part
def note(trace: Trace, i: int, j: int, reached: float, entries: int) -> None:
    """Write a step down."""
    step = trace.steps[0]
    trace.added[0, step], trace.added[1, step] = i, j
    trace.gain[step] = reached
    trace.entries[step] = entries
    trace.gone_until[step] = trace.steps[1]
    trace.steps[0] = step + 1


@part
def start_afresh(work: Work) -> None:
    """Forget the pool and the progress: the plan has changed behind their back."""
    work.pool_state[1] = 0.0
    work.progress[0] = work.progress[1] = 0.0


@small_part
def _is_plain(data: Data) -> bool:
    """Are all entries there, and no groups but rows and columns?"""
    there = data.cost.kind == MATRIX and data.gram_a.kind <= DENSE and data.gram_b.kind <= DENSE
    return there and data.labels.shape[0] == 0 and not data.pooled


@compiled
def grow(data: Data, work: Work, trace: Trace, effort: Floats, limit: float) -> int:
    """Add the best free pair, solve, reclaim; until nothing helps or is free, or ``effort[0]`` passes ``limit``."""
    factor, left, plain = work.factor, work.left, _is_plain(data)
    pairs, points = float(data.base_r.size * data.base_c.size), float(data.base_r.size + data.base_c.size)
    while True:
        size = factor.size[0]
        if left[0] <= 0:
            return BUDGET_USED
        if trace.steps[0] == trace.gain.size or effort[0] > limit:
            return PAUSED
        if size == factor.mass.size:
            return NEEDS_ROOM
        if plain:
            refresh_inline(data, work)
            value, i, j = best_of_matrix(
                data.cost.matrix, factor.label, factor.scratch[0, :size], work.r, work.c, left, work.best[0]
            )
        else:
            value, i, j = next_pair(data, work)
        if not value < -data.tol:
            return BUDGET_USED if value == np.inf else LOCAL
        state = DEPENDS
        if plain:
            coupling = factor.coupling[:size]
            couple_arrays(data.gram_a, data.gram_b, factor.label, coupling, i, j)
            state = extend(
                factor.upper,
                factor.target,
                factor.mass,
                coupling,
                factor.scratch,
                diagonal(data, i, j),
                data.cost.matrix[i, j] + data.base_r[i] + data.base_c[j],
            )
        code = SOLVED
        if state == DEPENDS:
            code = add_and_log(data, work, i, j, trace)
        else:
            factor.label[0, size], factor.label[1, size] = i, j
            factor.size[0] = size + 1
            if state == SOLVED:
                count(left, data.labels, i, j, -1)
                note(trace, i, j, gain(factor), size + 1)
            else:
                settle(factor)
                code = _reclaim_and_log(data, work, i, j, trace)
        if code != SOLVED:
            return code
        used = float(factor.size[0])
        effort[0] += 2.0 * used * used + (POOL * used if data.pooled else pairs + points * used)
        if stalls(work.progress, gain(factor)):
            return LOCAL


@compiled
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
            return LOCAL
        code = add_and_log(data, work, rows[place], cols[place], trace)
        if code != SOLVED:
            return code
        effort[0] += 2.0 * factor.size[0] ** 2 + rows.size + (work.r.size + work.c.size) * factor.size[0]
        if stalls(work.progress, gain(factor)):
            return LOCAL


@compiled
def wants_more(data: Data, work: Work) -> bool:
    """Could pairs, free or not, lower the objective by a share worth the name, if all mass went where it helps most?"""
    refresh(data, work)
    scan_columns(data, work, False)
    steepest = 0.0
    for j in range(data.base_c.size):
        steepest = max(steepest, -(work.best[0, j] + work.c[j]))
    left = steepest * (data.wanted + work.mass_a.sum())
    return bool(steepest > data.tol and left > CLOSE * abs(data.constant - gain(work.factor)))


@compiled
def has_room(data: Data, work: Work) -> bool:
    """Could some pair that is not forbidden still be added? Asks the lists that `wants_more` made."""
    if work.left[0] <= 0:
        return False
    for i in range(data.base_r.size):
        if work.left[1 + i] <= 0:
            continue
        for j in range(data.base_c.size):
            if not is_free(work.left, data.labels, i, j) or holds(work.head, work.link, work.factor.label[1], i, j):
                continue
            if cost_entry(data.cost, i, j) < np.inf:
                return True
    return False
