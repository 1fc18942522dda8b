"""Smooth and sparse optimal transport."""

from .. import _checks
from ..problem import Problem
from ..result import Result
from ._wrap import as_result, dense, require_pot


def ssot(problem: Problem, reg: float, *, max_iter: int = 5000) -> Result:
    r"""Smooth and sparse transport: hard marginals and a quadratic term (Blondel et al., 2018), by POT.

    .. math::
        \min_{\gamma \ge 0} \langle C, \gamma\rangle + \tfrac{\rho}{2}\|\gamma\|^2
        \quad\text{with}\quad \gamma 1 = a, \; \gamma^\top 1 = b

    The dual is solved by L-BFGS, so the marginals are exact up to its tolerance. If the totals differ, ``b`` is
    scaled to the total of ``a``.

    Parameters
    ----------
    problem : Problem
    reg : float
        ρ, the weight of the quadratic term; the ``reg`` of the problem is not used.
    max_iter : int
        The largest number of iterations.

    Returns
    -------
    Result

    Examples
    --------
    >>> import sparsetransport as st
    >>> from sparsetransport.baselines import ssot
    >>> problem = st.Problem.from_matrices([[0.0, 1.0], [1.0, 0.0]])
    >>> ssot(problem, reg=4.0).plan.round(3)
    array([[0.375, 0.125],
           [0.125, 0.375]])
    """
    reg = _checks.number("reg", reg, positive=True)
    max_iter = _checks.positive_int("max_iter", max_iter)
    ot, side = require_pot(), dense(problem, "ssot", balanced=True)
    plan, log = ot.smooth.smooth_ot_dual(
        side.a, side.b, side.cost, reg, reg_type="l2", stopThr=1e-12, numItermax=max_iter, log=True
    )
    return as_result(problem, side.whole(plan), converged=log["res"].success, iterations=int(log["res"].nit))
