"""Entropic optimal transport."""

from .. import _checks
from ..problem import Problem
from ..result import Result
from ._wrap import as_result, dense, require_pot


def entropic_ot(problem: Problem, reg: float, *, max_iter: int = 10_000) -> Result:
    r"""Entropic transport with hard marginals, by POT's Sinkhorn iterations in the log domain.

    .. math::
        \min_{\gamma \ge 0} \langle C, \gamma\rangle + \varepsilon \sum_{ij} \gamma_{ij}\log\gamma_{ij}
        \quad\text{with}\quad \gamma 1 = a, \; \gamma^\top 1 = b

    If the totals differ, ``b`` is scaled to the total of ``a``.

    Parameters
    ----------
    problem : Problem
    reg : float
        ε, the weight of the entropy.
    max_iter : int
        The largest number of iterations.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> from sparsetransport.baselines import entropic_ot
    >>> problem = st.Problem.from_matrices([[0.0, 1.0], [1.0, 0.0]])
    >>> entropic_ot(problem, reg=1.0).plan.round(3)
    array([[0.366, 0.134],
           [0.134, 0.366]])
    """
    reg = _checks.number("reg", reg, positive=True)
    max_iter = _checks.positive_int("max_iter", max_iter)
    ot, side = require_pot(), dense(problem, "entropic_ot", balanced=True)
    plan, log = ot.sinkhorn(
        side.a, side.b, side.cost, reg, method="sinkhorn_log", numItermax=max_iter, stopThr=1e-9, log=True, warn=False
    )
    converged = bool(log["err"]) and float(log["err"][-1]) < 1e-9
    return as_result(problem, side.whole(plan), converged=converged, iterations=int(log["niter"]))
