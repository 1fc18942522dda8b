"""Sparsity-constrained optimal transport."""

from contextlib import redirect_stdout
from io import StringIO

from .. import _checks
from ..budgets import PerColumn
from ..problem import Problem
from ..result import Result
from ._wrap import as_result, dense, require_pot
from .ssot import ssot

_MISSED = 0.01  # of the total: the largest error of the row sums that counts as converged


def scot(problem: Problem, k: int, reg: float, *, max_iter: int = 5000) -> Result:
    r"""Sparsity-constrained transport with at most ``k`` entries in each column (Liu et al., 2023), by POT.

    .. math::
        \min_{\gamma \ge 0} \langle C, \gamma\rangle + \tfrac{\rho}{2}\|\gamma\|^2
        \quad\text{with}\quad \gamma 1 = a, \; \gamma^\top 1 = b, \; \|\gamma_{:j}\|_0 \le k

    The semi-dual is maximised by L-BFGS and the plan is the sparse projection there. The problem is not convex, so the
    plan has exact column sums, but row sums only up to the duality gap: if they differ by more than 1 % of the total,
    the result is marked as not converged. Costs that vary much and a small k can leave whole rows empty. If the totals
    differ, ``b`` is scaled to the total of ``a``.

    Parameters
    ----------
    problem : Problem
    k : int
        The most entries of a column.
    reg : float
        ρ, the weight of the quadratic term; the ``reg`` of the problem is not used.
    max_iter : int
        The largest number of iterations.

    Returns
    -------
    Result
        ``log["marginal_error"]`` is the error of the row sums, as a share of the total.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> from sparsetransport.baselines import scot
    >>> res = scot(st.Problem.from_matrices([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]]), k=1, reg=1.0)
    >>> np.bincount(res.cols)
    array([1, 1, 1])
    """
    k = _checks.positive_int("k", k)
    reg = _checks.number("reg", reg, positive=True)
    max_iter = _checks.positive_int("max_iter", max_iter)
    ot, side = require_pot(), dense(problem, "scot", balanced=True)
    if k >= len(side.rows):  # no constraint, which POT's projection does not support
        return ssot(problem, reg, max_iter=max_iter)
    with redirect_stdout(StringIO()):  # some versions of POT print what their projection does
        plan, log = ot.smooth.smooth_ot_semi_dual(
            side.a,
            side.b,
            side.cost,
            reg,
            reg_type="sparsity_constrained",
            max_nz=k,
            stopThr=1e-12,
            numItermax=max_iter,
            log=True,
        )
    found = log["res"]
    missed = float(abs(plan.sum(axis=1) - side.a).sum() / side.a.sum())
    converged = found.success and missed <= _MISSED
    return as_result(
        problem,
        side.whole(plan),
        budget=PerColumn(k),
        converged=converged,
        iterations=int(found.nit),
        marginal_error=missed,
    )
