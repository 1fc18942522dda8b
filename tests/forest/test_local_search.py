"""Local search on trees: links for others, with delta kernels and no reg."""

from dataclasses import replace

import numpy as np
import pytest
from cases import clouds, least, no_cycle, odd, support

import sparsetransport as st
from sparsetransport.budgets import as_matroid
from sparsetransport.effort import TreeSearch
from sparsetransport.engine.room import Constraint, fits
from sparsetransport.forest import local_search, undo_log
from sparsetransport.forest import trees as forest

NOTHING = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
GROUPS = np.arange(14 * 11).reshape(14, 11) % 7
BUDGETS = {
    "few": 6,
    "as many as points of a side": 14,
    "most": 20,
    "rows": st.PerRow(1),
    "columns": st.PerColumn(2),
    "both": st.PerRow(2) & st.PerColumn(2),
    "in all too": st.PerRow(2) & 17,
    "groups": st.Partition(GROUPS, 2),
}


def room_of(budget, shape=(14, 11)):
    return Constraint(as_matroid(budget), shape).room()


def grown(problem, budget):
    """A forest that has not been improved yet."""
    plan = st.solve(problem, budget=budget, polish=False)
    trees = forest.bare(problem, room_of(budget, problem.shape))
    forest.plant(trees, plan.rows, plan.cols, plan.mass)
    return trees


def parts(problem, trees):
    log, whole = (undo_log.new_log(sum(problem.shape)) for _ in range(2))
    log.counts[undo_log.NEAR] = TreeSearch().near
    return trees, log, whole, 1e-12, 1e-12


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("seed", range(4))
def test_a_plan_is_within_its_budget_and_its_masses_are_the_best(budget, seed):
    problem = clouds(seed)
    result = st.solve(problem, budget=budget)
    assert fits(room_of(budget), result.rows, result.cols)
    assert no_cycle(support(result))
    assert (result.mass > 0.0).all()
    assert result.kkt < 1e-12
    assert result.value == pytest.approx(st.solve_support(problem, links=support(result)).value, rel=1e-12)
    assert result.lower_bound <= result.value
    assert result.value <= st.solve(problem, budget=budget, polish=False).value
    assert set(result.path.support_at(len(result.mass))) == set(support(result))
    assert result.path.objective[-1] == pytest.approx(result.value)


@pytest.mark.parametrize("seed", range(60))
def test_odd_problems(seed):
    """Ties, forbidden pairs, negative costs, empty points, weights that differ: never worse than without."""
    problem = odd(seed)
    m, n = problem.shape
    for budget in (1 + seed % (m * n), st.PerRow(1), st.PerColumn(min(m, 2)) & st.PerRow(min(n, 2))):
        plain, result = (st.solve(problem, budget=budget, polish=polish) for polish in (False, True))
        assert result.value <= plain.value * (1.0 + np.sign(plain.value) * 1e-12)
        assert np.isfinite(problem.cost.entries(result.rows, result.cols)).all()
        assert result.kkt < 1e-9
        exact = st.solve_support(problem, links=support(result)) if len(result.mass) else result
        assert result.value == pytest.approx(exact.value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_brute_force(seed):
    """Of all supports none is better than what a gap finds, and few are better than the default."""
    rng = np.random.default_rng(seed)
    m, n = 4, 3 + seed % 2
    C, a, b = rng.random((m, n)), rng.random(m), rng.random(n)
    problem = st.Problem.from_matrices(C, a, b, unbalanced=[1.0, 30.0][seed % 2])
    if seed % 4 < 2:
        count = 2 + seed % 3
        best = least(problem, lambda chosen: len(chosen) <= count)
        budget = count
    else:
        best = least(problem, lambda chosen: len({i for i, _ in chosen}) == len(chosen))
        budget = st.PerRow(1)
    assert st.solve(problem, budget=budget, gap_tol=1e-12).value == pytest.approx(best, rel=1e-9)
    assert st.solve(problem, budget=budget).value == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_a_perturbation_never_makes_it_worse_and_keeps_the_books(budget):
    problem = clouds(3)
    trees = grown(problem, budget)
    state, effort, limits = parts(problem, trees), np.zeros(1), Constraint(as_matroid(budget), (14, 11)).limits
    value = problem.value(*forest.links(trees))
    for draw in range(200):
        local_search.perturb(
            *state, undo_log.new_log(sum(problem.shape)), 0.0, np.array([draw * 7_919_317]), 8, 1e8, effort, np.inf
        )
        now = problem.value(*forest.links(trees))
        assert now <= value * (1.0 + 1e-12)
        value = now
        rows, cols, _ = forest.links(trees)
        np.testing.assert_array_equal(trees.room.left, limits.flat - used(rows, cols, limits))
        assert trees.counts[0] == 25 - len(rows)


def used(rows, cols, limits):
    """How much of the capacities of the plan, its rows, columns and groups the pairs use."""
    counts = [[len(rows)], np.bincount(rows, minlength=len(limits.rows)), np.bincount(cols, minlength=len(limits.cols))]
    groups = limits.labels[:, rows, cols]
    return np.concatenate([*counts, np.bincount(groups[groups >= 0], minlength=len(limits.groups))])


def test_a_start_is_kept():
    """Of few links and of many, with and without masses, and one with a cycle."""
    problem = clouds(7)
    best = st.solve(problem, budget=18, gap_tol=1e-9)
    cycle = [(0, 0), (0, 1), (1, 0), (1, 1)]
    for many in (500, 3):
        effort = replace(st.DEFAULT, grown_tree_links=many)
        for start in (best, support(best), best.plan):
            again = st.solve(clouds(7), budget=18, start=start, effort=effort)
            assert again.value <= best.value * (1.0 + 1e-9)
        assert st.solve(clouds(7), budget=18, start=cycle, effort=effort).value < 1.2 * best.value


def test_a_matching_is_optimal_with_delta_kernels():
    problem = clouds(8)
    result = st.solve(problem, budget=st.PerRow(1) & st.PerColumn(1))
    alone = problem.constant - sum(
        problem.constant - st.solve_support(problem, links=[pair]).value for pair in support(result)
    )
    assert result.value == pytest.approx(alone)
    assert result.value <= st.solve(problem, budget=st.PerRow(1) & st.PerColumn(1), gap_tol=1e-9).value


@pytest.mark.parametrize("budget", [15, 30, 40, st.PerRow(1), st.PerRow(2), st.PerRow(2) & st.PerColumn(2)], ids=str)
def test_longer_search_finds_little_more(budget):
    """Uneven masses, where growing and exchanges of single links ended up to twice as high."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(25, 2)) + 0.5
    C, a, b = st.cost_matrix(X, Y), rng.dirichlet(np.ones(30)), rng.dirichlet(np.ones(25))
    default, longer = (st.solve(C, a, b, budget=budget, gap_tol=gap) for gap in (None, 1e-9))
    assert longer.value <= default.value * (1.0 + 1e-12)
    assert default.value < 1.15 * longer.value
    for reg in (1e-3, 1.0):
        assert st.solve(C, a, b, budget=budget, reg=reg).value < default.value * 1.01 + reg * (default.mass**2).sum()


@pytest.mark.parametrize("seed", range(3))
def test_an_objective_far_above_that_of_the_empty_plan_ends(seed):
    """Negative costs: what counts as a gain is not below the rounding of what it is taken from."""
    rng = np.random.default_rng(seed)
    C = rng.integers(-3, 4, (24, 9)) * 1e8
    problem = st.Problem.from_matrices(C, np.ones(24), np.ones(9), unbalanced=(0.0272, 28.65))
    budget = st.Partition(rng.integers(0, 4, (24, 9)), 1)
    plain, result = (st.solve(problem, budget=budget, polish=choice) for choice in (False, True))
    assert result.value <= plain.value


def test_forbidden_pairs_of_a_long_start_are_left_out():
    rng = np.random.default_rng(0)
    C = rng.random((20, 20))
    C[rng.random((20, 20)) < 0.4] = np.inf
    start = [(int(i), int(j)) for i, j in zip(*divmod(rng.permutation(400)[:60], 20), strict=True)]
    plain, begun = (
        st.solve(C, budget=24, start=first, effort=replace(st.DEFAULT, grown_tree_links=5)) for first in (None, start)
    )
    assert np.isfinite(C[begun.rows, begun.cols]).all()
    assert begun.value < 1.2 * plain.value


@pytest.mark.filterwarnings("ignore:.*lost in rounding:sparsetransport.SparseTransportWarning")
def test_masses_are_exact_where_weights_are_far_apart():
    rng = np.random.default_rng(0)
    problem = st.Problem.from_matrices(rng.random((25, 20)), rng.random(25), rng.random(20), unbalanced=(1e-2, 1e8))
    for budget in (15, 30, st.PerColumn(1)):
        assert st.solve(problem, budget=budget).kkt < 1e-9
