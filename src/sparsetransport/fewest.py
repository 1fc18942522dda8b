"""How many links are enough: `solve_fewest`, the budget turned round."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Unpack

import numpy as np

from . import _checks
from .api import solve_support
from .assemble import assemble
from .inner.solvers import EXACT
from .matroids import PerColumn, PerRow, Uniform, as_matroid, no_limits
from .options import Budget, Options, SolveOptions
from .outer.loop import Outcome
from .outer.run import run
from .problem import Problem, require_problem
from .prover import Prover
from .result import Result
from .search import solve_checked

_KINDS = Uniform, PerRow, PerColumn  # a number large enough has room for any plan
_NOTHING = 1e-12  # of the empty plan's objective: rounding


@dataclass(frozen=True, repr=False, eq=False)
class Fewest:
    """The plan with the fewest links found that comes close enough to the optimum without a budget.

    Attributes
    ----------
    result : Result
        The plan.
    optimum : Result
        The plan without a budget.
    target : float
        The objective that is good enough.
    budget : int
        The smallest budget found whose plan reaches the target; 0 if the empty plan does.
    tried : dict
        The `Result` of every budget that was tried, the smallest first: what more links bring.
    """

    result: Result
    optimum: Result
    target: float
    budget: int
    tried: dict[int, Result]
    _solved: Callable[[int, bool], Result]

    def __repr__(self) -> str:
        result, optimum = self.result, self.optimum
        return (
            f"Fewest(budget={self.budget}, {len(result.mass)} links, value={result.value:.4g}; "
            f"without a budget {len(optimum.mass)} links, value={optimum.value:.4g})"
        )

    @cached_property
    def at_least(self) -> int:
        """Every smaller budget than this misses the target: proved by lower bounds, when it is first asked for."""
        proved, reached = 0, self.budget
        probe = reached - 1  # often this one is proved, and all is said
        while reached - proved > 1:
            if self._is_too_small(probe):
                proved = probe
            else:
                reached = probe
            probe = (proved + reached) // 2
        return reached

    def _is_too_small(self, budget: int) -> bool:
        """Is it proved that no plan within this budget reaches the target?"""
        result = self.tried.get(budget) or self._solved(budget, False)
        return result.lower_bound > self.target or result.certify().lower_bound > self.target


def solve_fewest(
    problem: Problem, within: float, *, budget: Callable[[int], Budget] = Uniform, **options: Unpack[SolveOptions]
) -> Fewest:
    """Find how few links are enough to come within a share of the optimum without a budget.

    Budgets are tried by doubling and then halving the distance, each solved by itself. A solve may miss the best plan
    of its budget, so that fewer links than found may be enough: ``at_least`` of the answer is what is proved, and with
    ``gap_tol`` among the options the search is more thorough.

    Parameters
    ----------
    problem : Problem
    within : float
        By how much the objective may be above that without a budget: 0.05 for five per cent of it.
    budget : Uniform, PerRow, PerColumn or a function
        What is counted: links of the whole plan, of every row, of every column; or a function that makes a budget of a
        number, such as ``lambda k: st.Laminar(st.PerColumn(2), st.Uniform(k))``.
    **options
        ``gap_tol`` and everything else as in `solve`.

    Returns
    -------
    Fewest
        ``result`` is the plan, ``at_least`` what is proved.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(30, 2)), rng.normal(size=(25, 2)) + 1.0
    >>> problem = st.Problem.from_points(X, Y, reg=1.0)
    >>> found = st.solve_fewest(problem, within=0.05)
    >>> found
    Fewest(budget=12, 12 links, value=2.398; without a budget 32 links, value=2.287)
    >>> found.at_least
    4
    """
    require_problem(problem)
    within = _checks.number("within", within, positive=False)
    if not callable(budget):
        raise TypeError(f"budget must be Uniform, PerRow, PerColumn or a function of a number, got {budget!r}")
    checked = Options.checked(budget=budget(1), **options)
    full = run(problem, no_limits(problem.shape), [], EXACT, polish=False, thorough=False)
    optimum = assemble(full, Prover(problem, no_limits(problem.shape), EXACT), _checks.as_numpy)
    target = optimum.value + max(within * abs(optimum.value), _NOTHING * abs(problem.constant))
    solved = partial(_solved, problem, budget, checked, full)
    if problem.constant <= target:
        return Fewest(solve_support(problem, []), optimum, target, 0, {}, solved)
    missed, reached = 0, _largest(optimum, budget)
    tried = {reached: optimum if budget in _KINDS else solved(reached, checked.polish)}
    if tried[reached].value > target:
        raise ValueError(
            f"no plan is found within {within:g} of the optimum without a budget, not even with budget({reached}): an "
            f"objective of {tried[reached].value:.6g} for {optimum.value:.6g}"
        )
    while reached - missed > 1:
        probe = min(max(1, 2 * missed), (missed + reached) // 2)
        tried[probe] = solved(probe, checked.polish)
        if tried[probe].value <= target:
            reached = probe
        else:
            missed = probe
    return Fewest(tried[reached], optimum, target, reached, dict(sorted(tried.items())), solved)


def _largest(optimum: Result, budget: Callable[[int], Budget]) -> int:
    """A number that leaves room for the plan without a budget, if any does."""
    if budget is PerRow:
        return int(np.bincount(optimum.rows).max())
    return int(np.bincount(optimum.cols).max()) if budget is PerColumn else len(optimum.mass)


def _solved(
    problem: Problem, budget: Callable[[int], Budget], options: Options, full: Outcome, number: int, polish: bool
) -> Result:
    options = options._replace(matroid=as_matroid(budget(number)), polish=polish)
    return solve_checked(problem, options, _checks.as_numpy, full)
