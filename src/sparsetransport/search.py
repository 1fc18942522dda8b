"""The search for a plan: the loop that the options ask for, its polish, and other starts while a gap is open."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from . import _checks
from .budgets import Limits, Matroid, Pair, counts, limits_of, pairs_of
from .build_result import assemble
from .certify import bounds
from .certify.certifier import Prover
from .engine.omp_solver import Engine
from .forest import trees
from .forest.local_search import Grafts
from .inner.solvers import EXACT, UnboundedError
from .options import Options, as_start
from .plan import Callback, Outcome, Record
from .problem import Problem, warn_of_rounding
from .result import Certificate, Result, Status
from .select.exchange import exchange
from .select.generic_greedy import maximise
from .select.omp import OMP
from .strategy_run import better, run

_ALL_THE_SAME = 1e-8  # of a relative gap: what rounding may leave of the optimum's
_SUGGEST_UP_TO = 5_000_000  # pairs, where the dual's wishes are looked at all at once
_REVERSE_UP_TO = 4000  # entries of the plan without a budget, beyond which no start is made of it
_SMOOTH = 0.01  # of the objective is the quadratic term that a start is made with where there is none
_RESTARTS = 24  # random ones while a gap is open,
_RESTART_LOOKS = 50_000_000  # or as many as have so many pairs together,
_RESTART_PAIRS = 25_000  # each from a quarter of all pairs or from so many,
_RESTART_EFFORT = 1e8  # until this many operations are spent
_SHAKE_SHARE, _SHAKE_FREE = 20.0, 2e7  # operations of shaking a forest: for one of the changes before, and on top,
_SHAKE_LOOKS = 10  # with so many looks at the gap


def solve_checked(problem: Problem, options: Options, give: Any, first: Prover | None = None) -> Result:
    """Choose the way, go it, and wrap up what comes out; the first prover may know the plan without a budget."""
    matroid, tol = options.matroid, options.tol
    limits = limits_of(matroid, problem.shape)
    start = options.start
    if start.shape not in (None, problem.shape):
        raise ValueError(f"start must be a plan of shape {problem.shape}, got shape {start.shape}")
    _checks.inside("start", start.pairs, problem.shape)
    warn_of_rounding(problem)
    if options.compiled:
        how = {"polish": options.polish, "grafts": options.grafts}
        outcome = run(problem, limits, start.pairs, tol, options.callback, masses=start.mass, **how)
    else:
        outcome = maximise(
            problem,
            matroid,
            options.rule,
            inner=options.solver(problem, tol, options.max_iter),
            reclaim=options.reclaim,
            rng=options.rng,
            tol=tol,
            start=start.pairs,
            callback=options.callback,
        )
        if options.polish and outcome.status is not Status.STOPPED:
            outcome = _polish(problem, matroid, limits, outcome, tol, options.callback)
    prover = Prover(problem, limits, tol, first)
    if options.compiled and outcome.status is Status.OPTIMAL and tol <= EXACT:
        prover.full = outcome
    result = assemble(outcome, prover, give)
    if options.gap_tol is not None and outcome.status is not Status.STOPPED:
        result = _close_gap(result, outcome, prover, options)
    return result


def solve_after(problem: Problem, options: Options, give: Any, first: Prover, earlier: Iterable[Result]) -> Result:
    """Solve, and where a plan of a smaller budget is better, once more from it; the better one of the two."""
    result = solve_checked(problem, options, give, first)
    best = min(earlier, key=lambda one: one.value, default=result)
    if best.value >= result.value or result.status is Status.STOPPED:
        return result
    again = solve_checked(problem, options._replace(start=as_start(best)), give, first)
    if again.value < result.value or again.status is not Status.STOPPED:
        return min(result, again, key=lambda one: one.value)
    return replace(result, status=Status.STOPPED)


def _polish(
    problem: Problem,
    matroid: Matroid | None,
    limits: Limits,
    outcome: Outcome,
    tol: float,
    callback: Callback | None,
) -> Outcome:
    """Exchange entries of a plan that the general loop made, and keep its steps."""
    if matroid is not None and not counts(matroid):
        return _polish_by_oracle(problem, matroid, limits, outcome, tol, callback)
    engine = Engine(problem, limits, tol=tol)
    engine.seed(pairs_of(outcome.rows, outcome.cols), outcome.mass)
    seeded = engine.outcome()
    if len(seeded.rows) < len(outcome.rows):  # those without mass have left
        outcome.record.jump(outcome, seeded, problem.value(seeded.rows, seeded.cols, seeded.mass))
    engine.record, engine.callback = outcome.record, callback  # from here on the steps are those of the polish
    engine.grow()
    engine.polish(thorough=False)
    return engine.outcome()._replace(start=outcome.start)


def _polish_by_oracle(
    problem: Problem, matroid: Matroid, limits: Limits, outcome: Outcome, tol: float, callback: Callback | None
) -> Outcome:
    """The same where only the user can tell what is allowed: exchanges, also of what a looser budget leaves over."""
    outcome = exchange(problem, matroid, outcome, tol, callback)
    if outcome.status is Status.STOPPED:
        return outcome
    try:
        looser = run(problem, limits, [], tol, polish=True)
    except UnboundedError:
        return outcome
    other = maximise(problem, matroid, OMP(), tol=tol, start=_largest_first(looser))
    return better(problem, outcome, exchange(problem, matroid, other, tol))


def _largest_first(plan: Outcome) -> list[Pair]:
    """The pairs of a plan, those with the most mass first."""
    order = np.argsort(-plan.mass, kind="stable")
    return pairs_of(plan.rows[order], plan.cols[order])


def _close_gap(result: Result, outcome: Outcome, prover: Prover, options: Options) -> Result:
    """Prove the plan good enough, or look for a better one from other starts and say whether that one is."""
    gap_tol = options.gap_tol or 0.0
    if result.status is Status.ALL_FORBIDDEN:
        return result
    if result.status in (Status.OPTIMAL, Status.EMPTY) and result.relative_gap <= max(gap_tol, _ALL_THE_SAME):
        return result
    if result.relative_gap <= gap_tol or result.certify().relative_gap <= gap_tol:
        return replace(result, status=Status.GAP_REACHED)
    proof = result.certify()
    for other in _other_plans(prover, options, outcome, proof) if prover.is_bounded else ():
        before, outcome = outcome, better(prover.problem, outcome, other)
        if outcome is not before:
            result = assemble(outcome, prover, result._give)
            result._proofs[True] = replace(proof, value=result.value)  # a bound is one for all plans
        if other.status is Status.STOPPED:
            return replace(result, status=Status.STOPPED)
        if result.relative_gap <= gap_tol:
            break
    return replace(result, status=Status.GAP_REACHED if result.relative_gap <= gap_tol else Status.GAP_OPEN)


def _other_plans(prover: Prover, options: Options, plan: Outcome, proof: Certificate) -> Iterator[Outcome]:
    """Plans from this one and from other starts, as good as exchanges make them."""
    if options.counting and trees.fits(prover.problem):
        yield from _shaken(prover, options.callback, plan)
    elif options.counting:
        for engine in _other_starts(prover, options.callback, plan, proof):
            engine.grow()
            engine.polish(thorough=True)
            yield engine.outcome()
    elif options.matroid is not None and prover.full.rows.size <= _REVERSE_UP_TO:
        problem, matroid, tol, told = prover.problem, options.matroid, prover.tol, options.callback
        begun = maximise(problem, matroid, OMP(), tol=tol, start=_largest_first(prover.full), callback=told)
        yield begun if begun.status is Status.STOPPED else exchange(problem, matroid, begun, tol, told)


def _shaken(prover: Prover, callback: Callback | None, plan: Outcome) -> Iterator[Outcome]:
    """Where links without a cycle do: what long shaking makes of the plan, and of what is left of the optimum."""
    plan, rng = plan._replace(record=Record()), np.random.default_rng(1)
    for start in (plan, prover.full):
        search = Grafts(prover.problem, prover.limits, plan, tol=prover.tol, callback=callback)
        search.begin(start.rows, start.cols, start.mass)
        search.improve()
        allowed = _SHAKE_SHARE * search.effort[0] + _SHAKE_FREE
        for _ in range(_SHAKE_LOOKS):
            search.shake(allowed / _SHAKE_LOOKS, -np.inf, rng)
            yield search.outcome()


def _other_starts(prover: Prover, callback: Callback | None, plan: Outcome, proof: Certificate) -> Iterator[Engine]:
    """Where else to begin.

    The plan itself; what the dual asks for, or where there is no ``reg`` the plan with some; the plan without a budget,
    built or cut down; random pairs.
    """
    (m, n), rng, effort = prover.problem.shape, np.random.default_rng(0), 0.0
    begin = partial(Engine, prover.problem, prover.limits, tol=prover.tol, callback=callback)
    engine = begin()
    engine.seed(pairs_of(plan.rows, plan.cols), plan.mass)
    yield engine
    if prover.problem.reg > 0.0 and m * n <= _SUGGEST_UP_TO:
        engine = begin()
        potentials = _checks.to_numpy(proof.potential_a), _checks.to_numpy(proof.potential_b)
        rows, cols, mass = bounds.suggested(prover.problem, prover.limits, *potentials)
        engine.seed(pairs_of(rows, cols), mass)
        yield engine
    with np.errstate(all="ignore"):  # masses may be too small or too large for their squares
        reg = float(2.0 * _SMOOTH * np.abs(proof.value) / (plan.mass @ plan.mass))
    if prover.problem.reg == 0.0 and 0.0 < reg < np.inf:
        engine = begin()
        spread = run(replace(prover.problem, reg=reg), prover.limits, [], prover.tol, polish=True)
        engine.seed(pairs_of(spread.rows, spread.cols), spread.mass)
        yield engine
    if prover.full.rows.size <= _REVERSE_UP_TO:
        engine = begin()
        engine.seed(_largest_first(prover.full))
        yield engine
        engine = begin()
        engine.reverse(prover.full)
        yield engine
    for _ in range(min(_RESTARTS, _RESTART_LOOKS // (m * n))):
        engine = begin()
        drawn = rng.choice(m * n, min(-(-m * n // 4), _RESTART_PAIRS), replace=False)
        engine.seed(pairs_of(*np.divmod(drawn, n)))
        yield engine
        effort += engine.effort[0]
        if effort > _RESTART_EFFORT:
            return
