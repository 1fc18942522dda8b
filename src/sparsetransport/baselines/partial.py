"""Partial optimal transport."""

from .. import _checks
from ..problem import Problem
from ..result import Result
from ._wrap import Dense, as_result, dense, require_pot


def partial_ot(problem: Problem, mass: float) -> Result:
    r"""The cheapest way to move a given part of the mass, by POT's network simplex.

    .. math::
        \min_{\gamma \ge 0} \langle C, \gamma\rangle
        \quad\text{with}\quad \gamma 1 \le a, \; \gamma^\top 1 \le b, \; \textstyle\sum\gamma = s

    Totals may differ; ``mass`` may not exceed the smaller one.

    Parameters
    ----------
    problem : Problem
    mass : float
        s, the mass to move.

    Returns
    -------
    Result

    Examples
    --------
    >>> import sparsetransport as st
    >>> from sparsetransport.baselines import partial_ot
    >>> problem = st.Problem.from_matrices([[0.0, 5.0], [5.0, 3.0]], [0.5, 0.5], [0.5, 0.5])
    >>> partial_ot(problem, mass=0.5).plan
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    ot, side = require_pot(), dense(problem, "partial_ot", balanced=False)
    plan = ot.partial.partial_wasserstein(side.a, side.b, side.cost, m=part_of(side, mass))
    return as_result(problem, side.whole(plan))


def part_of(side: Dense, mass: float) -> float:
    """The mass to move, checked."""
    mass = _checks.number("mass", mass, positive=True)
    most = float(min(side.a.sum(), side.b.sum()))
    if mass > most * (1.0 + 1e-12):
        raise ValueError(f"mass must not exceed the smaller total, {most:g}, got {mass:g}")
    return min(mass, most)
