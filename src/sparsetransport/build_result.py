"""What a solve found as users see it: a result with its figures, its path and what proves it."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from . import _checks, hard, mapping, saved
from ._checks import Floats, Ints
from .budgets import UNLIMITED, Limits
from .certificate import Certificate
from .certify.certifier import Certifier
from .effort import DEFAULT, Effort
from .geometry.matrices import Gram
from .inner.apgd import kkt_residual
from .inner.solvers import EXACT, ActiveSet
from .large import known_prices
from .optimum import potentials, prices, unbudgeted_optimum
from .path import Path
from .plan import Outcome, Record
from .problem import Problem
from .result import Facts, Parts, Result
from .rounding import hides_a_gain, warn_of_a_hidden_gain
from .status import Status

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
        first, second = _kernel_errors(problem, parts)
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
        saved.save(path, result, result._facts, certifier if _checks.flag("problem", stored) else None)

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

    def totals_differ(self) -> bool:
        """True if hard sides ask for totals that no plan has at once."""
        return hard.totals_differ(self.certifier.problem)

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
        saved.save(path, result, self._facts, None)

    def _refuse(self, *arguments: Any) -> Any:
        raise ValueError("the result was saved without its problem, which this needs: save it with problem=True")

    prove = prove_further = restrict = barycentres = transport = _refuse


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
    Result(1 of 2x2 entries, value=5, marginal errors 50 % and 50 %, no plan within the budget is better: proven)
    """
    held = saved.read(path)
    backing: Backing | Unbacked = Unbacked(held.facts)
    if held.problem is not None and held.limits is not None:
        certifier = Certifier(held.problem, held.limits, held.tol, is_whole=held.is_whole)
        backing = Backing(certifier, _checks.as_numpy)
    path_of_steps: Path[Result] = Path(**held.steps, _restrict=backing.restrict)
    return Result(held.status, held.converged, held.kkt, path_of_steps, held.log, held.parts, backing, held.proofs)


def _kernel_errors(problem: Problem, parts: Parts) -> tuple[float, float]:
    """The errors of the sides in the norms of their kernels, as shares of the norms of their masses."""
    grams, missed = (
        (problem.gram_a, problem.gram_b),
        [x - y for x, y in zip(parts.marginals, parts.wanted, strict=True)],
    )
    if problem.is_plain:  # the potentials are -2 λ G (γ1 - a), and the base is -2 λ G a
        sides = zip(grams, missed, parts.wanted, parts.potentials, problem.base, problem.unbalanced, strict=True)
        first, second = (
            (_square(gram, by, -0.5 * potential / weight), _square(gram, wanted, -0.5 * base / weight))
            for gram, by, wanted, potential, base, weight in sides
        )
    else:
        counted = problem.counted(missed[0], missed[1])
        first, second = (
            (_square(gram, by, None), _square(gram, wanted, None))
            for gram, by, wanted in zip(grams, counted, parts.wanted, strict=True)
        )
    return _share(*first), _share(*second)


def _share(error: float, whole: float) -> float:
    return math.sqrt(error) / (math.sqrt(whole) or 1.0)


def _square(gram: Gram, vector: Floats, smoothed: Floats | None) -> float:
    """The squared norm of a vector in a kernel; the kernel times the vector, if it is known."""
    times = vector if gram.is_delta else gram.times(vector) if smoothed is None else smoothed
    return max(float(vector @ times), 0.0)


def build_result(outcome: Outcome, certifier: Certifier, give: Callable[[Any], Any]) -> Result:
    """An outcome as users see it: entries with mass only."""
    problem = certifier.problem
    kept = outcome.mass > 0.0
    rows, cols, mass = outcome.rows[kept], outcome.cols[kept], outcome.mass[kept]
    marginals = problem.marginals(rows, cols, mass)
    linear = float(problem.cost.entries(rows, cols) @ mass)
    fixed = problem.cost_of_links(rows, cols, mass)
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
        fixed,
    )
    gradient = problem.gradient((r, c), outcome.rows, outcome.cols) + problem.reg * outcome.mass
    scale = problem.scale if problem.is_plain else max(float(np.abs(r).max()), float(np.abs(c).max()))
    residual = kkt_residual(gradient, outcome.mass) / scale if scale else 0.0
    if outcome.status is Status.INFEASIBLE:
        residual = 0.0  # potentials run away where no plan keeps the marginals
    is_lost = problem.is_lost
    if outcome.status is Status.OPTIMAL and not is_lost:
        priced = prices(problem, certifier.effort) if problem.is_hard else None
        is_lost = hides_a_gain(problem, (rows, cols, mass), value, priced)
        if is_lost:
            warn_of_a_hidden_gain(problem)
    status = outcome.status.said_of(parts, problem.cost.has_pairs, certifier.tol <= EXACT, is_lost)
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
        "from_prices": known_prices(problem) is not None,
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
