"""Residual random rules for matroids: Algorithm 2 of the paper, and the rule of Chen et al. that it improves on.

Both take a best base of what the matroid still allows and pick one of its pairs uniformly at random. Algorithm 2 ranks
pairs by gradient, Chen et al. by marginal gain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..matroids import Limits, Pair
from .greedy import marginal_gains
from .loop import Floats, Ints, View


@dataclass(frozen=True)
class Residual:
    """Algorithm 2: a uniformly random pair of the base with the largest sum of ``max(0, -gradient)``.

    For a budget per column, per row or per group the base is the top of every group, so it is enough to draw a group with
    probability proportional to its free places and then one pair of its top: one group's gradients a step and the same
    distribution. Any other matroid is asked pair by pair.

    Parameters
    ----------
    oracle : bool
        Always ask pair by pair.
    """

    oracle: bool = False
    exhaustive: ClassVar[bool] = False

    def select(self, view: View) -> Pair | None:
        """A free pair off the support, or None if there is none."""
        groups = None if self.oracle or view.limits is None else _partition(view.limits, view)
        if groups is not None:
            return _draw(view, groups)
        rows, cols, gradient = view.candidates()
        return _pick(view, best_base(view, rows, cols, np.maximum(-gradient, 0.0)))


@dataclass(frozen=True)
class ResidualGreedy:
    """Residual random greedy (Chen et al., 2018): as `Residual`, ranked by the exact marginal gains."""

    exhaustive: ClassVar[bool] = False

    def select(self, view: View) -> Pair | None:
        """A free pair off the support, or None if there is none."""
        rows, cols, gradient = view.candidates()
        gain = np.zeros(view.objective.shape)
        gain_rows, gain_cols, values = marginal_gains(view)
        gain[gain_rows, gain_cols] = values
        return _pick(view, best_base(view, rows, cols, gain[rows, cols]))


def best_base(view: View, rows: Ints, cols: Ints, score: Floats) -> list[Pair]:
    """A maximal set that may be added to the support, with the largest total score: greedy, which matroids allow."""
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
    left = _Left(view.limits, view.support)
    for k in order:
        pair = int(rows[k]), int(cols[k])
        if left.take(pair):
            base.append(pair)
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


def _partition(limits: Limits, view: View) -> tuple[str, Ints] | None:
    """The one side that is limited, "rows" or "cols", with its capacities; None if that is not all there is."""
    m, n = view.objective.shape
    if limits.total < m * n or len(limits.labels):
        return None
    by_row, by_col = bool((limits.rows < n).any()), bool((limits.cols < m).any())
    if by_row and by_col:
        return None
    return ("rows", limits.rows) if by_row else ("cols", limits.cols)


def _draw(view: View, groups: tuple[str, Ints]) -> Pair | None:
    """A group by its free places, then a pair of its top, uniformly."""
    side, capacity = groups
    m, n = view.objective.shape
    mine, length = (view.rows, n) if side == "rows" else (view.cols, m)
    used = np.bincount(mine, minlength=len(capacity))
    places = np.minimum(capacity, length) - used
    while places.sum() > 0:
        group = int(view.rng.choice(len(places), p=places / places.sum()))
        line = np.arange(length)
        rows, cols = (np.full(length, group), line) if side == "rows" else (line, np.full(length, group))
        gradient = view.gradient(rows, cols)
        gradient[(view.cols if side == "rows" else view.rows)[mine == group]] = np.inf
        count = min(int(np.isfinite(gradient).sum()), int(places[group]))
        # Forbidden pairs can leave a group fewer places than it was drawn for: keep the draw as often as it has them.
        if count < places[group]:
            keep = view.rng.random() * places[group] < count
            places[group] = count
            if not keep:
                continue
        top = np.argpartition(gradient, count - 1)[:count]
        k = int(view.rng.choice(top))
        return int(rows[k]), int(cols[k])
    return None
