"""What more links bring: `solve_sweep`, one problem with one budget after another."""

from collections.abc import Iterable
from typing import Unpack

from ._checks import ArrayLike
from .api import solve_after
from .options import Budget, Options, SolveOptions
from .problem import KernelsLike, Problem, WeightsLike, as_problem, second_by_name
from .result import Result, Status


def solve_sweep(
    C: ArrayLike | Problem,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    budgets: Iterable[Budget] | None = None,
    kernels: KernelsLike = None,
    unbalanced: WeightsLike = "auto",
    reg: float = 0.0,
    **options: Unpack[SolveOptions],
) -> list[Result]:
    """Solve a problem with one budget after another.

    Each is solved by itself; where a smaller one came out better, its plan is where a second solve begins, and the
    better plan stays, so that the objective does not rise from a budget to one that allows more. The plan without a
    budget, which proofs need, is solved once for all.

    Parameters
    ----------
    C, a, b, kernels, unbalanced, reg
        As in `solve`.
    budgets : list of int, Matroid or None
        From few links to many; ``None`` for no budget.
    **options
        As in `solve`. A ``callback`` that answers true ends the sweep with the plan that it stopped.

    Returns
    -------
    list of Result
        One for each budget.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(30, 2)), rng.normal(size=(25, 2)) + 1.0
    >>> problem = st.Problem.from_points(X, Y, kernels=st.Delta())
    >>> for res in st.solve_sweep(problem, budgets=[20, 30, 40, 50]):
    ...     print(f"{len(res.mass)} links: {res.value:.1f}, {res.marginal_errors[1]:.0%} of the mass off the mark")
    20 links: 151.1, 27% of the mass off the mark
    30 links: 14.4, 7% of the mass off the mark
    40 links: 4.9, 3% of the mass off the mark
    50 links: 2.5, 0% of the mass off the mark
    """
    a, budgets = second_by_name(C, "budgets", a, budgets)
    if budgets is None or not hasattr(budgets, "__iter__"):
        raise TypeError(f"budgets must be a list of budgets, got {budgets!r}")
    if "budget" in options:
        raise TypeError("solve_sweep takes budgets, a list, and no budget")
    checked = [Options.checked(budget=budget, **options) for budget in budgets]
    problem = as_problem(C, a, b, kernels=kernels, unbalanced=unbalanced, reg=reg)
    found: list[Result] = []
    for each in checked:
        found.append(solve_after(problem, each, found))
        if found[-1].status is Status.STOPPED:
            break
    return found
