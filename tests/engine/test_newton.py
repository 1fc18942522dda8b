"""The unbudgeted optimum that has more entries than are to be added one by one."""

from dataclasses import replace

import numpy as np
import pytest
from cases import KERNELS, instance, support

import sparsetransport as st
from sparsetransport.engine import grow, newton

SHORT = replace(st.DEFAULT, grown_links=5, grown_links_per_point=0.0)
"""Grow to a few entries only, and jump from there."""


@pytest.mark.parametrize("weights", [(5.0, 5.0), (0.3, 40.0)])
@pytest.mark.parametrize("reg", [0.05, 5.0, 500.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_jump_ends_where_growing_would(kernel, reg, weights):
    """The plan, its value and its proof are those of adding pair after pair."""
    case = instance(3, 14, 11, kernel, reg, weights)
    grown = case.solve()
    jumped = case.solve(effort=SHORT)
    assert grown.rows.size > 5
    assert support(jumped) == support(grown)
    np.testing.assert_allclose(jumped.plan, grown.plan, atol=1e-10)
    assert jumped.status is grown.status
    assert jumped.kkt < 1e-12
    assert abs(jumped.relative_gap) < 1e-9


def test_the_path_leads_there():
    """The way up to the jump is kept, smaller plans can be had from it, and it ends at the result."""
    case = instance(3, 14, 11, "rbf", 5.0, (5.0, 5.0))
    result = case.solve(effort=SHORT)
    assert result.path.entries[:5].tolist() == [1, 2, 3, 4, 5]
    assert result.path.plan_at(3).rows.size == 3
    assert set(result.path.support_at(result.rows.size)) == set(support(result))
    assert result.path.objective[-1] == pytest.approx(result.value)


def test_forbidden_pairs_stay_empty():
    """Half of the pairs, a whole row and a whole column among them."""
    case = instance(4, 12, 10, "delta", 50.0, (5.0, 5.0))
    case.C[::2, 1::2], case.C[3], case.C[:, 4] = np.inf, np.inf, np.inf
    result = case.solve(effort=SHORT)
    assert result.rows.size > 5
    assert np.isfinite(case.C[result.rows, result.cols]).all()
    assert abs(result.relative_gap) < 1e-9


def test_a_callback_may_stop_before_the_jump():
    """Then there is none."""
    result = instance(3, 14, 11, "rbf", 5.0, (5.0, 5.0)).solve(effort=SHORT, callback=lambda step: step.entries == 3)
    assert result.rows.size == 3


def test_without_a_jump_growing_goes_on(monkeypatch):
    """Where rounding is in the way of Newton's method."""
    case = instance(3, 14, 11, "rbf", 5.0, (5.0, 5.0))
    jumped = case.solve(effort=SHORT)
    monkeypatch.setattr(newton, "optimum", lambda *_: None)
    assert support(case.solve(effort=SHORT)) == support(jumped)


@pytest.mark.parametrize("sides", [("delta", "delta"), ("delta", "rbf"), ("rbf", "delta"), ("rbf", "rbf")])
@pytest.mark.parametrize("shape", [(4, 30), (30, 4)])
def test_every_side_may_be_eliminated(shape, sides):
    """Equations with one unknown each go first: those of a delta kernel, of the larger side if both are so."""
    case = instance(5, *shape, "rbf", 5.0, (5.0, 8.0))
    kernels = [st.Delta() if side == "delta" else gram for side, gram in zip(sides, (case.Ga, case.Gb), strict=True)]
    problem = st.Problem.from_matrices(case.C, case.a, case.b, kernels=kernels, unbalanced=(5.0, 8.0), reg=5.0)
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    rows, cols, mass = newton.optimum(problem, *nothing)
    assert mass.size > 5
    fields = problem.fields(rows, cols, mass)
    np.testing.assert_allclose(problem.gradient(fields, rows, cols) + problem.reg * mass, 0.0, atol=1e-11)
    assert problem.gradient_rows(fields, 0, shape[0])[~_held(shape, rows, cols)].min() > -1e-11


def _held(shape, rows, cols):
    held = np.zeros(shape, bool)
    held[rows, cols] = True
    return held


@pytest.mark.parametrize("budget", [150, st.PerColumn(14), st.PerRow(11) & st.PerColumn(14)])
def test_a_budget_that_does_not_bind_is_none(budget, monkeypatch):
    """The optimum without a budget is found at once there too."""
    case = instance(3, 14, 11, "rbf", 5.0, (5.0, 5.0))
    free = case.solve()
    monkeypatch.setattr(grow, "grow", _fails_beyond(grow.grow, 5))
    result = case.solve(budget=budget, effort=SHORT)
    assert result.status is st.Status.OPTIMAL
    np.testing.assert_allclose(result.plan, free.plan, atol=1e-12)


def _fails_beyond(function, entries):
    def watched(data, work, *rest):
        code = function(data, work, *rest)
        assert work.factor.size[0] <= entries
        return code

    return watched


@pytest.mark.parametrize("budget", [30, st.PerRow(3), st.PerColumn(4) & st.PerRow(3)])
def test_a_budget_that_binds_is_kept(budget, monkeypatch):
    """What is found at once is not allowed, and the plan is that of growing."""
    case = instance(3, 14, 11, "rbf", 5.0, (5.0, 5.0))
    monkeypatch.setattr(newton, "effort", lambda _: 0.0)
    tried = case.solve(budget=budget, effort=SHORT)
    monkeypatch.setattr(newton, "effort", lambda _: np.inf)
    assert support(tried) == support(case.solve(budget=budget, effort=SHORT))
    assert tried.status is st.Status.BUDGET_USED


@pytest.mark.parametrize("placed", [8192, 3])
def test_a_start_with_more_entries_is_kept(placed, monkeypatch):
    """Also where the jump is tried first, before a long start or after a short one, and is not within the budget."""
    effort = replace(SHORT, placed=placed)
    case = instance(3, 14, 11, "rbf", 5.0, (5.0, 5.0))
    start = case.solve(budget=20, effort=effort)
    monkeypatch.setattr(newton, "effort", lambda _: 0.0)
    again = case.solve(budget=20, start=start, effort=effort)
    assert again.value <= start.value * (1.0 + 1e-12)
    if placed > 20:
        assert again.path.start == tuple(zip(start.rows.tolist(), start.cols.tolist(), strict=True))


def test_a_long_start_need_not_be_placed_where_the_jump_leads_to_the_optimum():
    case = instance(3, 14, 11, "rbf", 5.0, (5.0, 5.0))
    best = case.solve(effort=SHORT)
    again = case.solve(start=best, effort=replace(SHORT, placed=3))
    assert again.status is st.Status.OPTIMAL
    np.testing.assert_allclose(again.plan, best.plan, atol=1e-12)


def test_what_is_not_used_of_the_room_to_grow_is_given_back(monkeypatch):
    """Groups that fill up first leave room in the whole plan, and the polish may use it."""
    case = instance(3, 14, 11, "rbf", 5.0, (5.0, 5.0))
    labels = np.zeros(case.shape, int)
    labels[:, 3:] = 1
    budget = st.Laminar(st.Partition(labels, [2, 5]), st.Uniform(100))
    effort = replace(SHORT, grown_links=6)
    monkeypatch.setattr(newton, "effort", lambda _: 0.0)
    tried = case.solve(budget=budget, effort=effort)
    monkeypatch.setattr(newton, "effort", lambda _: np.inf)
    assert support(tried) == support(case.solve(budget=budget, effort=effort))
    assert tried.rows.size == 7
