"""The unbudgeted optimum for `Delta` kernels and no ``reg``: the network simplex on a forest of links.

As long as the sums of the points stay what they are, a pivot is that of the network simplex for hard marginals: a link
closes a cycle, mass moves around it until a link has none, and the prices of a part of the tree change. Balancing the
sums with the marginal errors takes time with a whole tree. So sums are kept until no pivot helps, trees being joined by
links without mass; then all trees are balanced, and from there on each tree is when it is joined with another.
"""

import numpy as np

from .._checks import Floats, Ints
from .._numba.codes import OPTIMAL, PAUSED
from .._numba.compiling import compiled, part
from ..engine.room import Constraint
from ..geometry._entries import cost_entry
from ..inner.solvers import EXACT
from ..problem import Problem
from .trees import Forest, bare, insert, links, other_end, plant, remove, settle

_CHUNK = 1e8  # operations between two looks at the keyboard
_PIVOTS = 1000  # a point at the most: beyond that rounding goes round in circles


def optimum(
    problem: Problem, rows: Ints, cols: Ints, mass: Floats, shares: tuple[Floats, Floats] | None = None
) -> tuple[Ints, Ints, Floats] | None:
    """The optimal plan, sought from another one without cycles; None where rounding is in the way.

    Shares of rows and columns change the problem: masses times their share, weights divided by it.
    """
    forest = bare(problem, Constraint(None, problem.shape).room(), 1.0 if shares is None else np.concatenate(shares))
    effort, turn = np.zeros(2), np.array([0, 0, 0, 1])
    points = sum(problem.shape)
    if rows.size < max(problem.shape):  # points are left out: it is faster to begin with none
        rows, cols, mass = rows[:0], cols[:0], mass[:0]
    room = np.zeros(points, np.int64), np.zeros(points, np.int64), np.zeros(points)
    count = unserved(forest, rows, cols, mass, *room)
    plant(forest, *(np.append(given, more[:count]) for given, more in zip((rows, cols, mass), room, strict=True)))
    while pivot(forest, EXACT * problem.scale, turn, effort, effort[0] + _CHUNK) == PAUSED:
        if effort[1] > _PIVOTS * points:
            return None
    return links(forest)


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
def pivot(forest: Forest, tol: float, turn: Ints, effort: Floats, limit: float) -> int:
    """Add links that lower the objective, the steepest of a row at a time, until a round of all rows has none.

    ``turn`` holds the row to look at, the rows since the last pivot, whether trees are to be balanced, and whether sums
    are kept so far; ``effort`` operations and pivots.
    """
    potential, tree = forest.potential, forest.tree
    m, n = forest.rows, forest.first.size - forest.rows
    while turn[1] < m:
        if effort[0] > limit:
            return PAUSED
        row, col, steepest = turn[0], -1, -tol
        for j in range(n):
            slope = cost_entry(forest.cost, row, j) - potential[row] - potential[m + j]
            if slope < steepest:
                steepest, col = slope, j
        turn[0], turn[1] = (row + 1) % m, turn[1] + 1
        effort[0] += n
        if col >= 0:
            turn[1], effort[1] = 0, effort[1] + 1.0
            if tree[row] == tree[m + col]:
                turn[2], effort[0] = 1, effort[0] + _exchange(forest, row, m + col)
            elif turn[3] > 0:
                turn[2], effort[0] = 1, effort[0] + _hang(forest, row, m + col, row, 0.0)
            else:
                insert(forest, row, m + col, 0.0)
                effort[0] += settle(forest, row)
        elif turn[1] >= m and turn[2] > 0:
            turn[1:] = 0
            effort[0] += _balance_all(forest)
    return OPTIMAL


@part
def _balance_all(forest: Forest) -> int:
    """Balance all trees: the points looked at, times four."""
    latest, looked = forest.counts[1], 0
    for point in range(forest.first.size):
        if forest.tree[point] <= latest:
            looked += settle(forest, point)
    return looked


@part
def _exchange(forest: Forest, row: int, col: int) -> int:
    """A new link between two points of a tree, for the one on the way between them that first loses all its mass.

    Of several the last one on the way from where their ways to the root meet, by the row to the column and on: so that
    pivots without mass do not go round in circles. The points looked at, times four.
    """
    mass, by_row, by_col = forest.mass, forest.stack, forest.pending
    rows, cols = _ascent(forest, row, by_row), _ascent(forest, col, by_col)
    looked = rows + cols
    while rows > 0 and cols > 0 and by_row[rows - 1] == by_col[cols - 1]:
        rows, cols = rows - 1, cols - 1
    moved, blocking, root = np.inf, -1, row
    for k in range(0, rows, 2):
        if mass[by_row[k]] < moved:
            moved, blocking = mass[by_row[k]], by_row[k]
    for k in range(0, cols, 2):
        if mass[by_col[k]] <= moved:
            moved, blocking, root = mass[by_col[k]], by_col[k], col
    for k in range(rows):
        mass[by_row[k]] += moved if k % 2 else -moved
    for k in range(cols):
        mass[by_col[k]] += moved if k % 2 else -moved
    remove(forest, blocking)
    return 4 * looked + _hang(forest, row, col, root, moved)


@part
def _ascent(forest: Forest, point: int, way: Ints) -> int:
    """Write down the links from a point to the root of its tree: how many there are."""
    steps = 0
    while forest.above[point] >= 0:
        way[steps] = forest.above[point]
        point, steps = other_end(forest, way[steps], point), steps + 1
    return steps


@part
def _hang(forest: Forest, row: int, col: int, root: int, mass: float) -> int:
    """A new link between a part of a tree, which hangs on it by its root, and the rest.

    All prices of the part change by as much. The points looked at, times four.
    """
    above, stack, potential, m = forest.above, forest.stack, forest.potential, forest.rows
    change = cost_entry(forest.cost, row, col - m) - potential[row] - potential[col]
    insert(forest, row, col, mass)
    tree, stack[0], above[root] = forest.tree[row + col - root], root, forest.first[root]
    size, waiting = 0, 1
    while waiting > 0:
        size, waiting = size + 1, waiting - 1
        point = stack[waiting]
        side = 0 if point < m else 1
        potential[point] += change if (point < m) == (root < m) else -change
        forest.tree[point] = tree
        link = forest.first[point]
        while link >= 0:
            if link != above[point]:
                other = forest.ends[1 - side, link]
                above[other], stack[waiting] = link, other
                waiting += 1
            link = forest.after[side, link]
    return 4 * size
