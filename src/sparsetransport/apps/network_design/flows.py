"""The optimal flow of one scenario, updated along shortest paths when a link is added or removed.

A scenario is a minimum-cost flow problem on plants, products and a root, which takes up idle capacity and unmet demand.
Residual arcs have costs: minus its profit for a link forwards, its profit for a link with flow backwards, and zero for
the arcs of the root. A flow is optimal if no cycle has a negative cost. After adding a link, flow is pushed along the
shortest path that closes a cycle through it while the cycle has a negative cost; the flow of a removed link is sent
along shortest paths between its ends. Both take a few searches of a sparse graph, instead of a new linear program.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._checks import Floats, Ints
from ..._numba.borrowed import by_address
from ..._numba.compiling import part, small_part

NEAR = 1e-12  # costs, in units of the largest profit, that count as the same
PATIENCE = 64  # mean visits of a node after which a search is given up: there is a cycle of negative cost

# Prices are those of plants, then of products; as potentials the latter are negated, and the root has zero.


@by_address
class Links(NamedTuple):
    """Links by number, which is their slot, and the slots of every plant and product."""

    rows: Ints  # (k,) plants
    cols: Ints  # (k,) products
    rates: Floats  # (k,) profits; the largest of all is one
    active: NDArray[np.bool_]  # (k,) True if it is in the graph
    plant_starts: Ints  # (m + 1,) where the slots of a plant begin in ``plant_slots``
    plant_slots: Ints  # (k,)
    product_starts: Ints  # (n + 1,)
    product_slots: Ints  # (k,)


class Scenario(NamedTuple):
    """A flow in one scenario, and what bounds it."""

    flow: Floats  # (k,) of links
    used: Floats  # (m,) capacity
    served: Floats  # (n,) demand
    capacity: Floats  # (m,)
    demand: Floats  # (n,)
    tiny: float  # what counts as no mass


class Search(NamedTuple):
    """Memory for searches of shortest paths; nodes are plants, products and the root."""

    dist: Floats
    before: Ints  # previous nodes
    via: Ints  # previous links, -1: an arc of the root
    queue: Ints  # (nodes + 1,)
    waiting: NDArray[np.bool_]  # True if the node is in the queue
    potential: Floats


@part
def new_search(nodes: int) -> Search:
    """Memory for a graph of so many nodes."""
    return Search(
        np.empty(nodes),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes + 1, np.int64),
        np.zeros(nodes, np.bool_),
        np.zeros(nodes),
    )


@small_part
def _relax(search: Search, node: int, length: float, bound: float, source: int, link: int, tail: int) -> int:
    """Relax an arc: take a shorter path to a node if it is below the bound; returns the new end of the queue."""
    if length < min(search.dist[node], bound) - NEAR:
        search.dist[node] = length
        search.before[node] = source
        search.via[node] = link
        if not search.waiting[node]:
            search.waiting[node] = True
            search.queue[tail] = node
            tail = tail + 1 if tail + 1 < len(search.queue) else 0
    return tail


@part
def _shortest(
    links: Links, scenario: Scenario, search: Search, source: int, target: int, limit: float, back: bool
) -> tuple[bool, int]:
    """Distances from a node, or to it with ``back``, along residual arcs; returns whether it finished, and the work.

    Lengths are reduced by the potentials, so that none is negative if these are dual prices. Nodes farther than the
    target, if there is one, or than the limit are not visited.
    """
    rows, cols, rates, active = links.rows, links.cols, links.rates, links.active
    plant_starts, plant_slots, product_starts = links.plant_starts, links.plant_slots, links.product_starts
    product_slots, flow, used, served = links.product_slots, scenario.flow, scenario.used, scenario.served
    capacity, demand, tiny = scenario.capacity, scenario.demand, scenario.tiny
    dist, queue, waiting, potential = search.dist, search.queue, search.waiting, search.potential
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
def _reprice(search: Search, length: float) -> None:
    """Update the potentials after pushing along a shortest path of this reduced length; the root keeps zero."""
    dist, potential = search.dist, search.potential
    root = len(dist) - 1
    shift = potential[root] + min(dist[root], length)
    for node in range(root + 1):
        potential[node] += min(dist[node], length) - shift


@part
def from_prices(search: Search, prices: Floats, m: int) -> None:
    """Prices as potentials."""
    potential = search.potential
    for node in range(len(prices)):
        potential[node] = prices[node] if node < m else -prices[node]
    potential[len(prices)] = 0.0


@part
def to_prices(search: Search, prices: Floats, m: int) -> None:
    """Potentials as prices."""
    potential = search.potential
    for node in range(len(prices)):
        prices[node] = min(max(potential[node] if node < m else -potential[node], 0.0), 2.0)


@small_part
def _snapped(value: float, top: float, tiny: float) -> float:
    """A mass, rounded to zero or to its upper end if it is within rounding of it."""
    if value <= tiny:
        return 0.0
    return top if top - value <= tiny else value


@part
def _push(scenario: Scenario, search: Search, start: int, end: int, most: float) -> float:
    """Send as much as fits, at most ``most``, along the path found by a search from ``start``; returns the amount."""
    flow, used, served, tiny = scenario.flow, scenario.used, scenario.served, scenario.tiny
    capacity, demand = scenario.capacity, scenario.demand
    before, via = search.before, search.via
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
def add(links: Links, scenario: Scenario, search: Search, i: int, j: int, rate: float) -> tuple[float, float, int]:
    """Reroute for a link that is not in the graph; returns its gain, its flow and the work.

    The potentials must be dual prices, and remain so.
    """
    flow, used, served, tiny = scenario.flow, scenario.used, scenario.served, scenario.tiny
    source, potential = len(used) + j, search.potential
    gain, carried, work = 0.0, 0.0, 0
    for _ in range(4 * (len(used) + len(served) + len(flow))):
        profit = rate - potential[i] + potential[source]
        if profit <= NEAR:
            break
        ended, more = _shortest(links, scenario, search, source, i, profit, False)
        work += more
        length = search.dist[i]
        if not ended:
            break
        if not length < np.inf:  # no path closes a cycle of negative cost: adjust the prices instead
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
def remove(links: Links, scenario: Scenario, search: Search, slot: int) -> tuple[float, int]:
    """Reroute the flow of a link that is no longer active; returns the loss and the work.

    The potentials must be dual prices, and remain so.
    """
    flow, used, served, tiny = scenario.flow, scenario.used, scenario.served, scenario.tiny
    i, j, rate = links.rows[slot], links.cols[slot], links.rates[slot]
    target, potential = len(used) + j, search.potential
    left, loss, work = flow[slot], 0.0, 0
    flow[slot] = 0.0
    while left > tiny:
        ended, more = _shortest(links, scenario, search, i, target, np.inf, False)
        work += more
        length = search.dist[target]
        sent = _push(scenario, search, i, target, left) if ended and length < np.inf else 0.0
        if sent <= tiny:  # due to rounding alone: the path through the root is always open
            used[i], served[j] = max(used[i] - left, 0.0), max(served[j] - left, 0.0)
            return loss + left * rate, work
        loss += sent * (rate + length - potential[i] + potential[target])
        _reprice(search, length)
        left -= sent
    return loss, work


@part
def price_range(links: Links, scenario: Scenario, search: Search, low: Floats, high: Floats) -> tuple[bool, int]:
    """The extreme dual prices: the highest of plants with the lowest of products, and the reverse.

    It is faster if the potentials are dual prices. No price reaches two, since the largest profit is one.
    """
    dist, potential = search.dist, search.potential
    root, m = len(dist) - 1, len(scenario.used)
    ended, work = _shortest(links, scenario, search, root, -1, np.inf, False)
    for node in range(root):
        length = dist[node] + potential[node] - potential[root]
        low[node] = min(max(length if node < m else -length, 0.0), 2.0)
    again, more = _shortest(links, scenario, search, root, -1, np.inf, True)
    for node in range(root):
        length = dist[node] - potential[node] + potential[root]
        high[node] = min(max(-length if node < m else length, 0.0), 2.0)
    return ended and again, work + more
