"""Pricing: the same minima from trees, from products in single precision and from a matrix, and those of NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hs

from sparsetransport.geometry.matrices import Cost
from sparsetransport.geometry.pricing import Pricing, nearest


def agree(cost, matrix, beta, alpha, k):
    """Values are the least of the matrix, and the pairs have these values."""
    size = np.abs(matrix[np.isfinite(matrix)]).max(initial=1.0) + np.abs(beta).max() + np.abs(alpha).max()
    for priced, table in (
        (Pricing(cost).rows(beta, k), matrix - beta),
        (Pricing(cost).columns(alpha, k), matrix.T - alpha),
    ):
        expected = np.sort(table, axis=1)[:, :k]
        np.testing.assert_allclose(priced[0], expected, rtol=0, atol=1e-12 * size)
        there = priced[1] >= 0
        assert (there == np.isfinite(expected)).all()
        chosen = np.take_along_axis(table, np.maximum(priced[1], 0), 1)
        np.testing.assert_allclose(chosen[there], expected[there], rtol=0, atol=1e-12 * size)
        assert all(len(set(line[line >= 0])) == (line >= 0).sum() for line in priced[1])


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
@pytest.mark.parametrize("d", [1, 2, 3, 6, 7, 30])
def test_lazy_and_dense_agree(metric, d):
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(130, d)), rng.normal(size=(170, d)) + 0.3
    for scale in (0.0, 0.1, 10.0):
        beta = scale * (rng.normal(size=170) + np.sum(y * y, 1))
        alpha = scale * rng.normal(size=130)
        for normalize in (False, True):
            lazy = Cost.lazy(x, y, metric, normalize=normalize)
            matrix = lazy.rows(0, 130)
            for k in (1, 5, 170):
                agree(lazy, matrix, beta, alpha, min(k, 130))
                agree(Cost.of_matrix(matrix), matrix, beta, alpha, min(k, 130))


@given(seed=hs.integers(0, 10**6), d=hs.sampled_from([1, 2, 9]), m=hs.integers(1, 30), n=hs.integers(1, 30))
def test_points_that_coincide_or_lie_far_apart(seed, d, m, n):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 2, (m, d)) * 10.0 ** rng.integers(-8, 8), rng.integers(0, 2, (n, d)) * 1.0
    lazy = Cost.lazy(x, y, "sqeuclidean")
    agree(lazy, lazy.rows(0, m), rng.normal(size=n), rng.normal(size=m), 1)


def test_prices_that_differ_in_the_last_digits_of_single_precision():
    """Products in single precision cannot tell the pairs apart; what they leave open is settled in double."""
    rng = np.random.default_rng(0)
    x, direction = rng.normal(size=(20, 40)), rng.normal(size=40)
    y = np.tile(direction, (50, 1)) + 1e-9 * rng.normal(size=(50, 40))
    lazy = Cost.lazy(x, y, "sqeuclidean")
    exact = ((x[:, None] - y[None]) ** 2).sum(2)
    value, col = Pricing(lazy).rows(np.zeros(50))
    np.testing.assert_allclose(value[:, 0], exact.min(1), rtol=1e-15)
    np.testing.assert_allclose(exact[np.arange(20), col[:, 0]], exact.min(1), rtol=1e-15)


@pytest.mark.parametrize("unit", [1e-40, 1e40])
def test_units_that_single_precision_does_not_hold(unit):
    rng = np.random.default_rng(2)
    x, y = unit * rng.normal(size=(40, 12)), unit * rng.normal(size=(30, 12))
    exact = ((x[:, None] - y[None]) ** 2).sum(2)
    beta = unit**2 * rng.normal(size=30)
    value, _ = Pricing(Cost.lazy(x, y, "sqeuclidean")).rows(beta)
    np.testing.assert_allclose(value[:, 0], (exact - beta).min(1), rtol=1e-12, atol=1e-13 * unit**2)


def test_forbidden_pairs_are_never_among_the_least():
    matrix = np.random.default_rng(0).random((30, 20))
    matrix[np.random.default_rng(1).random((30, 20)) < 0.8] = np.inf
    matrix[3], matrix[:, 4] = np.inf, np.inf
    agree(Cost.of_matrix(matrix), matrix, np.zeros(20), np.zeros(30), 4)


def test_entries_and_nearest_points():
    rng = np.random.default_rng(0)
    for d in (2, 10):
        x, y = rng.normal(size=(50, d)), rng.normal(size=(9, d))
        square = ((x[:, None] - y[None]) ** 2).sum(2)
        assert (nearest(x, y) == square.argmin(1)).all()
        rows, cols = rng.integers(0, 50, 40), rng.integers(0, 9, 40)
        for metric, expected in (("sqeuclidean", square), ("euclidean", np.sqrt(square))):
            lazy = Cost.lazy(x, y, metric)
            np.testing.assert_allclose(Pricing(lazy).entries(rows, cols), expected[rows, cols], rtol=1e-12)
    assert Pricing(Cost.dense([[1.0, 2.0]])).entries(np.array([0]), np.array([1])) == [2.0]
