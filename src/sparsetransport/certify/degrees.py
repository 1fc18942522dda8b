r"""What points cost that have few links, at given potentials: a bound for every budget, for `Delta` kernels.

For any potentials with :math:`r = C - \alpha\oplus\beta \ge 0`, and the sums :math:`w = a - \alpha/2\lambda_a` and
:math:`w' = b - \beta/2\lambda_b` that they ask for,

.. math::
    U(\gamma) = D(\alpha, \beta) + \langle r, \gamma\rangle + \lambda_a\|\gamma 1 - w\|^2
    + \lambda_b\|\gamma^\top 1 - w'\|^2 + \tfrac{\lambda_2}{2}\|\gamma\|^2 .

A row with k links costs at least the least :math:`e_i(k)` over its links and masses ``x`` of half of the first and the
last term, of what it lacks, :math:`\lambda_a (w_i - \sum x)_+^2`, and of what its columns have too much of,
:math:`\lambda_b (x_j - w'_j)_+^2`; and so does a column with the other halves. A budget of K links lets rows cost
:math:`\max_\mu \sum_i \min_k (e_i(k) + \mu k) - \mu K` at least, and columns too.
"""

import numpy as np

from .._checks import Floats, Ints
from .._numba.compiling import compiled, part
from ..budgets import Limits
from ..problem import Problem
from .rounding import below

_BLOCK = 256  # lines whose costs are read at a time
_STEPS = 16  # halvings for the price of a point: any price proves something
_HALVINGS = 60  # of an interval of prices: until it is a single number


def bound(problem: Problem, limits: Limits, u: Floats, v: Floats, most_links: int) -> float:
    """The bound at potentials ``2 λ_a u`` and ``2 λ_b v`` with ``α + β <= C``; up to so many links a line count."""
    (m, n), (weight_a, weight_b) = problem.shape, problem.unbalanced
    alpha, beta = 2.0 * weight_a * u, 2.0 * weight_b * v
    asked = problem.a - u, problem.b - v
    negative = [weight * np.minimum(each, 0.0) ** 2 for weight, each in zip(problem.unbalanced, asked, strict=True)]
    terms = np.concatenate([alpha * (problem.a - 0.5 * u), beta * (problem.b - 0.5 * v), *negative])
    wanted = [np.maximum(each, 0.0) for each in asked]
    parts = []
    for side in (0, 1):
        capacity = np.minimum((limits.rows, limits.cols)[side], limits.total)
        table = np.zeros(((m, n)[side], min(most_links, (n, m)[side], int(capacity.max())) + 2))
        weights = (weight_a, weight_b) if side == 0 else (weight_b, weight_a)
        near, far = (alpha, beta) if side == 0 else (beta, alpha)
        for first in range(0, len(table), _BLOCK):
            lines = slice(first, min(first + _BLOCK, len(table)))
            if side == 0:
                costs = problem.cost.rows(first, lines.stop)
            else:
                costs = np.ascontiguousarray(problem.cost.columns(np.arange(first, lines.stop)).T)
            halves = 0.5 * np.maximum(costs - near[lines, None] - far, 0.0)
            fill(halves, wanted[side][lines], wanted[1 - side], *weights, 0.5 * problem.reg, table[lines])
        parts.append(least(table, capacity, limits.most))
    size = float(np.abs(terms).sum()) + sum(parts)
    masses = problem.a.sum() + problem.b.sum() + wanted[0].sum() + wanted[1].sum()
    size += (np.abs(alpha).max() + np.abs(beta).max()) * masses  # of rounding in r
    return below(float(terms.sum()) + sum(parts), size, m + n)


def least(table: Floats, capacity: Ints, total: int) -> float:
    """The least sum of an entry of every line, whose columns add up to ``total`` at most: a bound by one price.

    The last column stands for so many links and more.
    """
    links = np.arange(table.shape[1])
    table = np.where(links[None, :] > np.minimum(capacity, table.shape[1] - 1)[:, None], np.inf, table)
    if float(table.argmin(axis=1).sum()) <= total:
        return float(table.min(axis=1).sum())
    low, high, best = 0.0, float(table[:, 0].max()), 0.0
    for _ in range(_HALVINGS):
        price = 0.5 * (low + high)
        priced = table + price * links
        held, paid = float(priced.min(axis=1).sum()), price * total
        best = max(best, below(held - paid, held + paid, len(table)))
        if priced.argmin(axis=1).sum() > total:
            low = price
        else:
            high = price
    return best


@compiled
def fill(r: Floats, w: Floats, far: Floats, weight: float, other: float, reg: float, table: Floats) -> None:
    """``e_i(k)`` into ``table[i, k]``; the last column stays zero.

    ``r`` (lines, size) and ``reg`` are the shares of reduced costs and quadratic term that belong to this side.
    """
    size = r.shape[1]
    near, gains = np.empty(size, np.int64), np.empty(table.shape[1])
    for i in range(r.shape[0]):
        table[i, 0] = weight * w[i] ** 2
        top, found = 2.0 * weight * w[i], 0
        alone = table[i, 0]
        for j in range(size):
            if r[i, j] < top:
                near[found] = j
                found += 1
                alone = min(alone, _alone(r[i, j], w[i], far[j], weight, other, reg))
        table[i, 1] = alone
        for k in range(2, table.shape[1] - 1):
            several = _several(r[i], near[:found], far, w[i], weight, other, reg, k, gains)
            table[i, k] = min(table[i, k - 1], several)


@part
def _alone(r: float, w: float, far: float, weight: float, other: float, reg: float) -> float:
    """The least cost with one link: over x of ``r x + reg x²/2 + weight (w - x)_+² + other (x - far)_+²``."""
    x = (2.0 * weight * w - r) / (2.0 * weight + reg)
    if x > far:
        x = max(far, (2.0 * weight * w + 2.0 * other * far - r) / (2.0 * weight + 2.0 * other + reg))
    x = max(x, 0.0)
    return r * x + 0.5 * reg * x * x + weight * (w - x) ** 2 + other * max(x - far, 0.0) ** 2


@part
def _several(
    r: Floats, near: Ints, far: Floats, w: float, weight: float, other: float, reg: float, k: int, gains: Floats
) -> float:
    """A lower bound with k links: ``θ w - θ²/4 weight`` minus the k largest gains at the price θ, the best θ."""
    low, high, best = 0.0, 2.0 * weight * w, 0.0
    for _ in range(_STEPS):
        price, held = 0.5 * (low + high), 0
        for p in range(near.size):
            d = price - r[near[p]]
            if d <= 0.0:
                continue
            # the largest of d x - reg x²/2 - other (x - far)_+²
            free = far[near[p]]
            x = d / reg if reg * free > d else (d + 2.0 * other * free) / (2.0 * other + reg)
            gain = d * x - 0.5 * reg * x * x - other * max(x - free, 0.0) ** 2
            place = held if held < k else k - 1
            if held == k and gain <= gains[k - 1]:
                continue
            while place > 0 and gain > gains[place - 1]:
                gains[place] = gains[place - 1]
                place -= 1
            gains[place] = gain
            held = min(held + 1, k)
        total = 0.0
        for p in range(held):
            total += gains[p]
        value = price * w - price * price / (4.0 * weight) - total
        if value > best:
            best = value
        # the slope in the price, by a small step: what is sent for the largest gains
        sent = _sent(r, near, far, other, reg, price, gains, held, k)
        if w - price / (2.0 * weight) - sent > 0.0:
            low = price
        else:
            high = price
    return best


@part
def _sent(
    r: Floats, near: Ints, far: Floats, other: float, reg: float, price: float, gains: Floats, held: int, k: int
) -> float:
    """The mass of the links with the largest gains."""
    if held == 0:
        return 0.0
    least, sent, count = gains[held - 1], 0.0, 0
    for p in range(near.size):
        d = price - r[near[p]]
        if d <= 0.0:
            continue
        free = far[near[p]]
        x = d / reg if reg * free > d else (d + 2.0 * other * free) / (2.0 * other + reg)
        if count < k and d * x - 0.5 * reg * x * x - other * max(x - free, 0.0) ** 2 >= least:
            sent += x
            count += 1
    return sent
