"""Scans by pricing: lazy costs of large problems, without all pairs, lead to the plan of the matrix."""

from dataclasses import replace

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.engine import pricer
from sparsetransport.engine.omp_solver import OMPSolver
from sparsetransport.engine.room import Constraint
from sparsetransport.engine.state import refresh
from sparsetransport.geometry.pricing import Pricing

LISTED = replace(st.QUICK, list_above=0, priced_above=0)
BUDGETS = [
    20,
    None,
    st.PerRow(1),
    st.PerColumn(2),
    st.PerRow(2) & st.PerColumn(1),
    st.Partition(np.eye(50, 40, dtype=int), [9, 2]),
]


def clouds(d, m=50, n=40):
    rng = np.random.default_rng(d)
    return rng.normal(size=(m, d)), rng.normal(size=(n, d)) + 0.5, rng.random(m), rng.random(n)


@pytest.mark.parametrize("d", [2, 9])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_lazy_solves_go_the_way_of_dense_ones(d, budget):
    """The same pairs, one after the other, whatever is full; trees and products find what scans of the matrix find."""
    X, Y, a, b = clouds(d)
    kernel, reg = (st.RBF(), 0.0) if d == 2 else (st.IMQ(0.3), 0.1)
    dense, lazy = (
        st.solve_sample(X, Y, a, b, budget=budget, kernels=kernel, reg=reg, effort=LISTED, lazy=choice)
        for choice in (False, True)
    )
    np.testing.assert_array_equal(lazy.path.pairs, dense.path.pairs)
    np.testing.assert_allclose(lazy.plan, dense.plan, rtol=1e-9, atol=1e-12)
    assert lazy.lower_bound == pytest.approx(dense.lower_bound, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("d", [2, 9])
def test_every_scan_finds_the_best_pairs(d):
    """What is below the limit, and no other pair, comes in order; what was found before changes nothing."""
    X, Y, a, b = clouds(d)
    problem = st.Problem.from_points(X, Y, a, b, kernels=st.RBF(), lazy=True, reg=0.01)
    effort = replace(LISTED, list_size=30)
    solver = OMPSolver(problem, Constraint(st.PerRow(3), problem.shape), effort.tuning, listed=True)
    find = pricer.ColumnPricer(problem.pricing, solver.data.tol)
    for entries in (1, 2, 5, 15, 40):
        solver.grow(entries)
        refresh(solver.data, solver.work)
        work = solver.work
        value = problem.cost.rows(0, 50) + work.r[:, None]
        value[tuple(work.factor.label[:, : solver.size])] = np.inf
        for depth, counted in ((4, True), (1, False)):
            free = np.where(work.room.left[1:51, None] <= 0, np.inf, value) if counted else value
            find(work, depth, counted)
            best, where = work.best[:depth], work.where[:depth]
            expected = np.sort(free, axis=0)[:depth]
            found = best < np.inf
            np.testing.assert_allclose(best[found], expected[found], atol=1e-9)
            np.testing.assert_allclose(best[found], np.take_along_axis(free, where, 0)[found], atol=1e-9)
            least = np.sort((expected + work.c)[~found])
            helps = np.sort((expected + work.c)[expected + work.c < -solver.data.tol])
            if depth == 1:
                assert not (least < -solver.data.tol).any(), "every pair that helps is found"
            elif helps.size:  # as many as a list holds, and the next one
                assert not (least < helps[min(effort.list_size, helps.size - 1)]).any()


def test_ctrl_c_in_a_scan_is_heard(monkeypatch):
    """An exception cannot pass through compiled functions: it is raised behind them."""
    X, Y, a, b = clouds(2)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Pricing, "columns", interrupted)
    with pytest.raises(KeyboardInterrupt):
        st.solve_sample(X, Y, a, b, budget=20, kernels=st.RBF(), effort=LISTED, lazy=True)


def test_small_problems_and_matrices_are_scanned():
    """Pricing is for lazy costs of many pairs; distances in many dimensions that are not squared have none."""
    X, Y, a, b = clouds(9)
    for lazy, metric, above, priced in (
        (True, "sqeuclidean", 0, True),
        (True, "sqeuclidean", 2001, False),
        (False, "sqeuclidean", 0, False),
        (True, "euclidean", 0, False),
    ):
        problem = st.Problem.from_points(X, Y, a, b, metric=metric, kernels=st.RBF(), lazy=lazy)
        tuning = replace(LISTED, priced_above=above).tuning
        solver = OMPSolver(problem, Constraint(st.Uniform(5), problem.shape), tuning, listed=True)
        assert (solver.data.pricer != 0) == priced
