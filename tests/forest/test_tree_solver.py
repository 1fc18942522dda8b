"""The driver of local search on trees: what it begins with, tells, and where it ends."""

from dataclasses import replace

import numpy as np
import pytest
from cases import clouds, support

import sparsetransport as st
from sparsetransport.budgets import as_matroid
from sparsetransport.effort import Perturb, TreeSearch
from sparsetransport.engine.room import Constraint
from sparsetransport.forest import simplex, tree_solver
from sparsetransport.forest import trees as forest
from sparsetransport.optimum import as_outcome

NOTHING = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
GROUPS = np.arange(14 * 11).reshape(14, 11) % 7


def room_of(budget, shape=(14, 11)):
    return Constraint(as_matroid(budget), shape).room()


def test_shrinking_cuts_what_is_least_worth():
    problem = clouds(4)
    full = simplex.optimum(problem, *NOTHING)
    for budget in (5, 12, st.PerRow(1), st.Partition(GROUPS, 1)):
        trees = forest.bare(problem, room_of(budget))
        forest.plant(trees, *full)
        least_worth, planted = trees.worth[trees.mass > 0.0].argmin(), forest.links(trees)
        tree_solver.shrink(trees)
        assert (trees.room.left >= 0).all()
        rows, cols, _ = forest.links(trees)
        if isinstance(budget, int):
            assert (planted[0][least_worth], planted[1][least_worth]) not in zip(rows, cols, strict=True)


def test_pauses_change_nothing(monkeypatch):
    problem, short = clouds(5, 30, 25), replace(st.DEFAULT, tree_finish=())
    perturbed = st.solve(problem, budget=st.PerRow(2))
    monkeypatch.setattr(tree_solver, "_OPERATIONS", 1.0)
    paused = st.solve(problem, budget=st.PerRow(2), effort=short)
    monkeypatch.setattr(tree_solver, "_OPERATIONS", 1e9)
    assert support(paused) == support(st.solve(problem, budget=st.PerRow(2), effort=short))
    assert perturbed.value <= paused.value


def test_a_callback_hears_of_better_plans_and_may_stop():
    problem, steps = clouds(6, 30, 25), []
    whole = st.solve(problem, budget=40, callback=steps.append)
    assert [step.number for step in steps] == sorted(step.number for step in steps)
    assert steps[-1].objective == pytest.approx(whole.value)
    assert len({step.objective for step in steps if step.entries == 40}) > 1
    stopped = st.solve(problem, budget=40, callback=lambda step: step.objective < steps[39].objective)
    assert stopped.status is st.Status.STOPPED
    assert whole.value <= stopped.value < steps[39].objective


def test_a_gap_that_is_reached_ends_the_search(monkeypatch):
    problem, looks = clouds(9), []
    perturb = tree_solver.TreeSolver.perturb

    def counted(solver, how, *rest):
        looks.append(how)
        perturb(solver, how, *rest)

    monkeypatch.setattr(tree_solver.TreeSolver, "perturb", counted)
    thorough = st.THOROUGH.tree_improvers[-1]
    result = st.solve(problem, budget=22, gap_tol=0.5)
    assert result.status is st.Status.GAP_REACHED
    assert thorough not in looks
    result = st.solve(problem, budget=8, gap_tol=1e-12)
    assert result.status is st.Status.GAP_OPEN
    assert looks.count(thorough) == 2 * thorough.looks


def test_points_without_links():
    """Nothing pays: the plan is empty, and there is nothing to perturb."""
    problem = st.Problem.from_matrices(np.full((3, 3), 50.0), unbalanced=1.0)
    assert len(st.solve(problem, budget=2).mass) == 0
    plan = as_outcome(*NOTHING)
    constraint = Constraint(st.Uniform(2), (3, 3))
    still = tree_solver.TreeSolver(problem, constraint, plan, st.DEFAULT.tuning, tol=1e-12)
    still.begin(*NOTHING)
    still.improve(TreeSearch())
    still.perturb(Perturb(), 1e6, -np.inf, np.random.default_rng(0))
    assert not still.outcome().rows.size
