"""A matching of least cost on a sparse graph, by bids and then shortest augmenting paths, from given prices."""

from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.compiling import compiled, part

_BIDS = 6  # for each row without a column, in a sweep
_SWEEPS = 3  # of bids, before paths are sought
_NEW, _REACHED, _DONE = range(3)


@by_address
class Matching(NamedTuple):
    """Pairs by row with their costs, the prices of columns, and who is matched; -1: nobody."""

    first: Ints  # (rows + 1,) where the pairs of a row begin
    col: Ints
    cost: Floats
    price: Floats  # (columns,)
    pair: Ints  # (rows,) the pair of a row
    row: Ints  # (columns,)
    heap: Floats  # (pairs + 1,) distances of columns, the least first,
    heap_col: Ints  # and which columns; some more than once
    distance: Floats  # (columns,) from the row that is to be matched
    before: Ints  # (columns,) the row on the way to a column,
    before_pair: Ints  # and the pair
    state: Ints  # (columns,)
    seen: Ints  # (columns,) in the order in which they were reached


def matched(shape: tuple[int, int], rows: Ints, cols: Ints, cost: Floats, price: Floats) -> Ints:
    """Which pairs, sorted by row, are matched, so that their costs add up to the least; positive ones never are.

    It is the optimum if all columns are matched, or all prices are zero; else one near it, if the prices are good.
    """
    (m, n), size = shape, rows.size
    first = np.append(0, np.cumsum(np.bincount(rows, minlength=m)))
    ints, none = np.zeros(n, np.int64), np.full(n, -1)
    matching = Matching(
        first, cols, cost, price.copy(), np.full(m, -1), none.copy(), np.zeros(size + 1),
        np.zeros(size + 1, np.int64), np.zeros(n), ints.copy(), ints.copy(), ints.copy(), ints.copy(),
    )  # fmt: skip
    assign(matching)
    return matching.pair[matching.pair >= 0]


@compiled
def assign(g: Matching) -> None:
    """Match every row that is better off with a column."""
    rows = g.pair.size
    free, waiting = np.arange(rows), rows
    for _ in range(_SWEEPS):
        waiting = _bid(g, free, waiting)
    for k in range(waiting):
        _augment(g, free[k])


@part
def _bid(g: Matching, free: Ints, waiting: int) -> int:
    """Let free rows, and those that they drive out, bid for columns; how many are free after it."""
    left, queue = _BIDS * waiting, np.empty((_BIDS + 1) * waiting + 1, np.int64)
    queue[:waiting] = free[:waiting]
    begin, end = 0, waiting
    while begin < end and left > 0:
        i, begin, left = queue[begin], begin + 1, left - 1
        best, second, at = 0.0, 0.0, -1
        for e in range(g.first[i], g.first[i + 1]):
            value = g.cost[e] - g.price[g.col[e]]
            if value < best:
                best, second, at = value, best, e
            elif value < second:
                second = value
        if at < 0:
            continue
        col = g.col[at]
        owner = g.row[col]
        if second <= best and owner >= 0:
            continue
        g.price[col] -= second - best
        g.pair[i], g.row[col] = at, i
        if owner >= 0:
            g.pair[owner] = -1
            queue[end] = owner
            end += 1
    waiting = 0
    for i in range(g.pair.size):
        if g.pair[i] < 0:
            free[waiting] = i
            waiting += 1
    return waiting


@part
def _augment(g: Matching, start: int) -> None:
    """Match a row by the shortest way to a free column, or to a row that is best left without one."""
    i, base, size, reached, sink = start, 0.0, 0, 0, -1
    leave, leaver, radius = 0.0, start, 0.0
    while True:
        for e in range(g.first[i], g.first[i + 1]):
            col, distance = g.col[e], base + g.cost[e] - g.price[g.col[e]]
            if distance >= leave or g.state[col] == _DONE:
                continue
            if g.state[col] == _NEW or distance < g.distance[col]:
                if g.state[col] == _NEW:
                    g.state[col], g.seen[reached] = _REACHED, col
                    reached += 1
                g.distance[col], g.before[col], g.before_pair[col] = distance, i, e
                _push(g, size, distance, col)
                size += 1
        col = -1
        while size > 0 and col < 0:
            distance, top = g.heap[0], g.heap_col[0]
            size -= 1
            _drop_first(g, size)
            if g.state[top] == _REACHED and distance <= g.distance[top]:
                col = top
        if col < 0 or g.distance[col] >= leave:
            radius = leave
            break
        radius = g.distance[col]
        if g.row[col] < 0:
            sink = col
            break
        g.state[col] = _DONE
        i = g.row[col]
        base = radius - (g.cost[g.pair[i]] - g.price[col])
        if base < leave:
            leave, leaver = base, i
    for k in range(reached):
        col = g.seen[k]
        if g.state[col] == _DONE:
            g.price[col] += g.distance[col] - radius
        g.state[col] = _NEW
    if sink < 0:
        if leaver == start:
            return
        sink = g.col[g.pair[leaver]]
        g.pair[leaver] = -1
    while True:
        i, e = g.before[sink], g.before_pair[sink]
        following = g.col[g.pair[i]] if i != start else -1
        g.pair[i], g.row[sink] = e, i
        if i == start:
            return
        sink = following


@part
def _push(g: Matching, size: int, distance: float, col: int) -> None:
    """Put a column into the heap."""
    at = size
    while at > 0 and g.heap[(at - 1) // 2] > distance:
        g.heap[at], g.heap_col[at] = g.heap[(at - 1) // 2], g.heap_col[(at - 1) // 2]
        at = (at - 1) // 2
    g.heap[at], g.heap_col[at] = distance, col


@part
def _drop_first(g: Matching, size: int) -> None:
    """Take the first column out of the heap, where ``size`` are left."""
    distance, col, at = g.heap[size], g.heap_col[size], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and g.heap[child + 1] < g.heap[child]:
            child += 1
        if g.heap[child] >= distance:
            break
        g.heap[at], g.heap_col[at] = g.heap[child], g.heap_col[child]
        at = child
    g.heap[at], g.heap_col[at] = distance, col
