"""What a solve does: the starts and improvers of its `Effort`, one after the other, until it may stop.

A start names links to begin with, an improver makes a plan better. Each is a value of `effort`, and the functions that
carry them out are registered here by its type. Plans of one problem, of scenarios that share their links, and of
budgets that only their own function knows go the same way; the solvers behind them differ.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from . import effort, hard
from ._checks import Floats, Ints, to_numpy
from ._progress import tell
from .budgets import Pair, free, pairs_of
from .certificate import CHEAP, PROVEN, TIGHT, Certificate
from .certify import bounds, one_to_one
from .certify.certifier import Certifier
from .charged import slope_scaled
from .effort import DEFAULT, QUICK, Effort
from .engine import matching, slack
from .engine.omp_solver import OMPSolver
from .engine.room import Constraint, fits
from .engine.shared_solver import SharedOutcome, SharedSolver
from .engine.shell import better, jumped
from .forest.local_search import TreeSolver
from .inner.solvers import EXACT, UnboundedError
from .large import is_large, within_budget
from .optimum import (
    is_listed,
    is_worth_a_jump,
    keep_optimum,
    links_before_jump,
    optimum_from,
    prices,
    unbudgeted_optimum,
)
from .plan import Callback, Outcome, Record, Step, as_arrays, nothing
from .problem import Problem, mean_problem
from .select.generic_greedy import Rule, maximise
from .status import Status

_ENDED = Status.STOPPED, Status.OPTIMAL, Status.OPTIMAL_PROVEN
_SEARCH = effort.TreeSearch()


class Links(NamedTuple):
    """Where to begin: pairs, and their masses if these are known."""

    pairs: list[Pair]
    mass: Floats | None = None

    @classmethod
    def of(cls, plan: Outcome) -> "Links":
        """The links of a plan."""
        return cls(pairs_of(plan.rows, plan.cols), plan.mass)


class GapTest:
    """True of a plan that is certified to be within a relative gap of the best one."""

    def __init__(self, certifier: Certifier, gap_tol: float) -> None:
        self.certifier, self.gap_tol = certifier, gap_tol
        self.proofs: dict[int, Certificate] = {}  # the cheap one, and the tight one

    def __call__(self, plan: Outcome) -> bool:
        """Compare with the cheap bound, and if that is not enough with the tight one, which is computed once."""
        value = self.certifier.problem.value(plan.rows, plan.cols, plan.mass)
        for tight in (CHEAP, TIGHT):
            if tight not in self.proofs:
                self.proofs[tight] = self.certifier(plan.rows, plan.cols, plan.mass, value, tight)
            gap = replace(self.proofs[tight], value=value).relative_gap
            tell(gap=f"gap {gap:.2%}")
            if gap <= self.gap_tol:
                return True
        return False


class Search:
    """One problem with one budget, what the user gave to begin with, and how much to do."""

    def __init__(
        self,
        problem: Problem,
        constraint: Constraint,
        how: Effort,
        *,
        given: Links,
        tol: float = EXACT,
        callback: Callback | None = None,
        gap_tol: float | None = None,
        deadline: float = np.inf,
        device: Any = None,
    ) -> None:
        self.problem, self.constraint, self.effort, self.given = problem, constraint, how, given
        self.device = device  # that finds the prices of a large problem
        self.found: Outcome | None = None  # in place of what a smaller effort would find
        self.tol, self.callback, self.tells_all = tol, callback, gap_tol is not None
        self.deadline = deadline  # of `time.monotonic`, after which the best plan so far must do
        self.on_trees = problem.has_trees and (problem.is_sided or problem.is_charged or not how.is_quick)
        self.operations = 0.0  # that the last plan took
        self.is_cut, self.seeks_optimum = False, True  # growing ended early; the unbudgeted optimum is a start on trees
        self.certifier = Certifier(problem, constraint.limits, tol, how, is_whole=constraint.oracle is None)
        self.gap_test = None if gap_tol is None else GapTest(self.certifier, gap_tol)

    def omp(self, links: Links | None = None, *, told: bool | None = None) -> OMPSolver:
        """A solver that begins with these links; the callback is told of its steps, or not."""
        solver = OMPSolver(
            self.problem,
            self.constraint,
            self.effort.tuning,
            listed=is_listed(self.problem, self.effort),
            tol=self.tol,
            callback=self.callback if (self.tells_all if told is None else told) else None,
        )
        solver.deadline = self.deadline
        if links is not None:
            solver.seed(*links)
        return solver

    def trees(self, plan: Outcome, links: Links) -> TreeSolver:
        """A solver on trees that begins with these links, and goes on with the record of a plan."""
        solver = TreeSolver(
            self.problem, self.constraint, plan, self.effort.tuning, tol=self.tol, callback=self.callback
        )
        solver.deadline = self.deadline
        mass = np.zeros(len(links.pairs)) if links.mass is None else links.mass
        solver.begin(*as_arrays(links.pairs), mass)
        return solver

    def is_enough(self, plan: Outcome) -> bool:
        """True if there is nothing left to do."""
        if plan.status in _ENDED or time.monotonic() > self.deadline:
            return True
        return self.gap_test is not None and self.gap_test(plan)

    def is_within(self, plan: Outcome) -> bool:
        """True if a plan keeps within the budget."""
        matroid, pairs = self.constraint.oracle, pairs_of(plan.rows, plan.cols)
        within = bool(fits(self.constraint.room(), plan.rows, plan.cols))
        return within and (matroid is None or all(matroid.can_add(pairs[:k], p) for k, p in enumerate(pairs)))

    def optimum(self, plan: Outcome) -> Outcome | None:
        """The unbudgeted optimum, sought from a plan; None where there is none, or rounding is in the way."""
        if self.problem.has_trees:
            return optimum_from(self.problem, plan)
        return self.certifier.full if self.certifier.is_bounded else None

    def proof(self, plan: Outcome) -> Certificate:
        """The tight certificate of a plan, or of an earlier one: its dual point is as good."""
        if self.gap_test is not None and TIGHT in self.gap_test.proofs:
            return self.gap_test.proofs[TIGHT]
        value = self.problem.value(plan.rows, plan.cols, plan.mass)
        return self.certifier(plan.rows, plan.cols, plan.mass, value, TIGHT)

    def smaller(self, how: Effort, problem: Problem | None = None) -> Outcome:
        """The plan that another effort finds, for the problem or for one like it, which begins with nothing."""
        given, callback = (self.given, self.callback) if problem is None else (Links([]), None)
        one = Search(
            self.problem if problem is None else problem,
            self.constraint,
            how,
            given=given,
            tol=self.tol,
            callback=callback,
            deadline=self.deadline,
        )
        if problem is None:
            one.gap_test = self.gap_test
        return find(one)


# --- one problem -----------------------------------------------------------------------------------------------------


def find(search: Search) -> Outcome:
    """The best plan that the starts and improvers of the effort lead to."""
    if search.problem.is_hard:
        return _find_hard(search)
    if search.problem.is_sided and not search.on_trees:
        return _find_with_slack(search)
    priced = _find_from_prices(search)
    if priced is not None:
        return priced
    plan = _find_on_trees(search) if search.on_trees else _find(search)
    if plan.status is Status.OPTIMAL and search.tol <= EXACT and not search.problem.is_charged:
        keep_optimum(search.problem, plan)
    return plan


def _find_with_slack(search: Search) -> Outcome:
    """The best plan with one-sided marginals and kernels or ``reg``, by entries for slack."""
    problem, how = search.problem, search.effort
    if search.callback is not None:
        raise ValueError('callback must not be given where sense is not "=", unless kernels are Delta() and reg is 0')
    pairs, slacks = slack.first_slack(problem)
    given, mass = search.given, None
    if not given.pairs or given.mass is not None:
        mass = np.append(slacks, np.zeros(0) if given.mass is None else given.mass)
    wide = Search(
        slack.Slacked.of(problem),
        slack.room_for_slack(problem, search.constraint),
        replace(how, starts=(effort.Grown(), effort.Optimum(eliminate=True)) if how.improves else (effort.Grown(),)),
        given=Links([*pairs, *given.pairs], mass),
        tol=search.tol,
        deadline=search.deadline,
    )
    plan = slack.without_slack(_find(wide), problem.shape)
    if plan.status is Status.LOCAL and not _has_room(search, plan):
        return plan._replace(status=Status.BUDGET_USED)
    return plan


def _has_room(search: Search, plan: Outcome) -> bool:
    """True if the budget would let another pair in that is not forbidden, as far as it counts entries."""
    held, n = pairs_of(plan.rows, plan.cols), search.problem.shape[1]
    for first, block in search.problem.cost.blocks():
        rows, cols = np.nonzero(np.isfinite(block))
        rows += first
        others = ~np.isin(rows * n + cols, plan.rows * n + plan.cols)
        if free(search.constraint.limits, held, rows[others], cols[others]).any():
            return True
    return False


def _find_hard(search: Search) -> Outcome:
    """The best plan that keeps the hard marginals, by soft problems with prices; or the one that misses least."""
    problem, how = search.problem, search.effort
    weights = how.charged_weights if problem.is_charged else how.hard_weights
    optimum = slope_scaled(problem, how) if problem.is_charged else unbudgeted_optimum(problem, how)
    is_within = search.is_within(optimum)
    if is_within and optimum.status is Status.OPTIMAL:
        optimum.record.jump(Outcome(*nothing(), Status.LOCAL, (), Record(), True), optimum, problem.value(*optimum[:3]))
        return optimum
    best, record = optimum if is_within else None, Record()
    if optimum.status is Status.INFEASIBLE:
        costs = hard.free(problem)
    else:
        costs = prices(problem.only(optimum.rows, optimum.cols) if problem.is_charged else problem, how)
    for k, weight in enumerate(weights):
        is_whole = best is None or k < (1 if problem.is_charged else how.hard_searches)
        start = search.given
        if best is not None and not (is_whole and (start.pairs or not problem.is_charged)):
            start = Links.of(best)
        one = Search(
            hard.relaxed(problem, weight, costs),
            search.constraint,
            how
            if is_whole
            else replace(
                how, tree_starts=(effort.Grown(),), tree_finish=(), charged_finish=(), starts=(effort.Grown(),)
            ),
            given=start,
            tol=search.tol,
            callback=search.callback if k == 0 else None,
            deadline=search.deadline,
        )
        plan = find(one)
        record = plan.record if k == 0 else record
        kept = unbudgeted_optimum(there := problem.only(plan.rows, plan.cols), how)
        status = plan.status if kept.status is Status.OPTIMAL else Status.INFEASIBLE
        if status is Status.OPTIMAL:
            status = Status.LOCAL
        kept = kept._replace(status=status, start=plan.start, record=record)
        if best is None or _misses_less(problem, kept, best):
            if best is not None:
                record.jump(best, kept, problem.value(*kept[:3]))
            best = kept
            if kept.status is not Status.INFEASIBLE and (problem.is_charged or k + 1 >= how.hard_searches):
                costs = prices(there, how)
        if plan.status is Status.STOPPED:
            return best._replace(status=Status.STOPPED)
        if time.monotonic() > search.deadline:
            break
    assert best is not None, "an effort must have hard_weights"
    return best


def _misses_less(problem: Problem, first: Outcome, second: Outcome) -> bool:
    """True if a plan misses less of the hard marginals than another, or costs less where both miss nothing."""
    missed, other = (sum(float(each @ each) for each in problem.missed(*plan[:3])) for plan in (first, second))
    if missed or other:
        return missed < other * (1.0 - 1e-9)
    return problem.value(*first[:3]) < problem.value(*second[:3])


def _find_from_prices(search: Search) -> Outcome | None:
    """The plan of a large problem; None if it is not large, or is solved without prices."""
    how = search.effort.prices
    if how is None or not is_large(search.problem, search.effort) or search.given.pairs:
        return None
    if search.constraint.oracle is not None:
        return None
    gap_tol = None if search.gap_test is None else search.gap_test.gap_tol
    return within_budget(
        search.problem,
        search.constraint,
        how,
        callback=search.callback,
        gap_tol=gap_tol,
        deadline=search.deadline,
        device=search.device,
    )


def find_by_rule(search: Search, rule: Rule, **options: Any) -> Outcome:
    """The plan that a selection rule makes, and what the improvers of the effort make of it."""
    how, problem = search.effort, search.problem
    matroid, told = options.pop("matroid"), search.callback

    def callback(step: Step) -> bool:
        return (told is not None and bool(told(step))) or time.monotonic() > search.deadline

    plan = maximise(problem, matroid, rule, start=search.given.pairs, tol=search.tol, callback=callback, **options)
    if plan.status is Status.STOPPED or not how.improves:
        return plan
    solver = search.omp(Links.of(plan), told=False)
    seeded = solver.outcome()
    if len(seeded.rows) < len(plan.rows):  # those without mass have left
        plan.record.jump(plan, seeded, problem.value(seeded.rows, seeded.cols, seeded.mass))
    solver.record, solver.callback = plan.record, search.callback  # from here on the steps are those of the improvers
    is_larger = any(isinstance(start, effort.Found) for start in how.starts)
    _improve_all(QUICK.improvers if is_larger else how.improvers, solver)
    search.found = solver.outcome()._replace(start=plan.start)
    if is_larger and not search.is_enough(search.found):
        return _find_on_trees(search) if search.on_trees else _find(search)
    return search.found


def _find(search: Search) -> Outcome:
    best: Outcome | None = None
    for start in search.effort.starts:
        for begun in begin(start, search, best):
            plan = begun if isinstance(begun, Outcome) else _improved(begun, search)
            best = _better(search, best, plan)
            if plan.status is Status.STOPPED:
                return best._replace(status=Status.STOPPED)
            if search.is_enough(best):
                return best
    assert best is not None, "an effort must begin with Grown or Found"
    for how in _finish_of(search.effort):
        best = _regrow(how, search, best)
    return best


def _better(search: Search, best: Outcome | None, plan: Outcome) -> Outcome:
    """The better plan of the two; if one is proven optimal, so is another one that is as good."""
    found = plan if best is None else better(search.problem, best, plan)
    return found._replace(status=plan.status) if plan.status is Status.OPTIMAL_PROVEN else found


def _finish_of(how: Effort) -> Iterator[effort.Regrow]:
    """The improvers of the best plan."""
    for improver in how.finish:
        if not isinstance(improver, effort.Regrow):
            raise TypeError(f"effort: {improver!r} is no improver of the best plan")
        yield improver


def _improved(solver: Any, search: Search) -> Outcome:
    """What the improvers make of a start."""
    _improve_all(search.effort.improvers, solver)
    search.operations = float(solver.effort[0])
    plan: Outcome = solver.outcome()
    return plan


def _regrow(how: effort.Regrow, search: Search, best: Outcome) -> Outcome:
    """The best plan after some rounds of dropping links and growing again."""
    rng, spent = np.random.default_rng(how.seed), 0.0
    most = how.operations if search.constraint.oracle is None else how.asking
    for _ in range(how.rounds):
        if best.rows.size < 2 or search.is_enough(best) or spent + search.operations > most:
            break
        kept = _part(best.mass, search.problem.cost.entries(best.rows, best.cols), how.share, rng)
        try:
            plan = _improved(search.omp(Links(pairs_of(best.rows[kept], best.cols[kept]), best.mass[kept])), search)
        except UnboundedError:  # exchanges may lead where the objective has no minimum
            break
        spent += search.operations
        best = better(search.problem, best, plan)
        if plan.status is Status.STOPPED:
            return best._replace(status=Status.STOPPED)
    return best


def _part(mass: Floats, cost: Floats, share: float, rng: np.random.Generator) -> Ints:
    """Which links to keep, if a share of them is dropped: one less at least, and one at least.

    Draws are made from the links in the order of their masses and costs, so that they are the same for a problem whose
    points come in another order.
    """
    order = np.lexsort((cost, np.round(mass / (mass.max() or 1.0), 9)))
    return order[rng.permutation(mass.size)[: max(mass.size - max(round(share * mass.size), 1), 1)]]


def _improve_all(improvers: Sequence[Any], solver: OMPSolver | SharedSolver) -> None:
    """Carry out improvers, whose operations are limited by those of growing."""
    built = 0.0
    for improver in improvers:
        if not solver.stopped:
            improve(improver, solver, built)
        if isinstance(improver, effort.Grow):
            built = solver.effort[0]


def _find_on_trees(search: Search) -> Outcome:
    how, best = search.effort, None
    if not any(isinstance(start, effort.Found) for start in how.tree_starts):
        is_plain = not (search.problem.is_sided or search.problem.is_charged)
        best = _grown(search) if is_plain else _grown_on_trees(search)
        if search.is_enough(best):
            return best
    solver: TreeSolver | None = None
    for start in how.tree_starts:
        for begun in begin(start, search, best):
            if isinstance(begun, Outcome):
                best = _better(search, best, begun)
            else:
                assert isinstance(begun, Links)
                assert best is not None
                other = search.trees(best, begun)
                best = _improve_on_trees(how.tree_improvers, other, search)
                solver = other if solver is None or other.current < solver.current else solver
            if search.is_enough(best):
                return best
        if solver is not None and isinstance(start, effort.Matching):
            break
    assert best is not None, "an effort must begin with Grown or Found"
    finish = how.charged_finish if search.problem.is_charged else how.tree_finish
    return best if solver is None else _improve_on_trees(finish, solver, search)


def _grown_on_trees(search: Search) -> Outcome:
    """What was given, grown by local search on trees; or the unbudgeted optimum, where that is allowed."""
    charged, given = search.problem.is_charged, search.given
    if charged and not given.pairs:
        given = Links.of(slope_scaled(search.problem, search.effort))
    solver = search.trees(Outcome(*nothing(), Status.LOCAL, (), Record(), True), given)
    solver.improve(next((how for how in search.effort.tree_improvers if isinstance(how, effort.TreeSearch)), _SEARCH))
    grown = solver.outcome()
    if grown.status in _ENDED or charged:
        return grown
    optimum = optimum_from(search.problem, grown)
    if optimum is not None and search.is_within(optimum):
        return jumped(search.problem, grown, optimum)
    return grown


def _improve_on_trees(improvers: Sequence[Any], solver: TreeSolver, search: Search) -> Outcome:
    for improver in improvers:
        if isinstance(improver, effort.Perturb):
            _perturb(improver, solver, search)
        elif not isinstance(improver, effort.TreeSearch):
            raise TypeError(f"effort: {improver!r} is no improver on trees")
        elif not solver.stopped:
            solver.improve(improver)
    return solver.outcome()


def _perturb(how: effort.Perturb, solver: TreeSolver, search: Search) -> None:
    allowed = min(share * solver.effort[0] + free for share, free in how.limits)
    optimum, enough = search.problem.memo.get("optimum"), -np.inf
    if optimum is not None and search.seeks_optimum and how.close > 0.0 and not search.problem.is_charged:
        least = search.problem.value(optimum.rows, optimum.cols, optimum.mass)
        enough = least + how.close * abs(least)
    rng = np.random.default_rng(how.seed)
    for look in range(how.looks):
        if solver.stopped or (look and search.is_enough(solver.outcome())):
            return
        solver.perturb(how, allowed / how.looks, enough, rng)


def _grown(search: Search) -> Outcome:
    """What was given, grown; or the unbudgeted optimum, where it is found faster than a plan grows and is allowed."""
    solver = search.omp(told=True)
    finished = _grow(search, solver)
    if finished is None:
        solver.grow()
    return solver.outcome() if finished is None else finished


def _grow(search: Search, solver: OMPSolver) -> Outcome | None:
    """Grow what was given; the unbudgeted optimum where that is found faster and is allowed."""
    problem, most, given = search.problem, search.constraint.limits.most, search.given
    before = links_before_jump(problem, search.effort)
    jumps = is_worth_a_jump(problem, most, search.effort)
    looks = jumps or search.on_trees
    is_long = looks and len(given.pairs) > (before if problem.has_trees else search.effort.placed)
    if not is_long:  # to begin with many links takes long, and a jump may spare that
        solver.seed(*given)
    if looks:
        is_cut = solver.grow(before)
        grown = solver.outcome()
        if grown.status in _ENDED:
            return grown
        matroid = search.constraint.oracle
        if matroid is not None and matroid.is_matroid and grown.status is Status.BUDGET_USED:
            most = len(grown.rows)
            search.constraint = search.constraint.of_rank(most)
        search.is_cut = is_cut
        search.seeks_optimum = is_cut or (search.on_trees and most >= max(problem.shape))  # else it has more links
        optimum = optimum_from(problem, grown) if search.seeks_optimum else None
        if optimum is not None and search.is_within(optimum):
            return jumped(problem, grown, optimum)
        if search.on_trees and (optimum is not None or not is_cut):
            return grown
        if is_long:
            solver.restart()
            solver.seed(*given)
        search.is_cut = False
    return None


# --- starts ----------------------------------------------------------------------------------------------------------

Begun = OMPSolver | Links | Outcome
"""A solver to improve, links for a solver on trees, or a plan that is there already."""


@singledispatch
def begin(start: Any, search: Search, best: Outcome | None) -> Iterator[Begun]:
    """Where a start begins, if it applies; ``best`` is the best plan so far."""
    raise TypeError(f"effort: {start!r} is no start")


@begin.register
def _(start: effort.Grown, search: Search, best: Outcome | None) -> Iterator[Begun]:
    if search.on_trees:
        assert best is not None
        is_long = len(search.given.pairs) > links_before_jump(search.problem, search.effort)
        if search.given.pairs or not search.is_cut:
            yield search.given if is_long else Links.of(best)
        return
    solver = search.omp(told=True)
    finished = _grow(search, solver)
    yield solver if finished is None else finished


@begin.register
def _(start: effort.Found, search: Search, best: Outcome | None) -> Iterator[Begun]:
    plan = search.smaller(start.effort) if search.found is None else search.found
    yield plan
    if search.certifier.is_bounded:
        yield Links.of(plan) if search.on_trees else search.omp(Links.of(plan))


@begin.register
def _(start: effort.Matching, search: Search, best: Outcome | None) -> Iterator[Begun]:
    m, n = search.problem.shape
    limits, is_known = search.constraint.limits, search.constraint.oracle is None and m * n <= start.pairs
    if is_known and one_to_one.applies([search.problem], limits):
        _, rows, cols, masses = one_to_one.optimum([search.problem], [1.0], limits)
        yield Outcome(rows, cols, masses[0], Status.OPTIMAL_PROVEN, (), Record(), True)
        return
    free = not (search.on_trees and search.given.pairs) and search.constraint.oracle is None
    if free and m * n <= start.pairs and matching.is_one_to_one(search.constraint.limits):
        links = Links(matching.best_alone([search.problem], [1.0]))
        yield links if search.on_trees else search.omp(links, told=False)


@begin.register
def _(start: effort.Mean, search: Search, best: Outcome | None) -> Iterator[Begun]:
    yield from ()  # of scenarios alone


@begin.register
def _(start: effort.Unregularised, search: Search, best: Outcome | None) -> Iterator[Begun]:
    problem = search.problem
    if problem.has_deltas and problem.reg > 0.0 and not search.given.pairs:
        yield search.omp(Links.of(search.smaller(DEFAULT, replace(problem, reg=0.0))), told=False)


@begin.register
def _(start: effort.DualWish, search: Search, best: Outcome | None) -> Iterator[Begun]:
    (m, n), problem = search.problem.shape, search.problem
    if problem.reg > 0.0 and m * n <= start.pairs and best is not None and search.constraint.oracle is None:
        proof = search.proof(best)
        potentials = to_numpy(proof.potential_a), to_numpy(proof.potential_b)
        rows, cols, mass = bounds.suggested(problem, search.constraint.limits, *potentials)
        yield search.omp(Links(pairs_of(rows, cols), mass))


@begin.register
def _(start: effort.Regularised, search: Search, best: Outcome | None) -> Iterator[Begun]:
    problem = search.problem
    if problem.reg > 0.0 or best is None or not search.certifier.is_bounded:
        return
    with np.errstate(all="ignore"):  # masses may be too small or too large for their squares
        value = problem.value(best.rows, best.cols, best.mass)
        reg = float(2.0 * start.share * np.abs(value) / (best.mass @ best.mass))
    if 0.0 < reg < np.inf:
        yield search.omp(Links.of(search.smaller(DEFAULT, replace(problem, reg=reg))))


@begin.register
def _(start: effort.Optimum, search: Search, best: Outcome | None) -> Iterator[Begun]:
    if search.on_trees:
        applies = best is not None and search.seeks_optimum and not search.given.pairs
        optimum = search.optimum(best) if applies and best is not None else None
        if optimum is not None:
            yield Links.of(optimum)
        return
    optimum = search.optimum(best) if best is not None else None
    if optimum is None or optimum.rows.size > start.links:
        return
    if start.eliminate:
        solver = search.omp()
        solver.eliminate_from(pairs_of(optimum.rows, optimum.cols), optimum.mass)
        yield solver
    else:
        order = np.argsort(-optimum.mass, kind="stable")
        yield search.omp(Links(pairs_of(optimum.rows[order], optimum.cols[order])))


@begin.register
def _(start: effort.Random, search: Search, best: Outcome | None) -> Iterator[Begun]:
    spent = 0.0
    if search.certifier.is_bounded:
        for pairs in _random(start, search.problem):
            solver = search.omp(Links(pairs))
            yield solver
            spent += solver.effort[0]
            if spent > start.operations:
                return


def _random(start: effort.Random, problem: Problem, scenarios: int = 1) -> Iterator[list[Pair]]:
    """Random pairs to begin with, the same ones whatever the order of the points."""
    (m, n), rng = problem.shape, np.random.default_rng(0)
    count, size = start.looks // (m * n * scenarios), min(int(np.ceil(start.share * m * n)), start.pairs)
    if count:
        order = np.lexsort((np.multiply.outer(problem.a, problem.b).ravel(), problem.cost.rows(0, m).ravel()))
    for _ in range(min(start.count, count)):
        yield pairs_of(*np.divmod(order[rng.choice(m * n, size, replace=False)], n))


# --- improvers -------------------------------------------------------------------------------------------------------


@singledispatch
def improve(how: Any, solver: OMPSolver | SharedSolver, built: float) -> None:
    """Make the plan of a solver better; growing it took so many operations."""
    raise TypeError(f"effort: {how!r} is no improver for these kernels")


@improve.register
def _(how: effort.Grow, solver: OMPSolver | SharedSolver, built: float) -> None:
    solver.grow()


@improve.register
def _(how: effort.Swap, solver: OMPSolver | SharedSolver, built: float) -> None:
    solver.swap(how.free + how.share * max(built, 1.0), how.passes)


@improve.register
def _(how: effort.Eliminate, solver: OMPSolver | SharedSolver, built: float) -> None:
    extra = min(max(solver.size, how.least), how.most)
    solver.eliminate(extra, how.free + how.share * max(built, 1.0) if how.passes else 0.0, how.passes)


@improve.register
def _(how: effort.Repeat, solver: OMPSolver | SharedSolver, built: float) -> None:
    before = -np.inf
    while before < solver.gain and not solver.stopped:
        before = solver.gain * (1.0 + 1e-12)
        for improver in how.improvers:
            improve(improver, solver, built)


# --- scenarios that share their links --------------------------------------------------------------------------------


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
            _improve_all(how.improvers, solver)
            return Reached(solver.outcome(), solver.objective, float(solver.effort[0]))

    def operations(self, links: int) -> float:
        """About how many operations it takes to grow so many links."""
        (m, n), scenarios = self.problems[0].shape, len(self.problems)
        return float(scenarios * links) * (m * n + links * links / 3.0)

    def starts(self) -> Iterator[list[Pair]]:
        """Where else to begin."""
        (m, n), limits = self.problems[0].shape, self.constraint.limits
        for start in self.effort.starts:
            one_to_one = self.constraint.oracle is None and matching.is_one_to_one(limits)
            if isinstance(start, effort.Matching) and m * n <= start.pairs and one_to_one:
                yield matching.best_alone(self.problems, self.weights)
            if isinstance(start, effort.Mean) and self.operations(min(limits.most, m + n)) <= start.operations:
                given = Links([*self.fixed, *self.given])
                mean = mean_problem(self.problems, self.weights)
                yield Links.of(find(Search(mean, self.constraint, self.effort, given=given, tol=self.tol))).pairs
            if isinstance(start, effort.Random) and not all(problem.has_trees for problem in self.problems):
                yield from _random(start, mean_problem(self.problems, self.weights), len(self.problems))


def find_shared(search: SharedSearch) -> SharedOutcome:
    """The best links that the starts and improvers of the effort lead to."""
    outcome, objective, _ = _find_shared(search)
    limits, oracle = search.constraint.limits, search.constraint.oracle
    if outcome.status is Status.STOPPED or oracle is not None or not one_to_one.applies(search.problems, limits):
        return outcome
    bound = one_to_one.optimum(search.problems, search.weights, limits)[0]
    is_proven = objective - bound <= PROVEN * abs(objective)
    return outcome._replace(status=Status.OPTIMAL_PROVEN) if is_proven else outcome


def _find_shared(search: SharedSearch) -> Reached:
    found = [start.effort for start in search.effort.starts if isinstance(start, effort.Found)]
    if found:
        best = _find_shared(search._replace(effort=found[0]))
    else:
        best = search.run(search.given, search.callback)
    others = [pairs_of(best.plan.rows, best.plan.cols)] if found else search.starts()
    for start in others:
        best = _better_shared(search, best, start)
    for how in _finish_of(search.effort):
        rng, spent = np.random.default_rng(how.seed), 0.0
        for _ in range(how.rounds):
            rows, cols = best.plan.rows, best.plan.cols
            if rows.size < 2 or best.plan.status in _ENDED or spent + best.operations > how.operations:
                break
            costs = np.array([problem.cost.entries(rows, cols) for problem in search.problems])
            kept = _part(search.weights @ best.plan.mass, search.weights @ costs, how.share, rng)
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
