"""One support for many scenarios, in machine code: the masses of one scenario, and the scan over all pairs.

``Group`` is the scenarios that have everything but their masses in common, with their states one after the other;
``Scenario`` is one of them; ``Support`` is what all of them share. A scenario keeps the factor of its own positive
entries, so links without mass in it cost it nothing. Kernels touch some scenarios or one block of rows at a time, so
that threads may take different ones and the answer does not depend on which takes what.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel, small_kernel
from ..geometry._entries import (
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
)
from ..inner.active_set import SOLVED, Factor, copy_factor, drop, gain, new_factor, push
from .capacity import count, is_free

FULL, OPTIMAL, NEEDS_ROOM, PAUSED, UNBOUNDED, NEEDS_LINKS = 0, 1, 2, 3, 4, 5
BLOCK = 64  # rows of scores that exist at one time
DEPTH = 4  # pairs a row that a scan keeps for the pool


class Group(NamedTuple):
    """``g`` scenarios with the same cost, kernels and weights of the marginals, and the state of their plans."""

    cost: Cost
    gram_a: Gram
    gram_b: Gram
    reg: float
    members: Ints  # (g,) their places among all scenarios
    base_r: Floats  # (g, m) r of the empty plan
    base_c: Floats  # (g, n)
    tol: Floats  # (g,) a gradient above -tol counts as zero
    factors: Factor  # every part with one more dimension in front, of length g
    sums_a: Floats  # (g, m) row sums of the plans
    sums_b: Floats  # (g, n)
    active: Ints  # (g, 2, max(m, n)) scratch: rows and columns with mass


class Scenario(NamedTuple):
    """One scenario of a group: views of its arrays; ``r`` and ``c`` are the fields of its present plan."""

    cost: Cost
    gram_a: Gram
    gram_b: Gram
    base_r: Floats
    base_c: Floats
    reg: float
    tol: float
    factor: Factor
    r: Floats
    c: Floats
    sums_a: Floats
    sums_b: Floats
    active: Ints


@small_kernel
def _factor(group: Group, k: int) -> Factor:
    every = group.factors
    return Factor(
        every.upper[k],
        every.target[k],
        every.mass[k],
        every.label[k],
        every.size[k],
        every.gone[k],
        every.coupling[k],
        every.scratch[k],
    )


@small_kernel
def _scenario(group: Group, k: int, r: Floats, c: Floats) -> Scenario:
    """The scenario number ``k`` of a group; ``r`` (z, m) and ``c`` (z, n) are the fields of all scenarios."""
    s = group.members[k]
    return Scenario(
        group.cost,
        group.gram_a,
        group.gram_b,
        group.base_r[k],
        group.base_c[k],
        group.reg,
        group.tol[k],
        _factor(group, k),
        r[s],
        c[s],
        group.sums_a[k],
        group.sums_b[k],
        group.active[k],
    )


def new_factors(count: int, capacity: int) -> Factor:
    """Empty factors of so many scenarios, each with room for ``capacity`` entries."""
    return Factor(*(np.zeros((count, *part.shape), part.dtype) for part in new_factor(capacity)))


def with_more_room(group: Group) -> Group:
    """The same group with twice the room for entries in every plan."""
    larger = group._replace(factors=new_factors(len(group.members), 2 * group.factors.mass.shape[1]))
    _copy(group, larger)
    return larger


@kernel
def _copy(source: Group, destination: Group) -> None:
    for k in range(source.members.size):
        copy_factor(_factor(source, k), _factor(destination, k))


class Support(NamedTuple):
    """Links in order of choice, and by row: ``head[i]`` is the first of row ``i``, ``link[k]`` the next; -1: none."""

    rows: Ints  # (room,)
    cols: Ints  # (room,)
    size: Ints  # (1,)
    head: Ints  # (m,)
    link: Ints  # (room,)


def new_support(room: int, m: int) -> Support:
    """No links, and room for some."""
    empty = np.zeros(room, np.int64)
    return Support(empty, empty.copy(), np.zeros(1, np.int64), np.full(m, -1), empty.copy())


@kernel
def place(support: Support, i: int, j: int) -> int:
    """Where the link stands in the order of choice; -1: it is not there."""
    k = support.head[i]
    while k >= 0 and support.cols[k] != j:
        k = support.link[k]
    return k


@kernel
def append(support: Support, i: int, j: int) -> None:
    """Add a link at the end."""
    k = support.size[0]
    support.rows[k], support.cols[k] = i, j
    support.link[k] = support.head[i]
    support.head[i] = k
    support.size[0] = k + 1


@kernel
def remove(support: Support, position: int) -> None:
    """Take a link out; the others keep their order."""
    size = support.size[0] - 1
    for k in range(position, size):
        support.rows[k], support.cols[k] = support.rows[k + 1], support.cols[k + 1]
    support.size[0] = size
    support.head[:] = -1
    for k in range(size):
        support.link[k] = support.head[support.rows[k]]
        support.head[support.rows[k]] = k


@kernel
def refresh(scenario: Scenario) -> None:
    """Row and column sums, ``r`` and ``c`` of the present plan."""
    factor, sums_a, sums_b, active = scenario.factor, scenario.sums_a, scenario.sums_b, scenario.active
    sums_a[:] = 0.0
    sums_b[:] = 0.0
    count_a = count_b = 0
    for t in range(factor.size[0]):
        i, j, mass = factor.label[0, t], factor.label[1, t], factor.mass[t]
        if sums_a[i] == 0.0:
            active[0][count_a] = i
            count_a += 1
        if sums_b[j] == 0.0:
            active[1][count_b] = j
            count_b += 1
        sums_a[i] += mass
        sums_b[j] += mass
    potential(scenario.gram_a, scenario.base_r, sums_a, active[0], count_a, scenario.r)
    potential(scenario.gram_b, scenario.base_c, sums_b, active[1], count_b, scenario.c)


@kernel
def _couple(scenario: Scenario, i: int, j: int) -> None:
    """Put the Hessian between the pair and the positive entries into ``factor.coupling``."""
    factor = scenario.factor
    for t in range(factor.size[0]):
        factor.coupling[t] = gram_entry(scenario.gram_a, i, factor.label[0, t]) + gram_entry(
            scenario.gram_b, j, factor.label[1, t]
        )


@small_kernel
def _diagonal(scenario: Scenario, i: int, j: int) -> float:
    return gram_diagonal(scenario.gram_a, i) + gram_diagonal(scenario.gram_b, j) + scenario.reg


@kernel
def _masses(scenario: Scenario, support: Support, mass: Floats) -> None:
    """The mass of every link into ``mass``."""
    factor = scenario.factor
    mass[:] = 0.0
    for t in range(factor.size[0]):
        mass[place(support, factor.label[0, t], factor.label[1, t])] = factor.mass[t]


@kernel
def _solve(scenario: Scenario, support: Support, mass: Floats) -> int:
    """The optimal masses on the whole support, written to ``mass``; ``r`` and ``c`` are those of this plan.

    Links without mass and with a negative gradient enter, the steepest first, until there is none.
    """
    factor = scenario.factor
    while True:
        refresh(scenario)
        _masses(scenario, support, mass)
        steepest, entering = -scenario.tol, -1
        for k in range(support.size[0]):
            if mass[k] > 0.0:
                continue
            i, j = support.rows[k], support.cols[k]
            gradient = cost_entry(scenario.cost, i, j) + scenario.r[i] + scenario.c[j]
            if gradient < steepest:
                steepest, entering = gradient, k
        if entering < 0:
            return SOLVED
        i, j = support.rows[entering], support.cols[entering]
        if factor.size[0] == factor.mass.size:
            return NEEDS_ROOM
        before = gain(factor)
        _couple(scenario, i, j)
        slope = cost_entry(scenario.cost, i, j) + scenario.base_r[i] + scenario.base_c[j]
        factor.size[1] = 0
        if push(factor, i, j, _diagonal(scenario, i, j), slope) != SOLVED:
            return UNBOUNDED
        if gain(factor) <= before:  # only rounding is left to gain
            refresh(scenario)
            _masses(scenario, support, mass)
            return SOLVED


@kernel
def solve(
    group: Group, support: Support, r: Floats, c: Floats, mass: Floats, gains: Floats, first: int, last: int
) -> int:
    """Solve the scenarios ``first`` to ``last`` of a group; ``mass`` (z, room) and ``gains`` (z,) are of all scenarios.

    The columns of lazy Gram matrices that the support needs must be there: scenarios share them.
    """
    for k in range(first, last):
        scenario = _scenario(group, k, r, c)
        code = _solve(scenario, support, mass[group.members[k]])
        if code != SOLVED:
            return code
        gains[group.members[k]] = gain(scenario.factor)
    return SOLVED


@kernel
def prepare(group: Group, i: int, j: int) -> bool:
    """Make sure that the columns of the Gram matrices of a new link are there; False if there is no room."""
    return fetch(group.gram_a, i) and fetch(group.gram_b, j)


@kernel
def forget(group: Group, i: int, j: int) -> None:
    """Take a link that leaves the support out of all plans; ``solve`` is to follow."""
    for k in range(group.members.size):
        factor = _factor(group, k)
        for t in range(factor.size[0]):
            if factor.label[0, t] == i and factor.label[1, t] == j:
                factor.size[1] = 0
                drop(factor, t)
                break


@kernel
def losses(group: Group, support: Support, weights: Floats, loss: Floats) -> None:
    """Add to ``loss`` what dropping each link alone costs: the sum of ``w x^2 / (2 M_tt)``, with ``M = H^-1``."""
    for k in range(group.members.size):
        _losses(_factor(group, k), support, weights[group.members[k]], loss)


@kernel
def _losses(factor: Factor, support: Support, weight: float, loss: Floats) -> None:
    size, column = factor.size[0], factor.scratch[2]
    for position in range(size):
        for t in range(position, size):
            column[t] = 0.0
        column[position] = 1.0
        inverse = 0.0
        for j in range(position, size):  # M_tt is the squared norm of L^-1 e_t
            if column[j] == 0.0:
                continue
            row = factor.upper[j]
            value = column[j] / row[j]
            inverse += value * value
            for i in range(j + 1, size):
                column[i] -= value * row[i]
        k = place(support, factor.label[0, position], factor.label[1, position])
        loss[k] += weight * factor.mass[position] ** 2 / (2.0 * inverse)


@small_kernel
def _square(value: float, weight: float, tol: float) -> float:
    value = value if value < -tol else 0.0
    return weight * value * value


@kernel
def _add_squares(line: Floats, row: Floats, shift: float, c: Floats, weight: float, tol: float) -> None:
    """``line += weight max(0, -(row + shift + c))^2``; a loop of its own, since only so it vectorises."""
    for j in range(line.size):
        line[j] += _square(row[j] + shift + c[j], weight, tol)


@kernel
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


@kernel
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


@kernel
def mask(score: Floats, first: int, support: Support, left: Ints, labels: NDArray[np.int32]) -> None:
    """Zero where a pair is in the support or has no capacity left."""
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
                if score[i, j] > 0.0 and not is_free(left, labels, row, j):
                    score[i, j] = 0.0


@kernel
def best_pair(
    group: Group, support: Support, r: Floats, c: Floats, weights: Floats, left: Ints, labels: NDArray[np.int32]
) -> tuple[float, int, int]:
    """The free pair with the largest score, if all scenarios are of one group; ties: the first row, then column."""
    m, n = labels.shape[1], labels.shape[2]
    score = np.empty((min(BLOCK, m), n))
    best, row, column = 0.0, -1, -1
    for first in range(0, m, BLOCK):
        block = score[: min(BLOCK, m - first)]
        block[:] = 0.0
        accumulate(block, group, first, weights, r, c)
        mask(block, first, support, left, labels)
        for i in range(block.shape[0]):
            line = block[i]
            for j in range(n):
                if line[j] > best:
                    best, row, column = line[j], first + i, j
    return best, row, column


class Trace(NamedTuple):
    """What `grow` did: pair, value ``sum_s w_s gain_s`` and links after every step, and the links that went."""

    added: Ints  # (steps, 2)
    value: Floats  # (steps,)
    links: Ints  # (steps,)
    gone: Ints  # (departures, 2)
    gone_until: Ints  # (steps,)
    steps: Ints  # (2,) steps, departures


@kernel
def reclaim(support: Support, mass: Floats, left: Ints, labels: NDArray[np.int32], fixed: int, trace: Trace) -> None:
    """Drop the links after the first ``fixed`` that have mass in no scenario."""
    for k in range(support.size[0] - 1, fixed - 1, -1):
        used = False
        for s in range(mass.shape[0]):
            used = used or mass[s, k] > 0.0
        if used:
            continue
        i, j, size = support.rows[k], support.cols[k], support.size[0]
        trace.gone[trace.steps[1], 0], trace.gone[trace.steps[1], 1] = i, j
        trace.steps[1] += 1
        remove(support, k)
        count(left, labels, i, j, 1)
        for s in range(mass.shape[0]):
            for t in range(k, size - 1):
                mass[s, t] = mass[s, t + 1]


@kernel
def grow(
    group: Group,
    support: Support,
    r: Floats,
    c: Floats,
    mass: Floats,
    gains: Floats,
    weights: Floats,
    left: Ints,
    labels: NDArray[np.int32],
    fixed: int,
    trace: Trace,
    progress: Floats,
) -> int:
    """The whole loop for scenarios of one group, without threads: pick, solve, reclaim, until nothing helps or is free.

    ``progress`` holds the best value so far and the steps since it was reached. `NEEDS_LINKS` comes before a link is
    added, for more room for links; `NEEDS_ROOM` after, for more room in the factors: that step is the caller's to end.
    """
    while True:
        if left[0] <= 0:
            return FULL
        if trace.steps[0] == trace.value.size:
            return PAUSED
        if support.size[0] == support.rows.size:
            return NEEDS_LINKS
        _, i, j = best_pair(group, support, r, c, weights, left, labels)
        if i < 0:
            return OPTIMAL
        if not prepare(group, i, j):
            return NEEDS_LINKS
        append(support, i, j)
        count(left, labels, i, j, -1)
        code = solve(group, support, r, c, mass, gains, 0, group.members.size)
        if code != SOLVED:
            return code
        note(support, mass, gains, weights, left, labels, fixed, trace)
        if stalls(progress, trace.value[trace.steps[0] - 1]):
            return OPTIMAL


@kernel
def note(
    support: Support,
    mass: Floats,
    gains: Floats,
    weights: Floats,
    left: Ints,
    labels: NDArray[np.int32],
    fixed: int,
    trace: Trace,
) -> None:
    """Write the step that added the last link down, and reclaim."""
    step, last = trace.steps[0], support.size[0] - 1
    trace.added[step, 0], trace.added[step, 1] = support.rows[last], support.cols[last]
    reclaim(support, mass, left, labels, fixed, trace)
    value = 0.0
    for s in range(gains.size):
        value += weights[s] * gains[s]
    trace.value[step] = value
    trace.links[step] = support.size[0]
    trace.gone_until[step] = trace.steps[1]
    trace.steps[0] = step + 1


@kernel
def stalls(progress: Floats, reached: float) -> bool:
    """Has nothing but rounding been gained for a while?"""
    if reached > progress[0] + 1e-13 * abs(progress[0]):
        progress[0], progress[1] = reached, 0.0
    else:
        progress[1] += 1.0
    return progress[1] > 8.0


@kernel
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


@kernel
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


@kernel
def available(rows: Ints, cols: Ints, support: Support, left: Ints, labels: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which of some pairs are off the support and have capacity left."""
    free = np.zeros(rows.size, np.bool_)
    for k in range(rows.size):
        free[k] = place(support, rows[k], cols[k]) < 0 and is_free(left, labels, rows[k], cols[k])
    return free
