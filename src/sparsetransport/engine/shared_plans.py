"""One support for many scenarios, compiled: the plans of the scenarios on the links that they share.

``Group`` is the scenarios that have everything but their masses in common, with their states one after the other;
``Scenario`` is one of them; ``Support`` is what all of them share. A scenario keeps the factor of its own positive
entries, so links without mass in it cost it nothing.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.codes import NEEDS_ROOM, SOLVED, UNBOUNDED
from .._numba.compiling import compiled, part, small_part
from ..geometry._entries import Cost, Gram, cost_entry, fetch, gram_diagonal, potential
from ..inner import _cholesky
from ..inner.active_set import Factor, copy_factor, drop, gain, new_factor, push
from ..problem import Problem
from .state import couple_arrays


@by_address
class Group(NamedTuple):
    """``g`` scenarios with the same cost, kernels and weights of the marginals, and the state of their plans."""

    cost: Cost
    gram_a: Gram
    gram_b: Gram
    reg: float
    links: Ints  # (2,) rows and columns of links, which ``reg`` counts; what is behind them is slack
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
    links: Ints
    tol: float
    factor: Factor
    r: Floats
    c: Floats
    sums_a: Floats
    sums_b: Floats
    active: Ints


@small_part
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


@small_part
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
        group.links,
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


@compiled
def _copy(source: Group, destination: Group) -> None:
    for k in range(source.members.size):
        copy_factor(_factor(source, k), _factor(destination, k))


def alike(problems: Sequence[Problem]) -> list[list[int]]:
    """Which problems have the same cost, kernels and weights: the same objects, whatever these hold."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for s, problem in enumerate(problems):
        cost = problem.cost.compiled
        key: tuple[Any, ...] = (cost.kind, id(cost.matrix), id(cost.x), id(cost.y), cost.scale)
        key += (problem.unbalanced, problem.reg)
        for gram in (problem.gram_a, problem.gram_b):
            key += (gram.kind, gram.bandwidth) + ((id(gram.stored), id(gram.points)) if not gram.is_delta else ())
        groups.setdefault(key, []).append(s)
    return list(groups.values())


def new_group(problems: Sequence[Problem], members: Sequence[int], tol: float) -> Group:
    """Problems that are alike, with empty plans; matrices are shared, not copied."""
    one, z = problems[0], len(problems)
    m, n = one.shape
    return Group(
        one.cost.compiled,
        one.gram_a.compiled(2.0 * one.unbalanced[0], 64),
        one.gram_b.compiled(2.0 * one.unbalanced[1], 64),
        one.reg,
        np.array(one.counted_shape),
        np.array(members, np.int64),
        np.stack([problem.base[0] for problem in problems]),
        np.stack([problem.base[1] for problem in problems]),
        np.array([tol * problem.scale for problem in problems]),
        new_factors(z, 32),
        np.zeros((z, m)),
        np.zeros((z, n)),
        np.zeros((z, 2, max(m, n)), np.int64),
    )


@by_address
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


@compiled
def place(support: Support, i: int, j: int) -> int:
    """Where the link stands in the order of choice; -1: it is not there."""
    k = support.head[i]
    while k >= 0 and support.cols[k] != j:
        k = support.link[k]
    return k


@compiled
def append(support: Support, i: int, j: int) -> None:
    """Add a link at the end."""
    k = support.size[0]
    support.rows[k], support.cols[k] = i, j
    support.link[k] = support.head[i]
    support.head[i] = k
    support.size[0] = k + 1


@compiled
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


@part
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


@small_part
def _diagonal(scenario: Scenario, i: int, j: int) -> float:
    reg = scenario.reg if i < scenario.links[0] and j < scenario.links[1] else 0.0
    return float(gram_diagonal(scenario.gram_a, i) + gram_diagonal(scenario.gram_b, j) + reg)


@compiled
def _masses(scenario: Scenario, support: Support, mass: Floats) -> None:
    """The mass of every link into ``mass``."""
    factor = scenario.factor
    mass[:] = 0.0
    for t in range(factor.size[0]):
        mass[place(support, factor.label[0, t], factor.label[1, t])] = factor.mass[t]


@part
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
        couple_arrays(scenario.gram_a, scenario.gram_b, factor.label, factor.coupling[: factor.size[0]], i, j)
        slope = cost_entry(scenario.cost, i, j) + scenario.base_r[i] + scenario.base_c[j]
        factor.size[1] = 0
        if push(factor, i, j, _diagonal(scenario, i, j), slope) != SOLVED:
            return UNBOUNDED
        if gain(factor) <= before:  # only rounding is left to gain
            refresh(scenario)
            _masses(scenario, support, mass)
            return SOLVED


@compiled
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


@compiled
def prepare(group: Group, i: int, j: int) -> bool:
    """Make sure that the columns of the Gram matrices of a new link are there; False if there is no room."""
    return fetch(group.gram_a, i) and fetch(group.gram_b, j)


@compiled
def forget(group: Group, i: int, j: int) -> None:
    """Take a link that leaves the support out of all plans; ``solve`` is to follow."""
    for k in range(group.members.size):
        factor = _factor(group, k)
        for t in range(factor.size[0]):
            if factor.label[0, t] == i and factor.label[1, t] == j:
                factor.size[1] = 0
                drop(factor, t)
                break


@compiled
def losses(group: Group, support: Support, weights: Floats, loss: Floats) -> None:
    """Add to ``loss`` what dropping each link alone costs: the sum of ``w x^2 / (2 M_tt)``, with ``M = H^-1``."""
    for k in range(group.members.size):
        factor, weight = _factor(group, k), weights[group.members[k]]
        for t in range(factor.size[0]):
            inverse = _cholesky.inverse_diagonal(factor.upper, factor.size[0], t, factor.scratch[2])
            link = place(support, factor.label[0, t], factor.label[1, t])
            loss[link] += weight * factor.mass[t] ** 2 / (2.0 * inverse)
