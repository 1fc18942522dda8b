"""The unbudgeted optimum of a problem: found once and kept with it."""

from dataclasses import replace
from typing import Any

import numpy as np

from . import hard
from ._checks import KEPT, Floats, Ints
from .effort import Effort
from .engine import newton, slack
from .engine.omp_solver import OMPSolver
from .engine.room import Constraint
from .forest import simplex
from .geometry._entries import DENSE
from .geometry.matrices import Gram
from .plan import Outcome, Record, nothing
from .problem import Problem
from .status import Status

_KEY, _PRICES = "optimum", "prices"


def unbudgeted_optimum(problem: Problem, effort: Effort, shares: tuple[Floats, Floats] | None = None) -> Outcome:
    """The unbudgeted optimum; where that takes too long and ``reg`` is positive, a plan towards it.

    Shares of rows and columns change the problem: see `certify.certifier`. Only a plan without shares is kept.
    """
    if shares is None and _KEY in problem.memo:
        found: Outcome = problem.memo[_KEY]
        return found
    if problem.is_hard:
        return keep_hard(problem, _hard_optimum(problem, effort))
    if problem.has_trees:
        plan = simplex.optimum(problem, *nothing(), shares)
        if plan is not None:
            return _kept(problem, as_outcome(*plan), shares is None)
    if problem.is_sided:
        return _kept(problem, _with_slack(problem, effort), True)
    problem = problem if shares is None else shared_out(problem, *shares)
    limits = Constraint(None, problem.shape).limits
    if problem.reg > 0.0 and sum(problem.shape) > effort.newton_points:  # any dual point proves some
        limits = limits._replace(total=effort.towards_links)
    solver = OMPSolver(problem, Constraint.of(limits), effort.tuning, listed=is_listed(problem, effort))
    if is_worth_a_jump(problem, limits.most, effort) and solver.grow(links_before_jump(problem, limits.most, effort)):
        at_once = optimum_from(problem, solver.outcome())
        if at_once is not None:
            return _kept(problem, at_once, shares is None)
    solver.grow()
    return _kept(problem, solver.outcome(), shares is None)


def _with_slack(problem: Problem, effort: Effort) -> Outcome:
    """The unbudgeted optimum of one-sided marginals, or a plan towards it, by entries for slack."""
    wide, limits = slack.Slacked.of(problem), Constraint(None, problem.shape).limits
    if problem.reg > 0.0 and sum(problem.shape) > effort.newton_points:
        limits = limits._replace(total=effort.towards_links)
    solver = OMPSolver(wide, slack.room_for_slack(problem, Constraint.of(limits)), effort.tuning)
    solver.seed(*slack.first_slack(problem))
    solver.grow()
    return slack.without_slack(solver.outcome(), problem.shape)


def _hard_optimum(problem: Problem, effort: Effort) -> hard.Priced:
    """The unbudgeted optimum with hard marginals and its prices."""

    def seek(soft: Problem, now: hard.Priced, shares: tuple[Floats, Floats] | None) -> Any:
        if soft.has_trees:
            plan = simplex.optimum(soft, now.rows, now.cols, now.mass, shares)
            if plan is not None or shares is not None:
                return plan
        found = unbudgeted_optimum(soft, effort)
        return found.rows, found.cols, found.mass

    first = hard.Priced(*nothing(), hard.free(problem), np.inf)
    sought, weight = hard.clipped(problem), effort.hard_weights[0]
    found = hard.multiply(sought, seek, weight, first)
    share = hard.share_in_use(problem, found)
    if not 0.0 < share < effort.hard_in_use:
        return found
    finer = hard.multiply(sought, seek, weight * share, found)
    return finer if finer.error <= max(found.error, KEPT) else found


def keep_hard(problem: Problem, priced: hard.Priced) -> Outcome:
    """The unbudgeted optimum with hard marginals as an outcome, kept with its prices."""
    plan = as_outcome(priced.rows, priced.cols, priced.mass)
    if any(error.any() for error in problem.missed(*priced[:3])):
        plan = plan._replace(status=Status.INFEASIBLE)
    problem.memo[_PRICES] = priced.prices
    return _kept(problem, plan, True)


def prices(problem: Problem, effort: Effort) -> tuple[Floats, Floats]:
    """The prices of the hard marginals at the unbudgeted optimum; zero on soft sides."""
    if _PRICES not in problem.memo:
        unbudgeted_optimum(problem, effort)
    found: tuple[Floats, Floats] = problem.memo.get(_PRICES, hard.free(problem))
    return found


def potentials(problem: Problem, effort: Effort, rows: Ints, cols: Ints, mass: Floats) -> tuple[Floats, Floats]:
    """The potentials of a plan that is optimal on its support: minus the gradients of the marginal errors."""
    if not problem.is_hard:
        r, c = problem.fields(rows, cols, mass)
        return -r, -c
    there = problem.only(rows, cols)
    unbudgeted_optimum(there, effort)
    priced = there.memo[_PRICES]
    r, c = problem.soft_part.fields(rows, cols, mass)
    return priced[0] - r, priced[1] - c


def optimum_from(problem: Problem, plan: Outcome) -> Outcome | None:
    """The same sought at once from a plan on the way; None where rounding is in the way."""
    if _KEY in problem.memo:
        found: Outcome = problem.memo[_KEY]
        return found if found.status is Status.OPTIMAL else None
    if problem.is_sided and not problem.has_trees:
        return None
    seek = simplex.optimum if problem.has_trees else newton.optimum
    found_plan = seek(problem, plan.rows, plan.cols, plan.mass)
    return None if found_plan is None else _kept(problem, as_outcome(*found_plan), True)


def keep_optimum(problem: Problem, plan: Outcome) -> None:
    """Keep a plan that a solve has proved to be the optimum."""
    problem.memo.setdefault(_KEY, plan)


def is_worth_a_jump(problem: Problem, most: int, effort: Effort) -> bool:
    """True if the optimum may have as few links as these, and is found faster than a plan grows."""
    if links_before_jump(problem, most, effort) >= most or problem.counted_shape != problem.shape:
        return False
    if problem.has_trees:
        return most >= max(problem.shape)  # else there are points that it does not link
    if problem.reg == 0.0 or problem.cost.is_lazy or sum(problem.shape) > effort.newton_points:
        return False
    return newton.effort(problem) < float(most) ** 3


def links_before_jump(problem: Problem, most: int, effort: Effort) -> int:
    """How many links a plan, which may have ``most``, is grown to before the optimum is sought at once."""
    if problem.has_trees:
        m, n = problem.shape
        is_large = most >= m * n and m + n > effort.free_tree_points
        return min(effort.free_tree_links, effort.grown_tree_links) if is_large else effort.grown_tree_links
    return max(effort.grown_links, int(effort.grown_links_per_point * sum(problem.shape)))


def is_listed(problem: Problem, effort: Effort) -> bool:
    """True if candidates come from a list."""
    return problem.shape[0] * problem.shape[1] >= effort.list_above


def as_outcome(rows: Ints, cols: Ints, mass: Floats) -> Outcome:
    """The optimum, found at once."""
    return Outcome(rows, cols, mass, Status.OPTIMAL, (), Record(), True)


def shared_out(problem: Problem, z: Floats, w: Floats) -> Problem:
    """The problem where rows and columns are reached by shares; a side with other kernels than ``Delta`` in full."""
    sides = []
    for share, gram, weight in zip((z, w), (problem.gram_a, problem.gram_b), problem.unbalanced, strict=True):
        if share.min() == share.max():
            sides.append((gram, weight / float(share[0])))
        else:
            sides.append((Gram(DENSE, len(share), np.diag(1.0 / share)), weight))
    (gram_a, weight_a), (gram_b, weight_b) = sides
    weights = weight_a, weight_b
    return replace(problem, a=problem.a * z, b=problem.b * w, gram_a=gram_a, gram_b=gram_b, unbalanced=weights)


def _kept(problem: Problem, plan: Outcome, is_whole: bool) -> Outcome:
    if is_whole:
        keep_optimum(problem, plan)
    return plan
