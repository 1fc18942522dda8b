"""Scenarios that share their links go the same way as one problem."""

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from cases import KERNELS, instance, problem_of

import sparsetransport as st
from sparsetransport import effort, shared_strategy
from sparsetransport.effort import Grown
from sparsetransport.engine.slack import Slacked

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
                assert both.path.objective[-1] == pytest.approx(both.value, rel=1e-9, abs=1e-9)
                assert (np.diff(both.path.objective) < 1e-9).all()
                assert both.path.plan_at(both.path.entries[-1]).value == pytest.approx(both.value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("effort", ["quick", "thorough"])
@pytest.mark.parametrize("seed", range(12))
def test_one_sided_scenarios_come_close_to_the_best_links(seed, effort):
    """All sets of two links are tried, and no bound is above the best, with any kernels, weights and reg."""
    rng = np.random.default_rng(seed)
    sense = str(rng.choice(["=", "<=", ">="])), str(rng.choice(["<=", ">="]))
    gram = np.exp(-np.square(rng.normal(size=3)[:, None] - rng.normal(size=3)))
    kernels = [st.Delta(), (st.Delta(), gram.T @ gram)][seed % 2]
    C, reg = rng.random((4, 3)), float(rng.choice([0.0, 0.5]))
    problems = [
        st.Problem.from_matrices(C, *masses, kernels=kernels, unbalanced=5.0, reg=reg, sense=sense)
        for masses in zip(rng.random((3, 4)) * [[0.3], [1.0], [3.0]], rng.random((3, 3)), strict=True)
    ]
    weights = np.array([0.2, 0.3, 0.5])
    pairs = [(i, j) for i in range(4) for j in range(3)]
    least = min(
        float(weights @ [st.solve_support(problem, links=links).value for problem in problems])
        for links in combinations(pairs, 2)
    )
    shared = st.solve_shared(problems, budget=2, weights=weights, effort=effort)
    assert least - 1e-9 <= shared.value <= least + 0.02 * (shared._constant - least) + 1e-9
    assert shared.certify().lower_bound <= least + 1e-9
    assert shared.path.objective[-1] == pytest.approx(shared.value, rel=1e-9)


def test_a_matching_of_one_sided_scenarios_is_the_best():
    """With `Delta` links of a matching do not touch each other's gain: an assignment finds the best ones."""
    rng = np.random.default_rng(2)
    C, masses = rng.random((4, 4)), rng.random((3, 2, 4))
    problems = [st.Problem.from_matrices(C, a, b, unbalanced=3.0, sense=(">=", "=")) for a, b in masses]
    shared = st.solve_shared(problems, budget=st.PerRow(1) & st.PerColumn(1))
    least = min(
        np.mean([st.solve_support(problem, links=list(enumerate(each))).value for problem in problems])
        for each in permutations(range(4))
    )
    assert shared.value == pytest.approx(least, rel=1e-9)


def test_fixed_links_and_callbacks_of_one_sided_scenarios():
    """Fixed links stay and count, and a callback is told of links alone."""
    rng = np.random.default_rng(0)
    C, steps = rng.random((6, 5)), []
    problems = [st.Problem.from_matrices(C, np.full(6, 0.5), b, sense=("<=", "=")) for b in rng.random((3, 5)) / 3.0]
    shared = st.solve_shared(problems, budget=4, fixed=[(5, 4)], callback=steps.append)
    assert len(shared.links) == 4
    assert shared.links[0].tolist() == [5, 4]
    assert [step.entries for step in steps[:3]] == [2, 3, 4]
    assert all(step.pair < (6, 5) and step.pair[1] < 5 for step in steps)
    stopped = st.solve_shared(problems, budget=4, callback=lambda step: step.number == 1)
    assert stopped.status is st.Status.STOPPED
    assert len(stopped.links) == 2
    again = st.solve_shared(problems, budget=4, start=shared)
    assert again.value <= shared.value + 1e-12


def test_scenarios_with_slack_share_what_they_shared():
    """Costs and kernels are made larger once for all scenarios that have the same ones."""
    first = st.Problem.from_matrices(np.random.default_rng(0).random((4, 3)), sense=("<=", "="))
    made = Slacked.of_all([first, replace(first, b=[0.2, 0.3, 0.5])])
    assert made[0].cost is made[1].cost
    assert made[0].gram_a is made[1].gram_a


def test_what_is_not_known_of_one_sided_scenarios_is_refused():
    C = np.random.default_rng(0).random((4, 3))
    options = {"budget": 3, "sense": ("<=", "=")}
    with pytest.raises(ValueError, match="with finite weights only"):
        st.solve_shared([C], unbalanced=np.inf, **options)
    with pytest.raises(ValueError, match="problems must have the same sense"):
        st.solve_shared([st.Problem.from_matrices(C, sense=sense) for sense in ("=", "<=")], budget=3)
