"""The network simplex: the unbudgeted optimum for delta kernels, and what is made of it."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from cases import clouds, no_cycle, odd, support

import sparsetransport as st
from sparsetransport.forest import simplex
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
