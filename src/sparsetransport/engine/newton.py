r"""The unbudgeted optimum where ``reg`` spreads it over thousands of entries: Newton's method on the dual.

With :math:`\alpha = 2\lambda_a G_a u` and :math:`\beta = 2\lambda_b G_b v` the plan of a dual point is :math:`\gamma =
\max(0, \alpha \oplus \beta - C) / \lambda_2`, and the point is optimal where :math:`u = a - \gamma 1` and :math:`v = b
- \gamma^\top 1`. These are m + n equations, linear between the places where an entry comes or goes, however many
entries the plan has; a step that solves them raises the dual, if it is not too long.
"""

from functools import cached_property

import numpy as np

from .._checks import Floats, Ints
from ..problem import Problem

_STEPS, _HALVINGS = 60, 30
_SOLVED, _GOOD_ENOUGH = 1e-14, 1e-12  # of the scale of gradients


def optimum(problem: Problem, rows: Ints, cols: Ints, mass: Floats) -> tuple[Ints, Ints, Floats] | None:
    """The optimal plan, sought from another one; None where rounding is in the way. ``reg`` must be positive."""
    m = problem.shape[0]
    cost = problem.cost.rows(0, m)
    wanted = np.concatenate([problem.a, problem.b])
    kernel = _Kernel(problem)

    def look(dual: Floats) -> tuple[float, Floats, Floats, Floats]:
        """The value of a dual point, its plan times ``reg``, by how much the equations fail, and in gradients."""
        potential = kernel.times(dual)
        wish = np.maximum(potential[:m, None] + potential[m:] - cost, 0.0)
        value = float(potential @ (wanted - 0.5 * dual)) - 0.5 * float(np.vdot(wish, wish)) / problem.reg
        error = wanted - dual - np.concatenate([wish.sum(axis=1), wish.sum(axis=0)]) / problem.reg
        return value, wish, error, kernel.times(error)

    dual = wanted - np.concatenate(problem.marginals(rows, cols, mass))
    value, wish, error, missed = look(dual)
    for _ in range(_STEPS):
        if np.abs(missed).max() <= _SOLVED * problem.scale:
            break
        step = kernel.step((wish > 0.0).astype(np.float64), error)
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


def effort(problem: Problem) -> float:
    """About how many operations it takes."""
    m, n = problem.shape
    size = float(_Kernel(problem).equations)
    return 20.0 * (2.0 * size * m * n + size**3)


class _Kernel:
    """What makes potentials of ``u`` and ``v``, and Newton's steps with it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.weights = [2.0 * weight for weight in problem.unbalanced]
        self.grams = [problem.gram_a, problem.gram_b]

    @cached_property
    def blocks(self) -> list[Floats | None]:
        """The Gram matrices as arrays; None for the identity."""
        points = [np.arange(gram.size) for gram in self.grams]
        return [None if g.is_delta else g.block(p, p) for g, p in zip(self.grams, points, strict=True)]

    @property
    def eliminated(self) -> int | None:
        """The side whose equations have each one unknown of that side, the larger one if both are so; or None."""
        sides = [side for side in (0, 1) if self.grams[side].is_delta]
        return max(sides, key=self.problem.shape.__getitem__, default=None)

    @property
    def equations(self) -> int:
        """How many are solved together in a step."""
        return sum(self.problem.shape) - (0 if self.eliminated is None else self.problem.shape[self.eliminated])

    def times(self, dual: Floats) -> Floats:
        """The potentials of a dual point."""
        return np.concatenate(self.problem.smooth(*np.split(dual, self.problem.shape[:1])))

    def step(self, joint: Floats, error: Floats) -> Floats:
        """What takes the equations ``u + γ1 = a`` and ``v + γ'1 = b`` to zero while the same entries are active."""
        first, second = np.split(error, self.problem.shape[:1])
        if self.eliminated == 1:
            return np.concatenate(self._eliminate(joint, 0, first, second))
        if self.eliminated == 0:
            return np.concatenate(self._eliminate(joint.T, 1, second, first)[::-1])
        spread = np.block([[np.diag(joint.sum(axis=1)), joint], [joint.T, np.diag(joint.sum(axis=0))]])
        m = len(first)
        left = np.hstack([self._scaled(0, spread[:, :m]), self._scaled(1, spread[:, m:])])
        left.flat[:: len(left) + 1] += 1.0
        return np.asarray(np.linalg.solve(left, error), np.float64)

    def _eliminate(self, joint: Floats, side: int, kept: Floats, other: Floats) -> tuple[Floats, Floats]:
        """The steps of the side that is kept, whose points are the rows of ``joint``, and of the other one."""
        weight = self.weights[1 - side] / self.problem.reg
        pivots = 1.0 + weight * joint.sum(axis=0)
        spread = -(joint * (weight / pivots)) @ joint.T
        spread.flat[:: len(spread) + 1] += joint.sum(axis=1)
        left = self._scaled(side, spread)
        left.flat[:: len(left) + 1] += 1.0
        step = np.linalg.solve(left, kept - joint @ (weight / pivots * other))
        return step, (other - joint.T @ self._scaled(side, step)) / pivots

    def _scaled(self, side: int, left: Floats) -> Floats:
        """``left`` times the Gram matrix of a side, its weight and 1 / ``reg``."""
        block = self.blocks[side]
        return self.weights[side] / self.problem.reg * (left if block is None else left @ block)
