"""Parts of few points, as sets of bits: bounds of all, the optimum of one, and those of least reduced cost."""

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from .._numba.compiling import compiled, part

_TINY = 1e-12  # of the largest second derivative: makes masses unique where links close a cycle


@compiled
def fill(linear: Floats, pull: Floats, give: Floats, alone: Floats, rows: int, value: Floats) -> None:
    """The lower bound of every part; what parts of one side cost, exactly."""
    value[0] = np.inf
    for k in range(1, value.size):
        terms, pulls, gives, lonely, sides = 0.0, 0.0, 0.0, 0.0, 0
        for point in range(linear.size):
            if k >> point & 1:
                terms += linear[point]
                pulls += pull[point]
                gives += give[point]
                lonely += alone[point]
                sides |= 1 if point < rows else 2
        value[k] = terms + 0.5 * pulls * pulls / gives if sides == 3 else lonely


@compiled
def one_sided(value: Floats, is_exact: NDArray[np.bool_], rows: int) -> None:
    """Mark the parts of one side."""
    for k in range(value.size):
        is_exact[k] = k == 0 or k >> rows == 0 or k & ((1 << rows) - 1) == 0


@part
def _members(k: int, rows: int, points: int, near: Ints, far: Ints) -> tuple[int, int]:
    """The rows and columns of a part; how many."""
    m, n = 0, 0
    for point in range(points):
        if k >> point & 1:
            if point < rows:
                near[m] = point
                m += 1
            else:
                far[n] = point - rows
                n += 1
    return m, n


@part
def _solve(hessian: Floats, slope: Floats, x: Floats, size: int) -> None:
    """``Hx = -f`` by Cholesky, in place of the lower triangle."""
    for i in range(size):
        for j in range(i + 1):
            total = hessian[i, j]
            for k in range(j):
                total -= hessian[i, k] * hessian[j, k]
            hessian[i, j] = np.sqrt(max(total, 1e-300)) if i == j else total / hessian[j, j]
    for i in range(size):
        total = -slope[i]
        for k in range(i):
            total -= hessian[i, k] * x[k]
        x[i] = total / hessian[i, i]
    for i in range(size - 1, -1, -1):
        total = x[i]
        for k in range(i + 1, size):
            total -= hessian[k, i] * x[k]
        x[i] = total / hessian[i, i]


@compiled
def optimum(
    cost: Floats, wanted: Floats, weights: Floats, reg: float, k: int, pairs: Ints, mass: Floats, found: Ints
) -> float:
    """A lower bound of ``f``, sharp up to rounding, and the links of a plan: pairs, masses, how many.

    Lawson and Hanson's active set, with a tiny quadratic term; its dual point, made feasible, gives the bound.
    """
    rows, points = cost.shape[0], wanted.size
    near, far = np.empty(points, np.int64), np.empty(points, np.int64)
    m, n = _members(k, rows, points, near, far)
    room = m * n + 1
    curve_a, curve_b = 2.0 * weights[0], 2.0 * weights[1]
    bend = reg + _TINY * (curve_a + curve_b)
    row_sum, col_sum = np.zeros(m), np.zeros(n)
    held_i, held_j, x, new = np.empty(room, np.int64), np.empty(room, np.int64), np.zeros(room), np.zeros(room)
    hessian, slope, used, size = np.empty((room, room)), np.empty(room), np.zeros((m, n), np.bool_), 0
    scale = 0.0
    for i in range(m):
        scale = max(scale, curve_a * wanted[near[i]])
    for j in range(n):
        scale = max(scale, curve_b * wanted[rows + far[j]])
    for _ in range(10 * room + 50):
        steepest, best_i, best_j = -1e-13 * scale, -1, -1
        for i in range(m):
            pull = curve_a * (row_sum[i] - wanted[near[i]])
            for j in range(n):
                if not used[i, j]:
                    gradient = cost[near[i], far[j]] + pull + curve_b * (col_sum[j] - wanted[rows + far[j]])
                    if gradient < steepest:
                        steepest, best_i, best_j = gradient, i, j
        if best_i < 0:
            break
        held_i[size], held_j[size], x[size], used[best_i, best_j] = best_i, best_j, 0.0, True
        size += 1
        while size > 0:
            for p in range(size):
                i, j = held_i[p], held_j[p]
                slope[p] = cost[near[i], far[j]] - curve_a * wanted[near[i]] - curve_b * wanted[rows + far[j]]
                for q in range(p + 1):
                    hessian[p, q] = curve_a * (held_i[q] == i) + curve_b * (held_j[q] == j) + bend * (p == q)
            _solve(hessian, slope, new, size)
            step = 1.0
            for p in range(size):
                if new[p] <= 0.0:
                    step = min(step, x[p] / (x[p] - new[p]) if x[p] > new[p] else 0.0)
            if step == 1.0:
                for p in range(size):
                    x[p] = new[p]
                break
            kept = 0
            for p in range(size):
                moved = x[p] + step * (new[p] - x[p])
                if new[p] <= 0.0 and moved <= 1e-14 * x[p] + 1e-300:
                    used[held_i[p], held_j[p]] = False
                    continue
                held_i[kept], held_j[kept], x[kept] = held_i[p], held_j[p], moved
                kept += 1
            if kept == size:  # rounding: the one that is closest to zero leaves
                break
            size = kept
        row_sum[:] = 0.0
        col_sum[:] = 0.0
        for p in range(size):
            row_sum[held_i[p]] += x[p]
            col_sum[held_j[p]] += x[p]
    found[0] = size
    for p in range(size):
        pairs[0, p], pairs[1, p], mass[p] = near[held_i[p]], far[held_j[p]], x[p]
    lower = _sharp(cost, wanted, curve_a, curve_b, near[:m], far[:n], row_sum, col_sum)
    if reg > 0.0:
        lower = max(lower, _smooth(cost, wanted, curve_a, curve_b, reg, near[:m], far[:n], row_sum, col_sum))
    return lower


@part
def _sharp(
    cost: Floats,
    wanted: Floats,
    curve_a: float,
    curve_b: float,
    near: Ints,
    far: Ints,
    row_sum: Floats,
    col_sum: Floats,
) -> float:
    """The dual at the potentials of the columns, and the best ones of the rows beside them."""
    rows, m, n, value, terms = cost.shape[0], near.size, far.size, 0.0, 0.0
    for j in range(n):
        price = curve_b * (wanted[rows + far[j]] - col_sum[j])
        gain = price * wanted[rows + far[j]] - price * price / (2.0 * curve_b)
        value += gain
        terms += abs(gain) + price * price / curve_b
    for i in range(m):
        price = curve_a * wanted[near[i]]
        for j in range(n):
            price = min(price, cost[near[i], far[j]] - curve_b * (wanted[rows + far[j]] - col_sum[j]))
        gain = price * wanted[near[i]] - price * price / (2.0 * curve_a)
        value += gain
        terms += abs(gain) + price * price / curve_a
    return value - 2.3e-16 * (m + n + 8) * terms


@part
def _smooth(
    cost: Floats,
    wanted: Floats,
    curve_a: float,
    curve_b: float,
    reg: float,
    near: Ints,
    far: Ints,
    row_sum: Floats,
    col_sum: Floats,
) -> float:
    """The dual with a quadratic term at the potentials of rows and columns."""
    rows, value, terms = cost.shape[0], 0.0, 0.0
    for i in range(near.size):
        first = curve_a * (wanted[near[i]] - row_sum[i])
        value += first * wanted[near[i]] - first * first / (2.0 * curve_a)
        terms += abs(first) * wanted[near[i]] + first * first / curve_a
        for j in range(far.size):
            second = curve_b * (wanted[rows + far[j]] - col_sum[j])
            wish = max(first + second - cost[near[i], far[j]], 0.0)
            value -= wish * wish / (2.0 * reg)
            terms += wish * (abs(first) + abs(second) + wish) / reg
    for j in range(far.size):
        second = curve_b * (wanted[rows + far[j]] - col_sum[j])
        value += second * wanted[rows + far[j]] - second * second / (2.0 * curve_b)
        terms += abs(second) * wanted[rows + far[j]] + second * second / curve_b
    return value - 2.3e-16 * (near.size + far.size + 8) * terms


@compiled
def price(
    cost: Floats,
    wanted: Floats,
    weights: Floats,
    reg: float,
    value: Floats,
    is_exact: NDArray[np.bool_],
    share: Floats,
    least: Ints,
    reduced: Floats,
) -> None:
    """The parts with the least reduced costs ``f(S) - share(S)`` into ``least``, in order, all of them exact."""
    points = share.size
    pairs, mass = np.empty((2, points * points), np.int64), np.empty(points * points)
    found, sums = np.zeros(1, np.int64), np.zeros(1 << (points // 2 + 1))
    low = points // 2
    high = np.zeros(1 << (points - low))
    for k in range(1, 1 << low):
        bit = 0
        while not k >> bit & 1:
            bit += 1
        sums[k] = sums[k & (k - 1)] + share[bit]
    for k in range(1, high.size):
        bit = 0
        while not k >> bit & 1:
            bit += 1
        high[k] = high[k & (k - 1)] + share[low + bit]
    while True:
        held = 0
        for k in range(1, value.size):
            cost_of = value[k] - sums[k & ((1 << low) - 1)] - high[k >> low]
            if held == least.size and cost_of >= reduced[held - 1]:
                continue
            place = held if held < least.size else held - 1
            while place > 0 and cost_of < reduced[place - 1]:
                least[place], reduced[place] = least[place - 1], reduced[place - 1]
                place -= 1
            least[place], reduced[place] = k, cost_of
            held = min(held + 1, least.size)
        is_done = True
        for p in range(held):
            k = least[p]
            if not is_exact[k]:
                is_done = False
                value[k] = max(value[k], optimum(cost, wanted, weights, reg, k, pairs, mass, found))
                is_exact[k] = True
        if is_done:
            return
