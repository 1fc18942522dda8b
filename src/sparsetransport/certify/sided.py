r"""Lower bounds for marginals that are one-sided or hard.

They are those of `bounds` with potentials of the sign that the sense allows: at most zero for ``"<="``, at least zero
for ``">="``. A hard side has no quadratic term. With the kernel `Delta` the term of a point is the least of
:math:`\varphi(\rho) + \alpha\rho` over sums :math:`\rho \ge 0`, where :math:`\varphi` is what its errors cost, and a
point that the budget cannot reach costs :math:`\varphi(0)`.
"""

from typing import Any

import numpy as np

from .._checks import Floats
from ..budgets import Limits
from ..given import potentials_of
from ..problem import Fields, Problem
from . import bounds
from .rounding import UNIT, below

Proof = tuple[float, Floats, Floats]
"""A lower bound, and the potentials that prove it."""
_ITERATIONS = 500  # of L-BFGS-B


def bound_at(problem: Problem, limits: Limits, first: Floats, second: Floats) -> Proof:
    """The bound that a dual point proves, once it is moved to where it proves one; ``-inf`` if it cannot be.

    It has potentials for sides with the kernel `Delta`, and for others what they are 2λG times of.
    """
    alpha, u = _in_bounds(problem, 0, first)
    beta, v = _in_bounds(problem, 1, second)
    if problem.reg == 0.0:
        if not (problem.gram_a.is_delta or problem.gram_b.is_delta):
            (alpha, u), (beta, v) = _lowered(problem, (alpha, u), (beta, v))
        moved = _below_costs(problem, alpha, beta)
        if moved is None:
            return -np.inf, alpha, beta
        alpha, beta = moved
    if not (_is_allowed(problem, 0, alpha) and _is_allowed(problem, 1, beta)):
        return -np.inf, alpha, beta
    bound = _of_side(problem, limits, 0, alpha, u)[0] + _of_side(problem, limits, 1, beta, v)[0]
    if problem.reg > 0.0:
        bound -= min(top(alpha, beta)[0] for top in bounds.conjugates(problem, limits)) / problem.reg
    if bound == np.inf:  # no plan keeps the hard marginals
        return np.inf, alpha, beta
    return below(float(bound), abs(bound) + _size(problem, (alpha, u), (beta, v)), sum(problem.shape)), alpha, beta


def tight_bound(problem: Problem, limits: Limits, alpha: Floats, beta: Floats) -> Proof:
    """The best bound that ascent finds from some potentials; ``reg`` must be positive, and both kernels `Delta`."""
    if not problem.has_deltas or max(problem.shape) > bounds.ASCEND_UP_TO:
        return -np.inf, alpha, beta
    from scipy.optimize import minimize  # imported where it is used: it takes long

    m, found = len(alpha), []
    ranges: Any = np.concatenate(
        [np.tile(potentials_of(sense), (size, 1)) for sense, size in zip(problem.sense, problem.shape, strict=True)]
    )
    for top in bounds.conjugates(problem, limits):

        def descend(x: Floats, top: bounds.Conjugate) -> tuple[float, Floats]:
            sides = [_of_side(problem, limits, side, each, each) for side, each in enumerate((x[:m], x[m:]))]
            square, row_sum, col_sum = top(x[:m], x[m:])
            value = sides[0][0] + sides[1][0] - square / problem.reg
            slope = np.concatenate([sides[0][1] - row_sum / problem.reg, sides[1][1] - col_sum / problem.reg])
            return -value, -slope

        start = np.concatenate([alpha, beta])
        best = minimize(
            descend, start, (top,), jac=True, method="L-BFGS-B", bounds=ranges, options={"maxiter": _ITERATIONS}
        )
        found.append(bound_at(problem, limits, best.x[:m], best.x[m:]))
    return max(found, key=lambda one: one[0])


def _size(problem: Problem, first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> float:
    """The terms of a bound: what both sides add to it, and reduced costs times the masses that they are asked for.

    Where the potentials of a side can be lowered until no reduced cost is negative, its masses are enough.
    """
    size, asked, enough = 0.0, [], []
    for side, (potential, u) in enumerate((first, second)):
        weight, wanted, sense = problem.unbalanced[side], (problem.a, problem.b)[side], problem.sense[side]
        is_delta = (problem.gram_a, problem.gram_b)[side].is_delta
        masses = 2.0 * wanted + np.abs(potential / (2.0 * weight) if is_delta else u)
        size += float(np.abs(potential) @ masses)
        if sense != "<=" and weight < np.inf:
            size += weight * float(wanted @ wanted)
        asked.append(float(masses.sum()))
        if is_delta and sense != ">=":
            enough.append(asked[-1])
    largest = float(np.abs(first[0]).max() + np.abs(second[0]).max())
    return size + largest * min(enough, default=sum(asked))


def residuals(problem: Problem, alpha: Floats, beta: Floats) -> Fields:
    """``u`` and ``v`` of potentials, by ``2 λ G u``; zero on a hard side."""
    first, second = (
        np.zeros_like(each)
        if weight == np.inf
        else each / (2.0 * weight)
        if gram.is_delta
        else np.asarray(np.linalg.lstsq(2.0 * weight * gram.root.T @ gram.root, each)[0], np.float64)
        for each, gram, weight in zip((alpha, beta), (problem.gram_a, problem.gram_b), problem.unbalanced, strict=True)
    )
    return first, second


def _is_allowed(problem: Problem, side: int, potential: Floats) -> bool:
    low, high = potentials_of(problem.sense[side])
    return bool((potential >= low).all() and (potential <= high).all())


def _in_bounds(problem: Problem, side: int, dual: Floats) -> tuple[Floats, Floats]:
    """Potentials where the sense allows them, if they can be moved there, and what they are ``2 λ G`` times of."""
    low, high = potentials_of(problem.sense[side])
    gram, weight = (problem.gram_a, problem.gram_b)[side], problem.unbalanced[side]
    if gram.is_delta:
        return dual.clip(low, high), dual
    potential = 2.0 * weight * gram.times(dual)
    outside = max(float((potential - high).max(initial=0.0)), float((low - potential).max(initial=0.0)))
    one = 2.0 * weight * gram.times(np.ones_like(dual))
    if outside > 0.0 and one.min() > 0.0:
        step = (1.0 + 1e-12) * outside / float(one.min()) * (-1.0 if high == 0.0 else 1.0)
        potential, dual = potential + step * one, dual + step
    return potential, dual


def _lowered(
    problem: Problem, first: tuple[Floats, Floats], second: tuple[Floats, Floats]
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Potentials of kernels other than `Delta` lowered until ``α + β <= C``: one side evenly, or both in proportion."""
    over = max(
        float((first[0][start : start + len(block), None] + second[0] - block).max())
        for start, block in problem.cost.blocks()
    )
    if over <= 0.0:
        return first, second
    over += 4.0 * UNIT * float(np.abs(first[0]).max() + np.abs(second[0]).max())  # or rounding leaves some of it
    sides, grams = [first, second], (problem.gram_a, problem.gram_b)
    for side, (potential, dual) in enumerate(sides):
        one = 2.0 * problem.unbalanced[side] * grams[side].times(np.ones_like(dual))
        if problem.sense[side] != ">=" and one.min() > 0.0:
            step = (1.0 + 1e-9) * over / float(one.min())
            sides[side] = potential - step * one, dual - step
            return sides[0], sides[1]
    share = 1.0
    for start, block in problem.cost.blocks():
        total = first[0][start : start + len(block), None] + second[0]
        share = min(share, float(np.where(total > block, block / np.where(total > block, total, 1.0), 1.0).min()))
    share = max(share * (1.0 - 1e-12), 0.0)
    return (share * first[0], share * first[1]), (share * second[0], share * second[1])


def _below_costs(problem: Problem, alpha: Floats, beta: Floats) -> Fields | None:
    """Potentials lowered until ``α + β <= C``; None if the senses do not let them."""
    if problem.gram_b.is_delta:
        room = np.full(len(beta), np.inf)
        for first, block in problem.cost.blocks():
            room = np.minimum(room, (block - alpha[first : first + len(block), None]).min(axis=0))
        low = potentials_of(problem.sense[1])[0]
        beta = np.minimum(beta, room).clip(low)
        if (beta <= room).all():
            return alpha, beta
    if problem.gram_a.is_delta:
        room = np.concatenate([(block - beta).min(axis=1) for _, block in problem.cost.blocks()])
        alpha = np.minimum(alpha, room).clip(potentials_of(problem.sense[0])[0])
        if (alpha <= room).all():
            return alpha, beta
    for first, block in problem.cost.blocks():
        if (alpha[first : first + len(block), None] + beta > block).any():
            return None
    return alpha, beta


def _of_side(problem: Problem, limits: Limits, side: int, potential: Floats, u: Floats) -> tuple[float, Floats]:
    """What the points of a side add to the bound, and its slope."""
    weight, wanted = problem.unbalanced[side], (problem.a, problem.b)[side]
    if not (problem.gram_a, problem.gram_b)[side].is_delta:
        return float(potential @ (wanted - 0.5 * u)), wanted - u
    asked = wanted - (0.0 if weight == np.inf else potential / (2.0 * weight))
    terms, slope = 0.5 * potential * (wanted + asked), asked.copy()
    empty = np.zeros_like(wanted)
    if problem.sense[side] != "<=":
        empty[wanted > 0.0] = weight * wanted[wanted > 0.0] ** 2
    left_out = asked < 0.0  # no plan has negative sums
    spare = len(wanted) - int(left_out.sum()) - bounds.reach(problem, limits)[side]
    if spare > 0:
        more = np.where(left_out, np.inf, empty - terms)
        left_out[np.argpartition(more, spare - 1)[:spare]] = True
    terms[left_out], slope[left_out] = empty[left_out], 0.0
    return float(terms.sum()), slope
