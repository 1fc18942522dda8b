"""What to design a network for: arguments, checked, and the problems that they make."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _checks, _tables
from ..._checks import Floats, Ints
from ...budgets import Counting, PerColumn, PerRow, Uniform
from ...problem import Problem
from .evaluation import Evaluation, best_use, market, names, pairs, scenario_weights
from .exchange import Choice

_A_POINT = 3  # links of every plant and product, at the most, where only what they cost limits them


class Task(NamedTuple):
    """The arguments of `design`, checked."""

    rates: Floats
    capacity: Floats
    demand: Floats
    weights: Floats
    allowed: NDArray[np.bool_]
    fixed: Ints
    budget: Counting
    links: int
    link_cost: Floats | None = None  # (m, n) of new links
    bonus: float = 0.0  # in the rates, for every unit of demand that is served

    def problems(self, strength: float, *, scaled: bool, stretch: float = 1.0) -> list[Problem]:
        """The scenarios as transport problems: profits are negative costs, capacities and demands the masses."""
        demands = self.stretched(stretch)
        mass = float(self.capacity.mean() + (self.weights @ self.demand).mean())
        earning = self.allowed & (self.rates > 0.0)  # a fixed link may have no profit
        rate = float(self.rates[earning].mean()) if earning.any() else 1.0
        costs = np.where(self.allowed, -self.rates, np.inf)
        weight = strength * rate / mass if mass > 0.0 else 1.0
        first = Problem.from_matrices(costs, self.capacity, demands[0], unbalanced=weight)
        return [replace(first, a=a, b=b) for a, b in self._masses(demands, scaled)]

    def stretched(self, factor: float) -> Floats:
        """The scenarios with their deviations from the mean multiplied by a factor."""
        mean = self.weights @ self.demand
        return np.maximum(mean + factor * (self.demand - mean), 0.0)

    def _masses(self, demands: Floats, scaled: bool) -> Iterator[tuple[Floats, Floats]]:
        total = float(self.capacity.sum())
        for demand in demands:
            wanted = float(demand.sum())
            less = min(total, wanted)
            if scaled and less > 0.0:
                yield self.capacity * (less / total), demand * (less / wanted)
            else:
                yield self.capacity, demand

    @property
    def lopsided(self) -> bool:
        """True if capacity and demand differ so much that soft marginals would miss both."""
        total, wanted = float(self.capacity.sum()), self.demand.sum(axis=1)
        return bool(np.abs(wanted - total).max() > 0.01 * total)

    @property
    def choice(self) -> Choice:
        """The data of the exchange of links."""
        limits = self.budget.limits(self.rates.shape)
        return Choice(self.rates, self.capacity, self.demand, self.allowed, limits, len(self.fixed))

    def score(self, links: Ints) -> Evaluation:
        """The profits of links in the training scenarios."""
        return best_use(links, self.rates, self.capacity, self.demand, self.weights)

    def told(self, found: Any) -> Any:
        """An evaluation as users see it: without the bonus."""
        if found is None or not self.bonus:
            return found
        return replace(found, profits=found.profits - self.bonus * found.flows.sum(axis=1))

    def judge(self, links: Ints, held_out: Floats | None) -> Evaluation | None:
        """The profits of links in the held-out scenarios, if there are any."""
        if held_out is None:
            return None
        return best_use(links, self.rates, self.capacity, held_out, scenario_weights(None, held_out))


def checked_task(
    profit: Any,
    supply: Any,
    demand_scenarios: Any,
    links: int | None,
    fixed: Any,
    forbidden: Any,
    max_per_plant: Any,
    max_per_product: Any,
    link_cost: Any,
    exact: bool,
    count_fixed: bool,
    weights: Any,
) -> Task:
    """Check everything before any work."""
    rates, capacity, demand = market(profit, supply, demand_scenarios)
    shape, bonus = rates.shape, 0.0
    if exact:  # more than serving a unit can cost, with all that has to be rerouted for it
        bonus = (float(np.ptp(rates)) or 1.0) * min(shape) + max(-float(rates.min()), 0.0)
        rates = rates + bonus
    there = pairs("fixed", [] if fixed is None else fixed, shape)
    labels = names(profit, supply, demand_scenarios)
    forbidden = _tables.matched("forbidden", forbidden, *labels)
    banned = _checks.mask("forbidden", [] if forbidden is None else forbidden, shape)
    for i, j in there.tolist():
        if banned[i, j]:
            raise ValueError(f"fixed and forbidden must not share a link, got {(i, j)} in both")
    allowed = (rates > 0.0) & ~banned
    allowed[there[:, 0], there[:, 1]] = True
    if link_cost is not None:
        link_cost = _link_cost(link_cost, shape, labels)
    if links is None and link_cost is None:
        raise TypeError("links must be given unless link_cost is given, which then determines the number of links")
    most = _A_POINT * sum(shape) + len(there)
    wanted = most if links is None else _checks.positive_int("links", links)
    if _checks.flag("count_fixed", count_fixed) and wanted < len(there):
        raise ValueError(f"links must be at least the number of fixed links, {len(there)}, got {wanted}")
    total = min(wanted + (0 if count_fixed else len(there)), max(int(allowed.sum()), 1))
    budget: Counting = Uniform(total)
    for name, limit, kind, axis in (
        ("max_per_plant", max_per_plant, PerRow, 0),
        ("max_per_product", max_per_product, PerColumn, 1),
    ):
        if limit is not None:
            limit = _tables.aligned(name, limit, "index", labels[axis], f"{('rows', 'columns')[axis]} of profit")
            budget = budget & kind(_limit(name, limit, shape[axis], shape[1 - axis], there[:, axis]))  # type: ignore[assignment]
    shares = scenario_weights(weights, demand_scenarios)
    return Task(rates, capacity, demand, shares, allowed, there, budget, total, link_cost, bonus)


def _link_cost(given: Any, shape: tuple[int, int], labels: Any) -> Floats:
    """The cost of every link, checked."""
    if np.ndim(given) == 0:
        return np.full(shape, _checks.number("link_cost", given, positive=False))
    found = _checks.real_array("link_cost", _tables.matched("link_cost", given, *labels), ndim=2)
    if found.shape != shape or found.min() < 0.0:
        raise ValueError(f"link_cost must not be negative and must have the shape of profit, {shape}")
    return found


def _limit(name: str, limit: Any, count: int, most: int, ends: Ints) -> Ints:
    """The most links of each plant or product, checked against the fixed links."""
    if np.ndim(limit) == 0:
        limits = np.full(count, _checks.positive_int(name, limit), np.int64)
    else:
        limits = np.asarray(limit)
        if limits.dtype.kind not in "iu" or limits.shape != (count,):
            raise TypeError(f"{name} must be a positive int or a list of {count} ints, got {limit!r}")
        if limits.min() < 0:
            raise ValueError(f"{name} must not be negative, got {limits.min()} at {limits.argmin()}")
    over = np.flatnonzero(np.bincount(ends, minlength=count) > limits)
    if over.size:
        raise ValueError(
            f"{name} must allow the fixed links, got {limits[over[0]]} at {over[0]}, which has more fixed links"
        )
    return np.minimum(limits, most)


def held_out_demand(held_out: Any, products: int) -> Floats:
    """The held-out scenarios, checked."""
    demand = _checks.real_array("held_out", held_out, ndim=2)
    if demand.shape[1] != products:
        raise ValueError(f"held_out must have one column for each of the {products} products, got {demand.shape[1]}")
    if demand.min() < 0.0:
        place = tuple(int(k) for k in np.unravel_index(demand.argmin(), demand.shape))
        raise ValueError(f"held_out must not be negative, got {demand.min()} at {place}")
    return demand
