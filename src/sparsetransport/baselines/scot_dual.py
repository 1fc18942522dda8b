"""SCOT's solver on our dual: the comparison of section 5.3 of the paper."""

from collections.abc import Callable

import numpy as np

from .. import _checks
from .._checks import Floats
from ..budgets import PerColumn
from ..geometry.matrices import Gram
from ..problem import Problem
from ..result import Result
from ._wrap import as_result, cost_of


def scot_dual(problem: Problem, k: int, max_iter: int = 1000, *, tol: float = 1e-3) -> Result:
    r"""Our problem with at most ``k`` entries in each column, by L-BFGS on its dual and a sparse projection.

    The dual of Lemma 3.4 of the paper,

    .. math::
        D(\alpha, \beta) = \langle\alpha, a\rangle + \langle\beta, b\rangle
        - \tfrac{1}{4\lambda_a}\alpha^\top G_a^{-1}\alpha - \tfrac{1}{4\lambda_b}\beta^\top G_b^{-1}\beta
        - \tfrac{1}{2\lambda_2}\sum_j \Big(\text{the } k \text{ largest } \max(0, \alpha_i + \beta_j - C_{ij})\Big)^2,

    is maximised by SciPy's L-BFGS-B from zero, as Liu et al. (2023) do for theirs. The plan is the sparse projection
    :math:`\gamma_{ij} = \max(0, \alpha_i + \beta_j - C_{ij}) / \lambda_2` on the ``k`` largest of each column. (The
    published script of the comparison omits the division by λ₂, so its plans for λ₂ ≠ 1 differ.) The dual is not
    smooth, and its maximiser need not give the best plan.

    Parameters
    ----------
    problem : Problem
        With ``reg`` > 0 and invertible Gram matrices.
    k : int
        The most entries of a column.
    max_iter : int
        The largest number of iterations of L-BFGS-B.
    tol : float
        Its tolerance; 1e-3 is the published value and stops early.

    Returns
    -------
    Result
        ``log["dual"]`` is the dual value that this solver found, ``log["gap"]`` the gap to it.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> from sparsetransport.baselines import scot_dual
    >>> C = np.abs(np.arange(6.0)[:, None] - np.arange(5.0)) / 5.0
    >>> problem = st.Problem.from_matrices(C, unbalanced=1.0, reg=1.0)
    >>> res = scot_dual(problem, k=2, tol=1e-9)
    >>> ours = st.solve(problem, budget=st.PerColumn(2))
    >>> ours.value <= res.value + 1e-9, res.log["gap"] >= -1e-9
    (True, True)
    """
    from scipy.optimize import minimize

    k = min(_checks.positive_int("k", k), problem.shape[0])
    max_iter, tol = _checks.positive_int("max_iter", max_iter), _checks.number("tol", tol, positive=True)
    if problem.reg == 0.0:
        raise ValueError("reg must be positive for scot_dual, whose dual divides by it, got 0.0")
    cost, m = cost_of(problem), problem.shape[0]
    (weight_a, weight_b), reg = problem.unbalanced, problem.reg
    solve_a, solve_b = _inverse("kernels[0]", problem.gram_a), _inverse("kernels[1]", problem.gram_b)

    def negative(potentials: Floats) -> tuple[float, Floats]:
        alpha, beta = potentials[:m], potentials[m:]
        u, v = solve_a(alpha) / (2.0 * weight_a), solve_b(beta) / (2.0 * weight_b)
        plan = _project(alpha, beta, cost, k, reg)
        value = alpha @ (problem.a - 0.5 * u) + beta @ (problem.b - 0.5 * v) - 0.5 * reg * np.vdot(plan, plan)
        slope = np.concatenate([problem.a - u - plan.sum(axis=1), problem.b - v - plan.sum(axis=0)])
        return -float(value), -slope

    found = minimize(
        negative, np.zeros(sum(problem.shape)), method="L-BFGS-B", jac=True, tol=tol, options={"maxiter": max_iter}
    )
    plan, dual = _project(found.x[:m], found.x[m:], cost, k, reg), -float(found.fun)
    result = as_result(
        problem, plan, budget=PerColumn(k), converged=bool(found.success), iterations=int(found.nit), dual=dual
    )
    result.log["gap"] = result.value - dual
    return result


def _project(alpha: Floats, beta: Floats, cost: Floats, k: int, reg: float) -> Floats:
    """The plan that attains the conjugate: the ``k`` largest of every column, where positive, divided by λ₂."""
    wish = alpha[:, None] + beta - cost
    m = len(wish)
    if k < m:
        small = np.argpartition(wish, m - k - 1, axis=0)[: m - k]
        np.put_along_axis(wish, small, 0.0, axis=0)
    return np.asarray(np.maximum(wish, 0.0) / reg)


def _inverse(name: str, gram: Gram) -> Callable[[Floats], Floats]:
    """The function that multiplies by the inverse of a Gram matrix."""
    from scipy.linalg import cho_factor, cho_solve

    if gram.is_delta:
        return lambda vector: vector
    every = np.arange(gram.size)
    try:
        factor = cho_factor(gram.block(every, every))
    except np.linalg.LinAlgError:
        raise ValueError(f"{name} must be positive definite for scot_dual, which inverts it: add a ridge") from None
    return lambda vector: np.asarray(cho_solve(factor, vector))
