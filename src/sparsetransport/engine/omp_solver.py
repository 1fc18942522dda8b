"""Drives the compiled loop: room for the state, pauses for Ctrl-C and callbacks, swaps, and the reverse greedy."""

from collections.abc import Callable, Sequence

import numpy as np

from .._checks import Floats, Ints
from .._numba.codes import NEEDS_ROOM, PAUSED, UNBOUNDED
from ..budgets import Limits, Pair, no_limits, pairs_of
from ..inner.active_set import copy_factor, enlarge
from ..inner.solvers import EXACT, UnboundedError
from ..plan import Callback, Outcome, Record, Trace, as_arrays, new_trace
from ..problem import Problem
from ..result import Status
from . import capacity, elimination, grow, swaps
from .state import Data, new_saved, new_work, with_more_columns

CHUNK = 2e8  # operations between two looks at the keyboard
STEPS = 4096  # steps between two looks
POOL_FROM = 250_000  # pairs; smaller plans are scanned at every step
SPARE_COLUMNS = 256  # of a lazy Gram matrix: the swaps look at pairs in new rows and columns
PLACE_UP_TO = 8192  # pairs of a start that are factorised at once
_SOUND = 1e-9  # a pivot below this share of the diagonal is left to the one-by-one way, which tells what depends
POLISH_SHARE = 4.0  # operations of the polish for one of the building, unless a gap is asked for,
POLISH_FREE = 1e7  # and so many on top
PASSES = 2.0  # of exchanges before the way beyond the budget, and at the end of it: most of what they bring


class Engine:
    """One problem with one counting budget, and the state of its solve."""

    def __init__(
        self, problem: Problem, limits: Limits | None = None, *, tol: float = EXACT, callback: Callback | None = None
    ) -> None:
        self.problem = problem
        self.limits = no_limits(problem.shape) if limits is None else limits
        self.callback = callback
        self.tol = tol
        self.record = Record()
        self.effort = np.zeros(1)
        self.stopped = False
        self.start: tuple[Pair, ...] = ()
        m, n = problem.shape
        weight_a, weight_b = problem.unbalanced
        r, c = problem.base
        room = room_for(self.limits)
        pooled, cost = m * n >= POOL_FROM, problem.cost.compiled
        self.data = Data(
            cost if pooled else cost._replace(matrix=cost.matrix.copy()),
            problem.gram_a.compiled(2.0 * weight_a, room + SPARE_COLUMNS),
            problem.gram_b.compiled(2.0 * weight_b, room + SPARE_COLUMNS),
            r,
            c,
            problem.reg,
            tol * problem.scale,
            problem.constant,
            float(problem.a.sum() + problem.b.sum()),
            self.limits.labels,
            pooled,
        )
        self.work = new_work(self.data, room, self.limits.flat)

    def seed(self, pairs: Sequence[Pair], mass: Floats | None = None) -> None:
        """Begin with those of the pairs that help: all at once from their masses if these are known, then one by one.

        Masses of a nearby problem save most of the way: few entries turn negative.
        """
        if not pairs:
            return
        rows, cols = as_arrays(pairs)
        if mass is not None and len(mass):
            self._place(rows, cols, mass)
        self._advance(
            lambda trace, limit: grow.grow_within(self.data, self.work, trace, self.effort, limit, rows, cols)
        )

    def _place(self, rows: Ints, cols: Ints, mass: Floats) -> None:
        """Put all pairs into the empty plan at once, if the budget has room for them and none depends on others."""
        m, n = self.problem.shape
        used = capacity.used_capacity(rows, cols, self.limits.labels, len(self.limits.groups))
        too_many = len(rows) > (m + n if self.problem.reg == 0.0 else PLACE_UP_TO)
        if too_many or (used > self.work.left).any() or not np.isfinite(self.problem.cost.entries(rows, cols)).all():
            return
        hessian = self.problem.hessian(rows, cols, rows, cols)
        try:
            lower = np.linalg.cholesky(hessian)
        except np.linalg.LinAlgError:
            return
        pivots = np.diagonal(lower) ** 2
        if (pivots <= _SOUND * np.diagonal(hessian)).any():
            return
        while len(rows) > len(self.work.factor.mass):
            self._enlarge(entries=True)
        while not grow.fetch_all(self.data, rows, cols):
            self._enlarge(entries=False)
        slopes = self.problem.slope(rows, cols)
        grow.place(self.data, self.work, rows, cols, mass, np.asarray(lower, np.float64), slopes)
        self.start = self.support()
        self.effort[0] += len(rows) ** 3 / 3.0

    def support(self) -> tuple[Pair, ...]:
        """The pairs of the plan as it stands."""
        factor, size = self.work.factor, int(self.work.factor.size[0])
        return tuple(pairs_of(*factor.label[:, :size]))

    def grow(self) -> None:
        """Add pairs until nothing helps or nothing is free."""
        self._advance(lambda trace, limit: grow.grow(self.data, self.work, trace, self.effort, limit))

    def polish(self, *, thorough: bool) -> None:
        """Exchanges, beyond the budget and back, and exchanges: within a share of the work, or while it helps."""
        share = POLISH_SHARE * self.effort[0] + POLISH_FREE
        self.exchange(share, PASSES)
        self.overshoot(0.0 if thorough else share)  # with many starts, plans that differ are worth more
        self.exchange(np.inf if thorough else share)
        while thorough and self.overshoot():
            self.exchange()

    def overshoot(self, allowed: float = 0.0) -> bool:
        """Grow beyond the budget, delete what is missed least, grow again; did that bring anything?

        Exchanges of the allowed effort come before the answer.
        """
        before, extra = self.work, elimination.beyond(self.work.factor.size[0])
        if self.stopped or extra == 0 or not grow.wants_more(self.data, before):
            return False
        self.work = new_work(self.data, len(before.factor.mass), before.left)
        copy_factor(before.factor, self.work.factor)
        aside = self.record, self.callback
        self.record, self.callback = Record(), None  # the way out and back is nobody's concern
        try:
            total = elimination.lift(self.work.left, extra)
            self.grow()
            elimination.lower(self.work.left, extra, total)
            self._shrink()
            self.grow()
            self.exchange(allowed, PASSES)
        except UnboundedError:
            self.work = before
        self.record, self.callback = aside
        trace = new_trace(len(self.work.factor.mass), len(before.factor.mass))
        better = elimination.is_better(self.work.factor, self.work.left, before.factor, self.data.wanted)
        if not (better and elimination.write_jump(before.factor, self.work.factor, trace)):
            self.work = before
            return False
        self._note(trace)
        return True

    def _shrink(self) -> None:
        """Delete what is missed least until the plan is within its budget."""
        room = len(self.work.factor.mass)
        trace, spread = new_trace(0, room), np.full(room, np.nan)
        while not elimination.shrink(self.data, self.work, trace, spread, self.effort, self.effort[0] + CHUNK):
            pass  # between two calls Ctrl-C works

    def reverse(self, full: Outcome) -> None:
        """Begin with what is left of a plan beyond the budget when what is missed least is deleted."""
        extra = len(full.mass)
        total = elimination.lift(self.work.left, extra)
        self.seed(pairs_of(full.rows, full.cols), full.mass)
        elimination.lower(self.work.left, extra, total)
        self._shrink()

    def exchange(self, allowed: float = np.inf, passes: float = np.inf) -> None:
        """Exchange entries until a pass changes nothing, or the allowed effort or passes are spent."""
        allowed += self.effort[0]
        accepted, spare = 1, None
        while accepted and passes > 0 and not self.stopped and self.effort[0] < allowed:
            passes -= accepted > 0
            self._enlarge(entries=accepted < 0)
            room = len(self.work.factor.mass)
            trace = _new_trace(room)
            if spare is None or len(spare.factor.mass) < room:
                spare = new_saved(room, self.work.left)
            limit = min(allowed, self.effort[0] + 10.0 * CHUNK)
            accepted = swaps.swap_pass(self.data, self.work, spare, trace, self.effort, limit)
            self._note(trace)

    def _advance(self, step: Callable[[Trace, float], int]) -> None:
        """Call a compiled step until it is done, with more room where it needs some; between two calls Ctrl-C works."""
        grow.start_afresh(self.work)
        while not self.stopped:
            room = len(self.work.factor.mass)
            trace = new_trace(1, room) if self.callback is not None else _new_trace(room)
            code = step(trace, self.effort[0] + CHUNK)
            self._note(trace)
            if code == NEEDS_ROOM:
                self._enlarge(entries=len(self.work.factor.mass) == self.work.factor.size[0])
            elif code == UNBOUNDED:
                raise UnboundedError
            elif code != PAUSED:
                return

    def outcome(self) -> Outcome:
        """The plan as it stands."""
        factor = self.work.factor
        size = int(factor.size[0])
        rows, cols, mass = factor.label[0, :size].copy(), factor.label[1, :size].copy(), factor.mass[:size].copy()
        return Outcome(rows, cols, mass, self._status(), self.start, self.record, True)

    def _status(self) -> Status:
        if self.stopped:
            return Status.STOPPED
        if not grow.wants_more(self.data, self.work):
            return Status.OPTIMAL
        return Status.LOCAL if grow.has_room(self.data, self.work) else Status.BUDGET_USED

    def _note(self, trace: Trace) -> None:
        """Move a trace to the record, and tell the callback."""
        if self.record.follow(trace, self.problem.constant, self.callback):
            self.stopped = True

    def _enlarge(self, *, entries: bool) -> None:
        """Twice the room for columns of lazy Gram matrices where few are left, and for entries if asked for."""
        gram_a, gram_b = (with_more_columns(gram, SPARE_COLUMNS) for gram in (self.data.gram_a, self.data.gram_b))
        self.data = self.data._replace(gram_a=gram_a, gram_b=gram_b)
        factor = self.work.factor
        if entries:
            room = 2 * len(factor.mass)
            larger = new_work(self.data, room, self.work.left)
            self.work = larger._replace(factor=enlarge(factor, room))


def _new_trace(room: int) -> Trace:
    """For as many steps as a plan with this room usually takes, and no more than are to pass without a look."""
    return new_trace(min(STEPS, 4 * room + 64), room)


def room_for(limits: Limits) -> int:
    """How many entries to make room for at first."""
    return min(limits.most + elimination.beyond(limits.most) + 1, 2 * (len(limits.rows) + len(limits.cols)), 1024)
