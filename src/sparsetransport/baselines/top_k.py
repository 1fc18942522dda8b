"""The largest entries of a plan."""

import numpy as np

from .. import _checks
from ..problem import Problem, require_plain
from ..result import Result
from ._wrap import as_result


def top_k(result: Result, k: int, problem: Problem | None = None) -> Result:
    r"""The plan that keeps the ``k`` largest entries of another and drops the rest.

    .. math::
        \gamma'_{ij} = \gamma_{ij} \text{ if it is among the } k \text{ largest, else } 0

    The masses do not change; ``solve_support(problem, top_k(result, k))`` optimises them. Among equal entries the first
    ones are kept.

    Parameters
    ----------
    result : Result
        The plan.
    k : int
        The number of entries to keep.
    problem : Problem, optional
        The problem of the plan; not needed for a result of this package's baselines.

    Returns
    -------
    Result

    Examples
    --------
    >>> import sparsetransport as st
    >>> from sparsetransport.baselines import mmd_uot, top_k
    >>> problem = st.Problem.from_matrices([[0.0, 1.0], [1.0, 0.2]], unbalanced=1.0, reg=0.1)
    >>> top_k(mmd_uot(problem), 1).plan.round(2)
    array([[0.49, 0.  ],
           [0.  , 0.  ]])
    """
    k = _checks.positive_int("k", k)
    problem = result.log.get("problem") if problem is None else problem
    if problem is None:
        raise ValueError("problem must be given, got None, for a result that is not of a baseline")
    require_plain(problem, "top_k")
    parts = result._parts
    keep = np.sort(np.argsort(-parts.mass, kind="stable")[:k])
    m, n = problem.shape
    return as_result(problem, (parts.rows[keep], parts.cols[keep], parts.mass[keep]), budget=min(k, m * n))
