"""Bounds of one-sided and hard marginals: below every plan, and exact where nothing limits it."""

from itertools import product

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.budgets import limits_of
from sparsetransport.certify import sided


def problems():
    for seed, (sense, weight, reg) in enumerate(product([("<=", "="), ("=", ">=")], [2.0, np.inf], [0.0, 0.4])):
        rng = np.random.default_rng(seed)
        C, a, b = rng.random((6, 5)), rng.random(6) + 0.1, rng.random(5) + 0.1
        a *= (1.5 if sense[0] == "<=" else 1.0) * b.sum() / a.sum()
        yield st.Problem.from_matrices(C, a, b, unbalanced=weight, reg=reg, sense=sense)


@pytest.mark.parametrize("problem", list(problems()), ids=str)
def test_any_potentials_prove_a_bound(problem):
    """For random ones it is below the plans found with and without a budget; without, certificates close the gap."""
    rng = np.random.default_rng(0)
    full, few = st.solve(problem), st.solve(problem, budget=7)
    assert few.value >= full.value - 1e-9
    limits = limits_of(st.Uniform(7), problem.shape)
    for _ in range(20):
        bound = sided.bound_at(problem, limits, rng.normal(size=6), rng.normal(size=5))[0]
        assert bound <= few.value + 1e-9
    assert full.certify().relative_gap < 1e-6
    proof = few.certify()
    assert proof.lower_bound <= few.value + 1e-9
    again = sided.bound_at(problem, limits, proof.potential_a, proof.potential_b)[0]
    assert again == pytest.approx(proof.lower_bound, rel=1e-9)


def test_points_beyond_reach_count():
    """Two links reach two of five columns that must have mass: the bound knows what the others cost."""
    C, b = np.full((3, 5), 0.1), np.ones(5)
    result = st.solve(C, np.full(3, 9.0), b, budget=2, unbalanced=10.0, sense=("<=", "="))
    assert result.lower_bound >= 0.9 * result.value >= 0.9 * 30.0


@pytest.mark.parametrize("sense", [("<=", "="), ("=", "<="), (">=", "="), ("=", ">="), (">=", ">="), ("<=", ">=")])
@pytest.mark.parametrize("kernel", [st.RBF(0.5), st.IMQ(0.5)], ids=repr)
def test_the_optimum_with_kernels_proves_itself(sense, kernel):
    """Without a budget and without ``reg``: no gap but rounding, and a bound for every budget."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(15, 2)) + 0.7
    problem = st.Problem.from_points(X, Y, rng.dirichlet(np.ones(20)), kernels=kernel, sense=sense)
    whole = st.solve(problem)
    assert whole.lower_bound <= whole.value
    assert whole.relative_gap < 1e-6
    few = st.solve(problem, budget=6)
    assert 0.99 * whole.value < few.lower_bound <= few.value


@pytest.mark.parametrize("seed", range(40))
def test_no_bound_with_kernels_is_above_the_optimum(seed):
    """Nor is it below: with any senses, totals and signs of costs, and a kernel that counts points by themselves."""
    rng = np.random.default_rng(seed)
    sense = str(rng.choice(["=", "<=", ">="])), str(rng.choice(["=", "<=", ">="]))
    m, n = rng.integers(2, 5, 2)
    X, Y = rng.normal(size=(m, 2)), rng.normal(size=(n, 2))
    C, a, b = ((X[:, None] - Y) ** 2).sum(-1), rng.random(m) * rng.choice([0.3, 3.0]), rng.random(n)
    if sense != (">=", ">="):
        C -= rng.choice([0.0, 0.5])
    kernels = np.eye(m) if seed % 2 else st.RBF(0.7).gram(X), st.RBF(0.7).gram(Y)
    problem = st.Problem.from_matrices(C, a, b, kernels=kernels, unbalanced=rng.choice([0.5, 50.0]), sense=sense)
    full = st.solve(problem)
    assert full.lower_bound <= full.value + 1e-12
    assert full.certify().lower_bound >= full.value - 1e-6 * (abs(full.value) + 1e-9)


@pytest.mark.parametrize("weight", [9.0, np.inf])
def test_capacity_without_end_does_not_loosen_the_bound(weight):
    """What nobody can use has no rounding error to allow for."""
    rng = np.random.default_rng(0)
    C, a, b = rng.random((14, 11)), 1e6 * rng.random(14), rng.random(11)
    whole = st.solve(C, a, b, unbalanced=weight, sense=("<=", "="))
    assert whole.value * (1.0 - 1e-9) <= whole.lower_bound <= whole.value
