"""The network simplex on lists of pairs, for problems whose pairs are too many to look at."""

import time

import numpy as np

from .._checks import Ints
from .._numba.codes import PAUSED
from ..engine.room import Constraint
from ..geometry.pricing import Pricing
from ..inner.solvers import EXACT
from ..prices.graph import graph_of, lists_by_row
from ..problem import Problem
from . import simplex
from .crossover import Planted
from .rooted import rooted
from .trees import bare, links

_CHUNK = 1e8  # operations between two looks at the clock


class ListedSimplex:
    """A forest of links that is made better on lists of pairs, which are those cheapest at some prices."""

    def __init__(self, problem: Problem, pricing: Pricing, planted: Planted, kept: int) -> None:
        m, n = problem.shape
        self.pricing, self.tol, self.most = pricing, EXACT * problem.scale, kept * (m + n)
        self.forest, self.trees = bare(problem, Constraint(None, problem.shape).room()), rooted(m + n)
        self.keys, self.cost = np.zeros(0, np.int64), np.zeros(0)  # of the pairs on the lists
        simplex.begin(self.forest, self.trees, planted.rows, planted.cols, planted.mass)

    @property
    def planted(self) -> Planted:
        """The links with their masses and potentials."""
        forest = self.forest
        alpha, beta = np.split(forest.potential.copy(), [forest.rows])
        value = float(forest.potential @ (forest.wanted - 0.5 * forest.give * forest.potential))
        return Planted(*links(forest), alpha, beta, value)

    def list(self, by_row: Ints, by_col: Ints) -> None:
        """Put columns of every row and rows of every column on the lists; the cheapest of those before stay."""
        m, n = self.pricing.cost.shape
        old = np.divmod(self.keys[self._cheapest()], n)
        graph = graph_of((m, n), old, lists_by_row(by_row), lists_by_row(by_col)[::-1])
        self.keys, self.cost = graph.key, self.pricing.entries(graph.row, graph.col)
        self.pairs = simplex.Listed(graph.first, graph.col + m, self.cost)

    def _cheapest(self) -> Ints:
        """The listed pairs of least reduced cost, as many as may stay."""
        if self.keys.size <= self.most:
            return np.arange(self.keys.size)
        rows, cols = np.divmod(self.keys, self.pricing.cost.shape[1])
        reduced = self.cost - self.forest.potential[rows] - self.forest.potential[self.forest.rows + cols]
        return np.argpartition(reduced, self.most)[: self.most]

    def improve(self, operations: float, deadline: float) -> bool:
        """Replace links by listed pairs until none of these helps, or after so many operations; True if any did."""
        forest, trees, effort, at = self.forest, self.trees, np.zeros(2), np.array([0, 0, 0, 1])
        while effort[0] < operations and time.monotonic() < deadline:
            limit = min(effort[0] + _CHUNK, operations)
            if simplex.pivot_listed(forest, trees, self.pairs, self.tol, at, effort, limit) != PAUSED:
                return bool(effort[1] > 0)
        simplex.balance(forest, trees)
        return True
