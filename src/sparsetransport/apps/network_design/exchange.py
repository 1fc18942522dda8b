"""Exchange single links of a network while its expected profit rises, and sort them."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._checks import Floats, Ints
from ...budgets import Limits
from .evaluation import Evaluation
from .flows import Links
from .rerouting import (
    Candidates,
    Market,
    Room,
    State,
    best_bounds,
    better_entry,
    build,
    gains,
    insert,
    price,
    widen,
    withdraw,
)

LEAST = 1e-10  # a rise of the expected profit, as a share of it, that is worth an exchange
DUST = 1e-12  # masses, as a share of the largest of their scenario, that count as none
WORK = 3_000  # arcs visited for each link and scenario before the search is given up, about 50 ns each
MOST = 30_000_000  # arcs visited in all
SMALL = 20_000  # plants times products times scenarios up to which so many arcs may be visited:
PATIENT = 2_000_000_000
ORDERED = 5_000_000  # links² times scenarios times nodes up to which the order of links is exact


def is_small(rates: Floats, demand: Floats) -> bool:
    """True if the search continues until no exchange helps."""
    return rates.size * len(demand) <= SMALL


class Choice(NamedTuple):
    """The profits, capacities and demands, and the links that may be chosen."""

    rates: Floats  # (m, n) profits
    capacity: Floats  # (m,)
    demand: Floats  # (scenarios, n)
    allowed: NDArray[np.bool_]  # (m, n) which may be built
    limits: Limits  # on the links in all and of each plant and product
    fixed: int  # the number of links that must stay


def exchange_links(earned: Evaluation, choice: Choice) -> Ints:
    """Links after exchanges and additions of single links, until none raises the profit in the scenarios.

    Parameters
    ----------
    earned : Evaluation
        The links to start from, the fixed ones first, and their flows.
    choice : Choice

    Returns
    -------
    int array of shape (k, 2)
        An exchanged link takes the place of the old one, an added link is at the end. The links of ``earned`` if
        nothing earns more.
    """
    if not len(earned.links) or earned.expected <= 0.0:
        return earned.links
    return _Search(earned, choice).run()


def in_order(earned: Evaluation, choice: Choice) -> Evaluation:
    """The same network with its links sorted so that the first ones earn much; fixed links stay in front.

    Each link is the one that adds most profit to those before it, exactly for few links and scenarios. For many this is
    approximate, and only until there are as many links as plants or products, whichever is more: after that single
    links add little without others, and the rest are sorted by the profit that they carry.
    """
    links, fixed = earned.links, choice.fixed
    if len(links) == fixed or earned.expected <= 0.0:
        return earned
    carried = earned.expected_flows * choice.rates[tuple(links.T)]
    carried[:fixed] = np.inf
    order = np.argsort(-carried, kind="stable")
    order = order[_best_first(replace(earned, links=links[order]), choice)]
    return replace(earned, links=links[order], flows=earned.flows[:, order])


def _best_first(earned: Evaluation, choice: Choice) -> list[int]:
    """The order in which each link adds most profit to those before it; in a tie the first one."""
    (m, n), z, k = choice.rates.shape, len(choice.demand), len(earned.links)
    rates, market = _scaled(earned, choice)
    arcs = _arcs(earned.links, rates)
    arcs.active[:] = False
    prices = np.zeros((z, m + n))
    state = State(np.zeros((z, k)), np.zeros((z, m)), np.zeros((z, n)), prices, prices)  # without links
    exact = k * k * z * (m + n) <= ORDERED
    hopes, known = gains(arcs, state, market, np.arange(k)), np.zeros(k, bool)
    order: list[int] = []
    for place in range(k if exact else min(max(m, n, choice.fixed), k)):
        slot = place
        while place >= choice.fixed:
            slot = int(hopes.argmax())
            if known[slot]:
                break
            # What a link adds usually falls as others are added: if it is still best after an update, it is the best.
            again = np.flatnonzero(~arcs.active) if exact else np.array([slot])
            hopes[again], known[again] = gains(arcs, state, market, again), True
        insert(arcs, state, market, slot)
        order.append(slot)
        hopes[slot], known[:] = -1.0, False
    return order + np.flatnonzero(~arcs.active).tolist()


def _scaled(earned: Evaluation, choice: Choice) -> tuple[Floats, Market]:
    """Profits scaled to a maximum of one, and capacities, demands, weights and zero thresholds of the scenarios."""
    rates, capacity, demand, allowed = choice[:4]
    capacities = np.minimum(capacity, demand.sum(axis=1)[:, None])
    demands = np.minimum(demand, capacity.sum())
    tiny = DUST * np.maximum(capacities.max(axis=1), demands.max(axis=1))
    return np.maximum(rates / rates[allowed].max(), -1.0), Market(capacities, demands, earned.weights, tiny)


def _arcs(links: Ints, rates: Floats) -> Links:
    """Links by plant and by product, all active."""
    rows, cols = np.ascontiguousarray(links.T)
    m, n = rates.shape
    return Links(
        rows,
        cols,
        rates[rows, cols],
        np.ones(len(rows), bool),
        np.searchsorted(np.sort(rows), np.arange(m + 1)),
        np.argsort(rows, kind="stable"),
        np.searchsorted(np.sort(cols), np.arange(n + 1)),
        np.argsort(cols, kind="stable"),
    )


def worth_their_cost(earned: Evaluation, choice: Choice, cost: Floats) -> Ints:
    """Links without those that earn less than they cost, the ones that carry least in relation to it looked at first.

    ``cost`` is that of each link of ``earned``; fixed ones stay.
    """
    if not len(earned.links) or earned.expected <= 0.0:
        return earned.links[: choice.fixed]
    search = _Search(earned, choice)
    arcs, market = search.arcs, search.market
    cost = cost / float(choice.rates[choice.allowed].max())
    changed = True
    while changed:
        changed, carried = False, market.weights @ search.flows * arcs.rates
        for slot in (choice.fixed + np.argsort((carried - cost)[choice.fixed :], kind="stable")).tolist():
            if not arcs.active[slot] or cost[slot] <= 0.0:
                continue
            before, state = market.weights @ (search.flows @ arcs.rates), search._state
            kept = State(*(part.copy() for part in state))
            withdraw(arcs, state, market, slot)
            if before - market.weights @ (search.flows @ arcs.rates) < cost[slot] - search.least:
                changed = True
                continue
            arcs.active[slot] = True
            for part, old in zip(state, kept, strict=True):
                part[:] = old
    return earned.links[arcs.active]


class _Search:
    """A network with the optimal flow of every scenario, and the work that is left."""

    def __init__(self, earned: Evaluation, choice: Choice) -> None:
        rates, _, demand, allowed, self.limits, self.fixed = choice
        self.links = earned.links.copy()
        self.rates, self.market = _scaled(earned, choice)
        self.allowed = allowed & (rates > 0.0)
        self.least = LEAST * earned.expected / float(rates[allowed].max())
        self.left = PATIENT if is_small(rates, demand) else min(WORK * earned.flows.size, MOST)
        self._index()
        self._flow(earned.flows)

    def run(self) -> Ints:
        """Add and exchange links, the least profitable first, until a whole round changes nothing."""
        if self.left <= 0:
            return self.links
        self._look()
        changed = True
        while changed and self.left > 0:
            changed = False
            while self.left > 0 and len(self.links) < self.limits.total and self._improve(-1):
                changed = True
            carried = self.market.weights @ self.flows * self.arcs.rates
            for slot in (self.fixed + np.argsort(carried[self.fixed :], kind="stable")).tolist():
                if self.left <= 0:
                    break
                changed |= self._improve(slot)
        return self.links

    def _index(self) -> None:
        """The links by plant and by product."""
        m, n = self.rates.shape
        self.arcs = _arcs(self.links, self.rates)
        self.room = Room(
            self.limits.rows - np.bincount(self.links[:, 0], minlength=m),
            self.limits.cols - np.bincount(self.links[:, 1], minlength=n),
        )

    def _flow(self, flows: Floats) -> None:
        """The optimal flow of every scenario: the given one, or built link by link if that is not quite optimal."""
        capacities, demands, _, tiny = self.market
        self.flows = np.where(flows > tiny[:, None], flows, 0.0)
        self.used, self.served = np.zeros_like(capacities), np.zeros_like(demands)
        np.add.at(self.used.T, self.links[:, 0], self.flows.T)
        np.add.at(self.served.T, self.links[:, 1], self.flows.T)
        for mass, most in ((self.used, capacities), (self.served, demands)):
            np.copyto(mass, most, where=most - mass <= tiny[:, None])
        self.low = np.zeros((len(flows), capacities.shape[1] + demands.shape[1]))
        self.high = self.low.copy()
        for s in range(len(flows)):
            best, work = price(self.arcs, self._state, self.market, s)
            self.left -= work
            if not best:
                self.left -= build(self.arcs, self._state, self.market, s)
            if self.left <= 0:
                return

    @property
    def _state(self) -> State:
        return State(self.flows, self.used, self.served, self.low, self.high)

    def _look(self) -> None:
        """Compute the candidate list: links that might gain if added to all present ones."""
        outside = self.allowed.copy()
        outside[self.links[:, 0], self.links[:, 1]] = False
        rows, cols = np.nonzero(outside)
        bounds = best_bounds(self.market, self.low, self.high, Candidates(rows, cols, self.rates[rows, cols]))
        self.left -= len(rows) * len(self.flows) // 4
        keep = bounds > self.least
        self.candidates = Candidates(rows[keep], cols[keep], self.rates[rows, cols][keep])

    def _improve(self, slot: int) -> bool:
        """Exchange a link for a candidate, or add one for -1, if that earns more."""
        rows, cols, _ = self.candidates
        if not len(rows):
            return False
        place, work = better_entry(
            self.arcs, self._state, self.market, slot, self.candidates, self.room, self.least, self.left
        )
        self.left -= work
        if place < 0:
            return False
        new = np.array([rows[place], cols[place]])
        if slot >= 0:
            withdraw(self.arcs, self._state, self.market, slot)
            self.links[slot] = new
        else:
            slot = len(self.links)
            self.links = np.vstack([self.links, new])
            self.flows = np.hstack([self.flows, np.zeros((len(self.flows), 1))])
        self._index()
        self.left -= 2 * insert(self.arcs, self._state, self.market, slot)
        self.left -= widen(self.arcs, self._state, self.market)
        self._look()
        return True
