"""Plans within a budget for large problems: trees of links that grow, and are made better, on short lists of pairs."""

import numpy as np

from .. import effort
from .._checks import Floats, Ints
from .._numba.codes import PAUSED
from ..engine.room import Constraint
from ..geometry.pricing import Pricing
from ..inner.solvers import EXACT
from ..plan import Callback, Outcome, Record, nothing
from ..problem import Problem
from ..status import Status
from .crossover import best_masses
from .listed_search import improve, queue_of
from .lists import first_that_fit, grow, lists_of, priced_keys
from .tree_solver import TreeSolver
from .trees import links, plant
from .undo_log import NEAR, REACH

_OPERATIONS = 2e7  # between two looks at the keyboard


class ListedSolver(TreeSolver):
    """One large problem with one budget, and a forest of links that is to be made better on lists of pairs."""

    def __init__(
        self,
        problem: Problem,
        constraint: Constraint,
        how: effort.Listed,
        pricing: Pricing,
        *,
        callback: Callback | None = None,
        deadline: float = np.inf,
    ) -> None:
        empty = Outcome(*nothing(), Status.PRICED, (), Record(), True)
        super().__init__(problem, constraint, empty, effort.DEFAULT.tuning, tol=EXACT, callback=callback)
        self.how, self.pricing, self.deadline = how, pricing, deadline
        self.keys = np.zeros(0, np.int64)  # of the pairs on the last lists
        self.lists = lists_of(self.pricing, self.keys)

    def begin(self, rows: Ints, cols: Ints, mass: Floats) -> None:
        """With the heaviest of these links, which have no cycle, that the budget allows."""
        order = np.argsort(-mass, kind="stable")
        fit = order[first_that_fit(self.room, rows[order], cols[order])]
        start = best_masses(self.problem, rows[fit], cols[fit], self.pricing.entries(rows[fit], cols[fit]))
        plant(self.forest, start.rows, start.cols, start.mass)

    def refine(self, bound: float, close: float) -> None:
        """Grow and search on new lists, until a round brings little, or the relative gap to a bound is close."""
        value = np.inf
        for _ in range(self.how.rounds):
            before, value = value, self.current
            if self.stopped or value > before * (1.0 - self.how.gain) or value - bound <= close * abs(value):
                return
            self._price()
            while self._grow() > self.how.anew * sum(self.problem.shape):
                self._price()
            self._search()

    def _price(self) -> None:
        """New lists, at the potentials of the forest; the last ones and the links stay on them."""
        rows, cols, _ = links(self.forest)
        keys = priced_keys(self.pricing, self.forest, self.how.lists)
        self.lists = lists_of(self.pricing, np.concatenate([keys, self.keys, rows * self.problem.shape[1] + cols]))
        self.keys = keys

    def _grow(self) -> int:
        """Link the pairs that gain most, where there is room, until none gains: how many."""
        forest, lists, room = self.forest, self.lists, self.forest.room.left
        before, least = room[0], self._parts[-1]
        while room[0] > 0:
            pull = forest.potential[lists.rows] + forest.potential[lists.cols] - lists.costs
            spread = 1.0 / forest.whole[lists.rows] + 1.0 / forest.whole[lists.cols]
            free = (room[1 + lists.rows] > 0) & (room[1 + lists.cols] > 0)
            free &= forest.tree[lists.rows] != forest.tree[lists.cols]
            gain = np.where((pull > 0.0) & free, 0.5 * pull * pull / spread, 0.0)
            some = np.flatnonzero(gain > max(least, self.how.grown * gain.max(initial=0.0)))
            order = some[np.argsort(-gain[some], kind="stable")]
            if not grow(forest, lists.rows[order], lists.cols[order]):
                break
        return int(before - room[0])

    def _search(self) -> None:
        """Look at all points, and those around what has changed."""
        how, points = self.how.search, sum(self.problem.shape)
        self.log.counts[NEAR] = self.log.counts[REACH] = how.near
        queue = queue_of(np.arange(points), points)
        forest, log, whole, tol, least = self._parts
        limit = self.effort[0] + how.operations
        while not self.stopped and self.effort[0] < limit:
            until = self.effort[0] + _OPERATIONS
            code = improve(forest, log, whole, queue, self.lists, tol, least, self.effort, until)
            self._report()
            if code != PAUSED:
                return

    def outcome(self) -> Outcome:
        """The plan as it stands, or the one before, if that was better."""
        self._tell()
        return self.told._replace(status=Status.STOPPED if self.stopped else Status.PRICED)
