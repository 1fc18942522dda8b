"""Plans of large problems with `Delta` kernels and no ``reg``, from their dual prices.

The smoothed plan of the prices is taken to a forest. Rounds of pivots follow: pairs that would lower the objective at
the potentials of the forest close cycles or join trees (see `forest.crossover`), and the potentials prove a bound.

Where a budget does not allow that plan, a matching of the points, or what the budget leaves of the plan, grows and is
made better by local search on trees, which looks at the pairs on short lists (see `forest.listed_solver`). The bound of
the prices holds for every budget.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from . import _checks, effort
from ._checks import Floats, Ints
from .budgets import Pair
from .effort import Effort
from .engine.room import Constraint, fits
from .forest.assigned import applies, are_equal, best_matching
from .forest.crossover import Planted, on_forest
from .forest.listed_solver import ListedSolver
from .geometry.pricing import Pricing
from .plan import Callback, Outcome, Record, Step
from .prices.anywhere import prices_on, pricing_on
from .prices.levels import Prices
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
        planted, found = _pivoted(problem, how, pricing, planted, found, gap_tol, deadline)
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
    if most < m + n:
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
    best: Planted,
    found: Prices,
    gap_tol: float | None,
    deadline: float,
) -> tuple[Planted, Prices]:
    """The plan after rounds of pivots, and the prices with the best bound."""
    planted, close = best, how.close if gap_tol is None else min(gap_tol, how.close)
    for _ in range(how.rounds if gap_tol is None else how.more_rounds):
        if best.value - found.bound <= close * abs(best.value) or time.monotonic() > deadline:
            break
        by_row, by_col = pricing.rows(planted.beta, how.pivots), pricing.columns(planted.alpha, how.pivots)
        alpha = np.minimum(2.0 * problem.unbalanced[0] * problem.a, by_row[0][:, 0])
        bound = _dual(problem, alpha, planted.beta)
        if bound > found.bound:
            found = found._replace(alpha=alpha, beta=planted.beta, bound=bound)
        rows, cols = _steepest(by_row, by_col, planted, problem.shape)
        if not rows.size:
            break
        planted = on_forest(
            problem,
            np.concatenate([planted.rows, rows]),
            np.concatenate([planted.cols, cols]),
            np.concatenate([planted.mass, np.zeros(rows.size)]),
        )
        best = planted if planted.value < best.value else best
    return best, found


def _steepest(
    by_row: tuple[Floats, Ints], by_col: tuple[Floats, Ints], planted: Planted, shape: tuple[int, int]
) -> tuple[Ints, Ints]:
    """The listed pairs that lower the objective, the steepest first."""
    m, n = shape
    key = np.concatenate(
        [(np.arange(m)[:, None] * n + by_row[1]).ravel(), (by_col[1] * n + np.arange(n)[:, None]).ravel()]
    )
    slope = np.concatenate([(by_row[0] - planted.alpha[:, None]).ravel(), (by_col[0] - planted.beta[:, None]).ravel()])
    helps = slope < -_EXACT * (np.abs(planted.alpha).max() + np.abs(planted.beta).max())
    key, first = np.unique(key[helps], return_index=True)
    order = np.argsort(slope[helps][first], kind="stable")
    rows, cols = np.divmod(key[order], n)
    return rows, cols


def _dual(problem: Problem, alpha: Floats, beta: Floats) -> float:
    """The bound of prices without a pair below them."""
    (a, b), (weight_a, weight_b) = (problem.a, problem.b), problem.unbalanced
    return float(alpha @ (a - alpha / (4.0 * weight_a)) + beta @ (b - beta / (4.0 * weight_b)))


def _outcome(problem: Problem, planted: Planted, status: Status) -> Outcome:
    """A plan that is reached in one step."""
    record, start = Record(), tuple[Pair, ...]()
    empty = Outcome(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), status, start, record, True)
    plan = empty._replace(rows=planted.rows, cols=planted.cols, mass=planted.mass)
    if planted.rows.size:
        record.jump(empty, plan, problem.value(plan.rows, plan.cols, plan.mass))
    return plan
