"""What a solve found as users see it: a result with its figures, its path and what proves it."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from . import _checks
from ._checks import Ints
from .budgets import Limits
from .certify.certifier import Prover
from .inner.apgd import kkt_residual
from .inner.solvers import EXACT, ActiveSet
from .plan import Outcome, Record
from .problem import Problem
from .result import Certificate, Parts, Result, Status

SMALL_RESIDUAL = 1e-5  # of a relative KKT residual: larger means that something went wrong


def assemble(outcome: Outcome, prover: Prover, give: Any) -> Result:
    """An outcome as users see it: entries with mass only."""
    problem = prover.problem
    kept = outcome.mass > 0.0
    rows, cols, mass = outcome.rows[kept], outcome.cols[kept], outcome.mass[kept]
    r, c = problem.fields(rows, cols, mass)
    marginals = problem.marginals(rows, cols, mass)
    linear = float(problem.cost.entries(rows, cols) @ mass)
    missed = 0.5 * float(r @ (marginals[0] - problem.a) + c @ (marginals[1] - problem.b))
    value = linear + missed + 0.5 * problem.reg * float(mass @ mass)
    wanted = problem.a, problem.b
    parts = Parts(
        rows, cols, mass, problem.shape, value, linear, wanted, marginals, (-r, -c), problem.points, problem.constant
    )
    gradient = problem.gradient((r, c), outcome.rows, outcome.cols) + problem.reg * outcome.mass
    residual = kkt_residual(gradient, outcome.mass) / problem.scale if problem.scale else 0.0
    status = outcome.status.said_of(parts, problem.cost.has_pairs)
    converged = outcome.converged and residual <= max(SMALL_RESIDUAL, prover.tol)
    if not converged and status is not Status.BASELINE:  # whose masses need not be optimal for our objective
        _checks.warn(
            f"the inner solver stopped at a relative KKT residual of {residual:.2g}: with inner='apgd' raise max_iter, "
            "else the problem is badly conditioned, and a larger reg or a smaller unbalanced helps",
            _checks.ConvergenceWarning,
        )

    return Result(
        status,
        converged,
        residual,
        outcome.record.path(outcome.start, partial(restricted, prover, give)),
        {"steps": len(outcome.record), "unbalanced": problem.unbalanced, "reg": problem.reg},
        parts,
        give,
        partial(proof_of, prover, parts, give),
    )


def proof_of(prover: Prover, parts: Parts, give: Any, tight: bool) -> Certificate:
    """A certificate with the user's kind of arrays."""
    proof = prover(parts, tight)
    arrays = {name: give(getattr(proof, name)) for name in ("potential_a", "potential_b", "u", "v")}
    return replace(proof, **arrays)


def restricted(prover: Prover, give: Any, rows: Ints, cols: Ints, entries: int) -> Result:
    """The exact plan on a support, compared with all others within the budget of at most so many entries."""
    limits = prover.limits._replace(total=min(prover.limits.total, max(entries, 1)))
    return on_support(prover.problem, rows, cols, limits, give)


def on_support(problem: Problem, rows: Ints, cols: Ints, limits: Limits, give: Any) -> Result:
    """The exact solution on a support, as a result within the limits."""
    solution = ActiveSet(problem).solve(rows, cols, np.zeros(len(rows)))
    outcome = Outcome(rows, cols, solution.mass, Status.GIVEN, (), Record(), solution.converged)
    return assemble(outcome, Prover(problem, limits, EXACT), give)
