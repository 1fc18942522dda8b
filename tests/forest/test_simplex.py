"""The network simplex: the unbudgeted optimum for delta kernels, and what is made of it."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from cases import clouds, no_cycle, odd, support
from scipy.optimize import linear_sum_assignment

import sparsetransport as st
from sparsetransport.engine.room import Constraint
from sparsetransport.forest import simplex
from sparsetransport.forest.trees import insert_all
from sparsetransport.optimum import shared_out

NOTHING = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
SHORT = replace(st.DEFAULT, grown_tree_links=3)
"""Grow to a few entries only, and pivot from there."""


@pytest.mark.parametrize("seed", range(60))
def test_clarabel(seed):
    """An interior point finds nothing better; links have no cycle, and no pair has a negative gradient."""
    problem = odd(seed)
    rows, cols, mass = simplex.optimum(problem, *NOTHING)
    assert (mass > 0.0).all()
    assert no_cycle(list(zip(rows.tolist(), cols.tolist(), strict=True)))
    m, n = problem.shape
    C = problem.cost.rows(0, m)
    parts = np.where(np.isfinite(C), C, 1e4), problem.a, problem.b, np.eye(m), np.eye(n), problem.unbalanced, 0.0
    hessian, slope, constant = oracles.quadratic(*parts)
    value = problem.value(rows, cols, mass)
    assert value == pytest.approx(constant + oracles.clarabel(hessian, slope), rel=1e-6, abs=1e-6)
    fields = problem.fields(rows, cols, mass)
    assert np.abs(problem.gradient(fields, rows, cols)).max(initial=0.0) <= 1e-12 * problem.scale
    assert problem.gradient_rows(fields, 0, m).min() >= -1e-12 * problem.scale


@pytest.mark.parametrize("seed", range(12))
def test_pivots_end_where_growing_would(seed):
    grown, jumped = st.solve(odd(seed)), st.solve(odd(seed), effort=SHORT)
    assert jumped.value == pytest.approx(grown.value, rel=1e-12)
    assert jumped.status is grown.status
    assert jumped.kkt < 1e-12
    assert abs(jumped.relative_gap) < 1e-9


def test_any_plan_without_cycles_is_a_start():
    problem = clouds(0)
    best = simplex.optimum(problem, *NOTHING)
    again = simplex.optimum(problem, *best)
    far = simplex.optimum(problem, np.arange(11), np.arange(11), np.full(11, 50.0))
    for rows, cols, mass in (again, far):
        plan, expected = np.zeros(problem.shape), np.zeros(problem.shape)
        plan[rows, cols], expected[best[0], best[1]] = mass, best[2]
        np.testing.assert_allclose(plan, expected, atol=1e-12)


def test_the_path_leads_there():
    """The way up to the jump is kept, smaller plans can be had from it, and it ends at the result."""
    result = st.solve(clouds(1), effort=SHORT)
    assert result.path.entries[:3].tolist() == [1, 2, 3]
    assert result.path.plan_at(2).rows.size == 2
    assert set(result.path.support_at(result.rows.size)) == set(support(result))
    assert result.path.objective[-1] == pytest.approx(result.value)


def test_a_callback_may_stop_before_the_jump():
    result = st.solve(clouds(1), effort=SHORT, callback=lambda step: step.entries == 2)
    assert result.rows.size == 2
    assert result.status is st.Status.STOPPED


def test_large_plans_are_not_grown_for_long():
    """Ten links on the way to the jump, which a callback is told of, where the problem has more than 150 points."""
    told = []
    for points, many in ((75, 11), (76, 10)):
        told.clear()
        result = st.solve(clouds(0, points, points), callback=lambda step: told.append(step.entries))
        assert len(told) == 10 if many == 10 else len(told) >= many
        assert result.path.entries[: len(told)].tolist() == told
        assert result.status is st.Status.OPTIMAL


@pytest.mark.parametrize("seed", range(100))
def test_ties(seed):
    """With masses and costs that are small integers nearly every pivot moves nothing; it ends at an optimum."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 40, 2)
    masses = (np.ones(m), np.ones(n)) if seed % 2 else (rng.integers(1, 4, m), rng.integers(1, 4, n))
    problem = st.Problem.from_matrices(rng.integers(0, 3 + seed % 5, (m, n)), *masses, unbalanced=10.0 ** (seed % 6))
    rows, cols, mass = simplex.optimum(problem, *NOTHING)
    assert no_cycle(list(zip(rows.tolist(), cols.tolist(), strict=True)))
    fields = problem.fields(rows, cols, mass)
    assert np.abs(problem.gradient(fields, rows, cols)).max(initial=0.0) <= 1e-12 * problem.scale
    assert problem.gradient_rows(fields, 0, m).min() >= -1e-12 * problem.scale


@pytest.mark.parametrize(
    ("pairs", "new", "leaves"),
    [
        ([(2, 0), (1, 0), (1, 1), (0, 1), (2, 2)], (0, 2), (2, 2)),
        ([(2, 0), (1, 0), (1, 1), (0, 1)], (0, 0), (0, 1)),
        ([(2, 0), (1, 0), (1, 1), (0, 1)], (2, 1), (2, 0)),
    ],
    ids=["both ways", "row's way", "column's way"],
)
def test_of_links_that_lose_all_their_mass_the_last_one_leaves(pairs, new, leaves):
    """The last one from where the ways meet, which is row 2, by the new link's row to its column and on."""
    problem = clouds(0, 3, 3)
    forest, trees = simplex.bare(problem, Constraint(None, problem.shape).room()), simplex.rooted(6)
    forest.tiny[0] = -np.inf  # no link leaves before
    insert_all(forest, *np.transpose(pairs), np.full(len(pairs), 1e9))
    simplex._balance(forest, trees, 2)
    forest.mass[forest.above[trees.parent >= 0]] = 1.0
    assert simplex._exchange(forest, trees, new[0], 3 + new[1]) > 0
    rows, cols = forest.ends[:, forest.above[trees.parent >= 0]]
    assert set(zip(rows.tolist(), (cols - 3).tolist(), strict=True)) == {*pairs, new} - {leaves}


@pytest.mark.parametrize("size", [30, 150])
def test_assignments(size):
    """Hard marginals of equal masses and costs with many ties: as good as SciPy's assignment."""
    C = np.random.default_rng(size).integers(0, 20, (size, size)).astype(float)
    result = st.solve(C, np.ones(size), np.ones(size), unbalanced=np.inf)
    assert result.value == pytest.approx(C[linear_sum_assignment(C)].sum(), abs=1e-9)


@pytest.mark.parametrize("shape", [(200, 30), (30, 200), (150, 140)])
def test_lazy_costs_lead_where_the_matrix_does(shape):
    """They are computed for some rows at a time."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(shape[0], 3)), rng.normal(size=(shape[1], 3)) + 100.0
    masses = rng.random(shape[0]), rng.random(shape[1])
    given = {"kernels": st.Delta(), "unbalanced": 1e3}
    lazy, dense = (st.Problem.from_points(*points, *masses, **given, lazy=lazy) for lazy in (True, False))
    plans = [simplex.optimum(problem, *NOTHING) for problem in (lazy, dense)]
    assert dense.value(*plans[0]) == pytest.approx(dense.value(*plans[1]), rel=1e-12)


def test_the_steepest_pair_of_some_rows_enters():
    """Rows with few columns are compared with each other: fewer pivots."""
    problem = clouds(5, 60, 4)
    forest = simplex.bare(problem, Constraint(None, problem.shape).room())
    forest.potential[:] = np.random.default_rng(0).random(64)
    slope = problem.cost.rows(10, 13) - np.add.outer(forest.potential[10:13], forest.potential[60:])
    row, col = simplex._steepest(forest, problem.cost.rows(10, 13), 10, 1e-12)
    assert slope.min() < 0.0
    assert (row - 10, col - 60) == np.unravel_index(slope.argmin(), slope.shape)
    assert simplex._steepest(forest, problem.cost.rows(10, 13), 10, -slope.min()) == (-1, -1)


def test_pauses_change_nothing(monkeypatch):
    """Between two of them Ctrl-C is heard."""
    problem = clouds(2, 40, 30)
    at_once = simplex.optimum(problem, *NOTHING)
    monkeypatch.setattr(simplex, "_CHUNK", 1.0)
    for mine, theirs in zip(simplex.optimum(problem, *NOTHING), at_once, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_where_pivots_find_no_end_growing_goes_on(monkeypatch):
    problem = clouds(3)
    expected = st.solve(clouds(3), effort=SHORT)
    monkeypatch.setattr(simplex, "_CHUNK", 1.0)
    monkeypatch.setattr(simplex, "_PIVOTS", 0)
    assert simplex.optimum(problem, *NOTHING) is None
    result = st.solve(problem, effort=SHORT)
    assert support(result) == support(expected)
    assert abs(result.relative_gap) < 1e-9


@pytest.mark.parametrize("effort", [SHORT, replace(st.BARE, grown_tree_links=3)], ids=["default", "bare"])
@pytest.mark.parametrize("seed", range(4))
def test_a_start_is_not_thrown_away_for_the_optimum(seed, effort):
    best = st.solve(clouds(seed), budget=23, gap_tol=1e-9)
    assert st.solve(clouds(seed), budget=23, start=best, effort=effort).value <= best.value * (1.0 + 1e-12)


def test_a_cycle_that_rounding_let_in_is_left_out():
    problem = clouds(0)
    best = simplex.optimum(problem, *NOTHING)
    rows, cols = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    for mine, theirs in zip(simplex.optimum(problem, rows, cols, np.full(4, 0.01)), best, strict=True):
        assert sorted(mine) == pytest.approx(sorted(theirs))


def test_a_long_start_is_not_needed():
    best = st.solve(clouds(0), effort=SHORT)
    assert st.solve(clouds(0), start=best, effort=SHORT).value == pytest.approx(best.value, rel=1e-12)


def test_shares_are_the_problem_that_they_stand_for():
    """Masses times a share, weights divided by it: as dense matrices would have it."""
    problem, rng = clouds(4), np.random.default_rng(0)
    shares = rng.uniform(0.2, 1.0, 14), rng.uniform(0.2, 1.0, 11)
    rows, cols, mass = simplex.optimum(problem, *NOTHING, shares)
    other = shared_out(problem, *shares)
    assert other.value(rows, cols, mass) == pytest.approx(st.solve(other).value, rel=1e-10)
