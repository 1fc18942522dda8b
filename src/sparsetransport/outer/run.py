"""The compiled loop from start to end, also from second starts, and at once to an optimum that no budget cuts."""

from collections.abc import Sequence

from .._checks import Floats
from ..matroids import Limits, Pair
from ..problem import Problem
from ..result import Status
from . import matching, unbudgeted
from .capacity import used_capacity
from .engine import PLACE_UP_TO, Engine
from .loop import Callback, Outcome

GROWN_UP_TO = 1000, 1  # entries, and entries a point: what a plan grows to before the optimum is sought at once


def run(
    problem: Problem,
    limits: Limits,
    first: Sequence[Pair],
    tol: float,
    callback: Callback | None = None,
    *,
    masses: Floats | None = None,
    polish: bool,
    thorough: bool,
) -> Outcome:
    """The compiled loop from start to end."""
    grown = max(GROWN_UP_TO[0], GROWN_UP_TO[1] * sum(problem.shape))
    jumps = grown < limits.most and _is_worth_a_jump(problem, limits)
    engine = Engine(problem, limits, tol=tol, callback=callback)
    is_long = jumps and len(first) > PLACE_UP_TO  # and takes long to begin with: the jump may spare that
    if not is_long:
        engine.seed(first, masses)
    if jumps:
        best = _grow_and_jump(engine, grown)
        if best is not None:
            return best
        if is_long and not engine.stopped:
            engine = Engine(problem, limits, tol=tol, callback=callback)
            engine.seed(first, masses)
    engine.grow()
    if polish:
        engine.polish(thorough=thorough)
    outcome = engine.outcome()
    if not polish or engine.stopped or not matching.is_one_to_one(limits):
        return outcome
    other = Engine(problem, limits, tol=tol)
    other.seed(matching.best_alone([problem], [1.0]))
    other.grow()
    other.polish(thorough=thorough)
    return better(problem, outcome, other.outcome())


def better(problem: Problem, first: Outcome, second: Outcome) -> Outcome:
    """The second plan as where the first one led, if it is better."""
    before, after = (problem.value(each.rows, each.cols, each.mass) for each in (first, second))
    if not after < before - 1e-12 * abs(before):
        return first
    first.record.jump(first, second, after)
    return second._replace(start=first.start, record=first.record)


def _is_worth_a_jump(problem: Problem, limits: Limits) -> bool:
    """Could the optimum without a budget be within the limits, and be found faster than the plan grows to them?"""
    if problem.reg == 0.0 or problem.cost.is_lazy or sum(problem.shape) > unbudgeted.POINTS_UP_TO:
        return False
    return unbudgeted.effort(problem) < float(limits.most) ** 3


def _grow_and_jump(engine: Engine, entries: int) -> Outcome | None:
    """Grow to so many entries, and if there is no end in sight, to the optimum without a budget, if that is allowed."""
    problem, limits = engine.problem, engine.limits
    held = limits.total - entries
    engine.work.left[0] -= held
    engine.grow()
    is_large = engine.work.left[0] <= 0
    engine.work.left[0] += held
    if engine.stopped or not is_large:
        return None
    grown = engine.outcome()
    plan = unbudgeted.optimum(problem, grown.rows, grown.cols, grown.mass)
    if plan is None:
        return None
    rows, cols, mass = plan
    if (used_capacity(rows, cols, limits.labels, len(limits.groups)) > limits.flat).any():
        return None
    best = grown._replace(rows=rows, cols=cols, mass=mass, status=Status.OPTIMAL)
    grown.record.jump(grown, best, problem.value(*plan))
    return best
