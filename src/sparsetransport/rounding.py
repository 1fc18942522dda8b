"""What rounding hides: a gain that is nothing beside the terms of gradients, and much beside the objective."""

from typing import Any

import numpy as np

from . import _checks
from ._checks import Floats, Ints
from .inner.solvers import EXACT
from .problem import Fields, Problem

Plan = tuple[Ints, Ints, Floats]
"""Rows, columns and masses."""

_SHARE = 1e-6  # of the terms of an objective: what counts as a gain
_UNITS = 8.0 * np.finfo(np.float64).eps  # of the largest terms of a sum: how far rounding may put it off


def may_hide_a_gain(scale: Any, moved: Any, terms: Any) -> Any:
    """True if gradients that count as zero, times the mass that a plan moves, are a gain beside its objective."""
    return EXACT * scale * moved > _SHARE * terms


def hides_a_gain(problem: Problem, plan: Plan, value: float, prices: Fields | None = None) -> bool:
    """True if other pairs may lower the ``value`` of a plan, as far as rounding lets one tell.

    Where the least gradient of other pairs is ``-g``, moving the mass ``M`` of the plan to them gains ``gM`` at most.
    An objective that is nothing beside the mean cost, such as that of a plan between equal points, hides none. Hard
    marginals come with their ``prices``.
    """
    if problem.is_charged:
        return False
    rows, cols, mass = plan
    linear, moved, mean = problem.cost.entries(rows, cols) * mass, float(mass.sum()), problem.cost.mean
    terms = value - float(linear.sum()) + float(np.abs(linear).sum())
    if mean == 0.0 or terms <= _UNITS * mean * moved:
        return False
    soft, scale = problem, 0.0
    if prices is not None:
        soft, scale = problem.soft_part, max(float(np.abs(each).max()) for each in prices)
    scale = max(scale, soft.scale)
    if prices is None and not may_hide_a_gain(scale, moved, terms):
        return False
    r, c = soft.fields(rows, cols, mass)
    if prices is not None:
        r, c = r - prices[0], c - prices[1]
    gradient = float(_least_gradient_beside(problem, plan, r, c) - _UNITS * scale)
    if not problem.has_deltas:  # kernels may leave masses to the costs alone: those in use are lost as well
        own = problem.gradient((r, c), rows, cols) + problem.reg * mass
        gradient = min(gradient, -float(np.abs(own).max()))
    return bool(-gradient * moved > _SHARE * terms)


def _least_gradient_beside(problem: Problem, plan: Plan, r: Floats, c: Floats) -> float:
    """The least gradient of all pairs but those of a plan."""
    least, (rows, cols, _) = np.inf, plan
    for first, block in problem.cost.blocks():
        last = first + len(block)
        gradient, here = block + r[first:last, None] + c, (first <= rows) & (rows < last)
        gradient[rows[here] - first, cols[here]] = np.inf
        least = min(least, float(gradient.min()))
    return least


def warn_of_a_hidden_gain(problem: Problem) -> None:
    """Warn of a plan that `hides_a_gain`."""
    _checks.warn(
        f"the costs in use are lost in rounding beside unbalanced = {problem.unbalanced}: the plan may be far from "
        "optimal; mark forbidden pairs with inf, not with large costs, or use a smaller weight"
    )
