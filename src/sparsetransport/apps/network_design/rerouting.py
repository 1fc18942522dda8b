"""The gain or loss of single links over all scenarios, from their optimal flows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._checks import Floats, Ints
from ..._numba.borrowed import borrowed, by_address, keep
from ..._numba.compiling import compiled, part, small_part
from .flows import NEAR, Links, Scenario, Search, add, from_prices, new_search, price_range, remove, to_prices


@by_address
class Market(NamedTuple):
    """The bounds on the flows of all scenarios."""

    capacities: Floats  # (z, m)
    demands: Floats  # (z, n)
    weights: Floats  # (z,)
    tiny: Floats  # (z,)


@by_address
class State(NamedTuple):
    """The flows of all scenarios, and the ends of the range of dual prices, or the same prices twice."""

    flows: Floats  # (z, k)
    used: Floats  # (z, m)
    served: Floats  # (z, n)
    low: Floats  # (z, m + n)
    high: Floats  # (z, m + n)


@by_address
class Candidates(NamedTuple):
    """Links that might be built."""

    plants: Ints
    products: Ints
    rates: Floats


@by_address
class Room(NamedTuple):
    """How many more links plants and products may have."""

    plants: Ints  # (m,)
    products: Ints  # (n,)


@small_part
def scenario_of(state: State, market: Market, s: int) -> Scenario:
    """Views of one scenario."""
    return Scenario(
        state.flows[s], state.used[s], state.served[s], market.capacities[s], market.demands[s], market.tiny[s]
    )


@small_part
def _bound(low: Floats, high: Floats, i: int, product: int, rate: float, most: float) -> float:
    """An upper bound on the gain of a link in a scenario: its reduced profit times its largest flow."""
    return float(max(min(rate - low[i] - low[product], rate - high[i] - high[product]), 0.0) * most)


@part
def _insert(links: Links, scenario: Scenario, search: Search, prices: Floats, slot: int) -> int:
    """Use an inactive link and update the prices; returns the work."""
    from_prices(search, prices, len(scenario.used))
    _, scenario.flow[slot], work = add(links, scenario, search, links.rows[slot], links.cols[slot], links.rates[slot])
    to_prices(search, prices, len(scenario.used))
    return work


@part
def _without(
    links: Links, state: State, market: Market, search: Search, slot: int, changed: NDArray[np.bool_]
) -> tuple[float, int]:
    """Remove a link in all scenarios; returns loss and work, and marks in ``changed`` the scenarios with flow on it."""
    loss, work, m = 0.0, 0, state.used.shape[1]
    for s in range(len(changed)):
        changed[s] = state.flows[s, slot] > 0.0
        if changed[s]:
            from_prices(search, state.low[s], m)
            lost, more = remove(links, scenario_of(state, market, s), search, slot)
            to_prices(search, state.low[s], m)
            state.high[s] = state.low[s]
            loss += market.weights[s] * lost
            work += more
    return loss, work


@part
def _widen(links: Links, state: State, market: Market, search: Search, changed: NDArray[np.bool_]) -> int:
    """Compute the ends of the range of prices for scenarios that changed; returns the work."""
    work, m = 0, state.used.shape[1]
    for s in range(len(changed)):
        if changed[s]:
            from_prices(search, state.low[s], m)
            work += price_range(links, scenario_of(state, market, s), search, state.low[s], state.high[s])[1]
    return work


@compiled
def price(links: Links, state: State, market: Market, s: int) -> tuple[bool, int]:
    """Compute dual prices of a scenario's flow; returns whether the flow is optimal, and the work."""
    search = new_search(state.low.shape[1] + 1)
    return price_range(links, scenario_of(state, market, s), search, state.low[s], state.high[s])


@compiled
def build(links: Links, state: State, market: Market, s: int) -> int:
    """Build the optimal flow of a scenario from zero, link by link; returns the work."""
    search, scenario, low, work = new_search(state.low.shape[1] + 1), scenario_of(state, market, s), state.low[s], 0
    scenario.flow[:], scenario.used[:], scenario.served[:], low[:] = 0.0, 0.0, 0.0, 0.0
    links.active[:] = False
    for slot in range(len(links.active)):
        work += _insert(links, scenario, search, low, slot)
        links.active[slot] = True
    from_prices(search, low, len(scenario.used))
    return work + price_range(links, scenario, search, low, state.high[s])[1]


@compiled
def insert(links: Links, state: State, market: Market, slot: int) -> int:
    """Make a link active in all scenarios and update their ``low`` prices; returns the work."""
    search, work = new_search(state.low.shape[1] + 1), 0
    links.active[slot] = False
    for s in range(len(state.flows)):
        work += _insert(links, scenario_of(state, market, s), search, state.low[s], slot)
    links.active[slot] = True
    return work


@compiled
def withdraw(links: Links, state: State, market: Market, slot: int) -> None:
    """Remove a link in all scenarios and update their ``low`` prices."""
    links.active[slot] = False
    _without(links, state, market, new_search(state.low.shape[1] + 1), slot, np.empty(len(state.flows), np.bool_))


@compiled
def widen(links: Links, state: State, market: Market) -> int:
    """Compute the ends of the range of prices from the ``low`` ones in all scenarios; returns the work."""
    return _widen(links, state, market, new_search(state.low.shape[1] + 1), np.ones(len(state.flows), np.bool_))


@part
def _bounds(market: Market, low: Floats, high: Floats, candidates: Candidates, room: Room) -> Floats:
    """Upper bounds on the gains of candidates over all scenarios; zero where there is no room."""
    capacities, demands, weights = market.capacities, market.demands, market.weights
    m = capacities.shape[1]
    bounds = np.zeros(len(candidates.plants))
    for c in range(len(bounds)):
        i, j = candidates.plants[c], candidates.products[c]
        if room.plants[i] > 0 and room.products[j] > 0:
            for s in range(len(weights)):
                most = weights[s] * min(capacities[s, i], demands[s, j])
                bounds[c] += _bound(low[s], high[s], i, m + j, candidates.rates[c], most)
    return bounds


@compiled
def best_bounds(market: Market, low: Floats, high: Floats, candidates: Candidates) -> Floats:
    """Upper bounds on the gains of candidates added to all links, ignoring limits."""
    m, n = market.capacities.shape[1], market.demands.shape[1]
    everywhere = Room(np.ones(m, np.int64), np.ones(n, np.int64))
    bounds = _bounds(market, low, high, candidates, borrowed(everywhere))
    keep(everywhere)
    return bounds


@part
def _try(
    links: Links,
    state: State,
    market: Market,
    search: Search,
    trial: Scenario,
    link: tuple[int, int, float],
    bound: float,
    least: float,
) -> tuple[bool, int]:
    """Whether a link with this bound gains more than ``least``, and the work; ``trial`` is scratch."""
    i, j, rate = link
    m, n = len(trial.used), len(trial.served)
    reach, work = bound, 0
    for s in range(len(market.weights)):
        low, high = state.low[s], state.high[s]
        most = market.weights[s] * min(market.capacities[s, i], market.demands[s, j])
        hope = _bound(low, high, i, m + j, rate, most)
        if hope > 0.0:
            trial.flow[:], trial.used[:], trial.served[:] = state.flows[s], state.used[s], state.served[s]
            nearer = low[i] + low[m + j] >= high[i] + high[m + j]
            from_prices(search, low if nearer else high, m)
            scenario = Scenario(
                trial.flow, trial.used, trial.served, market.capacities[s], market.demands[s], market.tiny[s]
            )
            gained, _, more = add(links, scenario, search, i, j, rate)
            work += more + (m + n) // 4
            reach += market.weights[s] * gained - hope
            if reach <= least:
                return False, work
    return reach > least, work


@part
def _first_better(
    links: Links,
    state: State,
    market: Market,
    search: Search,
    candidates: Candidates,
    bounds: Floats,
    least: float,
    allowance: int,
) -> tuple[int, int]:
    """The first candidate, in order of the bounds, that gains more than ``least``, or -1; and the work."""
    flow, used, served = state.flows[0].copy(), state.used[0].copy(), state.served[0].copy()
    trial = Scenario(flow, used, served, market.capacities[0], market.demands[0], market.tiny[0])
    work = 0
    for c in np.argsort(-bounds):
        if bounds[c] <= least or work > allowance:
            break
        link = candidates.plants[c], candidates.products[c], candidates.rates[c]
        better, more = _try(links, state, market, search, trial, link, bounds[c], least)
        work += more
        if better:
            return c, work
    return -1, work


@compiled
def better_entry(
    links: Links,
    state: State,
    market: Market,
    slot: int,
    candidates: Candidates,
    room: Room,
    least: float,
    allowance: int,
) -> tuple[int, int]:
    """A link to build in place of the one at ``slot``, or in addition if ``slot`` is negative.

    Candidates are tried in order of their bounds until one earns more, so that most are never tried.

    Returns
    -------
    place, work
        The index of the candidate, -1 if none earns ``least`` more than the present links; and the work.
    """
    copy = State(state.flows.copy(), state.used.copy(), state.served.copy(), state.low.copy(), state.high.copy())
    spare, search = Room(room.plants.copy(), room.products.copy()), new_search(state.low.shape[1] + 1)
    state, room = borrowed(copy), borrowed(spare)
    changed = np.zeros(len(state.flows), np.bool_)
    look = len(changed) * len(candidates.plants) // 4
    work = (state.flows.size + 3 * (state.used.size + state.served.size)) // 4 + look
    if slot >= 0:
        links.active[slot] = False
        room.plants[links.rows[slot]] += 1
        room.products[links.cols[slot]] += 1
        lost, more = _without(links, state, market, search, slot, changed)
        least += lost
        work += more
    bounds = _bounds(market, state.low, state.high, candidates, room)
    if bounds.max() > least and changed.any():  # the ends of the range of prices give better bounds
        work += _widen(links, state, market, search, changed) + look
        bounds = _bounds(market, state.low, state.high, candidates, room)
    place, more = _first_better(links, state, market, search, candidates, bounds, least, allowance - work)
    if slot >= 0:
        links.active[slot] = True
    keep(copy)
    keep(spare)
    return place, work + more


@compiled
def gains(links: Links, state: State, market: Market, slots: Ints) -> Floats:
    """The gain of each of some inactive links over all scenarios, whose ``low`` prices are dual prices."""
    m, n, prices = state.used.shape[1], state.served.shape[1], state.low
    flow, used, served = np.empty(state.flows.shape[1]), np.empty(m), np.empty(n)
    search, found = new_search(m + n + 1), np.zeros(len(slots))
    for c in range(len(slots)):
        i, j, rate = links.rows[slots[c]], links.cols[slots[c]], links.rates[slots[c]]
        for s in range(len(market.weights)):
            if rate - prices[s, i] - prices[s, m + j] > NEAR:
                flow[:], used[:], served[:] = state.flows[s], state.used[s], state.served[s]
                from_prices(search, prices[s], m)
                scenario = Scenario(flow, used, served, market.capacities[s], market.demands[s], market.tiny[s])
                found[c] += market.weights[s] * add(links, scenario, search, i, j, rate)[0]
    return found
