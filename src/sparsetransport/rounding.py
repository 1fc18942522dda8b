"""What rounding hides: a gain that is nothing beside the terms of gradients, and much beside the objective."""

from typing import Any

import numpy as np

from . import _checks
from ._checks import Floats, Ints
from .inner.solvers import EXACT
from .problem import Problem

_SHARE = 1e-6  # of the terms of an objective: what counts as a gain
_UNITS = 8.0 * np.finfo(np.float64).eps  # of the largest terms of a sum: how far rounding may put it off


def may_hide_a_gain(scale: Any, moved: Any, terms: Any) -> Any:
    """True if gradients that count as zero, times the mass that a plan moves, are a gain beside its objective."""
    return EXACT * scale * moved > _SHARE * terms


def hides_a_gain(problem: Problem, rows: Ints, cols: Ints, mass: Floats, value: float) -> bool:
    """True if other pairs may lower the ``value`` of a plan, as far as rounding lets one tell.

    Where the least gradient of other pairs is ``-g``, moving the mass ``M`` of the plan to them gains ``gM`` at most.
    An objective that is nothing beside the mean cost, such as that of a plan between equal points, hides none.
    """
    if problem.is_hard or problem.is_charged:
        return False
    linear, moved = problem.cost.entries(rows, cols) * mass, float(mass.sum())
    terms = value - float(linear.sum()) + float(np.abs(linear).sum())
    is_nothing = terms <= _UNITS * problem.cost.mean * moved or problem.cost.mean == 0.0
    if is_nothing or not may_hide_a_gain(problem.scale, moved, terms):
        return False
    gradient = _least_gradient_beside(problem, rows, cols, mass) - _UNITS * problem.scale
    return bool(-gradient * moved > _SHARE * terms)


def _least_gradient_beside(problem: Problem, rows: Ints, cols: Ints, mass: Floats) -> float:
    """The least gradient of all pairs but these."""
    r, c = problem.fields(rows, cols, mass)
    least = np.inf
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
