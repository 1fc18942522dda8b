"""Short lists of pairs: who is on them, and growing from them within a budget."""

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.engine.room import Constraint
from sparsetransport.forest.lists import first_that_fit, grow, lists_of, priced_keys
from sparsetransport.forest.trees import bare, links, plant
from sparsetransport.geometry.pricing import Pricing

NONE = np.zeros(0, np.int64)


def some_problem(m=12, n=9, seed=0):
    rng = np.random.default_rng(seed)
    return st.Problem.from_matrices(rng.random((m, n)), rng.random(m), rng.random(n), unbalanced=(3.0, 2.0))


def forest_of(problem, budget=None, rows=NONE, cols=NONE):
    forest = bare(problem, Constraint(budget, problem.shape).room())
    plant(forest, rows, cols, np.ones(rows.size))
    return forest


def test_a_pair_is_on_the_lists_of_both_of_its_points_once_with_its_cost():
    cost = np.random.default_rng(0).random((5, 4))
    cost[2, 3] = np.inf
    problem = st.Problem.from_matrices(cost, unbalanced=1.0)
    lists = lists_of(Pricing(problem.cost), np.array([0, 3, 3, 11, 17, 0]))
    assert list(zip(lists.rows, lists.cols - 5, strict=True)) == [(0, 0), (0, 3), (4, 1)], "11 is forbidden"
    found = {
        (point, int(lists.other[e])): lists.cost[e]
        for point in range(9)
        for e in range(lists.first[point], lists.first[point + 1])
    }
    wanted = {(i, j + 5): cost[i, j] for i, j in [(0, 0), (0, 3), (4, 1)]}
    assert found == wanted | {(j, i): value for (i, j), value in wanted.items()}


def test_the_cheapest_pairs_are_listed_now_and_after_a_cut():
    problem = some_problem()
    m, n = problem.shape
    forest = forest_of(problem, None, np.arange(9), np.arange(9))
    keys = set(priced_keys(Pricing(problem.cost), forest, 2).tolist())
    cost = problem.cost.rows(0, m)
    cut = forest.potential.copy()
    for link in np.flatnonzero(forest.mass > 0.0):
        for side in range(2):
            cut[forest.ends[side, link]] = forest.cut[side, link]
    assert (cut >= forest.potential - 1e-12).all()
    for potential in (forest.potential, cut):
        by_row, by_col = cost - potential[m:], cost - potential[:m, None]
        assert keys >= {i * n + int(j) for i in range(m) for j in np.argsort(by_row[i])[:2]}
        assert keys >= {int(i) * n + j for j in range(n) for i in np.argsort(by_col[:, j])[:2]}


@pytest.mark.parametrize("budget", [st.PerRow(1), st.PerRow(2) & st.PerColumn(3), st.Uniform(7)])
def test_first_come_first_served_and_nothing_is_taken(budget):
    problem = some_problem()
    rows, cols = np.divmod(np.random.default_rng(1).permutation(108)[:40], 9)
    room = Constraint(budget, problem.shape).room()
    before = room.left.copy()
    held = []
    for pair in zip(rows.tolist(), cols.tolist(), strict=True):
        held += [pair] if budget.can_add(held, pair) else []
    fit = first_that_fit(room, rows, cols)
    assert list(zip(rows[fit].tolist(), cols[fit].tolist(), strict=True)) == held
    assert (room.left == before).all()


def test_growing_links_in_order_where_trees_are_as_they_were():
    problem = some_problem()
    forest = forest_of(problem, st.PerRow(1))
    rows, cols = np.array([3, 3, 4, 5]), np.array([0, 1, 0, 2]) + 12
    assert grow(forest, rows, cols) == 2
    found = links(forest)
    assert set(zip(found[0].tolist(), found[1].tolist(), strict=True)) == {(3, 0), (5, 2)}
    assert grow(forest, rows, cols) == 1, "the tree of column 0 was settled before this time"
