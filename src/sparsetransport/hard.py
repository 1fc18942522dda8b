r"""Hard marginals: the method of multipliers on problems with soft ones, and what no number of links can serve.

For the prices :math:`y` of a hard side and any weight :math:`w` the problem with the masses :math:`a + y / 2w` and the
weight :math:`w` has the same objective as the hard one, up to a constant, for all plans that keep the marginals. Its
optimum moves the prices to its own potentials; where these stay as they are, the marginals are kept. On linear problems
that takes a few rounds, and is exact. So whatever solves soft problems solves hard ones.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._checks import KEPT, Floats, Ints, at_least
from .problem import Fields, Problem

Seek = Callable[[Problem, "Priced", Fields | None], Any]
"""Finds a plan of a soft problem with shares, which may begin with another one: rows, columns and masses, or None."""

_ROUNDS, _STUCK = 60, 4  # of prices at the most; and rounds that may bring next to nothing
_SAME = 1e-9  # of an error: a difference that is none, and later plans are the cheaper ones
_KEPT = 1e-11  # of the mass of a point: errors of marginals that are rounding


class Priced(NamedTuple):
    """A plan, the prices of the marginals, and its largest error on hard sides as a share of what a point wants."""

    rows: Ints
    cols: Ints
    mass: Floats
    prices: Fields
    error: float


def free(problem: Problem) -> Fields:
    """Prices of nothing."""
    return np.zeros_like(problem.a), np.zeros_like(problem.b)


def clipped(problem: Problem) -> Problem:
    """The same where no point may have more than all points of the other side together, which is hard, can give."""
    (a, b), (sense_a, sense_b) = (problem.a, problem.b), problem.sense
    if not all(each == np.inf for each in problem.unbalanced):
        return problem
    if sense_a == "<=" and sense_b != ">=":
        a = np.minimum(a, b.sum())
    if sense_b == "<=" and sense_a != ">=":
        b = np.minimum(b, a.sum())
    return problem.like(a=a, b=b)


def lifted(problem: Problem, share: float) -> Problem:
    """The same where points that must have their masses want at least a share of the mean, so that none is left out."""
    sides = []
    for wanted, weight, sense in zip((problem.a, problem.b), problem.unbalanced, problem.sense, strict=True):
        must = (wanted > 0.0) & (weight == np.inf) & (sense != "<=")
        sides.append(np.where(must, np.maximum(wanted, share * wanted.mean()), wanted))
    return problem.like(a=sides[0], b=sides[1])


def relaxed(problem: Problem, weight: float, prices: Fields, shares: Fields | None = None) -> Problem:
    """The soft problem of these prices; the weight is in units of the mean cost over the mean mass.

    Shares of the points, by which their weights are divided, are meant for `simplex.optimum`.
    """
    unit = _unit(problem)
    weights = tuple(weight * unit if each == np.inf else each for each in problem.unbalanced)
    wanted = problem.a, problem.b
    if shares is not None:
        wanted = wanted[0] / shares[0], wanted[1] / shares[1]
    masses = [
        want + price / (2.0 * used) if each == np.inf else want
        for want, price, used, each in zip(wanted, prices, weights, problem.unbalanced, strict=True)
    ]
    return problem.like(a=masses[0], b=masses[1], unbalanced=weights)


def _unit(problem: Problem) -> float:
    """The mean cost over the mean mass."""
    cost = max(problem.cost.mean, -min(problem.cost.lowest, 0.0)) if problem.cost.has_pairs else 0.0
    wanted = np.concatenate([problem.a, problem.b])
    mass = float(wanted.sum()) / max(int((wanted > 0.0).sum()), 1)
    return ((cost + problem.reg * mass) / mass if mass > 0.0 else cost + problem.reg) or 1.0


def share_in_use(problem: Problem, plan: Priced) -> float:
    """The mean cost of the mass of a plan, as a share of the mean cost of all pairs, from which weights follow."""
    costs, mean = np.abs(problem.cost.entries(plan.rows, plan.cols)), problem.cost.mean
    total = float(plan.mass.sum()) * mean
    return float(costs @ plan.mass) / total if total > 0.0 else 1.0


def _shares(problem: Problem) -> Fields:
    """What the points of hard sides want, in units of the mean: the smaller, the more an error of theirs weighs."""
    both = np.concatenate([problem.a, problem.b])
    mean = float(both[both > 0.0].mean()) if both.any() else 1.0
    first, second = (
        np.where(wanted > 0.0, wanted, mean) / mean if each == np.inf else np.ones_like(wanted)
        for wanted, each in zip((problem.a, problem.b), problem.unbalanced, strict=True)
    )
    return first, second


def multiply(problem: Problem, seek: Seek, weight: float, first: Priced) -> Priced:
    """The plan and the prices with which the marginals are kept; or where they cannot be, with the least errors.

    Shares find what can be found in a few rounds, however uneven masses are; without them the squares of errors count.
    """
    if problem.has_trees:
        best = _multiplied(problem, seek, weight, first, _shares(problem))
        if best.error <= KEPT:
            return best
    return _multiplied(problem, seek, weight, first, None)


def _multiplied(problem: Problem, seek: Seek, weight: float, first: Priced, shares: Fields | None) -> Priced:
    best, now, before, stuck = first._replace(error=np.inf), first, np.inf, 0
    for _ in range(_ROUNDS):
        soft = relaxed(problem, weight, now.prices, shares)
        plan = seek(soft, now, shares)
        if plan is None:
            break
        rows, cols, mass = plan
        if shares is None:
            fields = soft.fields(rows, cols, mass)
        else:
            sums = problem.marginals(rows, cols, mass)
            errors = problem.counted(sums[0] - soft.a * shares[0], sums[1] - soft.b * shares[1])
            fields = (
                2.0 * soft.unbalanced[0] * errors[0] / shares[0],
                2.0 * soft.unbalanced[1] * errors[1] / shares[1],
            )
        first_prices, second_prices = (
            -field if each == np.inf else 0.0 * field for field, each in zip(fields, problem.unbalanced, strict=True)
        )
        now = Priced(rows, cols, mass, (first_prices, second_prices), largest_error(problem, rows, cols, mass))
        best = now if now.error <= best.error * (1.0 + _SAME) else best
        stuck = stuck + 1 if now.error > 0.5 * before else 0
        before = now.error
        if now.error <= _KEPT or stuck == _STUCK:
            break
    return best


def largest_error(problem: Problem, rows: Ints, cols: Ints, mass: Floats) -> float:
    """The largest error of a hard marginal, as a share of what its point wants, or of a little of the largest mass."""
    sums = problem.marginals(rows, cols, mass)
    errors = problem.counted(sums[0] - problem.a, sums[1] - problem.b)
    return max(
        float((np.abs(error) / at_least(wanted)).max())
        for error, wanted, weight in zip(errors, (problem.a, problem.b), problem.unbalanced, strict=True)
        if weight == np.inf
    )


def totals_differ(problem: Problem) -> bool:
    """True if hard sides ask for totals that no plan has at once."""
    if min(problem.unbalanced) < np.inf:
        return False
    totals = float(problem.a.sum()), float(problem.b.sum())
    least = [0.0 if sense == "<=" else total for sense, total in zip(problem.sense, totals, strict=True)]
    most = [np.inf if sense == ">=" else total for sense, total in zip(problem.sense, totals, strict=True)]
    return least[0] > most[1] * (1.0 + KEPT) or least[1] > most[0] * (1.0 + KEPT)


def least_links(problem: Problem) -> float:
    """A number of links below which no plan keeps the hard marginals; ``inf`` if none does with any number.

    A point that must have its mass needs as many links as the largest partners that are allowed take to hold it.
    """
    if totals_differ(problem):
        return np.inf
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
