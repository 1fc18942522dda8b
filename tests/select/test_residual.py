"""Algorithm 2 and the rule of Chen et al.: the short way to draw has the distribution of the long one."""

from collections import Counter
from dataclasses import replace

import numpy as np
import oracles
import pytest
from cases import Forest, instance, no_cycle
from scipy.stats import chisquare

import sparsetransport as st

TIMES = 4000
START = [(0, 0), (1, 0), (3, 2)]
BUDGETS = {
    "column": st.PerColumn(3),
    "columns": st.PerColumn([2, 1, 3, 1, 4]),
    "row": st.PerRow(2),
    "rows": st.PerRow([3, 1, 2, 2]),
}


class Repeat:
    """A rule that lets another one choose many times from the same state, and then ends the loop."""

    exhaustive = False

    def __init__(self, rule):
        self.rule = rule

    def select(self, view):
        self.mass = dict(zip(view.support, view.mass.tolist(), strict=True))
        self.chosen = [self.rule.select(view) for _ in range(TIMES)]


def _case(forbidden):
    case = instance(6, 4, 5, "delta", 0.1, (20.0, 20.0))
    # Masses for which every pair off START still has a negative gradient, so that no two scores tie at zero.
    case = replace(case, a=np.array([0.5, 0.5, 1.0, 1.0]), b=np.array([2.0, 1.5, 3.0, 1.6, 1.8]))
    if forbidden:
        for pair in [(2, 0), (2, 2), (2, 3), (0, 3), (3, 3), (1, 4)]:
            case.C[pair] = np.inf
    return case


def _draws(case, matroid, rule, seed):
    """How often each pair was chosen at the support START, and the dense plan there."""
    repeat = Repeat(rule)
    st.maximise(case.problem(), matroid, repeat, reclaim=False, start=START, rng=np.random.default_rng(seed))
    plan = np.zeros(case.shape)
    for pair, mass in repeat.mass.items():
        plan[pair] = mass
    return Counter(repeat.chosen), plan


def _base(case, matroid, plan):
    """The best base by brute thought: the steepest pairs of every line, as many as it has places left."""
    gradient = oracles.gradient(*case.arrays, plan)
    limits = matroid.limits(case.shape)
    by_column = isinstance(matroid, st.PerColumn)
    base = []
    for line in range(case.shape[1 if by_column else 0]):
        pairs = [(k, line) if by_column else (line, k) for k in range(case.shape[0 if by_column else 1])]
        places = int((limits.cols if by_column else limits.rows)[line]) - sum(pair in START for pair in pairs)
        open_pairs = [pair for pair in pairs if pair not in START and np.isfinite(case.C[pair])]
        top = sorted(open_pairs, key=gradient.__getitem__)[: max(places, 0)]
        # No ties at max(0, -gradient) = 0, unless there is no choice anyway.
        assert len(open_pairs) <= places or all(gradient[pair] < 0.0 for pair in top)
        base += top
    return base


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("forbidden", [False, True])
def test_every_pair_of_the_best_base_is_as_likely(budget, forbidden):
    """The best base of a budget per line is the top of every line; forbidden or not."""
    case, matroid = _case(forbidden), BUDGETS[budget]
    counts, plan = _draws(case, matroid, st.Residual(), 1)
    base = _base(case, matroid, plan)
    assert set(counts) == set(base)
    assert chisquare([counts[pair] for pair in base]).pvalue > 1e-3


def test_a_uniform_budget_draws_from_the_steepest_pairs_of_the_plan():
    """On a whole-plan budget the base is the K - |S| steepest pairs."""
    case = _case(False)
    counts, plan = _draws(case, st.Uniform(9), st.Residual(), 3)
    gradient = oracles.gradient(*case.arrays, plan)
    ranking = sorted((p for p in np.ndindex(*case.shape) if p not in START), key=gradient.__getitem__)
    assert set(counts) == set(ranking[:6])
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_any_matroid_is_asked_pair_by_pair():
    """On the graphic matroid the base is a best spanning forest over the support, and each of its links as likely."""
    case = _case(False)
    counts, plan = _draws(case, Forest(), st.Residual(), 4)
    gradient = oracles.gradient(*case.arrays, plan)
    base = []
    for pair in sorted((p for p in np.ndindex(*case.shape) if p not in START), key=gradient.__getitem__):
        if no_cycle((*START, *base, pair)):
            base.append(pair)
    assert set(counts) == set(base)
    assert len(base) == 4 + 5 - 1 - len(START)
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_residual_greedy_draws_from_the_base_of_largest_gains():
    """Chen et al. rank pairs by the exact gain F(S + e) - F(S), not by gradient."""
    case = _case(False)
    repeat = Repeat(st.ResidualGreedy())
    st.maximise(case.problem(), st.PerColumn(1), repeat, start=[], rng=np.random.default_rng(5))
    hessian, slope, _ = oracles.quadratic(*case.arrays)
    gain = (np.maximum(-slope, 0.0) ** 2 / (2.0 * np.diag(hessian))).reshape(case.shape)
    assert set(repeat.chosen) == {(int(gain[:, j].argmax()), j) for j in range(5)}
    assert chisquare(list(Counter(repeat.chosen).values())).pvalue > 1e-3


@pytest.mark.parametrize("method", ["residual", "residual-greedy"])
def test_to_the_letter_the_base_is_filled(method):
    """Algorithm 2 makes as many steps as the matroid has rank: K2 in every column."""
    case = instance(1, 5, 4, "rbf", 0.1, (10.0, 10.0))
    pairs = case.solve(budget=st.PerColumn(2), method=method, reclaim=False, rng=0).path.pairs
    np.testing.assert_array_equal(np.bincount(pairs[:, 1]), [2, 2, 2, 2])
    assert len({tuple(pair) for pair in pairs.tolist()}) == 8


def test_a_line_with_every_pair_forbidden_is_left_out():
    """Places that no allowed pair can take do not stop or bias the draw."""
    case = instance(1, 5, 4, "rbf", 0.1, (10.0, 10.0))
    case.C[:, 2] = np.inf
    pairs = case.solve(budget=st.PerColumn(2), method="residual", reclaim=False, rng=0).path.pairs
    np.testing.assert_array_equal(np.bincount(pairs[:, 1], minlength=4), [2, 2, 0, 2])
