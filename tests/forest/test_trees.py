"""Links without a cycle: their best masses, what each is worth, and what a new one would be."""

import numpy as np
import pytest
from cases import clouds, no_cycle

import sparsetransport as st
from sparsetransport.engine.room import Constraint
from sparsetransport.forest import trees as forest


def grown(problem, budget):
    """A forest with the links of a plan."""
    plan = st.solve(problem, budget=budget, polish=False)
    trees = forest.bare(problem, Constraint(st.Uniform(budget), problem.shape).room())
    forest.plant(trees, plan.rows, plan.cols, plan.mass)
    return trees


@pytest.mark.parametrize("seed", range(6))
def test_masses_are_the_best_on_any_links(seed):
    """Those that would be negative are cut, those that close a cycle are left out."""
    problem, rng = clouds(seed), np.random.default_rng(seed)
    rows, cols = np.divmod(rng.choice(14 * 11, 20, replace=False), 11)
    trees = forest.bare(problem, Constraint(None, problem.shape).room())
    forest.plant(trees, rows, cols, np.full(20, 0.1))
    found = forest.links(trees)
    pairs = list(zip(*(each.tolist() for each in found[:2]), strict=True))
    assert set(pairs) <= set(zip(rows.tolist(), cols.tolist(), strict=True))
    assert no_cycle(pairs)
    best = st.solve_support(problem, links=pairs)
    assert problem.value(*found) == pytest.approx(best.value, rel=1e-12)
    assert len(best.mass) == len(pairs)
    fields = problem.fields(*found)
    np.testing.assert_allclose(-np.concatenate(fields), trees.potential, atol=1e-12 * problem.scale)


def test_what_a_link_is_worth():
    """Cut a link of which no other one depends: the objective rises by what was said."""
    problem = clouds(1)
    trees = grown(problem, 14)
    rows, cols, mass = forest.links(trees)
    worth = trees.worth[trees.mass > 0.0]
    value, exact = problem.value(rows, cols, mass), 0
    for k in range(len(mass)):
        rest = [pair for j, pair in enumerate(zip(rows.tolist(), cols.tolist(), strict=True)) if j != k]
        left = st.solve_support(problem, links=rest)
        assert left.value >= value + worth[k] * (1.0 - 1e-9)
        if len(left.mass) == len(rest):
            assert left.value == pytest.approx(value + worth[k], rel=1e-9)
            exact += 1
    assert exact > 5


def test_what_a_new_link_would_be_worth():
    problem = clouds(2)
    trees = grown(problem, 6)
    rows, cols, mass = forest.links(trees)
    value, pairs, exact = problem.value(rows, cols, mass), list(zip(rows.tolist(), cols.tolist(), strict=True)), 0
    for i in range(14):
        for j in range(11):
            pull = forest.wish(trees, i, 14 + j)
            if pull <= 0.0 or trees.tree[i] == trees.tree[14 + j]:
                continue
            gain = forest.joined_worth(pull, trees.whole[i], trees.whole[14 + j])
            more = st.solve_support(problem, links=[*pairs, (i, j)])
            assert more.value >= value - gain * (1.0 + 1e-9)
            if len(more.mass) == len(pairs) + 1:
                assert more.value == pytest.approx(value - gain, rel=1e-9)
                exact += 1
    assert exact > 20
