"""Polish in machine code: exchange an entry of the plan for a better pair outside it.

Let ``W = -(C + r + c)``; on the support ``W = reg * mass``. A blocked pair ``e`` with ``W_e > 0`` wants in; an entry ``t``
that holds the capacity ``e`` needs may have to go. With ``M = H^-1`` on the support, ``u = M h_e`` and ``s_e`` the Schur
complement of ``e``, dropping ``t`` and adding ``e`` changes the objective by

    x_t^2 / (2 M_tt)  -  (W_e + u_t x_t / M_tt)^2 / (2 (s_e + u_t^2 / M_tt))

as long as no other entry turns negative, and by more if one does. So only exchanges for which this is negative are
tried, best first, each by exact solves; the first that lowers the objective stays.
"""

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel
from ..geometry._entries import Floats, Ints, cost_entry, fetch
from ..inner import _cholesky
from ..inner.active_set import DEPENDENT, SOLVED, Factor, drop, gain
from .compiled import (
    Data,
    Trace,
    Work,
    add_and_log,
    couple,
    diagonal,
    is_free,
    log,
    copy_work,
    find_row,
    grow,
    refresh,
    scan_columns,
)

WIDTH = 8  # pairs from outside that compete for the capacity of the whole plan


@kernel
def _inverse_diagonal(factor: Factor, position: int) -> float:
    """``(H^-1)_tt``: the squared norm of ``L^-1 e_t``, whose entries before ``t`` are zero."""
    size, column = factor.size[0], factor.scratch[2]
    for t in range(position, size):
        column[t] = 0.0
    column[position] = 1.0
    total = 0.0
    for j in range(position, size):
        row = factor.upper[j]
        value = column[j] / row[j]
        total += value * value
        for i in range(j + 1, size):
            column[i] -= value * row[i]
    return total


@kernel
def _candidates(data: Data, work: Work) -> tuple[int, Ints, Floats]:
    """Pairs that want in: the best of every column; only the ``WIDTH`` best of all where the whole plan is full."""
    scan_columns(data, work, False)
    n = data.base_c.size
    want = np.empty(n)
    for j in range(n):
        want[j] = work.best[0, j] + work.c[j]
    order = np.argsort(want)
    count = 0
    while count < n and want[order[count]] < -data.tol:
        count += 1
    if work.left[0] <= 0:
        count = min(count, WIDTH)
    return count, order, want


@kernel
def _frees(left: Ints, labels: NDArray[np.int32], row: int, column: int, i: int, j: int) -> bool:
    """Would the capacity of ``(row, column)`` be enough to add ``(i, j)``?"""
    m, n = labels.shape[1], labels.shape[2]
    if (left[1 + i] <= 0 and row != i) or (left[1 + m + j] <= 0 and column != j):
        return False
    for q in range(labels.shape[0]):
        group = labels[q, i, j]
        if group >= 0 and left[1 + m + n + group] <= 0 and labels[q, row, column] != group:
            return False
    return True


@kernel
def _collect(data: Data, work: Work, exchange: Ints, change: Floats, effort: Floats, limit: float) -> int:
    """List promising exchanges ``(t, t', i, j)`` with their estimated change; ``t' = -1`` but for two-sided blocks.

    A pair whose row and column are both full needs two entries to go: the cheapest of each.
    """
    factor, size, m = work.factor, work.factor.size[0], data.base_r.size
    count, order, want = _candidates(data, work)
    inverse = np.full(size, np.nan)
    response = np.empty(size)
    found = 0
    for k in range(count):
        j = order[k]
        i = find_row(data, work, j, False)
        if i < 0 or effort[0] > limit:
            break
        if not (fetch(data.gram_a, i) and fetch(data.gram_b, j)):
            continue
        wish = -want[j]
        both = work.left[1 + i] <= 0 and work.left[1 + m + j] <= 0
        solved = False
        schur = 0.0
        cheapest_row, cheapest_column, cost_row, cost_column = -1, -1, np.inf, np.inf
        for t in range(size):
            row, column, mass = factor.label[0, t], factor.label[1, t], factor.mass[t]
            if both:
                if row != i and column != j:
                    continue
            elif data.reg * mass >= wish or not _frees(work.left, data.labels, row, column, i, j):
                continue
            if np.isnan(inverse[t]):
                inverse[t] = _inverse_diagonal(factor, t)
                effort[0] += 0.5 * (size - t) * (size - t)
            loss = mass * mass / (2.0 * inverse[t])
            if both:
                if row == i and loss < cost_row:
                    cheapest_row, cost_row = t, loss
                if column == j and loss < cost_column:
                    cheapest_column, cost_column = t, loss
                continue
            if not solved:
                schur = _respond(data, work, i, j, response)
                effort[0] += 1.0 * size * size
                solved = True
            pull = wish + response[t] * mass / inverse[t]
            estimate = loss - pull * pull / (2.0 * (schur + response[t] * response[t] / inverse[t]))
            if pull > 0.0 and estimate < 0.0 and found < change.size:
                exchange[0, found], exchange[1, found] = t, -1
                exchange[2, found], exchange[3, found] = i, j
                change[found] = estimate
                found += 1
        if both and cheapest_row >= 0 and cheapest_column >= 0 and found < change.size:
            exchange[0, found], exchange[1, found] = cheapest_row, cheapest_column
            exchange[2, found], exchange[3, found] = i, j
            change[found] = cost_row + cost_column - wish * wish / (2.0 * diagonal(data, i, j))
            found += 1
    for k in range(found):  # positions shift as entries leave; labels do not
        for side in range(2):
            t = exchange[side, k]
            exchange[side, k] = factor.label[0, t] * data.base_c.size + factor.label[1, t] if t >= 0 else -1
    return found


@kernel
def _respond(data: Data, work: Work, i: int, j: int, response: Floats) -> float:
    """``H^-1 h_e`` into ``response`` for the pair ``e = (i, j)``; its Schur complement."""
    factor, size, column = work.factor, work.factor.size[0], work.factor.scratch[0]
    couple(data, work, i, j)
    schur = floor = diagonal(data, i, j)
    for t in range(size):
        column[t] = factor.coupling[t]
    _cholesky.forward(factor.upper, size, column)
    for t in range(size):
        schur -= column[t] * column[t]
    _cholesky.backward(factor.upper, size, column, response)
    return max(schur, DEPENDENT * floor)


@kernel
def _leave(data: Data, work: Work, label: int, trace: Trace) -> bool:
    """Drop the entry with this label, if it is still there, and reclaim."""
    factor, n = work.factor, data.base_c.size
    for t in range(factor.size[0]):
        if factor.label[0, t] * n + factor.label[1, t] == label:
            drop(factor, t)
            log(data, work, trace)
            return True
    return False


@kernel
def _try(data: Data, work: Work, exchange: Ints, trace: Trace, effort: Floats, limit: float) -> bool:
    """Carry the exchange out; False if it did not lower the objective (the caller then restores)."""
    factor = work.factor
    before = gain(factor)
    if not _leave(data, work, exchange[0], trace):
        return False
    both = exchange[1] >= 0
    if both and not _leave(data, work, exchange[1], trace):
        return False
    i, j = exchange[2], exchange[3]
    for t in range(factor.size[0]):
        if factor.label[0, t] == i and factor.label[1, t] == j:
            return False
    couple(data, work, i, j)
    gradient = cost_entry(data.cost, i, j) + data.base_r[i] + data.base_c[j]
    for t in range(factor.size[0]):
        gradient += factor.coupling[t] * factor.mass[t]
    effort[0] += 6.0 * factor.size[0] * factor.size[0]
    if gradient >= -data.tol or not is_free(work.left, data.labels, i, j):
        return False
    size = factor.size[0]
    if add_and_log(data, work, i, j, trace) != SOLVED:
        return False
    departed = factor.size[0] <= size
    enough = before + 1e-12 * abs(before)
    if gain(factor) <= enough and not both and not departed:
        return False
    grow(data, work, trace, effort, limit)
    return gain(factor) > enough


@kernel
def swap_pass(data: Data, work: Work, spare: Work, trace: Trace, effort: Floats, limit: float) -> int:
    """Try the promising exchanges once, best first; how many lowered the objective. ``spare`` is a second state."""
    refresh(data, work)
    room = 4 * (work.factor.size[0] + data.base_c.size)
    exchange = np.empty((4, room), np.int64)
    change = np.empty(room)
    found = _collect(data, work, exchange, change, effort, limit)
    accepted = 0
    for k in np.argsort(change[:found]):
        if effort[0] > limit or trace.steps[0] == trace.gain.size:
            break
        steps, departures = trace.steps[0], trace.steps[1]
        copy_work(work, spare)
        if _try(data, work, exchange[:, k].copy(), trace, effort, limit):
            accepted += 1
        else:
            copy_work(spare, work)
            trace.steps[0], trace.steps[1] = steps, departures
    return accepted
