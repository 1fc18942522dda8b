"""One-sided marginals on trees: against brute force over supports, with an independent solver for their masses."""

from itertools import combinations, product

import numpy as np
import pytest
from oracles import sided_least

import sparsetransport as st
from sparsetransport.engine.room import Constraint
from sparsetransport.forest import sided, trees

SENSES = list(product(("=", "<=", ">="), repeat=2))


def instance(seed, sense, m=3, n=3):
    rng = np.random.default_rng(seed)
    C, a, b = rng.random((m, n)), rng.random(m) + 0.1, rng.random(n) + 0.1
    if sense != (">=", ">="):
        C -= 0.3 * (seed % 2)
    weights = tuple(rng.choice([0.5, 3.0, 30.0], 2).tolist())
    return st.Problem.from_matrices(C, a, b, unbalanced=weights, sense=sense)


@pytest.mark.parametrize("sense", SENSES)
def test_plans_are_the_best_of_all_supports(sense):
    """On nine pairs the search finds the optimum of every budget tried; the bound is never above it."""
    for seed in range(4):
        problem = instance(seed, sense)
        pairs = list(product(range(3), range(3)))
        for budget in (1, 3):
            best = min(sided_least(problem, support) for support in combinations(pairs, budget))
            result = st.solve(problem, budget=budget)
            assert result.value == pytest.approx(best, rel=1e-6, abs=1e-7)
            assert result.certify().lower_bound <= best + 1e-7
        assert st.solve(problem).value == pytest.approx(sided_least(problem, pairs), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("sense", SENSES)
def test_potentials_have_the_sign_of_their_sense(sense):
    result = st.solve(instance(5, sense, 6, 8), budget=7)
    for potential, each in zip(result.potentials, sense, strict=True):
        low, high = (0.0 if each == ">=" else -np.inf), (0.0 if each == "<=" else np.inf)
        assert (potential >= low).all()
        assert (potential <= high).all()


@pytest.mark.parametrize("sense", [("<=", "="), ("=", ">="), ("<=", ">=")])
def test_what_links_are_worth(sense):
    """To cut a link costs what was said, where no other one is left without mass; else more."""
    problem, exact = instance(3, sense, 7, 9), 0
    plan = st.solve(problem, budget=8)
    forest = trees.bare(problem, Constraint(None, problem.shape).room())
    trees.plant(forest, plan.rows, plan.cols, plan.mass)
    rows, cols, mass = trees.links(forest)
    worth = forest.worth[forest.mass > 0.0]
    value = problem.value(rows, cols, mass)
    for k in range(len(mass)):
        rest = np.arange(len(mass)) != k
        left = trees.bare(problem, Constraint(None, problem.shape).room())
        trees.plant(left, rows[rest], cols[rest], mass[rest])
        loss = problem.value(*trees.links(left)) - value
        assert loss >= worth[k] * (1.0 - 1e-9) - 1e-12
        exact += loss == pytest.approx(worth[k], rel=1e-9, abs=1e-12)
    assert exact > len(mass) // 2


def test_a_link_is_worth_what_its_prices_leave():
    """Both sides give way by a spread; without spare mass that is the formula of trees."""
    plain = float(trees.joined_worth(2.0, 3.0, 5.0))
    assert sided.sided_worth(2.0, 3.0, 0.0, np.inf, 5.0, 0.0, np.inf, np.inf) == pytest.approx(plain)
    assert sided.sided_worth(2.0, 3.0, np.inf, 0.0, 5.0, np.inf, 0.0, 4.0) == pytest.approx(8.0)
    assert sided.sided_worth(2.0, 3.0, 1.0, np.inf, 5.0, np.inf, 0.0, np.inf) == pytest.approx(2.0 + 0.5 * 4.0 * 3.0)
