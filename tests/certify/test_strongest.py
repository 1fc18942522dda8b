"""The list of stronger bounds: tried in order, each logged, their better plans taken over."""

import time

import numpy as np
import pytest
from proving import drawn, false_claims

import sparsetransport as st
from sparsetransport.certify import certifier, strongest
from sparsetransport.certify.strongest import Bound, Proof
from sparsetransport.result import LONG


def always(problem, limits):
    return True


def bounds_of(monkeypatch, *made):
    found = tuple(Bound(name, LONG, always, run) for name, run in made)
    monkeypatch.setattr(certifier, "BOUNDS", found)
    monkeypatch.setattr(strongest, "BOUNDS", found)


@pytest.fixture
def C():
    return np.random.default_rng(0).random((8, 8))


def test_bounds_follow_until_the_gap_is_small_enough(monkeypatch, C):
    """The log has what each of them proved, and one that is not needed is not run."""
    value = st.solve(C, budget=8).value
    bounds_of(
        monkeypatch,
        ("weak", lambda task: Proof(0.1 * value)),
        ("strong", lambda task: Proof(task.value)),
        ("needless", lambda task: pytest.fail("nothing is left to prove")),
    )
    result = st.solve(C, budget=8, gap_tol=1e-6)
    assert result.status is st.Status.OPTIMAL_PROVEN
    assert str(result.status) == "no plan within the budget is better: proven"
    proof = result.certify(effort="thorough")
    assert [each.name for each in proof.log][-2:] == ["weak", "strong"]
    assert proof.log[-2].value == 0.1 * value
    assert proof.lower_bound == result.lower_bound == result.value
    assert proof.better is None


def test_a_better_plan_is_taken_over(monkeypatch, C):
    """By solve, whose path goes on to it; a result that is certified shows it beside the certificate."""
    best = st.solve(C, budget=8)
    plan = best._parts.rows, best._parts.cols, best._parts.mass
    bounds_of(monkeypatch, ("finds", lambda task: Proof(0.5 * best.value, plan)))
    poor = st.solve_support(C, links=[(0, 0)] * 1 + [(k, k) for k in range(1, 8)])
    assert poor.value > best.value
    proof = poor.certify(effort="thorough")
    assert proof.better.value == pytest.approx(best.value, rel=1e-12)
    assert proof.value == poor.value
    result = st.solve(C, budget=8, gap_tol=1e-6, effort=st.BARE)
    assert result.value == pytest.approx(best.value, rel=1e-12)
    assert result.path.objective[-1] == pytest.approx(best.value, rel=1e-12)
    assert result.status is st.Status.GAP_OPEN


def test_a_bound_has_half_of_the_time_that_is_left(monkeypatch, C):
    left = []

    def run(task):
        left.append(task.deadline - time.monotonic())
        return Proof(-np.inf)

    bounds_of(monkeypatch, ("first", run), ("last", run))
    st.solve(C, budget=8).certify(time_limit=100.0)
    assert 0.4 * left[1] < left[0] <= 50.0 < left[1] <= 100.0


def test_a_budget_of_the_users_own_gets_no_plan_that_it_may_not_allow(monkeypatch, C):
    class Even(st.Matroid):
        def can_add(self, support, pair):
            return sum(pair) % 2 == 0 and len(support) < 8

    best = st.solve(C)
    plan = best._parts.rows, best._parts.cols, best._parts.mass
    bounds_of(monkeypatch, ("finds", lambda task: Proof(best.value, plan)))
    result = st.solve(C, budget=Even(), gap_tol=1e-6, effort="quick")
    assert ((result.rows + result.cols) % 2 == 0).all()


@pytest.mark.parametrize("effort", ["quick", "default"])
def test_an_effort_names_the_bounds(monkeypatch, C, effort):
    bounds_of(monkeypatch, ("long", lambda task: pytest.fail("it was not asked for")))
    assert {each.name for each in st.solve(C, budget=8).certify(effort=effort).log} == {"dual"}


@pytest.mark.parametrize("options", [{"time_limit": 0.0}, {"time_limit": -1}, {"gap_tol": -1.0}, {"effort": "much"}])
def test_bad_options_of_certify_are_named(C, options):
    result = st.solve(C, budget=3)
    with pytest.raises(ValueError, match=next(iter(options))):
        result.certify(**options)


def test_a_time_limit_ends_a_solve(C):
    """With the best plan so far, which is within the budget; a limit that is not reached changes nothing."""
    large = np.random.default_rng(1).random((150, 150))
    short = st.solve(large, budget=150, effort="thorough", time_limit=1e-3)
    assert short.status is st.Status.TIME_LIMIT
    assert len(short.mass) <= 150
    assert short.converged
    by_rule = st.solve(large, budget=150, method="greedy", time_limit=1e-3)
    assert by_rule.status is st.Status.TIME_LIMIT
    long, free = st.solve(C, budget=8, time_limit=100.0), st.solve(C, budget=8)
    assert (long.value, long.status) == (free.value, free.status)
    for solve in (st.solve, st.solve_sample):
        with pytest.raises(ValueError, match="time_limit must be a positive number"):
            solve(*[C] * (1 + (solve is st.solve_sample)), time_limit=0.0)
    assert [plan.value for plan in st.solve_batch([C], budget=8, time_limit=100.0)]


@pytest.mark.parametrize("seed", [*range(36), 489, 665])  # those that an earlier version failed, and others
def test_nothing_that_is_said_of_a_small_problem_is_false(seed):
    """No bound above the optimum, which fractions know, and no plan called optimal that is not."""
    assert false_claims(drawn(seed)) == []
