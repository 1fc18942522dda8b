"""The crossover to a forest: sums stay, costs fall, masses are the best on the links; pivots lead to the optimum."""

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.forest.crossover import Links, best_masses, cancel_cycles, on_forest


def has_cycle(points, ends):
    joined = list(range(points))

    def root(point):
        while joined[point] != point:
            point = joined[point]
        return point

    for near, far in ends.T.tolist():
        if root(near) == root(far):
            return True
        joined[root(near)] = root(far)
    return False


@pytest.mark.parametrize("seed", range(6))
def test_cancelling_cycles_keeps_all_sums_and_raises_no_cost(seed):
    rng = np.random.default_rng(seed)
    m, n = 12, 9
    rows, cols = np.divmod(rng.permutation(m * n)[:70], n)
    links = Links(np.stack([rows, m + cols]), rng.normal(size=70), rng.random(70) * (rng.random(70) < 0.8))
    before, cost = links.mass.copy(), links.cost @ links.mass
    kept = np.zeros(70, np.bool_)
    cancel_cycles(m + n, links, kept)
    assert (links.mass >= 0.0).all()
    assert not links.mass[~kept].any()
    assert not has_cycle(m + n, links.ends[:, kept])
    for ends in links.ends:
        np.testing.assert_allclose(np.bincount(ends, links.mass, m + n), np.bincount(ends, before, m + n), atol=1e-12)
    assert links.cost @ links.mass <= cost + 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_masses_of_a_forest_are_those_of_the_active_set(seed):
    rng = np.random.default_rng(seed)
    m, n = 15, 11
    problem = st.Problem.from_matrices(rng.random((m, n)), rng.random(m), rng.random(n), unbalanced=(0.7, 2.0))
    rows, cols = np.divmod(rng.permutation(m * n)[:60], n)
    links, kept = Links(np.stack([rows, m + cols]), rng.random(60), np.ones(60)), np.zeros(60, np.bool_)
    cancel_cycles(m + n, links, kept)
    rows, cols = rows[kept], cols[kept]
    planted = best_masses(problem, rows, cols, problem.cost.entries(rows, cols))
    exact = st.solve_support(problem, links=list(zip(rows.tolist(), cols.tolist(), strict=True)))
    assert (planted.mass >= 0.0).all()
    np.testing.assert_allclose(planted.value, exact.value, rtol=1e-10)
    np.testing.assert_allclose(problem.value(planted.rows, planted.cols, planted.mass), planted.value, rtol=1e-10)
    np.testing.assert_allclose(planted.alpha, exact.potential_a, atol=1e-9)


def test_pivots_on_all_pairs_end_at_the_optimum_of_linear_programming():
    """With heavy marginal errors and equal totals it is the transportation problem, which HiGHS solves."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(0)
    m, n = 20, 17
    cost, a, b = rng.random((m, n)), rng.random(m), rng.random(n)
    a, b = a / a.sum(), b / b.sum()
    problem = st.Problem.from_matrices(cost, a, b, unbalanced=1e6)
    rows, cols = np.divmod(np.arange(m * n), n)
    planted = on_forest(problem, rows, cols, np.outer(a, b).ravel())
    for _ in range(50):
        wish = planted.alpha[rows] + planted.beta[cols] - cost[rows, cols]
        more = np.flatnonzero(wish > 1e-9)
        if not more.size:
            break
        more = more[np.argsort(-wish[more])][:20]
        planted = on_forest(
            problem,
            np.r_[planted.rows, rows[more]],
            np.r_[planted.cols, cols[more]],
            np.r_[planted.mass, np.zeros(more.size)],
        )
    sums = np.zeros((m + n, m * n))
    sums[rows, np.arange(m * n)] = sums[m + cols, np.arange(m * n)] = 1.0
    exact = linprog(cost.ravel(), A_eq=sums, b_eq=np.r_[a, b]).fun
    assert planted.rows.size <= m + n - 1
    np.testing.assert_allclose(planted.value, exact, rtol=1e-5)


def test_nothing_at_all():
    problem = st.Problem.from_matrices(np.ones((3, 2)), unbalanced=1.0)
    none = np.zeros(0, np.int64)
    planted = on_forest(problem, none, none, np.zeros(0))
    assert planted.rows.size == 0
    np.testing.assert_allclose(planted.value, problem.constant)
