"""Orthogonal matching pursuit for one problem and one budget: grow, swap, eliminate."""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from .._checks import Floats, Ints
from .._numba.callback import Callback as ByAddress
from ..budgets import Limits, Pair, pairs_of
from ..effort import Tuning
from ..inner.active_set import copy_factor, enlarge, gain
from ..inner.solvers import EXACT, UnboundedError
from ..plan import Callback, Outcome, Record, as_arrays, new_trace
from ..problem import Problem
from ..result import Status
from . import elimination, grow, swaps
from .pricer import ColumnPricer
from .room import CHANGES, Constraint, excess, fits, forget_refusals
from .shell import OPERATIONS, STEPS, Shell
from .state import Data, Saved, Work, new_saved, new_work, with_more_columns

_ENTRIES = 1024  # that arrays have room for at first, at the most
_NONE = np.zeros(0, np.int64)
_SPARE_COLUMNS = 128  # of a lazy Gram matrix: swaps look at pairs in new rows and columns
_SOUND = 1e-9  # a pivot below this share of the diagonal is left to the one-by-one way, which tells what depends


class OMPSolver(Shell):
    """One problem with one budget, and the state of its solve."""

    def __init__(
        self,
        problem: Problem,
        constraint: Constraint,
        tuning: Tuning,
        *,
        listed: bool = False,
        tol: float = EXACT,
        callback: Callback | None = None,
    ) -> None:
        super().__init__(constraint, problem.constant, callback)
        self.problem, self.tol, self.tuning = problem, tol, tuning
        weight_a, weight_b = problem.unbalanced
        r, c = problem.base
        self.pricer = self._pricer() if listed else None
        entries, cost = first_entries(constraint.limits, constraint.limits.most), problem.cost.compiled
        self.data = Data(
            cost if listed else cost._replace(matrix=cost.matrix.copy()),
            problem.gram_a.compiled(2.0 * weight_a, entries + _SPARE_COLUMNS),
            problem.gram_b.compiled(2.0 * weight_b, entries + _SPARE_COLUMNS),
            r,
            c,
            problem.reg,
            tol * problem.scale,
            problem.constant,
            float(problem.a.sum() + problem.b.sum()),
            listed,
            tuning,
            np.array(problem.counted_shape),
            0 if self.pricer is None else self.pricer.address,
        )
        self.work = new_work(self.data, entries, self.room)
        self.room = self.work.room

    def _pricer(self) -> ByAddress | None:
        """A function that compiled functions call to price columns; None where they scan all pairs."""
        (m, n), pricing, mine = self.problem.shape, self.problem.pricing, weakref.ref(self)
        if m * n < self.tuning.priced_above or not pricing.is_short:
            return None
        find = ColumnPricer(pricing, self.tol * self.problem.scale)

        def price(depth: int, counted: int) -> bool:
            solver = mine()  # a reference would keep it, and its arrays, alive
            assert solver is not None, "one of its functions is calling"
            find(solver.work, depth, bool(counted))
            return True

        return ByAddress(price)

    def raise_errors(self) -> None:
        """Raise what a budget of the user's own has raised, or pricing, Ctrl-C included."""
        super().raise_errors()
        if self.pricer is not None:
            self.pricer.raise_error()

    def support(self) -> list[Pair]:
        """The pairs of the plan as it stands."""
        return pairs_of(*self.work.factor.label[:, : self.size])

    @property
    def size(self) -> int:
        """How many entries the plan has."""
        return int(self.work.factor.size[0])

    @property
    def gain(self) -> float:
        """By how much the plan lowers the objective of the empty one."""
        return float(gain(self.work.factor))

    def seed(self, pairs: Sequence[Pair], mass: Floats | None = None) -> None:
        """Begin with those of the pairs that help: all at once from their masses if these are known, then one by one.

        Masses of a nearby problem save most of the way: few entries turn negative.
        """
        if not pairs:
            return
        rows, cols = as_arrays(pairs)
        if mass is not None and len(mass):
            self._place(rows, cols, mass)
        ordinary, before = self.work.listed, -1.0
        while before < self.gain and not self.stopped:  # an entry that has left may come back
            before = self.gain
            inside = set(self.support())
            rest = [pair for pair in pairs if pair not in inside]
            if rest:
                self.work = self.work._replace(listed=np.ascontiguousarray(np.array(rest, np.int64).T))
                self.work.list_state[:] = len(rest), 0.0, 0.0, 1.0
                self.grow()
        self.work.list_state[:] = 0.0
        self.work = self.work._replace(listed=ordinary)

    def _place(self, rows: Ints, cols: Ints, mass: Floats) -> None:
        """Put all pairs into the empty plan at once, if the budget has room for them and none depends on others."""
        m, n = self.problem.shape
        too_many = len(rows) > (m + n if self.problem.reg == 0.0 else self.data.tuning.placed)
        if too_many or not fits(self.room, rows, cols) or not self._is_allowed(rows, cols):
            return
        if not np.isfinite(self.problem.cost.entries(rows, cols)).all():
            return
        hessian = self.problem.hessian(rows, cols, rows, cols)
        try:
            lower = np.linalg.cholesky(hessian)
        except np.linalg.LinAlgError:
            return
        if (np.diagonal(lower) ** 2 <= _SOUND * np.diagonal(hessian)).any():
            return
        while len(rows) > len(self.work.factor.mass):
            self._enlarge(entries=True)
        self._fetch(rows, cols)
        slopes = self.problem.slope(rows, cols)
        grow.place(self.data, self.work, rows, cols, mass, np.asarray(lower, np.float64), slopes)
        self.start = tuple(self.support())
        self.effort[0] += len(rows) ** 3 / 3.0

    def _is_allowed(self, rows: Ints, cols: Ints) -> bool:
        """True if a budget that is asked allows all of the pairs together."""
        matroid, pairs = self.constraint.oracle, pairs_of(rows, cols)
        return matroid is None or all(matroid.can_add(pairs[:k], pair) for k, pair in enumerate(pairs))

    def restart(self) -> None:
        """Go back to the empty plan, and forget the steps."""
        self.record = Record()
        self.room = self.constraint.room()
        self.oracle = self.constraint.attach(self.room, self.support)
        self._take(new_work(self.data, len(self.work.factor.mass), self.room))

    def grow(self, entries: int | None = None) -> bool:
        """Add pairs until nothing helps, nothing is free, or the plan has so many entries: True if the last it was."""
        held = 0 if entries is None else max(int(self.room.left[0]) - max(entries - self.size, 0), 0)
        self.room.left[0] -= held
        grow.start_afresh(self.work)
        self.advance(
            lambda trace, limit: grow.grow(self.data, self.work, trace, self.effort, limit), len(self.work.factor.mass)
        )
        is_cut = held > 0 and self.room.left[0] <= 0
        self.room.left[0] += held
        matroid = self.constraint.oracle if self.room.oracle[0] else None
        if matroid is not None and matroid.is_matroid and self._status() is Status.BUDGET_USED:
            self.room.left[0] = 0  # all maximal plans have as many entries: exchanges need not ask for room beyond
        return is_cut and not self.stopped

    def swap(self, allowed: float = np.inf, passes: float = np.inf) -> None:
        """Exchange entries until a pass changes nothing, or the allowed operations or passes are spent."""
        allowed += self.effort[0]
        accepted, spare = 1, None
        while accepted and passes > 0 and not self.stopped and self.effort[0] < allowed:
            passes -= accepted > 0
            self._enlarge(entries=accepted < 0)
            spare = self._spare(spare)
            room = len(self.work.factor.mass)
            trace = new_trace(min(STEPS, 4 * room + 64), room)
            limit = min(allowed, self.effort[0] + 10.0 * OPERATIONS)
            accepted = swaps.swap_pass(self.data, self.work, spare, trace, self.effort, limit)
            self.note(trace)

    def _spare(self, spare: Saved | None) -> Saved:
        room = len(self.work.factor.mass)
        return new_saved(room, self.room.left) if spare is None or len(spare.factor.mass) < room else spare

    def eliminate(self, extra: int, allowed: float = 0.0, passes: float = np.inf) -> bool:
        """Grow beyond the budget, delete what is missed least, grow again: True if that lowered the objective.

        Swaps with the allowed operations come before the answer.
        """
        before = self.work
        if self.constraint.oracle is not None:  # which is asked about every entry, again and again
            extra = min(extra, self.size)
        if self.stopped or not self.size or not grow.wants_more(self.data, before):
            return False
        self.work = new_work(self.data, len(before.factor.mass), before.room)
        self.room = self.work.room
        copy_factor(before.factor, self.work.factor)
        aside = self.record, self.callback
        self.record, self.callback = Record(), None  # the way out and back is nobody's concern
        try:
            self._beyond(extra)
            self.grow()
            self.swap(allowed, passes)
        except UnboundedError:
            self._take(before)
        self.record, self.callback = aside
        trace = new_trace(len(self.work.factor.mass), len(before.factor.mass))
        is_better = elimination.is_better(self.work.factor, self.room, before.factor, self.data.wanted)
        if not (is_better and elimination.write_jump(before.factor, self.work.factor, trace)):
            self._take(before)
            return False
        self.note(trace)
        return True

    def _take(self, work: Work) -> None:
        self.work, self.room = work, work.room
        self.room.notes[CHANGES] += 1
        forget_refusals(self.room)
        self._fetch(*work.factor.label[:, : self.size].copy())

    def _fetch(self, rows: Ints, cols: Ints) -> None:
        """Make sure that the Gram columns of these pairs are there."""
        while not grow.fetch_all(self.data, rows, cols):
            self._enlarge(rows, cols, entries=False)

    def _beyond(self, extra: int) -> None:
        """Grow by so many entries beyond the budget, and come back to it."""
        with self._lifted(extra):
            self.grow()
        self._shrink()

    @contextmanager
    def _lifted(self, extra: int) -> Iterator[None]:
        """Let so many more entries in, anywhere, while this lasts."""
        forget_refusals(self.room)
        address, self.room.oracle[0] = int(self.room.oracle[0]), 0
        total = elimination.lift(self.room, extra)
        try:
            yield
        finally:
            elimination.lower(self.room, extra, total)
            self.room.oracle[0] = address

    def _shrink(self) -> None:
        """Delete what is missed least until the plan is within its budget."""
        room = len(self.work.factor.mass)
        trace, spread = new_trace(0, room), np.full(room, np.nan)
        matroid = self.constraint.oracle
        if matroid is None:
            while not elimination.shrink(self.data, self.work, trace, spread, self.effort, self.effort[0] + OPERATIONS):
                pass  # between two calls Ctrl-C works
            return
        while spare := excess(matroid, self.support(), elimination.losses(self.work)):
            first = np.array(spare[: -(-len(spare) // self.data.tuning.given_up)])  # after which losses are others
            rows, cols = self.work.factor.label[:, first].copy()
            elimination.discard(self.work, new_trace(0, 2 * room), rows, cols)

    def eliminate_from(self, pairs: Sequence[Pair], mass: Floats) -> None:
        """Begin with what is left of a plan beyond the budget when what is missed least is deleted."""
        with self._lifted(len(mass)):
            self.seed(pairs, mass)
        self._shrink()

    def outcome(self) -> Outcome:
        """The plan as it stands."""
        factor, size = self.work.factor, self.size
        rows, cols, mass = factor.label[0, :size].copy(), factor.label[1, :size].copy(), factor.mass[:size].copy()
        status = self._status()
        self.raise_errors()
        return Outcome(rows, cols, mass, status, self.start, self.record, True)

    def _status(self) -> Status:
        if self.stopped:
            return Status.STOPPED
        if not grow.wants_more(self.data, self.work):
            return Status.OPTIMAL
        return Status.LOCAL if grow.has_room(self.data, self.work) else Status.BUDGET_USED

    def enlarge(self) -> int:
        """Make more room where it has run out: for how many entries there is room now."""
        self._enlarge(entries=len(self.work.factor.mass) == self.size)
        return len(self.work.factor.mass)

    def _enlarge(self, rows: Ints = _NONE, cols: Ints = _NONE, *, entries: bool) -> None:
        """More room for columns of lazy Gram matrices where little is left, and for entries if asked for.

        Columns of the plan and of these pairs are kept.
        """
        label = self.work.factor.label[:, : self.size]
        gram_a, gram_b = (
            with_more_columns(gram, _SPARE_COLUMNS, np.append(inside, more))
            for gram, inside, more in zip((self.data.gram_a, self.data.gram_b), label, (rows, cols), strict=True)
        )
        self.data = self.data._replace(gram_a=gram_a, gram_b=gram_b)
        if entries:
            room, old = 2 * len(self.work.factor.mass), self.work
            larger = new_work(self.data, room, old.room)
            self._take(larger._replace(factor=enlarge(old.factor, room), listed=old.listed, list_state=old.list_state))


def first_entries(limits: Limits, extra: int) -> int:
    """How many entries to make room for at first, if a plan may have so many beyond its budget on the way."""
    return min(limits.most + extra + 1, 2 * (len(limits.rows) + len(limits.cols)), _ENTRIES)
