"""Orthogonal matching pursuit with reclaim, compiled.

`select.generic_greedy` does the same for any rule, matroid and objective; a test asserts that both give the same plan.
"""

import numpy as np

from .._checks import Floats, Ints
from .._numba.codes import BUDGET_USED, DEPENDS, LOCAL, NEEDS_ROOM, PAUSED, SOLVED, UNBOUNDED
from .._numba.compiling import compiled, inlined_part, part, small_part
from ..geometry._entries import DENSE, MATRIX, cost_entry, fetch
from ..inner._cholesky import forward
from ..inner.active_set import extend, gain, push, settle
from ..plan import Trace
from .room import count, is_free, questions
from .scan import best_of_matrix, next_pair, scan_columns
from .state import (
    CLOSE,
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
        count(work.room, factor.label[0, t], factor.label[1, t], -1)


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
def log(work: Work, trace: Trace) -> int:
    """Move the departed from the factor's log to the trace and reclaim their capacity; how many there were."""
    factor, gone = work.factor, trace.steps[1]
    departed = factor.size[1]
    for k in range(departed):
        trace.gone[0, gone + k] = factor.gone[0, k]
        trace.gone[1, gone + k] = factor.gone[1, k]
        trace.steps[1] += 1
        count(work.room, factor.gone[0, k], factor.gone[1, k], 1)
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
    count(work.room, i, j, -1)
    if factor.size[1] > 0:
        if _call_back(data, work) != SOLVED:
            return UNBOUNDED
        log(work, trace)
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
    """Forget the candidate list and the progress: the plan has changed behind their back."""
    work.list_state[1] = 0.0
    work.progress[0] = work.progress[1] = 0.0


@small_part
def _is_plain(data: Data, work: Work) -> bool:
    """True if all entries are there, no groups but rows and columns, and no candidate list."""
    there = data.cost.kind == MATRIX and data.gram_a.kind <= DENSE and data.gram_b.kind <= DENSE
    return there and work.room.labels.shape[0] == 0 and not (data.listed or work.list_state[3] > 0.0)


@compiled
def grow(data: Data, work: Work, trace: Trace, effort: Floats, limit: float) -> int:
    """Add the best free pair, solve, reclaim; until nothing helps or is free, or ``effort[0]`` passes ``limit``."""
    factor, left, plain = work.factor, work.room.left, _is_plain(data, work)
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
        if work.room.oracle[0] != 0 and not is_free(work.room, i, j):
            effort[0] += pairs + questions(work.room)
            continue  # it is remembered as refused
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
                count(work.room, i, j, -1)
                note(trace, i, j, gain(factor), size + 1)
            else:
                settle(factor)
                code = _reclaim_and_log(data, work, i, j, trace)
        if code != SOLVED:
            return code
        used = float(factor.size[0])
        looked = work.list_state[0] * used if data.listed or work.list_state[3] > 0.0 else pairs + points * used
        effort[0] += 2.0 * used * used + looked + questions(work.room)
        if stalls(work.progress, gain(factor), data.tuning.patience):
            return LOCAL


@compiled
def wants_more(data: Data, work: Work) -> bool:
    """True if pairs, free or not, could lower the objective by a share worth the name."""
    refresh(data, work)
    scan_columns(data, work, False)
    steepest = 0.0
    for j in range(data.base_c.size):
        steepest = max(steepest, -(work.best[0, j] + work.c[j]))
    left = steepest * (data.wanted + work.mass_a.sum())
    return bool(steepest > data.tol and left > CLOSE * abs(data.constant - gain(work.factor)))


@compiled
def has_room(data: Data, work: Work) -> bool:
    """True if some pair that is not forbidden could still be added; asks the lists that `wants_more` made."""
    if work.room.left[0] <= 0:
        return False
    for i in range(data.base_r.size):
        if work.room.left[1 + i] <= 0:
            continue
        for j in range(data.base_c.size):
            if holds(work.head, work.link, work.factor.label[1], i, j) or not cost_entry(data.cost, i, j) < np.inf:
                continue
            if is_free(work.room, i, j):
                return True
    return False
