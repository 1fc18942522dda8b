"""The classic networks: one plant for each product, and the long chain of Jordan and Graves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _tables
from ..._checks import Ints
from .evaluation import best_use, market, names, scenario_weights


def dedicated(
    profit: Any, supply: Any, demand_scenarios: Any, *, weights: Any = None, allowed: NDArray[np.bool_] | None = None
) -> Ints:
    """The dedicated network: one product for each plant and one plant for each product, as profitable as possible.

    Plants and products are matched for the largest profit at the mean demand. If there are more of one kind, each of
    the surplus ones has one link, the one with most of its profit under full flexibility at the mean demand; there are
    max(m, n) links in all.

    Parameters
    ----------
    profit, supply, demand_scenarios, weights
        As in `design`.
    allowed : bool array of shape (m, n), optional
        Which links may be built; all by default. Links of the network that may not be built are left out.

    Returns
    -------
    int array of shape (max(m, n), 2), or fewer if some are not allowed

    Examples
    --------
    >>> from sparsetransport.apps.network_design import dedicated
    >>> dedicated([[1.0, 2.0], [2.0, 1.0]], [1.0, 1.0], [[1.0, 1.0]]).tolist()
    [[0, 1], [1, 0]]
    """
    links, possible = _matched(profit, supply, demand_scenarios, weights, allowed)
    return links[possible[links[:, 0], links[:, 1]]]


def long_chain(
    profit: Any, supply: Any, demand_scenarios: Any, *, weights: Any = None, allowed: NDArray[np.bool_] | None = None
) -> Ints:
    """The long chain: the dedicated network and as many links again, which form one cycle (Jordan and Graves, 1995).

    Every plant can also make the product of the next one, and the last plant that of the first.

    Parameters
    ----------
    profit, supply, demand_scenarios, weights, allowed
        As in `dedicated`.

    Returns
    -------
    int array of shape (2 max(m, n), 2), or fewer if links coincide or are not allowed

    Examples
    --------
    >>> from sparsetransport.apps.network_design import long_chain
    >>> long_chain([[1.0, 1.0, 1.0]] * 3, [1.0] * 3, [[1.0] * 3]).tolist()
    [[0, 0], [1, 1], [2, 2], [0, 1], [1, 2], [2, 0]]
    """
    links, possible = _matched(profit, supply, demand_scenarios, weights, allowed)
    following = np.stack([links[:, 0], np.roll(links[:, 1], -1)], axis=1)
    every = dict.fromkeys(map(tuple, np.concatenate([links, following]).tolist()))
    return np.array([link for link in every if possible[link]], np.int64).reshape(-1, 2)


def _matched(
    profit: Any, supply: Any, demand_scenarios: Any, weights: Any, allowed: NDArray[np.bool_] | None
) -> tuple[Ints, NDArray[np.bool_]]:
    """All links of the dedicated network, and which of them may be built."""
    from scipy.optimize import linear_sum_assignment

    rates, capacity, demand = market(profit, supply, demand_scenarios)
    matched = _tables.matched("allowed", allowed, *names(profit, supply, demand_scenarios))
    possible = np.ones(rates.shape, bool) if allowed is None else np.asarray(matched, bool)
    if possible.shape != rates.shape:
        raise ValueError(f"allowed must have the shape of profit, {rates.shape}, got {possible.shape}")
    mean = scenario_weights(weights, demand_scenarios) @ demand
    worth = np.where(possible, rates * np.minimum(capacity[:, None], mean), 0.0)
    m, n = rates.shape
    if m == n:
        rows, cols = linear_sum_assignment(-worth)
        return np.stack([rows, cols], axis=1).astype(np.int64), possible
    every = np.argwhere(possible)
    earned = np.zeros((m, n))
    earned[tuple(every.T)] = rates[tuple(every.T)] * best_use(every, rates, capacity, mean[None], np.ones(1)).flows[0]
    axis = int(m > n)
    best = np.where(earned.any(axis), earned.argmax(axis), worth.argmax(axis))
    sides = (best, np.arange(n)) if axis == 0 else (np.arange(m), best)
    links = np.stack(sides, axis=1).astype(np.int64)
    return links[np.lexsort((links[:, 1], links[:, 0]))], possible
