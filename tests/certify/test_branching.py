"""Branch and bound: the optimum of small problems with any counting budget, and honest bounds when it is cut short."""

import time
from dataclasses import replace

import numpy as np
import oracles
import pytest
from proving import Rule, optimum

import sparsetransport as st
from sparsetransport.budgets import limits_of
from sparsetransport.certify import branching
from sparsetransport.effort import Branching


def problem_of(seed, m, n, reg=0.0):
    rng = np.random.default_rng(seed)
    return st.Problem.from_matrices(
        rng.random((m, n)), rng.lognormal(size=m), rng.lognormal(size=n), unbalanced=(3.0, 8.0), reg=reg
    )


def searched(problem, budget, how, gap=0.0, deadline=np.inf):
    plan = st.solve(problem, budget=budget, effort="quick")
    links = plan._parts.rows, plan._parts.cols, plan._parts.mass
    limits = limits_of(budget, problem.shape)
    return branching.search(problem, limits, links, plan.value, -np.inf, gap, how, 6, deadline)


@pytest.mark.parametrize("reg", [0.0, 0.4])
@pytest.mark.parametrize(
    "rule",
    [
        Rule(st.PerRow(1), 99, 1, 99),
        Rule(st.PerColumn(1), 99, 99, 1),
        Rule(st.Uniform(4), 4, 99, 99),
        Rule(st.PerRow(2) & st.Uniform(4), 4, 2, 99),
    ],
    ids=lambda rule: str(rule.budget),
)
def test_it_ends_with_the_optimum(rule, reg):
    """By brute force over all supports."""
    for seed in range(3):
        problem = problem_of(seed, 4, 3, reg)
        best = optimum(problem, rule)
        bound, plan = searched(problem, rule.budget, Branching(nodes=10**6))
        assert bound <= best
        assert bound == pytest.approx(float(best), rel=1e-9 if reg == 0.0 else 1e-7)
        assert problem.value(*plan) == pytest.approx(float(best), rel=1e-9)


def test_groups_of_pairs_are_respected():
    problem = problem_of(7, 4, 3)
    labels = np.arange(12).reshape(4, 3) % 2
    budget = st.Partition(labels, [1, 2])

    class Allowed:
        def __call__(self, support):
            used = np.bincount([labels[pair] for pair in support], minlength=2)
            return used[0] <= 1 and used[1] <= 2

    hessian, slope, constant = oracles.quadratic(
        problem.cost.rows(0, 4), problem.a, problem.b, np.eye(4), np.eye(3), (3.0, 8.0), 0.0
    )
    best = constant + oracles.brute_force(hessian, slope, (4, 3), Allowed())
    bound, plan = searched(problem, budget, Branching(nodes=10**6))
    assert bound == pytest.approx(best, rel=1e-9)
    assert problem.value(*plan) == pytest.approx(best, rel=1e-9)


def test_cut_short_it_is_a_bound():
    """Few nodes, no time or a wide gap: lower, and never above the optimum."""
    problem, budget = problem_of(11, 6, 6), st.PerRow(2)
    best, _ = searched(problem, budget, Branching(nodes=10**6))
    few, _ = searched(problem, budget, Branching(nodes=2))
    late, _ = searched(problem, budget, Branching(), deadline=time.monotonic() - 1.0)
    wide, _ = searched(problem, budget, Branching(nodes=10**6), gap=0.05 * best)
    assert max(few, late) <= best * (1.0 + 1e-12)
    assert 0.9 * best <= wide <= best * (1.0 + 1e-12)


def test_two_links_a_row_are_proven_by_solve():
    problem = problem_of(5, 6, 6)
    unlimited = replace(st.THOROUGH, branching=Branching(nodes=10**6))
    result = st.solve(problem, budget=st.PerRow(2), gap_tol=1e-6, effort=unlimited)
    assert result.relative_gap <= 1e-6
    assert result.status in (st.Status.GAP_REACHED, st.Status.OPTIMAL_PROVEN)
    names = [each.name for each in result.certify(effort=unlimited).log]
    assert "branch and bound" in names or "parts" in names
