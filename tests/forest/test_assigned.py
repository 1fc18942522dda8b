"""The matching to begin with: nearly the best one, on all pairs and on short lists."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import sparsetransport as st
from sparsetransport import effort
from sparsetransport.forest.assigned import applies, are_equal, best_matching
from sparsetransport.geometry.pricing import Pricing
from sparsetransport.prices.levels import prices

HOW = effort.Prices(coarsest=30)


def some_problem(m, n, *, equal, lazy, unbalanced=(3.0, 2.0), seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.random((m, 2)), rng.random((n, 2)) ** 2
    a, b = (np.ones(k) if equal else np.exp(0.7 * rng.normal(size=k)) for k in (m, n))
    return st.Problem.from_points(x, y, a, b, kernels=st.Delta(), unbalanced=unbalanced, lazy=lazy)


def matching(problem, count):
    return best_matching(problem, HOW, count, prices(problem, HOW, Pricing(problem.cost)))


def gains(problem):
    (weight_a, weight_b), cost = problem.unbalanced, problem.cost.rows(0, problem.shape[0])
    pull = 2.0 * weight_a * problem.a[:, None] + 2.0 * weight_b * problem.b - cost
    return np.maximum(pull, 0.0) ** 2 / (4.0 * (weight_a + weight_b))


@pytest.mark.parametrize(("m", "n"), [(40, 40), (40, 30), (25, 40)])
@pytest.mark.parametrize("unbalanced", [(3.0, 2.0), (0.1, 0.1)])
def test_on_all_pairs_it_gains_most(m, n, unbalanced):
    problem = some_problem(m, n, equal=False, lazy=True, unbalanced=unbalanced)
    rows, cols, mass = matching(problem, max(m, n))
    gain = gains(problem)
    best = gain[linear_sum_assignment(gain, maximize=True)].sum()
    assert best * (1 + 1e-9) >= gain[rows, cols].sum() >= best * (1 - 1e-9)
    assert np.unique(rows).size == np.unique(cols).size == rows.size
    assert (mass > 0.0).all()
    value = problem.constant - gain[rows, cols].sum()
    np.testing.assert_allclose(problem.value(rows, cols, mass), value, rtol=1e-9)


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("lazy", [True, False])
def test_short_lists_are_nearly_enough(equal, lazy):
    problem = some_problem(200, 200, equal=equal, lazy=lazy)
    assert are_equal(problem) == equal
    rows, cols, _ = matching(problem, 16)
    gain = gains(problem)
    assert gain[rows, cols].sum() >= 0.999 * gain[linear_sum_assignment(gain, maximize=True)].sum()


def test_where_it_applies():
    lazy = some_problem(20, 30, equal=False, lazy=True)
    assert applies(lazy, 2.0)
    assert not applies(lazy, 1.4)
    assert applies(replace(lazy, cost=some_problem(20, 30, equal=False, lazy=False).cost), 2.0)
    other = st.Problem.from_points(*np.random.default_rng(0).random((2, 9, 2)), metric="euclidean", lazy=True)
    assert not applies(other, 2.0)
