"""Problems in flat arrays, as the compiled batch solver takes them, with the same checks as `Problem`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from ..budgets import Limits
from ..effort import Effort
from ..engine.batch_solver import Pack, look
from ..geometry.matrices import Cost, Gram
from ..given import SAME_UNITS, Weights, auto_weight, is_in_range, side_is_lost, uniform
from ..problem import Problem

Matrices = tuple[Floats, Floats | None, Floats | None]
"""Costs and the masses of the two sides; None for uniform ones."""


@dataclass(frozen=True, eq=False)
class Stack:
    """The arrays of several problems, concatenated in order."""

    shape: Ints  # (problems, 2)
    cost: Floats  # of all pairs: a copy, since bounds are computed later and the user's arrays may change
    gram: Floats  # of the first side, then of the second side
    gram_size: Ints  # (problems, 2) 0: delta
    mass: Floats  # a, then b
    base: Floats  # r and c of the empty plan
    weights: Floats  # (problems, 2) the two λ
    reg: Floats  # (problems,)
    scale: Floats  # (problems,) of gradients
    common: Floats  # (problems,) costs
    empty: NDArray[np.bool_]  # every pair is forbidden
    fine: NDArray[np.bool_]  # False: the problem must be solved alone, where it gets an error or a warning
    problems: list[Problem] | None  # the problems it was made from, if any

    @classmethod
    def of_problems(cls, problems: list[Problem]) -> "Stack":
        """From problems, which are checked already."""
        grams = [(problem.gram_a.stored, problem.gram_b.stored) for problem in problems]
        return cls(
            np.array([problem.shape for problem in problems]),
            np.concatenate([problem.cost.compiled.matrix.ravel() for problem in problems]),
            np.concatenate([gram.ravel() for both in grams for gram in both]),
            np.array([(len(a), len(b)) for a, b in grams]),
            np.concatenate([side for problem in problems for side in (problem.a, problem.b)]),
            np.concatenate([side for problem in problems for side in problem.base]),
            np.array([problem.unbalanced for problem in problems]),
            np.array([problem.reg for problem in problems]),
            np.array([problem.scale for problem in problems]),
            np.array([problem.cost.common for problem in problems]),
            np.array([not problem.cost.has_pairs for problem in problems]),
            np.array([not problem.side_is_lost for problem in problems]),
            problems,
        )

    @classmethod
    def of_matrices(cls, sources: Sequence[Matrices], weights: Weights, reg: float) -> "Stack":
        """From costs and masses with `Delta` kernels, checked by one compiled function."""
        shape = np.array([source[0].shape for source in sources])
        cost = np.concatenate([source[0] for source in sources], axis=None)
        sides = []
        for matrix, *given in sources:
            a, b = (None if each is None else np.asarray(each, np.float64) for each in given)
            sides.append(_uniform(matrix.shape[0], b) if a is None else a)
            sides.append(_uniform(matrix.shape[1], a) if b is None else b)
        mass = np.concatenate(sides)
        seen = look(shape, cost, mass)
        fine, common = seen.sound.copy(), seen.mean.copy()
        for k in np.flatnonzero(seen.sound & seen.apart).tolist():
            costs = Cost.of_matrix(sources[k][0])
            common[k] = costs.common
            fine[k] &= not (weights.need_auto and costs.common < costs.mean)
        auto = np.full(len(sources), np.nan)
        if weights.need_auto:
            pairs = zip(seen.mean.tolist(), sides[::2], sides[1::2], strict=True)
            auto = np.array([auto_weight(mean, a, b, float(a @ a + b @ b)) for mean, a, b in pairs])
        both = np.column_stack([np.broadcast_to(weight, len(sources)) for weight in weights.given(auto)])
        pull = 2.0 * both * seen.largest
        sizes = np.abs(seen.mean), -np.minimum(seen.lowest, 0.0), both, pull, np.full(len(sources), float(reg))
        fine &= is_in_range(np.column_stack(sizes)).all(1)
        fine &= ~side_is_lost(*pull.T)
        totals = np.array([side.sum() for side in sides]).reshape(-1, 2)
        fine &= ~((totals.max(1) > SAME_UNITS * totals.min(1)) & (totals.min(1) > 0.0))
        return cls(
            shape,
            cost,
            np.zeros(0),
            np.zeros_like(shape),
            mass,
            -2.0 * np.repeat(both.ravel(), shape.ravel()) * mass,
            both,
            np.full(len(sources), float(reg)),
            np.maximum(pull.max(1), -np.minimum(seen.lowest, 0.0)),
            common,
            seen.allowed == 0,
            fine,
            None,
        )

    def pack(self, limits: Sequence[Limits], effort: Effort, tol: float) -> Pack:
        """The arrays for the compiled batch solver."""
        size = np.column_stack([self.shape, self.gram_size])
        number = np.column_stack([2.0 * self.weights, self.reg, tol * self.scale])
        return Pack.of(size, limits, effort, number, self.cost, self.gram, self.mass, self.base)

    def ends(self) -> tuple[list[int], list[int]]:
        """The offsets of the points and the pairs of each problem, beginning with zero."""
        points, pairs = self.shape.sum(1).tolist(), self.shape.prod(1).tolist()
        return list(accumulate(points, initial=0)), list(accumulate(pairs, initial=0))

    def problem(self, k: int, point: int, pair: int) -> Problem:
        """Problem ``k``, whose points and pairs begin at these offsets."""
        if self.problems is not None:
            return self.problems[k]
        m, n = self.shape[k].tolist()
        a, b = self.mass[point : point + m], self.mass[point + m : point + m + n]
        cost = Cost.of_matrix(self.cost[pair : pair + m * n].reshape(m, n))
        first, second = self.weights[k].tolist()
        return Problem(cost, a, b, Gram.delta(m), Gram.delta(n), (first, second), float(self.reg[k]))


def matrices(item: Any) -> Matrices | None:
    """Costs and masses, if they are NumPy arrays of matching shapes; their entries are not checked yet."""
    if type(item) is np.ndarray:
        cost, a, b = item, None, None
    elif type(item) is tuple and 1 <= len(item) <= 3:
        cost, a, b = (*item, None, None)[:3]
    else:
        return None
    if type(cost) is not np.ndarray or cost.ndim != 2 or cost.dtype.kind not in "fiu" or not cost.size:
        return None
    if not (_fits(a, cost.shape[0]) and _fits(b, cost.shape[1])):
        return None
    return np.ascontiguousarray(cost, np.float64), a, b


def _fits(mass: Any, size: int) -> bool:
    """True for a NumPy array with one mass for every point, and for None, which means uniform masses."""
    return mass is None or (type(mass) is np.ndarray and mass.shape == (size,) and mass.dtype.kind in "fiu")


def _uniform(size: int, other: Floats | None) -> Floats:
    """Uniform masses with the total of the other side, or with one; not to be written to."""
    return _of_one(size) if other is None else uniform(size, other)


@lru_cache(maxsize=1024)
def _of_one(size: int) -> Floats:
    return uniform(size, None)
