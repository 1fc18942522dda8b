"""One budget after another."""

from itertools import pairwise

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport import optimum


def problem_of(seed, m=30, n=25, **options):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(m, 2)), rng.normal(size=(n, 2)) + 1.0
    return st.Problem.from_points(X, Y, rng.random(m), rng.random(n), **options)


@pytest.mark.parametrize("options", [{"kernels": "delta"}, {"reg": 1.0}, {"kernels": st.RBF(0.1)}])
@pytest.mark.parametrize("seed", range(3))
def test_more_links_are_never_worse(seed, options):
    """And none is worse than a solve with that budget alone."""
    problem, budgets = problem_of(seed, **options), range(2, 60, 3)
    found = st.solve_sweep(problem, budgets=budgets)
    values = [result.value for result in found]
    assert all(after <= before * (1.0 + 1e-12) for before, after in pairwise(values))
    for budget, result in zip(budgets, found, strict=True):
        assert len(result.mass) <= budget
        assert result.value <= st.solve(problem, budget=budget).value * (1.0 + 1e-12)
        assert result.lower_bound <= result.value


def test_any_budgets_with_any_options():
    problem = problem_of(0, reg=1.0)
    budgets = [st.PerRow(1), st.PerRow(2), None]
    found = st.solve_sweep(problem, budgets=budgets, gap_tol=0.5)
    assert [np.bincount(result.rows).max() for result in found[:2]] == [1, 2]
    assert found[2].value == pytest.approx(st.solve(problem).value)


@pytest.mark.parametrize("budgets", [[24, st.PerRow(1) & st.PerColumn(3)], [40, 30, 20]], ids=str)
def test_a_plan_that_does_not_fit_does_no_harm(budgets):
    """Budgets that do not allow what those before them did are as good as alone."""
    problem = problem_of(0, 26, 22, kernels="delta")
    for budget, result in zip(budgets, st.solve_sweep(problem, budgets=budgets), strict=True):
        assert result.value <= st.solve(problem, budget=budget).value * (1.0 + 1e-12)


def test_the_unbudgeted_optimum_is_solved_once(monkeypatch):
    """Proofs of all budgets need it, and the last plan is not it."""
    solved = []
    solver = optimum.OMPSolver
    monkeypatch.setattr(optimum, "OMPSolver", lambda *args, **options: solved.append(1) or solver(*args, **options))
    for result in st.solve_sweep(problem_of(0, reg=1.0, kernels=st.RBF(0.5)), budgets=[5, 10, 15]):
        result.certify()
    assert len(solved) == 1


def test_a_callback_ends_it():
    found = st.solve_sweep(problem_of(0), budgets=[5, 10, 15], callback=lambda step: step.entries == 7)
    assert [result.status is st.Status.STOPPED for result in found] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((problem_of(0),), {}, TypeError, "budgets must be a list of budgets, got None"),
        ((problem_of(0),), {"budgets": 5}, TypeError, "budgets must be a list of budgets, got 5"),
        ((problem_of(0),), {"budgets": "many"}, TypeError, "budget must be a positive int.*got 'm'"),
        ((problem_of(0),), {"budgets": [5, 0]}, ValueError, "budget must be a positive int, got 0"),
        ((problem_of(0),), {"budgets": [5], "method": "best"}, ValueError, "method"),
        ((problem_of(0),), {"budgets": [5], "budget": 3}, TypeError, "budget must not be given to solve_sweep"),
    ],
)
def test_bad_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        st.solve_sweep(*arguments, **options)
