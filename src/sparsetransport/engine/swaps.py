"""Swaps, compiled: exchange an entry of the plan for a better pair outside it.

Let ``W = -(C + r + c)``; on the support ``W = reg * mass``. A blocked pair ``e`` with ``W_e > 0`` wants in; an entry
``t`` that holds the capacity ``e`` needs may have to go. With ``M = H^-1`` on the support, ``u = M h_e`` and ``s_e``
the Schur complement of ``e``, dropping ``t`` and adding ``e`` changes the objective by

    x_t^2 / (2 M_tt)  -  (W_e + u_t x_t / M_tt)^2 / (2 (s_e + u_t^2 / M_tt))

as long as no other entry turns negative, and by more if one does. So only exchanges for which this is negative are
tried, best first, each by exact solves; the first that lowers the objective stays.

Where the budget is tight, two entries ``(i, j)`` and ``(k, l)`` may be crossed: ``(i, l)`` and ``(k, j)`` would do the
same for less, but no exchange of a single entry leads there, since it would spoil a marginal. So the two are exchanged
together; their masses times ``C_il + C_kj - C_ij - C_kl`` is about what that brings.
"""

from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.codes import BETTER, NEEDS_ROOM, SOLVED, UNBOUNDED, WORSE
from .._numba.compiling import compiled, inlined_part, part, small_part
from ..geometry._entries import MATRIX, cost_entry
from ..inner import _cholesky
from ..inner.active_set import DEPENDENT, Factor, drop, gain
from ..plan import Trace
from .grow import add_and_log, grow, log, start_afresh
from .room import Room, has_capacity, is_free, put_back, questions, set_aside
from .scan import find_row, scan_columns, scan_rows
from .state import Data, Saved, Work, couple, diagonal, holds, is_sound, refresh, restore, save, slope

NONE = -1


@inlined_part
def _candidates(data: Data, work: Work, wish: Floats, where: Ints) -> int:
    """Fill ``wish`` with ``W`` of the best pair of every row, and then of every column; zero where not to be tried.

    ``where`` gets the columns of the first. A pair that is the best of both counts for its column alone. Rows and
    columns have the same say, so that a transposed problem has the same candidates; in large problems columns alone.
    Where the whole plan is full every entry could go for every pair, so only the ``swap_width`` best pairs are tried.
    """
    scan_columns(data, work, False)
    m, count, width = where.size, 0, data.tuning.swap_width
    where[:] = NONE
    if not data.listed:
        scan_rows(data, work, where)
    for k in range(wish.size):
        wish[k] = 0.0
        if k >= m:
            wish[k] = -work.best[0, k - m] - work.c[k - m]
        elif where[k] >= 0:
            shifted = cost_entry(data.cost, k, where[k]) + work.r[k]
            wish[k] = -shifted - work.c[where[k]] if shifted > work.best[0, where[k]] else 0.0
        if not wish[k] > data.tol:
            wish[k] = 0.0
        count += wish[k] > 0.0
    if work.room.left[0] > 0 or count <= width:
        return count
    best = np.zeros(width)  # in descending order
    for k in range(wish.size):
        place = width
        while place > 0 and wish[k] > best[place - 1]:
            if place < width:
                best[place] = best[place - 1]
            place -= 1
        if place < width:
            best[place] = wish[k]
    least, ties = best[width - 1], width
    for k in range(wish.size):
        ties -= wish[k] > least
    for k in range(wish.size):
        if wish[k] == least and ties > 0:
            ties -= 1
        elif wish[k] <= least:
            wish[k] = 0.0
    return width


@part
def _frees(room: Room, row: int, column: int, i: int, j: int) -> bool:
    """True if there is room for ``(i, j)`` without ``(row, column)``, for all that is known without asking."""
    set_aside(room, row, column)
    free = has_capacity(room, i, j)
    put_back(room)
    return free


@small_part
def _loss(factor: Factor, inverse: Floats, t: int, effort: Floats) -> float:
    """What dropping the entry costs; ``inverse`` remembers the diagonal of ``H^-1``."""
    if np.isnan(inverse[t]):
        inverse[t] = _cholesky.inverse_diagonal(factor.upper, factor.size[0], t, factor.scratch[2])
        effort[0] += 0.5 * (factor.size[0] - t) ** 2
    return float(factor.mass[t] * factor.mass[t] / (2.0 * inverse[t]))


class Exchanges(NamedTuple):
    """What could be exchanged: one or two entries for one or two pairs, and the estimated change of the objective.

    Both are given by labels, ``row * n + column``; -1: none.
    """

    out: Ints  # (room, 2)
    into: Ints  # (room, 2)
    change: Floats  # (room,)
    size: Ints  # (1,)


@small_part
def _write(found: Exchanges, first: int, second: int, new: int, other: int, change: float) -> None:
    """Note an exchange, if there is room."""
    k = found.size[0]
    if k < found.change.size:
        found.out[k, 0], found.out[k, 1] = first, second
        found.into[k, 0], found.into[k, 1] = new, other
        found.change[k] = change
        found.size[0] = k + 1


@inlined_part
def _one_for_one(
    data: Data, work: Work, i: int, j: int, wish: float, wide: bool, inverse: Floats, found: Exchanges, effort: Floats
) -> None:
    """Exchanges of the pair for one entry that holds the capacity it needs; all of them, or what ``W`` speaks for."""
    factor, size, n = work.factor, work.factor.size[0], data.base_c.size
    response = factor.scratch[1]
    schur = -1.0
    for t in range(size):
        row, column, mass = factor.label[0, t], factor.label[1, t], factor.mass[t]
        if (data.reg * mass >= wish and not wide) or not _frees(work.room, row, column, i, j):
            continue
        if schur < 0.0:
            schur = _respond(data, work, i, j, response)
            effort[0] += 1.0 * size * size
        loss = _loss(factor, inverse, t, effort)
        pull = wish + response[t] * mass / inverse[t]
        change = loss - pull * pull / (2.0 * (schur + response[t] * response[t] / inverse[t]))
        if pull > 0.0 and change < 0.0:
            _write(found, row * n + column, NONE, i * n + j, NONE, change)


@inlined_part
def _one_for_two(
    data: Data, work: Work, i: int, j: int, wish: float, inverse: Floats, found: Exchanges, effort: Floats
) -> None:
    """The exchange of a pair whose row and column are both full for the cheapest entry of each."""
    factor, n = work.factor, data.base_c.size
    least_a, least_b, loss_a, loss_b = -1, -1, np.inf, np.inf
    for t in range(factor.size[0]):
        row, column = factor.label[0, t], factor.label[1, t]
        if row != i and column != j:
            continue
        loss = _loss(factor, inverse, t, effort)
        if row == i and loss < loss_a:
            least_a, loss_a = row * n + column, loss
        if column == j and loss < loss_b:
            least_b, loss_b = row * n + column, loss
    if least_a >= 0 and least_b >= 0:
        change = loss_a + loss_b - wish * wish / (2.0 * diagonal(data, i, j))
        first, second = (least_a, least_b) if loss_a < loss_b else (least_b, least_a)
        _write(found, first, second, i * n + j, NONE, change)


@part
def _crossings(
    costs: Floats, at: Ints, label: Ints, mass: Floats, head: Ints, link: Ints, partner: Ints, least: Floats
) -> None:
    """For every entry the one with which it is best exchanged, -1: none, and about what that changes.

    The cost from the row of entry ``t`` to the column of entry ``s`` is ``costs[at[0, t], at[1, s]]``.
    """
    size = least.size
    rows, cols, at_row, at_col = label[0], label[1], at[0], at[1]
    own = np.empty(size)
    for t in range(size):
        own[t] = costs[at_row[t], at_col[t]]
    for t in range(size):
        least[t], partner[t] = 0.0, -1
        for s in range(size):
            if rows[s] == rows[t] or cols[s] == cols[t]:
                continue
            saved = costs[at_row[t], at_col[s]] + costs[at_row[s], at_col[t]] - own[t] - own[s]
            change = saved * min(mass[t], mass[s])
            if change >= least[t] or holds(head, link, cols, rows[t], cols[s]):
                continue
            if not holds(head, link, cols, rows[s], cols[t]):
                least[t], partner[t] = change, s


@inlined_part
def _two_for_two(data: Data, work: Work, found: Exchanges, effort: Floats) -> None:
    """For every entry the crossed one with which it is best exchanged."""
    factor, size, n = work.factor, work.factor.size[0], data.base_c.size
    label, mass = factor.label, factor.mass
    partner, least = np.empty(size, np.int64), np.empty(size)
    costs, at = data.cost.matrix, label
    if data.cost.kind != MATRIX:
        costs, at = np.empty((size, size)), np.empty((2, size), np.int64)
        for t in range(size):
            at[0, t] = at[1, t] = t
            for s in range(size):
                costs[t, s] = cost_entry(data.cost, label[0, t], label[1, s])
    _crossings(costs, at, label, mass, work.head, work.link, partner, least)
    for t in range(size):
        s = partner[t]
        if s < 0 or least[t] >= -data.tol * mass[t] or (s < t and partner[s] == t):
            continue
        u, v = (t, s) if mass[t] > mass[s] else (s, t)  # one form, whichever entry asks and however points are ordered
        new, other = label[0, u] * n + label[1, v], label[0, v] * n + label[1, u]
        if costs[at[0, v], at[1, u]] < costs[at[0, u], at[1, v]]:
            new, other = other, new
        _write(found, label[0, u] * n + label[1, u], label[0, v] * n + label[1, v], new, other, least[t])
    effort[0] += 2.0 * size * size


@inlined_part
def _collect(data: Data, work: Work, found: Exchanges, effort: Floats, limit: float) -> None:
    """List the promising exchanges: for the best pair of every row and column, or for all pairs where there are few."""
    m, n = data.base_r.size, data.base_c.size
    wish, where, inverse = np.empty(m + n), np.empty(m, np.int64), np.full(work.factor.size[0], np.nan)
    if _candidates(data, work, wish, where) == 0:
        return
    if _is_wide(data, work):
        for i in range(m):
            for j in range(n):
                value = -(cost_entry(data.cost, i, j) + work.r[i] + work.c[j])
                if value > -np.inf and not holds(work.head, work.link, work.factor.label[1], i, j):
                    _offer(data, work, i, j, value, True, inverse, found, effort)
    else:
        for k in range(m + n):
            if wish[k] == 0.0:
                continue
            i, j = k, k - m
            if k < m:
                j = where[k]
            else:
                i = find_row(data, work, j, False) if data.pricer == 0 else work.where[0, j]
            if effort[0] > limit:
                break
            if i >= 0:
                _offer(data, work, i, j, wish[k], False, inverse, found, effort)
    _two_for_two(data, work, found, effort)


@small_part
def _offer(
    data: Data, work: Work, i: int, j: int, wish: float, wide: bool, inverse: Floats, found: Exchanges, effort: Floats
) -> None:
    """List the promising exchanges that bring this pair in."""
    if work.room.left[1 + i] > 0 or work.room.left[1 + data.base_r.size + j] > 0:
        _one_for_one(data, work, i, j, wish, wide, inverse, found, effort)
    elif wish > data.tol:
        _one_for_two(data, work, i, j, wish, inverse, found, effort)


@small_part
def _is_wide(data: Data, work: Work) -> bool:
    """True if all pairs compete."""
    few, pairs = data.tuning.swap_few, data.tuning.swap_pairs
    return work.factor.size[0] <= few and data.base_r.size * data.base_c.size <= pairs


@inlined_part
def _respond(data: Data, work: Work, i: int, j: int, response: Floats) -> float:
    """``H^-1 h_e`` into ``response`` for the pair ``e = (i, j)``; its Schur complement."""
    factor = work.factor
    couple(data, work, i, j)
    coupling = factor.coupling[: factor.size[0]]
    return _project(factor.upper, coupling, factor.scratch[0], response, diagonal(data, i, j))


@part
def _project(upper: Floats, coupling: Floats, column: Floats, response: Floats, diagonal: float) -> float:
    """``H^-1`` times the coupling into ``response``; the Schur complement."""
    size, schur = coupling.size, diagonal
    for t in range(size):
        column[t] = coupling[t]
    _cholesky.forward(upper, size, column)
    for t in range(size):
        schur -= column[t] * column[t]
    _cholesky.backward(upper, size, column, response)
    return max(schur, DEPENDENT * diagonal)


@part
def _position(factor: Factor, n: int, label: int) -> int:
    """Where the entry with this label is; -1: not there."""
    for t in range(factor.size[0]):
        if factor.label[0, t] * n + factor.label[1, t] == label:
            return t
    return -1


@inlined_part
def _is_current(factor: Factor, n: int, out: Ints, into: Ints) -> bool:
    """True if the exchange is still one, after others were made."""
    for side in range(2):
        if out[side] != NONE and _position(factor, n, out[side]) < 0:
            return False
        if into[side] != NONE and _position(factor, n, into[side]) >= 0:
            return False
    return True


@inlined_part
def _try(data: Data, work: Work, out: Ints, into: Ints, trace: Trace, effort: Floats, limit: float) -> int:
    """Carry the exchange out: ``BETTER``; ``WORSE`` or ``NEEDS_ROOM`` (entries or steps): the caller restores."""
    factor, n = work.factor, data.base_c.size
    before = gain(factor)
    for side in range(2):
        position = _position(factor, n, out[side]) if out[side] != NONE else -1
        if position >= 0:  # dropping the first may have emptied the second
            drop(factor, position)
            log(work, trace)
    expected = factor.size[0]
    for side in range(2):
        if into[side] == NONE:
            continue
        i, j = into[side] // n, into[side] % n
        couple(data, work, i, j)
        gradient = slope(data, i, j)
        for t in range(factor.size[0]):
            gradient += factor.coupling[t] * factor.mass[t]
        effort[0] += 6.0 * factor.size[0] * factor.size[0]
        if gradient >= -data.tol or not is_free(work.room, i, j):
            return WORSE
        if trace.steps[0] == trace.gain.size:
            return NEEDS_ROOM
        code = add_and_log(data, work, i, j, trace)
        if code != SOLVED:
            return NEEDS_ROOM if code == NEEDS_ROOM else WORSE
        expected += 1
    enough = before + 1e-12 * abs(before)
    spare = factor.size[0] < expected or (out[1] != NONE and into[1] == NONE)
    if gain(factor) <= enough and not spare:
        return WORSE
    start_afresh(work)
    code = grow(data, work, trace, effort, limit)
    if code == NEEDS_ROOM:
        return NEEDS_ROOM
    return BETTER if code != UNBOUNDED and gain(factor) > enough and is_sound(factor, data.wanted) else WORSE


@part
def _is_allowed(data: Data, work: Work, out: Ints, into: Ints) -> bool:
    """What the oracle says of the first pair that an exchange brings in."""
    n = data.base_c.size
    for side in range(2):
        if out[side] != NONE:
            set_aside(work.room, out[side] // n, out[side] % n)
    free = is_free(work.room, into[0] // n, into[0] % n)
    for side in range(2):
        if out[side] != NONE:
            put_back(work.room)
    return free


@part
def _sift(order: Ints, change: Floats, size: int, k: int) -> None:
    """Move the exchange at place ``k`` of a heap down to where it belongs: the best on top, of equals the first.

    A stable `argsort` would do, but takes longer to compile than anything else here.
    """
    moved = order[k]
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and _is_before(change, order[child + 1], order[child]):
            child += 1
        if not _is_before(change, order[child], moved):
            break
        order[k] = order[child]
        k = child
    order[k] = moved


@small_part
def _is_before(change: Floats, first: int, second: int) -> bool:
    return change[first] < change[second] or (change[first] == change[second] and first < second)


@compiled
def swap_pass(data: Data, work: Work, spare: Saved, trace: Trace, effort: Floats, limit: float) -> int:
    """Try the promising exchanges once, best first; how many lowered the objective, or -1 for want of room.

    ``spare`` has room for a second plan, to come back to.
    """
    refresh(data, work)
    room = (data.tuning.swap_width + 1) * work.factor.size[0] + 4 * (data.base_r.size + data.base_c.size)
    if _is_wide(data, work):
        room += data.base_r.size * data.base_c.size * work.factor.size[0]
    found = Exchanges(
        np.empty((room, 2), np.int64), np.empty((room, 2), np.int64), np.empty(room), np.zeros(1, np.int64)
    )
    _collect(data, work, found, effort, limit)
    accepted, promising, order = 0, found.size[0], np.empty(found.size[0], np.int64)
    for k in range(promising):
        order[k] = k
    for k in range(promising // 2 - 1, -1, -1):
        _sift(order, found.change, promising, k)
    while promising > 0 and effort[0] <= limit and trace.steps[0] < trace.gain.size:
        best, promising = order[0], promising - 1
        order[0] = order[promising]
        _sift(order, found.change, promising, 0)
        if not _is_current(work.factor, data.base_c.size, found.out[best], found.into[best]):
            continue
        if work.room.oracle[0] != 0 and not _is_allowed(data, work, found.out[best], found.into[best]):
            effort[0] += questions(work.room)
            continue
        steps, departures = trace.steps[0], trace.steps[1]
        save(work, spare)
        verdict = _try(data, work, found.out[best], found.into[best], trace, effort, limit)
        if verdict == BETTER:
            accepted += 1
            continue
        restore(spare, work)
        trace.steps[0], trace.steps[1] = steps, departures
        if verdict == NEEDS_ROOM:
            return -1
    return accepted
