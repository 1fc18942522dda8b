"""Stochastic OMP, Algorithm 1 of the paper: the steepest of a random sample of pairs."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import _checks
from ..budgets import Pair
from .generic_greedy import View


@dataclass(frozen=True)
class StochasticOMP:
    """Take the steepest free pair of ``mn/K log(1/eps)`` pairs, drawn without replacement off the support.

    Parameters
    ----------
    eps : float
        How much of the guarantee the sampling may cost in expectation; between 0 and 1.
    """

    eps: float = 0.01
    exhaustive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0.0 < _checks.number("eps", self.eps, positive=True) < 1.0:
            raise ValueError(f"eps must be between 0 and 1, got {self.eps!r}")

    def select(self, view: View) -> Pair | None:
        """A free pair off the support, or None if there is none."""
        m, n = view.objective.shape
        taken = np.sort(view.rows * n + view.cols)
        left = m * n - len(taken)
        if left == 0 or view.budget == 0:
            return None
        wanted = min(math.ceil(m * n / view.budget * math.log(1.0 / self.eps)), left)
        drawn = view.rng.choice(left, wanted, replace=False, shuffle=False)
        drawn += np.searchsorted(taken - np.arange(len(taken)), drawn, side="right")  # skip the support
        rows, cols = np.divmod(drawn, n)
        allowed = view.is_free(rows, cols)
        gradient = np.where(allowed, view.gradient(rows, cols), np.inf)
        k = int(gradient.argmin())
        if gradient[k] < np.inf:
            return int(rows[k]), int(cols[k])
        best = view.best()  # the sample had no free pair; there may still be one
        return None if best is None else best[1]
