"""Stochastic OMP, Algorithm 1 of the paper."""

import math

import numpy as np
import pytest
from cases import instance, support
from scipy.stats import chisquare

import sparsetransport as st

START = [(0, 0), (1, 2), (3, 3)]


class Repeat:
    """A rule that lets another one choose many times from the same state, and then ends the loop."""

    exhaustive = False

    def __init__(self, rule, times):
        self.rule, self.times, self.chosen = rule, times, []

    def select(self, view):
        self.gradient = view.candidates()
        self.chosen = [self.rule.select(view) for _ in range(self.times)]


def _draws(rule, matroid, times, **options):
    """Many choices of a rule at the same support, and the ranking of all pairs off it by gradient."""
    case = instance(4, 4, 5, "rbf", 0.1, (10.0, 10.0), **options)
    repeat = Repeat(rule, times)
    st.maximise(case.problem(), matroid, repeat, reclaim=False, start=START, rng=np.random.default_rng(0))
    rows, cols, gradient = repeat.gradient
    order = np.argsort(gradient)
    return repeat.chosen, [(int(rows[k]), int(cols[k])) for k in order]


@pytest.mark.parametrize(("budget", "eps"), [(4, 0.5), (5, 0.2), (8, 0.3)])
def test_the_sample_is_without_replacement(budget, eps):
    """Of N pairs a sample of w holds the one of rank r as its best with probability C(N-r-1, w-1) / C(N, w).

    In particular the w - 1 worst pairs are never chosen, as they could be if pairs were drawn with replacement.
    """
    chosen, ranking = _draws(st.StochasticOMP(eps), st.Uniform(budget), 4000)
    total, wanted = len(ranking), math.ceil(20 / budget * math.log(1.0 / eps))
    assert total == 20 - len(START)
    assert 1 < wanted < total
    counts = np.bincount([ranking.index(pair) for pair in chosen], minlength=total)
    expected = np.array([math.comb(total - r - 1, wanted - 1) / math.comb(total, wanted) for r in range(total)])
    assert counts[expected == 0.0].sum() == 0
    common = expected * 4000 >= 5.0
    observed = np.append(counts[common], counts[~common].sum())
    reference = np.append(expected[common], expected[~common].sum()) * 4000
    kept = reference > 0.0
    assert chisquare(observed[kept], reference[kept]).pvalue > 1e-3


def test_the_support_is_never_drawn():
    """Candidates come from off the support, however often one draws."""
    chosen, ranking = _draws(st.StochasticOMP(0.9), st.Uniform(20), 2000)
    assert not set(chosen) & set(START)
    assert set(chosen) == set(ranking)  # a sample of one pair: every pair off the support comes up


@pytest.mark.parametrize(
    "matroid", [st.PerRow(2), st.PerColumn(1), st.Uniform(4), st.PerRow(1) & st.PerColumn(1)], ids=repr
)
def test_only_free_and_allowed_pairs_are_chosen(matroid):
    """What the budget or a forbidden pair rules out is never chosen, even if the sample holds nothing else."""
    case = instance(4, 4, 5, forbidden=0.4)
    repeat = Repeat(st.StochasticOMP(0.5), 500)
    start = [(i, j) for i, j in [(0, 0), (1, 2)] if np.isfinite(case.C[i, j])]
    st.maximise(case.problem(), matroid, repeat, reclaim=False, start=start, rng=np.random.default_rng(0))
    for i, j in repeat.chosen:
        assert np.isfinite(case.C[i, j])
        assert matroid.limits((4, 5)).rows[i] > [r for r, _ in start].count(i)
        assert matroid.limits((4, 5)).cols[j] > [c for _, c in start].count(j)


def test_a_sample_of_everything_is_omp():
    """With ε so small that the sample holds every pair, stochastic OMP is OMP, step by step."""
    for seed in range(5):
        case = instance(seed, 6, 5, "rbf", 0.1, (10.0, 10.0))
        every = case.solve(budget=8, method=st.StochasticOMP(1e-300), rng=seed, reclaim=False)
        omp = case.solve(budget=8, reclaim=False)
        assert support(every) == support(omp)
        np.testing.assert_array_equal(every.path.pairs, omp.path.pairs)


def test_a_smaller_epsilon_gains_more_on_average():
    """ε is what the sampling may cost: a larger sample ends, on average, at a lower objective."""
    case = instance(0, 10, 10, "rbf", 0.1, (10.0, 10.0))
    mean = [
        np.mean([case.solve(budget=10, method=st.StochasticOMP(eps), reclaim=False, rng=k).value for k in range(20)])
        for eps in (0.9, 0.01)
    ]
    assert mean[1] < mean[0]


def test_to_the_letter_it_makes_exactly_k_steps():
    """Algorithm 1 adds one pair in each of K steps, whether its gradient helps or not."""
    case = instance(0, 8, 8, "rbf", 0.1, (10.0, 10.0))
    assert len(case.solve(budget=20, method="stochastic", reclaim=False, rng=0).path) == 20
