"""Drives the compiled loop: room for the state, pauses for Ctrl-C and callbacks, swaps, and the reverse greedy."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats
from .._jit import kernel
from ..geometry._entries import DENSE, Gram, Ints
from ..inner.active_set import enlarge
from ..inner.solvers import UnboundedError
from ..matroids import Limits, Pair, no_limits
from ..problem import Problem
from ..result import Status
from . import capacity, compiled, swaps
from .loop import Callback, Outcome, Record, Step, as_arrays
from .state import Data, Trace, new_trace, new_work

CHUNK = 2e8  # operations between two looks at the keyboard
STEPS = 4096  # steps between two looks
POOL_FROM = 250_000  # pairs; smaller plans are scanned at every step
SPARE_COLUMNS = 256  # of a lazy Gram matrix: the swaps look at pairs in new rows and columns
PLACE_UP_TO = 8192  # pairs of a start that are factorised at once
_SOUND = 1e-9  # a pivot below this share of the diagonal is left to the one-by-one way, which tells what depends
POLISH_SHARE = 4.0  # operations of the polish for one of the building, unless a gap is asked for,
POLISH_FREE = 2e6  # and so many on top


class Engine:
    """One problem with one counting budget, and the state of its solve."""

    def __init__(
        self, problem: Problem, limits: Limits | None = None, *, tol: float = 1e-13, callback: Callback | None = None
    ) -> None:
        self.problem = problem
        self.limits = no_limits(problem.shape) if limits is None else limits
        self.callback = callback
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
            self.limits.labels,
            pooled,
        )
        self.work = new_work(self.data, room, self.limits.flat)

    def seed(self, pairs: Sequence[Pair], mass: Floats | None = None) -> None:
        """Begin with those of the pairs that help: all at once from their masses if these are known, then one by one.

        Masses of a nearby problem save most of the way: few entries turn negative.
        """
        rows, cols = as_arrays(pairs)
        if mass is not None and len(mass):
            self._place(rows, cols, mass)
        self._advance(
            lambda trace, limit: compiled.grow_within(self.data, self.work, trace, self.effort, limit, rows, cols)
        )

    def _place(self, rows: Ints, cols: Ints, mass: Floats) -> None:
        """Put all pairs into the empty plan at once, if the budget has room for them and none depends on others."""
        m, n = self.problem.shape
        used = capacity.used_capacity(rows, cols, self.limits.labels, len(self.limits.groups))
        too_many = len(rows) > (m + n if self.problem.reg == 0.0 else PLACE_UP_TO)
        if too_many or (used > self.limits.flat).any() or not np.isfinite(self.problem.cost.entries(rows, cols)).all():
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
        while not compiled.fetch_all(self.data, rows, cols):
            self._enlarge(entries=False)
        slopes = self.problem.slope(rows, cols)
        compiled.place(self.data, self.work, rows, cols, mass, np.asarray(lower, np.float64), slopes)
        factor, size = self.work.factor, int(self.work.factor.size[0])
        self.start = tuple(zip(factor.label[0, :size].tolist(), factor.label[1, :size].tolist(), strict=True))
        self.effort[0] += len(rows) ** 3 / 3.0

    def grow(self) -> Status:
        """Add pairs until nothing helps or nothing is free."""
        code = self._advance(lambda trace, limit: compiled.grow(self.data, self.work, trace, self.effort, limit))
        if self.stopped:
            return Status.STOPPED
        return Status.BUDGET_USED if code == compiled.FULL else Status.LOCAL

    def polish(self, *, thorough: bool) -> None:
        """Exchange entries until a pass changes nothing; within a share of the work so far unless ``thorough``."""
        allowed = np.inf if thorough else self.effort[0] * (1.0 + POLISH_SHARE) + POLISH_FREE
        accepted, spare = 1, None
        while accepted and not self.stopped and self.effort[0] < allowed:
            self._enlarge(entries=accepted < 0)
            room = len(self.work.factor.mass)
            trace = _new_trace(room)
            if spare is None or len(spare.factor.mass) < room:
                spare = new_work(self.data, room, self.work.left)
            limit = min(allowed, self.effort[0] + 10.0 * CHUNK)
            accepted = swaps.swap_pass(self.data, self.work, spare, trace, self.effort, limit)
            self._note(trace)

    def _advance(self, step: Callable[[Trace, float], int]) -> int:
        """Call a compiled step until it is done, with more room where it needs some; between two calls Ctrl-C works."""
        compiled.start_afresh(self.work)
        while not self.stopped:
            room = len(self.work.factor.mass)
            trace = new_trace(1, room) if self.callback is not None else _new_trace(room)
            code = step(trace, self.effort[0] + CHUNK)
            self._note(trace)
            if code == compiled.NEEDS_ROOM:
                self._enlarge(entries=len(self.work.factor.mass) == self.work.factor.size[0])
            elif code == compiled.UNBOUNDED:
                raise UnboundedError
            elif code != compiled.PAUSED:
                return code
        return compiled.PAUSED

    def outcome(self, status: Status) -> Outcome:
        """The plan as it stands."""
        factor = self.work.factor
        size = int(factor.size[0])
        if status in (Status.LOCAL, Status.BUDGET_USED) and not compiled.wants_more(self.data, self.work):
            status = Status.OPTIMAL
        rows, cols, mass = factor.label[0, :size].copy(), factor.label[1, :size].copy(), factor.mass[:size].copy()
        return Outcome(rows, cols, mass, status, self.start, self.record, True)

    def _note(self, trace: Trace) -> None:
        """Move a trace to the record, and tell the callback."""
        steps, departures = trace.steps
        objective = self.problem.constant - trace.gain[:steps]
        self.record.extend(
            trace.added[:, :steps].T,
            objective,
            trace.entries[:steps],
            trace.gone[:, :departures].T,
            trace.gone_until[:steps],
        )
        if self.callback is not None:
            for k in range(steps):
                pair = int(trace.added[0, k]), int(trace.added[1, k])
                step = Step(len(self.record) - int(steps) + k, pair, float(objective[k]), int(trace.entries[k]))
                if self.callback(step):
                    self.stopped = True
                    break

    def _enlarge(self, *, entries: bool) -> None:
        """Twice the room for columns of lazy Gram matrices where few are left, and for entries if asked for."""
        self.data = self.data._replace(gram_a=_enlarge_gram(self.data.gram_a), gram_b=_enlarge_gram(self.data.gram_b))
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
    return min(limits.most + 1, 2 * (len(limits.rows) + len(limits.cols)), 1024)


def _enlarge_gram(gram: Gram) -> Gram:
    slots, size = gram.columns.shape
    if gram.kind <= DENSE or gram.slot[-1] + SPARE_COLUMNS <= slots or slots == size:
        return gram
    columns = np.empty((min(2 * slots + SPARE_COLUMNS, size), size))
    columns[:slots] = gram.columns
    return gram._replace(columns=columns)


def reverse_support(problem: Problem, limits: Limits, full: Outcome) -> list[Pair]:
    """A support within the limits by deleting from the plan without a budget what is missed least.

    Deleting entry ``t`` raises the objective by ``x_t^2 / (2 M_tt)`` with ``M = H^-1`` on the support; ``M`` is
    downdated after each deletion. OMP commits early where the budget is tight, and swaps cannot repair that; this
    can.
    """
    inverse = _inverse(problem.hessian(full.rows, full.cols, full.rows, full.cols))
    used = capacity.used_capacity(full.rows, full.cols, limits.labels, len(limits.groups))
    kept, size, mass, left = np.arange(len(full.mass)), np.array([len(full.mass)]), full.mass.copy(), limits.flat - used
    while not _shrink(inverse, mass, full.rows, full.cols, left, limits.labels, kept, size, CHUNK):
        pass  # between two calls Ctrl-C works
    return [(int(full.rows[k]), int(full.cols[k])) for k in kept[: size[0]]]


def _inverse(hessian: Floats) -> Floats:
    """The inverse, some columns at a time so that Ctrl-C works; the pseudo-inverse if rows depend on others."""
    from scipy.linalg import cho_solve

    try:
        lower = np.linalg.cholesky(hessian)
    except np.linalg.LinAlgError:
        lower = np.zeros_like(hessian)
    if (np.diagonal(lower) ** 2 <= _SOUND * np.diagonal(hessian)).any():
        return np.asarray(np.linalg.pinv(hessian, hermitian=True), np.float64)
    size = len(hessian)
    width = max(int(CHUNK / max(size, 1) ** 2), 1)
    inverse = np.empty_like(hessian)
    for first in range(0, size, width):
        unit = np.eye(size, min(width, size - first), -first)
        inverse[:, first : first + width] = cho_solve((lower, True), unit, check_finite=False)
    return inverse


@kernel
def _shrink(
    inverse: Floats,
    mass: Floats,
    rows: Ints,
    cols: Ints,
    left: Ints,
    labels: NDArray[np.int32],
    kept: Ints,
    size: Ints,
    limit: float,
) -> bool:
    """Delete entries, the least missed first, until no capacity is below zero (True) or the limit is reached (False).

    ``kept[: size[0]]`` are the positions that stay; ``limit`` is in operations.
    """
    effort = 0.0
    while effort <= limit:
        count = size[0]
        least, position = np.inf, -1
        for k in range(count):
            t = kept[k]
            if mass[t] > 0.0 and not capacity.is_over(left, labels, rows[t], cols[t]):
                continue
            loss = mass[t] * abs(mass[t]) / inverse[t, t]  # entries that turned negative go first
            if loss < least:
                least, position = loss, k
        if position < 0:
            return True
        t = kept[position]
        capacity.count(left, labels, rows[t], cols[t], 1)
        count -= 1
        kept[position] = kept[count]
        size[0] = count
        share = mass[t] / inverse[t, t]
        for k in range(count):
            mass[kept[k]] -= inverse[kept[k], t] * share
        for k in range(count):
            i = kept[k]
            factor = inverse[i, t] / inverse[t, t]
            for h in range(count):
                inverse[i, kept[h]] -= factor * inverse[t, kept[h]]
        effort += 2.0 * count * count
    return False
