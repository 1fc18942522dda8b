"""One support for many scenarios, compiled: the scan over all pairs, and the whole loop where one thread does.

The score of a pair is the sum over scenarios of ``w_s max(0, -gradient_s)^2``. Kernels take one block of rows at a
time, so that threads may take different ones and the answer does not depend on which takes what; no array of pairs
times scenarios ever exists.
"""

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from .._numba.codes import BUDGET_USED, LOCAL, NEEDS_LINKS, PAUSED, SOLVED
from .._numba.compiling import compiled, part, small_part
from ..geometry._entries import cost_block, cost_entry
from ..plan import Trace
from .room import Room, count, has_capacity, is_free
from .shared_plans import Group, Support, append, place, prepare, remove, solve
from .state import stalls

BLOCK = 64  # rows of scores that exist at one time


@small_part
def _square(value: float, weight: float, tol: float) -> float:
    value = value if value < -tol else 0.0
    return weight * value * value


@part
def _add_squares(line: Floats, row: Floats, shift: float, c: Floats, weight: float, tol: float) -> None:
    """``line += weight max(0, -(row + shift + c))^2``; a loop of its own, since only so it vectorises."""
    for j in range(line.size):
        line[j] += _square(row[j] + shift + c[j], weight, tol)


@part
def _add_four(line: Floats, row: Floats, shift: Floats, c: Floats, weight: Floats, tol: Floats) -> None:
    """The same for four scenarios at once, so that ``line`` and ``row`` are read a quarter as often."""
    c0, c1, c2, c3 = c[0], c[1], c[2], c[3]
    s0, s1, s2, s3 = shift[0], shift[1], shift[2], shift[3]
    w0, w1, w2, w3 = weight[0], weight[1], weight[2], weight[3]
    t0, t1, t2, t3 = tol[0], tol[1], tol[2], tol[3]
    for j in range(line.size):
        cost = row[j]
        first = _square(cost + s0 + c0[j], w0, t0) + _square(cost + s1 + c1[j], w1, t1)
        line[j] += first + _square(cost + s2 + c2[j], w2, t2) + _square(cost + s3 + c3[j], w3, t3)


@compiled
def accumulate(score: Floats, group: Group, first: int, weights: Floats, r: Floats, c: Floats) -> None:
    """Add the squares of a group's scenarios to the scores (rows, n) of the rows from ``first`` on."""
    block = cost_block(group.cost, first, first + score.shape[0])
    members, tol = group.members, group.tol
    whole = members[members.size - 1] - members[0] + 1 == members.size  # one after the other, as slices need them
    for i in range(score.shape[0]):
        k = 0
        while whole and k + 4 <= members.size:
            s = members[k]
            some = slice(s, s + 4)
            _add_four(score[i], block[i], r[some, first + i], c[some], weights[some], tol[k : k + 4])
            k += 4
        for rest in range(k, members.size):
            s = members[rest]
            _add_squares(score[i], block[i], r[s, first + i], c[s], weights[s], tol[rest])


@compiled
def mask(score: Floats, first: int, support: Support, room: Room) -> None:
    """Zero where a pair is in the support or has no capacity left."""
    left, labels = room.left, room.labels
    m, n = labels.shape[1], labels.shape[2]
    for i in range(score.shape[0]):
        row = first + i
        if left[1 + row] <= 0:
            score[i] = 0.0
            continue
        k = support.head[row]
        while k >= 0:
            score[i, support.cols[k]] = 0.0
            k = support.link[k]
        for j in range(n):
            if left[1 + m + j] <= 0:
                score[i, j] = 0.0
        if labels.shape[0] > 0:
            for j in range(n):
                if score[i, j] > 0.0 and not has_capacity(room, row, j):
                    score[i, j] = 0.0


@part
def best_pair(
    group: Group, support: Support, r: Floats, c: Floats, weights: Floats, room: Room
) -> tuple[float, int, int]:
    """The free pair with the largest score, if all scenarios are of one group; ties: the first row, then column."""
    m, n = room.labels.shape[1], room.labels.shape[2]
    score = np.empty((min(BLOCK, m), n))
    best, row, column = 0.0, -1, -1
    for first in range(0, m, BLOCK):
        block = score[: min(BLOCK, m - first)]
        block[:] = 0.0
        accumulate(block, group, first, weights, r, c)
        mask(block, first, support, room)
        for i in range(block.shape[0]):
            line = block[i]
            for j in range(n):
                if line[j] > best:
                    best, row, column = line[j], first + i, j
    return best, row, column


@compiled
def reclaim(support: Support, mass: Floats, room: Room, fixed: int, trace: Trace) -> None:
    """Drop the links after the first ``fixed`` that have mass in no scenario."""
    for k in range(support.size[0] - 1, fixed - 1, -1):
        used = False
        for s in range(mass.shape[0]):
            used = used or mass[s, k] > 0.0
        if used:
            continue
        i, j, size = support.rows[k], support.cols[k], support.size[0]
        trace.gone[0, trace.steps[1]], trace.gone[1, trace.steps[1]] = i, j
        trace.steps[1] += 1
        remove(support, k)
        count(room, i, j, 1)
        for s in range(mass.shape[0]):
            for t in range(k, size - 1):
                mass[s, t] = mass[s, t + 1]


@compiled
def grow(
    group: Group,
    support: Support,
    r: Floats,
    c: Floats,
    mass: Floats,
    gains: Floats,
    weights: Floats,
    room: Room,
    fixed: int,
    trace: Trace,
    progress: Floats,
    patience: float,
) -> int:
    """The whole loop for scenarios of one group, without threads: pick, solve, reclaim, until nothing helps or is free.

    ``progress`` holds the best value so far and the steps since it was reached. `NEEDS_LINKS` comes before a link is
    added, for more room for links; `NEEDS_ROOM` after, for more room in the factors: that step is the caller's to end.
    """
    while True:
        if room.left[0] <= 0:
            return BUDGET_USED
        if trace.steps[0] == trace.gain.size:
            return PAUSED
        if support.size[0] == support.rows.size:
            return NEEDS_LINKS
        _, i, j = best_pair(group, support, r, c, weights, room)
        if i < 0:
            return LOCAL
        if not is_free(room, i, j):
            continue  # it is remembered as refused
        if not prepare(group, i, j):
            return NEEDS_LINKS
        append(support, i, j)
        count(room, i, j, -1)
        code = solve(group, support, r, c, mass, gains, 0, group.members.size)
        if code != SOLVED:
            return code
        note(support, mass, gains, weights, room, fixed, trace)
        if stalls(progress, trace.gain[trace.steps[0] - 1], patience):
            return LOCAL


@part
def note(
    support: Support,
    mass: Floats,
    gains: Floats,
    weights: Floats,
    room: Room,
    fixed: int,
    trace: Trace,
) -> None:
    """Write the step that added the last link down, and reclaim."""
    step, last = trace.steps[0], support.size[0] - 1
    trace.added[0, step], trace.added[1, step] = support.rows[last], support.cols[last]
    reclaim(support, mass, room, fixed, trace)
    value = 0.0
    for s in range(gains.size):
        value += weights[s] * gains[s]
    trace.gain[step] = value
    trace.entries[step] = support.size[0]
    trace.gone_until[step] = trace.steps[1]
    trace.steps[0] = step + 1


@compiled
def best_of_rows(score: Floats, best: Floats, where: Ints) -> None:
    """The ``best.shape[1]`` largest scores of every row, in falling order, with their columns; ties: the first one."""
    depth = best.shape[1]
    best[:] = 0.0
    where[:] = -1
    for i in range(score.shape[0]):
        line, top, column = score[i], best[i], where[i]
        for j in range(line.size):
            value = line[j]
            if value > top[depth - 1]:
                d = depth - 1
                while d > 0 and value > top[d - 1]:
                    top[d], column[d] = top[d - 1], column[d - 1]
                    d -= 1
                top[d], column[d] = value, j


@compiled
def squares(group: Group, weights: Floats, r: Floats, c: Floats, rows: Ints, cols: Ints, score: Floats) -> None:
    """Add the squares of a group's scenarios to the scores of some pairs."""
    for e in range(rows.size):
        i, j = rows[e], cols[e]
        cost = cost_entry(group.cost, i, j)
        for k in range(group.members.size):
            s = group.members[k]
            value = cost + r[s, i] + c[s, j]
            if value < -group.tol[k]:
                score[e] += weights[s] * value * value


@compiled
def available(rows: Ints, cols: Ints, support: Support, room: Room) -> NDArray[np.bool_]:
    """Which of some pairs are off the support and have capacity left."""
    free = np.zeros(rows.size, np.bool_)
    for k in range(rows.size):
        free[k] = place(support, rows[k], cols[k]) < 0 and is_free(room, rows[k], cols[k])
    return free
