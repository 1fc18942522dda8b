"""The choice among stars, against all choices there are."""

import itertools

import numpy as np
import pytest

from sparsetransport.certify.stars_master import Stars, choose


def random_stars(seed):
    """All sets of four rows for each of three columns, with random costs."""
    rng, stars = np.random.default_rng(seed), Stars(4)
    for j in range(3):
        for links in itertools.product([False, True], repeat=4):
            assert stars.is_new(j, np.array(links))
            stars.add(j, np.array(links), float(rng.random() - 0.4 * sum(links)))
            assert not stars.is_new(j, np.array(links))
    return stars


def every_choice(stars, total):
    """The costs and links of all choices of a star for each column, no row in two of them."""
    for choice in itertools.product(*(np.flatnonzero(np.array(stars.columns) == j) for j in range(3))):
        links = np.concatenate([stars.links[k] for k in choice])
        if len(set(links.tolist())) == links.size <= total:
            yield sum(stars.costs[k] for k in choice), set(links.tolist())


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("total", [1, 2, 3, 4])
def test_the_best_choice(seed, total):
    """Its reduced costs are what the integer programme finds; the shares of stars bound it, and so do their prices."""
    stars = random_stars(seed)
    best = min(cost for cost, _ in every_choice(stars, total))
    relaxed, prices = stars.relaxed(3, total)
    assert relaxed <= best + 1e-9
    priced = stars.priced(prices)
    lows = np.array([priced[np.array(stars.columns) == j].min() for j in range(3)])
    bound = lows.sum() - np.sort(prices)[::-1][:total].sum()
    assert bound == pytest.approx(relaxed, abs=1e-7)
    gap = best - bound + 0.1
    spare = np.sort(prices)[-total] if total < 4 else 0.0
    raised = np.maximum(prices, spare)
    reduced = stars.priced(raised) - lows[stars.columns]
    choice = choose(stars, reduced / gap, (raised - spare) / gap, spare / gap, 3, total, 10.0, 1000)
    assert sum(stars.costs[k] for k in choice.chosen) == pytest.approx(best, abs=1e-7)
    assert bound + gap * choice.bound <= best
    assert bound + gap * choice.bound == pytest.approx(best, abs=1e-5)


def test_no_choice_is_left():
    """Two columns that need the same row."""
    stars = Stars(1)
    for j in range(2):
        stars.add(j, np.array([True]), 0.0)
    choice = choose(stars, np.zeros(2), np.zeros(1), 0.0, 2, 1, 10.0, 1000)
    assert choice.chosen is None
    assert 0.99 < choice.bound < 1.0
