"""The compiled loop from start to end, also from second starts, and at once to an optimum that no budget cuts."""

from collections.abc import Sequence

from .._checks import Floats, Ints
from ..matroids import Limits, Pair
from ..problem import Problem
from ..result import Status
from . import forest, matching, unbudgeted
from .capacity import used_capacity
from .engine import PLACE_UP_TO, Engine
from .loop import Callback, Outcome, Record

# What a plan grows to, step by step, before the optimum without a budget is sought at once.
GROWN_UP_TO = 1000, 1  # entries, and entries a point, where reg spreads the optimum over many more
GROWN_TO_FOREST = 500  # where it has about as many as points
_CUT_DOWN = 0.2  # of the entries of the optimum at the most are taken from it for a start,
_CLOSE = 0.01  # which must then be this close to it: what is cut off may have no way round


def run(
    problem: Problem,
    limits: Limits,
    first: Sequence[Pair],
    tol: float,
    callback: Callback | None = None,
    *,
    masses: Floats | None = None,
    polish: bool,
) -> Outcome:
    """The compiled loop from start to end."""
    if forest.fits(problem):
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
        excess = 0 if full is None else _excess(full, limits)
        if full is not None and excess == 0:
            return _jumped(problem, engine.outcome(), full)
        if is_long and not engine.stopped:
            engine = Engine(problem, limits, tol=tol, callback=callback)
            engine.seed(first, masses)
        elif full is not None and not first and problem.reg == 0.0 and excess <= _CUT_DOWN * len(full.mass):
            engine = _cut_down(engine, full) or engine
    engine.grow()
    if polish:
        engine.polish(thorough=False)
    outcome = engine.outcome()
    if not polish or engine.stopped or not matching.is_one_to_one(limits):
        return outcome
    other = Engine(problem, limits, tol=tol)
    other.seed(matching.best_alone([problem], [1.0]))
    other.grow()
    other.polish(thorough=False)
    return better(problem, outcome, other.outcome())


def better(problem: Problem, first: Outcome, second: Outcome) -> Outcome:
    """The second plan as where the first one led, if it is better."""
    before, after = (problem.value(each.rows, each.cols, each.mass) for each in (first, second))
    return _jumped(problem, first, second) if after < before - 1e-12 * abs(before) else first


def _is_worth_a_jump(problem: Problem, limits: Limits) -> bool:
    """May the optimum without a budget be within the limits, or nearly so, and be found faster than a plan grows?"""
    if forest.fits(problem):
        return limits.most >= max(problem.shape)  # else there are points that it does not link
    if problem.reg == 0.0 or problem.cost.is_lazy or sum(problem.shape) > unbudgeted.POINTS_UP_TO:
        return False
    return unbudgeted.effort(problem) < float(limits.most) ** 3


def _grow_and_look(engine: Engine, entries: int) -> Outcome | None:
    """Grow to so many entries, and if there is no end in sight, look for the optimum without a budget."""
    problem = engine.problem
    held = engine.limits.total - entries
    engine.work.left[0] -= held
    engine.grow()
    is_large = engine.work.left[0] <= 0
    engine.work.left[0] += held
    if engine.stopped or not is_large:
        return None
    grown = engine.outcome()
    seek = forest.optimum if forest.fits(problem) else unbudgeted.optimum
    plan = seek(problem, grown.rows, grown.cols, grown.mass)
    return None if plan is None else as_outcome(*plan)


def as_outcome(rows: Ints, cols: Ints, mass: Floats) -> Outcome:
    """The optimum without a budget, found at once."""
    return Outcome(rows, cols, mass, Status.OPTIMAL, (), Record(), True)


def _excess(plan: Outcome, limits: Limits) -> int:
    """By how many entries a plan exceeds its limits."""
    used = used_capacity(plan.rows, plan.cols, limits.labels, len(limits.groups))
    return int((used - limits.flat).clip(0).sum())


def _jumped(problem: Problem, before: Outcome, after: Outcome) -> Outcome:
    """The second plan as where the first one led."""
    before.record.jump(before, after, problem.value(after.rows, after.cols, after.mass))
    return after._replace(start=before.start, record=before.record)


def _cut_down(engine: Engine, full: Outcome) -> Engine | None:
    """Go on from the plan without a budget, less what is missed least of it; None where too much is missed."""
    problem = engine.problem
    other = Engine(problem, engine.limits, tol=engine.tol)
    other.reverse(full)
    other.grow()
    plan, best = other.outcome(), problem.value(full.rows, full.cols, full.mass)
    if problem.value(plan.rows, plan.cols, plan.mass) > best + _CLOSE * abs(best):
        return None
    reached = _jumped(problem, engine.outcome(), plan)
    other.record, other.start, other.callback = reached.record, reached.start, engine.callback
    return other
