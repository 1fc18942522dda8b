"""The unbudgeted optimum for `Delta` kernels and no ``reg``: the network simplex on a forest of links."""

import numpy as np

from .._checks import Floats, Ints
from .._numba.codes import OPTIMAL, PAUSED
from .._numba.compiling import compiled
from ..engine.room import Constraint
from ..geometry._entries import cost_entry
from ..inner.solvers import EXACT
from ..problem import Problem
from .trees import Forest, bare, insert, links, plant, remove, settle, way_round

_CHUNK = 1e8  # operations between two looks at the keyboard
_PIVOTS = 1000  # a point at the most: beyond that rounding goes round in circles
_ROWS = 4  # that are looked at for a pivot


def optimum(
    problem: Problem, rows: Ints, cols: Ints, mass: Floats, shares: tuple[Floats, Floats] | None = None
) -> tuple[Ints, Ints, Floats] | None:
    """The optimal plan, sought from another one without cycles; None where rounding is in the way.

    Shares of rows and columns change the problem: masses times their share, weights divided by it.
    """
    forest = bare(problem, Constraint(None, problem.shape).room(), 1.0 if shares is None else np.concatenate(shares))
    effort, turn = np.zeros(2), np.zeros(2, np.int64)
    plant(forest, rows, cols, mass)
    while pivot(forest, EXACT * problem.scale, turn, effort, effort[0] + _CHUNK) == PAUSED:
        if effort[1] > _PIVOTS * sum(problem.shape):
            return None
    return links(forest)


@compiled
def pivot(forest: Forest, tol: float, turn: Ints, effort: Floats, limit: float) -> int:
    """Add links that lower the objective, the steepest of a few rows at a time, until a round of all rows has none.

    ``turn`` holds the row to look at, and the rows since the last pivot; ``effort`` operations and pivots.
    """
    potential, tree = forest.potential, forest.tree
    m, n = forest.rows, forest.first.size - forest.rows
    while turn[1] < m:
        if effort[0] > limit:
            return PAUSED
        steepest, i, j = -tol, -1, -1
        for _ in range(_ROWS):
            row = turn[0]
            for col in range(n):
                slope = cost_entry(forest.cost, row, col) - potential[row] - potential[m + col]
                if slope < steepest:
                    steepest, i, j = slope, row, col
            turn[0], turn[1] = (row + 1) % m, turn[1] + 1
        effort[0] += _ROWS * n
        if i >= 0:
            moved = 0.0
            if tree[i] == tree[m + j]:
                moved, blocking = way_round(forest, i, m + j, 0.0)
                way_round(forest, i, m + j, moved)
                remove(forest, blocking)
            insert(forest, i, m + j, moved)
            effort[0] += settle(forest, i)
            effort[1] += 1.0
            turn[1] = 0
    return OPTIMAL
