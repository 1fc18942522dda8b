"""What one link more or one less is worth: flows that are optimal already, rerouted along shortest paths.

A scenario is a flow problem on plants, products and one root, which idle capacity and unmet demand come from and go to.
Residual arcs cost what they lose: a link forwards minus its profit, backwards, as far as it has flow, its profit; arcs
of the root nothing. A flow is best when no cycle has a negative cost. A link more is worth pushing along the shortest
path that closes a cycle through it, until that costs nothing less; the flow of a link that goes is sent along shortest
paths between its ends. Either takes a few searches of a sparse graph, where a linear program would begin anew.
"""

from typing import Any

import numpy as np

from ..._jit import borrowed, kernel, small_kernel

NEAR = 1e-12  # costs, in units of the largest profit, that count as the same
PATIENCE = 64  # visits a node, on average, after which a search is given up: there is a cycle of negative cost

# links: rows, cols, rates, active, starts and slots of plants, starts and slots of products
# scenario: flow of links, used, served, capacity, demand, and what counts as no mass
# search: distances, previous nodes, previous links (-1: an arc of the root), queue, is it in the queue


@kernel
def scratch(nodes: int) -> Any:
    """Memory for the searches."""
    return (
        np.empty(nodes),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes + 1, np.int64),
        np.zeros(nodes, np.bool_),
    )


@small_kernel
def _relax(search: Any, node: int, length: float, source: int, link: int, tail: int) -> int:
    """Take a shorter way to a node; gives the new end of the queue."""
    dist, before, via, queue, waiting = search
    if length < dist[node] - NEAR:
        dist[node] = length
        before[node] = source
        via[node] = link
        if not waiting[node]:
            waiting[node] = True
            queue[tail] = node
            tail = tail + 1 if tail + 1 < len(queue) else 0
    return tail


@kernel
def _shortest(links: Any, scenario: Any, search: Any, source: int, back: bool) -> tuple[bool, int]:
    """Distances from a node, or with ``back`` to it, along residual arcs: did it end, and after how much work?"""
    rows, cols, rates, active, plant_starts, plant_slots, product_starts, product_slots = links
    flow, used, served, capacity, demand, tiny = scenario
    dist, _, _, queue, waiting = search
    m, n = len(used), len(served)
    root = m + n
    dist[:] = np.inf
    waiting[:] = False
    dist[source] = 0.0
    queue[0] = source
    waiting[source] = True
    head, tail, work, visits = 0, 1, root, 0
    while head != tail:
        node = queue[head]
        head = head + 1 if head + 1 < len(queue) else 0
        waiting[node] = False
        here = dist[node]
        visits += 1
        if visits > PATIENCE * (root + 1):
            return False, work
        if node < m:
            for place in range(plant_starts[node], plant_starts[node + 1]):
                slot = plant_slots[place]
                if back:
                    if flow[slot] > 0.0:
                        tail = _relax(search, m + cols[slot], here + rates[slot], node, slot, tail)
                elif active[slot]:
                    tail = _relax(search, m + cols[slot], here - rates[slot], node, slot, tail)
            work += plant_starts[node + 1] - plant_starts[node] + 1
            if (capacity[node] - used[node] if back else used[node]) > tiny:
                tail = _relax(search, root, here, node, -1, tail)
        elif node < root:
            j = node - m
            for place in range(product_starts[j], product_starts[j + 1]):
                slot = product_slots[place]
                if back:
                    if active[slot]:
                        tail = _relax(search, rows[slot], here - rates[slot], node, slot, tail)
                elif flow[slot] > 0.0:
                    tail = _relax(search, rows[slot], here + rates[slot], node, slot, tail)
            work += product_starts[j + 1] - product_starts[j] + 1
            if (served[j] if back else demand[j] - served[j]) > tiny:
                tail = _relax(search, root, here, node, -1, tail)
        else:
            for i in range(m):
                if (used[i] if back else capacity[i] - used[i]) > tiny:
                    tail = _relax(search, i, here, node, -1, tail)
            for j in range(n):
                if (demand[j] - served[j] if back else served[j]) > tiny:
                    tail = _relax(search, m + j, here, node, -1, tail)
            work += root
    return True, work


@small_kernel
def _snapped(value: float, top: float, tiny: float) -> float:
    """A mass without the dust that rounding leaves at its ends."""
    if value <= tiny:
        return 0.0
    return top if top - value <= tiny else value


@kernel
def _push(scenario: Any, search: Any, start: int, end: int, most: float) -> float:
    """Send as much as fits, at most so much, along the path that a search from ``start`` found; says how much."""
    flow, used, served, capacity, demand, tiny = scenario
    _, before, via, _, _ = search
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


@kernel
def _add(links: Any, scenario: Any, search: Any, i: int, j: int, rate: float) -> tuple[float, float, int]:
    """Reroute for a link that is not in the graph: what it gains, what it carries, and the work."""
    flow, used, served, _, _, tiny = scenario
    m = len(used)
    gain, carried, work = 0.0, 0.0, 0
    for _ in range(4 * (len(used) + len(served) + len(flow))):
        ended, more = _shortest(links, scenario, search, m + j, False)
        work += more
        length = search[0][i]
        if not ended or not length < rate - NEAR:
            break
        sent = _push(scenario, search, m + j, i, np.inf)
        if sent <= tiny:
            break
        gain += sent * (rate - length)
        carried += sent
    return gain, carried, work


@kernel
def _remove(links: Any, scenario: Any, search: Any, slot: int) -> tuple[float, int]:
    """Reroute what a link carries that is active no longer: what that loses, and the work."""
    rows, cols, rates = links[0], links[1], links[2]
    flow, used, served, _, _, tiny = scenario
    i, j = rows[slot], cols[slot]
    left, loss, work = flow[slot], 0.0, 0
    flow[slot] = 0.0
    while left > tiny:
        ended, more = _shortest(links, scenario, search, i, False)
        work += more
        length = search[0][len(used) + j]
        sent = _push(scenario, search, i, len(used) + j, left) if ended and length < np.inf else 0.0
        if sent <= tiny:  # only rounding leads here: the way through the root is always open
            used[i], served[j] = max(used[i] - left, 0.0), max(served[j] - left, 0.0)
            return loss + left * rates[slot], work
        loss += sent * (rates[slot] + length)
        left -= sent
    return loss, work


@kernel
def _prices(links: Any, scenario: Any, search: Any, low: Any, high: Any) -> tuple[bool, int]:
    """Dual prices of plants and products: the highest of plants with the lowest of products, and the other way."""
    nodes = len(search[0]) - 1
    m = len(scenario[1])
    ended, work = _shortest(links, scenario, search, nodes, False)
    for node in range(nodes):
        low[node] = max(search[0][node] if node < m else -search[0][node], 0.0)
    again, more = _shortest(links, scenario, search, nodes, True)
    for node in range(nodes):
        high[node] = max(-search[0][node] if node < m else search[0][node], 0.0)
    return ended and again, work + more


@small_kernel
def _bound(low: Any, high: Any, i: int, product: int, rate: float, most: float) -> float:
    """No link gains more in a scenario than its reduced profit, at any prices, times the most that it can carry."""
    return max(min(rate - low[i] - low[product], rate - high[i] - high[product]), 0.0) * most


@kernel
def optimal(links: Any, scenario: Any) -> bool:
    """Is there no cycle of negative cost?"""
    links, scenario = borrowed(links), borrowed(scenario)
    nodes = len(scenario[1]) + len(scenario[2])
    return _prices(links, scenario, scratch(nodes + 1), np.empty(nodes), np.empty(nodes))[0]


@kernel
def insert(links: Any, scenario: Any, slot: int) -> tuple[float, int]:
    """Make a link active and use it: what it gains, and the work."""
    links, scenario = borrowed(links), borrowed(scenario)
    rows, cols, rates, active = links[0], links[1], links[2], links[3]
    search = scratch(len(scenario[1]) + len(scenario[2]) + 1)
    gain, carried, work = _add(links, scenario, search, rows[slot], cols[slot], rates[slot])
    scenario[0][slot] = carried
    active[slot] = True
    return gain, work


@kernel
def withdraw(links: Any, scenario: Any, slot: int) -> tuple[float, int]:
    """Do without a link: what that loses, and the work."""
    links, scenario = borrowed(links), borrowed(scenario)
    links[3][slot] = False
    return _remove(links, scenario, scratch(len(scenario[1]) + len(scenario[2]) + 1), slot)


@kernel
def best_entry(
    links: Any, state: Any, market: Any, slot: int, candidates: Any, room: Any, least: float, allowance: int
) -> tuple[int, float, int, Any]:
    """The best link to build instead of the one at ``slot``, or on top of all for a negative one.

    Candidates are tried in order of their bounds, so that most are never tried.

    Returns
    -------
    place, gain, work, bounds
        The place among the candidates or -1, what is gained in all, and the bounds of the candidates, in what they
        gain over the network without the link.
    """
    links, state, market, candidates = borrowed(links), borrowed(state), borrowed(market), borrowed(candidates)
    rows, cols, active = links[0], links[1], links[3]
    plants, products, rates = candidates
    room_rows, room_cols = room
    capacities, demands, weights, tiny = market
    flows, used, served = state[0].copy(), state[1].copy(), state[2].copy()
    z, m, n = len(flows), used.shape[1], served.shape[1]
    search = scratch(m + n + 1)
    low, high = np.empty((z, m + n)), np.empty((z, m + n))
    loss, work = 0.0, flows.size + used.size + served.size
    if slot >= 0:
        active[slot] = False
    for s in range(z):
        scenario = (flows[s], used[s], served[s], capacities[s], demands[s], tiny[s])
        if slot >= 0:
            lost, more = _remove(links, scenario, search, slot)
            loss += weights[s] * lost
            work += more
        work += _prices(links, scenario, search, low[s], high[s])[1]
    bounds = np.zeros(len(plants))
    for c in range(len(plants)):
        i, j = plants[c], products[c]
        if slot >= 0:
            fits = room_rows[i] + (rows[slot] == i) > 0 and room_cols[j] + (cols[slot] == j) > 0
        else:
            fits = room_rows[i] > 0 and room_cols[j] > 0
        if fits:
            for s in range(z):
                most = weights[s] * min(capacities[s, i], demands[s, j])
                bounds[c] += _bound(low[s], high[s], i, m + j, rates[c], most)
    work += z * len(plants)
    best, gain = -1, loss + least
    for c in np.argsort(-bounds):
        if bounds[c] <= gain or work > allowance:
            break
        i, j = plants[c], products[c]
        reach = bounds[c]
        for s in range(z):
            most = weights[s] * min(capacities[s, i], demands[s, j])
            bound = _bound(low[s], high[s], i, m + j, rates[c], most)
            if bound > 0.0:
                trial = (flows[s].copy(), used[s].copy(), served[s].copy(), capacities[s], demands[s], tiny[s])
                gained, _, more = _add(links, trial, search, i, j, rates[c])
                work += more + m + n
                reach += weights[s] * gained - bound
                if reach <= gain:
                    break
        if reach > gain:
            best, gain = c, reach
    if slot >= 0:
        active[slot] = True
    return best, gain - loss, work, bounds
