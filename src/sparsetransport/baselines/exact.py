"""Exact optimal transport."""

from ..problem import Problem
from ..result import Result
from ._wrap import as_result, dense, require_pot


def exact_ot(problem: Problem) -> Result:
    r"""The cheapest plan with hard marginals, by POT's network simplex.

    .. math::
        \min_{\gamma \ge 0} \langle C, \gamma\rangle \quad\text{with}\quad \gamma 1 = a, \; \gamma^\top 1 = b

    If the totals differ, ``b`` is scaled to the total of ``a``.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    Result
        Its ``value_linear`` is the cost of transport.

    Examples
    --------
    >>> import sparsetransport as st
    >>> from sparsetransport.baselines import exact_ot
    >>> problem = st.Problem.from_matrices([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], [0.25, 0.75])
    >>> exact_ot(problem).value_linear
    0.25
    """
    ot, side = require_pot(), dense(problem, "exact_ot", balanced=True)
    plan, log = ot.emd(side.a, side.b, side.cost, numItermax=10_000_000, log=True)
    return as_result(problem, side.whole(plan), converged=log["warning"] is None)
