"""The smoothed dual: the best prices of a side are those where marginal errors vanish."""

import numpy as np

from sparsetransport.prices.ascent import Half, smoothed_plan
from sparsetransport.prices.graph import graph_of


def test_the_best_prices_balance_their_points():
    rng = np.random.default_rng(0)
    rows, cols = np.divmod(np.arange(40 * 30), 30)
    keep = rng.random(1200) < 0.4
    graph = graph_of((40, 30), (rows[keep], cols[keep]))
    cost, mass, beta, give, rho = rng.random(graph.key.size), rng.random(40), rng.normal(size=30), 0.2, 0.05
    side = Half(graph.first, graph.col, cost, mass, give, rho)
    free = np.full(40, -np.inf), np.full(40, np.inf)
    for begin in (np.zeros(40), np.full(40, -50.0), np.full(40, 50.0)):
        alpha, value, _ = side.best(beta, begin, *free)
        plan = smoothed_plan(graph.row, graph.col, cost, alpha, beta, rho)
        np.testing.assert_allclose(np.bincount(graph.row, plan, 40) + give * alpha, mass, atol=1e-11)
        expected = alpha @ (mass - 0.5 * give * alpha) - 0.5 * rho * plan @ plan
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        assert side.best(beta, alpha, *free)[2] < 1e-10
    held = side.best(beta, np.zeros(40), alpha + 0.1, free[1])[0]
    np.testing.assert_allclose(held, alpha + 0.1)


def test_points_whose_prices_are_held_count_no_error():
    """Else an ascent within bounds would never end: what is held cannot be righted."""
    graph = graph_of((2, 1), (np.array([0, 1]), np.array([0, 0])))
    side = Half(graph.first, graph.col, np.zeros(2), np.array([1.0, 3.0]), 0.5, 0.1)
    free, both = np.full(2, np.inf), np.zeros(2)
    assert side.best(np.zeros(1), both, -free, free)[2] == 4.0
    assert side.best(np.zeros(1), both, -free, np.array([np.inf, 0.0]))[2] == 1.0


def test_points_without_pairs_or_mass():
    graph = graph_of((3, 2), (np.array([0, 2]), np.array([0, 0])))
    side = Half(graph.first, graph.col, np.array([1.0, 0.5]), np.array([1.0, 2.0, 0.0]), 0.5, 0.1)
    alpha, _, _ = side.best(np.zeros(2), np.zeros(3), np.full(3, -np.inf), np.full(3, np.inf))
    assert alpha[1] == 4.0, "what its mass is worth"
    assert alpha[2] == 0.0
