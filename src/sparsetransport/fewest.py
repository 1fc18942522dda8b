"""The fewest links that are enough: `solve_fewest`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Unpack

import numpy as np

from . import _checks
from ._checks import ArrayLike
from ._progress import shown, tell
from .api import solve_after, solve_support
from .budgets import PerColumn, PerRow, Uniform, as_matroid, no_limits
from .build_result import build_result
from .certify.certifier import Certifier
from .effort import BARE
from .given import KernelsLike, SenseLike, WeightsLike
from .inner.solvers import EXACT
from .options import Budget, Options, SolveOptions
from .problem import Problem, as_problem, second_by_name
from .result import Result
from .status import Status

_KINDS = Uniform, PerRow, PerColumn  # budgets that allow any plan if the number is large enough
_NOTHING = 1e-12  # a share of the objective of the empty plan that counts as rounding


@dataclass(frozen=True, repr=False, eq=False)
class Fewest:
    """The plan with the fewest links found whose objective is close enough to the unbudgeted optimum.

    Attributes
    ----------
    result : Result
        The plan.
    optimum : Result
        The unbudgeted optimum.
    target : float
        The objective that is good enough.
    budget : int
        The smallest budget found with a plan that reaches the target; 0 if the empty plan does.
    tried : dict
        The `Result` of every budget that was tried, the smallest first.
    stopped : bool
        True if a callback ended the search: fewer links may be enough, and if ``budget`` is a function of your own the
        plan may miss the target.
    """

    result: Result
    optimum: Result
    target: float
    budget: int
    tried: dict[int, Result]
    stopped: bool
    _solved: Callable[[int], Result]  # by growing alone
    _time_limit: float | None = None  # of a proof

    def __repr__(self) -> str:
        result, optimum = self.result, self.optimum
        return (
            f"Fewest(budget={self.budget}, {len(result.mass)} links, value={result.value:.4g}; "
            f"unbudgeted optimum: {len(optimum.mass)} links, value={optimum.value:.4g})"
        )

    @cached_property
    def at_least(self) -> int:
        """A proven minimum: every smaller budget misses the target, by lower bounds computed on first use."""
        proved, reached = 0, self.budget
        probe = reached - 1  # often this one is proved too small, which ends the search
        while reached - proved > 1:
            if self._is_too_small(probe):
                proved = probe
            else:
                reached = probe
            probe = (proved + reached) // 2
        return reached

    def _is_too_small(self, budget: int) -> bool:
        """True if a lower bound proves that no plan within this budget reaches the target."""
        result = self.tried.get(budget) or self._solved(budget)
        if result.lower_bound > self.target or result.certify().lower_bound > self.target:
            return True
        if result.value <= self.target:
            return False
        enough = (result.value - self.target) / (abs(result.value) or 1.0)  # of a gap: the bound is above the target
        proof = result.certify(effort="thorough", gap_tol=enough * (1.0 - 1e-12), time_limit=self._time_limit)
        return proof.lower_bound > self.target


def solve_fewest(
    C: ArrayLike | Problem,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    within: float | None = None,
    kernels: KernelsLike = None,
    budget: Callable[[int], Budget] = Uniform,
    unbalanced: WeightsLike = "auto",
    reg: float = 0.0,
    sense: SenseLike = "=",
    **options: Unpack[SolveOptions],
) -> Fewest:
    """Find the fewest links whose objective is within a given share of the unbudgeted optimum.

    Budgets are tried by doubling and then by bisection, each solved on its own; a plan that uses fewer links than its
    budget allows shortens the search. A solve may miss the best plan of its budget, so fewer links than found may be
    enough: ``at_least`` of the result is a proven minimum, and ``gap_tol`` among the options makes the search more
    thorough. If a ``callback`` returns true, the search ends with the best plan so far.

    Parameters
    ----------
    C, a, b, kernels, unbalanced, reg, sense
        As in `solve`.
    within : float
        How far the objective may be above the unbudgeted optimum, as a share of it: 0.05 for five per cent.
    budget : Uniform, PerRow, PerColumn or a function
        What is limited: the links of the whole plan, of every row or of every column; or a function from a number to a
        budget, such as ``lambda k: st.Laminar(st.PerColumn(2), st.Uniform(k))``.
    **options
        ``gap_tol`` and all other options of `solve`; ``time_limit`` is that of every solve, and of every proof.

    Returns
    -------
    Fewest
        ``result`` is the plan, ``at_least`` a proven minimum.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(30, 2)), rng.normal(size=(25, 2)) + 1.0
    >>> problem = st.Problem.from_points(X, Y, reg=1.0)
    >>> found = st.solve_fewest(problem, within=0.05)
    >>> found
    Fewest(budget=34, 34 links, value=2.574; unbudgeted optimum: 59 links, value=2.46)
    >>> found.at_least
    19
    """
    a, within = second_by_name(C, "within", a, within)
    within = _checks.number("within", within, positive=False)
    if not callable(budget):
        raise TypeError(f"budget must be Uniform, PerRow, PerColumn or a function of a number, got {budget!r}")
    checked = Options.checked(budget=budget(1), **options)
    problem = as_problem(C, a, b, kernels=kernels, unbalanced=unbalanced, reg=reg, sense=sense)
    if problem.is_charged:
        raise ValueError("solve_fewest takes problems without link_cost only: solve weighs links against their cost")
    with shown(checked.progress):
        return _fewest(problem, within, budget, checked)


def _fewest(problem: Problem, within: float, budget: Callable[[int], Budget], checked: Options) -> Fewest:
    """The search, by doubling and then by bisection."""
    unlimited = Certifier(problem, no_limits(problem.shape), EXACT)
    optimum = build_result(unlimited.full, unlimited, _checks.as_numpy)
    if optimum.status is Status.INFEASIBLE:
        raise ValueError(
            "no plan keeps the hard marginals, whatever the number of links: solve() without a budget returns the one "
            "that violates them least, and its summary() says where"
        )
    target = optimum.value + max(
        within * abs(optimum.value), _NOTHING * abs(problem.constant) if problem.constant < np.inf else 0.0
    )
    solved = partial(_solved, problem, budget, checked)
    bare = partial(_solved, problem, budget, checked._replace(effort=BARE, gap_tol=None, callback=None))
    if problem.constant <= target:
        nothing = replace(solve_support(problem, links=[]), status=Status.BUDGET_USED)
        return Fewest(nothing, optimum, target, 0, {}, False, bare)
    limit = checked.time_limit
    most = problem.shape[0] * problem.shape[1]
    tried = {_needed(optimum, budget): optimum} if budget in _KINDS else {}
    missed, reached, stopped = 0, max(tried, default=most + 1), False
    while reached - missed > 1 and not stopped:
        probe = min(max(1, 2 * missed), (missed + reached) // 2)
        plan = tried[probe] = solved(probe, [tried[missed]] if missed else [])
        if plan.value <= target:
            reached, needed = probe, _needed(plan, budget)
            if needed < probe and plan.status is not Status.STOPPED:  # the plan uses less than its budget
                plan = solved(needed, [plan])
                if plan.value <= target:
                    tried[needed], reached = plan, needed
        missed = max((k for k in tried if k < reached), default=0)
        stopped = plan.status is Status.STOPPED
    if reached not in tried:
        reached = min(tried, key=lambda number: tried[number].value)
        best = tried[reached]
        if not stopped:
            raise ValueError(
                f"no plan was found within {within:g} of the unbudgeted optimum, {optimum.value:.6g}: the best one "
                f"that the budget allows has {len(best.mass)} links and an objective of {best.value:.6g}"
            )
    return Fewest(tried[reached], optimum, target, reached, dict(sorted(tried.items())), stopped, bare, limit)


def _needed(plan: Result, budget: Callable[[int], Budget]) -> int:
    """The smallest number whose budget allows the plan; for a function of the user, a number that may."""
    if budget is PerRow:
        return int(np.bincount(plan.rows).max())
    return int(np.bincount(plan.cols).max()) if budget is PerColumn else len(plan.mass)


def _solved(
    problem: Problem,
    budget: Callable[[int], Budget],
    options: Options,
    number: int,
    earlier: Sequence[Result] = (),
) -> Result:
    options = options._replace(matroid=as_matroid(budget(number)))
    tell(budget=f"budget {options.matroid}")
    return solve_after(problem, options, earlier)
