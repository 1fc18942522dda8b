r"""A start for budgets of one link a row or so: a matching of rows and columns whose links gain most, each alone.

Alone, a link gains :math:`(2\lambda_a a_i + 2\lambda_b b_j - C_{ij})_+^2 / 4(\lambda_a + \lambda_b)`. With
:math:`h = \lambda_a\lambda_b/(\lambda_a + \lambda_b)` it falls short of what its points could gain by about the mass
times :math:`C_{ij} + 4h(\sqrt{a_i} - \sqrt{b_j})^2`. That is a squared distance again if the points are, of points with
one more coordinate. So the prices of a problem with these points, and equal masses, lead to short lists of pairs, and
the best matching on them is found exactly.
"""

import numpy as np

from .. import effort
from .._checks import Floats, Ints
from ..geometry import _entries
from ..geometry.kernels import Delta
from ..geometry.pricing import Pricing
from ..prices.graph import graph_of, lists_by_row
from ..prices.levels import Prices, prices
from ..problem import Problem


def applies(problem: Problem, width: float) -> bool:
    """True if costs can have one more term, and no side has so many times more points than the other."""
    m, n = problem.shape
    cost = problem.cost
    return max(m, n) <= width * min(m, n) and (not cost.is_lazy or cost.compiled.kind == _entries.SQEUCLIDEAN)


def are_equal(problem: Problem) -> bool:
    """True if all masses of a side are equal."""
    return not (np.ptp(problem.a) or np.ptp(problem.b))


def best_matching(problem: Problem, how: effort.Prices, count: int, known: Prices) -> tuple[Ints, Ints, Floats]:
    """The links of a matching, and their masses; ``known`` are the prices of the problem itself."""
    weight_a, weight_b = problem.unbalanced
    pricing, found = Pricing(problem.cost), known
    if not are_equal(problem):
        lifted = _lifted(problem, 4.0 * weight_a * weight_b / (weight_a + weight_b))
        pricing = Pricing(lifted.cost)
        found = prices(lifted, how, pricing)
    by_col = lists_by_row(pricing.columns(found.alpha, count)[1])[::-1]
    graph = graph_of(problem.shape, lists_by_row(pricing.rows(found.beta, count)[1]), by_col, (found.rows, found.cols))
    mass = 2.0 * weight_a * problem.a[graph.row] + 2.0 * weight_b * problem.b[graph.col]
    mass -= Pricing(problem.cost).entries(graph.row, graph.col)
    mass /= 2.0 * (weight_a + weight_b)
    gain = mass * mass * (weight_a + weight_b)
    some = mass > 0.0
    rows, cols, mass, gain = graph.row[some], graph.col[some], mass[some], gain[some]
    chosen = _matched(problem.shape, rows, cols, gain)
    return rows[chosen], cols[chosen], mass[chosen]


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


def _matched(shape: tuple[int, int], rows: Ints, cols: Ints, gain: Floats) -> Ints:
    """Which pairs are in the matching that gains most; a point may stay alone."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    m, n = shape
    top = float(gain.max(initial=0.0)) * 1.01 + 1e-300
    weight = np.concatenate([top - gain, np.full(m, top)])
    near, far = np.append(rows, np.arange(m)), np.append(cols, n + np.arange(m))
    order = np.lexsort((far, near))
    graph = csr_array((weight[order], (near[order], far[order])), shape=(m, n + m))
    row, col = min_weight_full_bipartite_matching(graph)
    kept = col < n
    pairs, wanted = rows * n + cols, row[kept] * n + col[kept]
    return np.flatnonzero(np.isin(pairs, wanted))
