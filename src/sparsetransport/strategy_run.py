"""The compiled loop from start to end, also from second starts, and at once to an optimum that no budget cuts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ._checks import Floats, Ints
from .budgets import Limits, Pair, pairs_of
from .engine import matching, newton
from .engine.capacity import used_capacity
from .engine.omp_solver import PLACE_UP_TO, Engine
from .forest import simplex, trees
from .forest.local_search import Grafts
from .plan import Callback, Outcome, Record, as_arrays
from .problem import Problem
from .result import Status

# What a plan grows to, step by step, before the optimum without a budget is sought at once.
GROWN_UP_TO = 1000, 1  # entries, and entries a point, where reg spreads the optimum over many more
GROWN_TO_FOREST = 500  # where it has about as many as points
SHAKE_SHARE = 8.0  # operations of forcing links into a forest for one of the changes before,
SHAKE_FREE, SHAKE_MOST = 1e6, 1.5e8  # so many on top, and no more than that,
SHAKE_CLOSE = 1e-3  # unless the plan is as close as this to the optimum without a budget


def run(
    problem: Problem,
    limits: Limits,
    first: Sequence[Pair],
    tol: float,
    callback: Callback | None = None,
    *,
    masses: Floats | None = None,
    polish: bool,
    grafts: bool = True,
) -> Outcome:
    """The compiled loop from start to end; the polish with or without grafts."""
    if polish and grafts and trees.fits(problem):
        return _run_on_forest(problem, limits, first, tol, callback, masses)
    if trees.fits(problem):
        grown = long = GROWN_TO_FOREST
    else:
        grown, long = max(GROWN_UP_TO[0], GROWN_UP_TO[1] * sum(problem.shape)), PLACE_UP_TO
    jumps = grown < limits.most and _is_worth_a_jump(problem, limits)
    engine = Engine(problem, limits, tol=tol, callback=callback)
    is_long = jumps and len(first) > long  # and takes long to begin with: the jump may spare that
    if not is_long:
        engine.seed(first, masses)
    if jumps:
        full = _grow_and_look(engine, grown)
        if full is not None and _is_within(full, limits):
            return _jumped(problem, engine.outcome(), full)
        if is_long and not engine.stopped:
            engine = Engine(problem, limits, tol=tol, callback=callback)
            engine.seed(first, masses)
    engine.grow()
    if polish:
        engine.polish(thorough=False)
    outcome = engine.outcome()
    if polish and outcome.status not in (Status.STOPPED, Status.OPTIMAL):
        for pairs, mass in _other_starts(problem, limits, grafts and not first, tol):
            other = Engine(problem, limits, tol=tol)
            other.seed(pairs, mass)
            other.grow()
            other.polish(thorough=False)
            outcome = better(problem, outcome, other.outcome())
    return outcome


def _other_starts(
    problem: Problem, limits: Limits, grafts: bool, tol: float
) -> Iterator[tuple[list[Pair], Floats | None]]:
    """Where else to begin: with a matching, if the plan is to be one; with delta kernels, with the plan for no reg."""
    if matching.is_one_to_one(limits):
        yield matching.best_alone([problem], [1.0]), None
    if grafts and trees.has_deltas(problem):
        plan = _run_on_forest(replace(problem, reg=0.0), limits, [], tol, None, None)
        yield pairs_of(plan.rows, plan.cols), plan.mass


def _run_on_forest(
    problem: Problem,
    limits: Limits,
    first: Sequence[Pair],
    tol: float,
    callback: Callback | None,
    masses: Floats | None,
) -> Outcome:
    """Grow, a few hundred entries at the most, and graft.

    Beginning with what was grown from the start that was asked for; else with what is left of the optimum without a
    budget where that is most of it, with a matching if the plan is to be one, or with what was grown.
    """
    engine = Engine(problem, limits, tol=tol, callback=callback)
    is_long = len(first) > GROWN_TO_FOREST
    if not is_long:
        engine.seed(first, masses)
    full = _grow_and_look(engine, GROWN_TO_FOREST)
    grown = engine.outcome()
    if grown.status in (Status.STOPPED, Status.OPTIMAL):
        return grown
    if full is None and limits.most > max(problem.shape):
        full = _optimum(problem, grown)
    if full is not None and _is_within(full, limits):
        return _jumped(problem, grown, full)
    start: tuple[Ints, Ints, Floats] = (grown.rows, grown.cols, grown.mass)
    if is_long:
        start = *as_arrays(first), np.zeros(len(first)) if masses is None else masses
    elif not first and matching.is_one_to_one(limits):
        pairs = matching.best_alone([problem], [1.0])
        start = *as_arrays(pairs), np.zeros(len(pairs))
    elif not first and full is not None:
        start = full.rows, full.cols, full.mass
    search = Grafts(problem, limits, grown, tol=tol, callback=callback)
    search.begin(*start)
    search.improve()
    allowed = min(SHAKE_SHARE * search.effort[0] + SHAKE_FREE, SHAKE_MOST)
    enough = -np.inf
    if full is not None:
        least = problem.value(full.rows, full.cols, full.mass)
        enough = least + SHAKE_CLOSE * abs(least)
    search.shake(allowed, enough, np.random.default_rng(0))
    return search.outcome()


def better(problem: Problem, first: Outcome, second: Outcome) -> Outcome:
    """The second plan as where the first one led, if it is better."""
    before, after = (problem.value(each.rows, each.cols, each.mass) for each in (first, second))
    return _jumped(problem, first, second) if after < before - 1e-12 * abs(before) else first


def _is_worth_a_jump(problem: Problem, limits: Limits) -> bool:
    """May the optimum without a budget be within the limits, and be found faster than a plan grows?"""
    if trees.fits(problem):
        return limits.most >= max(problem.shape)  # else there are points that it does not link
    if problem.reg == 0.0 or problem.cost.is_lazy or sum(problem.shape) > newton.POINTS_UP_TO:
        return False
    return newton.effort(problem) < float(limits.most) ** 3


def _grow_and_look(engine: Engine, entries: int) -> Outcome | None:
    """Grow to so many entries, and if there is no end in sight, look for the optimum without a budget."""
    held = max(engine.limits.total - entries, 0)
    engine.work.left[0] -= held
    engine.grow()
    is_large = held > 0 and engine.work.left[0] <= 0
    engine.work.left[0] += held
    return None if engine.stopped or not is_large else _optimum(engine.problem, engine.outcome())


def _optimum(problem: Problem, grown: Outcome) -> Outcome | None:
    """The optimum without a budget, sought from a plan on the way; None where rounding is in the way."""
    seek = simplex.optimum if trees.fits(problem) else newton.optimum
    plan = seek(problem, grown.rows, grown.cols, grown.mass)
    return None if plan is None else as_outcome(*plan)


def as_outcome(rows: Ints, cols: Ints, mass: Floats) -> Outcome:
    """The optimum without a budget, found at once."""
    return Outcome(rows, cols, mass, Status.OPTIMAL, (), Record(), True)


def _is_within(plan: Outcome, limits: Limits) -> bool:
    """Does the plan keep within the limits?"""
    used = used_capacity(plan.rows, plan.cols, limits.labels, len(limits.groups))
    return bool((used <= limits.flat).all())


def _jumped(problem: Problem, before: Outcome, after: Outcome) -> Outcome:
    """The second plan as where the first one led."""
    before.record.jump(before, after, problem.value(after.rows, after.cols, after.mass))
    return after._replace(start=before.start, record=before.record)
