"""Plans of large problems with `Delta` kernels and no ``reg``, from their dual prices.

The smoothed plan of the prices is taken to a forest. Rounds of the network simplex follow, on lists of the pairs that
are cheapest at the potentials of the forest (see `forest.listed_simplex`); the pass that finds them proves a bound.

Where a budget does not allow that plan, a matching of the points, or what the budget leaves of the plan, grows and is
made better by local search on trees, which looks at the pairs on short lists (see `forest.listed_solver`). The bound of
the prices holds for every budget.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from . import _checks, effort
from ._checks import Floats
from .budgets import Pair
from .effort import Effort
from .engine.room import Constraint, fits
from .forest.assigned import applies, are_equal, best_matching
from .forest.crossover import Planted, on_forest
from .forest.listed_simplex import ListedSimplex
from .forest.listed_solver import ListedSolver
from .geometry.pricing import Pricing
from .plan import Callback, Outcome, Record, Step
from .prices.anywhere import prices_on, pricing_on
from .prices.levels import Prices, Tell
from .problem import Problem
from .status import Status

_KEY, _NEAR, _MATCHING = "dual prices", "plan from dual prices", "matching"
_EXACT = 1e-12  # a relative gap that counts as zero


def is_large(problem: Problem, how: Effort) -> bool:
    """True if a problem is solved from its prices."""
    m, n = problem.shape
    if how.prices is None or not (problem.has_trees and problem.is_plain) or m * n <= how.prices.above:
        return False
    return not (problem.costs_are_lost or problem.side_is_lost) and problem.cost.has_pairs


def device_for(problem: Problem, device: str | None, points: Any) -> str | None:
    """The device that was asked for, if it can be used, or that of the points."""
    if device is None:
        is_there = bool(getattr(points, "is_cuda", False)) and problem.has_trees and problem.is_plain
        return str(points.device) if is_there and problem.cost.is_squared else None
    if not (problem.has_trees and problem.is_plain and problem.cost.is_squared):
        raise ValueError(
            f"device must be None unless costs are squared distances without forbidden pairs, kernels Delta(), reg 0 "
            f"and marginals soft on both sides, got {device!r}"
        )
    _checks.cuda_device("device", device)
    return device


def known_prices(problem: Problem) -> Prices | None:
    """The prices of a problem that was solved from them."""
    found: Prices | None = problem.memo.get(_KEY)
    return found


def near_optimum(
    problem: Problem,
    how: effort.Prices,
    *,
    callback: Callback | None = None,
    gap_tol: float | None = None,
    deadline: float = np.inf,
    device: Any = None,
) -> Outcome:
    """A plan near the unbudgeted optimum, or the optimum; it and its prices are kept with the problem.

    After the deadline, of `time.monotonic`, the ascent ends with its stage, and the plan that it leads to must do.
    """
    near = f"{_NEAR}, {how.rounds} rounds"
    known: Outcome | None = problem.memo.get(near)
    if known is not None and (gap_tol is None or known.status is Status.OPTIMAL):
        return known
    stopped: list[bool] = []

    def tell(value: float, row: int, col: int, links: int) -> bool:
        said_stop = callback is not None and bool(callback(Step(len(stopped), (row, col), value, links)))
        stopped.append(said_stop or time.monotonic() > deadline)
        return stopped[-1]

    pricing = pricing_on(device, problem.cost)
    found = prices_on(device, problem, how, pricing, tell=tell, gap_tol=gap_tol, deadline=deadline)
    planted = on_forest(problem, found.rows, found.cols, found.mass)
    if not any(stopped):
        close = how.close if gap_tol is None else min(gap_tol, how.close)
        planted, found = _pivoted(problem, how, pricing, planted, found, close, deadline, tell)
    problem.memo[_KEY] = found._replace(rows=planted.rows, cols=planted.cols, mass=planted.mass)
    gap = planted.value - found.bound
    is_best = gap <= _EXACT * max(abs(planted.value), abs(problem.constant))
    status = Status.STOPPED if any(stopped) else Status.OPTIMAL if is_best else Status.PRICED
    plan = _outcome(problem, planted, status)
    if status is not Status.STOPPED:
        problem.memo[near] = plan
    return plan


def within_budget(
    problem: Problem,
    constraint: Constraint,
    how: effort.Prices,
    *,
    callback: Callback | None = None,
    gap_tol: float | None = None,
    deadline: float = np.inf,
    device: Any = None,
) -> Outcome | None:
    """A plan within a budget that counts links; None if the effort says that such plans are sought without prices."""
    within, most, (m, n), close = how.budgets, constraint.limits.most, problem.shape, gap_tol
    if most < m + n - 1:  # what a forest may have
        if within is None or most * m * n < within.above:
            return None
        how, close = replace(how, rounds=within.pivots), None
    plan = near_optimum(problem, how, callback=callback, gap_tol=close, deadline=deadline, device=device)
    if fits(constraint.room(), plan.rows, plan.cols):
        return plan
    found = known_prices(problem)
    if within is None or found is None:
        return None
    is_stopped = plan.status is Status.STOPPED
    told = None if is_stopped else callback
    pricing = pricing_on(device, problem.cost)
    solver = ListedSolver(problem, constraint, within, pricing, callback=told, deadline=deadline)
    solver.stopped = is_stopped
    start = (plan.rows, plan.cols, plan.mass)
    is_few = constraint.limits.most <= within.few * max(problem.shape)
    if (is_few or are_equal(problem)) and not is_stopped and applies(problem, within.width):
        if _MATCHING not in problem.memo:
            problem.memo[_MATCHING] = best_matching(problem, how, within.matching, found, device)
        start = problem.memo[_MATCHING]
    solver.begin(*start)
    solver.refine(found.bound, within.close if gap_tol is None else gap_tol)
    return solver.outcome()


def _pivoted(
    problem: Problem,
    how: effort.Prices,
    pricing: Pricing,
    planted: Planted,
    found: Prices,
    close: float,
    deadline: float,
    tell: Tell,
) -> tuple[Planted, Prices]:
    """The plan after rounds of the network simplex on lists of pairs, and the prices with the best bound."""
    if _is_close(planted, found, close):
        return planted, found
    simplex = ListedSimplex(problem, pricing, planted, how.kept)
    simplex.list(pricing.rows(found.beta, how.pivots)[1], pricing.columns(found.alpha, how.pivots)[1])
    for _ in range(how.rounds):
        by_row, by_col = pricing.rows(planted.beta, how.pivots), pricing.columns(planted.alpha, how.pivots)
        found = _better(problem, found, _capped(problem, 0, by_row[0]), planted.beta)
        found = _better(problem, found, planted.alpha, _capped(problem, 1, by_col[0]))
        if _is_close(planted, found, close):
            break
        simplex.list(by_row[1], by_col[1])
        if not simplex.improve(how.operations, deadline):
            break
        planted = simplex.planted
        if planted.mass.size and tell(planted.value, *_heaviest(planted), planted.mass.size):
            break
    return planted, found


def _is_close(planted: Planted, found: Prices, close: float) -> bool:
    """True if the certified relative gap is as asked for."""
    return planted.value - found.bound <= close * abs(planted.value)


def _heaviest(planted: Planted) -> Pair:
    """The link with most mass."""
    at = int(planted.mass.argmax())
    return int(planted.rows[at]), int(planted.cols[at])


def _capped(problem: Problem, side: int, least: Floats) -> Floats:
    """The best prices of a side for those of the other one, from the least reduced costs."""
    masses = problem.b if side else problem.a
    return np.minimum(2.0 * problem.unbalanced[side] * masses, least[:, 0])


def _better(problem: Problem, found: Prices, alpha: Floats, beta: Floats) -> Prices:
    """Prices without a pair below them, if they prove more than others."""
    (a, b), (weight_a, weight_b) = (problem.a, problem.b), problem.unbalanced
    bound = float(alpha @ (a - alpha / (4.0 * weight_a)) + beta @ (b - beta / (4.0 * weight_b)))
    return found._replace(alpha=alpha, beta=beta, bound=bound) if bound > found.bound else found


def _outcome(problem: Problem, planted: Planted, status: Status) -> Outcome:
    """A plan that is reached in one step."""
    record, start = Record(), tuple[Pair, ...]()
    empty = Outcome(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), status, start, record, True)
    plan = empty._replace(rows=planted.rows, cols=planted.cols, mass=planted.mass)
    if planted.rows.size:
        record.jump(empty, plan, problem.value(plan.rows, plan.cols, plan.mass))
    return plan
