r"""The optimum of budgets of one link a row and column, with `Delta` kernels: a matching.

Links of a matching share no point, so each gains what it gains alone: :math:`W_{ij}^2 / 2(2\lambda_a + 2\lambda_b +
\lambda_2)` with :math:`W = \max(0, 2\lambda_a a_i + 2\lambda_b b_j - C_{ij})`, and the optimum is the objective of the
empty plan minus the largest sum of gains of a matching, of at most K links if the whole plan has a budget too.
"""

from collections.abc import Sequence

import numpy as np

from .._checks import Floats, Ints
from ..budgets import Limits
from ..problem import Problem
from .rounding import below


def applies(problems: Sequence[Problem], limits: Limits) -> bool:
    """True if all plans within the limits are matchings, and links of a matching do not touch each other's gain."""
    is_matching = bool((limits.rows <= 1).all() and (limits.cols <= 1).all()) or limits.total <= 1
    return is_matching and not len(limits.labels) and all(one.has_deltas and is_two_sided(one) for one in problems)


def is_two_sided(problem: Problem) -> bool:
    """True if every deviation of a marginal is penalised, as the formulas of this folder assume."""
    return getattr(problem, "sense", ("=", "=")) == ("=", "=") and max(problem.unbalanced) < np.inf


def optimum(
    problems: Sequence[Problem], weights: Sequence[float] | Floats, limits: Limits
) -> tuple[float, Ints, Ints, list[Floats]]:
    """The least weighted sum of objectives, minus a rounding margin, and the matching with its masses in each."""
    from scipy.optimize import linear_sum_assignment  # takes longer to import than most matchings do

    (m, n), pulls = problems[0].shape, []
    gain, constant = np.zeros((m, n)), 0.0
    for problem, weight in zip(problems, weights, strict=True):
        pull = np.maximum(-problem.gradient_rows(problem.base, 0, m), 0.0)
        gain += 0.5 * float(weight) * pull**2 / _curvature(problem)
        constant += float(weight) * problem.constant
        pulls.append(pull)
    gain[limits.rows == 0] = 0.0
    gain[:, limits.cols == 0] = 0.0
    most = min(limits.total, m, n)
    if most == 1:
        rows, cols = (np.array([k]) for k in np.divmod(int(gain.argmax()), n))
    else:  # a row or column beyond the budget is matched with one that gains nothing
        padded = np.zeros((m + n - most, m + n - most))
        padded[:m, :n] = gain
        padded[m:, n:] = -np.inf
        rows, cols = linear_sum_assignment(padded if most < min(m, n) else gain, maximize=True)
    inside = (rows < m) & (cols < n)
    rows, cols = rows[inside], cols[inside]
    used = gain[rows, cols] > 0.0
    rows, cols = rows[used], cols[used]
    total = float(gain[rows, cols].sum())
    masses = [pull[rows, cols] / _curvature(one) for pull, one in zip(pulls, problems, strict=True)]
    return below(constant - total, constant + 2.0 * total, m + n), rows, cols, masses


def _curvature(problem: Problem) -> float:
    weight_a, weight_b = problem.unbalanced
    return 2.0 * weight_a + 2.0 * weight_b + problem.reg
