"""What every solver does around its compiled functions: record, callbacks, interrupts, room in the arrays."""

import time
from collections.abc import Callable

import numpy as np

from .._numba.codes import NEEDS_ROOM, PAUSED, UNBOUNDED
from ..budgets import Pair
from ..inner.solvers import UnboundedError
from ..plan import Callback, Outcome, Record, Trace, new_trace
from ..problem import Problem
from .room import Constraint

OPERATIONS = 2e8  # between two looks at the keyboard
STEPS = 4096  # steps between two looks


class Shell:
    """The state that solvers have in common; between two calls of compiled functions Ctrl-C works."""

    def __init__(self, constraint: Constraint, constant: float, callback: Callback | None) -> None:
        self.constraint, self.constant, self.callback = constraint, constant, callback
        self.record, self.start, self.stopped = Record(), tuple[Pair, ...](), False
        self.deadline = np.inf  # of `time.monotonic`, after which the solver stops
        self.effort = np.zeros(1)  # operations so far
        self.room = constraint.room()
        self.oracle = constraint.attach(self.room, self.support)

    def support(self) -> list[Pair]:
        """The pairs of the plan as it stands."""
        raise NotImplementedError

    def advance(self, step: Callable[[Trace, float], int], entries: int) -> int:
        """Call a compiled function until it is done, with more room where it needs some: the code it ended with."""
        while not self.stopped:
            trace = new_trace(1 if self.callback is not None else min(STEPS, 4 * entries + 64), entries)
            code = step(trace, self.effort[0] + OPERATIONS)
            self.note(trace)
            if code == NEEDS_ROOM:
                entries = self.enlarge()
            elif code == UNBOUNDED:
                raise UnboundedError
            elif code != PAUSED:
                return code
        return PAUSED

    def note(self, trace: Trace) -> None:
        """Move steps to the record, tell the callback, and raise what the budget's own function has raised."""
        self.raise_errors()
        if self.record.follow(trace, self.constant, self.callback) or time.monotonic() > self.deadline:
            self.stopped = True

    def raise_errors(self) -> None:
        """Raise what a budget of the user's own has raised, Ctrl-C included."""
        if self.oracle is not None:
            self.oracle.raise_error()

    def enlarge(self) -> int:
        """Make more room where it has run out: for how many entries there is room now."""
        raise NotImplementedError


def better(problem: Problem, first: Outcome, second: Outcome) -> Outcome:
    """The second plan as where the first one led, if it is better."""
    before, after = (problem.value(each.rows, each.cols, each.mass) for each in (first, second))
    return jumped(problem, first, second) if after < before - 1e-12 * abs(before) else first


def jumped(problem: Problem, before: Outcome, after: Outcome) -> Outcome:
    """The second plan as where the first one led."""
    before.record.jump(before, after, problem.value(after.rows, after.cols, after.mass))
    return after._replace(start=before.start, record=before.record)
