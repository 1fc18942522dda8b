"""What solvers hand each other: links with their masses, why a search ended, and the record of its steps."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ._checks import Floats, Ints
from ._numba.borrowed import by_address
from ._numba.compiling import part
from ._progress import tell
from .budgets import Pair
from .path import Path
from .status import Status

_Plan = TypeVar("_Plan")


class Step(NamedTuple):
    """What one step did, as a callback sees it."""

    number: int
    pair: Pair
    objective: float
    entries: int


Callback = Callable[[Step], object]


@by_address
class Trace(NamedTuple):
    """What a call did, step by step: the pair added, the gain reached, the entries left, the pairs that went."""

    added: Ints  # (2, steps)
    gain: Floats  # (steps,)
    entries: Ints  # (steps,)
    gone: Ints  # (2, departures)
    gone_until: Ints  # (steps,) departures up to and with this step
    steps: Ints  # (2,) steps, departures


@part
def new_trace(steps: int, capacity: int) -> Trace:
    """Room for ``steps`` additions. Every departure follows an addition or one of ``capacity`` entries at the start."""
    return Trace(
        np.zeros((2, steps), np.int64),
        np.zeros(steps),
        np.zeros(steps, np.int64),
        np.zeros((2, steps + capacity), np.int64),
        np.zeros(steps, np.int64),
        np.zeros(2, np.int64),
    )


class Record:
    """The steps of a solve: the pair added, the objective and the number of entries after it, the pairs that left."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, Floats, Ints, Ints, Ints]] = []
        self._steps = self._departures = 0

    def __len__(self) -> int:
        return self._steps

    def extend(self, pairs: Ints, objective: Floats, entries: Ints, gone: Ints, gone_until: Ints) -> None:
        """Write steps down; ``gone_until[k]`` of the pairs in ``gone`` had left after step ``k`` of these."""
        self._parts.append((pairs, objective, entries, gone, gone_until + self._departures))
        self._steps += len(objective)
        self._departures += len(gone)
        if len(objective):
            tell(plan=f"{entries[-1]} links, objective {objective[-1]:.6g}")

    def add(self, pair: Pair, objective: float, entries: int, gone: Sequence[Pair]) -> Step:
        """Write one step down."""
        lost = np.array(gone, np.int64).reshape(-1, 2)
        self.extend(np.array([pair]), np.array([objective]), np.array([entries]), lost, np.array([len(lost)]))
        return Step(self._steps - 1, pair, objective, entries)

    def follow(self, trace: Trace, constant: float, callback: Callback | None) -> bool:
        """Write the steps of a compiled function down, and tell the callback of each: True if it says stop."""
        steps, departures = (int(count) for count in trace.steps)
        objective = constant - trace.gain[:steps]
        self.extend(
            trace.added[:, :steps].T,
            objective,
            trace.entries[:steps],
            trace.gone[:, :departures].T,
            trace.gone_until[:steps],
        )
        if callback is None:
            return False
        for k in range(steps):
            pair = int(trace.added[0, k]), int(trace.added[1, k])
            if callback(Step(self._steps - steps + k, pair, float(objective[k]), int(trace.entries[k]))):
                return True
        return False

    def jump(self, before: "Outcome", after: "Outcome", objective: float, callback: Callback | None = None) -> bool:
        """One plan became another: a step for every new pair, the rest with the last; True if the callback says stop.

        Where no pair is new, the last one that stays stands for the step.
        """
        pairs = [np.column_stack([each.rows, each.cols]) for each in (before, after)]
        width = 1 + max(each[:, 1].max(initial=0) for each in pairs)
        old, new = (each[:, 0] * width + each[:, 1] for each in pairs)
        added, gone = pairs[1][~np.isin(new, old)], pairs[0][~np.isin(old, new)]
        added = added if len(added) else pairs[1][-1:]
        until = np.zeros(len(added), np.int64)
        until[-1:] = len(gone)
        self.extend(added, np.full(len(added), objective), np.full(len(added), len(new)), gone, until)
        if callback is None or not len(added):
            return False
        return bool(callback(Step(self._steps - 1, (int(added[-1, 0]), int(added[-1, 1])), objective, len(new))))

    def _concatenated(self) -> list[Any]:
        empty = np.zeros((0, 2), np.int64)
        nothing = (empty, np.zeros(0), np.zeros(0, np.int64), empty, np.zeros(0, np.int64))
        return [np.concatenate(part) for part in zip(nothing, *self._parts, strict=True)]

    def path(self, start: tuple[Pair, ...], restrict: Callable[[Ints, Ints, int], _Plan]) -> Path[_Plan]:
        """The steps as a result shows them."""
        pairs, objective, entries, gone, gone_until = self._concatenated()
        return Path(pairs, objective, entries, gone, gone_until, start, restrict)


class Outcome(NamedTuple):
    """A support with its masses, why the loop ended, the support it began with, and how it got there."""

    rows: Ints
    cols: Ints
    mass: Floats
    status: Status
    start: tuple[Pair, ...]
    record: Record
    converged: bool


def nothing() -> tuple[Ints, Ints, Floats]:
    """Rows, columns and masses of the empty plan."""
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)


def as_arrays(support: Sequence[Pair]) -> tuple[Ints, Ints]:
    """Rows and columns of a list of pairs."""
    rows, cols = np.array(support, np.int64).reshape(-1, 2).T.copy()
    return rows, cols
