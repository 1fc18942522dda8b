r"""The optimum without a budget for delta kernels and no ``reg``, by pivots on a forest, as in network simplex.

Links without a cycle split the points into trees. On a tree all masses are positive only if :math:`\alpha_i + \beta_j =
C_{ij}` on each of its links, where :math:`\alpha_i = 2\lambda_a(a_i - \rho_i)` and :math:`\beta_j = 2\lambda_b(b_j -
\kappa_j)` for row sums :math:`\rho` and column sums :math:`\kappa`. That leaves one unknown a tree, which the sums
decide, since what leaves its rows arrives at its columns; the masses follow from the leaves inwards. So a step takes
time with the points of a tree, and not with the square of the links.
"""

from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._codes import OPTIMAL, PAUSED
from .._jit import kernel, part
from ..inner.solvers import EXACT
from ..problem import Problem

_CHUNK = 1e8  # operations between two looks at the keyboard
_PIVOTS = 1000  # a point at the most: beyond that rounding goes round in circles
_ROWS = 4  # that are looked at for a pivot


class Forest(NamedTuple):
    """Links without a cycle; points are numbered rows first."""

    ends: Ints  # (2, room) the two points of a link
    mass: Floats  # (room,)
    goal: Floats  # (room,) what the masses are on their way to
    after: Ints  # (2, room) the next link of the same point, on either side; -1: none
    before: Ints  # (2, room)
    spare: Ints  # (room,) links that are not in use, ``counts[0]`` of them
    first: Ints  # (m + n,) the first link of a point
    potential: Floats  # (m + n,)
    wanted: Floats  # (m + n,) masses of the points
    weight: Floats  # (m + n,) twice the weight of their errors
    need: Floats  # (m + n,) what is left of their sums
    above: Ints  # (m + n,) the link towards the root of the tree
    depth: Ints  # (m + n,)
    tree: Ints  # (m + n,) a number for the tree, larger for those looked at later
    order: Ints  # (m + n,) points of a tree from the root outwards
    waiting: Ints  # (2, room) points whose trees are not at their best since a tree of this number
    counts: Ints  # spare links, trees so far, waiting points, the row to look at, rows since the last pivot


def fits(problem: Problem) -> bool:
    """Are marginal errors counted point by point, with nothing else that is not linear, and costs at hand?"""
    return problem.reg == 0.0 and problem.gram_a.is_delta and problem.gram_b.is_delta and not problem.cost.is_lazy


def optimum(
    problem: Problem, rows: Ints, cols: Ints, mass: Floats, shares: tuple[Floats, Floats] | None = None
) -> tuple[Ints, Ints, Floats] | None:
    """The optimal plan, sought from another one without cycles; None where rounding is in the way.

    Shares of rows and columns change the problem: masses times their share, weights divided by it.
    """
    m, n = problem.shape
    share = np.ones(m + n) if shares is None else np.concatenate(shares)
    weight = np.repeat(np.multiply(2.0, problem.unbalanced), (m, n)) / share
    forest = _empty(np.concatenate([problem.a, problem.b]) * share, weight)
    cost, effort = problem.cost.rows(0, m), np.zeros(2)
    plant(forest, cost, rows, cols, mass)
    while pivot(forest, cost, EXACT * problem.scale, effort, effort[0] + _CHUNK) == PAUSED:
        if effort[1] > _PIVOTS * (m + n):
            return None
    used = np.flatnonzero(forest.mass > 0.0)
    return forest.ends[0, used], forest.ends[1, used] - m, forest.mass[used]


def _empty(wanted: Floats, weight: Floats) -> Forest:
    """Points without links."""
    points = len(wanted)
    none, nothing, pairs = np.full(points, -1), np.zeros(points), np.zeros((2, points), np.int64)
    return Forest(
        ends=pairs.copy(),
        mass=nothing.copy(),
        goal=nothing.copy(),
        after=pairs.copy(),
        before=pairs.copy(),
        spare=np.arange(points),
        first=none.copy(),
        potential=nothing.copy(),
        wanted=wanted,
        weight=weight,
        need=nothing.copy(),
        above=none.copy(),
        depth=none.copy(),
        tree=none.copy(),
        order=none.copy(),
        waiting=np.zeros((2, 4 * points), np.int64),
        counts=np.array([points, 0, 0, 0, 0]),
    )


@kernel
def plant(forest: Forest, cost: Floats, rows: Ints, cols: Ints, mass: Floats) -> None:
    """Begin with these links, each tree at its best; one that rounding let close a cycle is left out."""
    m, joined = cost.shape[0], np.arange(forest.first.size)
    for k in range(rows.size):
        near, far = _root(joined, rows[k]), _root(joined, m + cols[k])
        if near != far:
            joined[near] = far
            _insert(forest, rows[k], m + cols[k], mass[k])
    for point in range(forest.first.size):
        if forest.tree[point] < 0:
            _wait(forest, point)
            _settle(forest, cost)


@part
def _root(joined: Ints, point: int) -> int:
    """The point that stands for all that this one is joined with."""
    while joined[point] != point:
        joined[point] = joined[joined[point]]
        point = joined[point]
    return point


@kernel
def pivot(forest: Forest, cost: Floats, tol: float, effort: Floats, limit: float) -> int:
    """Add links that lower the objective, the steepest of a few rows at a time, until a round of all rows has none."""
    m, n = cost.shape
    counts, potential, tree = forest.counts, forest.potential, forest.tree
    while counts[4] < m:
        if effort[0] > limit:
            return PAUSED
        steepest, i, j = -tol, -1, -1
        for _ in range(_ROWS):
            row = counts[3]
            for col in range(n):
                slope = cost[row, col] - potential[row] - potential[m + col]
                if slope < steepest:
                    steepest, i, j = slope, row, col
            counts[3], counts[4] = (row + 1) % m, counts[4] + 1
        effort[0] += _ROWS * n
        if i >= 0:
            counts[4] = 0
            moved = _push_round(forest, i, m + j) if tree[i] == tree[m + j] else 0.0
            _insert(forest, i, m + j, moved)
            _wait(forest, i)
            effort[0] += _settle(forest, cost)
            effort[1] += 1.0
    return OPTIMAL


@part
def _insert(forest: Forest, row: int, col: int, mass: float) -> None:
    """A new link, first in the lists of its points."""
    forest.counts[0] -= 1
    link = forest.spare[forest.counts[0]]
    forest.mass[link] = mass
    for side in range(2):
        point = row if side == 0 else col
        following = forest.first[point]
        forest.ends[side, link] = point
        forest.after[side, link], forest.before[side, link] = following, -1
        if following >= 0:
            forest.before[side, following] = link
        forest.first[point] = link


@part
def _remove(forest: Forest, link: int) -> None:
    """Take a link out; what is left of its tree on either side has to settle anew."""
    for side in range(2):
        point, following, previous = forest.ends[side, link], forest.after[side, link], forest.before[side, link]
        if previous >= 0:
            forest.after[side, previous] = following
        else:
            forest.first[point] = following
        if following >= 0:
            forest.before[side, following] = previous
        _wait(forest, point)
    forest.mass[link] = 0.0
    forest.spare[forest.counts[0]] = link
    forest.counts[0] += 1


@part
def _wait(forest: Forest, point: int) -> None:
    """The tree of this point is not at its best."""
    at = forest.counts[2]
    forest.waiting[0, at], forest.waiting[1, at] = point, forest.counts[1]
    forest.counts[2] += 1


@part
def _push_round(forest: Forest, row: int, col: int) -> float:
    """Move mass from the links between two points of a tree to a new one between them, until one has none left.

    The sums stay what they are. Of the links on the way every second one, beginning at both ends, loses mass.
    """
    above, depth, ends, mass = forest.above, forest.depth, forest.ends, forest.mass
    most, blocking = np.inf, -1
    for apply in range(2):
        near, far = row, col
        loses_near = loses_far = True
        while near != far:
            if depth[near] >= depth[far]:
                link, loses = above[near], loses_near
                near, loses_near = ends[0, link] + ends[1, link] - near, not loses_near
            else:
                link, loses = above[far], loses_far
                far, loses_far = ends[0, link] + ends[1, link] - far, not loses_far
            if apply == 1:
                mass[link] += -most if loses else most
            elif loses and mass[link] < most:
                most, blocking = mass[link], link
    _remove(forest, blocking)
    return most


@part
def _settle(forest: Forest, cost: Floats) -> int:
    """Take all trees that wait to the best masses of their links; what these leave without mass goes."""
    looked = 0
    while forest.counts[2] > 0:
        forest.counts[2] -= 1
        at = forest.counts[2]
        point = forest.waiting[0, at]
        if forest.tree[point] <= forest.waiting[1, at]:
            looked += _settle_tree(forest, cost, point)
    return looked


@part
def _settle_tree(forest: Forest, cost: Floats, root: int) -> int:
    """Go towards the best masses on a tree, until the first of them is zero."""
    order, above, ends, mass, goal = forest.order, forest.above, forest.ends, forest.mass, forest.goal
    potential, need, weight, wanted = forest.potential, forest.need, forest.weight, forest.wanted
    m = cost.shape[0]
    count = _walk(forest, cost, root)
    surplus = spread = 0.0  # of rows over columns, and what a shift of the potentials takes off it
    for k in range(count):
        point = order[k]
        need[point] = wanted[point] - potential[point] / weight[point]
        surplus += need[point] if point < m else -need[point]
        spread += 1.0 / weight[point]
    shift = surplus / spread
    for k in range(count):
        point = order[k]
        change = shift if point < m else -shift
        potential[point] += change
        need[point] -= change / weight[point]
    length, blocking = 1.0, -1
    for k in range(count - 1, 0, -1):
        point = order[k]
        link = above[point]
        goal[link] = need[point]
        need[ends[0, link] + ends[1, link] - point] -= goal[link]
        if goal[link] <= 0.0:
            share = mass[link] / (mass[link] - goal[link]) if mass[link] > 0.0 else 0.0
            if share < length or blocking < 0:
                length, blocking = share, link
    for k in range(1, count):
        link = above[order[k]]
        mass[link] = goal[link] if blocking < 0 else mass[link] + length * (goal[link] - mass[link])
    if blocking >= 0:
        _remove(forest, blocking)
    return 4 * count


@part
def _walk(forest: Forest, cost: Floats, root: int) -> int:
    """The points of a tree from its root outwards, and potentials that agree with the costs of its links."""
    order, above, depth, ends, after = forest.order, forest.above, forest.depth, forest.ends, forest.after
    potential, m = forest.potential, cost.shape[0]
    forest.counts[1] += 1
    number = forest.counts[1]
    order[0], above[root], depth[root], forest.tree[root], potential[root] = root, -1, 0, number, 0.0
    count, k = 1, 0
    while k < count:
        point = order[k]
        k += 1
        side = 0 if point < m else 1
        link = forest.first[point]
        while link >= 0:
            if link != above[point]:
                other = ends[1 - side, link]
                above[other], depth[other], forest.tree[other] = link, depth[point] + 1, number
                potential[other] = cost[ends[0, link], ends[1, link] - m] - potential[point]
                order[count] = other
                count += 1
            link = after[side, link]
    return count
