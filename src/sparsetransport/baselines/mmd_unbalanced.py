"""Unbalanced optimal transport with MMD marginals: the unbudgeted optimum of our objective."""

import math

import numpy as np

from .. import _checks
from .._checks import Floats
from ..api import solve
from ..geometry.matrices import Gram
from ..problem import Problem
from ..result import Result
from ._wrap import as_result, cost_of


def mmd_uot(problem: Problem, solver: str = "exact", max_iter: int = 1000) -> Result:
    r"""The unbudgeted optimum of our objective.

    .. math::
        \min_{\gamma \ge 0} \langle C, \gamma\rangle + \lambda_a \|\gamma 1 - a\|^2_{G_a}
        + \lambda_b \|\gamma^\top 1 - b\|^2_{G_b} + \tfrac{\lambda_2}{2}\|\gamma\|^2

    Parameters
    ----------
    problem : Problem
    solver : {"exact", "apgd"}
        Our active-set method, which is exact and whose plan is sparse; or accelerated projected gradient on the whole
        plan with step 1/L, as in the paper. Totals may differ.
    max_iter : int
        The number of iterations of "apgd".

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> from sparsetransport.baselines import mmd_uot
    >>> problem = st.Problem.from_matrices([[0.0, 1.0], [1.0, 0.0]], unbalanced=10.0, reg=0.1)
    >>> exact, apgd = mmd_uot(problem), mmd_uot(problem, solver="apgd")
    >>> bool(np.allclose(exact.plan, apgd.plan))
    True
    """
    _checks.choice("solver", solver, {"exact": None, "apgd": None})
    max_iter = _checks.positive_int("max_iter", max_iter)
    if solver == "exact":
        exact = solve(problem)
        exact.log["problem"] = problem
        return exact
    plan = _descend(problem, max_iter)
    result = as_result(problem, plan, iterations=max_iter)
    gradient = problem.gradient_rows(problem.fields(result.rows, result.cols, result.mass), 0, len(plan))
    off = np.where(plan > 0.0, np.abs(gradient + problem.reg * plan), np.maximum(-gradient, 0.0)).max()
    object.__setattr__(result, "converged", bool(off <= 1e-6 * problem.scale))
    return result


def _descend(problem: Problem, max_iter: int) -> Floats:
    """Nesterov's accelerated gradient, projected on the non-negative plans, from the empty plan."""
    (m, n), (weight_a, weight_b) = problem.shape, problem.unbalanced
    cost = cost_of(problem)
    r0, c0 = problem.base
    # The two marginal terms have the Hessians 2λ G ⊗ 11' and 11' ⊗ 2λ G.
    steepest = 2.0 * (weight_a * n * _largest(problem.gram_a) + weight_b * m * _largest(problem.gram_b)) + problem.reg
    plan = np.zeros((m, n))
    point, momentum = plan, 1.0
    for _ in range(max_iter):
        r = r0 + 2.0 * weight_a * problem.gram_a.times(point.sum(axis=1))
        c = c0 + 2.0 * weight_b * problem.gram_b.times(point.sum(axis=0))
        gradient = cost + r[:, None]
        gradient += c
        if problem.reg > 0.0:
            gradient += problem.reg * point
        new = np.maximum(point - gradient / steepest, 0.0)
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        point = new + ((momentum - 1.0) / following) * (new - plan)
        plan, momentum = new, following
    return plan


def _largest(gram: Gram) -> float:
    """The largest eigenvalue."""
    if gram.is_delta:
        return 1.0
    every = np.arange(gram.size)
    return float(np.linalg.eigvalsh(gram.block(every, every))[-1])
