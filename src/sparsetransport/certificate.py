"""Proofs of quality: lower bounds, and how far above them a plan is."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .result import Result

CHEAP, TIGHT, LONG = range(3)  # bounds, by what they cost
PROVEN = 1e-9  # of a relative gap: no plan is better by more than rounding
_NOTHING = 1e-12


class Gap(ABC):
    """The gap between an objective and its lower bound."""

    @abstractmethod
    def _bounds(self) -> tuple[float, float, float]:
        """The objective, its lower bound, and the objective of the empty plan."""

    @property
    def gap(self) -> float:
        """The objective minus its lower bound: no plan within the budget is better by more than this."""
        value, lower_bound, _ = self._bounds()
        return value - lower_bound if value < np.inf else np.inf

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective.

        An objective below 1e-12 times that of the empty plan is zero up to rounding; the gap is then divided by this
        threshold instead.
        """
        value, lower_bound, empty = self._bounds()
        if value == np.inf:
            return np.inf
        whole = max(abs(value), _NOTHING * abs(empty))
        return (value - lower_bound) / whole if whole else value - lower_bound


class BoundRecord(NamedTuple):
    """One lower bound that was computed: its name, its value and how long it took."""

    name: str
    value: float
    seconds: float


@dataclass(frozen=True, repr=False, eq=False)
class Certificate(Gap):
    """A proof of quality: no plan within the budget has an objective below ``lower_bound``.

    ``log`` has the bounds that were computed, each a `BoundRecord`. The dual point of the best one named "dual" is
    ``potential_a = 2 λ_a G_a u`` and ``potential_b = 2 λ_b G_b v``; anybody can recompute that bound from it.
    ``better`` is a better plan within the budget, if a bound has found one on the way, else None.
    """

    value: float
    lower_bound: float
    potential_a: Any
    potential_b: Any
    u: Any
    v: Any
    _constant: float  # the objective of the empty plan
    log: tuple[BoundRecord, ...] = ()
    better: "Result | None" = None

    def __repr__(self) -> str:
        return (
            f"Certificate(value={self.value:.6g}, lower_bound={self.lower_bound:.6g}, "
            f"relative_gap={self.relative_gap:.2g})"
        )

    def _bounds(self) -> tuple[float, float, float]:
        return self.value, self.lower_bound, self._constant
