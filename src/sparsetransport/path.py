"""The steps of a solve, and the plans that it passed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

import numpy as np

from . import _checks
from ._checks import Floats, Ints

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from .result import Result

    Plan = TypeVar("Plan", default=Result)
else:  # Python's own knows defaults from 3.13 on
    from typing import TypeVar

    Plan = TypeVar("Plan")


@dataclass(frozen=True, repr=False, eq=False)
class Path(Generic[Plan]):
    """The steps of a solve.

    ``objective[k]`` and ``entries[k]`` are the objective and the number of entries after step ``k``, which added the
    pair ``pairs[k]``. The steps of the improvers, which exchange entries, come last. Of pairs that enter together, each
    has the objective and the number of entries after the last one.
    """

    pairs: Ints  # (steps, 2)
    objective: Floats
    entries: Ints
    gone: Ints  # (departures, 2)
    gone_until: Ints  # (steps,)
    start: tuple[tuple[int, int], ...]
    _restrict: Callable[[Ints, Ints, int], Plan]

    def __repr__(self) -> str:
        if not len(self):
            return "Path(0 steps)"
        span = f"{self.objective[0]:.4g} to {self.objective[-1]:.4g}"
        return f"Path({len(self)} steps to {self.entries[-1]} entries, objective from {span})"

    def __len__(self) -> int:
        return len(self.objective)

    def support_at(self, entries: int) -> list[tuple[int, int]]:
        """The pairs in use at the step with the lowest objective among those with at most ``entries`` entries."""
        entries = _checks.count("entries", entries)
        within = np.flatnonzero(self.entries <= entries)
        if not within.size:
            return list(self.start) if len(self.start) <= entries else []
        last = int(within[::-1][self.objective[within[::-1]].argmin()])  # of steps that were made together, the last
        support = dict.fromkeys(self.start)
        first = 0
        for pair, until in zip(self.pairs[: last + 1].tolist(), self.gone_until.tolist(), strict=False):
            support[pair[0], pair[1]] = None
            for lost in self.gone[first:until].tolist():
                support.pop((lost[0], lost[1]), None)
            first = until
        return list(support)

    def plan_at(self, entries: int) -> Plan:
        """The best plan on the path with at most ``entries`` entries, solved exactly on its support."""
        entries = _checks.count("entries", entries)
        support = np.array(self.support_at(entries), np.int64).reshape(-1, 2)
        return self._restrict(support[:, 0], support[:, 1], entries)
