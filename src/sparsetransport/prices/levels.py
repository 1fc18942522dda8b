r"""Prices from coarse to fine, with a bound that they prove for every budget.

For any :math:`\beta`, and :math:`\alpha_i = \min(2\lambda_a a_i, \min_j C_{ij} - \beta_j)` from a pass over all pairs,

.. math::
    D(\beta) = \sum_i a_i \alpha_i - \frac{\alpha_i^2}{4\lambda_a} + \sum_j b_j \beta_j - \frac{\beta_j^2}{4\lambda_b}

is a lower bound. It is raised on graphs of candidate pairs, for smaller and smaller smoothing (`ascent`). A level has
an eighth of the points of the next one: means of some, with their masses. Lists of the pairs that are cheapest at the
prices come from rows and columns alike: from rows alone some columns would be left out, and the prices run away. If
lists are too short for how far prices have to go, they run away as well; then the exact bound, which new lists give
for nothing, falls, and the stage is done again with lists twice as long and prices held near where they were.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import effort
from .._checks import Floats, Ints
from ..geometry.matrices import Cost
from ..geometry.pricing import Pricing, nearest
from ..problem import Problem
from .ascent import Half, smoothed_plan
from .graph import Graph, graph_of, lists_by_row

_NOTHING = np.zeros(0, np.int64), np.zeros(0, np.int64)
_ROUNDING = 1e-12  # of a dual value
Tell = Callable[[float, int, int, int], bool]
"""Told of an objective near the optimum, a row and a column in use, and the number of links; true stops the ascent."""


class Prices(NamedTuple):
    """Prices without a pair below them, the bound that they prove, and a plan that nearly attains it."""

    alpha: Floats
    beta: Floats
    bound: float
    rows: Ints
    cols: Ints
    mass: Floats


class Level(NamedTuple):
    """A problem of some of the points, with the masses of all."""

    pricing: Pricing
    masses: tuple[Floats, Floats]
    give: tuple[float, float]  # one over twice the weight of the marginal errors
    kept: tuple[Ints, Ints] = _NOTHING  # which points of the next level its own stand for

    @classmethod
    def of(
        cls, cost: Cost, a: Floats, b: Floats, give: tuple[float, float], kept: tuple[Ints, Ints] = _NOTHING
    ) -> "Level":
        """A level with these points."""
        return cls(Pricing(cost), (a, b), give, kept)

    @property
    def shape(self) -> tuple[int, int]:
        """How many points there are."""
        return self.pricing.cost.shape

    def coarser(self, shrink: int, rng: np.random.Generator) -> "Level":
        """The level with so many times fewer points."""
        target = max(1, max(self.shape) // shrink)
        kept = [np.sort(rng.permutation(size)[: min(size, target)]) for size in self.shape]
        give = [g * size / len(each) for g, size, each in zip(self.give, self.shape, kept, strict=True)]
        if self.pricing.cost.is_lazy:
            cells = [_cells(*each) for each in zip(self.pricing.points, self.masses, kept, strict=True)]
            cost, masses = self.pricing.cost.between(cells[0][0], cells[1][0]), [mass for _, mass in cells]
        else:
            cost, masses = (
                self.pricing.cost.restricted(*kept),
                [_share(*each) for each in zip(self.masses, kept, strict=True)],
            )
        return Level.of(cost, masses[0], masses[1], (give[0], give[1]), (kept[0], kept[1]))

    def dual(self, alpha: Floats, beta: Floats) -> float:
        """The bound, if no pair has a cost below the sum of its prices."""
        (a, b), (give_a, give_b) = self.masses, self.give
        return float(alpha @ (a - 0.5 * give_a * alpha) + beta @ (b - 0.5 * give_b * beta))

    def capped(self, side: int, price: Floats) -> Floats:
        """Prices no higher than what the marginal errors of a side are worth."""
        return np.minimum(self.masses[side] / self.give[side], price)

    def value(self, graph: Graph, cost: Floats, mass: Floats) -> float:
        """The objective of a plan."""
        value = float(cost @ mass)
        for at, wanted, give in zip((graph.row, graph.col), self.masses, self.give, strict=True):
            wrong = np.bincount(at, mass, len(wanted)) - wanted
            value += 0.5 * float(wrong @ wrong) / give
        return value


class Stage(NamedTuple):
    """Where an ascent stands: prices, the pairs in use with their masses, and the number of stages done."""

    alpha: Floats
    beta: Floats
    graph: Graph
    mass: Floats
    done: int

    @property
    def links(self) -> tuple[Ints, Ints]:
        """The pairs in use."""
        used = self.mass > 0.0
        return self.graph.row[used], self.graph.col[used]


def prices(problem: Problem, how: effort.Prices, pricing: Pricing, *, tell: Tell | None = None) -> Prices:
    """Prices of a problem with `Delta` kernels and no ``reg``, whose costs are priced by ``pricing``."""
    weights = problem.unbalanced
    give = 0.5 / weights[0], 0.5 / weights[1]
    if pricing.has_trees:  # neighbours side by side, since memory is slow
        order = [tree.order for tree in pricing.trees]
        whole = Level.of(problem.cost.restricted(*order), problem.a[order[0]], problem.b[order[1]], give)
    else:
        order = [np.arange(size) for size in problem.shape]
        whole = Level(pricing, (problem.a, problem.b), give)
    levels, rng = [whole], np.random.default_rng(how.seed)
    while max(levels[-1].shape) > how.coarsest:
        levels.append(levels[-1].coarser(how.shrink, rng))
    first = levels.pop()
    stage = _climb(first, how)
    before, alpha = first, stage.alpha
    while levels:
        level = levels.pop()
        beta = _prolonged(before, level, alpha)
        alpha = level.capped(0, level.pricing.rows(beta)[0][:, 0])
        stage = _climb_listed(level, how, alpha, beta, None if levels else _in_order(tell, order), is_last=not levels)
        alpha, before = stage.alpha, level
    alpha, beta = _exact(before, stage.beta)
    rows, cols = stage.links
    mass = stage.mass[stage.mass > 0.0]
    bound = before.dual(alpha, beta)
    rows, cols, alpha, beta = order[0][rows], order[1][cols], _put(alpha, order[0]), _put(beta, order[1])
    return Prices(alpha, beta, bound, rows, cols, mass)


def _in_order(tell: Tell | None, order: list[Ints]) -> Tell | None:
    """Tell of pairs in the order of the problem."""
    if tell is None:
        return None
    return lambda value, row, col, links: tell(value, int(order[0][row]), int(order[1][col]), links)


def _put(values: Floats, order: Ints) -> Floats:
    """Values of the points in an order, in the order of the problem."""
    found = np.empty_like(values)
    found[order] = values
    return found


def _prolonged(before: Level, level: Level, alpha: Floats) -> Floats:
    """Prices of the columns of a level from those of the rows of the coarser one before."""
    if level.pricing.cost.is_lazy:
        cost = level.pricing.cost.between(before.pricing.points[0], level.pricing.points[1])
    else:
        cost = level.pricing.cost.restricted(before.kept[0], np.arange(level.shape[1]))
    return level.capped(1, Pricing(cost).columns(alpha)[0][:, 0])


def _cells(points: Floats, mass: Floats, kept: Ints) -> tuple[Floats, Floats]:
    """Means and masses of the points that are nearest to each of those kept."""
    if len(kept) == len(points):
        return points, mass
    cell = nearest(points, points[kept])
    total = np.bincount(cell, mass, len(kept))
    mean = np.column_stack([np.bincount(cell, mass * each, len(kept)) for each in points.T])
    centre = np.where(total[:, None] > 0.0, mean / np.maximum(total, 1e-300)[:, None], points[kept])
    return np.asarray(centre, np.float64), np.asarray(total, np.float64)


def _share(mass: Floats, kept: Ints) -> Floats:
    """All of the mass on the points kept, in proportion to their own."""
    part = mass[kept]
    return np.asarray(part * (mass.sum() / part.sum()) if part.any() else part + mass.sum() / len(part))


def _exact(level: Level, beta: Floats) -> tuple[Floats, Floats]:
    """The best prices of the rows for those of the columns, and then the other way round."""
    alpha = level.capped(0, level.pricing.rows(beta)[0][:, 0])
    return alpha, level.capped(1, level.pricing.columns(alpha)[0][:, 0])


# --- one level -------------------------------------------------------------------------------------------------------


def _all_pairs(level: Level) -> Graph:
    """All pairs that are allowed."""
    m, n = level.shape
    rows, cols = np.divmod(np.arange(m * n), n)
    allowed = np.isfinite(level.pricing.cost.entries(rows, cols))
    return graph_of((m, n), (rows[allowed], cols[allowed]))


def _climb(level: Level, how: effort.Prices) -> Stage:
    """From nothing, on all pairs."""
    graph = _all_pairs(level)
    cost = level.pricing.entries(graph.row, graph.col)
    alpha, beta = np.zeros(level.shape[0]), np.zeros(level.shape[1])
    size, mass = typical(level, graph, cost), np.zeros(cost.size)
    for share in how.begin:
        alpha, beta = ascend(level, graph, cost, alpha, beta, share * size, how.iterations, how.exact)
        mass = smoothed_plan(graph.row, graph.col, cost, alpha, beta, share * size)
    return Stage(alpha, beta, graph, mass, len(how.begin))


def _climb_listed(
    level: Level, how: effort.Prices, alpha: Floats, beta: Floats, tell: Tell | None, *, is_last: bool
) -> Stage:
    """From prices of a coarser level, on lists that follow the prices."""
    count, size, bound, allowed, usual = how.lists, 0.0, -np.inf, 0.0, len(how.stages)
    stage = safe = Stage(alpha, beta, graph_of(level.shape), np.zeros(0), 0)
    while True:
        value, listed = level.pricing.rows(stage.beta, count)
        alpha = level.capped(0, value[:, 0])
        dual = level.dual(alpha, stage.beta)
        if dual < bound - allowed and count < how.longest:
            count, stage, bound = min(2 * count, how.longest), safe, -np.inf
            continue
        if stage.done >= usual + is_last * how.proximal:
            return stage
        safe, bound = stage, dual
        box = how.reach * _width(value) if stage.done == 0 else np.inf
        listed_by_column = lists_by_row(level.pricing.columns(alpha, count)[1])[::-1]
        graph = graph_of(level.shape, lists_by_row(listed), listed_by_column, stage.links)
        cost = level.pricing.entries(graph.row, graph.col)
        size = size or typical(level, graph, cost)
        rho = how.stages[min(stage.done, usual - 1)] * size
        shifted = cost - rho * graph.matched(stage.graph, stage.mass) if stage.done >= usual else cost
        error = how.error if stage.done >= usual - 1 else how.rough
        alpha, beta = ascend(level, graph, shifted, stage.alpha, stage.beta, rho, how.iterations, error, box)
        mass = smoothed_plan(graph.row, graph.col, shifted, alpha, beta, rho)
        plan = level.value(graph, cost, mass)
        stage = Stage(alpha, beta, graph, mass, stage.done + 1)
        allowed = rho * float(mass @ mass) + how.fall * abs(plan)
        if tell is not None and mass.any():
            heaviest = int(mass.argmax())
            if tell(plan, int(graph.row[heaviest]), int(graph.col[heaviest]), int((mass > 0.0).sum())):
                return stage


def typical(level: Level, graph: Graph, cost: Floats) -> float:
    """Smoothing at which a row spreads over a quarter of its candidates or so."""
    some = np.flatnonzero(np.diff(graph.first) > 0)
    if not some.size:
        return 1.0
    starts = graph.first[some]
    width = float(np.median(np.maximum.reduceat(cost, starts) - np.minimum.reduceat(cost, starts)))
    width = width or float(np.abs(cost).max()) or 1.0
    return 0.25 * width / (float(level.masses[0].mean()) or 1.0)


def _width(value: Floats) -> float:
    """How far the least of a row are apart, in the middle."""
    last = np.where(np.isfinite(value), value, -np.inf).max(1)
    width = (last - value[:, 0])[np.isfinite(value[:, 0])]
    return float(np.median(width)) if width.size else 0.0


def ascend(
    level: Level,
    graph: Graph,
    cost: Floats,
    alpha: Floats,
    beta: Floats,
    rho: float,
    iterations: int,
    error: float,
    box: float = np.inf,
) -> tuple[Floats, Floats]:
    """Raise the smoothed dual until marginal errors of the columns are a small share of their masses."""
    (a, b), (give_a, give_b) = level.masses, level.give
    low, high = beta - box, beta + box
    by_row = Half(graph.first, graph.col, cost, a, give_a, rho)
    by_col = Half(graph.first_by_col, graph.row_by_col, cost[graph.by_col], b, give_b, rho)
    free = np.full(len(a), -np.inf), np.full(len(a), np.inf)
    point, last, safe = beta, beta, None
    pace, value, total = 1.0, -np.inf, float(b.sum())
    for _ in range(iterations):
        alpha, gained, _ = by_row.best(point, alpha, *free)
        reached = gained + float(point @ (b - 0.5 * give_b * point))
        if safe is not None and reached < value - _ROUNDING * abs(value):  # momentum went too far
            point, last, safe, pace, value = safe, safe, None, 1.0, -np.inf
            continue
        value = reached
        new, _, wrong = by_col.best(alpha, point, low, high)
        if wrong <= error * total:
            last = new
            break
        if box == np.inf:
            surplus = a.sum() - give_a * alpha.sum() - b.sum() + give_b * new.sum()
            new -= surplus / (len(a) * give_a + len(b) * give_b)  # by far the slowest direction: all prices at once
        step, last = new - last, new
        if float((point - new) @ step) > 0.0:
            point, pace, safe = new, 1.0, None
            continue
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * pace * pace))
        point = np.clip(new + (pace - 1.0) / faster * step, low, high)
        pace, safe = faster, new
    return by_row.best(last, alpha, *free)[0], last
