"""Split stars: the bound of budgets of several links a line, against brute force over all supports."""

import time

import numpy as np
import pytest
from cases import Instance

import sparsetransport as st
from sparsetransport.budgets import as_matroid, limits_of
from sparsetransport.certify import split_stars
from sparsetransport.certify.strongest import BOUNDS, Task

SPLIT = next(each for each in BOUNDS if each.name == "split stars")


def at_most(support, line, most):
    return np.bincount([pair[line] for pair in support]).max() <= most


def three(support):
    return len(support) <= 3


def five(support):
    return len(support) <= 5


def rows_twice(support):
    return at_most(support, 0, 2)


def columns_twice(support):
    return at_most(support, 1, 2)


def rows_twice_and_four(support):
    return len(support) <= 4 and rows_twice(support)


def one_row_twice(support):
    links = np.bincount([pair[0] for pair in support], minlength=3)
    return bool((links <= [1, 2, 1]).all())


BUDGETS = {
    "three": (st.Uniform(3), three),
    "five": (st.Uniform(5), five),
    "rows": (st.PerRow(2), rows_twice),
    "columns": (st.PerColumn(2), columns_twice),
    "rows and four": (st.PerRow(2) & st.Uniform(4), rows_twice_and_four),
    "one row twice": (st.PerRow([1, 2, 1]), one_row_twice),
}


def random_case(seed):
    """Uneven masses, some of them zero, unequal weights, some with negative costs, ``reg`` or forbidden pairs."""
    rng = np.random.default_rng(seed)
    a, b = rng.lognormal(size=3), rng.lognormal(size=3)
    a[0] *= seed % 7 > 0
    b[0] *= seed % 11 > 0
    C = np.where(rng.random((3, 3)) < 0.2 * (seed % 3 == 0), np.inf, rng.random((3, 3)) - 0.3 * (seed % 2))
    weights = tuple(np.exp(rng.normal(size=2)))
    return Instance(C, a, b, np.eye(3), np.eye(3), weights, (0.0, 0.5)[seed % 4 == 1])


def task_of(problem, budget, seconds=60.0):
    result = st.solve(problem, budget=budget)
    plan = result._parts.rows, result._parts.cols, result._parts.mass
    limits, proof = limits_of(as_matroid(budget), problem.shape), result.certify()
    return Task(
        problem, limits, plan, result.value, time.monotonic() + seconds, 1e-9, st.THOROUGH, ((proof.u, proof.v),)
    )


@pytest.mark.parametrize("name", BUDGETS)
def test_the_bound_is_never_above_the_best_plan(name):
    """Nor weak: on the average of random problems it leaves less of the gap than the bound of the dual."""
    budget, allowed = BUDGETS[name]
    left = []
    for seed in range(20):
        case = random_case(seed)
        problem = st.Problem.from_matrices(case.C, case.a, case.b, unbalanced=case.unbalanced, reg=case.reg)
        assert SPLIT.applies(problem, limits_of(budget, problem.shape))
        proof = SPLIT.run(task_of(problem, budget))
        best, size = case.optimum(allowed), max(case.constant(), 1.0)
        assert proof.plan is None
        assert proof.bound <= best + 1e-13 * size
        left.append((best - proof.bound) / size)
    assert np.mean(left) < 0.02, "of the objective of the empty plan"
    assert np.median(left) < 0.01


def test_half_as_many_links_as_points():
    """Points in the square and uneven masses: the unbudgeted optimum leaves a fifth, the stars next to nothing."""
    rng = np.random.default_rng(12)
    X, Y, a, b = rng.random((12, 2)), rng.random((12, 2)), rng.lognormal(size=12), rng.lognormal(size=12)
    problem = st.Problem.from_matrices(st.cost_matrix(X, Y), a / a.sum(), b / b.sum())
    result = st.solve(problem, budget=6)
    assert result.relative_gap > 0.05
    certificate = result.certify(effort="thorough", gap_tol=1e-4)
    assert certificate.relative_gap < 0.02
    assert "split stars" in {each.name for each in certificate.log}


def test_either_side_may_be_the_one_that_is_split():
    """Random costs: the best plan splits rows and no column, or the other way about; both are closed."""
    rng = np.random.default_rng(11)
    C, a, b = rng.random((12, 12)), rng.lognormal(size=12), rng.lognormal(size=12)
    gaps = []
    for costs, *masses in ((C, a, b), (C.T, b, a)):
        task = task_of(st.Problem.from_matrices(costs, *masses), st.Uniform(6))
        gaps.append(1.0 - SPLIT.run(task).bound / task.value)
        assert gaps[-1] < 1e-3
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-3)


def test_a_bound_without_time_is_minus_infinity():
    problem = st.Problem.from_matrices(np.random.default_rng(0).random((5, 5)))
    assert SPLIT.run(task_of(problem, 4, 0.0)).bound == -np.inf


def test_it_applies_to_deltas_and_to_more_than_a_link_a_line():
    points = np.random.default_rng(0).random((6, 2))
    kernels = st.Problem.from_points(points, points)
    assert not split_stars.applies(kernels, limits_of(st.PerRow(2), (6, 6)))
    problem = st.Problem.from_matrices(np.ones((6, 6)))
    assert not split_stars.applies(problem, limits_of(st.PerRow(1), (6, 6)))
    large = st.Problem.from_matrices(np.ones((300, 300)))
    limits = limits_of(st.PerRow(2), (300, 300))
    assert split_stars.prove(large, limits, None, 1.0, 0.0, np.inf, st.DEFAULT, None) == -np.inf
