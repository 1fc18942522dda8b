"""Sparse assignment: the optimum from zero prices, and from any prices if every column is matched."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from sparsetransport.forest.assignment import matched


def some_pairs(m, n, density, seed):
    rng = np.random.default_rng(seed)
    keys = np.flatnonzero(rng.random(m * n) < density)
    rows, cols = np.divmod(keys, n)
    return rows, cols, rng.random(keys.size), rng


@pytest.mark.parametrize(("m", "n"), [(30, 30), (30, 20), (20, 30), (1, 5)])
@pytest.mark.parametrize("density", [1.0, 0.2])
@pytest.mark.parametrize("most", [1.0, 0.3])
def test_from_zero_prices_costs_are_least_and_positive_ones_never_taken(m, n, density, most):
    for seed in range(5):
        rows, cols, cost, _ = some_pairs(m, n, density, seed)
        cost -= most
        chosen = matched((m, n), rows, cols, cost, np.zeros(n))
        dense = np.zeros((m, n))
        dense[rows, cols] = np.minimum(cost, 0.0)
        assert np.unique(rows[chosen]).size == np.unique(cols[chosen]).size == chosen.size
        assert (cost[chosen] < 0.0).all()
        np.testing.assert_allclose(cost[chosen].sum(), dense[linear_sum_assignment(dense)].sum(), atol=1e-12)


def test_from_any_prices_if_every_column_is_matched():
    for seed in range(5):
        rows, cols, cost, rng = some_pairs(40, 40, 1.0, seed)
        chosen = matched((40, 40), rows, cols, cost - 50.0, rng.normal(size=40))
        assert chosen.size == 40
        dense = cost.reshape(40, 40)
        np.testing.assert_allclose(cost[chosen].sum(), dense[linear_sum_assignment(dense)].sum(), rtol=1e-12)


def test_without_pairs_nobody_is_matched():
    none = np.zeros(0, np.int64)
    assert matched((3, 4), none, none, np.zeros(0), np.zeros(4)).size == 0
