"""The inner solvers behind one interface: the masses on a support, and how exact they are."""

from typing import NamedTuple, Protocol

import numpy as np

from .._checks import Floats, Ints
from .._numba.codes import SOLVED
from ..budgets import pairs_of
from ..problem import Quadratic
from . import active_set
from .apgd import apgd, kkt_residual

EXACT = 1e-13  # of the problem's scale: a gradient below it counts as zero; above rounding

_BLOCK = 64  # pairs whose block of the Hessian is computed together
ROUNDING = 1e-9  # a relative KKT residual that rounding can leave where Gram matrices are nearly singular


class Solution(NamedTuple):
    """Masses on a support, and the difference of their objective to that of the empty plan.

    ``kkt`` is the largest violation of the optimality conditions as a share of the objective's scale; ``converged`` is
    True if that is within the solver's tolerance.
    """

    mass: Floats
    change: float
    kkt: float
    converged: bool


class InnerSolver(Protocol):
    """Minimises a quadratic over the masses of a support, starting from given masses."""

    def solve(self, rows: Ints, cols: Ints, start: Floats) -> Solution:
        """The masses on the pairs."""

    def fresh(self) -> "InnerSolver":
        """A solver with the same settings and no state."""


class UnboundedError(ValueError):
    """The objective is unbounded below: costs are negative where the Gram matrices do not penalise mass."""

    def __init__(self) -> None:
        super().__init__(
            "the objective falls without bound: C has negative entries in directions that the Gram matrices do not "
            "penalise; use positive definite kernels or reg > 0"
        )


class ActiveSet:
    """The exact solver, an active-set method that keeps its Cholesky factor from one call to the next.

    Parameters
    ----------
    objective : Quadratic
    tol : float
        A gradient smaller than this times the objective's scale counts as zero.
    max_iter : int, optional
        The most entries that may enter in one call; None for a limit that is never reached in practice.
    """

    def __init__(self, objective: Quadratic, tol: float = EXACT, max_iter: int | None = None) -> None:
        self.objective = objective
        self.tol = tol
        self.max_iter = max_iter
        self.factor = active_set.new_factor(32)

    def solve(self, rows: Ints, cols: Ints, start: Floats) -> Solution:
        """The masses on the pairs; ``start`` is ignored, since the factor holds the masses."""
        support = {pair: k for k, pair in enumerate(pairs_of(rows, cols))}
        self._keep_only(support)
        limit = 50 * len(rows) + 100 if self.max_iter is None else self.max_iter
        mass = self._masses(support)
        for _ in range(limit if rows.size else 0):
            gradient = self.objective.gradient(self.objective.fields(rows, cols, mass), rows, cols)
            gradient[mass > 0.0] = 0.0
            steepest, before = int(gradient.argmin()), active_set.gain(self.factor)
            if gradient[steepest] >= -self.tol * self.objective.scale:
                break
            self._push(rows[steepest], cols[steepest])
            mass = self._masses(support)
            if active_set.gain(self.factor) <= before:
                break  # only rounding is left to gain
        kkt = _kkt(self.objective, rows, cols, mass)
        return Solution(mass, -active_set.gain(self.factor), kkt, kkt <= max(self.tol, ROUNDING))

    def fresh(self) -> "ActiveSet":
        """A solver with the same settings and no state."""
        return ActiveSet(self.objective, self.tol, self.max_iter)

    def gains(self, rows: Ints, cols: Ints, gradient: Floats) -> Floats:
        """By how much each of the pairs alone would lower the objective, from the present support."""
        known_rows, known_cols = self.factor.label[0, : self._size], self.factor.label[1, : self._size]
        spare = active_set.new_factor(self._size + 1)
        coupling = self.objective.hessian(rows, cols, known_rows, known_cols)
        parts = [(rows[k : k + _BLOCK], cols[k : k + _BLOCK]) for k in range(0, len(rows), _BLOCK)]
        diagonal = np.concatenate([np.diagonal(self.objective.hessian(i, j, i, j)) for i, j in parts])
        gains = active_set.gains(self.factor, spare, coupling, diagonal, self.objective.slope(rows, cols), gradient)
        if np.isinf(gains).any():
            raise UnboundedError
        return gains

    def _keep_only(self, support: dict[tuple[int, int], int]) -> None:
        """Drop entries that are not in the support; a drop may remove others too, so start over after each."""
        position = 0
        while position < self._size:
            if self._pair(position) in support:
                position += 1
            else:
                self.factor.size[1] = 0
                active_set.drop(self.factor, position)
                position = 0

    @property
    def _size(self) -> int:
        return int(self.factor.size[0])

    def _pair(self, position: int) -> tuple[int, int]:
        return int(self.factor.label[0, position]), int(self.factor.label[1, position])

    def _masses(self, support: dict[tuple[int, int], int]) -> Floats:
        mass = np.zeros(len(support))
        for t in range(self._size):
            mass[support[self._pair(t)]] = self.factor.mass[t]
        return mass

    def _push(self, row: int, col: int) -> None:
        if self._size == len(self.factor.mass):
            self.factor = active_set.enlarge(self.factor, 2 * self._size)
        size = self._size
        new_row, new_col = np.array([row]), np.array([col])
        known_rows, known_cols = self.factor.label[0, :size], self.factor.label[1, :size]
        self.factor.coupling[:size] = self.objective.hessian(new_row, new_col, known_rows, known_cols)[0]
        diagonal = float(self.objective.hessian(new_row, new_col, new_row, new_col)[0, 0])
        slope = float(self.objective.slope(new_row, new_col)[0])
        self.factor.size[1] = 0
        if active_set.push(self.factor, int(row), int(col), diagonal, slope) != SOLVED:
            raise UnboundedError


class APGD:
    """Accelerated projected gradient, as in the paper.

    Parameters
    ----------
    objective : Quadratic
    tol : float
        Stop when the violation of the optimality conditions is below this times the objective's scale.
    max_iter : int, optional
        The largest number of iterations; None for 1,000.
    """

    def __init__(self, objective: Quadratic, tol: float = EXACT, max_iter: int | None = None) -> None:
        self.objective = objective
        self.tol = tol
        self.max_iter = 1000 if max_iter is None else max_iter

    def solve(self, rows: Ints, cols: Ints, start: Floats) -> Solution:
        """The masses on the pairs, from ``start``."""
        if not rows.size:
            return Solution(start, 0.0, 0.0, True)
        hessian, slope = self.objective.hessian(rows, cols, rows, cols), self.objective.slope(rows, cols)
        scale = self.objective.scale
        mass = start.copy()
        residual, _ = apgd(hessian, slope, mass, self.tol * scale, self.max_iter)
        change = float(slope @ mass + 0.5 * mass @ hessian @ mass)
        kkt = float(residual) / scale if scale else 0.0
        return Solution(mass, change, kkt, kkt <= self.tol)

    def fresh(self) -> "APGD":
        """A solver with the same settings and no state."""
        return APGD(self.objective, self.tol, self.max_iter)


def _kkt(objective: Quadratic, rows: Ints, cols: Ints, mass: Floats) -> float:
    """The largest violation of the optimality conditions on a support, as a share of the objective's scale."""
    if not mass.size or not objective.scale:
        return 0.0
    gradient = objective.slope(rows, cols) + objective.hessian(rows, cols, rows, cols) @ mass
    return float(kkt_residual(gradient, mass)) / objective.scale


SOLVERS = {"active_set": ActiveSet, "apgd": APGD}
