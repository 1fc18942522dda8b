"""Algorithm 1 as published, and its version that looks at all pairs."""

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from .. import _checks
from ..budgets import Pair, Uniform
from ..plan import Callback
from ..problem import Problem, require_plain
from ..result import Result
from ..select.generic_greedy import View, maximise
from ._wrap import as_result
from .algorithm_2 import _Descent


def algorithm_1(
    problem: Problem,
    k: int,
    *,
    eps: float | None = None,
    seed: int = 0,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> Result:
    r"""The published Algorithm 1 with ``k`` entries in the whole plan, as in the authors' code.

    Each step takes the steepest of :math:`\lceil mn/k \log(1/\varepsilon)\rceil` pairs drawn *with* replacement off
    the support, or of all pairs, then runs accelerated projected gradient on the support, from the previous masses, for
    ``max_iter`` iterations with the step size of `algorithm_2`. The draws are those of the published code for the same
    seed. This function reproduces the paper's numbers and times; for other purposes use ``solve``.

    Parameters
    ----------
    problem : Problem
        With one weight for both marginals.
    k : int
        The number of entries of the plan.
    eps : float, optional
        ε, between 0 and 1. None to look at all pairs, the paper's non-stochastic OMP.
    seed : int
        The seed of the draws.
    max_iter : int
        The number of iterations in each step.
    callback : callable, optional
        Called after each step, as in `solve`.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> from sparsetransport.baselines import algorithm_1
    >>> C = np.abs(np.arange(6.0)[:, None] - np.arange(5.0)) / 5.0
    >>> problem = st.Problem.from_matrices(C, unbalanced=1.0, reg=1.0)
    >>> literal, ours = algorithm_1(problem, 6, eps=0.01), st.solve(problem, budget=6)
    >>> ours.value <= literal.value + 1e-9
    True
    """
    require_plain(problem, "algorithm_1")
    k, max_iter = _checks.positive_int("k", k), _checks.positive_int("max_iter", max_iter)
    if eps is not None and not 0.0 < _checks.number("eps", eps, positive=True) < 1.0:
        raise ValueError(f"eps must be between 0 and 1, got {eps!r}")
    if problem.unbalanced[0] != problem.unbalanced[1]:
        raise ValueError(f"unbalanced must be one number for algorithm_1, got {problem.unbalanced}")
    m, n = problem.shape
    budget = Uniform(min(k, m * n))
    inner = _Descent(problem, max_iter, warm=True)
    outcome = maximise(problem, budget, _Steepest(k, eps, seed), inner=inner, reclaim=False, callback=callback)
    plan = outcome.rows, outcome.cols, outcome.mass
    result = as_result(problem, plan, budget=budget, record=outcome.record, seed=seed)
    return replace(result, status=outcome.status, converged=result.kkt <= 1e-6)


class _Steepest:
    """The pair with the smallest gradient, of all or of a sample, even if it does not help; the first one in a tie.

    The published code draws the sample with PyTorch's generator: a Mersenne Twister whose 32-bit numbers are taken
    modulo the number of pairs left. NumPy's Mersenne Twister with the same seed draws the same pairs.
    """

    exhaustive: ClassVar[bool] = False

    def __init__(self, k: int, eps: float | None, seed: int) -> None:
        self.k, self.eps = k, eps
        self.twister = np.random.RandomState(seed)

    def select(self, view: View) -> Pair | None:
        """A free pair off the support, or None if there is none."""
        m, n = view.objective.shape
        if len(view.support) >= min(self.k, m * n):
            return None
        left = np.setdiff1d(np.arange(m * n), view.rows * n + view.cols)
        if self.eps is not None:
            size = math.ceil(m * n / self.k * math.log(1.0 / self.eps))
            left = left[self.twister.randint(0, 2**32, size=size, dtype=np.uint32) % len(left)]
        rows, cols = np.divmod(left, n)
        best = int(view.gradient(rows, cols).argmin())
        return int(rows[best]), int(cols[best])
