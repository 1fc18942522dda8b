r"""A start for one link a row and column: the assignment that gains most if every link stood alone.

Alone, a link with the negative gradient :math:`W` at the empty plan gains :math:`W^2 / 2H`, with :math:`H` the diagonal
of the Hessian. With delta kernels links of a matching do not touch each other's gain, and this is the optimum.
"""

from collections.abc import Sequence

import numpy as np

from .._checks import Floats
from ..budgets import Limits, Pair
from ..problem import Problem


def is_one_to_one(limits: Limits) -> bool:
    """True if a plan within the limits is a matching, and every matching is within the limits."""
    m, n = len(limits.rows), len(limits.cols)
    one = bool((limits.rows == 1).all() and (limits.cols == 1).all())
    return one and limits.total >= min(m, n) and not len(limits.labels)


def _alone(problem: Problem) -> Floats:
    """What every link gains alone, whatever the senses are; both kernels are `Delta`.

    The objective of a link is convex and quadratic between the wanted masses, so its least value is at one of these, or
    where the slope is zero with the errors of both sides, or of one of them, counted.
    """
    cost = np.concatenate([block for _, block in problem.cost.blocks()])
    (weight_a, weight_b), a, b = problem.unbalanced, problem.a[:, None], problem.b[None, :]
    pulls, bends = (2.0 * weight_a * a, 2.0 * weight_b * b), (2.0 * weight_a, 2.0 * weight_b)
    tries = [a + 0.0 * b, b + 0.0 * a]
    for first, second in ((1, 1), (1, 0), (0, 1)):
        bend = first * bends[0] + second * bends[1] + problem.reg
        tries.append((first * pulls[0] + second * pulls[1] - cost) / bend)
    best = np.zeros(cost.shape)
    for mass in tries:
        mass = np.where(np.isfinite(mass), mass, 0.0).clip(0.0)
        rise = np.where(np.isfinite(cost), cost, 0.0) * mass
        rise += 0.5 * problem.reg * mass**2
        for wanted, weight, sense in zip((a, b), problem.unbalanced, problem.sense, strict=True):
            rise += weight * (_counted(mass - wanted, sense) ** 2 - _counted(-wanted, sense) ** 2)
        best = np.maximum(best, -rise)
    return np.where(np.isfinite(cost), best, 0.0)


def _counted(error: Floats, sense: str) -> Floats:
    """What counts of errors by the sense of their side."""
    return error if sense == "=" else error.clip(0.0) if sense == "<=" else error.clip(None, 0.0)


def best_alone(problems: Sequence[Problem], weights: Sequence[float] | Floats) -> list[Pair]:
    """The matching with the largest sum of what its links gain in all problems, each with its weight."""
    from scipy.optimize import linear_sum_assignment  # takes longer to import than most matchings do

    gain = np.zeros(problems[0].shape)
    for problem, weight in zip(problems, weights, strict=True):
        if problem.is_sided:
            gain += weight * _alone(problem)
            continue
        weight_a, weight_b = problem.unbalanced
        curvature = 2.0 * weight_a * problem.gram_a.diagonal[:, None] + 2.0 * weight_b * problem.gram_b.diagonal
        pull = np.maximum(-problem.gradient_rows(problem.base, 0, len(gain)), 0.0)
        gain += weight * np.divide(pull**2, curvature + problem.reg, out=np.zeros_like(pull), where=pull > 0.0)
    rows, cols = linear_sum_assignment(gain, maximize=True)
    return [(int(i), int(j)) for i, j in zip(rows, cols, strict=True) if gain[i, j] > 0.0]
