"""The next pair to add is the free pair with the smallest gradient, as NumPy finds it on dense arrays."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from cases import QUADRANTS, TINY_BUDGETS, instance

import sparsetransport as st
from sparsetransport.budgets import as_matroid
from sparsetransport.engine import grow, scan
from sparsetransport.engine.omp_solver import OMPSolver
from sparsetransport.engine.room import Constraint
from sparsetransport.engine.state import refresh
from sparsetransport.plan import new_trace

TUNING = replace(st.DEFAULT, list_refresh=0.0).tuning  # a list is filled anew for every step


def solver_of(problem, budget, *, listed=False, tuning=TUNING):
    return OMPSolver(problem, Constraint(as_matroid(budget), problem.shape), tuning, listed=listed)


def dense_plan(solver):
    plan = np.zeros(solver.problem.shape)
    size = solver.size
    plan[tuple(solver.work.factor.label[:, :size])] = solver.work.factor.mass[:size]
    return plan


def free_gradient(case, solver, matroid):
    """The gradient at the present plan; inf on the support and where the matroid allows nothing."""
    gradient, support = oracles.gradient(*case.arrays, dense_plan(solver)), solver.support()
    for i, j in np.ndindex(case.shape):
        if (i, j) in support or not (matroid is None or matroid.can_add(support, (i, j))):
            gradient[i, j] = np.inf
    return gradient


def one_step(solver):
    """The pair that the compiled loop adds next, None if it ends."""
    trace = new_trace(1, len(solver.work.factor.mass))
    grow.grow(solver.data, solver.work, trace, solver.effort, np.inf)
    return tuple(trace.added[:, 0].tolist()) if trace.steps[0] else None


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("budget", TINY_BUDGETS)
@pytest.mark.parametrize("kernel", ["delta", "rbf"])
def test_every_step_adds_the_free_pair_with_the_smallest_gradient(kernel, budget, listed):
    """Compiled, and by the same source as plain Python, with row, column and group capacities, list or not."""
    matroid, steps = as_matroid(TINY_BUDGETS[budget].matroid), 0
    for seed in range(4):
        case = instance(seed, 4, 4, kernel, 0.1, (10.0, 5.0))
        solver = solver_of(case.problem(), matroid, listed=listed)
        while True:
            gradient = free_gradient(case, solver, matroid)
            best = np.unravel_index(gradient.argmin(), gradient.shape)
            if not gradient.min() < -solver.data.tol:
                break
            value, *pair = scan.next_pair(solver.data, solver.work)
            assert tuple(pair) == best
            assert value == pytest.approx(gradient.min(), rel=1e-9)
            grow.start_afresh(solver.work)
            assert one_step(solver) == best
            steps += 1
        assert one_step(solver) is None
    assert steps > 8


def test_a_full_budget_leaves_no_pair():
    case = instance(0)
    solver = solver_of(case.problem(), st.PerRow(1))
    solver.grow()
    assert scan.next_pair(solver.data, solver.work) == (np.inf, -1, -1)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("budget", [None, st.PerRow(1), st.Partition(np.tile(QUADRANTS, (30, 2)), [3, 1, 2, 1])])
def test_the_smallest_of_every_column(budget, counted, lazy):
    """Off the support, and in free rows and groups if that counts, for more rows than one block of a lazy cost."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(120, 2)), rng.normal(size=(8, 2))
    problem = st.Problem.from_points(X, Y, rng.random(120), rng.random(8), kernels="rbf", unbalanced=5.0, lazy=lazy)
    solver = solver_of(problem, budget)
    solver.grow(entries=6)
    refresh(solver.data, solver.work)
    scan.scan_columns(solver.data, solver.work, counted)
    expected = problem.cost.rows(0, 120) + solver.work.r[:, None]
    for i, j in np.ndindex(problem.shape):
        if (i, j) in solver.support():
            expected[i, j] = np.inf
        elif counted and budget is not None:
            # columns are free here, so the matroid speaks of rows and groups
            expected[i, j] = expected[i, j] if budget.can_add(solver.support(), (i, j)) else np.inf
    np.testing.assert_allclose(solver.work.best[0], expected.min(axis=0), rtol=1e-9, atol=1e-12)
    for j in range(8):
        row = expected[:, j].argmin() if np.isfinite(expected[:, j]).any() else -1
        assert scan.find_row(solver.data, solver.work, j, counted) == row


def test_a_list_that_has_aged_knows_the_present_gradient():
    """Its pair need not be the best of all, but it is free, and its present gradient is negative."""
    case = instance(3, 14, 11, "rbf", 0.1, (20.0, 20.0))
    matroid = st.PerColumn(2)
    solver = solver_of(case.problem(), matroid, listed=True, tuning=replace(st.DEFAULT, list_slack=0.0).tuning)
    aged = 0
    while True:
        gradient = free_gradient(case, solver, matroid)
        trace = new_trace(1, len(solver.work.factor.mass))
        before = solver.work.list_state[1]
        grow.grow(solver.data, solver.work, trace, solver.effort, np.inf)
        if not trace.steps[0]:
            break
        pair = tuple(trace.added[:, 0].tolist())
        assert gradient[pair] < 0.0
        if 0.0 < solver.work.list_state[1] < before:
            aged += 1
        else:
            assert pair == np.unravel_index(gradient.argmin(), gradient.shape)
    assert aged > 3
