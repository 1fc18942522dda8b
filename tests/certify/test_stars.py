"""Stars: the bound of budgets of one link a row or column, against brute force over all supports."""

import time

import numpy as np
import pytest
from cases import Instance

import sparsetransport as st
from sparsetransport.budgets import as_matroid, limits_of
from sparsetransport.certify import stars
from sparsetransport.certify.strongest import BOUNDS, Task

STARS = next(each for each in BOUNDS if each.name == "stars")


def delta_problem(case):
    """With `Delta` kernels, not the Gram matrices of them."""
    return st.Problem.from_matrices(case.C, case.a, case.b, unbalanced=case.unbalanced, reg=case.reg)


def at_most(support, line, most):
    return np.bincount([pair[line] for pair in support]).max() <= most


def rows_once(support):
    return at_most(support, 0, 1)


def columns_once(support):
    return at_most(support, 1, 1)


def rows_once_and_two(support):
    return len(support) <= 2 and rows_once(support)


def rows_once_columns_twice(support):
    return rows_once(support) and at_most(support, 1, 2)


BUDGETS = {
    "row": (st.PerRow(1), rows_once),
    "column": (st.PerColumn(1), columns_once),
    "row and 2": (st.PerRow(1) & st.Uniform(2), rows_once_and_two),
    "row and 2 a column": (st.PerRow(1) & st.PerColumn(2), rows_once_columns_twice),
}


def random_case(seed, lowest=-0.3):
    """Uneven masses, some of them zero, unequal weights, with and without ``reg`` and forbidden pairs."""
    rng = np.random.default_rng(seed)
    m, n = (4, 3) if seed % 2 else (3, 4)
    a, b = rng.lognormal(size=m), rng.lognormal(size=n)
    a[0] *= seed % 7 > 0
    b[0] *= seed % 11 > 0
    C = np.where(rng.random((m, n)) < 0.2 * (seed % 3 == 0), np.inf, lowest + rng.random((m, n)))
    weights = tuple(np.exp(rng.normal(size=2)))
    return Instance(C, a, b, np.eye(m), np.eye(n), weights, (0.0, 0.5)[seed % 4 == 1])


def task_of(problem, result, budget, seconds=60.0):
    plan = result._parts.rows, result._parts.cols, result._parts.mass
    limits, proof = limits_of(as_matroid(budget), problem.shape), result.certify()
    return Task(
        problem, limits, plan, result.value, time.monotonic() + seconds, 1e-9, st.THOROUGH, ((proof.u, proof.v),)
    )


@pytest.mark.parametrize("name", BUDGETS)
@pytest.mark.parametrize("effort", ["default", st.BARE])
def test_the_bound_is_the_optimum(name, effort):
    """Tiny problems close: the bound is the optimum by brute force, never above it, and the plan reaches it."""
    budget, allowed = BUDGETS[name]
    better = 0
    for seed in range(40):
        case = random_case(seed)
        problem = delta_problem(case)
        result = st.solve(problem, budget=budget, effort=effort)
        assert STARS.applies(problem, limits_of(budget, problem.shape))
        proof = STARS.run(task_of(problem, result, budget))
        best, size = case.optimum(allowed), max(case.constant(), 1.0)
        value = result.value
        if proof.plan is not None:
            value = problem.value(*proof.plan)
            rows, cols, mass = proof.plan
            assert allowed(tuple(zip(rows.tolist(), cols.tolist(), strict=True)))
            assert (mass > 0.0).all()
            assert value < result.value
            better += 1
        assert proof.bound <= best + 1e-13 * size
        assert proof.bound >= best - 1e-6 * size
        assert value == pytest.approx(best, abs=1e-9 * size)
    assert better > 0 or effort == "default"


def test_plans_of_medium_problems_are_proven_optimal():
    """Also a poor one, in whose place the best one comes back; by the names that users call."""
    rng = np.random.default_rng(3)
    a, b = rng.lognormal(size=25), rng.lognormal(size=20)
    problem = st.Problem.from_matrices(rng.random((25, 20)), a / a.sum(), b / b.sum())
    found = st.solve(problem, budget=st.PerRow(1), gap_tol=1e-9, effort=st.BARE)
    assert found.status is st.Status.OPTIMAL_PROVEN
    assert found.value <= st.solve(problem, budget=st.PerRow(1)).value * (1.0 + 1e-12)
    assert found.relative_gap <= 1e-9
    certificate = st.solve(problem, budget=st.PerRow(1), effort=st.BARE).certify(effort="thorough")
    assert certificate.better.value == pytest.approx(found.value, rel=1e-12)
    assert certificate.log[-1].name == "stars"


def test_a_bound_that_has_no_time_is_a_bound():
    """Stopped anywhere, it is below the optimum; without time it is minus infinity."""
    rng = np.random.default_rng(5)
    a, b = rng.lognormal(size=30), rng.lognormal(size=30)
    problem, budget = st.Problem.from_matrices(rng.random((30, 30)), a / a.sum(), b / b.sum()), st.PerRow(1)
    result = st.solve(problem, budget=budget)
    best = STARS.run(task_of(problem, result, budget)).bound
    bounds = [STARS.run(task_of(problem, result, budget, seconds)).bound for seconds in (0.0, 0.02, 0.05, 0.1)]
    assert bounds[0] == -np.inf
    assert max(bounds) <= best + 1e-9 * best


@pytest.mark.parametrize("budget", [st.PerRow(2), st.Uniform(3), st.PerRow(2) & st.PerColumn(2)])
def test_it_does_not_apply_to_more_links_a_line(budget):
    problem = st.Problem.from_matrices(np.ones((3, 4)))
    assert not stars.applies(problem, limits_of(budget, (3, 4)))


def test_it_does_not_apply_to_other_kernels_or_large_problems():
    points = np.random.default_rng(0).random((6, 2))
    problem = st.Problem.from_points(points, points)
    assert not stars.applies(problem, limits_of(st.PerRow(1), (6, 6)))
    large = st.Problem.from_matrices(np.ones((600, 600)))
    assert stars.prove(large, limits_of(st.PerRow(1), (600, 600)), None, 0.0, np.inf, st.DEFAULT, None) == (
        -np.inf,
        None,
    )


def test_rows_without_capacity_stay_empty():
    case = random_case(3)
    problem, budget = delta_problem(case), st.PerRow([1, 0, 1, 1])
    result = st.solve(problem, budget=budget)
    bound = STARS.run(task_of(problem, result, budget)).bound
    best = case.optimum(lambda support: rows_once(support) and all(i != 1 for i, _ in support))
    assert best - 1e-6 <= bound <= best + 1e-13
