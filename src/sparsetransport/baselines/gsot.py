"""Group-sparse optimal transport: links shared by scenarios, by a convex penalty."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from .. import _checks
from .._checks import Floats
from .._numba.compiling import compiled
from ..budgets import Uniform
from ..certify.certifier import Certifier
from ..engine.shared_solver import SharedOutcome
from ..inner.solvers import EXACT
from ..plan import Record
from ..problem import Problem
from ..shared import SharedResult, as_result, checked_problems
from ..status import Status
from ._wrap import Dense, dense


class _State(NamedTuple):
    """The variables of ADMM, (z, m, n) each: plans, their group-sparse copies, and scaled multipliers."""

    plans: Floats
    copies: Floats
    multipliers: Floats


def gsot(
    problems: Sequence[Problem],
    k: int,
    *,
    alpha: float = 10.0,
    rho: float = 1.0,
    max_iter: int = 300,
    tol: float = 1e-3,
) -> SharedResult:
    r"""Group-sparse transport for scenarios that share links (GSOT), by ADMM.

    .. math::
        \min_{T_s \in \Gamma(a_s, b_s)} \sum_s \langle C_s, T_s\rangle
        + \alpha \sum_{ij} \big\|(T_{1ij}, \dots, T_{zij})\big\|_2

    Each iteration solves a transport problem with a quadratic term for each scenario (its dual, by L-BFGS from zero),
    shrinks the group of every pair towards zero by :math:`\alpha/\rho`, and updates the multipliers. The penalty does
    not fix the number of links, so the ``k`` links with the largest sum over the plans are taken, as in the paper. If
    the totals differ, ``b`` is scaled to the total of ``a``.

    Parameters
    ----------
    problems : list of Problem
        The scenarios; their kernels and weights only affect the value of the result.
    k : int
        The number of links.
    alpha : float
        The weight of the penalty.
    rho : float
        The penalty parameter of ADMM.
    max_iter : int
        The number of iterations of ADMM.
    tol : float
        The tolerance of L-BFGS. The published one is coarse and leaves marginal errors.

    Returns
    -------
    SharedResult
        Its masses are those of the plans on the links; ``log["primal"]`` is the last residual :math:`\|T - Z\|`.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> from sparsetransport.baselines import gsot
    >>> profit, demands = np.array([[3.0, 1.0], [1.0, 3.0]]), [[0.4, 0.6], [0.6, 0.4]]
    >>> problems = [st.Problem.from_matrices(-profit, [0.5, 0.5], b, unbalanced=10.0) for b in demands]
    >>> sorted(map(tuple, gsot(problems, 2, alpha=0.1, max_iter=50, tol=1e-9).links.tolist()))
    [(0, 0), (1, 1)]
    """
    scenarios = checked_problems(problems)
    k, max_iter = _checks.positive_int("k", k), _checks.positive_int("max_iter", max_iter)
    alpha, rho = _checks.number("alpha", alpha, positive=True), _checks.number("rho", rho, positive=True)
    tol = _checks.number("tol", tol, positive=True)
    sides = [dense(problem, "gsot", balanced=True) for problem in scenarios]
    m, n = scenarios[0].shape
    start = np.stack([side.whole(np.outer(side.a, side.b) / side.a.sum()) for side in sides])
    state = _State(start.copy(), start.copy(), np.zeros_like(start))
    for _ in range(max_iter):
        for s, side in enumerate(sides):
            aim = side.cost - rho * (state.copies[s] - state.multipliers[s])[np.ix_(side.rows, side.cols)]
            state.plans[s] = side.whole(_quadratic_transport(side, aim, rho, tol))
        _shrink(state.plans, state.copies, state.multipliers, alpha / rho)
    total = state.plans.sum(axis=0)
    order = np.argsort(-total, axis=None, kind="stable")[: min(k, m * n)]
    rows, cols = np.divmod(order, n)
    outcome = SharedOutcome(rows, cols, state.plans[:, rows, cols], Status.BASELINE, (), Record())
    limits = Uniform(min(k, m * n)).limits((m, n))
    result = as_result(
        outcome, [Certifier(one, limits, EXACT) for one in scenarios], _checks.weights(None, len(scenarios))
    )
    result.log["primal"] = float(np.linalg.norm(state.plans - state.copies))
    result.log["iterations"] = max_iter
    return result


def _quadratic_transport(side: Dense, cost: Floats, rho: float, tol: float) -> Floats:
    """The plan of ``min <cost, T> + rho/2 |T|^2`` with the marginals of a scenario, from its smooth dual."""
    m = len(side.a)
    aim = np.concatenate([side.a, side.b])
    plan = np.empty_like(cost)

    def negative_dual(potentials: Floats) -> tuple[float, Floats]:
        gradient = -aim
        square = _dual(cost, potentials[:m], potentials[m:], rho, gradient, plan)
        return 0.5 * rho * square - float(potentials @ aim), gradient

    found = minimize(negative_dual, np.zeros(len(aim)), jac=True, method="L-BFGS-B", tol=tol, options={"maxiter": 1000})
    negative_dual(found.x)
    return plan


@compiled
def _dual(cost: Floats, u: Floats, v: Floats, rho: float, gradient: Floats, plan: Floats) -> float:
    """The plan of the potentials, its sums added to ``gradient`` (m + n,), and its squared norm."""
    m, n = cost.shape
    square = 0.0
    for i in range(m):
        row = 0.0
        for j in range(n):
            value = max(u[i] + v[j] - cost[i, j], 0.0) / rho
            plan[i, j] = value
            gradient[m + j] += value
            row += value
            square += value * value
        gradient[i] += row
    return square


@compiled
def _shrink(plans: Floats, copies: Floats, multipliers: Floats, threshold: float) -> None:
    """Shrink the group of every pair of ``plans + multipliers`` into ``copies``, and update the multipliers."""
    for i in range(plans.shape[1]):
        for j in range(plans.shape[2]):
            square = 0.0
            for s in range(plans.shape[0]):
                square += (plans[s, i, j] + multipliers[s, i, j]) ** 2
            norm = np.sqrt(square)
            share = 1.0 - threshold / norm if norm > threshold else 0.0
            for s in range(plans.shape[0]):
                value = plans[s, i, j] + multipliers[s, i, j]
                copies[s, i, j] = share * value
                multipliers[s, i, j] = value - share * value
