"""Plans within a budget on short lists: what they keep to, that they only get better, and that they can be stopped."""

from dataclasses import replace

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport import effort
from sparsetransport.budgets import as_matroid
from sparsetransport.engine.room import Constraint
from sparsetransport.forest.listed_solver import ListedSolver
from sparsetransport.geometry.pricing import Pricing
from sparsetransport.plan import nothing
from sparsetransport.result import Status

LABELS = np.arange(80 * 70).reshape(80, 70) % 7
BUDGETS = [
    st.PerRow(1),
    st.PerRow(2),
    st.PerColumn([1, 2] * 35),
    st.PerRow(1) & st.PerColumn(1),
    st.Laminar(st.PerRow(2), st.Uniform(90)),
    st.Partition(LABELS, [9, 1, 0, 5, 40, 40, 40]),
    30,
]


def some_problem(seed=0, m=80, n=70):
    rng = np.random.default_rng(seed)
    a, b = (np.exp(0.7 * rng.normal(size=k)) for k in (m, n))
    return st.Problem.from_points(rng.random((m, 2)), rng.random((n, 2)) ** 2, a, b, kernels=st.Delta(), unbalanced=1.0)


def solver_of(problem, budget, **options):
    constraint, pricing = Constraint(as_matroid(budget), problem.shape), Pricing(problem.cost)
    return ListedSolver(problem, constraint, effort.Listed(), pricing, **options)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_plans_keep_the_budget_and_are_nearly_as_good_as_the_default(budget):
    problem = some_problem()
    solver = solver_of(problem, budget)
    free = st.solve(problem)
    solver.begin(free.rows, free.cols, free.mass)
    before = solver.current
    solver.refine(-np.inf, 0.0)
    plan = solver.outcome()
    matroid = as_matroid(budget)
    pairs = list(zip(plan.rows.tolist(), plan.cols.tolist(), strict=True))
    assert all(matroid.can_add(pairs[:k], pair) for k, pair in enumerate(pairs))
    value = problem.value(plan.rows, plan.cols, plan.mass)
    assert value <= before
    assert value <= 1.2 * st.solve(problem, budget=budget).value
    np.testing.assert_allclose(value, st.solve_support(problem, links=pairs).value, rtol=1e-10)
    assert plan.status is Status.PRICED


def test_a_close_bound_is_enough():
    problem = some_problem()
    solver = solver_of(problem, st.PerRow(1))
    solver.begin(*nothing())
    solver.refine(0.0, 1.0)
    assert solver.outcome().rows.size == 0, "every plan is within 100 % of zero"


def test_the_callback_follows_and_stops_it():
    problem, told = some_problem(), []
    solver = solver_of(problem, st.PerRow(2), callback=lambda step: told.append(step.objective) or len(told) == 2)
    solver.begin(*nothing())
    solver.refine(-np.inf, 0.0)
    plan = solver.outcome()
    assert plan.status is Status.STOPPED
    assert told[1] < told[0]
    assert problem.value(plan.rows, plan.cols, plan.mass) == pytest.approx(told[1], rel=1e-12)


def test_after_the_deadline_it_stops_with_what_it_has():
    problem = some_problem()
    solver = solver_of(problem, st.PerRow(2), deadline=0.0)
    solver.begin(*nothing())
    solver.refine(-np.inf, 0.0)
    plan = solver.outcome()
    assert plan.status is Status.STOPPED
    assert plan.rows.size > 0
    assert len(plan.record) >= plan.rows.size


def test_longer_lists_and_more_rounds_change_the_plan():
    problem, values = some_problem(), set()
    for change in ({}, {"lists": 1}, {"rounds": 1}, {"lists": 1, "anew": 1.0, "rounds": 1}, {"grown": 0.99}):
        solver = solver_of(problem, 40)
        solver.how = replace(solver.how, **change)
        solver.begin(*nothing())
        solver.refine(-np.inf, 0.0)
        values.add(round(solver.current, 9))
    assert len(values) >= 3
