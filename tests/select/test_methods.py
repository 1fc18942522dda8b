"""Every method against brute force over all supports of tiny problems."""

from functools import lru_cache

import numpy as np
import pytest
from cases import TINY_BUDGETS, Forest, instance, no_cycle, support

import sparsetransport as st

METHODS = ["omp", "stochastic", "residual", "greedy", "residual-greedy"]
VARIANTS = {
    "default": {},
    "no polish": {"polish": False},
    "as published": {"reclaim": False},
    "as published, improved": {"reclaim": False, "polish": True},
    "apgd": {"inner": "apgd", "max_iter": 100_000},
}
CASES = {
    "rbf": {"kernel": "rbf"},
    "imq, reg 0": {"kernel": "imq", "reg": 0.0},
    "delta, negative": {"kernel": "delta", "reg": 0.5, "negative": True},
    "imq-v2, forbidden": {"kernel": "imq-v2", "forbidden": 0.4, "unbalanced": (5.0, 1.0)},
}


@lru_cache
def _case(name, seed):
    return instance(seed, 4, 4, **CASES[name])


@lru_cache
def _optimum(name, seed, budget):
    return _case(name, seed).optimum(TINY_BUDGETS[budget].allowed)


@pytest.mark.parametrize("budget", TINY_BUDGETS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", CASES)
def test_plans_are_feasible_and_no_better_than_the_best(budget, method, variant, name):
    """Any method's support is allowed, its value is that of its plan, and no plan beats the best of all supports."""
    for seed in range(2):
        case = _case(name, seed)
        result = case.solve(budget=TINY_BUDGETS[budget].matroid, method=method, rng=seed, **VARIANTS[variant])
        best, scale = _optimum(name, seed, budget), abs(case.constant())
        assert not support(result) or TINY_BUDGETS[budget].allowed(support(result))
        assert np.isfinite(case.C[result.rows, result.cols]).all()
        assert (result.mass > 0.0).all()
        assert result.value == pytest.approx(case.value(result.plan), abs=1e-11 * scale)
        assert result.value >= best - 1e-11 * scale
        assert result.value <= case.constant() + 1e-11 * scale


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("polish", [True, False])
@pytest.mark.parametrize("reclaim", [True, False])
def test_a_matroid_with_one_method_works_with_every_rule(method, polish, reclaim):
    """Plans without a cycle, by ``can_add`` alone: feasible, and never below the best of all forests."""
    for seed in range(3):
        case = instance(seed, 3, 4, "rbf", reg=0.1, unbalanced=(10.0, 10.0))
        result = case.solve(budget=Forest(), method=method, polish=polish, reclaim=reclaim, rng=seed)
        assert no_cycle(support(result))
        best = case.optimum(no_cycle)
        assert result.value >= best - 1e-10
        assert result.value <= best + 0.25 * (case.constant() - best)


@pytest.mark.parametrize("budget", TINY_BUDGETS)
@pytest.mark.parametrize("name", CASES)
def test_the_default_is_near_the_best(budget, name):
    """On tiny problems OMP, reclaim and polish lose at most a tenth of what the best support gains."""
    for seed in range(8):
        case, best = _case(name, seed), _optimum(name, seed, budget)
        value = case.solve(budget=TINY_BUDGETS[budget].matroid).value
        assert value <= best + 0.1 * (case.constant() - best) + 1e-12


@pytest.mark.parametrize("method", ["greedy", "omp"])
@pytest.mark.parametrize("variant", ["no polish", "as published"])
@pytest.mark.parametrize("reg", [0.5, 4.0, 40.0])
def test_greedy_and_omp_keep_their_guarantee(method, variant, reg):
    """On a whole-plan budget F(S) >= (1 - exp(-α)) F(S*), with α = λ₂ / max H_ss."""
    for seed in range(5):
        case = instance(seed, 4, 4, "rbf", reg, (1.0, 1.0))
        promised = st.guarantee(case.problem(), method)
        reached = case.constant() - case.solve(budget=3, method=method, **VARIANTS[variant]).value
        best = case.constant() - case.optimum(TINY_BUDGETS["whole"].allowed)
        assert promised > 0.1
        assert reached >= promised * best


@pytest.mark.parametrize(
    ("method", "budget"),
    [
        ("stochastic", "whole"),
        ("residual", "column"),
        ("residual", "laminar"),
        ("residual-greedy", "row"),
    ],
)
def test_random_methods_keep_their_guarantee_on_average(method, budget):
    """Lemma 3.2: E F >= (1 - e^-α - ε) F(S*); Lemma 3.3: E F >= (1 + 1/α)^-2 F(S*) on any matroid."""
    case = instance(1, 4, 4, "rbf", 40.0, (1.0, 1.0))
    runs = [
        case.solve(budget=TINY_BUDGETS[budget].matroid, method=method, reclaim=False, rng=seed).value
        for seed in range(20)
    ]
    best = case.constant() - case.optimum(TINY_BUDGETS[budget].allowed)
    promised = st.guarantee(case.problem(), method)
    assert promised > 0.15
    assert case.constant() - np.mean(runs) >= promised * best


@pytest.mark.parametrize("reg", [0.0, 0.1])
@pytest.mark.parametrize("kernel", ["delta", "rbf", "imq", "imq-v2"])
@pytest.mark.parametrize("budget", [3, 8, 14, st.PerColumn(1), st.PerRow(2), st.PerRow(2) & st.PerColumn(2)], ids=repr)
def test_reclaim_is_never_worse_than_as_published(reg, kernel, budget):
    """With the default, OMP is no worse than OMP as published, on a fixed collection of problems.

    Without improvers this is asserted for whole-plan budgets alone. It is no theorem: an entry at zero that OMP as
    published keeps may find mass again later, while reclaim has spent its place in a column elsewhere. In a scan of
    2,800 random problems with matroids that cost something in 5, all of them with two places a column; the improvers
    made up for it.
    """
    for seed in range(6):
        case = instance(seed, 9, 7, kernel, reg, (10.0, 10.0))
        published = case.solve(budget=budget, reclaim=False).value
        reclaimed, polished = case.solve(budget=budget, polish=False).value, case.solve(budget=budget).value
        assert reclaimed <= published + 1e-11 or not isinstance(budget, int)
        assert polished <= min(published, reclaimed) + 1e-11


def test_reclaim_uses_the_budget_that_omp_as_published_leaves():
    """As published, entries at zero count, and the plan ends with fewer than its budget; not so with reclaim."""
    case = instance(0, 30, 30, "rbf", 0.0, (10.0, 10.0))
    published, reclaimed = case.solve(budget=40, reclaim=False), case.solve(budget=40, polish=False)
    assert len(published.path) == 40
    assert published.rows.size < 40
    assert reclaimed.rows.size == 40
    assert reclaimed.value < published.value
