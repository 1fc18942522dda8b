"""Residual random rules for matroids: Algorithm 2 of the paper, and the rule of Chen et al. that it improves on.

Both take a best base of what the matroid still allows and pick one of its pairs uniformly at random. Algorithm 2 ranks
pairs by gradient, Chen et al. by marginal gain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._checks import Floats, Ints
from ..budgets import Limits, Pair
from .generic_greedy import View
from .greedy import marginal_gains


@dataclass(frozen=True)
class Residual:
    """Algorithm 2: a uniformly random pair of the base with the largest sum of ``max(0, -gradient)``."""

    exhaustive: ClassVar[bool] = False

    def select(self, view: View) -> Pair | None:
        """A free pair off the support, or None if there is none."""
        rows, cols, gradient = view.candidates()
        return _pick(view, best_base(view, rows, cols, np.maximum(-gradient, 0.0)))


@dataclass(frozen=True)
class ResidualGreedy:
    """Residual random greedy (Chen et al., 2018): as `Residual`, ranked by the exact marginal gains."""

    exhaustive: ClassVar[bool] = False

    def select(self, view: View) -> Pair | None:
        """A free pair off the support, or None if there is none."""
        rows, cols, _ = view.candidates()
        gain = np.zeros(view.objective.shape)
        gain_rows, gain_cols, values = marginal_gains(view)
        gain[gain_rows, gain_cols] = values
        return _pick(view, best_base(view, rows, cols, gain[rows, cols]))


def best_base(view: View, rows: Ints, cols: Ints, score: Floats) -> list[Pair]:
    """A maximal set that may be added to the support, with the largest total score: greedy is exact for matroids."""
    base: list[Pair] = []
    held = list(view.support)
    order = np.argsort(-score, kind="stable")
    if view.limits is None:
        for k in order:
            pair = int(rows[k]), int(cols[k])
            if view.matroid is None or view.matroid.can_add(held, pair):
                base.append(pair)
                held.append(pair)
        return base
    left, full = _Left(view.limits, view.support), view.limits.most - len(held)
    for i, j in zip(rows[order].tolist(), cols[order].tolist(), strict=True):
        if len(base) == full:
            break
        if left.take((i, j)):
            base.append((i, j))
    return base


class _Left:
    """Capacities that shrink as pairs are taken."""

    def __init__(self, limits: Limits, support: Sequence[Pair]) -> None:
        self.labels = limits.labels
        self.total, self.rows, self.cols = limits.total, limits.rows.tolist(), limits.cols.tolist()
        self.groups = limits.groups.tolist()
        for pair in support:
            self.take(pair)

    def take(self, pair: Pair) -> bool:
        """Take the pair if there is room for it."""
        i, j = pair
        groups = [g for g in self.labels[:, i, j].tolist() if g >= 0]
        if self.total <= 0 or self.rows[i] <= 0 or self.cols[j] <= 0 or any(self.groups[g] <= 0 for g in groups):
            return False
        self.total -= 1
        self.rows[i] -= 1
        self.cols[j] -= 1
        for g in groups:
            self.groups[g] -= 1
        return True


def _pick(view: View, base: list[Pair]) -> Pair | None:
    return base[int(view.rng.integers(len(base)))] if base else None
