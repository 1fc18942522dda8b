r"""A start for budgets of one link a row or so: a matching of rows and columns whose links gain most, each alone.

Alone, a link gains :math:`(2\lambda_a a_i + 2\lambda_b b_j - C_{ij})_+^2 / 4(\lambda_a + \lambda_b)`. With
:math:`h = \lambda_a\lambda_b/(\lambda_a + \lambda_b)` it falls short of what its points could gain by about the mass
times :math:`C_{ij} + 4h(\sqrt{a_i} - \sqrt{b_j})^2`. That is a squared distance again if the points are, of points with
one more coordinate. So the prices of a problem with these points, and equal masses, lead to short lists of pairs, and
a matching that is the best of them, or nearly, is found there.
"""

from typing import Any

import numpy as np

from .. import effort
from .._checks import Floats, Ints
from ..geometry import _entries
from ..geometry.kernels import Delta
from ..geometry.pricing import Pricing
from ..prices.anywhere import prices_on, pricing_on
from ..prices.graph import Graph, graph_of, lists_by_row
from ..prices.levels import Level, Prices, ascend, typical
from ..problem import Problem
from .assignment import matched


def applies(problem: Problem, width: float) -> bool:
    """True if costs can have one more term, and no side has so many times more points than the other."""
    m, n = problem.shape
    cost = problem.cost
    return max(m, n) <= width * min(m, n) and (not cost.is_lazy or cost.compiled.kind == _entries.SQEUCLIDEAN)


def are_equal(problem: Problem) -> bool:
    """True if all masses of a side are equal."""
    return not (np.ptp(problem.a) or np.ptp(problem.b))


def best_matching(
    problem: Problem, how: effort.Prices, count: int, known: Prices, device: Any = None
) -> tuple[Ints, Ints, Floats]:
    """The links of a matching, and their masses; ``known`` are the prices of the problem itself."""
    weight_a, weight_b = problem.unbalanced
    sought, found = problem, known
    if not are_equal(problem):
        sought = _lifted(problem, 4.0 * weight_a * weight_b / (weight_a + weight_b))
    pricing = pricing_on(device, sought.cost)
    if sought is not problem:
        found = prices_on(device, sought, how, pricing)
    by_col = lists_by_row(pricing.columns(found.alpha, count)[1])[::-1]
    graph = graph_of(problem.shape, lists_by_row(pricing.rows(found.beta, count)[1]), by_col, (found.rows, found.cols))
    mass = 2.0 * weight_a * problem.a[graph.row] + 2.0 * weight_b * problem.b[graph.col]
    mass -= Pricing(problem.cost).entries(graph.row, graph.col)
    mass /= 2.0 * (weight_a + weight_b)
    alone = weight_a * problem.a**2, weight_b * problem.b**2
    cost = alone[0][graph.row] + alone[1][graph.col] - (weight_a + weight_b) * np.maximum(mass, 0.0) ** 2
    price = np.zeros(problem.shape[1])  # of columns some of which stay alone
    if problem.shape[0] == problem.shape[1]:
        share = (weight_a * problem.a.mean() + weight_b * problem.b) / (weight_a + weight_b)
        price = found.beta * share
        if not are_equal(problem):
            price = _raised(problem, how, graph, cost, price, alone)
        cost -= 4.0 * (alone[0].max() + alone[1].max()) * problem.shape[0]  # all are matched, whatever the prices
        price -= alone[1]
    cost -= alone[0][graph.row] + alone[1][graph.col]
    chosen = matched(problem.shape, graph.row, graph.col, cost, price)
    chosen = chosen[mass[chosen] > 0.0]
    return graph.row[chosen], graph.col[chosen], mass[chosen]


def _raised(
    problem: Problem, how: effort.Prices, graph: Graph, cost: Floats, beta: Floats, alone: tuple[Floats, Floats]
) -> Floats:
    """Prices of the columns for costs of whole links, one of which every point wants."""
    give = 0.5 / float(alone[0].mean() + alone[1].mean())
    level = Level(Pricing(problem.cost), (np.ones(problem.shape[0]), np.ones(problem.shape[1])), (give, give))
    alpha, size = np.zeros(problem.shape[0]), typical(level, graph, cost)
    for share in how.stages:
        alpha, beta = ascend(level, graph, cost, alpha, beta, share * size, how.iterations, how.error)
    return beta


def _lifted(problem: Problem, weight: float) -> Problem:
    """The problem with equal masses, whose points have the roots of their masses as one more coordinate."""
    m, n = problem.shape
    a, b = np.full(m, 1.0 / m), np.full(n, 1.0 / n)
    more = np.sqrt(weight * problem.a), np.sqrt(weight * problem.b)
    if not problem.cost.is_lazy:
        cost = problem.cost.rows(0, m) + (more[0][:, None] - more[1]) ** 2
        return Problem.from_matrices(cost, a, b, kernels=Delta())
    scale = problem.cost.compiled.scale
    x, y = (
        np.column_stack([np.sqrt(scale) * points, each])
        for points, each in zip(Pricing(problem.cost).points, more, strict=True)
    )
    return Problem.from_points(x, y, a, b, kernels=Delta(), lazy=True)
