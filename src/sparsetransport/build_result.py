"""What a solve found as users see it: a result with its figures, its path and what proves it."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from . import _checks, mapping, saved
from ._checks import Floats, Ints
from .budgets import UNLIMITED, Limits
from .certify.certifier import Certifier
from .geometry.matrices import Gram
from .inner.apgd import kkt_residual
from .inner.solvers import EXACT, ActiveSet
from .plan import Outcome, Record
from .problem import Problem
from .result import Certificate, Facts, Parts, Path, Result, Status

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

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.certifier.problem

    def facts(self, parts: Parts) -> Facts:
        """What the problem says of a plan."""
        problem = self.problem
        grams = problem.gram_a, problem.gram_b
        sides = zip(
            grams, parts.wanted, parts.marginals, parts.potentials, problem.base, problem.unbalanced, strict=True
        )
        first, second = (_kernel_error(*side) for side in sides)
        return Facts(
            problem.labels,
            problem.library,
            problem.cost.entries(parts.rows, parts.cols),
            (first, second),
            (problem.gram_a.is_delta, problem.gram_b.is_delta),
            total if (total := int(self.certifier.limits.total)) < UNLIMITED else None,
        )

    def barycentres(self, parts: Parts, side: int) -> Floats:
        """Where the points of a side go on average."""
        return mapping.barycentres(self.problem, parts, side)

    def transport(self, parts: Parts, side: int, new: Any) -> Floats:
        """Where new points of a side go on average."""
        return mapping.of_new_points(self.problem, parts, side, new)

    def save(self, path: Any, result: Result, with_problem: bool | None) -> None:
        """Write the result to a file, with the problem or without."""
        certifier, stored = self.certifier, with_problem
        if stored is None:
            stored = saved.size(certifier.problem) <= saved.STORED_UP_TO
        problem, limits = (certifier.problem, certifier.limits) if _checks.flag("problem", stored) else (None, None)
        saved.save(path, result, result._facts, problem, limits, certifier.tol)

    def prove(self, parts: Parts, tight: bool) -> Certificate:
        """A certificate with the user's kind of arrays."""
        proof = self.certifier(parts.rows, parts.cols, parts.mass, parts.value, tight)
        arrays = {name: self.give(getattr(proof, name)) for name in ("potential_a", "potential_b", "u", "v")}
        return replace(proof, **arrays)

    def restrict(self, rows: Ints, cols: Ints, entries: int) -> Result:
        """The exact plan on a support, compared with all others within the budget of at most so many entries."""
        limits = self.certifier.limits
        limits = limits._replace(total=min(limits.total, max(entries, 1)))
        return on_support(self.certifier.problem, rows, cols, limits, self.give)


class Unbacked:
    """What is left of a problem that was not saved with its result."""

    give, problem = staticmethod(_checks.as_numpy), None

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def facts(self, parts: Parts) -> Facts:
        """What was saved of the problem."""
        return self._facts

    def save(self, path: Any, result: Result, with_problem: bool | None) -> None:
        """Write the result to a file once more."""
        if with_problem:
            self._refuse()
        saved.save(path, result, self._facts, None, None, 0.0)

    def _refuse(self, *arguments: Any) -> Any:
        raise ValueError("the result was saved without its problem, which this needs: save it with problem=True")

    prove = restrict = barycentres = transport = _refuse


def load(path: Any) -> Result:
    """Load a result that `Result.save` wrote.

    Nothing in the file is executed. A file of another kind or of an unknown version, and one with arrays that do not
    fit together, raises a ``ValueError`` that says what is wrong.

    Parameters
    ----------
    path : str or Path
        Ends in ``.npz`` or ``.json``.

    Returns
    -------
    Result
        With NumPy arrays. ``problem`` is None if the problem was not saved; then only bounds that were known are.

    Examples
    --------
    >>> import pathlib, tempfile, sparsetransport as st
    >>> res = st.solve([[0.0, 2.0], [2.0, 1.0]], budget=1, unbalanced=10.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     res.save(pathlib.Path(folder, "plan.npz"))
    ...     again = st.load(pathlib.Path(folder, "plan.npz"))
    >>> again
    Result(1 of 2x2 entries, value=5, marginal errors 50 % and 50 %, the budget is used up)
    """
    held = saved.read(path)
    backing: Backing | Unbacked = Unbacked(held.facts)
    if held.problem is not None and held.limits is not None:
        backing = Backing(Certifier(held.problem, held.limits, held.tol), _checks.as_numpy)
    path_of_steps: Path[Result] = Path(**held.steps, _restrict=backing.restrict)
    return Result(held.status, held.converged, held.kkt, path_of_steps, held.log, held.parts, backing, held.proofs)


def _kernel_error(gram: Gram, wanted: Floats, reached: Floats, potential: Floats, base: Floats, weight: float) -> float:
    """The error of a side in the norm of its kernel, as a share of the norm of its masses."""
    missed = reached - wanted
    if gram.is_delta:
        square, whole = float(missed @ missed), float(wanted @ wanted)
    else:  # the potentials are -2 λ G (γ1 - a), and the base is -2 λ G a
        square, whole = (-0.5 * float(each @ by) / weight for each, by in ((missed, potential), (wanted, base)))
    return math.sqrt(max(square, 0.0)) / (math.sqrt(max(whole, 0.0)) or 1.0)


def build_result(outcome: Outcome, certifier: Certifier, give: Callable[[Any], Any]) -> Result:
    """An outcome as users see it: entries with mass only."""
    problem = certifier.problem
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
    status = outcome.status.said_of(parts, problem.cost.has_pairs, certifier.tol <= EXACT)
    converged = outcome.converged and residual <= max(SMALL_RESIDUAL, certifier.tol)
    if not converged and status is not Status.BASELINE:  # whose masses need not be optimal for our objective
        _checks.warn(
            f"the inner solver stopped at a relative KKT residual of {residual:.2g}: with inner='apgd' raise max_iter, "
            "else the problem is badly conditioned, and a larger reg or a smaller unbalanced helps",
            _checks.ConvergenceWarning,
        )
    backing = Backing(certifier, give)
    path = outcome.record.path(outcome.start, backing.restrict)
    log = {"steps": len(outcome.record), "unbalanced": problem.unbalanced, "reg": problem.reg}
    return Result(status, converged, residual, path, log, parts, backing)


def on_support(
    problem: Problem, rows: Ints, cols: Ints, limits: Limits, give: Callable[[Any], Any] = _checks.as_numpy
) -> Result:
    """The exact solution on a support, as a result within the limits."""
    solution = ActiveSet(problem).solve(rows, cols, np.zeros(len(rows)))
    outcome = Outcome(rows, cols, solution.mass, Status.GIVEN, (), Record(), solution.converged)
    return build_result(outcome, Certifier(problem, limits, EXACT), give)
