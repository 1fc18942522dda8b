"""The network simplex on lists: the optimum where all pairs are on them, and what it does where few are."""

import numpy as np

import sparsetransport as st
from sparsetransport.forest.crossover import on_forest
from sparsetransport.forest.listed_simplex import ListedSimplex
from sparsetransport.geometry.pricing import Pricing


def begun(kept=16, size=40):
    rng = np.random.default_rng(3)
    problem = st.Problem.from_points(rng.random((size, 2)), rng.random((size + 9, 2)), kernels=st.Delta())
    none = np.zeros(0, np.int64)
    pricing = Pricing(problem.cost)
    return problem, pricing, ListedSimplex(problem, pricing, on_forest(problem, none, none, np.zeros(0)), kept)


def test_all_pairs_on_the_lists_give_the_optimum():
    problem, pricing, simplex = begun()
    m, n = problem.shape
    simplex.list(pricing.rows(np.zeros(n), n)[1], pricing.columns(np.zeros(m), 3)[1])
    assert simplex.improve(1e9, np.inf)
    planted = simplex.planted
    np.testing.assert_allclose(planted.value, st.solve(problem).value, rtol=1e-9)
    np.testing.assert_allclose(planted.value, problem.value(planted.rows, planted.cols, planted.mass), rtol=1e-9)
    assert not simplex.improve(1e9, np.inf), "nothing helps any more"


def test_few_operations_or_no_time_leave_a_plan_with_the_best_masses_on_its_links():
    for operations, deadline in ((3000.0, np.inf), (1e9, 0.0)):
        problem, pricing, simplex = begun()
        before = simplex.planted.value
        simplex.list(pricing.rows(simplex.planted.beta, 4)[1], pricing.columns(simplex.planted.alpha, 4)[1])
        assert simplex.improve(operations, deadline)
        planted = simplex.planted
        assert planted.value <= before
        np.testing.assert_allclose(planted.value, problem.value(planted.rows, planted.cols, planted.mass), rtol=1e-9)


def test_lists_keep_the_cheapest_pairs_of_earlier_rounds():
    _, pricing, simplex = begun(kept=2)
    n = pricing.cost.shape[1]
    by_row, by_col = pricing.rows(np.zeros(n), 8)[1], np.full((n, 1), -1)
    simplex.list(by_row, by_col)
    before = simplex.keys
    simplex.list(by_row[:, :1], by_col)
    assert by_row.shape[0] < simplex.keys.size < before.size
    assert set(simplex.keys) <= set(before)
