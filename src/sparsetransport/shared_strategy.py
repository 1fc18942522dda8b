"""What `solve_shared` does: the starts and improvers of its `Effort` for scenarios that share their links."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from . import effort
from ._checks import Floats
from .budgets import Pair, pairs_of
from .certificate import PROVEN
from .certify import one_to_one
from .effort import DEFAULT, Effort, Mean
from .engine import matching, slack
from .engine.room import Constraint
from .engine.shared_solver import SharedOutcome, SharedSolver
from .improvers import finish_of, improve_all, part_of
from .plan import Callback
from .problem import Problem, mean_problem
from .search import ENDED, Links, Search
from .status import Status
from .strategy import find, random_pairs


class Reached(NamedTuple):
    """Links that scenarios share, their objective, and the operations that the last start took."""

    plan: SharedOutcome
    objective: float
    operations: float


class SharedSearch(NamedTuple):
    """Scenarios with their weights, one budget for the links that they share, and how much to do."""

    problems: list[Problem]
    weights: Floats
    constraint: Constraint
    effort: Effort
    fixed: list[Pair]
    given: list[Pair]
    tol: float
    n_jobs: int
    callback: Callback | None

    def run(self, first: list[Pair], callback: Callback | None) -> Reached:
        """The links from this start through all improvers."""
        (m, n), how = self.problems[0].shape, self.effort
        work = m * n * len(self.problems)
        solver = SharedSolver(
            self.problems,
            self.weights,
            self.constraint,
            how.tuning,
            work=how.shared_work,
            listed=work >= how.shared_list_above,
            tol=self.tol,
            n_jobs=self.n_jobs if work >= how.threads_above else 1,
            callback=callback,
        )
        with solver.threads():
            solver.seed(self.fixed, first)
            improve_all(how.improvers, solver)
            return Reached(solver.outcome(), solver.objective, float(solver.effort[0]))

    def operations(self, links: int) -> float:
        """About how many operations it takes to grow so many links."""
        (m, n), scenarios = self.problems[0].shape, len(self.problems)
        return float(scenarios * links) * (m * n + links * links / 3.0)

    def mean_start(self, start: Mean) -> Iterator[list[Pair]]:
        """The plan of the mean scenario, if it does not take too long."""
        (m, n), limits = self.problems[0].shape, self.constraint.limits
        if self.operations(min(limits.most, m + n)) <= start.operations:
            mean, given = mean_problem(self.problems, self.weights), Links([*self.fixed, *self.given])
            yield Links.of(find(Search(mean, self.constraint, self.effort, given=given, tol=self.tol))).pairs

    def starts(self) -> Iterator[list[Pair]]:
        """Where else to begin."""
        (m, n), limits = self.problems[0].shape, self.constraint.limits
        has_slack = isinstance(self.problems[0], slack.Slacked)
        for start in self.effort.starts:
            one_to_one = self.constraint.oracle is None and matching.is_one_to_one(limits)
            if isinstance(start, effort.Matching) and m * n <= start.pairs and one_to_one:
                yield matching.best_alone(self.problems, self.weights)
            if isinstance(start, effort.Mean) and not has_slack:
                yield from self.mean_start(start)
            if isinstance(start, effort.Random) and not all(problem.has_trees for problem in self.problems):
                mean = self.problems[0] if has_slack else mean_problem(self.problems, self.weights)
                yield from random_pairs(start, mean, len(self.problems))


def find_shared(search: SharedSearch) -> SharedOutcome:
    """The best links that the starts and improvers of the effort lead to."""
    if any(problem.is_sided for problem in search.problems):
        return _find_with_slack(search)
    outcome, objective, _ = _find_shared(search)
    limits, oracle = search.constraint.limits, search.constraint.oracle
    if outcome.status is Status.STOPPED or oracle is not None or not one_to_one.applies(search.problems, limits):
        return outcome
    bound = one_to_one.optimum(search.problems, search.weights, limits)[0]
    is_proven = objective - bound <= PROVEN * abs(objective)
    return outcome._replace(status=Status.OPTIMAL_PROVEN) if is_proven else outcome


def _find_with_slack(search: SharedSearch) -> SharedOutcome:
    """The best links with one-sided marginals, by entries for slack, as for one problem."""
    if search.callback is not None:
        raise ValueError('callback must be None in solve_shared where sense is not "="')
    first, shape = search.problems[0], search.problems[0].shape
    wide = search._replace(
        problems=[slack.Slacked.of(problem) for problem in search.problems],
        constraint=slack.room_for_slack(first, search.constraint),
        given=[*_all_slack(search.problems), *search.given],
    )
    best, starts = _find_shared(wide), search.effort.starts
    starts += tuple(inner for start in starts if isinstance(start, effort.Found) for inner in start.effort.starts)
    for start in starts:
        for pairs in search.mean_start(start) if isinstance(start, effort.Mean) else ():
            best = _better_shared(wide, best, [*_all_slack(search.problems), *pairs])
    plan = _without_slack(best.plan, shape)
    exact = on_links(search.problems, search.weights, pairs_of(plan.rows, plan.cols))  # with all slack that there is
    plan = plan._replace(rows=exact.rows, cols=exact.cols, mass=exact.mass)
    if plan.status is Status.LOCAL and not slack.has_room(first, search.constraint, plan.rows, plan.cols):
        return plan._replace(status=Status.BUDGET_USED)
    return plan


def on_links(problems: list[Problem], weights: Floats, links: list[Pair]) -> SharedOutcome:
    """The exact plans of scenarios on given links."""
    sided = any(problem.is_sided for problem in problems)
    wide = [slack.Slacked.of(problem) for problem in problems] if sided else problems
    solver = SharedSolver(wide, weights, Constraint(None, wide[0].shape), DEFAULT.tuning)
    solver.seed(links, _all_slack(problems) if sided else [])
    return _without_slack(solver.outcome(), problems[0].shape) if sided else solver.outcome()


def _all_slack(problems: list[Problem]) -> list[Pair]:
    """The entries for slack of scenarios that have the same senses."""
    return list(dict.fromkeys(pair for problem in problems for pair in slack.slack_pairs(problem)))


def _without_slack(plan: SharedOutcome, shape: tuple[int, int]) -> SharedOutcome:
    kept = slack.without_slack(plan.as_outcome(), shape)
    return plan._replace(rows=kept.rows, cols=kept.cols, mass=kept.mass, start=kept.start, record=kept.record)


def _find_shared(search: SharedSearch) -> Reached:
    found = [start.effort for start in search.effort.starts if isinstance(start, effort.Found)]
    if found:
        best = _find_shared(search._replace(effort=found[0]))
    else:
        best = search.run(search.given, search.callback)
    others = [pairs_of(best.plan.rows, best.plan.cols)] if found else search.starts()
    for start in others:
        best = _better_shared(search, best, start)
    for how in finish_of(search.effort):
        rng, spent = np.random.default_rng(how.seed), 0.0
        for _ in range(how.rounds):
            rows, cols = best.plan.rows, best.plan.cols
            if rows.size < 2 or best.plan.status in ENDED or spent + best.operations > how.operations:
                break
            costs = np.array([problem.cost.entries(rows, cols) for problem in search.problems])
            kept = part_of(search.weights @ best.plan.mass, search.weights @ costs, how.share, rng)
            best = _better_shared(search, best, pairs_of(rows[kept], cols[kept]))
            spent += best.operations
    return best


def _better_shared(search: SharedSearch, best: Reached, start: list[Pair]) -> Reached:
    """The best links so far, or those that another start leads to, if they are better."""
    if best.plan.status is Status.STOPPED:
        return best
    other = search.run(start, None)
    if not other.objective < best.objective - 1e-12 * abs(best.objective):
        return best._replace(operations=other.operations)
    best.plan.record.jump(best.plan.as_outcome(), other.plan.as_outcome(), other.objective)
    return other._replace(plan=other.plan._replace(start=best.plan.start, record=best.plan.record))
