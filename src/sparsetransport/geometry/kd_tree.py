r"""A tree of boxes over points, for the least :math:`c(x, y_j) - \beta_j` over all of them.

Every box has a plane above the prices of its points, :math:`\beta_j \le g \cdot (y_j - z) + h` with the centre
:math:`z` of the box. Any slope :math:`g` is valid; the one of least squares follows the prices, so that boxes can be
ruled out even where these vary more than the distances within a box. A box is ruled out by the least of
:math:`|x - y|^2 - g \cdot (y - z) - h` over all of its :math:`y`, which has a closed form; for distances that are not
squared by :math:`(1 - |g|)\,|x - y| - g \cdot (x - z) - h` for its nearest :math:`y`, which needs :math:`|g| \le 1`.
"""

import math
from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.compiling import compiled, part, small_part
from .._numba.threads import in_parts

_LEAF = 8  # points in a box without parts, at the most
_STEEP = 4.0  # of the range of the prices in a box: a plane that falls by more than this is due to rounding
_PART = 4096  # queries that one thread answers at a time
_DEEP = 64  # boxes that wait to be looked at: no more than levels of the tree


@by_address
class Planes(NamedTuple):
    """Points in the order of the tree with their prices, and for every box its corners and the plane above."""

    points: Floats  # (n, d)
    prices: Floats  # (n,)
    starts: Ints  # (boxes + leaves,) the first point of a box
    ends: Ints
    low: Floats  # (boxes, d)
    high: Floats  # (boxes, d)
    slope: Floats  # (boxes, d)
    height: Floats  # (boxes,) of the plane at the centre of the box
    top: Floats  # (boxes,) the largest price


def at_most(below: Floats | None, queries: int, k: int) -> Floats:
    """What the least of every query must be below at first."""
    return np.full((queries, k), np.inf) if below is None else np.repeat(below[:, None], k, axis=1)


class KDTree:
    """Points sorted into boxes: box ``v`` has the parts ``2v + 1`` and ``2v + 2``, of equal numbers of points.

    ``order`` lists the points leaf by leaf, so that neighbours in it are near each other.
    """

    def __init__(self, points: Floats) -> None:
        n = len(points)
        self.levels = max(0, math.ceil(math.log2(n / _LEAF)))
        edges = [np.array([0, n])]
        self.order = np.arange(n)
        for _ in range(self.levels):
            at = edges[-1]
            box, here = np.repeat(np.arange(len(at) - 1), np.diff(at)), points[self.order]
            extent = np.maximum.reduceat(here, at[:-1]) - np.minimum.reduceat(here, at[:-1])
            along = here[np.arange(n), extent.argmax(1)[box]]
            self.order = self.order[np.lexsort((along, box))]
            edges.append(np.sort(np.concatenate([at, (at[:-1] + at[1:]) // 2])))
        self.points = np.ascontiguousarray(points[self.order])
        self._edges = edges
        self.starts, self.ends = np.concatenate([at[:-1] for at in edges]), np.concatenate([at[1:] for at in edges])
        at_levels = [at[:-1] for at in edges]
        self.low, self.high = (
            np.concatenate([pick.reduceat(self.points, at) for at in at_levels]) for pick in (np.minimum, np.maximum)
        )
        self._centre = 0.5 * (self.low + self.high)

    def planes(self, prices: Floats, *, most: float = np.inf) -> Planes:
        """The planes above these prices, none steeper than ``most``."""
        prices = np.ascontiguousarray(prices[self.order])
        slope, height, top = np.empty_like(self.low), np.empty(len(self.low)), np.empty(len(self.low))
        first = 0
        for at in self._edges:
            boxes = slice(first, first + len(at) - 1)
            first = boxes.stop
            slope[boxes], height[boxes], top[boxes] = self._level(prices, at, boxes, most)
        return Planes(self.points, prices, self.starts, self.ends, self.low, self.high, slope, height, top)

    def _level(self, prices: Floats, at: Ints, boxes: slice, most: float) -> tuple[Floats, Floats, Floats]:
        """Slopes and heights of the boxes of one level, and their largest prices."""
        count, d = np.diff(at), self.points.shape[1]
        box = np.repeat(np.arange(len(count)), count)
        here = self.points - self._centre[boxes][box]
        sums, total = np.add.reduceat(here, at[:-1]), np.add.reduceat(prices, at[:-1])
        square = np.add.reduceat((here[:, :, None] * here[:, None, :]).reshape(-1, d * d), at[:-1]).reshape(-1, d, d)
        square -= sums[:, :, None] * (sums / count[:, None])[:, None, :]
        pull = np.add.reduceat(prices[:, None] * here, at[:-1]) - sums * (total / count)[:, None]
        trace = np.trace(square, axis1=1, axis2=2)
        ridge = np.where(trace > 0.0, 1e-6 * trace, 1.0)
        slope = np.linalg.solve(square + ridge[:, None, None] * np.eye(d), pull[:, :, None])[:, :, 0]
        top = np.maximum.reduceat(prices, at[:-1])
        fall = np.abs(slope) @ np.ones(d) * (self.high[boxes] - self.low[boxes]).max(1)
        steep = ~(fall <= _STEEP * (top - np.minimum.reduceat(prices, at[:-1])))
        slope[steep] = 0.0
        length = np.linalg.norm(slope, axis=1)
        slope *= np.minimum(1.0, most / np.maximum(length, 1e-300))[:, None]
        height: Floats = np.maximum.reduceat(prices - np.einsum("nd,nd->n", slope[box], here), at[:-1])
        return np.asarray(slope, np.float64), height, np.asarray(top, np.float64)

    def least(
        self, queries: Floats, prices: Floats, k: int, *, squared: bool, below: Floats | None = None
    ) -> tuple[Floats, Ints]:
        """The ``k`` least ``|x - y_j|² - prices[j]`` of every query, smallest first, and which; or without squares.

        Where a query has a number in ``below``, only what is less counts; with fewer of them there is inf at the end.
        """
        value, index = at_most(below, len(queries), k), np.full((len(queries), k), -1)
        planes = self.planes(prices, most=np.inf if squared else 1.0)
        queries = np.ascontiguousarray(queries)
        in_parts(lambda each: search(planes, queries[each], squared, value[each], index[each]), len(queries), _PART)
        value[index < 0] = np.inf
        return value, np.where(index < 0, -1, self.order[index])


@small_part
def place_in(value: Floats, index: Ints, found: float, which: int) -> None:
    """Put a value that is below the last one in its place among the least."""
    place = value.size - 1
    while place > 0 and found < value[place - 1]:
        value[place], index[place] = value[place - 1], index[place - 1]
        place -= 1
    value[place], index[place] = found, which


@part
def _above(planes: Planes, x: Floats, box: int, squared: bool) -> float:
    """What no point of a box is below."""
    low, high, slope = planes.low[box], planes.high[box], planes.slope[box]
    total, away, steep = -planes.height[box], 0.0, 0.0
    for k in range(x.size):
        centre = 0.5 * (low[k] + high[k])
        y = min(max(x[k] + 0.5 * slope[k] if squared else x[k], low[k]), high[k])
        away += (x[k] - y) * (x[k] - y)
        total -= slope[k] * ((y if squared else x[k]) - centre)
        steep += slope[k] * slope[k]
    if squared:
        return float(away + total)
    away = math.sqrt(away)
    return float(max(away * max(1.0 - math.sqrt(steep), 0.0) + total, away - planes.top[box]))


@compiled
def search(planes: Planes, queries: Floats, squared: bool, value: Floats, index: Ints) -> None:
    """Fill in the least of every query; places in the order of the tree."""
    points, prices = planes.points, planes.prices
    inner = planes.low.shape[0] // 2
    waiting, least = np.empty(_DEEP, np.int64), np.empty(_DEEP)
    for q in range(queries.shape[0]):
        x, best, which = queries[q], value[q], index[q]
        last = best.size - 1
        waiting[0], least[0], size = 0, -np.inf, 1
        while size > 0:
            size -= 1
            box = waiting[size]
            if least[size] >= best[last]:
                continue
            if box >= inner:
                for j in range(planes.starts[box], planes.ends[box]):
                    found = 0.0
                    for k in range(x.size):
                        found += (x[k] - points[j, k]) * (x[k] - points[j, k])
                    found = (found if squared else math.sqrt(found)) - prices[j]
                    if found < best[last]:
                        place_in(best, which, found, j)
                continue
            left, right = _above(planes, x, 2 * box + 1, squared), _above(planes, x, 2 * box + 2, squared)
            for side in (0, 1):  # the better one last, to be looked at first
                near = (left < right) == (side == 1)
                bound = left if near else right
                if bound < best[last]:
                    waiting[size], least[size] = 2 * box + (1 if near else 2), bound
                    size += 1
