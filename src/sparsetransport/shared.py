"""One set of links for many scenarios: `solve_shared` and its result."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from . import _checks, _tables
from ._checks import ArrayLike, Floats, Ints
from ._progress import shown
from ._tables import Labels
from .budgets import Limits, Matroid, Pair, as_matroid, counts, free, limits_of, pairs_of
from .build_result import build_result
from .certificate import Gap
from .certify import one_to_one
from .certify.certifier import Certifier
from .effort import Effort
from .engine.room import Constraint
from .engine.shared_solver import SharedOutcome
from .given import KernelsLike, SenseLike, WeightsLike
from .inner.solvers import EXACT
from .options import Budget, Polish, StartLike, as_pairs, as_start, chosen_effort
from .path import Path
from .plan import Callback, Outcome, Record, as_arrays
from .problem import Problem, as_problem, require_plain, warn_of_rounding
from .result import Result
from .rounding import hides_a_gain, warn_of_a_hidden_gain
from .shared_strategy import SharedSearch, find_shared, on_links
from .status import Status


@dataclass(frozen=True)
class SharedCertificate(Gap):
    """A proof of quality: no links within the budget have a weighted sum of objectives below ``lower_bound``.

    The bound is the weighted sum of the scenarios' own lower bounds, each of which holds for any plan within the whole
    budget, and so for the scenario's plan on any shared links.
    """

    value: float
    lower_bound: float
    _constant: float = field(repr=False)  # the weighted sum of the empty plans' objectives

    def _bounds(self) -> tuple[float, float, float]:
        return self.value, self.lower_bound, self._constant


@dataclass(frozen=True, repr=False, eq=False)
class SharedResult(Gap):
    """One set of links, and the plan of every scenario on them.

    Attributes
    ----------
    links : int array of shape (k, 2)
        Row and column of every link, in order of choice.
    mass : array of shape (z, k)
        The mass of every link in every scenario.
    weights : array of shape (z,)
        The weights of the scenarios.
    status : Status
        Why the solve ended; ``str(status)`` is a sentence.
    path : Path
        How the links were chosen, step by step; ``path.plan_at(k)`` gives the `SharedResult` of a smaller budget.
    log : dict
        Counters of the solve.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> C = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> scenarios = [st.Problem.from_matrices(C, [0.5, 0.5], b, unbalanced=50.0) for b in ([0.9, 0.1], [0.4, 0.6])]
    >>> shared = st.solve_shared(scenarios, budget=3)
    >>> shared
    SharedResult(3 links for 2 scenarios of 2x2, value=0.4475, the budget is used up)
    >>> [plan.plan.round(2).tolist() for plan in shared.plans]
    [[[0.5, 0.0], [0.39, 0.1]], [[0.45, 0.0], [0.0, 0.55]]]
    """

    links: Ints
    mass: Floats
    weights: Floats
    status: Status
    path: "Path[SharedResult]"
    log: dict[str, Any]
    _certifiers: list[Certifier] = field(repr=False)

    def __repr__(self) -> str:
        m, n = self._certifiers[0].problem.shape
        return (
            f"SharedResult({len(self.links)} links for {len(self.mass)} scenarios of {m}x{n}, "
            f"value={self.value:.4g}, {self.status})"
        )

    @cached_property
    def plans(self) -> list[Result]:
        """The plan of every scenario as a `Result` of its own, with the links that have mass in it."""
        rows, cols = (ends.copy() for ends in self.links.T)  # compiled functions take writable arrays only
        return [
            build_result(Outcome(rows, cols, mass, self.status, (), Record(), True), certifier, _checks.as_numpy)
            for mass, certifier in zip(self.mass.copy(), self._certifiers, strict=True)
        ]

    @cached_property
    def values(self) -> Floats:
        """The objective of every scenario."""
        rows, cols = self.links[:, 0], self.links[:, 1]
        found = []
        for certifier, mass in zip(self._certifiers, self.mass, strict=True):
            used = mass > 0.0  # a link may be forbidden in a scenario that does not use it
            found.append(certifier.problem.value(rows[used], cols[used], mass[used]))
        return np.array(found)

    @property
    def value(self) -> float:
        """The weighted sum of the scenarios' objectives."""
        return float(self.weights @ self.values)

    @property
    def converged(self) -> bool:
        """True if the masses of every scenario are optimal on the links."""
        return all(plan.converged for plan in self.plans)

    @property
    def lower_bound(self) -> float:
        """No links within the budget have a lower value; the weighted sum of the scenarios' best bounds so far."""
        return max(self._joint_bound, float(self.weights @ np.array([plan.lower_bound for plan in self.plans])))

    def certify(self) -> SharedCertificate:
        """The tight bound of every scenario; from then on ``lower_bound`` and ``gap`` use them too.

        Each scenario is compared with the best plan that it could have with the whole budget to itself, so the gap
        includes the cost of sharing: it need not be zero for the best links. With `Delta` kernels and one link a row
        and column the bound is the best sum for links that all scenarios share: a matching.
        """
        bounds = np.array([plan.certify().lower_bound for plan in self.plans])
        return SharedCertificate(self.value, max(self._joint_bound, float(self.weights @ bounds)), self._constant)

    @cached_property
    def _joint_bound(self) -> float:
        """A bound for all scenarios at once; minus infinity where there is none."""
        problems, limits = [each.problem for each in self._certifiers], self._certifiers[0].limits
        if not one_to_one.applies(problems, limits):
            return -np.inf
        return one_to_one.optimum(problems, self.weights, limits)[0]

    @property
    def _constant(self) -> float:
        """The weighted sum of the empty plans' objectives."""
        return float(self.weights @ np.array([certifier.problem.constant for certifier in self._certifiers]))

    def _bounds(self) -> tuple[float, float, float]:
        return self.value, self.lower_bound, self._constant


def solve_shared(
    problems: Iterable[Problem | ArrayLike | tuple[ArrayLike, ...]],
    *,
    kernels: KernelsLike = None,
    budget: Budget = None,
    unbalanced: WeightsLike = "auto",
    reg: float = 0.0,
    sense: SenseLike = "=",
    weights: ArrayLike | None = None,
    fixed: StartLike = None,
    start: StartLike = None,
    effort: str | Effort | None = None,
    polish: Polish = None,
    tol: float | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> SharedResult:
    r"""Choose one set of links for many scenarios.

    Minimises over sets of links :math:`S` within the budget

    .. math::
        \sum_s w_s \min\{U_s(\gamma_s) : \gamma_s \ge 0,\ \mathrm{supp}(\gamma_s) \subseteq S\} ,

    where :math:`U_s` is the objective of scenario :math:`s` (see `Problem`). The next link is the one with the largest
    :math:`\sum_s w_s \max(0, -\partial U_s)^2`; every scenario is then solved exactly on the links so far, and a link
    that has mass in no scenario is dropped. At the end links are exchanged for better ones.

    Parameters
    ----------
    problems : list
        The scenarios, each a `Problem`, a cost matrix or a tuple ``(C, a, b)``, all of one shape; masses, costs and
        kernels may differ, senses may not. Marginals must be soft, and links must not have a cost: see
        `apps.network_design.design` for hard supply and demand. Scenarios that share the cost object, which
        ``dataclasses.replace(problem, b=...)`` keeps, store it only once.
    budget : int, Matroid or None
        The largest number of links, or any other budget, as in `solve`; None for no limit.
    weights : array of shape (z,), optional
        The weights of the scenarios, positive; 1/z each by default.
    fixed : list of pairs, or int array of shape (k, 2), optional
        Links that exist already. They count in the budget and are kept, whether they are used or not.
    start : list of pairs, Result, SharedResult or plan, optional
        A warm start: begin with these links, and drop those that are not used. Of a plan, an array of floats of shape
        (m, n), the entries with mass are taken.
    kernels, unbalanced, reg, sense
        As in `solve`, for scenarios that are not a `Problem`, which has its own.
    effort
        As in `solve`; ``polish`` is an older name for it.
    tol : float, optional
        A gradient below this share of a problem's scale counts as zero; 1e-13 by default.
    n_jobs : int, optional
        Threads: -1 for all cores; None for one. The result does not depend on it.
    callback : callable, optional
        Called after each step with its index, pair, objective and number of links; if it returns true, the solve stops.
    progress : bool
        Show links and objective so far on a terminal.

    Returns
    -------
    SharedResult

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> rng = np.random.default_rng(0)
    >>> C, demands = rng.random((6, 5)), rng.random((4, 5))
    >>> problems = [st.Problem.from_matrices(C, np.ones(6), b, unbalanced=10.0, reg=0.01) for b in demands]
    >>> shared = st.solve_shared(problems, budget=7)
    >>> shared.links.shape, shared.mass.shape
    ((7, 2), (4, 7))
    >>> shared.lower_bound <= shared.value
    True
    """
    scenarios = checked_problems(problems, sided=True, kernels=kernels, unbalanced=unbalanced, reg=reg, sense=sense)
    shape = scenarios[0].shape
    shares = _checks.weights(weights, len(scenarios))
    with np.errstate(over="ignore"):
        if not np.isfinite(shares @ [max(one.constant, one.scale**2) for one in scenarios]):
            raise ValueError(f"weights must keep the sum of objectives below 1e308, got {shares.max()}: rescale them")
    matroid = as_matroid(budget)
    limits = limits_of(matroid, shape)
    there, begun = as_pairs("fixed", [] if fixed is None else fixed, "a list of pairs of ints"), as_start(start)
    begun.require(shape, scenarios[0].labels)
    _checks.inside("fixed", there, shape)
    _require_fixed(there, matroid, limits, scenarios)
    threads = _checks.threads(n_jobs)
    exact = EXACT if tol is None else _checks.tolerance("tol", tol)
    how = chosen_effort(effort, polish, None, improves=True)
    _checks.function("callback", callback)
    warn_of_rounding(max(scenarios, key=lambda one: (one.side_is_lost, one.scale / (one.cost.common or np.inf))))
    constraint = Constraint(matroid, shape)
    with shown(progress):
        outcome = find_shared(
            SharedSearch(scenarios, shares, constraint, how, there, begun.pairs, exact, threads, callback)
        )
    return as_result(outcome, [Certifier(one, limits, exact, how) for one in scenarios], shares)


def as_result(outcome: SharedOutcome, certifiers: list[Certifier], weights: Floats) -> SharedResult:
    """The result that users see, from an outcome."""
    problems = [certifier.problem for certifier in certifiers]
    if not any(problem.cost.has_pairs for problem in problems):
        outcome = outcome._replace(status=Status.ALL_FORBIDDEN)
    elif outcome.status in (Status.OPTIMAL, Status.LOCAL) and any(problem.is_lost for problem in problems):
        outcome = outcome._replace(status=Status.ROUNDING)
    elif outcome.status is Status.OPTIMAL and (lost := _first_that_hides_a_gain(problems, outcome)) is not None:
        warn_of_a_hidden_gain(lost)
        outcome = outcome._replace(status=Status.ROUNDING)
    elif outcome.status in (Status.OPTIMAL, Status.LOCAL) and certifiers[0].tol > EXACT:
        outcome = outcome._replace(status=Status.TOLERANCE)
    elif outcome.status is Status.OPTIMAL and not outcome.rows.size and any(map(_asks_for_mass, problems)):
        outcome = outcome._replace(status=Status.EMPTY)
    links, mass, shares = np.stack([outcome.rows, outcome.cols], axis=1), outcome.mass.copy(), weights.copy()
    for array in (links, mass, shares):
        array.flags.writeable = False  # values and bounds are computed from them later
    return SharedResult(
        links,
        mass,
        shares,
        outcome.status,
        outcome.record.path(outcome.start, partial(_restricted, certifiers, weights)),
        {"steps": len(outcome.record), "scenarios": len(certifiers)},
        certifiers,
    )


def _first_that_hides_a_gain(problems: list[Problem], outcome: SharedOutcome) -> Problem | None:
    """The first scenario for which rounding hides a better plan."""
    for problem, mass in zip(problems, outcome.mass, strict=True):
        used = mass > 0.0
        plan = outcome.rows[used], outcome.cols[used], mass[used]
        if hides_a_gain(problem, plan, problem.value(*plan)):
            return problem
    return None


def _asks_for_mass(problem: Problem) -> bool:
    """True if the empty plan misses something on both sides."""
    return bool(problem.a.any() and problem.b.any()) and problem.sense != ("<=", "<=")


def _restricted(certifiers: list[Certifier], weights: Floats, rows: Ints, cols: Ints, entries: int) -> SharedResult:
    """The exact plans on given links, compared with all others within the budget of at most so many links."""
    limits = certifiers[0].limits._replace(total=min(certifiers[0].limits.total, max(entries, 1)))
    problems = [certifier.problem for certifier in certifiers]
    outcome = on_links(problems, weights, pairs_of(rows, cols))
    return as_result(outcome, [Certifier(one, limits, EXACT) for one in problems], weights)


def checked_problems(problems: Iterable[Any], *, sided: bool = False, **geometry: Any) -> list[Problem]:
    """At least one problem, all of one shape and with the same senses, which may be one-sided if ``sided``."""
    try:
        items = list(problems)
    except TypeError:
        raise TypeError(f"problems must be a list of problems, got {type(problems).__name__}") from None
    if not items:
        raise ValueError("problems must hold at least one scenario, got none")
    scenarios: list[Problem] = []
    labels: tuple[Labels, Labels] = (None, None)
    for k, item in enumerate(items):
        try:
            one = as_problem(*_aligned(item if isinstance(item, tuple) else (item,), *labels), **geometry)
            for held, wanted, of in zip(one.labels, labels, ("rows", "columns"), strict=True):
                if _tables.order("its tables", held, wanted, of) is not None:
                    raise ValueError(f"its labels of the {of} must be in the order of those of the other problems")
        except (TypeError, ValueError) as error:
            raise type(error)(f"problems[{k}]: {error}") from None
        require_plain(one.like(sense=("=", "=")) if sided else one, f"problems[{k}]: solve_shared")
        labels = _tables.first(labels[0], one.labels[0]), _tables.first(labels[1], one.labels[1])
        scenarios.append(one)
    for k, one in enumerate(scenarios):
        if one.shape != scenarios[0].shape:
            raise ValueError(f"problems must have the same shape, got {scenarios[0].shape} at 0 and {one.shape} at {k}")
        if one.sense != scenarios[0].sense:
            raise ValueError(f"problems must have the same sense, got {scenarios[0].sense} at 0 and {one.sense} at {k}")
    return scenarios


def _aligned(item: tuple[Any, ...], rows: Labels, cols: Labels) -> tuple[Any, ...]:
    """Costs and masses with their labels in the order of those of the scenarios before."""
    if len(item) > 3:
        raise TypeError(f"a scenario must be a Problem, a cost matrix or a tuple (C, a, b), got a tuple of {len(item)}")
    C, a, b = (*item, None, None)[:3]
    masses = _tables.aligned("a", a, "index", rows, "rows"), _tables.aligned("b", b, "index", cols, "columns")
    return (C if isinstance(C, Problem) else _tables.matched("C", C, rows, cols), *masses)


def _require_fixed(fixed: list[Pair], matroid: Matroid | None, limits: Limits, problems: Sequence[Problem]) -> None:
    """Raise an error unless the fixed links are within the budget and not forbidden."""
    for k, pair in enumerate(fixed):
        fits = (
            bool(free(limits, fixed[:k], *as_arrays([pair]))[0])
            if matroid is None or counts(matroid)
            else matroid.can_add(fixed[:k], pair)
        )
        if not fits:
            raise ValueError(f"fixed must be within the budget, got {len(fixed)} links: {pair} is one too many")
    for s, problem in enumerate(problems):
        costs = problem.cost.entries(*as_arrays(fixed))
        if fixed and not np.isfinite(costs).all():
            bad = fixed[int(np.flatnonzero(~np.isfinite(costs))[0])]
            raise ValueError(f"fixed must not hold a forbidden pair, got {bad} with cost inf in scenario {s}")
