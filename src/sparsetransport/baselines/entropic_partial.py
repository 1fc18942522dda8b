"""Entropic partial optimal transport."""

from .. import _checks
from ..problem import Problem
from ..result import Result
from ._wrap import as_result, dense, require_pot
from .partial import part_of


def entropic_partial_ot(problem: Problem, mass: float, reg: float, *, max_iter: int = 10_000) -> Result:
    r"""Entropic partial transport, which moves a given mass, by POT's Bregman projections.

    .. math::
        \min_{\gamma \ge 0} \langle C, \gamma\rangle + \varepsilon \sum_{ij} \gamma_{ij}\log\gamma_{ij}
        \quad\text{with}\quad \gamma 1 \le a, \; \gamma^\top 1 \le b, \; \textstyle\sum\gamma = s

    Totals may differ; ``mass`` may not exceed the smaller one.

    Parameters
    ----------
    problem : Problem
    mass : float
        s, the mass to move.
    reg : float
        ε, the weight of the entropy.
    max_iter : int
        The largest number of iterations.

    Returns
    -------
    Result

    Examples
    --------
    >>> import sparsetransport as st
    >>> from sparsetransport.baselines import entropic_partial_ot
    >>> problem = st.Problem.from_matrices([[0.0, 1.0], [1.0, 0.0]])
    >>> round(float(entropic_partial_ot(problem, mass=0.5, reg=0.5).mass.sum()), 6)
    0.5
    """
    reg = _checks.number("reg", reg, positive=True)
    max_iter = _checks.positive_int("max_iter", max_iter)
    ot, side = require_pot(), dense(problem, "entropic_partial_ot", balanced=False)
    plan, log = ot.partial.entropic_partial_wasserstein(
        side.a, side.b, side.cost, reg, m=part_of(side, mass), numItermax=max_iter, stopThr=1e-12, log=True
    )
    error = float(log["err"][-1]) if log["err"] else 0.0
    return as_result(problem, side.whole(plan), converged=error <= 1e-12)
