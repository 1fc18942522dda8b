"""A step of the ascent on a device: masses of rows that are best at given prices, and rows shared by processes."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy.optimize import brentq  # noqa: E402

from sparsetransport.effort import DevicePrices  # noqa: E402
from sparsetransport.prices import device_ascent as ascent  # noqa: E402


def pairs_of(cost):
    m, n = cost.shape
    key = torch.arange(m * n)
    return ascent.Pairs.of(key, lambda rows, cols: torch.from_numpy(cost)[rows, cols], m, n)


def test_the_masses_of_rows_are_the_best_ones():
    """Each row's marginal error is the root of a falling function, here by SciPy."""
    rng = np.random.default_rng(0)
    cost, beta, a, weight, rho = rng.random((7, 5)), rng.random(5), rng.random(7), 0.7, 0.05
    given = [torch.from_numpy(each) for each in (beta, a)]
    pairs = pairs_of(cost)
    filled = ascent.fill(pairs, pairs.cost, *given, weight, rho, DevicePrices(newton=30), keep=True)
    for i in range(7):
        root = brentq(lambda t, i=i: np.clip(beta - cost[i] - t, 0.0, None).sum() / rho - t / 2 / weight - a[i], -9, 9)
        assert float(filled.theta[i]) == pytest.approx(root, abs=1e-9)
    mass = filled.mass.reshape(7, 5)
    np.testing.assert_allclose(filled.load, mass.sum(0))
    np.testing.assert_allclose(filled.used, (mass > 0.0).sum(0))


def test_ascent_reaches_the_smoothed_optimum():
    """There columns get what their prices say: ``b - beta / 2 weight``."""
    rng = np.random.default_rng(1)
    cost, a, b = rng.random((9, 6)), rng.random(9), rng.random(6)
    pairs, how = pairs_of(cost), DevicePrices(newton=30)
    masses = torch.from_numpy(a), torch.from_numpy(b)
    shard = ascent.Shard(0, 9)
    beta, mass = ascent.ascend(pairs, pairs.cost, masses, (2.0, 3.0), torch.zeros(6).double(), 0.1, 2000, how, shard)
    got = torch.zeros(6).double().index_add_(0, pairs.cols.long(), mass)
    np.testing.assert_allclose(got, b - beta.numpy() / 6.0, atol=1e-6)


def test_pairs_find_their_values_among_others():
    cost = np.zeros((3, 4))
    some = ascent.Pairs.of(torch.tensor([1, 5, 11]), lambda rows, cols: torch.zeros(len(rows)).double(), 3, 4)
    every = pairs_of(cost)
    matched = every.matched(some, torch.tensor([1.0, 2.0, 3.0]).double())
    assert matched.nonzero().flatten().tolist() == [1, 5, 11]
    assert some.matched(every, torch.arange(12).double()).tolist() == [1.0, 5.0, 11.0]


def test_rows_of_every_width_are_launched_once():
    key = torch.cat([torch.arange(3), 100 + torch.arange(40), 300 + torch.arange(70)])
    pairs = ascent.Pairs.of(key, lambda rows, cols: torch.zeros(len(rows)), 4, 100)
    assert sorted(torch.cat([rows for _, rows in pairs.launches]).tolist()) == [0, 1, 2, 3]
    for width, rows in pairs.launches:
        assert all(pairs.first[row + 1] - pairs.first[row] <= width for row in rows)
