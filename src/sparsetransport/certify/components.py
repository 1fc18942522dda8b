r"""The cheapest partition of the points into as many parts as a budget leaves: for few points, with `Delta` kernels.

A plan with K links leaves at least :math:`c = m + n - K` connected parts, so its objective is at least that of the best
partition of the points into c parts, each with its own unbudgeted optimum :math:`f(S)`. With no ``reg`` and a budget of
the whole plan alone the two are equal: links of an optimum make no cycle. The linear relaxation over all
:math:`2^{m+n}` parts is solved by column generation. Parts whose reduced cost is above the gap that is left are in no
better partition, and an integer programme over the others closes the gap.

A part costs at least :math:`\sum_v p_v + w(S)^2 / 2g(S)` for any potentials with :math:`\alpha\oplus\beta\le C`, the
terms of the dual and the best shift of its potentials; :math:`f(S)` itself is computed where that is not enough.
"""

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from ..effort import ByParts
from ..problem import Problem
from . import parts as subsets
from .rounding import below

_CLOSE = 1e-11  # of the objective: reduced costs that count as zero
_SCALE = 1e3  # of the gap in the integer programme, whose solver has absolute tolerances
_SURE = 1e-7  # of the gap: what these tolerances may leave out


class Parts(NamedTuple):
    """All parts of the points, rows first: bit k of a part is set if point k is in it."""

    cost: Floats  # (m, n)
    wanted: Floats  # (m + n,)
    weights: Floats  # (2,)
    reg: float
    value: Floats  # (2^points,) f, or a lower bound of it
    is_exact: NDArray[np.bool_]  # (2^points,)


def all_parts(problem: Problem, alpha: Floats, beta: Floats) -> Parts:
    """Lower bounds of all parts, from potentials with ``α + β <= C``."""
    (m, n), (weight_a, weight_b) = problem.shape, problem.unbalanced
    give = np.repeat([0.5 / weight_a, 0.5 / weight_b], [m, n])
    wanted, potential = np.concatenate([problem.a, problem.b]), np.concatenate([alpha, beta])
    linear = potential * wanted - 0.5 * give * potential**2
    value, is_exact = np.empty(1 << (m + n)), np.zeros(1 << (m + n), bool)
    alone = wanted**2 * np.repeat(problem.unbalanced, [m, n])
    sides = np.repeat([1.0, -1.0], [m, n])
    subsets.fill(linear, sides * (wanted - give * potential), give, alone, m, value)
    size = float(np.abs(linear).sum() + alone.sum() + np.abs(potential).max() * wanted.sum())
    value[:] = below(value, size, 2 * (m + n))
    subsets.one_sided(value, is_exact, m)
    cost = np.ascontiguousarray(problem.cost.rows(0, m))
    return Parts(cost, wanted, np.array(problem.unbalanced), problem.reg, value, is_exact)


def links_of(parts: Parts, k: int) -> tuple[Ints, Ints, Floats]:
    """The links of the optimum of a part."""
    points = len(parts.wanted)
    pairs, mass, found = np.empty((2, points**2), np.int64), np.empty(points**2), np.zeros(1, np.int64)
    subsets.optimum(parts.cost, parts.wanted, parts.weights, parts.reg, k, pairs, mass, found)
    size = int(found[0])
    return pairs[0, :size].copy(), pairs[1, :size].copy(), mass[:size].copy()


def partition(
    parts: Parts, count: int, value: float, gap: float, how: ByParts, deadline: float = np.inf
) -> tuple[float, list[int]]:
    """A lower bound of all partitions into ``count`` parts, and the parts of the best one, if they were found.

    ``value`` is the objective of a plan; a bound within ``gap`` of it is enough.
    """
    points = len(parts.wanted)
    m = parts.cost.shape[0]
    held = [1 << v for v in range(points)] + [1 << i | 1 << v for i in range(m) for v in range(m, points)]
    held = list(dict.fromkeys([*held, (1 << points) - 1]))
    _make_exact(parts, np.array(held))
    bound, best, is_centred, inside = -np.inf, np.zeros(points + 1), False, set(held)
    columns = min(how.columns, len(parts.value) - 1)
    least, reduced = np.zeros(columns, np.int64), np.zeros(columns)
    for _ in range(how.rounds):
        duals = _master(parts, held, count)
        if is_centred:  # half way to the best prices so far: they swing less
            duals = 0.5 * (best + duals)
        subsets.price(*parts, duals[:-1], least, reduced)
        red = reduced - duals[-1]
        lower = _told(duals, count, float(red[0]), value)
        helps = red < -_CLOSE * abs(value)
        fresh = [k for k in least[helps].tolist() if k not in inside]
        if lower > bound:
            bound, best = lower, duals
        if value - bound <= gap or time.monotonic() > deadline or not (fresh or is_centred):
            break
        is_centred = bool(fresh)
        held += fresh
        inside.update(fresh)
    if value - bound <= gap or time.monotonic() > deadline:
        return bound, []
    return _closed(parts, count, best, bound, value, deadline, how)


def _told(duals: Floats, count: int, least: float, value: float) -> float:
    """The bound of dual prices of points and of the number of parts."""
    raw = float(duals[:-1].sum()) + count * (float(duals[-1]) + min(least, 0.0))
    return below(raw, float(np.abs(duals[:-1]).sum()) + count * abs(float(duals[-1])) + abs(value), 4 * len(duals))


def _make_exact(parts: Parts, which: Ints) -> None:
    points = len(parts.wanted)
    pairs, mass, found = np.empty((2, points**2), np.int64), np.empty(points**2), np.zeros(1, np.int64)
    for k in which[~parts.is_exact[which]].tolist():
        lower = subsets.optimum(parts.cost, parts.wanted, parts.weights, parts.reg, k, pairs, mass, found)
        parts.value[k] = max(parts.value[k], lower)
        parts.is_exact[k] = True


def _matrix(points: int, held: Ints) -> NDArray[np.float64]:
    return ((held[None, :] >> np.arange(points)[:, None]) & 1).astype(np.float64)


def _master(parts: Parts, held: list[int], count: int) -> Floats:
    """The prices of the points and of the number of parts in the linear programme over these parts."""
    from scipy.optimize import linprog

    which = np.array(held)
    rows = np.vstack([_matrix(len(parts.wanted), which), np.ones(len(which))])
    right = np.append(np.ones(len(rows) - 1), float(count))
    scale = float(np.abs(parts.value[which]).max()) or 1.0  # the solver has absolute tolerances
    solved = linprog(parts.value[which] / scale, A_eq=rows, b_eq=right, method="highs-ds")
    return np.asarray(solved.eqlin.marginals * scale)


def _closed(
    parts: Parts, count: int, duals: Floats, bound: float, value: float, deadline: float, how: ByParts
) -> tuple[float, list[int]]:
    """The integer programme over all parts whose reduced cost does not rule them out."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    points, gap = len(parts.wanted), value - bound
    sums = _subset_sums(duals[:-1]) + duals[-1]
    while True:
        which = np.flatnonzero(parts.value - sums <= gap * (1.0 + 1e-9))
        which = which[which > 0]
        if len(which) > how.programme:
            return bound, []
        if parts.is_exact[which].all():
            break
        _make_exact(parts, which)
    most = bound + (1.0 - _SURE) * gap
    if not len(which):
        return most, []
    reduced = parts.value[which] - sums[which]
    least = min(float(reduced.min()), 0.0)
    rows = np.vstack([_matrix(points, which), np.ones(len(which))])
    right = np.append(np.ones(points), float(count))
    seconds = min(max(deadline - time.monotonic(), 0.1), 1e6)
    solved = milp(
        _SCALE * (reduced - least) / gap,
        constraints=LinearConstraint(rows, right, right),
        integrality=np.ones(len(which), np.int64),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0, "time_limit": seconds},
    )
    if solved.status == 2:  # none of them makes a partition: there is no better one
        return most, []
    share = 1.0 if solved.mip_dual_bound is None else solved.mip_dual_bound / _SCALE
    lower = max(bound, min(most, _told(duals, count, least, value) + (share - _SURE) * gap))
    if solved.x is None:
        return lower, []
    chosen = which[solved.x > 0.5].tolist()
    found = float(parts.value[chosen].sum())
    if bound < found < value - _SURE * gap:  # a smaller gap, of which less is left out
        again, _ = _closed(parts, count, duals, bound, found, deadline, how)
        lower = max(lower, again)
    return lower, chosen


def _subset_sums(each: Floats) -> Floats:
    """The sum over every part."""
    sums = np.zeros(1)
    for one in each:
        sums = np.concatenate([sums, sums + one])
    return sums
