"""Orthogonal matching pursuit: the pair with the steepest gradient (appendix of the paper; any matroid)."""

from dataclasses import dataclass
from typing import ClassVar

from ..budgets import Pair
from .generic_greedy import View


@dataclass(frozen=True)
class OMP:
    """Take the free pair whose gradient is the most negative."""

    exhaustive: ClassVar[bool] = True

    def select(self, view: View) -> Pair | None:
        """A free pair off the support, or None if there is none."""
        best = view.best()
        return None if best is None else best[1]
