"""Algorithm 2 as published: the same draws and the same steps, with one thousand iterations each."""

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from .. import _checks
from .._checks import Floats, Ints
from .._numba.compiling import compiled
from ..budgets import Pair, PerColumn
from ..inner.apgd import kkt_residual, times
from ..inner.solvers import Solution
from ..plan import Callback
from ..problem import Problem, require_plain
from ..result import Result
from ..select.generic_greedy import View, maximise
from ._wrap import as_result


def algorithm_2(
    problem: Problem, k: int, *, seed: int = 0, max_iter: int = 1000, callback: Callback | None = None
) -> Result:
    r"""The published Algorithm 2 with at most ``k`` entries in each column, as in the authors' code.

    Each step draws one pair of the best base (in every column, as many of the largest ``max(0, -gradient)`` as it has
    free places), then runs accelerated projected gradient from zero on the whole support for ``max_iter`` iterations
    with step 1/L, where

    .. math::
        L^2 = 4\big(\lambda^2 (n_S^2\|G_a\|^2 + m_S^2\|G_b\|^2 + 2\,1^\top G_a 1\,1^\top G_b 1)
        + \lambda_2^2 m_S n_S + 2\lambda\lambda_2 (n_S \mathrm{tr}\,G_a + m_S \mathrm{tr}\,G_b)\big)

    bounds the curvature on the rectangle of the :math:`m_S` rows and :math:`n_S` columns in use. That bound is loose,
    so late steps stop before they converge. Draws are those of the published code for the same seed. It is compiled,
    and an iteration costs :math:`O(m_S^2 + n_S^2 + |S|)`, as in the paper. This function reproduces the paper's numbers
    and times; for other purposes use ``solve``, with ``method="residual"`` for the same distribution.

    Parameters
    ----------
    problem : Problem
        With one weight for both marginals.
    k : int
        The most entries of a column.
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
    >>> from sparsetransport.baselines import algorithm_2
    >>> C = np.abs(np.arange(6.0)[:, None] - np.arange(5.0)) / 5.0
    >>> problem = st.Problem.from_matrices(C, unbalanced=1.0, reg=1.0)
    >>> literal, ours = algorithm_2(problem, 2), st.solve(problem, budget=st.PerColumn(2))
    >>> ours.value <= literal.value + 1e-9
    True
    """
    require_plain(problem, "algorithm_2")
    k, max_iter = _checks.positive_int("k", k), _checks.positive_int("max_iter", max_iter)
    if problem.unbalanced[0] != problem.unbalanced[1]:
        raise ValueError(f"unbalanced must be one number for algorithm_2, got {problem.unbalanced}")
    budget, rule = PerColumn(min(k, problem.shape[0])), _Draw(seed)
    outcome = maximise(problem, budget, rule, inner=_Descent(problem, max_iter), reclaim=False, callback=callback)
    result = as_result(
        problem, (outcome.rows, outcome.cols, outcome.mass), budget=budget, record=outcome.record, seed=seed
    )
    return replace(result, status=outcome.status, converged=result.kkt <= 1e-6)


class _Draw:
    """A uniformly random pair of the best base.

    The published code shuffles the base with PyTorch's generator and takes the first pair. That generator is a Mersenne
    Twister, a shuffle of ``s`` items takes ``s - 1`` numbers, and the first of them determines the first item, so
    NumPy's Mersenne Twister with the same seed draws the same pairs.
    """

    exhaustive: ClassVar[bool] = False

    def __init__(self, seed: int) -> None:
        self.twister = np.random.RandomState(seed)

    def select(self, view: View) -> Pair | None:
        """A free pair off the support, or None if there is none."""
        m, n = view.objective.shape
        assert view.limits is not None
        left = view.limits.cols - np.bincount(view.cols, minlength=n)
        free = np.flatnonzero(left)
        if not free.size:
            return None
        score = np.maximum(-view.objective.gradient_rows(view.fields, 0, m), 0.0)
        score[view.rows, view.cols] = -np.inf
        order = np.argsort(score[:, free], axis=0, kind="stable")
        in_base = np.arange(m)[:, None] >= m - left[free]
        rows, cols = order[in_base], np.broadcast_to(free, order.shape)[in_base]
        numbers = self.twister.randint(0, 2**32, size=max(len(rows) - 1, 1), dtype=np.uint32)
        drawn = int(numbers[0]) % len(rows)
        return int(rows[drawn]), int(cols[drawn])


class _Descent:
    """The published inner solver: from zero, or from the previous masses if ``warm``; always all iterations."""

    def __init__(self, problem: Problem, max_iter: int, *, warm: bool = False) -> None:
        self.problem, self.max_iter, self.warm = problem, max_iter, warm

    def solve(self, rows: Ints, cols: Ints, start: Floats) -> Solution:
        """The masses on the pairs."""
        if not rows.size:
            return Solution(mass=start, change=0.0, kkt=0.0, converged=True)
        problem, (weight, _), reg = self.problem, self.problem.unbalanced, self.problem.reg
        used_rows, near = np.unique(rows, return_inverse=True)
        used_cols, far = np.unique(cols, return_inverse=True)
        gram_a, gram_b = problem.gram_a.block(used_rows, used_rows), problem.gram_b.block(used_cols, used_cols)
        m, n = len(used_rows), len(used_cols)
        square = weight**2 * (n**2 * np.vdot(gram_a, gram_a) + m**2 * np.vdot(gram_b, gram_b))
        square += 2.0 * weight**2 * gram_a.sum() * gram_b.sum() + reg**2 * m * n
        square += 2.0 * weight * reg * (n * np.trace(gram_a) + m * np.trace(gram_b))
        slope = problem.slope(rows, cols)
        grams = 2.0 * weight * gram_a, 2.0 * weight * gram_b
        begin = start if self.warm else np.zeros(len(rows))
        mass = _descend(*grams, near, far, slope, reg, 2.0 * math.sqrt(square), begin, self.max_iter)
        row_sum, col_sum = np.bincount(near, mass), np.bincount(far, mass)
        r, c = 2.0 * weight * gram_a @ row_sum, 2.0 * weight * gram_b @ col_sum
        gradient = slope + r[near] + c[far] + reg * mass
        kkt = float(kkt_residual(gradient, mass)) / problem.scale
        change = 0.5 * float(slope @ mass + gradient @ mass)
        return Solution(mass=mass, change=change, kkt=kkt, converged=kkt <= 1e-6)

    def fresh(self) -> "_Descent":
        """Itself, since it has no state."""
        return self


@compiled
def _descend(
    gram_a: Floats,
    gram_b: Floats,
    near: Ints,
    far: Ints,
    slope: Floats,
    reg: float,
    steepest: float,
    start: Floats,
    max_iter: int,
) -> Floats:
    """Accelerated projected gradient on ``k`` pairs; ``near`` and ``far`` (k,) are their indices in the Gram matrices.

    As published, the gradient of the quadratic term is taken at the iterate, not at the extrapolated point.
    """
    size = slope.size
    mass, old, point, gradient = start.copy(), start.copy(), start.copy(), slope.copy()
    row_sum, col_sum = np.zeros(gram_a.shape[0]), np.zeros(gram_b.shape[0])
    r, c = np.zeros(gram_a.shape[0]), np.zeros(gram_b.shape[0])
    for s in range(size):
        row_sum[near[s]] += start[s]
        col_sum[far[s]] += start[s]
    times(gram_a, row_sum, r)
    times(gram_b, col_sum, c)
    for s in range(size):
        gradient[s] += r[near[s]] + c[far[s]] + reg * start[s]
    momentum = 1.0
    for _ in range(max_iter):
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        beta = (momentum - 1.0) / following
        momentum = following
        row_sum[:] = 0.0
        col_sum[:] = 0.0
        for s in range(size):
            mass[s] = max(point[s] - gradient[s] / steepest, 0.0)
            point[s] = (1.0 + beta) * mass[s] - beta * old[s]
            old[s] = mass[s]
            row_sum[near[s]] += point[s]
            col_sum[far[s]] += point[s]
        times(gram_a, row_sum, r)
        times(gram_b, col_sum, c)
        for s in range(size):
            gradient[s] = slope[s] + r[near[s]] + c[far[s]] + reg * mass[s]
    return mass
