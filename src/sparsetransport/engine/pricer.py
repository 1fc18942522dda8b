"""The best pairs of every column by pricing, for lazy costs of large problems: what scans find, without all pairs.

Between two scans ``C + r`` of a pair changes as ``r`` of its row does. So the pairs that were found last tell a number
that as many pairs as a candidate list holds are below, and what a column had at the least, with the largest fall of
``r``, tells whether any pair of it can be. Only these columns are searched, and only for what is below.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from ..geometry.pricing import Pricing, scan
from .state import Work

_COLUMNS = 16  # that exist at one time in full
_SLACK = 1e-9  # of a gradient: rounding


class Found(NamedTuple):
    """What was found last."""

    value: Floats  # (n, depth) ``C + r`` of pairs
    rows: Ints  # (n, depth) their rows, -1: none
    least: Floats  # (n,) what no pair of a column is below, those of the support included
    r: Floats  # at that time


class ColumnPricer:
    """Scans of the columns by pricing, each with what the last one found."""

    def __init__(self, pricing: Pricing, tol: float) -> None:
        self.pricing, self.tol = pricing, tol
        self.found: Found | None = None

    def __call__(self, work: Work, depth: int, counted: bool) -> None:
        """The ``depth`` least ``C + r`` of every column off the support into ``best``, and their rows into ``where``.

        ``inf`` stands where ``C + r + c`` is not below ``-tol`` or, if more than one is asked for, a candidate list
        has room for better pairs. Pairs without room left in their rows are left out if ``counted``.
        """
        size, m, n = work.factor.size[0], work.r.size, work.c.size
        rows, cols = work.factor.label[:, :size]
        is_out = work.room.left[1 : 1 + m] <= 0 if counted else np.zeros(m, bool)
        known = None if self.found is None else self._now(work, rows, cols, is_out)
        limit = np.full(n, -self.tol)
        if known is not None and depth > 1 and known.value.size > work.listed.shape[1]:
            last = float(
                np.partition((known.value + work.c[:, None]).ravel(), work.listed.shape[1])[work.listed.shape[1]]
            )
            limit[:] = min(last + _SLACK * abs(last), -self.tol)
        limit -= work.c
        low = np.full(n, -np.inf) if known is None else known.least
        value, index = self._search(work, depth, np.where(low < limit, limit, -np.inf), is_out)
        least = np.where(index[:, 0] >= 0, value[:, 0], np.maximum(low, limit))
        self._complete(work, value, index, least, is_out)
        if depth > 1:
            if known is not None:
                old = index[:, 0] < 0
                value[old], index[old] = known.value[old], known.rows[old]
            if is_out.any():  # it tells nothing of rows that were left out, and have room later
                least[:] = -np.inf
            self.found = Found(value, index, least, work.r.copy())
        work.best[:depth], work.where[:depth] = value.T, index.T
        work.best[:depth][work.best[:depth] >= limit] = np.inf

    def _now(self, work: Work, rows: Ints, cols: Ints, is_out: NDArray[np.bool_]) -> Found:
        """What was found last with the present ``r``, without pairs that are not free now."""
        assert self.found is not None
        value, index, least, r = self.found
        change = work.r - r
        value = np.where(index >= 0, value + change[index], np.inf)
        at, place = np.nonzero(index[cols] == rows[:, None])
        value[cols[at], place] = np.inf
        if is_out.any():
            value[is_out[index]] = np.inf
        value[work.room.left[1 + work.r.size : 1 + work.r.size + work.c.size] <= 0] = np.inf
        return Found(value, index, least + change.min(), work.r)

    def _search(self, work: Work, depth: int, below: Floats, is_out: NDArray[np.bool_]) -> tuple[Floats, Ints]:
        prices = -work.r
        if is_out.any():  # so low that these come last
            prices[is_out] = prices.min() - self.pricing.widest
        value, index = self.pricing.columns(prices, depth, below)
        value[(index >= 0) & is_out[index]] = np.inf
        return value, index

    def _complete(self, work: Work, value: Floats, index: Ints, least: Floats, is_out: NDArray[np.bool_]) -> None:
        """Compute the columns of the support in full, of which pricing does not leave it out."""
        size = work.factor.size[0]
        rows, cols = work.factor.label[:, :size]
        touched, place = np.unique(cols, return_inverse=True)
        across = self.pricing.cost.between(self.pricing.points[1][touched], self.pricing.points[0])
        for first in range(0, touched.size, _COLUMNS):
            some = slice(first, first + _COLUMNS)
            block = across.rows(first, min(first + _COLUMNS, touched.size))
            here = (place >= first) & (place < some.stop)
            inside = block[place[here] - first, rows[here]] + work.r[rows[here]]
            block[place[here] - first, rows[here]] = np.inf
            block[:, is_out] = np.inf
            best, where = np.full((len(block), value.shape[1]), np.inf), np.full((len(block), value.shape[1]), -1)
            scan(block, -work.r, best, where)
            value[touched[some]], index[touched[some]] = best, where
            least[touched[some]] = best[:, 0]
            np.minimum.at(least, cols[here], inside)
