"""Entries for slack: one-sided marginals with kernels and ``reg``, against brute force with an independent solver."""

from itertools import combinations, product

import numpy as np
import pytest
from oracles import sided_least

import sparsetransport as st
from sparsetransport.engine import slack
from sparsetransport.engine.room import Constraint

KERNELS = [(st.RBF(0.5), 0.0), (st.RBF(0.5), 0.3), (st.Delta(), 0.3), ((st.Delta(), st.IMQ(1.0)), 0.3)]
SENSES = [("<=", "="), ("=", ">="), ("<=", ">="), (">=", "=")]


def instance(seed, kernels, reg, sense, m=3, n=3):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(m, 2)), rng.normal(size=(n, 2))
    return st.Problem.from_points(
        x,
        y,
        rng.random(m) + 0.1,
        rng.random(n) + 0.1,
        kernels=kernels,
        unbalanced=(3.0, 1.0),
        reg=reg,
        sense=sense,
        normalize_cost=True,
    )


@pytest.mark.parametrize("sense", SENSES)
@pytest.mark.parametrize(("kernels", "reg"), KERNELS)
def test_plans_are_close_to_the_best_of_all_supports(kernels, reg, sense):
    """The unbudgeted optimum is exact, plans of two links are near the best of 36, and no bound is above that."""
    problem = instance(0, kernels, reg, sense)
    pairs = list(product(range(3), range(3)))
    best = min(sided_least(problem, support) for support in combinations(pairs, 2))
    result = st.solve(problem, budget=2)
    assert len(result.mass) <= 2
    assert best - 1e-7 <= result.value <= 1.1 * best
    assert result.certify().lower_bound <= best + 1e-7
    assert st.solve(problem).value == pytest.approx(sided_least(problem, pairs), rel=1e-6, abs=1e-7)
    there = list(zip(result.rows.tolist(), result.cols.tolist(), strict=True))
    assert st.solve_support(problem, links=there).value == pytest.approx(result.value, rel=1e-9)


def test_slack_is_not_in_the_plan_or_its_path():
    problem = instance(1, st.RBF(0.5), 0.1, ("<=", "="), 8, 6)
    result = st.solve(problem, budget=st.PerRow(1) & 5)
    assert result.rows.max() < 8
    assert result.cols.max() < 6
    assert np.bincount(result.rows).max() == 1
    assert (result.path.pairs < (8, 6)).all()
    assert result.path.entries[-1] == len(result.mass) <= 5


def test_reg_counts_links_alone():
    problem = instance(2, st.Delta(), 0.5, ("<=", ">="))
    wide = slack.Slacked.of(problem)
    rows, cols = np.array([0, 4]), np.array([1, 6])
    diagonal = np.diag(wide.hessian(rows, cols, rows, cols))
    assert diagonal.tolist() == [2.0 * 3.0 + 2.0 * 1.0 + 0.5, 2.0 * 3.0]
    pairs, mass = slack.first_slack(problem)
    assert pairs == [(3, 6), (4, 6), (5, 6)]
    assert wide.value(*np.array(pairs).T, mass) == pytest.approx(problem.constant)


def test_the_budget_of_the_user_counts_links():
    class Even(st.Matroid):
        def can_add(self, support, pair):
            return (pair[0] + pair[1]) % 2 == 0 and len(support) < 3

    problem = instance(3, st.RBF(0.5), 0.1, ("<=", "="))
    made = slack.room_for_slack(problem, Constraint(Even(), problem.shape))
    assert made.oracle.can_add([(3, 3)] * 9, (0, 0))
    assert not made.oracle.can_add([], (0, 1))
    assert made.oracle.can_add([(0, 0)] * 3, (4, 3))
    result = st.solve(problem, budget=Even())
    assert ((result.rows + result.cols) % 2 == 0).all()


def test_a_callback_is_refused():
    with pytest.raises(ValueError, match="callback"):
        st.solve(instance(0, st.RBF(0.5), 0.1, ("<=", "=")), budget=2, callback=lambda step: False)
