"""What a solve found as users see it: a result with its figures, its path and what proves it."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from . import _checks, hard
from ._checks import Floats, Ints
from .budgets import Limits
from .certify.certifier import Certifier
from .effort import DEFAULT, Effort
from .inner.apgd import kkt_residual
from .inner.solvers import EXACT, ActiveSet
from .optimum import potentials, unbudgeted_optimum
from .plan import Outcome, Record
from .problem import Problem
from .result import Certificate, Parts, Result, Status

SMALL_RESIDUAL = 1e-5  # of a relative KKT residual: larger means that something went wrong


class Backing:
    """What a result asks for proofs, and for plans of smaller budgets; its certifier may be made when first needed."""

    def __init__(self, certifier: Certifier | Callable[[], Certifier], give: Callable[[Any], Any]) -> None:
        self._certifier, self.give = certifier, give

    @property
    def certifier(self) -> Certifier:
        """The certifier, made now if it is not there yet."""
        if not isinstance(self._certifier, Certifier):
            self._certifier = self._certifier()
        return self._certifier

    def __getstate__(self) -> dict[str, Any]:
        return {"_certifier": self.certifier, "give": self.give}

    def prove(self, parts: Parts, level: int) -> Certificate:
        """The cheap or the tight certificate, with the user's kind of arrays."""
        proof = self.certifier(parts.rows, parts.cols, parts.mass, parts.value, level)
        arrays = {name: self.give(getattr(proof, name)) for name in ("potential_a", "potential_b", "u", "v")}
        return replace(proof, **arrays)

    def prove_further(
        self, parts: Parts, known: Certificate, how: Effort, gap_tol: float, seconds: float | None
    ) -> Certificate:
        """The certificate after stronger bounds than those that are known, and the better plan that they found."""
        deadline = np.inf if seconds is None else time.monotonic() + seconds
        plan = parts.rows, parts.cols, parts.mass
        proof, better = self.certifier.prove_further(plan, known, how, gap_tol, deadline)
        return proof if better is None else replace(proof, better=self._as_result(better, self.certifier))

    def _as_result(self, plan: tuple[Ints, Ints, Floats], certifier: Certifier) -> Result:
        return build_result(Outcome(*plan, Status.GIVEN, (), Record(), True), certifier, self.give)

    def least_links(self) -> float:
        """A number of links below which no plan keeps the hard marginals."""
        return hard.least_links(self.certifier.problem)

    def restrict(self, rows: Ints, cols: Ints, entries: int) -> Result:
        """The exact plan on a support, compared with all others within the budget of at most so many entries."""
        limits = self.certifier.limits
        limits = limits._replace(total=min(limits.total, max(entries, 1)))
        return on_support(self.certifier.problem, rows, cols, limits, self.give)


def build_result(outcome: Outcome, certifier: Certifier, give: Callable[[Any], Any]) -> Result:
    """An outcome as users see it: entries with mass only."""
    problem = certifier.problem
    kept = outcome.mass > 0.0
    rows, cols, mass = outcome.rows[kept], outcome.cols[kept], outcome.mass[kept]
    marginals = problem.marginals(rows, cols, mass)
    linear = float(problem.cost.entries(rows, cols) @ mass)
    if problem.is_plain:
        r, c = problem.fields(rows, cols, mass)
        missed = 0.5 * float(r @ (marginals[0] - problem.a) + c @ (marginals[1] - problem.b))
        value = linear + missed + 0.5 * problem.reg * float(mass @ mass)
    else:
        r, c = (-each for each in potentials(problem, certifier.effort, rows, cols, mass))
        value = problem.value(rows, cols, mass)
    wanted = problem.a, problem.b
    parts = Parts(
        rows,
        cols,
        mass,
        problem.shape,
        value,
        linear,
        wanted,
        marginals,
        (-r, -c),
        problem.points,
        problem.constant if problem.constant < np.inf else 0.0,
        problem.sense,
        problem.unbalanced,
    )
    gradient = problem.gradient((r, c), outcome.rows, outcome.cols) + problem.reg * outcome.mass
    scale = problem.scale if problem.is_plain else max(float(np.abs(r).max()), float(np.abs(c).max()))
    residual = kkt_residual(gradient, outcome.mass) / scale if scale else 0.0
    if outcome.status is Status.INFEASIBLE:
        residual = 0.0  # potentials run away where no plan keeps the marginals
    status = outcome.status.said_of(parts, problem.cost.has_pairs, certifier.tol <= EXACT, problem.is_lost)
    converged = outcome.converged and residual <= max(SMALL_RESIDUAL, certifier.tol)
    if not converged and status is not Status.BASELINE:  # whose masses need not be optimal for our objective
        _checks.warn(
            f"the inner solver stopped at a relative KKT residual of {residual:.2g}: with inner='apgd' raise max_iter, "
            "else the problem is badly conditioned, and a larger reg or a smaller unbalanced helps",
            _checks.ConvergenceWarning,
        )
    backing = Backing(certifier, give)
    path = outcome.record.path(outcome.start, backing.restrict)
    log = {
        "steps": len(outcome.record),
        "unbalanced": problem.unbalanced,
        "reg": problem.reg,
        "sense": problem.sense,
    }
    return Result(status, converged, residual, path, log, parts, backing)


def on_support(
    problem: Problem, rows: Ints, cols: Ints, limits: Limits, give: Callable[[Any], Any] = _checks.as_numpy
) -> Result:
    """The exact solution on a support, as a result within the limits."""
    if not problem.is_plain:
        found = unbudgeted_optimum(problem.only(rows, cols), DEFAULT)
        status = Status.GIVEN if found.status is Status.OPTIMAL else found.status
        outcome = Outcome(found.rows, found.cols, found.mass, status, (), Record(), True)
        return build_result(outcome, Certifier(problem, limits, EXACT), give)
    solution = ActiveSet(problem).solve(rows, cols, np.zeros(len(rows)))
    outcome = Outcome(rows, cols, solution.mass, Status.GIVEN, (), Record(), solution.converged)
    return build_result(outcome, Certifier(problem, limits, EXACT), give)
