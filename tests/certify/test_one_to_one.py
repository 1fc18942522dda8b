"""One link a row and column: the matching is the optimum, for one problem and for scenarios that share links."""

import numpy as np
import pytest
from cases import instance
from oracles import Exact, brute_force, quadratic

import sparsetransport as st
from sparsetransport.budgets import as_matroid, limits_of
from sparsetransport.certify import one_to_one

ONE = st.PerRow(1) & st.PerColumn(1)


def is_matching(most):
    def allowed(support):
        rows, cols = zip(*support, strict=True) if support else ((), ())
        return len(set(rows)) == len(rows) == len(set(cols)) and len(rows) <= most

    return allowed


def proved(problem, budget):
    return one_to_one.optimum([problem], [1.0], limits_of(as_matroid(budget), problem.shape))


@pytest.mark.parametrize("reg", [0.0, 0.3])
@pytest.mark.parametrize("most", [1, 2, 9])
def test_the_bound_is_the_optimum(most, reg):
    """By brute force in fractions: never above, and below by rounding alone."""
    for seed in range(6):
        case = instance(seed, 3, 4, "delta", reg, (7.0, 3.0))
        exact = Exact(case.C, case.a, case.b, case.Ga, case.Gb, (7.0, 3.0), reg)
        best = exact.optimum(is_matching(most))
        budget = st.Uniform(1) if most == 1 else ONE if most == 9 else ONE & st.Uniform(most)
        bound, rows, cols, masses = proved(case.problem(), budget)
        assert bound <= best
        assert bound == pytest.approx(float(best), rel=1e-12)
        assert float(exact.value(rows, cols, masses[0])) == pytest.approx(float(best), rel=1e-12)
        assert len(rows) <= most


def test_what_may_not_be_used_is_not():
    C = np.array([[0.0, np.inf, 1.0], [0.0, 0.0, 0.0]])
    problem = st.Problem.from_matrices(C, np.ones(2), np.ones(3), unbalanced=1.0)
    _, rows, cols, _ = proved(problem, st.PerRow([1, 0]) & st.PerColumn([0, 1, 1]))
    assert list(zip(rows, cols, strict=True)) == [(0, 2)]


@pytest.mark.parametrize("reg", [0.0, 0.2])
def test_a_plan_for_such_a_budget_is_called_optimal(reg):
    C = np.random.default_rng(1).random((30, 25))
    result = st.solve(C, budget=ONE, reg=reg, gap_tol=1e-6)
    assert result.status is st.Status.OPTIMAL_PROVEN
    assert result.relative_gap < 1e-9
    assert "matching" in [each.name for each in result.certify().log]


def test_links_that_scenarios_share():
    rng = np.random.default_rng(0)
    C, demands = rng.random((3, 3)), rng.random((2, 3))
    problems = [st.Problem.from_matrices(C, np.ones(3), b, unbalanced=5.0, reg=0.1) for b in demands]
    limits = limits_of(ONE, (3, 3))
    bound, *_ = one_to_one.optimum(problems, [0.3, 0.7], limits)
    assert one_to_one.applies(problems, limits)
    # one problem with as many variables as links of both scenarios, whose supports must agree: try every matching
    from itertools import permutations

    def value(problem, support):
        hessian, slope, constant = quadratic(
            C, problem.a, problem.b, np.eye(3), np.eye(3), problem.unbalanced, problem.reg
        )
        flat = {3 * i + j for i, j in support}
        inside = lambda s: {3 * i + j for i, j in s} <= flat  # noqa: E731
        return constant + brute_force(hessian, slope, (3, 3), inside)

    best = min(
        sum(w * value(one, list(enumerate(p))) for w, one in zip([0.3, 0.7], problems, strict=True))
        for p in permutations(range(3))
    )
    assert bound == pytest.approx(best, rel=1e-10)


def test_other_budgets_and_kernels_are_declined():
    C = np.random.default_rng(0).random((4, 4))
    plain, narrow = st.Problem.from_matrices(C), st.Problem.from_points(C, C, kernels=st.RBF(0.1))
    for budget in (3, st.PerRow(1), ONE & st.Partition(np.zeros((4, 4), int), 2)):
        assert not one_to_one.applies([plain], limits_of(as_matroid(budget), (4, 4)))
    assert one_to_one.applies([plain], limits_of(ONE, (4, 4)))
    assert not one_to_one.applies([narrow], limits_of(ONE, (4, 4)))
