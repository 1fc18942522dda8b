"""The optimum without a budget that has more entries than are to be added one by one."""

import numpy as np
import pytest
from cases import KERNELS, instance, support

from sparsetransport.outer import run, unbudgeted


@pytest.fixture
def short(monkeypatch):
    """Grow to a few entries only, and jump from there."""
    monkeypatch.setattr(run, "GROWN_UP_TO", (5, 0))


@pytest.mark.parametrize("weights", [(5.0, 5.0), (0.3, 40.0)])
@pytest.mark.parametrize("reg", [0.05, 5.0, 500.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_jump_ends_where_growing_would(kernel, reg, weights, monkeypatch):
    """The plan, its value and its proof are those of adding pair after pair."""
    case = instance(3, 14, 11, kernel, reg, weights)
    grown = case.solve()
    monkeypatch.setattr(run, "GROWN_UP_TO", (5, 0))
    jumped = case.solve()
    assert grown.rows.size > 5
    assert support(jumped) == support(grown)
    np.testing.assert_allclose(jumped.plan, grown.plan, atol=1e-10)
    assert jumped.status is grown.status
    assert jumped.kkt < 1e-12
    assert abs(jumped.relative_gap) < 1e-9


def test_the_path_leads_there(short):
    """The way up to the jump is kept, smaller plans can be had from it, and it ends at the result."""
    case = instance(3, 14, 11, "rbf", 5.0, (5.0, 5.0))
    result = case.solve()
    assert result.path.entries[:5].tolist() == [1, 2, 3, 4, 5]
    assert result.path.plan_at(3).rows.size == 3
    assert set(result.path.support_at(result.rows.size)) == set(support(result))
    assert result.path.objective[-1] == pytest.approx(result.value)


def test_forbidden_pairs_stay_empty(short):
    """Half of the pairs, a whole row and a whole column among them."""
    case = instance(4, 12, 10, "delta", 50.0, (5.0, 5.0))
    case.C[::2, 1::2], case.C[3], case.C[:, 4] = np.inf, np.inf, np.inf
    result = case.solve()
    assert result.rows.size > 5
    assert np.isfinite(case.C[result.rows, result.cols]).all()
    assert abs(result.relative_gap) < 1e-9


def test_a_callback_may_stop_before_the_jump(short):
    """Then there is none."""
    result = instance(3, 14, 11, "rbf", 5.0, (5.0, 5.0)).solve(callback=lambda step: step.entries == 3)
    assert result.rows.size == 3


def test_without_a_jump_growing_goes_on(short, monkeypatch):
    """Where rounding is in the way of Newton's method."""
    case = instance(3, 14, 11, "rbf", 5.0, (5.0, 5.0))
    jumped = case.solve()
    monkeypatch.setattr(unbudgeted, "optimum", lambda *_: None)
    assert support(case.solve()) == support(jumped)
