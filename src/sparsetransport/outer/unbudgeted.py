r"""The optimum without a budget where ``reg`` spreads it over thousands of entries: Newton's method on the dual.

With :math:`\alpha = 2\lambda_a G_a u` and :math:`\beta = 2\lambda_b G_b v` the plan of a dual point is :math:`\gamma =
\max(0, \alpha \oplus \beta - C) / \lambda_2`, and the point is optimal where :math:`u = a - \gamma 1` and :math:`v = b
- \gamma^\top 1`. These are m + n equations, linear between the places where an entry comes or goes, however many
entries the plan has; a step that solves them raises the dual, if it is not too long.
"""

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats
from ..problem import Problem

Ints = NDArray[np.int64]
POINTS_UP_TO = 4000  # of both sides together: a step solves as many equations
_STEPS, _HALVINGS = 60, 30
_SOLVED, _GOOD_ENOUGH = 1e-14, 1e-12  # of the scale of gradients


def optimum(problem: Problem, rows: Ints, cols: Ints, mass: Floats) -> tuple[Ints, Ints, Floats] | None:
    """The optimal plan, sought from another one; None where rounding is in the way. ``reg`` must be positive."""
    m, n = problem.shape
    cost = problem.cost.rows(0, m)
    wanted = np.concatenate([problem.a, problem.b])
    kernel = np.zeros((m + n, m + n))  # what makes potentials of u and v
    for part, gram, weight in zip(
        (slice(m), slice(m, None)), (problem.gram_a, problem.gram_b), problem.unbalanced, strict=True
    ):
        points = np.arange(gram.size)
        kernel[part, part] = 2.0 * weight * gram.block(points, points)

    def look(dual: Floats) -> tuple[float, Floats, Floats, Floats]:
        """The value of a dual point, its plan times ``reg``, by how much the equations fail, and in gradients."""
        potential = kernel @ dual
        wish = np.maximum(potential[:m, None] + potential[m:] - cost, 0.0)
        value = float(potential @ (wanted - 0.5 * dual)) - 0.5 * float(np.vdot(wish, wish)) / problem.reg
        error = wanted - dual - np.concatenate([wish.sum(axis=1), wish.sum(axis=0)]) / problem.reg
        return value, wish, error, kernel @ error

    dual = wanted - np.concatenate(problem.marginals(rows, cols, mass))
    value, wish, error, missed = look(dual)
    for _ in range(_STEPS):
        if np.abs(missed).max() <= _SOLVED * problem.scale:
            break
        step = np.linalg.solve(_jacobian(wish > 0.0, kernel, problem.reg), error)
        rise, length = float(step @ missed), 1.0
        for _ in range(_HALVINGS):
            new = look(dual + length * step)
            if new[0] >= value + 1e-4 * length * rise:
                break
            length *= 0.5
        else:
            break
        dual = dual + length * step
        value, wish, error, missed = new
    if np.abs(missed).max() > _GOOD_ENOUGH * problem.scale:
        return None
    rows, cols = np.nonzero(wish > _GOOD_ENOUGH * problem.scale)
    return rows, cols, wish[rows, cols] / problem.reg


def _jacobian(active: NDArray[np.bool_], kernel: Floats, reg: float) -> Floats:
    """How ``u + γ1`` and ``v + γ'1`` change with ``u`` and ``v`` where these entries are active."""
    (m, n), joint = active.shape, active.astype(np.float64)
    spread = np.block([[np.diag(joint.sum(axis=1)), joint], [joint.T, np.diag(joint.sum(axis=0))]])
    return np.eye(m + n) + spread @ kernel / reg
