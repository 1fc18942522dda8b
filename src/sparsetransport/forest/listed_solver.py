"""Plans within a budget for large problems: trees of links that grow, and are made better, on short lists of pairs."""

from typing import Any

import numpy as np

from .. import effort
from .._checks import Floats, Ints
from .._numba.codes import PAUSED
from ..engine.room import Constraint
from ..geometry.pricing import Pricing
from ..plan import Callback, Outcome
from ..problem import Problem
from ..result import Status
from . import listed_search
from .crossover import best_masses
from .lists import Lists, first_that_fit, grow, lists_of, priced_keys, prune
from .local_search import TreeSolver
from .trees import links, plant
from .undo_log import NEAR, REACH

_OPERATIONS = 2e7  # between two looks at the keyboard
_DRAWS = 4096  # at a time


class ListedSolver(TreeSolver):
    """One large problem with one budget, and a forest of links that is to be made better on lists of pairs."""

    def __init__(
        self,
        problem: Problem,
        constraint: Constraint,
        plan: Outcome,
        how: effort.Listed,
        *,
        tol: float,
        callback: Callback | None = None,
        deadline: float = np.inf,
    ) -> None:
        super().__init__(problem, constraint, plan, effort.DEFAULT.tuning, tol=tol, callback=callback)
        self.how, self.pricing, self.deadline = how, Pricing(problem.cost), deadline
        self.lists: Lists | None = None
        self.keys: Ints = np.zeros(0, np.int64)  # of the last lists

    def begin(self, rows: Ints, cols: Ints, mass: Floats) -> None:
        """With the heaviest of these links, which have no cycle, that the budget allows."""
        order = np.argsort(-mass, kind="stable")
        fit = order[first_that_fit(self.room, rows[order], cols[order])]
        start = best_masses(self.problem, rows[fit], cols[fit], self.pricing.entries(rows[fit], cols[fit]))
        plant(self.forest, start.rows, start.cols, start.mass)

    def price(self) -> None:
        """New lists, at the potentials of the forest."""
        rows, cols, _ = links(self.forest)
        keys = priced_keys(self.pricing, self.forest, self.how.lists)
        self.lists = lists_of(self.pricing, np.concatenate([keys, self.keys, rows * self.problem.shape[1] + cols]))
        self.keys = keys

    def grow(self) -> None:
        """Link the pairs that gain most, where there is room, until none gains."""
        forest, lists = self.forest, self.lists
        assert lists is not None
        least = self._parts[-1]
        while forest.room.left[0] > 0:
            pull = forest.potential[lists.rows] + forest.potential[lists.cols] - lists.costs
            spread = 1.0 / forest.whole[lists.rows] + 1.0 / forest.whole[lists.cols]
            left = forest.room.left[1:]
            free = (left[lists.rows] > 0) & (left[lists.cols] > 0) & (forest.tree[lists.rows] != forest.tree[lists.cols])
            gain = np.where((pull > 0.0) & free, 0.5 * pull * pull / spread, 0.0)
            some = np.flatnonzero(gain > max(least, self.how.grown * gain.max(initial=0.0)))
            order = some[np.argsort(-gain[some], kind="stable")]
            if not grow(forest, lists.rows[order], lists.cols[order]):
                return

    def shrink(self) -> None:
        """Cut links, those of least worth first, until no capacity is exceeded."""
        forest = self.forest
        while True:
            used = np.flatnonzero(forest.mass > 0.0)
            order = used[np.argsort(forest.worth[used], kind="stable")]
            if not prune(forest, order[: max(1, int(order.size * self.how.cut))]):
                return

    def search(self, how: effort.TreeSearch) -> None:
        """Look at all points, and those around what has changed."""
        self.log.counts[NEAR] = self.log.counts[REACH] = how.near
        points = sum(self.problem.shape)
        queue = listed_search.queue_of(np.arange(points), points)
        forest, log, whole, tol, least = self._parts
        limit = self.effort[0] + how.operations
        while not self.stopped and self.effort[0] < limit:
            until = self.effort[0] + _OPERATIONS
            if (
                listed_search.improve(forest, log, whole, queue, self.lists, tol, least, self.effort, until) != PAUSED
            ):
                break
            self._report()
        self._report()

    def force(self, how: effort.Perturb, rng: np.random.Generator, draws: int) -> None:
        """Force links in and search on, so many times."""
        self.log.counts[REACH] = how.reach
        forest, log, whole, tol, least = self._parts
        points = sum(self.problem.shape)
        queue = listed_search.queue_of(np.zeros(0, np.int64), points)
        while draws > 0 and not self.stopped and forest.mass.any():
            drawn, done = rng.integers(2**62, size=min(_DRAWS, draws)), 0
            draws -= drawn.size
            while done < drawn.size and not self.stopped:
                until = self.effort[0] + _OPERATIONS
                done += listed_search.perturb(
                    forest, log, whole, queue, self.lists, tol, least, drawn[done:], how.targets, how.each,
                    self.effort, until,
                )
                self._report()

    def outcome(self) -> Outcome:
        """The plan as it stands, or the one before, if that was better."""
        self._tell()
        return self.told._replace(status=Status.STOPPED if self.stopped else Status.PRICED)
