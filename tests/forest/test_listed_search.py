"""Local search on lists: with all pairs on them it is as good as the search on all pairs, and it ends."""

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport._numba.codes import LOCAL, PAUSED
from sparsetransport.budgets import as_matroid
from sparsetransport.effort import TreeSearch
from sparsetransport.engine.room import Constraint
from sparsetransport.forest.listed_search import improve, queue_of
from sparsetransport.forest.lists import lists_of
from sparsetransport.forest.tree_solver import TreeSolver
from sparsetransport.forest.trees import bare, links, plant
from sparsetransport.forest.undo_log import NEAR, REACH, new_log
from sparsetransport.geometry.pricing import Pricing
from sparsetransport.plan import Outcome, Record, nothing
from sparsetransport.result import Status

BUDGETS = [st.PerRow(1), st.PerRow(2), st.PerColumn(1), st.PerRow(2) & st.PerColumn(2), 40, 10]


def some_problem(seed=0, m=50, n=40):
    rng = np.random.default_rng(seed)
    a, b = (np.exp(0.7 * rng.normal(size=k)) for k in (m, n))
    return st.Problem.from_points(rng.random((m, 2)), rng.random((n, 2)) ** 2, a, b, kernels=st.Delta(), unbalanced=1.0)


def searched(problem, budget, keys, limit=np.inf):
    points = sum(problem.shape)
    forest = bare(problem, Constraint(as_matroid(budget), problem.shape).room())
    plant(forest, *nothing())
    log, whole = new_log(points), new_log(points)
    log.counts[NEAR] = log.counts[REACH] = 16
    queue, effort = queue_of(np.arange(points), points), np.zeros(1)
    lists = lists_of(Pricing(problem.cost), keys)
    codes = []
    while not codes or codes[-1] == PAUSED:
        codes.append(improve(forest, log, whole, queue, lists, 1e-12, 1e-9, effort, effort[0] + limit))
    assert codes[-1] == LOCAL
    return links(forest), len(codes)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_with_all_pairs_listed_it_is_as_good_as_with_all_pairs(budget):
    ratios = []
    for seed in range(3):
        problem = some_problem(seed)
        plan, _ = searched(problem, budget, np.arange(2000))
        matroid = as_matroid(budget)
        room = Constraint(matroid, problem.shape).room()
        assert (room.left[1:51] >= np.bincount(plan[0], minlength=50)).all()
        assert (room.left[51:] >= np.bincount(plan[1], minlength=40)).all()
        assert plan[0].size <= room.left[0]
        empty = Outcome(*nothing(), Status.LOCAL, (), Record(), True)
        other = TreeSolver(problem, Constraint(matroid, problem.shape), empty, st.DEFAULT.tuning, tol=1e-12)
        other.begin(*nothing())
        other.improve(TreeSearch())
        ratios.append(problem.value(*plan) / other.current)
    assert np.mean(ratios) < 1.1


def test_masses_are_the_best_on_its_links_and_all_links_are_listed():
    problem = some_problem()
    keys = np.random.default_rng(0).permutation(2000)[:400]
    (rows, cols, mass), _ = searched(problem, st.PerRow(2), keys)
    assert rows.size > 30
    exact = st.solve_support(problem, links=list(zip(rows.tolist(), cols.tolist(), strict=True)))
    np.testing.assert_allclose(problem.value(rows, cols, mass), exact.value, rtol=1e-10)
    again, pauses = searched(problem, st.PerRow(2), keys, limit=200.0)
    assert pauses > 3
    np.testing.assert_array_equal(again[2], mass)
