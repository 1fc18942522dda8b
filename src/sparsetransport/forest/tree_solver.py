"""Driver of local search on trees of links, and of its perturbation."""

import time

import numpy as np

from .._checks import Floats, Ints
from .._numba.codes import BUDGET_USED, LOCAL, OPTIMAL, PAUSED
from .._numba.compiling import compiled
from ..budgets import Matroid, Pair, pairs_of
from ..effort import Perturb, TreeSearch, Tuning
from ..engine.omp_solver import OMPSolver
from ..engine.room import Constraint, is_free, is_over
from ..engine.shell import Shell
from ..engine.state import CLOSE
from ..plan import Callback, Outcome
from ..problem import Problem
from ..status import Status
from .local_search import back_to_all, improve, keep_all, perturb, settle_both
from .trees import (
    Forest,
    bare,
    fee,
    links,
    plant,
    remove,
    wish,
)
from .undo_log import (
    ASLEEP,
    NEAR,
    REACH,
    UndoLog,
    new_log,
    value_at,
)

_STATUS = {BUDGET_USED: Status.BUDGET_USED, LOCAL: Status.LOCAL, OPTIMAL: Status.OPTIMAL}
_OPERATIONS = 2e7  # between two looks at the keyboard
_LEAST = 1e-12  # of the objective, or that of the empty plan: what a change must bring
_EXACT_ENOUGH = 1e-10  # of the scale of gradients
_DRAWS = 4096  # at a time


class TreeSolver(Shell):
    """One problem with one budget, and a forest of links that is to be made better."""

    def __init__(
        self,
        problem: Problem,
        constraint: Constraint,
        plan: Outcome,
        tuning: Tuning,
        *,
        tol: float,
        callback: Callback | None = None,
    ) -> None:
        super().__init__(constraint, problem.constant, callback)
        self.problem, self.told, self.tuning, self.tol = problem, plan, tuning, tol
        self.value = problem.value(plan.rows, plan.cols, plan.mass)
        self.forest = bare(problem, self.room)
        self.log, self.whole, self.best = (new_log(sum(problem.shape)) for _ in range(3))

    def support(self) -> list[Pair]:
        """The pairs of the plan as it stands."""
        return pairs_of(*links(self.forest)[:2])

    def begin(self, rows: Ints, cols: Ints, mass: Floats) -> None:
        """With these links, as far as they have no cycle; what is least worth goes where there are too many."""
        plant(self.forest, rows, cols, mass)
        shrink(self.forest)
        if self.constraint.oracle is not None:
            self._keep_allowed(self.constraint.oracle)

    def _keep_allowed(self, matroid: Matroid) -> None:
        """Cut the links that the matroid does not allow beside those that are worth more."""
        forest, kept = self.forest, list[Pair]()
        while len(kept) < len(self.support()):  # to cut one may leave others without mass
            used, kept = np.flatnonzero(forest.mass > 0.0), []
            refused = []
            for link in used[np.argsort(-forest.worth[used], kind="stable")].tolist():
                pair = int(forest.ends[0, link]), int(forest.ends[1, link]) - forest.rows
                if matroid.can_add(kept, pair):
                    kept.append(pair)
                else:
                    refused.append(link)
            cut_links(forest, np.array(refused, np.int64))

    def improve(self, how: TreeSearch) -> None:
        """Look at all points, and those around what has changed, until a round brings next to nothing."""
        log, before, value = self.log, np.inf, self.current
        log.counts[NEAR] = log.counts[REACH] = how.near
        while value < before - how.gain * abs(value) and not self.stopped:
            before = value
            log.awake[:], log.counts[ASLEEP] = 1, 0
            limit = self.effort[0] + how.operations
            while improve(*self._parts, self.effort, self.effort[0] + _OPERATIONS) == PAUSED and not self.stopped:
                self._report()
                if self.effort[0] > limit:
                    return
            self._report()
            value = self.current

    def perturb(self, how: Perturb, allowed: float, enough: float, rng: np.random.Generator) -> None:
        """Force links in and search on, with the allowed operations, or until the objective is low enough."""
        self.log.counts[REACH] = how.reach
        allowed += self.effort[0]
        self.best.value[0], worse = 0.0, how.worse * abs(self.current)
        if worse > 0.0:
            keep_all(self.forest, self.best)
        while self.effort[0] < allowed and self.current > enough and not self.stopped and self.forest.mass.any():
            limit = min(allowed, self.effort[0] + _OPERATIONS)
            draws = rng.integers(2**62, size=_DRAWS)
            perturb(*self._parts, self.best, worse, draws, how.targets, how.each, self.effort, limit)
            self._report()
        if self.best.value[0] > 0.0:
            back_to_all(self.forest, self.best)

    @property
    def current(self) -> float:
        """The objective of the links as they are now."""
        return self.problem.value(*links(self.forest))

    @property
    def _parts(self) -> tuple[Forest, UndoLog, UndoLog, float, float]:
        size = abs(self.current)
        if not (self.problem.is_charged and np.isfinite(size)):  # where masses of hard marginals weigh too much
            size = max(abs(self.problem.constant), size)  # negative costs may make either the larger one
        least = _LEAST * size
        return self.forest, self.log, self.whole, self.tol * self.problem.scale, least

    def _report(self) -> None:
        """Between two calls of compiled functions Ctrl-C works, and the callback is told."""
        self.raise_errors()
        if self.callback is not None and not self.stopped:
            self._tell()
        self.stopped |= time.monotonic() > self.deadline

    def _tell(self) -> None:
        """Write down where the plan is now, if it is better than what was told last, and say so."""
        plan = links(self.forest)
        value = self.problem.value(*plan)
        if value < self.value - _LEAST * abs(self.value):
            now = self.told._replace(rows=plan[0], cols=plan[1], mass=plan[2])
            self.stopped |= now.record.jump(self.told, now, value, self.callback)
            self.told, self.value = now, value

    def outcome(self) -> Outcome:
        """The plan as it stands, or the one before, if that was better."""
        before = self.value
        self._tell()
        if self.stopped:
            return self.told._replace(status=Status.STOPPED)
        if self.value == before and self.told.status is not Status.STOPPED and self.told.rows.size:
            return self.told
        status = _STATUS[standing(self.forest, self.tol * self.problem.scale, CLOSE)]
        if self.problem.is_charged and status is Status.OPTIMAL:
            status = Status.LOCAL
        self.raise_errors()
        self.told = self._exact(self.told._replace(status=status, converged=True))
        return self.told

    def _exact(self, plan: Outcome) -> Outcome:
        """The plan with masses solved all at once where weights so different that rounding shows ask for it."""
        if self.problem.is_sided:
            return plan
        fields = self.problem.fields(plan.rows, plan.cols, plan.mass)
        residual = np.abs(self.problem.gradient(fields, plan.rows, plan.cols)).max(initial=0.0)
        if residual <= _EXACT_ENOUGH * self.problem.scale:
            return plan
        solver = OMPSolver(self.problem, self.constraint, self.tuning, tol=self.tol)
        solver.seed(pairs_of(plan.rows, plan.cols), plan.mass)
        solved = solver.outcome()
        return plan._replace(rows=solved.rows, cols=solved.cols, mass=solved.mass)


@compiled
def standing(forest: Forest, tol: float, close: float) -> int:
    """Why the search ended: no pair helps, nothing is free, or no pair that is free helps."""
    m, n = forest.rows, forest.first.size - forest.rows
    value, mass, steepest, room = 0.0, forest.mass.sum() + forest.wanted.sum(), 0.0, False
    for point in range(m + n):
        value += value_at(forest, point)
    for row in range(m):
        for col in range(m, m + n):
            steepest = max(steepest, wish(forest, row, col))
            if not room and wish(forest, row, col) > -np.inf and is_free(forest.room, row, col - m):
                link = forest.first[row]
                while link >= 0 and forest.ends[1, link] != col:
                    link = forest.after[0, link]
                room = link < 0
    if steepest <= tol or steepest * mass <= close * abs(value):
        return OPTIMAL
    return LOCAL if room else BUDGET_USED


@compiled
def shrink(forest: Forest) -> None:
    """Cut links, the least worth first, until no capacity is exceeded."""
    m = forest.rows
    while True:
        least, cut = np.inf, -1
        for link in range(forest.mass.size):
            if forest.mass[link] <= 0.0:
                continue
            worth = forest.worth[link] - fee(forest, forest.ends[0, link], forest.ends[1, link])
            if worth < least and is_over(forest.room, forest.ends[0, link], forest.ends[1, link] - m):
                least, cut = worth, link
        if cut < 0:
            return
        row, col = forest.ends[0, cut], forest.ends[1, cut]
        remove(forest, cut)
        settle_both(forest, row, col)


@compiled
def cut_links(forest: Forest, cut: Ints) -> None:
    """Cut some links."""
    for k in range(cut.size):
        if forest.mass[cut[k]] > 0.0:
            row, col = forest.ends[0, cut[k]], forest.ends[1, cut[k]]
            remove(forest, cut[k])
            settle_both(forest, row, col)
