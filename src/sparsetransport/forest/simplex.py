"""The unbudgeted optimum for `Delta` kernels and no ``reg``: the network simplex on a forest of links.

As long as the sums of the points stay what they are, a pivot is that of the network simplex for hard marginals: a link
closes a cycle, mass moves around it until a link has none, and the prices of a part of the tree change. Balancing the
sums with the marginal errors takes time with a whole tree. So sums are kept until no pivot helps, trees being joined by
links without mass; then all trees are balanced, and from there on each tree is when it is joined with another.
"""

from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.codes import OPTIMAL, PAUSED
from .._numba.compiling import compiled, part
from ..engine.room import Constraint
from ..geometry._entries import BLOCK, cost_block, cost_entry
from ..inner.solvers import EXACT
from ..problem import Problem
from .rooted import Rooted, look_up, rehang, root_of, rooted, widen
from .trees import Forest, bare, insert, insert_all, links, remove, settle_next, wish

_CHUNK = 1e8  # operations between two looks at the keyboard
_RUN = 128  # prices that are compared with the least one so far at a time
_PIVOTS = 1000  # a point at the most: beyond that rounding goes round in circles


def optimum(
    problem: Problem, rows: Ints, cols: Ints, mass: Floats, shares: tuple[Floats, Floats] | None = None
) -> tuple[Ints, Ints, Floats] | None:
    """The optimal plan, sought from another one without cycles; None where rounding is in the way.

    Shares of rows and columns change the problem: masses times their share, weights divided by it.
    """
    forest = bare(problem, Constraint(None, problem.shape).room(), 1.0 if shares is None else np.concatenate(shares))
    effort, at = np.zeros(2), np.array([0, 0, 0, 1])
    points = sum(problem.shape)
    if rows.size < max(problem.shape):  # points are left out: it is faster to begin with none
        rows, cols, mass = rows[:0], cols[:0], mass[:0]
    room = np.zeros(points, np.int64), np.zeros(points, np.int64), np.zeros(points)
    count = unserved(forest, rows, cols, mass, *room)
    trees = rooted(points)
    added = (np.append(given, more[:count]) for given, more in zip((rows, cols, mass), room, strict=True))
    begin(forest, trees, *added)
    while pivot(forest, trees, EXACT * problem.scale, at, effort, effort[0] + _CHUNK) == PAUSED:
        if effort[1] > _PIVOTS * points:
            return None
    return links(forest)


@by_address
class Listed(NamedTuple):
    """Pairs by row that are looked at in place of all pairs."""

    first: Ints  # (rows + 1,) where the pairs of a row begin
    col: Ints  # as points
    cost: Floats


@compiled
def unserved(
    forest: Forest, rows: Ints, cols: Ints, mass: Floats, more_rows: Ints, more_cols: Ints, more_mass: Floats
) -> int:
    """How many links rows without any get: each to the cheapest columns that have room, as long as it has mass."""
    m, n = forest.rows, forest.first.size - forest.rows
    left, size = forest.wanted.copy(), 0
    for k in range(rows.size):
        left[rows[k]] = 0.0
        left[m + cols[k]] -= mass[k]
    for row in range(m):
        while left[row] > forest.tiny[0] and size < more_rows.size:
            least, at = np.inf, -1
            for col in range(n):
                if left[m + col] > forest.tiny[0] and cost_entry(forest.cost, row, col) < least:
                    least, at = cost_entry(forest.cost, row, col), col
            if at < 0:
                break
            moved = min(left[row], left[m + at])
            more_rows[size], more_cols[size], more_mass[size] = row, at, moved
            left[row] -= moved
            left[m + at] -= moved
            size += 1
    return size


@compiled
def pivot(forest: Forest, trees: Rooted, tol: float, at: Ints, effort: Floats, limit: float) -> int:
    """Add links that lower the objective, the steepest of some rows at a time, until a round of all rows has none.

    ``at`` holds the row to look at, the rows since the last pivot, whether trees are to be balanced, and whether sums
    are kept so far; ``effort`` operations and pivots.
    """
    m, n = forest.rows, forest.first.size - forest.rows
    together = max(int(np.sqrt(m / n)), 1)  # rows: they have as many pairs as a row would have if there were as many
    while at[1] < m:
        start = at[0] - at[0] % BLOCK
        block = cost_block(forest.cost, start, min(start + BLOCK, m))
        for first in range(at[0] - start, len(block), together):
            if effort[0] > limit:
                return PAUSED
            some = block[first : first + together]
            row, col = _steepest(forest, some, start + first, tol)
            at[0], at[1] = (start + first + len(some)) % m, at[1] + len(some)
            effort[0] += some.size
            if col >= 0:
                at[1], effort[1] = 0, effort[1] + 1.0
                effort[0] += _enter(forest, trees, row, col, at)
            elif at[1] >= m:
                break
        if at[1] >= m and at[2] > 0:
            at[1:] = 0
            effort[0] += _balance_all(forest, trees)
    return OPTIMAL


@compiled
def pivot_listed(
    forest: Forest, trees: Rooted, listed: Listed, tol: float, at: Ints, effort: Floats, limit: float
) -> int:
    """The same as `pivot` on the listed pairs alone."""
    m, pairs = forest.rows, listed.col.size
    together = max(int(m / np.sqrt(pairs + 1.0)), 1)  # rows: they have the square root of all pairs
    while at[1] < m:
        if effort[0] > limit:
            return PAUSED
        first, last = at[0], min(at[0] + together, m)
        row, col = _steepest_listed(forest, listed, first, last, tol)
        at[0], at[1] = last % m, at[1] + last - first
        effort[0] += listed.first[last] - listed.first[first] + last - first
        if col >= 0:
            at[1], effort[1] = 0, effort[1] + 1.0
            effort[0] += _enter(forest, trees, row, col, at)
        elif at[1] >= m and at[2] > 0:
            at[1:] = 0
            effort[0] += _balance_all(forest, trees)
    return OPTIMAL


@part
def _steepest_listed(forest: Forest, listed: Listed, first: int, last: int, tol: float) -> tuple[int, int]:
    """Of the listed pairs of some rows the one that lowers the objective most for its mass; -1: none does."""
    row, col, slope = -1, -1, -tol
    for i in range(first, last):
        for k in range(listed.first[i], listed.first[i + 1]):
            found = listed.cost[k] - forest.potential[i] - forest.potential[listed.col[k]]
            if found < slope:
                row, col, slope = i, listed.col[k], found
    return row, col


@part
def _steepest(forest: Forest, block: Floats, first: int, tol: float) -> tuple[int, int]:
    """Of some rows the pair that lowers the objective most for the mass that it gets; -1: none does."""
    row, col, slope = -1, -1, -tol
    prices = forest.potential[forest.rows :]
    for k in range(len(block)):
        least = _least(block[k], prices, slope + forest.potential[first + k])
        if least >= 0:
            exact = -wish(forest, first + k, forest.rows + least)
            if exact < slope:
                row, col, slope = first + k, forest.rows + least, exact
    return row, col


@part
def _least(row: Floats, prices: Floats, limit: float) -> int:
    """The column with the least cost minus price, if that is below the limit; -1: none."""
    col = -1
    for first in range(0, row.size, _RUN):
        last, hits = min(first + _RUN, row.size), np.int32(0)
        some, less = row[first:last], prices[first:last]
        for j in range(some.size):  # slices and a narrow counter, so that it vectorises
            hits += np.int32(some[j] - less[j] < limit)
        if hits > 0:
            for j in range(some.size):
                if some[j] - less[j] < limit:
                    limit, col = some[j] - less[j], first + j
    return col


@part
def _enter(forest: Forest, trees: Rooted, row: int, col: int, at: Ints) -> int:
    """A new link, within a tree or between two; ``at`` as in `pivot`. The points looked at, times four."""
    looked = _exchange(forest, trees, row, col)
    if looked > 0 or at[3] > 0:
        at[2] = 1
    if looked > 0:
        return looked
    if at[3] > 0:
        return _join(forest, trees, row, col)
    insert(forest, row, col, 0.0)
    return _balance(forest, trees, row)


@compiled
def begin(forest: Forest, trees: Rooted, rows: Ints, cols: Ints, mass: Floats) -> None:
    """Begin with these links, each tree balanced."""
    insert_all(forest, rows, cols, mass)
    _balance_all(forest, trees)


@compiled
def balance(forest: Forest, trees: Rooted) -> int:
    """Balance all trees: the points looked at, times four."""
    return int(_balance_all(forest, trees))


@part
def _balance_all(forest: Forest, trees: Rooted) -> int:
    """Balance all trees: the points looked at, times four."""
    latest, looked = forest.counts[1], 0
    for point in range(forest.first.size):
        if forest.tree[point] <= latest:
            looked += _balance(forest, trees, point)
    return looked


@part
def _balance(forest: Forest, trees: Rooted, point: int) -> int:
    """Take a tree to the best masses of its links; it may fall apart. The points looked at, times four."""
    forest.pending[0] = point
    pending, looked = 1, 0
    while pending > 0:
        pending, size = settle_next(forest, pending)
        if size > 0:
            look_up(forest, trees, size)
        looked += 4 * abs(size)
    return looked


@part
def _exchange(forest: Forest, trees: Rooted, row: int, col: int) -> int:
    """A new link between two points of a tree, for the one on the way between them that first loses all its mass.

    Of several the last one on the way from where their ways to the root meet, by the row to the column and on: so that
    pivots without mass do not go round in circles. The points looked at, times four; none in different trees.
    """
    mass, above, parent, size, m = forest.mass, forest.above, trees.parent, trees.size, forest.rows
    near, far, moved, leaving, onto, steps = row, col, np.inf, -1, -1, 0
    while near != far:
        steps += 1
        if size[near] <= size[far]:
            if parent[near] < 0:
                return 0
            if near < m and mass[above[near]] < moved:
                moved, leaving, onto = mass[above[near]], near, col
            near = parent[near]
        else:
            if parent[far] < 0:
                return 0
            if far >= m and mass[above[far]] <= moved:
                moved, leaving, onto = mass[above[far]], far, row
            far = parent[far]
    if moved > 0.0:
        _carry(forest, trees, row, near, moved)
        _carry(forest, trees, col, near, moved)
    part_size = size[leaving]
    widen(trees, parent[leaving], near, -part_size)
    widen(trees, onto, near, part_size)
    remove(forest, above[leaving])
    _hang(forest, trees, row, col, leaving, onto, moved)
    return 4 * int(steps + part_size)


@part
def _carry(forest: Forest, trees: Rooted, point: int, top: int, moved: float) -> None:
    """Move mass from a link to the next one, all the way up from a point to another one."""
    change = -moved
    while point != top:
        forest.mass[forest.above[point]] += change
        change, point = -change, trees.parent[point]


@part
def _join(forest: Forest, trees: Rooted, row: int, col: int) -> int:
    """A new link between two trees, without mass, so that sums are kept. The points looked at, times four."""
    root = root_of(trees, row)
    size = trees.size[root]
    widen(trees, col, -1, size)
    _hang(forest, trees, row, col, root, col, 0.0)
    return 4 * int(size)


@part
def _hang(forest: Forest, trees: Rooted, row: int, col: int, root: int, onto: int, mass: float) -> None:
    """Hang what hangs on a root on one end of a new link, by the other end: all its prices change by as much."""
    change = -wish(forest, row, col)
    insert(forest, row, col, mass)
    rehang(forest, trees, row + col - onto, root, onto, forest.first[row], change)
