r"""The cheapest star of a column: which links of one column are worth their prices.

A star is a column with the links that end in it. A link that takes the mass ``x <= room`` costs ``begin x + bend x²/2``
and its price; the column pays :math:`\lambda(\sum x - b)^2` for its marginal error. With a scalar ``t`` for the sum of
masses, the cheapest star on the set ``R`` of links costs

.. math::
    F(R) = \max_t\; t b - \frac{t^2}{4\lambda} + \sum_{i \in R} G_i(t), \qquad
    G_i(t) = \text{price}_i - \int_{-\infty}^t \mathrm{clip}\Big(\frac{s - \text{begin}_i}{\text{bend}_i}, 0,
    \text{room}_i\Big) ds .

Where it is open whether a link belongs to ``R``, ``min(0, G_i(t))`` in place of ``G_i(t)`` gives a bound, at every
``t``. A depth-first search on these bounds finds the cheapest star; whatever it leaves out has a bound as well.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.compiling import compiled, part, small_part

Bools = NDArray[np.bool_]
LOW, VALUE, PRICE, NODES, FOUND, SIZE = range(6)  # places in ``out``
_LOOKS = 60  # at a concave function of one variable; a few are enough for all digits
_FLAT = 1e-13  # relative difference between bounds that counts as none


@by_address
class Work(NamedTuple):
    """The links of one column that the search looks at, and where it is."""

    begin: Floats
    bend: Floats
    inverse: Floats  # 1 / bend
    room: Floats
    price: Floats
    item: Ints  # the number of the link
    most: Floats  # 0 for a link that may be left out, infinity for one that may not
    now: Floats  # its price, infinity for one that is left out
    most_tried: Floats  # the same for the set of links that a bound suggests
    now_tried: Floats
    order: Ints  # the link that is decided at each depth,
    turned: Bools  # whether its second choice is under way
    at: Floats  # and the price where the bound of the node above was best


def new_work(size: int) -> Work:
    """Room for so many links."""
    kinds = {"item": np.int64, "order": np.int64, "turned": np.bool_}
    return Work(**{name: np.zeros(size + 1, kinds.get(name, np.float64)) for name in Work._fields})


@small_part
def _taken(work: Work, k: int, t: float) -> float:
    """The mass that a link takes at the marginal price ``t``."""
    if t <= work.begin[k]:
        return 0.0
    mass: float = min(work.room[k], (t - work.begin[k]) * work.inverse[k])
    return mass


@small_part
def _worth(work: Work, k: int, t: float) -> float:
    """``G`` of a link: its price, less what its mass saves."""
    mass = _taken(work, k, t)
    saved: float = mass * (t - work.begin[k] - 0.5 * work.bend[k] * mass) if mass > 0.0 else 0.0
    price: float = work.price[k]
    return price - saved


@part
def _look(work: Work, size: int, is_tried: bool, t: float, b: float, weight: float) -> tuple[float, float, float]:
    """The bound at ``t``, its slope and minus its curvature."""
    begin, bend, inverse, room = work.begin, work.bend, work.inverse, work.room
    most = work.most_tried if is_tried else work.most
    now = work.now_tried if is_tried else work.now
    value, slope, curve = t * (b - t / (4.0 * weight)), b - t / (2.0 * weight), 1.0 / (2.0 * weight)
    for k in range(size):
        over = t - begin[k]
        mass = min(room[k], over * inverse[k]) if over > 0.0 else 0.0
        worth = now[k] - (mass * (over - 0.5 * bend[k] * mass) if mass > 0.0 else 0.0)
        value += min(most[k], worth)
        slope -= mass if worth < most[k] else 0.0
        curve += inverse[k] if worth < most[k] and 0.0 < mass < room[k] else 0.0
    return value, slope, curve


@part
def _size(work: Work, size: int, t: float, b: float, weight: float) -> float:
    """The terms of the bound at ``t`` in absolute value, times their number: what its rounding is in proportion to."""
    terms, count = abs(t) * (b + abs(t) / (4.0 * weight)), 8
    for k in range(size):
        mass = _taken(work, k, t)
        own = work.now[k] + mass * (abs(t) + abs(work.begin[k]) + work.bend[k] * mass)
        if own < np.inf and (work.most[k] > 0.0 or _worth(work, k, t) < _FLAT * own):
            terms += own
            count += 1
    return terms * count


@part
def _highest(
    work: Work, size: int, is_tried: bool, t: float, b: float, weight: float, enough: float
) -> tuple[float, float]:
    """The best bound over all ``t``, and where it is; anything from ``enough`` on will do."""
    low, high, stride = -np.inf, np.inf, 0.0
    value_low, slope_low, value_high, slope_high = 0.0, 0.0, 0.0, 0.0
    best, where = -np.inf, t
    for k in range(_LOOKS):
        value, slope, curve = _look(work, size, is_tried, t, b, weight)
        if value > best:
            best, where = value, t
        if best >= enough or slope == 0.0:
            break
        if slope > 0.0:
            low, value_low, slope_low = t, value, slope
        else:
            high, value_high, slope_high = t, value, slope
        newton = t + slope / curve
        if low == -np.inf or high == np.inf:
            stride = max(2.0 * stride, abs(newton - t))
            t = t + stride if slope > 0.0 else t - stride
            continue
        crossing = low + (value_high - value_low + slope_high * (low - high)) / (slope_low - slope_high)
        if value_low + slope_low * (crossing - low) <= best + _FLAT * (abs(best) + weight * b * b):
            break
        t = newton if k % 3 == 0 else crossing if k % 3 == 1 else 0.5 * (low + high)
        if not low < t < high:
            t = 0.5 * (low + high)
            if not low < t < high:
                break
    return best, where


@part
def _suggest(work: Work, size: int, t: float) -> int:
    """Try the set of links that the bound at ``t`` suggests; which link is to be decided next, or -1 if all are.

    It is the one with the largest price, since a link that costs much when it is open moves the most mass.
    """
    next_one, dearest = -1, -1.0
    for k in range(size):
        is_in = work.most[k] > 0.0
        if not is_in and work.now[k] < np.inf:
            is_in = _worth(work, k, t) < 0.0
            if work.price[k] > dearest:
                next_one, dearest = k, work.price[k]
        work.most_tried[k] = np.inf if is_in else 0.0
        work.now_tried[k] = work.price[k] if is_in else np.inf
    return next_one


@small_part
def _decide(work: Work, k: int, is_in: bool) -> None:
    """Put a link into the star, or leave it out."""
    work.most[k] = np.inf if is_in else 0.0
    work.now[k] = work.price[k] if is_in else np.inf


@part
def _write_tried(work: Work, size: int, links: Bools) -> None:
    """The set of links that was tried."""
    links[:] = False
    for k in range(size):
        if work.most_tried[k] > 0.0:
            links[work.item[k]] = True


@part
def _settle(work: Work, size: int, t: float, root: float, limit: float, b: float, weight: float, out: Floats) -> int:
    """Decide links whose other choice costs more than ``limit``, and drop those that are out; how many are left."""
    for k in range(size):
        worth = _worth(work, k, t)
        if root + abs(worth) > limit:
            _decide(work, k, worth < 0.0)
    size = _without_dropped(work, size)
    for k in range(size):
        if work.most[k] == 0.0:
            is_in = _worth(work, k, t) < 0.0
            _decide(work, k, not is_in)
            value, where = _highest(work, size, False, t, b, weight, limit + _FLAT * abs(limit))
            if value > limit:
                out[SIZE] = max(out[SIZE], _size(work, size, where, b, weight))
                _decide(work, k, is_in)
            else:
                work.most[k], work.now[k] = 0.0, work.price[k]
    return _without_dropped(work, size)


@part
def _without_dropped(work: Work, size: int) -> int:
    """Move the links that are not left out to the front; how many they are."""
    left = 0
    for k in range(size):
        if work.now[k] < np.inf:
            work.begin[left], work.bend[left], work.inverse[left] = work.begin[k], work.bend[k], work.inverse[k]
            work.room[left], work.price[left], work.item[left] = work.room[k], work.price[k], work.item[k]
            work.most[left], work.now[left] = work.most[k], work.now[k]
            left += 1
    return left


@part
def _back(work: Work, depth: int) -> int:
    """The depth of the next node, after one that is done; -1 if there is none."""
    while depth > 0:
        k = work.order[depth - 1]
        if not work.turned[depth - 1]:
            work.turned[depth - 1] = True
            _decide(work, k, work.most[k] == 0.0)
            return depth
        work.most[k], work.now[k] = 0.0, work.price[k]
        depth -= 1
    return -1


@part
def _all_used(work: Work, size: int, t: float) -> bool:
    """True if no link of the tried set is without mass: without it the star costs no more."""
    for k in range(size):
        if work.most_tried[k] > 0.0 and work.bend[k] > 0.0 and t <= work.begin[k]:
            return False
    return True


@compiled
def cheapest_star(
    work: Work,
    begin: Floats,
    bend: Floats,
    room: Floats,
    price: Floats,
    b: float,
    weight: float,
    cut: float,
    nodes: float,
    links: Bools,
    sets: Bools,
    values: Floats,
    out: Floats,
) -> None:
    """A lower bound for the stars of a column with prices, and the cheapest star that was found.

    ``out`` gets the bound, the cost of the star, the marginal price (which it also begins with), the number of nodes,
    and the size of the terms. With a finite ``cut`` all stars that cost no more go to ``sets`` and ``values``:
    ``out[FOUND]`` of them, or -1 if the room there or the number of nodes is not enough.
    """
    size, lists = begin.size, cut < np.inf
    for k in range(size):
        work.begin[k], work.bend[k], work.inverse[k], work.room[k] = begin[k], bend[k], 1.0 / bend[k], room[k]
        work.price[k], work.item[k], work.most[k], work.now[k] = price[k], k, 0.0, price[k]
    tol, best = _FLAT * weight * b * b, weight * b * b
    root, t = _highest(work, size, False, out[PRICE], b, weight, np.inf)
    out[PRICE], out[NODES], out[FOUND], out[SIZE] = t, 1.0, 0.0, _size(work, size, t, b, weight)
    _suggest(work, size, t)
    value, _ = _highest(work, size, True, t, b, weight, best)
    links[:] = False
    if value < best:
        best = value
        _write_tried(work, size, links)
    limit = cut if lists else best - tol
    low, depth, found, is_whole = root, -1, 0, True
    if root <= limit:
        size = _settle(work, size, t, root, limit, b, weight, out)
        low, depth = np.inf, 0
        work.at[0] = t
    while depth >= 0:
        out[NODES] += 1.0
        limit = cut if lists else best - tol
        value, t = _highest(work, size, False, work.at[depth], b, weight, limit + _FLAT * abs(limit))
        if value > limit or out[NODES] > nodes:
            is_whole = is_whole and value > limit
            low = min(low, value)
            out[SIZE] = max(out[SIZE], _size(work, size, t, b, weight))
            depth = _back(work, depth)
            continue
        next_one = _suggest(work, size, t)
        if next_one < 0 or not lists:
            value, t_tried = _highest(work, size, True, t, b, weight, np.inf if lists else best)
            if value < best:
                best = value
                _write_tried(work, size, links)
        if next_one >= 0:
            work.order[depth], work.turned[depth] = next_one, False
            _decide(work, next_one, work.most_tried[next_one] > 0.0)
            depth += 1
            work.at[depth] = t
            continue
        low = min(low, value)
        out[SIZE] = max(out[SIZE], _size(work, size, t, b, weight))
        if lists and _all_used(work, size, t_tried):
            if found == values.size:
                is_whole = False
                break
            values[found] = value
            _write_tried(work, size, sets[found])
            found += 1
        depth = _back(work, depth)
    out[LOW], out[VALUE] = min(low, best), best
    out[FOUND] = found if is_whole else -1.0


@compiled
def cost_of_star(
    work: Work,
    begin: Floats,
    bend: Floats,
    room: Floats,
    links: Bools,
    b: float,
    weight: float,
    mass: Floats,
) -> float:
    """The cost of the star on a set of links, without prices; its masses are written to ``mass``."""
    size = 0
    for k in range(begin.size):
        if links[k]:
            work.begin[size], work.bend[size], work.inverse[size] = begin[k], bend[k], 1.0 / bend[k]
            work.room[size], work.price[size], work.item[size] = room[k], 0.0, k
            work.most_tried[size], work.now_tried[size] = np.inf, 0.0
            size += 1
    value, t = _highest(work, size, True, 0.0, b, weight, np.inf)
    mass[:] = 0.0
    for k in range(size):
        mass[work.item[k]] = _taken(work, k, t)
    missing = b - t / (2.0 * weight) - mass.sum()  # which links that take all or nothing at their price make up for
    for k in range(size):
        if bend[work.item[k]] == 0.0 and abs(t - work.begin[k]) <= 1e-9 * (abs(t) + abs(work.begin[k])):
            i = work.item[k]
            new = min(max(mass[i] + missing, 0.0), work.room[k])
            missing -= new - mass[i]
            mass[i] = new
    return value
