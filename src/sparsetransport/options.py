"""What a solve is told, checked before any work: the options of `solve` and what to begin with."""

from typing import Any, Literal, NamedTuple, SupportsIndex, TypedDict

import numpy as np

from . import _checks, _tables
from ._checks import ArrayLike, Floats, Seed
from ._tables import Labels
from .budgets import Matroid, Pair, as_matroid, pairs_of
from .effort import BARE, DEFAULT, QUICK, THOROUGH, Effort, as_effort
from .inner.solvers import EXACT, SOLVERS, ActiveSet
from .plan import Callback
from .result import Result
from .select.generic_greedy import Rule
from .select.greedy import Greedy
from .select.omp import OMP
from .select.residual import Residual, ResidualGreedy
from .select.stochastic import StochasticOMP

METHODS: dict[str, type[Rule]] = {
    "omp": OMP,
    "stochastic": StochasticOMP,
    "residual": Residual,
    "greedy": Greedy,
    "residual-greedy": ResidualGreedy,
}
_ELSEWHERE = {
    "plan_init": "start",
    "random_state": "rng",
    "seed": "rng",
    "kernel": "kernels",
    "cost": "metric",
    "reg_m": "unbalanced",
    "lam": "unbalanced",
    "n_links": "budget",
    "k": "budget",
    "K": "budget",
    "max_nz": "budget",
    "numItermax": "max_iter",
    "tau_a": "unbalanced",
}
_NOT_HERE = {
    "unbalanced_type": "marginal errors are squared, in the norm of kernels=",
    "sense": 'marginals have the sense "=" here',
    "link_cost": "links have no cost here",
    "reg_type": "the quadratic term is the only one",
}
StartLike = Result | ArrayLike | None
"""Links to begin with: a result, a plan, or pairs of rows and columns."""
_STARTS = "a Result, a plan of floats or a list of pairs of ints"


Budget = SupportsIndex | Matroid | None
"""At most so many entries, or any other budget, or none."""


Polish = bool | Literal["quick"] | None
"""An older way to name an effort: False for growing alone, "quick", or True for the default."""


class CommonOptions(TypedDict, total=False):
    """What is said of one problem as of many, beside the problems and the budget, for type checkers."""

    method: str | Rule
    inner: str
    reclaim: bool
    effort: str | Effort | None
    polish: Polish
    gap_tol: float | None
    time_limit: float | None
    rng: Seed
    tol: float | None
    max_iter: int | None


class SolveOptions(CommonOptions, total=False):
    """The options of `solve` beside the problem and the budget."""

    start: StartLike
    callback: Callback | None
    progress: bool


class Start(NamedTuple):
    """What a solve begins with: pairs, their masses if these are known, and shape and labels if it was a plan."""

    pairs: list[Pair]
    mass: Floats | None = None
    shape: tuple[int, int] | None = None
    labels: tuple[Labels, Labels] = (None, None)

    def require(self, shape: tuple[int, int], labels: tuple[Labels, Labels], name: str = "start") -> None:
        """Raise an error unless this is a start for a plan of this shape, with its labels in this order."""
        if self.shape not in (None, shape):
            raise ValueError(f"{name} must be a plan of shape {shape}, got shape {self.shape}")
        for held, wanted, of in zip(self.labels, labels, ("rows", "columns"), strict=True):
            if _tables.order(name, held, wanted, of) is not None:
                raise ValueError(f"{name} must have its labels in the order of the {of} of the costs: reorder it")
        _checks.inside(name, self.pairs, shape)


class Options(NamedTuple):
    """The options of a solve, checked before any work."""

    matroid: Matroid | None
    rule: Rule
    solver: Any
    reclaim: bool
    effort: Effort
    gap_tol: float | None
    time_limit: float | None
    start: Start
    callback: Callback | None
    rng: np.random.Generator
    tol: float
    max_iter: int | None
    progress: bool

    @classmethod
    def checked(
        cls,
        *,
        budget: Budget = None,
        method: str | Rule = "omp",
        inner: str = "active_set",
        reclaim: bool = True,
        effort: str | Effort | None = None,
        polish: Polish = None,
        gap_tol: float | None = None,
        time_limit: float | None = None,
        start: Any = None,
        callback: Callback | None = None,
        rng: Any = None,
        tol: float | None = None,
        max_iter: int | None = None,
        progress: bool = False,
        **unknown: Any,
    ) -> "Options":
        """The options as `solve` takes them."""
        if unknown:
            known = [f"{theirs} is called {ours} here" for theirs, ours in _ELSEWHERE.items() if theirs in unknown]
            known += [f"{theirs}: {why}" for theirs, why in _NOT_HERE.items() if theirs in unknown]
            told = ", ".join(sorted(unknown)) + f" ({', '.join(known)})" * bool(known)
            raise TypeError(f"unknown option {told}: help(sparsetransport.solve) lists the options")
        rule = _checks.choice("method", method, METHODS)() if isinstance(method, str) else method
        if isinstance(rule, type) and hasattr(rule, "select"):
            raise TypeError(f"method must be a rule, got the class: make one with {rule.__name__}()")
        if not (hasattr(rule, "select") and hasattr(rule, "exhaustive")):
            raise TypeError(f"method must be one of {', '.join(map(repr, METHODS))} or a rule, got {method!r}")
        solver = _checks.choice("inner", inner, SOLVERS)
        exact = solver is ActiveSet
        if exact and max_iter is not None:
            raise ValueError('max_iter must be None unless inner="apgd": the active set needs no limit')
        return cls(
            as_matroid(budget),
            rule,
            solver,
            _checks.flag("reclaim", reclaim),
            chosen_effort(effort, polish, gap_tol, improves=reclaim and exact),
            None if gap_tol is None else _checks.number("gap_tol", gap_tol, positive=True),
            None if time_limit is None else _checks.number("time_limit", time_limit, positive=True),
            as_start(start),
            _checks.function("callback", callback),
            _checks.generator("rng", rng),
            (EXACT if exact else 1e-6) if tol is None else _checks.tolerance("tol", tol),
            None if max_iter is None else _checks.positive_int("max_iter", max_iter),
            _checks.flag("progress", progress),
        )

    @property
    def is_compiled(self) -> bool:
        """True if the compiled solver knows all that is asked for, which other rules are not."""
        return type(self.rule) is OMP and self.reclaim and self.solver is ActiveSet


def chosen_effort(effort: Any, polish: Any, gap_tol: Any, *, improves: bool) -> Effort:
    """The effort that was asked for: as one, by its name, or by an older word for it."""
    if effort is not None:
        if polish is not None:
            raise TypeError("polish must not be given together with effort, for which it is an older name")
        return as_effort("effort", effort)
    if polish is not None and polish != "quick":
        improves = _checks.flag("polish", polish)
    if not improves:
        return BARE
    return QUICK if polish == "quick" else DEFAULT if gap_tol is None else THOROUGH


def as_start(start: Any, name: str = "start") -> Start:
    """A start as the user gave it."""
    if start is None:
        return Start([])
    if isinstance(start, Result):
        return Start(as_pairs(name, start, _STARTS), start._parts.mass, start._parts.shape)
    start = getattr(start, "links", start)  # of a shared result or a design
    labels = _tables.labels(start, "index"), _tables.labels(start, "columns")
    start = start.toarray() if hasattr(start, "toarray") else start  # SciPy's sparse plans
    _checks.require_entries(name, start)
    array = _checks.to_numpy(start)
    if array.dtype.kind != "f" or array.ndim != 2 or not array.size:
        return Start(as_pairs(name, array, _STARTS))
    plan = _checks.real_array(name, array, ndim=2)
    if plan.min() < 0.0:
        place = tuple(int(k) for k in np.argwhere(plan < 0.0)[0])
        raise ValueError(f"{name} must not be negative, got {plan[place]} at {place}")
    m, n = plan.shape
    rows, cols = np.nonzero(plan > 0.0)
    return Start(pairs_of(rows, cols), plan[rows, cols], (m, n), labels)


def as_pairs(name: str, pairs: Any, rule: str) -> list[Pair]:
    """Pairs as the user gave them, each once: a list, or the links of a result."""
    if isinstance(pairs, Result):
        return pairs_of(pairs._parts.rows, pairs._parts.cols)
    return _checks.pairs(name, getattr(pairs, "links", pairs), rule)
