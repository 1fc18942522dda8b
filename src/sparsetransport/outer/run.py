"""The compiled loop from start to end, also from second starts, and without a budget."""

from collections.abc import Sequence

from .._checks import Floats
from ..matroids import Limits, Pair
from ..problem import Problem
from ..result import Status
from . import matching, unbudgeted
from .engine import Engine
from .loop import Callback, Outcome

GROWN_UP_TO = 1000, 2  # entries, and entries a point: what a plan without a budget grows to one by one


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
    m, n = problem.shape
    if problem.reg > 0.0 and limits.most == m * n and m + n <= unbudgeted.POINTS_UP_TO:
        return _without_budget(problem, limits, first, tol, callback, masses)
    engine = Engine(problem, limits, tol=tol, callback=callback)
    engine.seed(first, masses)
    engine.grow()
    if polish:
        engine.polish(thorough=thorough)
    outcome = engine.outcome()
    if not polish or engine.stopped or not matching.is_one_to_one(limits):
        return outcome
    other = Engine(problem, limits, tol=tol)
    other.seed(matching.best_alone(problem))
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


def _without_budget(
    problem: Problem,
    limits: Limits,
    first: Sequence[Pair],
    tol: float,
    callback: Callback | None,
    masses: Floats | None,
) -> Outcome:
    """Grow, and where the plan turns out to have entries without end, jump to the optimum."""
    enough = max(GROWN_UP_TO[0], GROWN_UP_TO[1] * sum(problem.shape))
    engine = Engine(problem, limits._replace(total=enough), tol=tol, callback=callback)
    engine.seed(first, masses)
    engine.grow()
    grown = engine.outcome()
    if grown.status is not Status.BUDGET_USED:
        return grown
    plan = unbudgeted.optimum(problem, grown.rows, grown.cols, grown.mass)
    if plan is None:
        engine.work.left[0] += limits.total - enough
        engine.grow()
        return engine.outcome()
    rows, cols, mass = plan
    best = grown._replace(rows=rows, cols=cols, mass=mass, status=Status.OPTIMAL)
    grown.record.jump(grown, best, problem.value(*plan))
    return best
