"""Welch's test from published numbers, and Holm's correction."""

import numpy as np
import pytest
from scipy import stats

from sparsetransport.experiments.replication import Place, compare, holm, welch

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("counts", [(5, 5), (5, 25), (3, 8)])
def test_welch_from_a_mean_and_a_deviation_is_welch_from_the_runs(counts):
    theirs, ours = RNG.normal(1.0, 0.1, counts[0]), RNG.normal(1.1, 0.3, counts[1])
    found = welch(Place("x", theirs.mean(), theirs.std(ddof=1), len(theirs), ours.tolist()))
    expected = stats.ttest_ind(ours, theirs, equal_var=False)
    assert found.t == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.freedom == pytest.approx(expected.df)
    assert found.difference / found.error == pytest.approx(found.t)


def test_a_place_without_any_deviation_is_named():
    with pytest.raises(ValueError, match="GSOT must vary"):
        welch(Place("GSOT", 1.0, 0.0, 5, [2.0, 2.0]))


def test_holm_by_hand():
    """The least is multiplied by the number of tests, the next by one less, and none falls below one before it."""
    np.testing.assert_allclose(holm([0.04, 0.005, 0.03, 0.011]), [0.06, 0.02, 0.06, 0.033])
    np.testing.assert_allclose(holm([0.5, 0.6]), [1.0, 1.0])
    assert holm([]).size == 0


@pytest.mark.parametrize(("theirs", "ours", "share"), [(25, 25, 0.05), (5, 5, 0.05), (5, 25, 0.11)])
def test_how_often_a_difference_is_found_where_there_is_none(theirs, ours, share):
    """In one of 20 tables of 15 places, as the level says, or less.

    Not with 5 runs against 25: so far out in its tail Welch's approximation is then too eager, and it is one of ten.
    """
    rng, tables = np.random.default_rng(0), 300
    found = 0
    for _ in range(tables):
        first, second = rng.normal(size=(15, theirs)), rng.normal(size=(15, ours))
        means, deviations = first.mean(axis=1), first.std(axis=1, ddof=1)
        places = [Place(str(k), means[k], deviations[k], theirs, second[k]) for k in range(15)]
        found += bool(compare("x", places)[1])
    assert found / tables < share + 3.0 * np.sqrt(share / tables)
    assert found > 0
