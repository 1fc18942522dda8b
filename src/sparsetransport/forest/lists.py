"""Short lists of the pairs that a search on a large problem looks at, in place of all pairs.

For every row they hold the columns that are cheapest at the potentials of the forest, and at those that points would
have if one of their links were cut, and the same for every column. They have to be made anew as the potentials change.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.compiling import compiled
from ..engine.room import Room, count, has_capacity
from ..geometry.pricing import Pricing
from ..prices.graph import distinct, lists_by_row
from .trees import Forest, insert, settle

Flags = NDArray[np.bool_]


@by_address
class Lists(NamedTuple):
    """The pairs on the lists of every point; points are numbered rows first."""

    first: Ints  # (points + 1,) where the list of a point begins
    other: Ints  # the points at the other ends
    cost: Floats
    rows: Ints  # (pairs,) every pair once
    cols: Ints  # as points
    costs: Floats


def lists_of(pricing: Pricing, keys: Ints) -> Lists:
    """Lists of pairs, each given as row times columns plus column; forbidden ones are left out."""
    m, n = pricing.cost.shape
    rows, cols = np.divmod(distinct(keys), n)
    cost = pricing.entries(rows, cols)
    allowed = np.isfinite(cost)
    rows, cols, cost = rows[allowed], cols[allowed] + m, cost[allowed]
    order = np.argsort(cols, kind="stable")
    first = np.concatenate([np.bincount(rows, minlength=m), np.bincount(cols - m, minlength=n)])
    return Lists(
        np.append(0, np.cumsum(first)),
        np.concatenate([cols, rows[order]]),
        np.concatenate([cost, cost[order]]),
        rows,
        cols,
        cost,
    )


def priced_keys(pricing: Pricing, forest: Forest, count: int) -> Ints:
    """The cheapest pairs of every point at the potentials of a forest, and at those after a cut."""
    m, n = pricing.cost.shape
    cut = forest.potential.copy()
    raise_to_cut(forest, cut)
    keys = []
    for potential in (forest.potential, cut):
        rows, cols = lists_by_row(pricing.rows(potential[m:], count)[1])
        keys.append(rows[cols >= 0] * n + cols[cols >= 0])
        cols, rows = lists_by_row(pricing.columns(potential[:m], count)[1])
        keys.append(rows[rows >= 0] * n + cols[rows >= 0])
    return np.concatenate(keys)


@compiled
def raise_to_cut(forest: Forest, potential: Floats) -> None:
    """The highest potentials that points would have if one of their links were cut."""
    for link in range(forest.mass.size):
        if forest.mass[link] > 0.0:
            for side in range(2):
                point = forest.ends[side, link]
                potential[point] = max(potential[point], forest.cut[side, link])


@compiled
def grow(forest: Forest, rows: Ints, cols: Ints) -> int:
    """Link pairs in this order where there is room, if no tree of theirs has changed meanwhile: how many."""
    before, linked = forest.counts[1], 0
    for e in range(rows.size):
        row, col = rows[e], cols[e]
        if forest.room.left[0] <= 0:
            break
        fresh = forest.tree[row] <= before and forest.tree[col] <= before and forest.tree[row] != forest.tree[col]
        if fresh and has_capacity(forest.room, row, col - forest.rows):
            insert(forest, row, col, 0.0)
            settle(forest, row)
            linked += 1
    return linked


@compiled
def first_that_fit(room: Room, rows: Ints, cols: Ints) -> Flags:
    """Which pairs fit into the room, if they are taken in this order; nothing is taken."""
    fit = np.zeros(rows.size, np.bool_)
    for e in range(rows.size):
        fit[e] = has_capacity(room, rows[e], cols[e])
        if fit[e]:
            count(room, rows[e], cols[e], -1)
    for e in range(rows.size):
        if fit[e]:
            count(room, rows[e], cols[e], 1)
    return fit
