"""Pricing by PyTorch: minima are those of all pairs, and a proven one is never above the true one."""

from fractions import Fraction

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import sparsetransport as st  # noqa: E402
from sparsetransport.geometry.pricing import Pricing  # noqa: E402
from sparsetransport.prices import device_pricing as pricing  # noqa: E402


def problem(seed, m, n, d, device="cpu"):
    rng = np.random.default_rng(seed)
    x, y, beta = rng.normal(size=(m, d)), rng.normal(size=(n, d)) + 1.0, rng.normal(size=n)
    return (x, y, beta), [torch.from_numpy(each).to(device) for each in (x, y, beta)]


@pytest.mark.parametrize("d", [1, 2, 3, 4, 20])
def test_minima_and_candidates_are_those_of_all_pairs(d):
    (x, y, beta), given = problem(d, 40, 30, d)
    reduced = ((x[:, None] - y) ** 2).sum(2) - beta
    found = pricing.price(*map(pricing.Cloud.of, given[:2]), given[2], 4)
    np.testing.assert_allclose(found.least, reduced.min(1), rtol=1e-12, atol=1e-12)
    assert (np.sort(found.cols.numpy(), 1) == np.sort(np.argsort(reduced, 1)[:, :4], 1)).all()


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("d", [2, 5])
def test_a_proven_minimum_is_never_above_the_true_one(d, size):
    """Compared in rational arithmetic, with prices much larger and much smaller than distances."""
    (x, y, beta), given = problem(0, 6, 8, d)
    clouds = [pricing.Cloud.of(each) for each in given[:2]]
    found = pricing.price(*clouds, given[2] * size, proven=True).least.tolist()
    for i, low in enumerate(found):
        exact = [
            sum((Fraction(p) - Fraction(q)) ** 2 for p, q in zip(x[i].tolist(), y[j].tolist(), strict=True))
            - Fraction(float(beta[j] * size))
            for j in range(8)
        ]
        assert Fraction(low) <= min(exact)
        assert low >= float(min(exact)) - 1e-12 * max(size, 1.0) * 100.0


def test_costs_of_pairs():
    (x, y, _), given = problem(1, 5, 4, 3)
    rows, cols = torch.tensor([0, 4, 2]), torch.tensor([3, 0, 1])
    costs = pricing.Cloud.of(given[0]).costs(rows, pricing.Cloud.of(given[1]), cols)
    np.testing.assert_allclose(costs, ((x[rows] - y[cols]) ** 2).sum(1))


def test_points_in_single_precision_are_told_from_others():
    points = torch.tensor([[0.5, 0.25]], dtype=torch.float64)
    assert pricing.Cloud.of(points).is_exact
    assert not pricing.Cloud.of(points / 3.0).is_exact


@pytest.mark.parametrize("d", [2, 5])
def test_it_prices_costs_as_the_cpu_does(d):
    rng = np.random.default_rng(d)
    x, y, beta = 1e3 * rng.normal(size=(40, d)), 1e3 * rng.normal(size=(30, d)) + 7.0, 1e3 * rng.normal(size=30)
    cost = st.Problem.from_points(x, y, kernels=st.Delta(), lazy=True, normalize_cost=True).cost
    here, there = Pricing(cost), pricing.DevicePricing(cost, "cpu")
    for each in ("rows", "columns"):
        prices = beta / 1e6 if each == "rows" else rng.normal(size=40) / 1e3
        (value, index), (other, theirs) = (getattr(one, each)(prices, 3) for one in (here, there))
        assert (index == theirs).all()
        np.testing.assert_allclose(other, value, rtol=1e-11, atol=1e-12)
        assert (other[:, 0] <= value[:, 0]).all(), "a bound that is made of it is one"
        limit = np.median(value[:, 1]) * np.ones(len(value))
        assert (getattr(there, each)(prices, 3, below=limit)[1] == getattr(here, each)(prices, 3, below=limit)[1]).all()
