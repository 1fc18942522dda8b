"""Fixed costs of links: against HiGHS's integer programme and brute force over supports."""

from itertools import combinations, product

import numpy as np
import pytest
from oracles import sided_least
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix, diags, eye, hstack, kron, vstack

import sparsetransport as st
from sparsetransport import charged
from sparsetransport.status import Status

HARD = {"unbalanced": np.inf, "sense": ("<=", "=")}


def instance(seed, m, n, scale=3.0):
    """Costs, capacities with some to spare, demands, and a cost for every link."""
    rng = np.random.default_rng(seed)
    C, a, b = rng.random((m, n)), rng.random(m) + 0.05, rng.random(n) + 0.05
    return C, a * (1.4 * b.sum() / a.sum()), b, rng.random((m, n)) * scale * b.mean()


def fixed_charge(C, a, b, fees, budget=None):
    """The least cost of all plans that serve the demands, with so many links at the most; inf if there is none."""
    (m, n), size = C.shape, C.size
    sums = vstack([kron(eye(m), np.ones((1, n))), kron(np.ones((1, m)), eye(n))])
    used = np.append(np.zeros(size), np.ones(size))
    rules = [
        LinearConstraint(hstack([sums, csr_matrix((m + n, size))]), np.append(np.full(m, -np.inf), b), np.append(a, b)),
        LinearConstraint(hstack([eye(size), -diags(np.minimum(a[:, None], b).ravel())]), -np.inf, 0.0),
        LinearConstraint(used[None], -np.inf, size if budget is None else budget),
    ]
    costs, most = np.append(C.ravel(), fees.ravel()), np.append(np.full(size, np.inf), np.ones(size))
    found = milp(costs, constraints=rules, integrality=used, bounds=Bounds(0.0, most), options={"mip_rel_gap": 1e-9})
    return np.inf if found.fun is None else found.fun


@pytest.mark.parametrize("seed", range(4))
def test_the_fixed_charge_problem(seed):
    """The plans are those of HiGHS, with and without a budget, and the bound is below them."""
    C, a, b, fees = instance(seed, 6, 7, (1.0, 8.0)[seed % 2])
    result = st.solve(C, a, b, link_cost=fees, **HARD)
    best = fixed_charge(C, a, b, fees)
    assert result.value == pytest.approx(best, rel=1e-7)
    assert 0.6 * best < result.lower_bound <= best * (1.0 + 1e-9)
    assert result.value_links == pytest.approx(fees[result.rows, result.cols].sum())
    assert result.value == pytest.approx(result.value_linear + result.value_links)
    np.testing.assert_allclose(result.marginal_b, b, rtol=1e-9)
    budget = len(result.mass) - 1
    few, least = st.solve(C, a, b, link_cost=fees, budget=budget, **HARD), fixed_charge(C, a, b, fees, budget)
    assert (few.status is Status.INFEASIBLE) == (least == np.inf)
    if least < np.inf:
        assert len(few.mass) <= budget
        assert least * (1.0 - 1e-9) <= few.value <= 1.03 * least
        assert few.lower_bound <= least * (1.0 + 1e-9)


@pytest.mark.parametrize("sense", ["=", ("<=", "="), ("<=", ">=")])
def test_soft_marginals(sense):
    """On nine pairs the search finds the best of all supports; the bound is never above it."""
    pairs = list(product(range(3), range(3)))
    for seed in range(2):
        C, a, b, fees = instance(seed, 3, 3)
        problem = st.Problem.from_matrices(C, a, b, unbalanced=(3.0, 8.0), sense=sense, link_cost=fees)
        free = problem.like(link_cost=None)
        best = min(
            sided_least(free, support) + sum(fees[pair] for pair in support)
            for size in range(1, 5)
            for support in combinations(pairs, size)
        )
        result = st.solve(problem)
        assert result.value == pytest.approx(best, rel=1e-6)
        assert result.certify().lower_bound <= best * (1.0 + 1e-9)


def test_one_price_for_all_links_is_the_multiplier_of_the_budget():
    """The plan is the best one of its own number of links, and no other number is better at this price."""
    C, a, b, _ = instance(5, 7, 8)
    result = st.solve(C, a, b, link_cost=0.2, **HARD)
    assert result.value_links == pytest.approx(0.2 * len(result.mass))
    sweep = st.solve_sweep(C, a, b, budgets=range(8, 15), **HARD)
    assert result.value == pytest.approx(min(each.value + 0.2 * len(each.mass) for each in sweep), rel=1e-9)


def test_no_link_carries_more_than_said():
    """In plans that are optimal on their links, whichever these are."""
    for sense in ("=", "<="):
        C, a, b, fees = instance(7, 5, 6)
        problem = st.Problem.from_matrices(C, a, b, unbalanced=(2.0, 5.0), sense=sense, link_cost=fees)
        most, rng = charged.largest_masses(problem), np.random.default_rng(0)
        for _ in range(20):
            links = np.unravel_index(rng.choice(30, 6, replace=False), (5, 6))
            plan = st.solve_support(problem, links=list(zip(*links, strict=True)))
            assert (plan.mass <= most[plan.rows, plan.cols] * (1.0 + 1e-9)).all()


def test_slope_scaling_begins_with_the_relaxation():
    """The relaxed problem has a smaller optimum than the first plan costs, and so has any plan its own value."""
    C, a, b, fees = instance(8, 6, 6)
    problem = st.Problem.from_matrices(C, a, b, link_cost=fees, **HARD)
    plan = charged.slope_scaled(problem, st.DEFAULT)
    below = st.solve(charged.relaxed(problem))
    assert below.value <= problem.value(plan.rows, plan.cols, plan.mass)
    linear = charged.linear(problem, np.minimum(a[:, None], b))
    assert linear.value(plan.rows, plan.cols, plan.mass) <= problem.value(plan.rows, plan.cols, plan.mass) + 1e-12


def test_a_start_a_batch_and_a_file(tmp_path):
    C, a, b, fees = instance(9, 5, 6)
    result = st.solve(C, a, b, link_cost=fees, **HARD)
    again = st.solve(C, a, b, link_cost=fees, start=result, **HARD)
    assert again.value <= result.value * (1.0 + 1e-12)
    batch = st.solve_batch([(C, a, b)], link_cost=fees, effort="default", **HARD)
    assert batch[0].value == result.value
    result.save(tmp_path / "plan.npz")
    loaded = st.load(tmp_path / "plan.npz")
    assert (loaded.value_links, loaded.lower_bound) == (result.value_links, result.lower_bound)
    np.testing.assert_array_equal(loaded.problem.link_cost, fees)
    assert "cost of links" in loaded.summary()


@pytest.mark.filterwarnings("ignore:marginal errors:sparsetransport.SparseTransportWarning")
def test_nothing_is_linked_that_costs_too_much():
    C = np.ones((3, 3))
    result = st.solve(C, unbalanced=1.0, link_cost=100.0)
    assert not result.mass.size
    assert result.value == pytest.approx(st.solve_support(C, links=[], unbalanced=1.0).value)
    assert st.solve(C, unbalanced=1.0, link_cost=0.0).value == st.solve(C, unbalanced=1.0).value


def test_errors_name_the_argument():
    C = np.ones((3, 3))
    for given, error, message in (
        (-1.0, ValueError, "link_cost must"),
        (-C, ValueError, "link_cost must not be negative"),
        (np.ones((2, 3)), ValueError, "link_cost must be a number or have the shape"),
        (np.inf, ValueError, "link_cost"),
        ("a lot", TypeError, "link_cost"),
    ):
        with pytest.raises(error, match=message):
            st.solve(C, link_cost=given)
    with pytest.raises(ValueError, match="link_cost must be None"):
        st.solve(C, reg=1.0, link_cost=1.0)
    problem = st.Problem.from_matrices(C, link_cost=1.0)
    with pytest.raises(ValueError, match="link_cost"):
        st.solve_fewest(problem, within=0.1)
    with pytest.raises(ValueError, match="solve_shared takes problems without link_cost"):
        st.solve_shared([problem], budget=2)
    with pytest.raises(TypeError, match="link_cost must not be given together with a Problem"):
        st.solve(problem, link_cost=2.0)
