"""One problem with several budgets: `solve_sweep`."""

from collections.abc import Iterable
from typing import Unpack

from ._checks import ArrayLike
from ._progress import shown, tell
from .api import solve_after
from .given import KernelsLike, LinkCostLike, SenseLike, WeightsLike
from .options import Budget, Options, SolveOptions
from .problem import Problem, as_problem, second_by_name
from .result import Result
from .status import Status


def solve_sweep(
    C: ArrayLike | Problem,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    budgets: Iterable[Budget] | None = None,
    kernels: KernelsLike = None,
    unbalanced: WeightsLike = "auto",
    reg: float = 0.0,
    sense: SenseLike = "=",
    link_cost: LinkCostLike = None,
    **options: Unpack[SolveOptions],
) -> list[Result]:
    """Solve a problem with several budgets, one after another.

    Each budget is solved on its own. If an earlier, smaller budget has a lower objective, its plan is the warm start of
    a second solve, and the better plan is kept, so the objective does not rise from a budget to one that allows more.
    The unbudgeted optimum, which the bounds need, is solved once.

    Parameters
    ----------
    C, a, b, kernels, unbalanced, reg, sense, link_cost
        As in `solve`.
    budgets : list of int, Matroid or None
        The budgets, from few links to many; ``None`` for no budget.
    **options
        As in `solve`. A ``callback`` that returns true ends the sweep; the last plan is the one it stopped.

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
    ...     print(f"{len(res.mass)} links: {res.value:.1f}, marginal error of the columns {res.marginal_errors[1]:.0%}")
    20 links: 151.1, marginal error of the columns 27%
    30 links: 14.4, marginal error of the columns 7%
    40 links: 4.9, marginal error of the columns 3%
    50 links: 2.5, marginal error of the columns 0%
    """
    a, budgets = second_by_name(C, "budgets", a, budgets)
    if budgets is None or not hasattr(budgets, "__iter__"):
        raise TypeError(f"budgets must be a list of budgets, got {budgets!r}")
    if "budget" in options:
        raise TypeError("budget must not be given to solve_sweep, which takes a list, budgets=[...]")
    checked = [Options.checked(budget=budget, **options) for budget in budgets]
    problem = as_problem(C, a, b, kernels=kernels, unbalanced=unbalanced, reg=reg, sense=sense, link_cost=link_cost)
    found: list[Result] = []
    with shown(options.get("progress", False)):
        for each in checked:
            tell(budget=f"budget {each.matroid}")
            found.append(solve_after(problem, each, found))
            if found[-1].status is Status.STOPPED:
                break
    return found
