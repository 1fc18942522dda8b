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
