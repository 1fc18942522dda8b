"""What a search asks: whether a plan is enough, or within the budget, and the unbudgeted optimum."""

import numpy as np
import pytest
from cases import instance

import sparsetransport as st
from sparsetransport.certify.certifier import Certifier
from sparsetransport.engine.room import Constraint
from sparsetransport.search import GapTest, Links, Search
from sparsetransport.strategy import find


def search_of(problem, budget=6, how=st.DEFAULT, **options):
    constraint = Constraint(st.Uniform(budget) if isinstance(budget, int) else budget, problem.shape)
    return Search(problem, constraint, how, given=Links([]), **options)


def test_the_gap_is_tested_cheaply_first_and_tightly_once(monkeypatch):
    problem, looks = instance(1, 8, 8, "imq-v2", 0.1, (10.0, 10.0)).problem(), []
    search = search_of(problem, 6, gap_tol=1e-12)
    original = Certifier.__call__
    monkeypatch.setattr(Certifier, "__call__", lambda *args: looks.append(args[-1]) or original(*args))
    plan = find(search_of(problem, 6, st.BARE))
    assert [search.is_enough(plan) for _ in range(3)] == [False] * 3
    assert looks == [False, True]
    assert GapTest(search.certifier, 0.99)(plan)
    assert looks == [False, True, False]


@pytest.mark.parametrize("budget", [st.Uniform(3), st.PerRow(1), st.PerRow(1) & st.PerColumn(1)], ids=repr)
def test_a_plan_is_within_the_budget_or_not(budget):
    problem = instance(0, 5, 4, "rbf", 0.1, (10.0, 10.0)).problem()
    search = search_of(problem, budget)
    small, large = find(search), find(search_of(problem, 20))
    assert search.is_within(small)
    assert not search.is_within(large)


def test_a_search_is_over_after_its_deadline():
    problem = instance(0).problem()
    plan = find(search_of(problem, 3, st.BARE))
    assert not search_of(problem, 3).is_enough(plan._replace(status=st.Status.LOCAL))
    assert search_of(problem, 3, deadline=-np.inf).is_enough(plan._replace(status=st.Status.LOCAL))
