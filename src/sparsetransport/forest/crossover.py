r"""From a plan with cycles to one on a forest, with the best masses on it: at most m + n - 1 links.

Around a cycle of links mass can be moved without a change of any sum, in one of the two directions at no cost, until
one of its links is empty. Where links come in the order of their points, cycles are short.

The masses of a forest follow from its potentials by elimination (see `trees`): with :math:`\alpha_i + \beta_j = C_{ij}`
on all links one unknown is left a tree, and masses are found from the leaves inwards. Where some are negative, their
links are cut; where a link that was cut wants to be back, it comes back; a few rounds settle that, each in one pass.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.compiling import compiled, part
from ..problem import Problem

Flags = NDArray[np.bool_]
_LEAST = 1e-13  # of the objective: what the return of links must bring


@by_address
class Links(NamedTuple):
    """Links between points, which are numbered rows first."""

    ends: Ints  # (2, links)
    cost: Floats
    mass: Floats


class Planted(NamedTuple):
    """A forest whose masses are the best that it can have."""

    rows: Ints
    cols: Ints
    mass: Floats
    alpha: Floats  # potentials; of a point without links, what its mass is worth
    beta: Floats
    value: float


def on_forest(problem: Problem, rows: Ints, cols: Ints, mass: Floats) -> Planted:
    """The best masses on some of these links: where there are cycles, one link of each is left without mass.

    Links come in turn: it is fast if those of points near each other follow one another.
    """
    m = problem.shape[0]
    links = Links(np.stack([rows, m + cols]), problem.cost.entries(rows, cols), mass.astype(np.float64))
    kept = np.zeros(links.mass.size, np.bool_)
    cancel_cycles(sum(problem.shape), links, kept)
    return best_masses(problem, links.ends[0, kept], links.ends[1, kept] - m, links.cost[kept])


def best_masses(problem: Problem, rows: Ints, cols: Ints, cost: Floats) -> Planted:
    """The best masses on links without cycles."""
    m, points = problem.shape[0], sum(problem.shape)
    wanted = np.concatenate([problem.a, problem.b])
    give = np.repeat(np.divide(0.5, problem.unbalanced), problem.shape)
    links = Links(np.stack([rows, m + cols]), cost, np.zeros(rows.size))
    order, up = np.empty(points, np.int64), np.full(points, -1)
    hang(links, order, up)
    on, potential = np.ones(rows.size, np.bool_), np.empty(points)
    best: Planted | None = None
    while True:
        eliminate(m, links, order, up, on, wanted, give, potential)
        negative = on & (links.mass < 0.0)
        if negative.any():
            on &= ~negative
            continue
        value = float(potential @ (wanted - 0.5 * give * potential))
        if best is not None and not value < best.value - _LEAST * abs(best.value):
            return best
        best = Planted(rows[on], cols[on], links.mass[on], potential[:m].copy(), potential[m:].copy(), value)
        back = ~on & (potential[links.ends[0]] + potential[links.ends[1]] > cost)
        if not back.any():
            return best
        on |= back


@compiled
def hang(links: Links, order: Ints, up: Ints) -> None:
    """All points, each after the one that it hangs on, and the links that they hang on; -1: on none."""
    points, count = order.size, links.mass.size
    first, at = np.zeros(points + 1, np.int64), np.empty(2 * count, np.int64)
    for e in range(count):
        first[links.ends[0, e] + 1] += 1
        first[links.ends[1, e] + 1] += 1
    for point in range(points):
        first[point + 1] += first[point]
    free = first[:-1].copy()
    for e in range(count):
        for side in range(2):
            point = links.ends[side, e]
            at[free[point]] = e
            free[point] += 1
    seen, size, looked = np.zeros(points, np.bool_), 0, 0
    for root in range(points):
        if seen[root]:
            continue
        order[size], seen[root], up[root] = root, True, -1
        size += 1
        while looked < size:
            point = order[looked]
            looked += 1
            for k in range(first[point], first[point + 1]):
                other = links.ends[0, at[k]] + links.ends[1, at[k]] - point
                if not seen[other]:
                    order[size], seen[other], up[other] = other, True, at[k]
                    size += 1


@compiled
def eliminate(
    rows: int, links: Links, order: Ints, up: Ints, on: Flags, wanted: Floats, give: Floats, potential: Floats
) -> None:
    """Stationary masses, of any sign, on the links that are on, and the potentials that go with them."""
    points = order.size
    root, surplus, spread, need = np.empty(points, np.int64), np.zeros(points), np.zeros(points), np.empty(points)
    for k in range(points):
        point, link = order[k], up[order[k]]
        if link >= 0 and on[link]:
            towards = links.ends[0, link] + links.ends[1, link] - point
            root[point], potential[point] = root[towards], links.cost[link] - potential[towards]
        else:
            root[point], potential[point] = point, 0.0
        lack = wanted[point] - potential[point] * give[point]
        surplus[root[point]] += lack if point < rows else -lack
        spread[root[point]] += give[point]
    for point in range(points):
        shift = surplus[root[point]] / spread[root[point]]
        potential[point] += shift if point < rows else -shift
        need[point] = wanted[point] - potential[point] * give[point]
    for k in range(points - 1, -1, -1):
        point, link = order[k], up[order[k]]
        if link >= 0 and on[link]:
            links.mass[link] = need[point]
            need[links.ends[0, link] + links.ends[1, link] - point] -= need[point]


@compiled
def cancel_cycles(points: int, links: Links, kept: Flags) -> int:
    """Move mass around every cycle that a link closes with those before it, until none is left; the steps it took."""
    above, way = np.full(points, -1), np.full(points, -1)  # the point and the link towards the root
    joined, seen = np.arange(points), np.zeros(points, np.int64)
    steps = 0
    for e in range(links.mass.size):
        near, far = links.ends[0, e], links.ends[1, e]
        first, second = _representative(joined, near), _representative(joined, far)
        if first != second:
            steps += _hang_on(above, way, near, far, e)
            joined[first] = second
            kept[e] = True
            continue
        top = _meeting(above, seen, near, far, 2 * e + 1)
        gain, count = links.cost[e], 0
        for side in range(2):
            point, sign = near if side == 0 else far, -1.0
            while point != top:
                gain += sign * links.cost[way[point]]
                sign, point, count = -sign, above[point], count + 1
        steps += count
        grows = gain <= 0.0  # the new link; the others on the cycle in turn
        least, leaver, leaving_side = (np.inf, -1, 0) if grows else (links.mass[e], -1, 0)
        for side in range(2):
            point, shrinks = near if side == 0 else far, grows
            while point != top:
                if shrinks and links.mass[way[point]] < least:
                    least, leaver, leaving_side = links.mass[way[point]], point, side
                shrinks, point = not shrinks, above[point]
        links.mass[e] += least if grows else -least
        for side in range(2):
            point, change = near if side == 0 else far, -least if grows else least
            while point != top:
                links.mass[way[point]] += change
                change, point = -change, above[point]
        if leaver < 0:
            links.mass[e] = 0.0
            continue
        links.mass[way[leaver]], kept[way[leaver]], kept[e] = 0.0, False, True
        above[leaver], way[leaver] = -1, -1
        if leaving_side == 0:
            _turn(above, way, near, far, e)
        else:
            _turn(above, way, far, near, e)
    return steps


@part
def _representative(joined: Ints, point: int) -> int:
    """The point that stands for all of a tree."""
    while joined[point] != point:
        joined[point] = joined[joined[point]]
        point = joined[point]
    return point


@part
def _meeting(above: Ints, seen: Ints, near: int, far: int, mark: int) -> int:
    """Where the ways of two points of a tree to the root meet."""
    seen[near], seen[far] = mark, mark + 1
    if near == far:
        return near
    while True:
        if near >= 0:
            near = above[near]
            if near >= 0:
                if seen[near] == mark + 1:
                    return near
                seen[near] = mark
        if far >= 0:
            far = above[far]
            if far >= 0:
                if seen[far] == mark:
                    return far
                seen[far] = mark + 1


@part
def _hang_on(above: Ints, way: Ints, near: int, far: int, link: int) -> int:
    """Join two trees, by turning round the shorter way to a root; its length."""
    first, second, steps = near, far, 1
    while above[first] >= 0 and above[second] >= 0:
        first, second, steps = above[first], above[second], steps + 1
    if above[first] < 0:
        _turn(above, way, near, far, link)
    else:
        _turn(above, way, far, near, link)
    return steps


@part
def _turn(above: Ints, way: Ints, point: int, onto: int, link: int) -> None:
    """Hang a point, and all on its way to the root, the other way round, on another point."""
    while point >= 0:
        following, old = above[point], way[point]
        above[point], way[point] = onto, link
        onto, link, point = point, old, following
