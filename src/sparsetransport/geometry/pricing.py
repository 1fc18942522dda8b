r"""Pricing: the least :math:`C_{ij} - \beta_j` of every row, or :math:`C_{ij} - \alpha_i` of every column.

It is what bounds, candidate lists and prices need of the costs, and takes no array of the size of the plan. Costs of
points in few dimensions are priced by a tree of boxes (`kd_tree`), squared distances in many dimensions by matrix
products in single precision, all others by a pass over blocks of the costs. Whatever the way, what comes out is the
minimum in double precision: a pair is left out only if single precision with a margin for its rounding says so.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from .._numba.compiling import compiled, small_part
from .._numba.threads import in_parts
from . import _entries
from .kd_tree import KDTree, at_most, place_in
from .matrices import Cost

Singles = NDArray[np.float32]
_TREE_UP_TO = 6  # dimensions; with more, too few boxes are ruled out
_BLOCK = 1 << 22  # entries of a block of costs
_TILE, _PART = 1024, 256  # columns and rows of the products that one thread looks at at one time
_RUN = 256  # entries that are compared with the least so far at a time
_UNIT = 2.0**-24  # the rounding of single precision


class Pricing:
    """Rows and columns of a cost, priced.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsetransport.geometry.matrices import Cost
    >>> pricing = Pricing(Cost.dense([[1.0, 2.0, 5.0], [4.0, 4.0, 1.0]]))
    >>> value, cols = pricing.rows(np.array([0.0, 1.5, 0.0]), 2)
    >>> value, cols
    (array([[0.5, 1. ], [1. , 2.5]]), array([[1, 0], [2, 1]]))
    """

    def __init__(self, cost: Cost) -> None:
        self.cost = cost

    def rows(self, beta: Floats, k: int = 1, below: Floats | None = None) -> tuple[Floats, Ints]:
        """The ``k`` least ``C[i, j] - beta[j]`` of every row, smallest first, and their columns; -1: no more allowed.

        Two arrays of shape ``(m, k)``; ``k`` is at most the number of columns. With ``below`` only what is less than
        the number of its row counts, which spares work.
        """
        return self._least(beta, k, 0, below)

    def columns(self, alpha: Floats, k: int = 1, below: Floats | None = None) -> tuple[Floats, Ints]:
        """The ``k`` least ``C[i, j] - alpha[i]`` of every column, smallest first, and their rows; as `rows`."""
        return self._least(alpha, k, 1, below)

    def _least(self, prices: Floats, k: int, axis: int, below: Floats | None) -> tuple[Floats, Ints]:
        k, cost = min(k, len(prices)), self.cost.compiled
        if not self.cost.is_lazy:
            return self._by_blocks(prices, k, axis, below)
        squared = cost.kind == _entries.SQEUCLIDEAN
        near, far = self.points[axis], self.points[1 - axis]
        unit = cost.scale
        limit = None if below is None else below / unit
        if near.shape[1] <= _TREE_UP_TO:
            value, index = self.trees[1 - axis].least(near, prices / unit, k, squared=squared, below=limit)
        elif squared:
            value, index = _by_products(near, far, prices / unit, k, limit)
        else:
            return self._by_blocks(prices, k, axis, below)
        return value * unit, index

    @cached_property
    def points(self) -> tuple[Floats, Floats]:
        """The points of both sides, for lazy costs."""
        cost = self.cost.compiled
        return np.ascontiguousarray(-0.5 * cost.x[:, :-2]), np.ascontiguousarray(cost.y[:-2].T)

    @cached_property
    def widest(self) -> float:
        """No two lazy costs differ by more."""
        x, y = self.points
        low, high = np.minimum(x.min(axis=0), y.min(axis=0)), np.maximum(x.max(axis=0), y.max(axis=0))
        square = float(np.sum((high - low) ** 2))
        return self.cost.compiled.scale * (square if self.cost.is_squared else square**0.5)

    def entries(self, rows: Ints, cols: Ints) -> Floats:
        """The costs of the given pairs."""
        if not self.cost.is_lazy:
            return self.cost.entries(rows, cols)
        cost, square = self.cost.compiled, squares(*self.points, rows, cols)
        return cost.scale * (square if cost.kind == _entries.SQEUCLIDEAN else np.sqrt(square))

    @property
    def is_short(self) -> bool:
        """True if pricing takes less than a pass over all pairs in double precision."""
        return self.has_trees or self.cost.is_squared

    @property
    def has_trees(self) -> bool:
        """True if pricing searches trees."""
        return self.cost.is_lazy and self.points[0].shape[1] <= _TREE_UP_TO

    @cached_property
    def trees(self) -> tuple[KDTree, KDTree]:
        """Trees over the points of both sides."""
        return KDTree(self.points[0]), KDTree(self.points[1])

    def _by_blocks(self, prices: Floats, k: int, axis: int, below: Floats | None) -> tuple[Floats, Ints]:
        lines, across = self.cost.shape[axis], self.cost.shape[1 - axis]
        value, index = at_most(below, lines, k), np.full((lines, k), -1)

        def price(part: slice) -> None:
            if axis == 0:
                block = self.cost.rows(part.start, part.stop)
            else:
                block = np.ascontiguousarray(self.cost.columns(np.arange(part.start, part.stop)).T)
            scan(block, prices, value[part], index[part])

        in_parts(price, lines, max(1, _BLOCK // across))
        value[index < 0] = np.inf
        return value, index


@compiled
def scan(block: Floats, prices: Floats, value: Floats, index: Ints) -> None:
    """The least ``block[i, j] - prices[j]`` of every row."""
    last = value.shape[1] - 1
    for i in range(block.shape[0]):
        row, best = block[i], value[i]
        for first in range(0, row.size, _RUN):
            end, hits, least = min(first + _RUN, row.size), np.int32(0), best[last]
            some, shifts = row[first:end], prices[first:end]
            for j in range(some.size):  # slices and a narrow counter, so that it vectorises
                hits += np.int32(some[j] - shifts[j] < least)
            if hits > 0:
                for j in range(first, end):
                    if row[j] - prices[j] < best[last]:
                        place_in(best, index[i], row[j] - prices[j], j)


@compiled
def squares(x: Floats, y: Floats, rows: Ints, cols: Ints) -> Floats:
    """Squared distances of some pairs."""
    square = np.zeros(rows.size)
    for e in range(rows.size):
        for k in range(x.shape[1]):
            square[e] += (x[rows[e], k] - y[cols[e], k]) * (x[rows[e], k] - y[cols[e], k])
    return square


def _by_products(near: Floats, far: Floats, prices: Floats, k: int, below: Floats | None = None) -> tuple[Floats, Ints]:
    r"""The least :math:`|x_i - y_j|^2 - \beta_j`, by products in single precision.

    With unit roundoff :math:`u`, :math:`q_j = -2 x \cdot y_j + h_j`, :math:`h_j = |y_j|^2 - \beta_j`, has an error of
    at most :math:`2u\,((d + 4)\,|x|\,|y_j| + |h_j|)` up to terms in :math:`u^2`, whatever the order of the sums. Points
    are shifted and scaled before, so that products neither overflow nor vanish.
    """
    if below is not None and (below == -np.inf).any():
        value, index = np.full((len(near), k), np.inf), np.full((len(near), k), -1)
        if (some := np.flatnonzero(below > -np.inf)).size:
            value[some], index[some] = _by_products(near[some], far, prices, k, below[some])
        return value, index
    m, n, d = len(near), len(far), near.shape[1]
    middle = far.mean(0)
    x, y = near - middle, far - middle
    unit = max(float(np.abs(x).max()), float(np.abs(y).max())) or 1.0
    with np.errstate(over="ignore"):
        level = float(prices.max())  # the same for all: it would cost digits
        height = np.sum((y / unit) ** 2, 1) - (prices - level) / unit**2
        left, right = (-2.0 / unit * x).astype(np.float32), np.ascontiguousarray((y / unit).T, np.float32)
        low = height.astype(np.float32)
        longest = float(np.sqrt(np.sum(y * y, 1).max())) / unit
        long = np.sqrt(np.sum(x * x, 1)) / unit
        margin = 1.1 * 2.0 * _UNIT * ((d + 4.0) * long * longest + float(np.abs(height).max()) + 1e-30)
    value, index = at_most(below, m, k), np.full((m, k), -1)

    tiles = [slice(first, min(first + _TILE, n)) for first in range(0, n, _TILE)]
    rights = [np.ascontiguousarray(right[:, tile]) for tile in tiles]

    def price(part: slice) -> None:
        square = long[part] ** 2
        for tile, side in zip(tiles, rights, strict=True):
            product = left[part] @ side
            refine(
                product,
                low[tile],
                margin[part],
                square,
                level,
                unit,
                near[part],
                far[tile],
                prices[tile],
                value[part],
                index[part],
                tile.start,
            )

    in_parts(price, m, _PART)
    value[index < 0] = np.inf
    return value, index


@small_part
def _limit(value: float, level: float, unit: float, square: float, margin: float) -> np.float32:
    """What a product of single precision is not above if it stands for less than ``value``."""
    bound = (value + level) / (unit * unit) - square
    return np.float32(bound + margin + 2.0 * _UNIT * abs(bound))


@compiled
def refine(
    product: Singles,
    low: Singles,
    margin: Floats,
    square: Floats,
    level: float,
    unit: float,
    near: Floats,
    far: Floats,
    prices: Floats,
    value: Floats,
    index: Ints,
    start: int,
) -> None:
    """Compute in double precision what may be among the least of a row, for all that single precision tells.

    The first column has the number ``start``.
    """
    last = value.shape[1] - 1
    for i in range(product.shape[0]):
        row, best, x = product[i], value[i], near[i]
        limit = _limit(best[last], level, unit, square[i], margin[i])
        for first in range(0, row.size, _RUN):
            end, hits = min(first + _RUN, row.size), np.int32(0)
            some, shifts = row[first:end], low[first:end]
            for j in range(some.size):  # slices and a narrow counter, so that it vectorises
                hits += np.int32(not some[j] + shifts[j] > limit)  # what is not a number counts, too
            if hits == 0:
                continue
            for j in range(first, end):
                if not row[j] + low[j] > limit:
                    found = 0.0
                    for k in range(x.size):
                        found += (x[k] - far[j, k]) * (x[k] - far[j, k])
                    found -= prices[j]
                    if found < best[last]:
                        place_in(best, index[i], found, start + j)
                        limit = _limit(best[last], level, unit, square[i], margin[i])


def nearest(points: Floats, others: Floats) -> Ints:
    """Which of the others each point is nearest to."""
    zero = np.zeros(len(others))
    if points.shape[1] <= _TREE_UP_TO:
        return KDTree(others).least(points, zero, 1, squared=True)[1][:, 0]
    return _by_products(points, others, zero, 1)[1][:, 0]
