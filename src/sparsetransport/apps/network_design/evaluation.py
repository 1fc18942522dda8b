"""The profit of a network: a linear program for every scenario."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ... import _checks, _tables
from ..._checks import Floats, Ints
from ..._tables import Labels


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation:
    """The profit and the flows of a network in every scenario.

    Attributes
    ----------
    links : int array of shape (k, 2)
        Plant and product of every link.
    profits : array of shape (z,)
        The profit of every scenario.
    flows : array of shape (z, k)
        The flow of every link in every scenario.
    unmet : array of shape (z, n)
        Demand that is not served.
    idle : array of shape (z, m)
        Capacity that is not used.
    utilisation : array of shape (z,)
        The share of all capacity that is used.
    weights : array of shape (z,)
        The weights of the scenarios, which add up to one.
    """

    links: Ints
    profits: Floats
    flows: Floats
    unmet: Floats
    idle: Floats
    utilisation: Floats
    weights: Floats

    def __repr__(self) -> str:
        return (
            f"Evaluation({len(self.links)} links, {len(self.profits)} scenarios, expected profit {self.expected:.4g})"
        )

    @property
    def expected(self) -> float:
        """The expected profit."""
        return float(self.weights @ self.profits)

    @property
    def expected_flows(self) -> Floats:
        """The expected flow of every link."""
        return np.asarray(self.weights @ self.flows)

    @property
    def expected_unmet(self) -> float:
        """The expected unmet demand."""
        return float(self.weights @ self.unmet.sum(axis=1))

    @property
    def expected_idle(self) -> float:
        """The expected idle capacity."""
        return float(self.weights @ self.idle.sum(axis=1))


def evaluate(links: Any, profit: Any, supply: Any, demand_scenarios: Any, *, weights: Any = None) -> Evaluation:
    r"""The profit of a network: for every scenario the best flow over its links.

    .. math::
        \max_{x \ge 0} \sum_{(i,j)} P_{ij} x_{ij} \quad\text{with}\quad
        \sum_j x_{ij} \le \text{supply}_i, \; \sum_i x_{ij} \le \text{demand}_j

    over the links, by HiGHS.

    Parameters
    ----------
    links : int array of shape (k, 2), or None
        Plant and product of every link; None for full flexibility, which has all links.
    profit : array of shape (m, n)
        The profit of a unit of each product from each plant.
    supply : array of shape (m,)
        The capacity of the plants.
    demand_scenarios : array of shape (z, n)
        The demand for each product, one row for each scenario.
    weights : array of shape (z,), optional
        The weight of each scenario; equal by default.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from sparsetransport.apps.network_design import evaluate
    >>> P, demand = [[1.0, 1.0], [1.0, 1.0]], [[1.0, 3.0], [2.0, 2.0]]
    >>> evaluate([(0, 0), (1, 1)], P, [2.0, 2.0], demand).profits
    array([3., 4.])
    >>> evaluate(None, P, [2.0, 2.0], demand).profits
    array([4., 4.])
    """
    rates, capacity, demand = market(profit, supply, demand_scenarios)
    shares = scenario_weights(weights, demand_scenarios)
    every = np.argwhere(np.isfinite(rates)) if links is None else pairs("links", links, rates.shape)
    return best_use(every, rates, capacity, demand, shares)


def best_use(links: Ints, rates: Floats, capacity: Floats, demand: Floats, weights: Floats) -> Evaluation:
    """The evaluation of links that are checked already."""
    m, n, k, z = len(capacity), demand.shape[1], len(links), len(demand)
    flows = np.zeros((z, k))
    if k:
        for s in range(z):
            flows[s] = _flow(rates[links[:, 0], links[:, 1]], links, capacity, demand[s])
    profits = flows @ rates[links[:, 0], links[:, 1]] if k else np.zeros(z)
    sent, received = np.zeros((z, m)), np.zeros((z, n))
    np.add.at(sent.T, links[:, 0], flows.T)
    np.add.at(received.T, links[:, 1], flows.T)
    total = float(capacity.sum())
    return Evaluation(
        links,
        profits,
        flows,
        np.maximum(demand - received, 0.0),
        np.maximum(capacity - sent, 0.0),
        sent.sum(axis=1) / total if total > 0.0 else np.zeros(z),
        weights,
    )


def _flow(rates: Floats, links: Ints, capacity: Floats, demand: Floats) -> Floats:
    """The best flow over the links in one scenario.

    HiGHS has absolute tolerances, so flows are scaled by the capacities of their links and profits by the largest one:
    the result does not depend on units.
    """
    from scipy.optimize import linprog

    most = np.minimum(capacity[links[:, 0]], demand[links[:, 1]])
    used = np.flatnonzero((rates > 0.0) & (most > 0.0))
    flow = np.zeros(len(rates))
    if not len(used):
        return flow
    rows, cols, top, places = links[used, 0], links[used, 1], most[used], np.arange(len(used))
    ends = np.concatenate([rows, len(capacity) + cols]), np.concatenate([places, places])
    parts = np.concatenate([top / capacity[rows], top / demand[cols]])
    matrix: Any = scipy.sparse.csr_array((parts, ends), shape=(len(capacity) + len(demand), len(used)))
    worth = rates[used] / rates[used].max() * (top / top.max())
    answer = linprog(-worth / worth.max(), A_ub=matrix, b_ub=np.ones(matrix.shape[0]), method="highs")
    if answer.x is None:
        raise RuntimeError(f"HiGHS found no optimal flow: {answer.message}")
    flow[used] = top * np.maximum(answer.x, 0.0)
    return flow


def names(profit: Any, supply: Any, demand_scenarios: Any) -> tuple[Labels, Labels]:
    """The labels of plants and products, where tables have them."""
    read = _tables.labels
    plants = _tables.first(read(profit, "index"), read(supply, "index"))
    return plants, _tables.first(read(profit, "columns"), read(demand_scenarios, "columns"))


def market(profit: Any, supply: Any, demand_scenarios: Any) -> tuple[Floats, Floats, Floats]:
    """Profits, capacities and demands, checked to match; tables by their labels, in the order of the profits."""
    plants, products = names(profit, supply, demand_scenarios)
    supply = _tables.aligned("supply", supply, "index", plants, "rows of profit")
    demand_scenarios = _tables.aligned("demand_scenarios", demand_scenarios, "columns", products, "columns of profit")
    rates = _checks.real_array("profit", profit, ndim=2)
    m, n = rates.shape
    capacity = _checks.real_array("supply", _tables.column(supply), ndim=1)
    if len(capacity) != m:
        raise ValueError(f"supply must have one number for each of the {m} plants of profit, got {len(capacity)}")
    if capacity.min() < 0.0:
        raise ValueError(f"supply must not be negative, got {capacity.min()} at {int(capacity.argmin())}")
    if np.size(demand_scenarios) == 0:
        raise ValueError("demand_scenarios must hold at least one scenario, got none")
    demand = _checks.real_array("demand_scenarios", demand_scenarios, ndim=2)
    if demand.shape[1] != n:
        raise ValueError(
            f"demand_scenarios must have one column for each of the {n} products of profit, got {demand.shape[1]}"
        )
    if demand.min() < 0.0:
        place = tuple(int(k) for k in np.unravel_index(demand.argmin(), demand.shape))
        raise ValueError(f"demand_scenarios must not be negative, got {demand.min()} at {place}")
    return rates, capacity, demand


def scenario_weights(weights: Any, scenarios: Any) -> Floats:
    """A weight for each scenario, with total one; tables are matched by their labels."""
    labels = _tables.labels(scenarios, "index")
    array = _checks.weights(_tables.aligned("weights", weights, "index", labels, "scenarios"), len(scenarios))
    return np.asarray(array / array.sum())


def pairs(name: str, links: Any, shape: tuple[int, int]) -> Ints:
    """Links as an array of plants and products, checked, each once."""
    found = _checks.pairs(name, links, "pairs of plant and product")
    _checks.inside(name, found, shape, f"pairs of one of {shape[0]} plants and one of {shape[1]} products")
    return np.array(found, np.int64).reshape(-1, 2)
