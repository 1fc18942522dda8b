"""Unbalanced optimal transport with Kullback-Leibler marginals."""

from .. import _checks
from ..problem import Problem
from ..result import Result
from ._wrap import as_result, dense, require_pot


def kl_uot(problem: Problem, reg: float, reg_m: float, *, max_iter: int = 10_000) -> Result:
    r"""Soft marginals in the sense of Kullback and Leibler, with or without an entropy, by POT.

    .. math::
        \min_{\gamma \ge 0} \langle C, \gamma\rangle + \varepsilon\,\mathrm{KL}(\gamma \,|\, ab^\top)
        + \rho\,\mathrm{KL}(\gamma 1 \,|\, a) + \rho\,\mathrm{KL}(\gamma^\top 1 \,|\, b)

    Sinkhorn iterations where ε > 0, multiplicative updates where it is zero. Totals may differ.

    Parameters
    ----------
    problem : Problem
    reg : float
        ε, the weight of the entropic term; zero for none.
    reg_m : float
        ρ, the weight of the marginals.
    max_iter : int
        Iterations at the most.

    Returns
    -------
    Result

    Examples
    --------
    >>> import sparsetransport as st
    >>> from sparsetransport.baselines import kl_uot
    >>> problem = st.Problem.from_matrices([[1.0]], [1.0], [1.0])
    >>> kl_uot(problem, reg=1.0, reg_m=2.0).mass.round(4)  # exp(-1/5)
    array([0.8187])
    """
    reg = _checks.number("reg", reg, positive=False)
    reg_m = _checks.number("reg_m", reg_m, positive=True)
    max_iter = _checks.positive_int("max_iter", max_iter)
    ot, side = require_pot(), dense(problem, "kl_uot", balanced=False)
    if reg > 0.0:
        plan, log = ot.unbalanced.sinkhorn_stabilized_unbalanced(
            side.a, side.b, side.cost, reg, reg_m, reg_type="kl", numItermax=max_iter, stopThr=1e-10, log=True
        )
        error, limit = float(log["err"][-1]), 1e-10
    else:
        plan, log = ot.unbalanced.mm_unbalanced(
            side.a, side.b, side.cost, reg_m, reg=0.0, div="kl", numItermax=max_iter, stopThr=1e-12, log=True
        )
        error, limit = float(log["err"][-1]) if log.get("err") else 0.0, 1e-12
    return as_result(problem, side.whole(plan), converged=error <= limit)
