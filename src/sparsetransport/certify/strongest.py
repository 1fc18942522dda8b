"""The lower bounds that know the budget beyond the dual, in the order in which they are tried.

Each is a `Bound` in `BOUNDS`: a name, what it costs, the problems and budgets that it knows, and a function from a
`Task` to a `Proof`. A bound that does not know a feature of a problem must not apply to it, or return minus infinity.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from ..budgets import Limits
from ..effort import DEFAULT, Effort
from ..problem import Problem
from ..result import CHEAP, LONG
from . import one_to_one, stars

Plan = tuple[Ints, Ints, Floats]
"""Rows, columns and masses."""


class Task(NamedTuple):
    """What is to be proved, and what is known already."""

    problem: Problem
    limits: Limits
    plan: Plan  # the best one known, within the limits
    value: float  # its objective
    deadline: float = np.inf  # of `time.monotonic`
    gap_tol: float = 0.0  # a bound within this share of the objective is enough
    effort: Effort = DEFAULT  # whose limits hold where there is no deadline
    duals: tuple[tuple[Floats, Floats], ...] = ()  # u and v of dual points that are known, the best first
    known: float = -np.inf  # the best bound so far


class Proof(NamedTuple):
    """A lower bound for all plans within the limits, and a plan that was found on the way."""

    bound: float
    plan: Plan | None = None


@dataclass(frozen=True)
class Bound:
    """One kind of bound."""

    name: str
    level: int  # what it costs: CHEAP, TIGHT or LONG of `result`
    applies: Callable[[Problem, Limits], bool]
    run: Callable[[Task], Proof]


def _one_to_one(task: Task) -> Proof:
    bound, rows, cols, masses = one_to_one.optimum([task.problem], [1.0], task.limits)
    return Proof(bound, (rows, cols, masses[0]))


def _stars(task: Task) -> Proof:
    problem = task.problem
    u, v = task.duals[0] if task.duals else (np.zeros_like(problem.a), np.zeros_like(problem.b))
    sums = np.maximum(problem.a - u, 0.0), np.maximum(problem.b - v, 0.0)  # of the plan that the dual point belongs to
    return Proof(*stars.prove(problem, task.limits, task.plan, task.gap_tol, task.deadline, task.effort, sums))


BOUNDS: tuple[Bound, ...] = (
    Bound("matching", CHEAP, lambda problem, limits: one_to_one.applies([problem], limits), _one_to_one),
    Bound("stars", LONG, stars.applies, _stars),
)


def has_long_bounds(problem: Problem, limits: Limits) -> bool:
    """True if there are bounds for the problem that a time limit is worth being kept for."""
    return any(each.level == LONG and each.applies(problem, limits) for each in BOUNDS)
