"""Scenarios that share their links go the same way as one problem."""

from dataclasses import replace

import numpy as np
import pytest
from cases import KERNELS, instance, problem_of

import sparsetransport as st
from sparsetransport import effort, shared_strategy
from sparsetransport.effort import Grown

BUDGETS = {"few": 6, "row": st.PerRow(1), "column": st.PerColumn(2), "matching": st.PerRow(1) & st.PerColumn(1)}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_one_scenario_is_no_worse_than_one_problem(kernel, budget):
    for seed in range(4):
        problem = problem_of(seed, 9, 8, kernel, 0.05 * (seed % 2), (10.0, 10.0))
        alone, shared = st.solve(problem, budget=budget), st.solve_shared([replace(problem)], budget=budget)
        assert shared.value <= alone.value * (1.0 + 1e-9)
        assert len(shared.links) <= problem.shape[0] * problem.shape[1]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", range(4))
def test_equal_scenarios_are_one_problem(kernel, seed):
    problem = problem_of(seed, 9, 8, kernel, 0.05 * (seed % 2), (10.0, 10.0))
    one = st.solve_shared([problem], budget=6)
    many = st.solve_shared([problem] * 3, budget=6, weights=[0.2, 0.5, 0.3])
    assert many.value == pytest.approx(one.value, rel=1e-6)


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("kernel", ["delta", "rbf"])
@pytest.mark.parametrize(
    ("less", "more"),
    [(st.BARE, "quick"), (st.BARE, "default"), ("default", "thorough")],
    ids=["bare-quick", "bare-default", "default-thorough"],
)
def test_more_effort_for_scenarios_is_never_worse(budget, kernel, less, more):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        first = problem_of(seed, 9, 8, kernel, 0.05, (10.0, 10.0))
        problems = [replace(first, b=rng.random(8)) for _ in range(3)]
        before, after = (st.solve_shared(problems, budget=budget, effort=how).value for how in (less, more))
        assert after <= before * (1.0 + 1e-12)


def test_scenarios_begin_with_the_plan_of_their_mean_too(monkeypatch):
    """If that does not take too long."""
    rng = np.random.default_rng(0)
    first = instance(0, 9, 8, "rbf", 0.05, (10.0, 10.0)).problem()
    problems = [replace(first, b=rng.random(8)) for _ in range(3)]
    solved = []
    original = shared_strategy.find
    monkeypatch.setattr(shared_strategy, "find", lambda search: solved.append(search.problem.b) or original(search))
    st.solve_shared(problems, budget=6)
    np.testing.assert_allclose(solved, [np.mean([one.b for one in problems], axis=0)])
    solved.clear()
    st.solve_shared(problems, budget=6, effort=replace(st.DEFAULT, starts=(Grown(), effort.Mean(operations=10.0))))
    assert not solved


# --- one-sided marginals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [st.Delta(), st.RBF(0.5)], ids=repr)
@pytest.mark.parametrize("sense", [("<=", "="), ("=", ">="), (">=", "<="), "<="], ids=str)
def test_one_sided_marginals_of_scenarios(kernel, sense):
    """One scenario is about one problem; masses of several are the best on their links, and bounds are below."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, Y, a = rng.normal(size=(10, 2)), rng.normal(size=(8, 2)) + 0.5, 1.5 * rng.dirichlet(np.ones(10))
        problems = [
            st.Problem.from_points(X, Y, a, b, kernels=kernel, sense=sense, unbalanced=20.0)
            for b in rng.dirichlet(np.ones(8), 3)
        ]
        for budget in (9, st.PerRow(1)):
            alone, shared = st.solve(problems[0], budget=budget), st.solve_shared(problems[:1], budget=budget)
            assert shared.value == pytest.approx(alone.value, rel=0.05, abs=1e-9)
            both = st.solve_shared(problems, budget=budget)
            assert both.lower_bound <= both.value + 1e-12
            assert len(both.links) <= (9 if budget == 9 else 10)
            assert (both.links < (10, 8)).all()
            again = [st.solve_support(problem, links=both.links).value for problem in problems]
            np.testing.assert_allclose(both.values, again, rtol=1e-9, atol=1e-12)
            if len(both.path):
                assert both.path.plan_at(both.path.entries[-1]).value >= both.value * (1.0 - 1e-9) - 1e-12


def test_what_is_not_known_of_one_sided_scenarios_is_refused():
    C = np.random.default_rng(0).random((4, 3))
    options = {"budget": 3, "sense": ("<=", "=")}
    with pytest.raises(ValueError, match=r"problems\[0\]: reg must be 0"):
        st.solve_shared([C], reg=0.1, **options)
    with pytest.raises(ValueError, match="callback must be None in solve_shared"):
        st.solve_shared([C], callback=print, **options)
    with pytest.raises(ValueError, match="with finite weights only"):
        st.solve_shared([C], unbalanced=np.inf, **options)
    with pytest.raises(ValueError, match="problems must have the same sense"):
        st.solve_shared([st.Problem.from_matrices(C, sense=sense) for sense in ("=", "<=")], budget=3)
