"""The certifier: which dual points a plan is proved with, and that no proof says too much."""

import numpy as np
import oracles
import pytest
from cases import KERNELS, TINY_BUDGETS, instance, problem_of

import sparsetransport as st
from sparsetransport.budgets import as_matroid, limits_of
from sparsetransport.certify import certifier
from sparsetransport.certify.certifier import Certifier
from sparsetransport.inner.solvers import EXACT


def certifier_of(problem, budget):
    return Certifier(problem, limits_of(as_matroid(budget), problem.shape), EXACT)


def proof(case_certifier, plan, tight):
    return case_certifier(plan.rows, plan.cols, plan.mass, plan.value, tight)


@pytest.mark.parametrize("budget", TINY_BUDGETS)
@pytest.mark.parametrize("reg", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("kernel", ["delta", "rbf"])
def test_no_bound_is_above_the_best_plan(kernel, reg, budget):
    """By brute force over all supports, for any plan; a tight bound is no lower, nor below the unbudgeted optimum."""
    rule = TINY_BUDGETS[budget]
    for seed in range(3):
        case = instance(seed, 4, 4, kernel, reg, (10.0, 5.0))
        best = case.optimum(rule.allowed)
        hessian, slope, constant = oracles.quadratic(*case.arrays)
        full = constant + oracles.clarabel(hessian, slope)
        prove = certifier_of(problem_of(seed, 4, 4, kernel, reg, (10.0, 5.0)), rule.matroid)
        for pairs in ([], [(0, 0)], [(0, 1), (1, 0), (2, 2)]):
            plan = st.solve_support(case.problem(), links=pairs)
            cheap, tight = (proof(prove, plan, tight).lower_bound for tight in (False, True))
            assert cheap <= best + 1e-9 * constant
            assert tight <= best + 1e-9 * constant
            assert tight >= cheap - 1e-12 * constant
            assert tight >= full - 1e-6 * constant


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_certificate_carries_the_dual_point_of_its_bound(kernel):
    """``2 λ G u`` and ``2 λ G v``; the bound is at most what the point proves, by the formula of the dual."""
    case = instance(1, 4, 4, kernel, 0.5, (10.0, 5.0))
    plan = case.solve(budget=3)
    found = proof(certifier_of(case.problem(), 3), plan, True)
    np.testing.assert_allclose(found.potential_a, 20.0 * case.Ga @ found.u, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.potential_b, 10.0 * case.Gb @ found.v, rtol=1e-10, atol=1e-12)
    # min over plans of the Lagrangian: three entries of mass max(0, W) / reg, and the conjugates of the two norms
    wish = np.maximum(found.potential_a[:, None] + found.potential_b - case.C, 0.0)
    reached = (np.sort(wish, axis=None)[-3:] ** 2).sum() / (2.0 * 0.5)
    sides = ((10.0, case.Ga, case.a, found.u), (5.0, case.Gb, case.b, found.v))
    dual = sum(weight * (2.0 * u @ gram @ mass - u @ gram @ u) for weight, gram, mass, u in sides)
    assert found.lower_bound <= plan.value + 1e-9
    # the bound also knows how many rows and columns are reached
    assert found.lower_bound >= dual - reached - 1e-8 * abs(dual)


def test_without_an_optimum_only_reg_proves_something():
    """Four entries of cost -1 and no marginal errors: with reg each is worth 1 / (2 reg), without it no end."""
    flat = np.zeros((2, 2))
    for reg, least in ((0.0, -np.inf), (0.5, -2.0)):
        problem = st.Problem.from_matrices(-np.ones((2, 2)), kernels=(flat, flat), unbalanced=1.0, reg=reg)
        prove = certifier_of(problem, 2)
        assert prove.is_bounded is (reg > 0.0)
        nothing = np.zeros(0, np.int64)
        assert prove(nothing, nothing, np.zeros(0), 0.0, False).lower_bound == pytest.approx(least)


def test_a_gram_matrix_of_zeros_has_a_tight_bound():
    """Marginal errors of that side cost nothing, and the proof says so without a NaN."""
    C = np.random.default_rng(0).normal(size=(3, 4))
    result = st.solve(C, kernels=(np.zeros((3, 3)), np.eye(4)), unbalanced=1.0, reg=0.5, budget=3)
    proof = result.certify()
    assert result.lower_bound <= proof.lower_bound <= result.value + 1e-12
    assert np.isfinite(proof.u).all()


def test_the_optimum_proves_itself():
    """The unbudgeted optimum as a plan without a budget has no gap, with reg and without."""
    for reg in (0.0, 0.1):
        problem = problem_of(2, 9, 8, "rbf", reg, (10.0, 10.0))
        prove = certifier_of(problem, None)
        value = problem.value(prove.full.rows, prove.full.cols, prove.full.mass)
        found = prove(prove.full.rows, prove.full.cols, prove.full.mass, value, True)
        assert found.lower_bound == pytest.approx(value, rel=1e-9)
        assert found.lower_bound <= value * (1.0 + 1e-12)


def test_masses_that_differ_take_more_than_one_round(monkeypatch):
    rng = np.random.default_rng(2)
    args = rng.random((40, 30)), rng.dirichlet(np.ones(40)), rng.dirichlet(np.ones(30))

    def open_share():
        result = st.solve(*args, budget=5, unbalanced=20.0)
        return 1.0 - result.certify().log[0].value / result.value

    share = open_share()
    monkeypatch.setattr(certifier, "_ROUNDS", 1)
    assert share < 0.05 < 0.1 < open_share()


@pytest.mark.parametrize("count", [3, 8, 20])
def test_shares_are_in_proportion_and_add_up(count):
    sums = np.random.default_rng(0).exponential(size=20)
    shares = certifier._in_proportion(sums, count)
    assert shares.sum() == pytest.approx(count, rel=1e-2)
    assert shares.max() <= 1.0
    inside = (shares < 1.0) & (shares > 1e-3)
    assert np.ptp(shares[inside] / sums[inside]) < 1e-12 if inside.any() else count == 20


def test_a_large_problem_with_few_links_is_not_solved_without_a_budget_until_certified(monkeypatch):
    monkeypatch.setattr(certifier, "_POINTS_UP_TO", 10)
    result = st.solve(np.random.default_rng(0).random((12, 9)), budget=4)
    assert result.lower_bound / result.value > 0.5
    memo = result._backing.certifier.problem.memo
    assert "optimum" not in memo
    cheap = result.lower_bound
    assert result.certify().lower_bound > cheap
    assert "optimum" in memo
