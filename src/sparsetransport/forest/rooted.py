"""Trees of links as seen from their roots, for pivots that move parts of a tree from one point to another.

The points of a tree follow one another, each with all that hangs on it right behind it. So a part is walked point by
point, and when it is turned round to hang by another of its points, only the links on the way between the two change.
"""

from typing import NamedTuple

import numpy as np

from .._checks import Ints
from .._numba.borrowed import by_address
from .._numba.compiling import part, small_part
from .trees import Forest, other_end


@by_address
class Rooted(NamedTuple):
    """What each point hangs on, and the order of the points of a tree; -1: nothing."""

    parent: Ints  # (points,)
    size: Ints  # (points,) how many points there are from it to the last one that hangs on it
    after: Ints  # (points,) the next one
    before: Ints  # (points,) the one before


def rooted(points: int) -> Rooted:
    """Points that hang on nothing."""
    none = np.full(points, -1)
    return Rooted(none, np.ones(points, np.int64), none.copy(), none.copy())


@small_part
def root_of(trees: Rooted, point: int) -> int:
    """The root of the tree of a point."""
    while trees.parent[point] >= 0:
        point = trees.parent[point]
    return int(point)


@part
def look_up(forest: Forest, trees: Rooted, size: int) -> None:
    """The tree of so many points that has just been walked."""
    order, above, last = forest.order, forest.above, -1
    for k in range(size):
        point = order[k]
        trees.parent[point] = -1 if k == 0 else other_end(forest, above[point], point)
        trees.size[point] = forest.last[point] - k + 1
        _chain(trees, last, point)
        last = point
    _chain(trees, last, -1)


@part
def widen(trees: Rooted, point: int, top: int, more: int) -> None:
    """So many points more hang on those from a point up to another one, which is left out; -1: to the root."""
    while point != top:
        trees.size[point] += more
        point = trees.parent[point]


@part
def rehang(forest: Forest, trees: Rooted, point: int, root: int, onto: int, link: int, change: float) -> None:
    """Take what hangs on a root from where it is, and hang it by one of its points on another one.

    Potentials change: by as much on the side of the point, by the opposite on the other.
    """
    above, parent, size, after = forest.above, trees.parent, trees.size, trees.after
    whole, first, before, joint = size[root], point, trees.before[root], onto
    last, behind, inner, inside = -1, point, -1, 0
    while True:
        up, old, waiting = parent[point], above[point], size[point] - inside
        if inner >= 0:  # its points before those that are there already
            _chain(trees, last, point)
            at = point
            while at != inner:
                _shift(forest, at, change, first)
                last, at, waiting = at, after[at], waiting - 1
        if waiting > 0:  # and those behind them
            _chain(trees, last, behind)
            while waiting > 0:
                _shift(forest, behind, change, first)
                last, behind, waiting = behind, after[behind], waiting - 1
        inside, size[point], inner = size[point], whole - inside, point
        parent[point], above[point] = onto, link
        if point == root:
            break
        onto, link, point = point, old, up
    _chain(trees, before, behind)
    following = after[joint]
    _chain(trees, joint, first)
    _chain(trees, last, following)


@small_part
def _shift(forest: Forest, point: int, change: float, side: int) -> None:
    forest.potential[point] += change if (point < forest.rows) == (side < forest.rows) else -change


@small_part
def _chain(trees: Rooted, point: int, following: int) -> None:
    """Two points, one after the other; -1: none."""
    if point >= 0:
        trees.after[point] = following
    if following >= 0:
        trees.before[following] = point
