"""Unbalanced optimal transport with Kullback-Leibler marginals."""

import numpy as np

from .. import _checks
from .._checks import Floats
from ..problem import Problem
from ..result import Result
from ._wrap import as_result, dense, require_pot


def kl_uot(problem: Problem, reg: float, reg_m: float, *, max_iter: int = 10_000) -> Result:
    r"""Unbalanced transport with Kullback-Leibler marginals, with or without entropy.

    .. math::
        \min_{\gamma \ge 0} \langle C, \gamma\rangle + \varepsilon\,\mathrm{KL}(\gamma \,|\, ab^\top)
        + \rho\,\mathrm{KL}(\gamma 1 \,|\, a) + \rho\,\mathrm{KL}(\gamma^\top 1 \,|\, b)

    By Sinkhorn iterations in the log domain if ε > 0, and POT's multiplicative updates if ε = 0. Totals may differ.

    Parameters
    ----------
    problem : Problem
    reg : float
        ε, the weight of the entropic term; zero for none.
    reg_m : float
        ρ, the weight of the marginals.
    max_iter : int
        The largest number of iterations.

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
    side = dense(problem, "kl_uot", balanced=False)
    if reg > 0.0:
        plan, converged = scaled(side.a, side.b, side.cost, reg, reg_m, max_iter=max_iter)
        return as_result(problem, side.whole(plan), converged=converged)
    plan, log = require_pot().unbalanced.mm_unbalanced(
        side.a, side.b, side.cost, reg_m, reg=0.0, div="kl", numItermax=max_iter, stopThr=1e-12, log=True
    )
    return as_result(problem, side.whole(plan), converged=not log.get("err") or float(log["err"][-1]) <= 1e-12)


def scaled(
    a: Floats, b: Floats, cost: Floats, reg: float, reg_m: float, *, max_iter: int, tol: float = 1e-10
) -> tuple[Floats, bool]:
    r"""The plan :math:`ab^\top e^{f \oplus g - C/\varepsilon}` by Sinkhorn iterations, and whether they converged.

    POT (0.9.7) is not used: where ``exp(-C / reg)`` underflows, its plain iterations fail, and its stabilised ones end
    at an almost empty plan and report convergence. In the log domain nothing underflows.
    """
    log_a, log_b, kernel = np.log(a), np.log(b), -cost / reg
    weight, share = reg / reg_m, reg_m / (reg_m + reg)
    # The relative tolerance of the row sums against a exp(-weight f), no smaller than rounding allows.
    tol = max(tol, 1e-14 * float(np.abs(kernel).max()))
    f, g = np.zeros_like(a), np.zeros_like(b)
    for _ in range(max_iter):
        last, f = f, -share * _log_sum(kernel + (g + log_b))
        g = -share * _log_sum((kernel + (f + log_a)[:, None]).T)
        if float(np.abs(f - last).max()) <= share * tol:
            return np.exp(kernel + (f + log_a)[:, None] + (g + log_b)), True
        # Move the best constant from g to f; without this a large reg_m takes thousands of iterations.
        shift = 0.5 / weight * (_log_sum(log_a - weight * f) - _log_sum(log_b - weight * g))
        f, g = f + shift, g - shift
    return np.exp(kernel + (f + log_a)[:, None] + (g + log_b)), False


def _log_sum(x: Floats) -> Floats:
    """``log Σ exp(x)`` over the last axis; SciPy's costs several times as much on small arrays."""
    largest = x.max(axis=-1)
    return np.asarray(largest + np.log(np.exp(x - largest[..., None]).sum(axis=-1)))
