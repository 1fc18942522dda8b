r"""Hard marginals: the method of multipliers on problems with soft ones, and what no number of links can serve.

For the prices :math:`y` of a hard side and any weight :math:`w` the problem with the masses :math:`a + y / 2w` and the
weight :math:`w` has the same objective as the hard one, up to a constant, for all plans that keep the marginals. Its
optimum moves the prices to its own potentials; where these stay as they are, the marginals are kept. On linear problems
that takes a few rounds, and is exact. So whatever solves soft problems solves hard ones.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._checks import Floats, Ints
from .problem import Fields, Problem

Seek = Callable[[Problem, "Priced"], Any]
"""Finds a plan of a soft problem, which may begin with another one; with rows, columns and masses, or None."""

_ROUNDS, _STUCK = 60, 4  # of prices at the most; and rounds that may bring next to nothing
_SAME = 1e-9  # of an error: a difference that is none, and later plans are the cheaper ones
_KEPT = 1e-11  # of the largest mass: errors of marginals that are rounding


class Priced(NamedTuple):
    """A plan, the prices of the marginals, and its largest error on hard sides as a share of their largest mass."""

    rows: Ints
    cols: Ints
    mass: Floats
    prices: Fields
    error: float


def free(problem: Problem) -> Fields:
    """Prices of nothing."""
    return np.zeros_like(problem.a), np.zeros_like(problem.b)


def relaxed(problem: Problem, weight: float, prices: Fields) -> Problem:
    """The soft problem of these prices; the weight is in units of the mean cost over the mean mass."""
    cost = max(problem.cost.mean, -min(problem.cost.lowest, 0.0)) if problem.cost.has_pairs else 0.0
    wanted = np.concatenate([problem.a, problem.b])
    mass = float(wanted.sum()) / max(int((wanted > 0.0).sum()), 1)
    unit = ((cost + problem.reg * mass) / mass if mass > 0.0 else cost + problem.reg) or 1.0
    weights = tuple(weight * unit if each == np.inf else each for each in problem.unbalanced)
    masses = [
        wanted + price / (2.0 * used) if each == np.inf else wanted
        for wanted, price, used, each in zip((problem.a, problem.b), prices, weights, problem.unbalanced, strict=True)
    ]
    return problem.like(a=masses[0], b=masses[1], unbalanced=weights)


def multiply(problem: Problem, seek: Seek, weight: float, first: Priced) -> Priced:
    """The plan and the prices with which the marginals are kept; or where they cannot be, with the least errors."""
    best, now, before, stuck = first._replace(error=np.inf), first, np.inf, 0
    hard = [each == np.inf for each in problem.unbalanced]
    for _ in range(_ROUNDS):
        soft = relaxed(problem, weight, now.prices)
        plan = seek(soft, now)
        if plan is None:
            break
        rows, cols, mass = plan
        fields = soft.fields(rows, cols, mass)
        prices = tuple(-field if is_hard else 0.0 * field for field, is_hard in zip(fields, hard, strict=True))
        now = Priced(rows, cols, mass, (prices[0], prices[1]), largest_error(problem, rows, cols, mass))
        best = now if now.error <= best.error * (1.0 + _SAME) else best
        stuck = stuck + 1 if now.error > 0.5 * before else 0
        before = now.error
        if now.error <= _KEPT or stuck == _STUCK:
            break
    return best


def largest_error(problem: Problem, rows: Ints, cols: Ints, mass: Floats) -> float:
    """The largest error of a hard marginal, as a share of the largest mass of its side."""
    sums = problem.marginals(rows, cols, mass)
    errors = problem.counted(sums[0] - problem.a, sums[1] - problem.b)
    return max(
        float(np.abs(error).max()) / (float(wanted.max()) or 1.0)
        for error, wanted, weight in zip(errors, (problem.a, problem.b), problem.unbalanced, strict=True)
        if weight == np.inf
    )


def least_links(problem: Problem) -> float:
    """A number of links below which no plan keeps the hard marginals; ``inf`` if none does with any number.

    A point that must have its mass needs as many links as the largest partners that are allowed take to hold it.
    """
    cost = np.concatenate([block for _, block in problem.cost.blocks()])
    allowed, least = cost < np.inf, 0.0
    for side, (wanted, others, pairs) in enumerate(
        ((problem.a, problem.b, allowed), (problem.b, problem.a, allowed.T))
    ):
        if problem.unbalanced[side] < np.inf or problem.sense[side] == "<=":
            continue
        limited = problem.unbalanced[1 - side] == np.inf and problem.sense[1 - side] != ">="
        held = np.where(pairs, others if limited else np.inf, 0.0)
        held = np.cumsum(-np.sort(-held, axis=1), axis=1)
        enough = held >= (wanted * (1.0 - 1e-9))[:, None]
        needed = np.where(enough.any(axis=1), enough.argmax(axis=1) + 1.0, np.inf)
        least = max(least, float(needed[wanted > 0.0].sum()))
    return least
