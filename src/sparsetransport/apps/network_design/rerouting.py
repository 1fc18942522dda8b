"""What one link more or one less is worth: flows that are optimal already, rerouted along shortest paths.

A scenario is a flow problem on plants, products and one root, which idle capacity and unmet demand come from and go to.
Residual arcs cost what they lose: a link forwards minus its profit, backwards, as far as it has flow, its profit; arcs
of the root nothing. A flow is best when no cycle has a negative cost. A link more is worth pushing along the shortest
path that closes a cycle through it, until that costs nothing less; the flow of a link that goes is sent along shortest
paths between its ends. Either takes a few searches of a sparse graph, where a linear program would begin anew.
"""

from typing import Any

import numpy as np

from ..._checks import Floats
from ..._jit import borrowed, kernel, part, small_part

NEAR = 1e-12  # costs, in units of the largest profit, that count as the same
PATIENCE = 64  # visits a node, on average, after which a search is given up: there is a cycle of negative cost

# links: rows, cols, rates, active, starts and slots of plants, starts and slots of products
# scenario: flow of links, used, served, capacity, demand, and what counts as no mass
# search: distances, previous nodes, previous links (-1: an arc of the root), queue, is it in the queue, potentials
# prices: those of plants, then those of products; as potentials the latter are negative, and the root has none


@part
def _scratch(nodes: int) -> Any:
    """Memory for the searches."""
    return (
        np.empty(nodes),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes + 1, np.int64),
        np.zeros(nodes, np.bool_),
        np.zeros(nodes),
    )


@small_part
def _relax(search: Any, node: int, length: float, bound: float, source: int, link: int, tail: int) -> int:
    """Take a shorter way to a node, if it is below the bound; gives the new end of the queue."""
    dist, before, via, queue, waiting, _ = search
    if length < min(dist[node], bound) - NEAR:
        dist[node] = length
        before[node] = source
        via[node] = link
        if not waiting[node]:
            waiting[node] = True
            queue[tail] = node
            tail = tail + 1 if tail + 1 < len(queue) else 0
    return tail


@part
def _shortest(
    links: Any, scenario: Any, search: Any, source: int, target: int, limit: float, back: bool
) -> tuple[bool, int]:
    """Distances from a node, or with ``back`` to it, along residual arcs: did it end, and after how much work?

    Lengths are reduced by the potentials, so that none is negative where these are dual prices, and what is farther
    than the target, if there is one, or than the limit is not looked at.
    """
    rows, cols, rates, active, plant_starts, plant_slots, product_starts, product_slots = links
    flow, used, served, capacity, demand, tiny = scenario
    dist, _, _, queue, waiting, potential = search
    m, n = len(used), len(served)
    root = m + n
    sign = -1.0 if back else 1.0
    dist[:] = np.inf
    waiting[:] = False
    dist[source] = 0.0
    queue[0] = source
    waiting[source] = True
    head, tail, work, visits = 0, 1, root // 4, 0
    while head != tail:
        node = queue[head]
        head = head + 1 if head + 1 < len(queue) else 0
        waiting[node] = False
        bound = min(limit, dist[target]) if target >= 0 else limit
        if dist[node] > bound:
            continue
        here = dist[node] + sign * potential[node]
        visits += 1
        if visits > PATIENCE * (root + 1):
            return False, work
        if node < m:
            for place in range(plant_starts[node], plant_starts[node + 1]):
                slot = plant_slots[place]
                if flow[slot] > 0.0 if back else active[slot]:
                    other = m + cols[slot]
                    length = here - sign * (rates[slot] + potential[other])
                    tail = _relax(search, other, length, bound, node, slot, tail)
            work += plant_starts[node + 1] - plant_starts[node] + 1
            if (capacity[node] - used[node] if back else used[node]) > tiny:
                tail = _relax(search, root, here - sign * potential[root], bound, node, -1, tail)
        elif node < root:
            j = node - m
            for place in range(product_starts[j], product_starts[j + 1]):
                slot = product_slots[place]
                if active[slot] if back else flow[slot] > 0.0:
                    other = rows[slot]
                    length = here + sign * (rates[slot] - potential[other])
                    tail = _relax(search, other, length, bound, node, slot, tail)
            work += product_starts[j + 1] - product_starts[j] + 1
            if (served[j] if back else demand[j] - served[j]) > tiny:
                tail = _relax(search, root, here - sign * potential[root], bound, node, -1, tail)
        else:
            for i in range(m):
                if (used[i] if back else capacity[i] - used[i]) > tiny:
                    tail = _relax(search, i, here - sign * potential[i], bound, node, -1, tail)
            for j in range(n):
                if (demand[j] - served[j] if back else served[j]) > tiny:
                    tail = _relax(search, m + j, here - sign * potential[m + j], bound, node, -1, tail)
            work += root
    return True, work


@part
def _reprice(search: Any, length: float) -> None:
    """Potentials that fit after pushing along a shortest path of this reduced length; the root keeps none."""
    dist, potential = search[0], search[5]
    root = len(dist) - 1
    shift = potential[root] + min(dist[root], length)
    for node in range(root + 1):
        potential[node] += min(dist[node], length) - shift


@part
def _from_prices(search: Any, prices: Any, m: int) -> None:
    """Prices as potentials."""
    potential = search[5]
    for node in range(len(prices)):
        potential[node] = prices[node] if node < m else -prices[node]
    potential[len(prices)] = 0.0


@part
def _to_prices(search: Any, prices: Any, m: int) -> None:
    """Potentials as prices."""
    potential = search[5]
    for node in range(len(prices)):
        prices[node] = min(max(potential[node] if node < m else -potential[node], 0.0), 2.0)


@small_part
def _snapped(value: float, top: float, tiny: float) -> float:
    """A mass without the dust that rounding leaves at its ends."""
    if value <= tiny:
        return 0.0
    return top if top - value <= tiny else value


@part
def _push(scenario: Any, search: Any, start: int, end: int, most: float) -> float:
    """Send as much as fits, at most so much, along the path that a search from ``start`` found; says how much."""
    flow, used, served, capacity, demand, tiny = scenario
    before, via = search[1], search[2]
    m, root = len(used), len(used) + len(served)
    for turn in range(2):
        node, steps = end, 0
        while node != start:
            last, slot = before[node], via[node]
            steps += 1
            if steps > root + 1:
                return 0.0
            if slot >= 0:
                if last >= m:
                    most = min(most, flow[slot])
                    if turn:
                        flow[slot] = _snapped(flow[slot] - most, np.inf, tiny)
                elif turn:
                    flow[slot] += most
            elif last == root and node < m:
                most = min(most, capacity[node] - used[node])
                if turn:
                    used[node] = _snapped(used[node] + most, capacity[node], tiny)
            elif last == root:
                most = min(most, served[node - m])
                if turn:
                    served[node - m] = _snapped(served[node - m] - most, demand[node - m], tiny)
            elif last < m:
                most = min(most, used[last])
                if turn:
                    used[last] = _snapped(used[last] - most, capacity[last], tiny)
            else:
                most = min(most, demand[last - m] - served[last - m])
                if turn:
                    served[last - m] = _snapped(served[last - m] + most, demand[last - m], tiny)
            node = last
    return most


@part
def _add(links: Any, scenario: Any, search: Any, i: int, j: int, rate: float) -> tuple[float, float, int]:
    """Reroute for a link that is not in the graph: what it gains, what it carries, and the work.

    The potentials must be dual prices; they stay so.
    """
    flow, used, served, _, _, tiny = scenario
    source, potential = len(used) + j, search[5]
    gain, carried, work = 0.0, 0.0, 0
    for _ in range(4 * (len(used) + len(served) + len(flow))):
        profit = rate - potential[i] + potential[source]
        if profit <= NEAR:
            break
        ended, more = _shortest(links, scenario, search, source, i, profit, False)
        work += more
        length = search[0][i]
        if not ended:
            break
        if not length < np.inf:  # no way is shorter than what the link earns: the prices take that up
            _reprice(search, profit)
            break
        sent = _push(scenario, search, source, i, np.inf)
        if sent <= tiny:
            break
        _reprice(search, length)
        gain += sent * (profit - length)
        carried += sent
    return gain, carried, work


@part
def _remove(links: Any, scenario: Any, search: Any, slot: int) -> tuple[float, int]:
    """Reroute what a link carries that is active no longer: what that loses, and the work.

    The potentials must be dual prices; they stay so.
    """
    rows, cols, rates = links[0], links[1], links[2]
    flow, used, served, _, _, tiny = scenario
    i, j = rows[slot], cols[slot]
    target, potential = len(used) + j, search[5]
    left, loss, work = flow[slot], 0.0, 0
    flow[slot] = 0.0
    while left > tiny:
        ended, more = _shortest(links, scenario, search, i, target, np.inf, False)
        work += more
        length = search[0][target]
        sent = _push(scenario, search, i, target, left) if ended and length < np.inf else 0.0
        if sent <= tiny:  # only rounding leads here: the way through the root is always open
            used[i], served[j] = max(used[i] - left, 0.0), max(served[j] - left, 0.0)
            return loss + left * rates[slot], work
        loss += sent * (rates[slot] + length - potential[i] + potential[target])
        _reprice(search, length)
        left -= sent
    return loss, work


@part
def _prices(links: Any, scenario: Any, search: Any, low: Any, high: Any) -> tuple[bool, int]:
    """Dual prices of plants and products: the highest of plants with the lowest of products, and the other way.

    Potentials that are dual prices make it faster. A price of two is out of reach, for the largest profit is one.
    """
    dist, potential = search[0], search[5]
    root, m = len(dist) - 1, len(scenario[1])
    ended, work = _shortest(links, scenario, search, root, -1, np.inf, False)
    for node in range(root):
        length = dist[node] + potential[node] - potential[root]
        low[node] = min(max(length if node < m else -length, 0.0), 2.0)
    again, more = _shortest(links, scenario, search, root, -1, np.inf, True)
    for node in range(root):
        length = dist[node] - potential[node] + potential[root]
        high[node] = min(max(-length if node < m else length, 0.0), 2.0)
    return ended and again, work + more


@small_part
def _bound(low: Any, high: Any, i: int, product: int, rate: float, most: float) -> Any:
    """No link gains more in a scenario than its reduced profit, at any prices, times the most that it can carry."""
    return max(min(rate - low[i] - low[product], rate - high[i] - high[product]), 0.0) * most


@kernel
def price(links: Any, scenario: Any, low: Any, high: Any) -> tuple[bool, int]:
    """The dual prices of a flow: was it the best one, without a cycle of negative cost, and the work."""
    links, scenario = borrowed(links), borrowed(scenario)
    return _prices(links, scenario, _scratch(len(low) + 1), low, high)


@kernel
def insert(links: Any, scenario: Any, prices: Any, slot: int) -> tuple[float, int]:
    """Make a link active and use it: what it gains, and the work. Prices are brought up to date."""
    links, scenario = borrowed(links), borrowed(scenario)
    rows, cols, rates, active = links[0], links[1], links[2], links[3]
    search = _scratch(len(prices) + 1)
    _from_prices(search, prices, len(scenario[1]))
    gain, carried, work = _add(links, scenario, search, rows[slot], cols[slot], rates[slot])
    scenario[0][slot] = carried
    active[slot] = True
    _to_prices(search, prices, len(scenario[1]))
    return gain, work


@kernel
def withdraw(links: Any, scenario: Any, prices: Any, slot: int) -> tuple[float, int]:
    """Do without a link: what that loses, and the work. Prices are brought up to date."""
    links, scenario = borrowed(links), borrowed(scenario)
    search = _scratch(len(prices) + 1)
    _from_prices(search, prices, len(scenario[1]))
    links[3][slot] = False
    loss, work = _remove(links, scenario, search, slot)
    _to_prices(search, prices, len(scenario[1]))
    return loss, work


@part
def _bounds(market: Any, low: Any, high: Any, candidates: Any, room: Any) -> Floats:
    """What candidates may gain at most, over all scenarios; nothing where there is no room."""
    plants, products, rates = candidates
    capacities, demands, weights, _ = market
    m = capacities.shape[1]
    bounds = np.zeros(len(plants))
    for c in range(len(plants)):
        i, j = plants[c], products[c]
        if room[0][i] > 0 and room[1][j] > 0:
            for s in range(len(weights)):
                most = weights[s] * min(capacities[s, i], demands[s, j])
                bounds[c] += _bound(low[s], high[s], i, m + j, rates[c], most)
    return bounds


@kernel
def best_bounds(market: Any, low: Any, high: Any, candidates: Any) -> Floats:
    """What candidates may gain at most on top of all links, limits aside."""
    everywhere = np.ones(market[0].shape[1], np.int64), np.ones(market[1].shape[1], np.int64)
    return _bounds(borrowed(market), low, high, borrowed(candidates), everywhere)


@kernel
def best_entry(
    links: Any, state: Any, market: Any, slot: int, candidates: Any, room: Any, least: float, allowance: int
) -> tuple[int, int]:
    """The best link to build instead of the one at ``slot``, or on top of all for a negative one.

    Candidates are tried in order of their bounds, so that most are never tried.

    Returns
    -------
    place, work
        The place among the candidates, -1 if none earns ``least`` more than the links do now.
    """
    links, state, market, candidates = borrowed(links), borrowed(state), borrowed(market), borrowed(candidates)
    plants, products, rates = candidates
    capacities, demands, weights, tiny = market
    flows, used, served = state[0].copy(), state[1].copy(), state[2].copy()
    low, high = state[3].copy(), state[4].copy()
    z, m, n = len(flows), used.shape[1], served.shape[1]
    search = _scratch(m + n + 1)
    room_rows, room_cols = room[0].copy(), room[1].copy()
    loss, work = 0.0, (flows.size + 3 * (used.size + served.size)) // 4
    changed = np.zeros(z, np.bool_)
    if slot >= 0:
        links[3][slot] = False
        room_rows[links[0][slot]] += 1
        room_cols[links[1][slot]] += 1
        for s in range(z):
            changed[s] = flows[s, slot] > 0.0
            if changed[s]:
                _from_prices(search, low[s], m)
                scenario = (flows[s], used[s], served[s], capacities[s], demands[s], tiny[s])
                lost, more = _remove(links, scenario, search, slot)
                _to_prices(search, low[s], m)
                high[s] = low[s]
                loss += weights[s] * lost
                work += more
    best, gain = -1, loss + least
    bounds = _bounds(market, low, high, candidates, (room_rows, room_cols))
    work += z * len(plants) // 4
    if bounds.max() > gain and changed.any():  # the prices at the ends of their range say more
        for s in range(z):
            if changed[s]:
                _from_prices(search, low[s], m)
                scenario = (flows[s], used[s], served[s], capacities[s], demands[s], tiny[s])
                work += _prices(links, scenario, search, low[s], high[s])[1]
        bounds = _bounds(market, low, high, candidates, (room_rows, room_cols))
        work += z * len(plants) // 4
    flow_trial, used_trial, served_trial = np.empty(flows.shape[1]), np.empty(m), np.empty(n)
    for c in np.argsort(-bounds):
        if bounds[c] <= gain or work > allowance:
            break
        i, j = plants[c], products[c]
        reach = bounds[c]
        for s in range(z):
            most = weights[s] * min(capacities[s, i], demands[s, j])
            bound = _bound(low[s], high[s], i, m + j, rates[c], most)
            if bound > 0.0:
                flow_trial[:], used_trial[:], served_trial[:] = flows[s], used[s], served[s]
                trial = (flow_trial, used_trial, served_trial, capacities[s], demands[s], tiny[s])
                nearer = low[s, i] + low[s, m + j] >= high[s, i] + high[s, m + j]
                _from_prices(search, low[s] if nearer else high[s], m)
                gained, _, more = _add(links, trial, search, i, j, rates[c])
                work += more + (m + n) // 4
                reach += weights[s] * gained - bound
                if reach <= gain:
                    break
        if reach > gain:
            best, gain = c, reach
            break
    if slot >= 0:
        links[3][slot] = True
    return best, work


@kernel
def gains(links: Any, state: Any, market: Any, slots: Any) -> Floats:
    """What each of some inactive links would gain over all scenarios."""
    links, state, market = borrowed(links), borrowed(state), borrowed(market)
    flows, used, served, prices = state
    capacities, demands, weights, tiny = market
    m, found = used.shape[1], np.zeros(len(slots))
    flow, sent, received = np.empty(flows.shape[1]), np.empty(m), np.empty(served.shape[1])
    search = _scratch(m + served.shape[1] + 1)
    for c in range(len(slots)):
        i, j, rate = links[0][slots[c]], links[1][slots[c]], links[2][slots[c]]
        for s in range(len(weights)):
            if rate - prices[s, i] - prices[s, m + j] > NEAR:
                flow[:], sent[:], received[:] = flows[s], used[s], served[s]
                _from_prices(search, prices[s], m)
                scenario = (flow, sent, received, capacities[s], demands[s], tiny[s])
                found[c] += weights[s] * _add(links, scenario, search, i, j, rate)[0]
    return found
