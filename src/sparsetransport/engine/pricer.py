"""The best pairs of every column by pricing, for lazy costs of large problems: what scans find, without all pairs."""

import numpy as np

from ..geometry.pricing import Pricing, scan
from .state import Work

_COLUMNS = 16  # that exist at one time in full


def price_columns(pricing: Pricing, work: Work, depth: int, counted: bool) -> None:
    """The ``depth`` least ``C + r`` of every column off the support into ``best``, and their rows into ``where``.

    Rows without room left are left out if ``counted``. Columns of the support, which pricing does not leave out, are
    computed in full.
    """
    size, m = work.factor.size[0], work.r.size
    rows, cols = work.factor.label[:, :size]
    is_out, prices = work.room.left[1 : 1 + m] <= 0, -work.r
    if counted and is_out.any():  # so low that these come last
        prices[is_out] = prices.min() - pricing.widest
    value, index = pricing.columns(prices, depth)
    touched, place = np.unique(cols, return_inverse=True)
    across = pricing.cost.between(pricing.points[1][touched], pricing.points[0])
    for first in range(0, touched.size, _COLUMNS):
        some = slice(first, first + _COLUMNS)
        block, here = across.rows(first, min(first + _COLUMNS, touched.size)), (place >= first) & (place < some.stop)
        block[place[here] - first, rows[here]] = np.inf
        best, where = np.full((len(block), value.shape[1]), np.inf), np.full((len(block), value.shape[1]), -1)
        scan(block, prices, best, where)
        value[touched[some]], index[touched[some]] = best, where
    if counted:
        value[(index >= 0) & is_out[index]] = np.inf
    work.best[: value.shape[1]], work.where[: value.shape[1]] = value.T, index.T
