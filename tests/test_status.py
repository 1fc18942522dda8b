"""Why a solve ended, in words."""

import pytest
from cases import instance
from hypothesis import given
from hypothesis import strategies as some
from strategies import instances

import sparsetransport as st

METHODS = ["omp", "stochastic", "residual", "greedy", "residual-greedy"]
BUDGETS = [9, st.PerColumn(1), st.PerRow(2), st.PerRow(1) & st.PerColumn(2)]


@pytest.fixture
def case():
    return instance(1, 8, 7, "rbf", 0.1, (5.0, 2.0))


def test_the_status_says_why_it_ended(case):
    """Budget used up; optimum reached; nothing allowed helps; stopped; each a sentence."""
    assert case.solve(budget=3).status is st.Status.BUDGET_USED
    assert case.solve().status is st.Status.OPTIMAL
    with pytest.warns(st.SparseTransportWarning):
        assert case.solve(budget=57).status is st.Status.OPTIMAL
    assert case.solve(budget=56).status is st.Status.OPTIMAL
    assert case.solve(budget=st.PerColumn([1, 0, 0, 0, 0, 0, 0])).status is not st.Status.OPTIMAL
    assert case.solve(budget=9, callback=lambda step: True).status is st.Status.STOPPED
    assert all(len(str(status)) > 15 for status in st.Status)
    assert len({str(status) for status in st.Status}) == len(st.Status)


@given(instances((4, 4), regs=(0.125,)), some.integers(1, 8))
def test_a_status_of_optimal_is_true(case, k):
    """If the status says optimum, the value is that of the plan without a budget; if not, a pair still wants in."""
    result = case.solve(budget=k)
    free = case.solve().value
    if result.status is st.Status.OPTIMAL:
        assert result.value == pytest.approx(free, abs=1e-9)
    elif result.status is not st.Status.ALL_FORBIDDEN:
        slack = case.C - result.potential_a[:, None] - result.potential_b
        slack[result.rows, result.cols] = 0.0
        assert slack.min() < 0.0
