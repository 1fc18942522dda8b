"""The lower bounds that know the budget beyond the dual, in the order in which they are tried.

Each is a `Bound` in `BOUNDS`: a name, what it costs, the problems and budgets that it knows, and a function from a
`Task` to a `Proof`. A bound that does not know a feature of a problem must not apply to it, or return minus infinity.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from ..budgets import Limits
from ..certificate import CHEAP, LONG
from ..effort import DEFAULT, Effort
from ..engine.room import Constraint, fits
from ..inner.solvers import ActiveSet
from ..optimum import unbudgeted_optimum
from ..problem import Problem
from . import bounds, branching, components, degrees, one_to_one, split_stars, stars

_PARTS_UP_TO = 24  # points: there are two to this power of parts, all of them kept
_BITS = 60  # points that a set of bits has room for
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


def _knows(problem: Problem, limits: Limits) -> bool:
    """True if errors are counted point by point on both sides, and the budget is one."""
    m, n = problem.shape
    return problem.has_deltas and one_to_one.is_two_sided(problem) and limits.most < m * n


def _degrees(task: Task) -> Proof:
    problem, best = task.problem, -np.inf
    if problem.shape[0] * problem.shape[1] > task.effort.degree_pairs:
        return Proof(best)
    for u, v in _feasible(task):
        best = max(best, degrees.bound(problem, task.limits, u, v, task.effort.degree_links))
    return Proof(best)


def _feasible(task: Task) -> Iterator[tuple[Floats, Floats]]:
    """Potentials with ``α + β <= C``: those of the unbudgeted optimum without ``reg``, and the best known."""
    problem = task.problem
    plain = problem if problem.reg == 0.0 else problem.memo.setdefault("without reg", replace(problem, reg=0.0))
    plan = unbudgeted_optimum(plain, task.effort)
    sums = problem.marginals(plan.rows, plan.cols, plan.mass)
    first = bounds.bound_at(plain, task.limits, problem.a - sums[0], problem.b - sums[1])[1:]
    yield first
    for u, v in task.duals[:1] if problem.reg == 0.0 else ():
        best = bounds.bound_at(plain, task.limits, u, v)[1:]
        if not all(map(np.allclose, best, first)):
            yield best


def _has_parts(problem: Problem, limits: Limits) -> bool:
    return _knows(problem, limits) and limits.most < sum(problem.shape) <= _PARTS_UP_TO


def _parts(task: Task) -> Proof:
    problem, how = task.problem, task.effort.parts
    if sum(problem.shape) > how.points:
        return Proof(-np.inf)
    u, v = next(_feasible(task))
    parts = components.all_parts(problem, *problem.smooth(u, v))
    gap = task.gap_tol * abs(task.value)
    bound, chosen = components.partition(
        parts, sum(problem.shape) - task.limits.most, task.value, gap, how, task.deadline
    )
    if not chosen:
        return Proof(bound)
    links = [components.links_of(parts, k) for k in chosen]
    rows, cols, mass = (np.concatenate(each) for each in zip(*links, strict=True))
    if not fits(Constraint.of(task.limits).room(), rows, cols):
        return Proof(bound)
    solved = ActiveSet(problem).solve(rows, cols, mass)
    return Proof(bound, (rows, cols, solved.mass))


def _has_few_pairs(problem: Problem, limits: Limits) -> bool:
    return _knows(problem, limits) and sum(problem.shape) <= _BITS


def _branch_and_bound(task: Task) -> Proof:
    problem, how = task.problem, task.effort.branching
    if problem.shape[0] * problem.shape[1] > how.pairs:
        return Proof(-np.inf)
    gap = task.gap_tol * abs(task.value)
    links, until = task.effort.degree_links, task.deadline
    return Proof(*branching.search(problem, task.limits, task.plan, task.value, task.known, gap, how, links, until))


def _stars(task: Task) -> Proof:
    rest = task.gap_tol, task.deadline, task.effort, _sums(task)
    return Proof(*stars.prove(task.problem, task.limits, task.plan, *rest))


def _split_stars(task: Task) -> Proof:
    rest = task.gap_tol, task.deadline, task.effort, _sums(task)
    return Proof(split_stars.prove(task.problem, task.limits, task.plan, task.value, *rest))


def _sums(task: Task) -> tuple[Floats, Floats]:
    """Row and column sums of the plan that the best dual point belongs to."""
    problem = task.problem
    u, v = task.duals[0] if task.duals else (np.zeros_like(problem.a), np.zeros_like(problem.b))
    return np.maximum(problem.a - u, 0.0), np.maximum(problem.b - v, 0.0)


BOUNDS: tuple[Bound, ...] = (
    Bound("matching", CHEAP, lambda problem, limits: one_to_one.applies([problem], limits), _one_to_one),
    Bound("degrees", CHEAP, _knows, _degrees),
    Bound("stars", LONG, stars.applies, _stars),
    Bound("parts", LONG, _has_parts, _parts),
    Bound("split stars", LONG, split_stars.applies, _split_stars),
    Bound("branch and bound", LONG, _has_few_pairs, _branch_and_bound),
)


def has_long_bounds(problem: Problem, limits: Limits) -> bool:
    """True if there are bounds for the problem that a time limit is worth being kept for."""
    return problem.is_plain and any(each.level == LONG and each.applies(problem, limits) for each in BOUNDS)
