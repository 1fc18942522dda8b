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
    """Algorithm 2: a uniformly random pair of the base with the largest sum of ``max(0, -gradient)``.

    For a budget per column, per row or per group the base is the top of every group, so it is enough to draw a group
    with probability proportional to its free places and then one pair of its top: one group's gradients a step and
    the same distribution. Any other matroid is asked pair by pair.

    Parameters
    ----------
    oracle : bool
        Always ask pair by pair.
    """

    oracle: bool = False
    exhaustive: ClassVar[bool] = False

    def select(self, view: View) -> Pair | None:
        """A free pair off the support, or None if there is none."""
        if not self.oracle and view.limits is not None and _Groups.fits(view, view.limits):
            return _draw(view, _Groups(view, view.limits))
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


class _Groups:
    """A budget that is one partition of the pairs: columns, rows, labels, or all pairs in one group."""

    def __init__(self, view: View, limits: Limits) -> None:
        m, n = view.objective.shape
        self.shape = m, n
        self.capacity, self.layer = np.array([limits.total]), None
        self.kind = "whole"
        if len(limits.labels):
            # Pairs in no group are always in the base: one more group, with room for all of them.
            self.kind, self.capacity = "labels", np.append(limits.groups, m * n)
            self.layer = np.where(limits.labels[0] < 0, len(limits.groups), limits.labels[0])
            held, self.size = (
                self.layer[view.rows, view.cols],
                np.bincount(self.layer.ravel(), minlength=len(self.capacity)),
            )
        elif (limits.rows < n).any():
            self.kind, self.capacity, held, self.size = "rows", limits.rows, view.rows, np.full(m, n)
        elif (limits.cols < m).any():
            self.kind, self.capacity, held, self.size = "cols", limits.cols, view.cols, np.full(n, m)
        else:
            held, self.size = np.zeros(len(view.rows), np.int64), np.array([m * n])
        used = np.bincount(held, minlength=len(self.capacity))
        self.places = np.minimum(self.capacity, self.size) - used

    @staticmethod
    def fits(view: View, limits: Limits) -> bool:
        """Is the budget one partition?"""
        m, n = view.objective.shape
        parts = [limits.total < m * n, bool((limits.rows < n).any()), bool((limits.cols < m).any())]
        return sum(parts) + len(limits.labels) <= 1

    def pairs(self, group: int) -> tuple[Ints, Ints]:
        """All pairs of a group."""
        m, n = self.shape
        if self.kind == "rows":
            return np.full(n, group), np.arange(n)
        if self.kind == "cols":
            return np.arange(m), np.full(m, group)
        if self.layer is not None:
            rows, cols = np.nonzero(self.layer == group)
            return rows, cols
        rows, cols = np.divmod(np.arange(m * n), n)
        return rows, cols


def _draw(view: View, groups: _Groups) -> Pair | None:
    """A group by its free places, then a pair of its top, uniformly."""
    places, n = groups.places, view.objective.shape[1]
    while places.sum() > 0:
        group = int(view.rng.choice(len(places), p=places / places.sum()))
        rows, cols = groups.pairs(group)
        gradient = view.gradient(rows, cols)
        gradient[np.isin(rows * n + cols, view.rows * n + view.cols)] = np.inf
        count = min(int(np.isfinite(gradient).sum()), int(places[group]))
        # Forbidden pairs can leave a group fewer places than it was drawn for: keep the draw as often as it has them.
        if count < places[group]:
            keep = view.rng.random() * places[group] < count
            places[group] = count
            if not keep:
                continue
        k = int(view.rng.choice(np.argpartition(gradient, count - 1)[:count]))
        return int(rows[k]), int(cols[k])
    return None
