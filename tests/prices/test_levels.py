"""Prices: feasible, a bound for the optimum, and close to it; the same for the same seed."""

from dataclasses import replace

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.effort import Prices as Effort
from sparsetransport.geometry.pricing import Pricing
from sparsetransport.prices.levels import Level, prices

QUICK = replace(Effort(), coarsest=40)


def problem_of(m, n, d, seed=0, *, lazy=True, **options):
    rng = np.random.default_rng(seed)
    x, y = rng.random((m, d)), rng.random((n, d)) ** 2
    a, b = np.exp(0.7 * rng.normal(size=m)), np.exp(0.7 * rng.normal(size=n))
    a, b = a / a.sum(), b / b.sum()
    return st.Problem.from_points(x, y, a, b, kernels=st.Delta(), lazy=lazy, **options)


@pytest.mark.filterwarnings("ignore:marginal errors:sparsetransport.SparseTransportWarning")
@pytest.mark.parametrize(("m", "n", "d", "weights"), [(300, 260, 2, "auto"), (400, 30, 9, (3.0, 40.0))])
@pytest.mark.parametrize("lazy", [True, False])
def test_prices_are_feasible_and_prove_a_bound_close_to_the_optimum(m, n, d, weights, lazy):
    problem = problem_of(m, n, d, lazy=lazy, unbalanced=weights)
    found = prices(problem, QUICK, Pricing(problem.cost))
    matrix = problem.cost.rows(0, m)
    assert (found.alpha[:, None] + found.beta - matrix).max() <= 1e-12 * matrix.max()
    (weight_a, weight_b), (a, b) = problem.unbalanced, (problem.a, problem.b)
    dual = a @ found.alpha - found.alpha @ found.alpha / (4 * weight_a)
    dual += b @ found.beta - found.beta @ found.beta / (4 * weight_b)
    np.testing.assert_allclose(found.bound, dual, rtol=1e-12)
    best = st.solve(matrix, a, b, unbalanced=problem.unbalanced).value
    assert best * (1 - 2e-3) <= found.bound <= best * (1 + 1e-12)
    assert best * (1 - 1e-12) <= problem.value(found.rows, found.cols, found.mass) <= 1.05 * best


def test_the_same_prices_for_the_same_seed():
    problem = problem_of(200, 200, 2)
    one, same, other = (prices(problem, replace(QUICK, seed=k), Pricing(problem.cost)) for k in (0, 0, 1))
    assert (one.beta == same.beta).all()
    assert one.bound == same.bound
    assert (one.beta != other.beta).any()


def test_points_of_all_levels_stay_where_they_are():
    """Means of a level are not those of the next one: were each moved to its own mean, prices would go astray."""
    problem = problem_of(300, 200, 2, unbalanced=3.0)
    level = Level(Pricing(problem.cost), (problem.a, problem.b), (1 / 6, 1 / 6))
    coarse = level.coarser(8, np.random.default_rng(0))
    for k, (total, each) in enumerate(zip(level.masses, coarse.masses, strict=True)):
        mean = [mass @ one.pricing.points[k] for mass, one in ((total, level), (each, coarse))]
        np.testing.assert_allclose(mean[1], mean[0], rtol=1e-12, atol=1e-12)


def test_lists_that_are_too_short_are_made_longer():
    """With two candidates a row prices would run away, and the bound with them."""
    problem = problem_of(400, 400, 2)
    usual = prices(problem, QUICK, Pricing(problem.cost)).bound
    short = prices(problem, replace(QUICK, lists=2, shrink=40), Pricing(problem.cost)).bound
    assert short >= usual * (1 - 0.01)


def test_the_ascent_tells_where_it_is_and_stops_when_told_to():
    problem, told = problem_of(200, 200, 2), []

    def tell(value, row, col, links):
        told.append((value, links))
        assert 0 <= min(row, col) <= max(row, col) < 200
        return len(told) == 2

    found = prices(problem, QUICK, Pricing(problem.cost), tell=tell)
    assert len(told) == 2
    assert (found.alpha[:, None] + found.beta - problem.cost.rows(0, 200)).max() <= 1e-12
    assert found.bound <= told[-1][0]
