"""Backward elimination, compiled: a plan beyond its budget gives up what it misses least.

OMP commits early where the budget is tight, and exchanges of single entries cannot repair that. So the plan grows on
beyond the budget, and comes back by deletions. With ``M = H^-1`` on the support, deleting entry ``t`` raises the
objective by ``x_t^2 / (2 M_tt)``; the masses and the diagonal of ``M`` follow from one column of ``M`` a deletion.
"""

import numpy as np

from .._checks import Floats, Ints
from .._numba.compiling import compiled, part
from ..inner import _cholesky
from ..inner.active_set import Factor, drop, gain, remove, settle
from ..plan import Trace
from .grow import log, note
from .room import Room, is_over
from .state import Data, Work, is_sound

_ENOUGH = 1.0 + 1e-12  # times the gain of a plan is what a better one has
_LIFT = 2**61  # on top of the capacities of rows, columns and groups
_CANCELLED = 1e-6  # a difference below this share of what it was taken from is computed anew


@compiled
def lift(room: Room, extra: int) -> int:
    """Let ``extra`` more entries in, anywhere; the capacity of the whole plan as it was, for `lower`."""
    left = room.left
    total = left[0]
    left[0] = extra
    for k in range(1, left.size):
        left[k] += _LIFT
    return int(total)


@compiled
def lower(room: Room, extra: int, total: int) -> None:
    """Take back what `lift` gave: capacities that are exceeded are below zero."""
    left = room.left
    left[0] += total - extra
    for k in range(1, left.size):
        left[k] -= _LIFT


@compiled
def shrink(data: Data, work: Work, trace: Trace, spread: Floats, effort: Floats, limit: float) -> bool:
    """Delete entries, the least missed first, until no capacity is exceeded (True) or ``effort[0]`` passes ``limit``.

    ``spread`` is the diagonal of ``M`` as far as it is known, NaN elsewhere. Entries that turn negative go first.
    """
    factor, column, response = work.factor, work.factor.scratch[0], work.factor.scratch[1]
    mass = factor.mass
    while effort[0] <= limit:
        size = factor.size[0]
        least, position = np.inf, -1
        for t in range(size):
            if mass[t] > 0.0 and not is_over(work.room, factor.label[0, t], factor.label[1, t]):
                continue
            if np.isnan(spread[t]):
                if effort[0] > limit:
                    return False
                spread[t] = _cholesky.inverse_diagonal(factor.upper, size, t, column)
                effort[0] += (size - t) ** 2
            loss = mass[t] * abs(mass[t]) / spread[t]
            if loss < least:
                least, position = loss, t
        if position < 0:
            settle(factor)
            log(work, trace)
            return True
        _cholesky.inverse_diagonal(factor.upper, size, position, column)
        column[:position] = 0.0
        _cholesky.backward(factor.upper, size, column, response)
        pivot = response[position]
        share = mass[position] / pivot
        for t in range(size):
            mass[t] -= share * response[t]
            rest = spread[t] - response[t] * response[t] / pivot
            spread[t] = rest if rest > _CANCELLED * spread[t] else np.nan
        remove(factor, position)
        for t in range(position, size - 1):
            spread[t] = spread[t + 1]
        log(work, trace)
        effort[0] += 4.0 * size * size
    return False


@compiled
def losses(work: Work) -> Floats:
    """By how much the objective would rise without each entry alone."""
    factor = work.factor
    loss = np.empty(factor.size[0])
    for t in range(loss.size):
        spread = _cholesky.inverse_diagonal(factor.upper, loss.size, t, factor.scratch[2])
        loss[t] = factor.mass[t] * factor.mass[t] / (2.0 * spread)
    return loss


@compiled
def discard(work: Work, trace: Trace, rows: Ints, cols: Ints) -> None:
    """Delete some entries, and solve again after each."""
    factor = work.factor
    for k in range(rows.size):
        for t in range(factor.size[0]):
            if factor.label[0, t] == rows[k] and factor.label[1, t] == cols[k]:
                drop(factor, t)
                log(work, trace)
                break


@compiled
def is_better(after: Factor, room: Room, before: Factor, wanted: float) -> bool:
    """True if the way beyond the budget and back lowered the objective; with overflows it may not have come back."""
    for k in range(room.left.size):
        if room.left[k] < 0:
            return False
    return bool(gain(after) > _ENOUGH * gain(before) and is_sound(after, wanted))


@part
def _is_in(factor: Factor, i: int, j: int) -> bool:
    for t in range(factor.size[0]):
        if factor.label[0, t] == i and factor.label[1, t] == j:
            return True
    return False


@compiled
def write_jump(before: Factor, after: Factor, trace: Trace) -> bool:
    """Write down how one plan became another: a step for every new pair, the rest with the last; False if none is new.

    Objective and entries of each are those of the second plan.
    """
    steps = trace.steps[0]
    for t in range(after.size[0]):
        if not _is_in(before, after.label[0, t], after.label[1, t]):
            note(trace, after.label[0, t], after.label[1, t], gain(after), after.size[0])
    last = trace.steps[0] - 1
    if last < steps:
        return False
    for t in range(before.size[0]):
        if not _is_in(after, before.label[0, t], before.label[1, t]):
            trace.gone[0, trace.steps[1]], trace.gone[1, trace.steps[1]] = before.label[0, t], before.label[1, t]
            trace.steps[1] += 1
    trace.gone_until[last] = trace.steps[1]
    return True
