"""What a solve does: the starts and improvers of its `Effort`, one after the other, until it may stop.

A start names links to begin with, an improver makes a plan better. Each is a value of `effort`, and the functions that
carry them out are registered by its type, starts here and improvers in `improvers`. Plans of one problem, of scenarios
that share their links (`shared_strategy`), and of budgets that only their own function knows go the same way; the
solvers behind them differ.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from . import effort, hard
from ._checks import to_numpy
from .budgets import Pair, pairs_of
from .certify import bounds, one_to_one
from .charged import slope_scaled
from .effort import DEFAULT, QUICK, Effort
from .engine import matching, slack
from .engine.omp_solver import OMPSolver
from .engine.shell import better, jumped
from .forest.tree_solver import TreeSolver
from .improvers import finish_of, improve_all, part_of
from .inner.solvers import EXACT, UnboundedError
from .large import is_large, within_budget
from .optimum import (
    is_worth_a_jump,
    keep_optimum,
    links_before_jump,
    optimum_from,
    prices,
    unbudgeted_optimum,
)
from .plan import Outcome, Record, Step, nothing
from .problem import Problem
from .search import ENDED, Links, Search
from .select.generic_greedy import Rule, maximise
from .status import Status

_SEARCH = effort.TreeSearch()


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
        raise ValueError('callback must be None where sense is not "=", unless kernels are Delta() and reg is 0')
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
    if plan.status is Status.LOCAL and not slack.has_room(problem, search.constraint, plan.rows, plan.cols):
        return plan._replace(status=Status.BUDGET_USED)
    return plan


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
    sought = hard.lifted(hard.clipped(problem), how.hard_least)
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
            hard.relaxed(sought, weight, costs),
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
    improve_all(QUICK.improvers if is_larger else how.improvers, solver)
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
    for how in finish_of(search.effort):
        best = _regrow(how, search, best)
    return best


def _better(search: Search, best: Outcome | None, plan: Outcome) -> Outcome:
    """The better plan of the two; if one is proven optimal, so is another one that is as good."""
    found = plan if best is None else better(search.problem, best, plan)
    return found._replace(status=plan.status) if plan.status is Status.OPTIMAL_PROVEN else found


def _improved(solver: Any, search: Search) -> Outcome:
    """What the improvers make of a start."""
    improve_all(search.effort.improvers, solver)
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
        kept = part_of(best.mass, search.problem.cost.entries(best.rows, best.cols), how.share, rng)
        try:
            plan = _improved(search.omp(Links(pairs_of(best.rows[kept], best.cols[kept]), best.mass[kept])), search)
        except UnboundedError:  # exchanges may lead where the objective has no minimum
            break
        spent += search.operations
        best = better(search.problem, best, plan)
        if plan.status is Status.STOPPED:
            return best._replace(status=Status.STOPPED)
    return best


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
    if grown.status in ENDED or charged:
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
            raise TypeError(f"effort must hold improvers of trees, got {improver!r}")
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
    before = links_before_jump(problem, most, search.effort)
    jumps = is_worth_a_jump(problem, most, search.effort)
    looks = jumps or search.on_trees
    many = search.effort.grown_tree_links if problem.has_trees else search.effort.placed
    is_long = looks and len(given.pairs) > many
    if not is_long:  # to begin with many links takes long, and a jump may spare that
        solver.seed(*given)
    if looks:
        is_cut = solver.grow(before)
        grown = solver.outcome()
        if grown.status in ENDED:
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


def smaller(search: Search, how: Effort, problem: Problem | None = None) -> Outcome:
    """The plan that another effort finds, for the problem of a search or for one like it, which begins with nothing."""
    given, callback = (search.given, search.callback) if problem is None else (Links([]), None)
    one = Search(
        search.problem if problem is None else problem,
        search.constraint,
        how,
        given=given,
        tol=search.tol,
        callback=callback,
        deadline=search.deadline,
    )
    if problem is None:
        one.gap_test = search.gap_test
    return find(one)


# --- starts ----------------------------------------------------------------------------------------------------------

Begun = OMPSolver | Links | Outcome
"""A solver to improve, links for a solver on trees, or a plan that is there already."""


@singledispatch
def begin(start: Any, search: Search, best: Outcome | None) -> Iterator[Begun]:
    """Where a start begins, if it applies; ``best`` is the best plan so far."""
    raise TypeError(f"effort must hold registered starts, got {start!r}")


@begin.register
def _(start: effort.Grown, search: Search, best: Outcome | None) -> Iterator[Begun]:
    if search.on_trees:
        assert best is not None
        is_long = len(search.given.pairs) > search.effort.grown_tree_links
        if search.given.pairs or not search.is_cut:
            yield search.given if is_long else Links.of(best)
        return
    solver = search.omp(told=True)
    finished = _grow(search, solver)
    yield solver if finished is None else finished


@begin.register
def _(start: effort.Found, search: Search, best: Outcome | None) -> Iterator[Begun]:
    plan = smaller(search, start.effort) if search.found is None else search.found
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
        yield search.omp(Links.of(smaller(search, DEFAULT, replace(problem, reg=0.0))), told=False)


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
        yield search.omp(Links.of(smaller(search, DEFAULT, replace(problem, reg=reg))))


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
        for pairs in random_pairs(start, search.problem):
            solver = search.omp(Links(pairs))
            yield solver
            spent += solver.effort[0]
            if spent > start.operations:
                return


def random_pairs(start: effort.Random, problem: Problem, scenarios: int = 1) -> Iterator[list[Pair]]:
    """Random pairs to begin with, the same ones whatever the order of the points."""
    (m, n), rng = problem.shape, np.random.default_rng(0)
    count, size = start.looks // (m * n * scenarios), min(int(np.ceil(start.share * m * n)), start.pairs)
    if count:
        order = np.lexsort((np.multiply.outer(problem.a, problem.b).ravel(), problem.cost.rows(0, m).ravel()))
    for _ in range(min(start.count, count)):
        yield pairs_of(*np.divmod(order[rng.choice(m * n, size, replace=False)], n))
