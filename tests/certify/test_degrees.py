"""The bound by degrees: what points cost that have few links."""

from itertools import combinations

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.budgets import as_matroid, limits_of
from sparsetransport.certify import degrees
from sparsetransport.certify.bounds import bound_at


def bound(problem, budget, u, v):
    limits = limits_of(as_matroid(budget), problem.shape)
    return degrees.bound(problem, limits, u, v, 4)


@pytest.mark.parametrize("reg", [0.0, 0.7])
def test_a_line_costs_at_least_this(reg):
    """One link: exactly the least cost. Several: no more than the least cost, found on a grid of masses."""
    rng = np.random.default_rng(0)
    r, w, far = rng.random((1, 4)), np.array([0.8]), 0.5 * rng.random(4)
    table = np.zeros((1, 5))
    degrees.fill(r, w, far, 3.0, 2.0, reg, table)
    grid = np.linspace(0.0, 1.0, 41)

    def cost(j, x):
        each = r[0, j] * x + 0.5 * reg * x**2 + 2.0 * np.maximum(x - far[j], 0.0) ** 2
        return each.sum() + 3.0 * max(w[0] - x.sum(), 0.0) ** 2

    assert table[0, 0] == pytest.approx(3.0 * 0.64)
    one = min(cost(np.array([j]), np.array([x])) for j in range(4) for x in np.linspace(0.0, 1.0, 4001))
    assert table[0, 1] == pytest.approx(one, rel=1e-5)
    two = min(cost(np.array(p), np.array([x, y])) for p in combinations(range(4), 2) for x in grid for y in grid)
    assert table[0, 2] <= two
    assert table[0, 2] > 0.5 * two
    assert table[0, 4] == 0.0
    assert (np.diff(table[0]) <= 0.0).all()


def test_a_budget_is_shared_out_at_one_price():
    """By brute force over what every line takes: never above, and equal where columns are convex."""
    rng = np.random.default_rng(1)
    table = np.sort(rng.random((4, 4)), axis=1)[:, ::-1].copy()
    table[:, -1] = 0.0
    convex = np.array([9.0, 4.0, 1.0, 0.0]) * np.arange(1.0, 5.0)[:, None]
    for each in (table, convex):
        for total in range(13):
            takes = np.stack(np.meshgrid(*[np.arange(4)] * 4), -1).reshape(-1, 4)
            costs = each[np.arange(4), takes].sum(axis=1)
            truth = costs[takes.sum(axis=1) <= total].min()
            found = degrees.least(each, np.full(4, 99), total)
            assert found <= truth * (1.0 + 1e-12)
            if each is convex:
                assert found >= truth * (1.0 - 1e-12)
    assert degrees.least(convex, np.array([0, 0, 3, 3]), 99) == pytest.approx(9.0 + 18.0)


@pytest.mark.parametrize("budget", [3, 6, st.PerRow(1), st.PerColumn(2), st.PerRow(1) & st.Uniform(4)])
def test_any_potentials_give_a_bound(budget):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        problem = st.Problem.from_matrices(
            rng.random((5, 4)), rng.lognormal(size=5), rng.lognormal(size=4), unbalanced=(4.0, 9.0), reg=0.2 * seed
        )
        best = st.solve(problem, budget=budget, effort="thorough").value
        limits = limits_of(as_matroid(budget), problem.shape)
        for _ in range(20):
            u, v = bound_at(
                st.Problem.from_matrices(problem.cost.rows(0, 5), problem.a, problem.b, unbalanced=(4.0, 9.0)),
                limits,
                rng.normal(size=5) * 0.2,
                rng.normal(size=4) * 0.2,
            )[1:]
            assert bound(problem, budget, u, v) <= best


def test_it_knows_what_one_link_a_row_costs():
    """Where today's bound of unreached points says next to nothing."""
    rng = np.random.default_rng(50_001)
    C = rng.random((50, 50))
    a, b = rng.lognormal(size=50), rng.lognormal(size=50)
    result = st.solve(C, a / a.sum(), b / b.sum(), budget=st.PerRow(1))
    assert result.relative_gap < 0.2
    log = {each.name: each.value for each in result._proofs[0].log}
    assert log["degrees"] > 3.0 * log["dual"]
