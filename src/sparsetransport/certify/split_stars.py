r"""Several links a row: stars whose links are whole rows, or pieces of rows that are split.

A row is unreached, whole (it has one link) or split (it has two to :math:`k_i`). Whole rows cost what they do in
`stars`, at a price :math:`w_i \ge 0`. The marginal error of a split row is at least :math:`\alpha_i (a_i - \sum x) -
\alpha_i^2 / 4\lambda_a` for every :math:`\alpha_i`, so that a piece of mass ``x`` costs :math:`(C_{ij} - \alpha_i) x +
\lambda_2 x^2/2`, and no piece of an optimal plan has more mass than

.. math::
    X_{ij} = \frac{(2\lambda_a a_i + 2\lambda_b b_j - C_{ij})_+}{2\lambda_a + 2\lambda_b + \lambda_2} .

With a price :math:`\mu \ge 0` of all links and :math:`\nu_i \ge -\mu` of pieces

.. math::
    \sum_i \min\Big(\lambda_a a_i^2 - w_i,\; \alpha_i a_i - \frac{\alpha_i^2}{4\lambda_a} - \max(2\nu_i, k_i\nu_i)\Big)
    - \mu K + \sum_j (\text{the cheapest star of column } j)

is a lower bound, concave in all prices. It is maximised by cutting planes within a box around the best prices. It is
tight where few rows are split. With rows and columns exchanged it is another bound, tight where few columns are, which
knows no limits of rows.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from .._checks import Floats, Ints
from ..budgets import Limits
from ..effort import Effort
from ..problem import Problem
from .one_to_one import is_two_sided
from .rounding import UNIT, below
from .stars import Columns, Plan
from .stars_pricing import LOW, PRICE, SIZE, Bools, cheapest_star, cost_of_star, new_work


def applies(problem: Problem, limits: Limits) -> bool:
    """True if marginal errors count point by point, and some row and column may have two links."""
    several = bool((limits.rows > 1).any() and (limits.cols > 1).any())
    return several and problem.has_deltas and is_two_sided(problem)


def prove(
    problem: Problem,
    limits: Limits,
    plan: Plan,
    value: float,
    gap_tol: float,
    deadline: float,
    effort: Effort,
    sums: tuple[Floats, Floats],
) -> float:
    """A lower bound; ``sums`` are those of a plan that is optimal or nearly so without the budget."""
    m, n = problem.shape
    if m * n > effort.split_pairs:
        return -np.inf
    bound, left = -np.inf, _sides(limits, plan)
    while left and value - bound > gap_tol * abs(value) and (now := time.monotonic()) < deadline:
        is_flipped = left.pop(0)
        rows, cols, mass = plan[:2][::-1] + plan[2:] if is_flipped else plan
        until = now + effort.bound_share * (deadline - now) if left else deadline
        ascent = _Ascent(problem, limits, is_flipped, effort, until)
        ascent.begin(rows, cols, mass, sums[is_flipped])
        ascent.run(value, gap_tol)
        bound = max(bound, ascent.bound)
    return bound


def _sides(limits: Limits, plan: Plan) -> list[bool]:
    """Whose lines are split, rows or (True) columns: those with limits; or both, first those the plan splits less."""
    m, n = len(limits.rows), len(limits.cols)
    limited = bool((limits.rows < n).any()), bool((limits.cols < m).any())
    if limited[0] != limited[1]:
        return [limited[1]]
    split = [int((np.bincount(lines) > 1).sum()) for lines in plan[:2]]
    return [split[1] < split[0], split[1] >= split[0]]


class _Prices(NamedTuple):
    """Where a bound is computed."""

    whole: Floats  # w
    potential: Floats  # α
    piece: Floats  # ν
    link: float  # μ

    @property
    def flat(self) -> Floats:
        return np.concatenate([self.whole, self.potential, self.piece, [self.link]])

    @classmethod
    def of(cls, flat: Floats) -> "_Prices":
        m = flat.size // 3
        return cls(flat[:m], flat[m : 2 * m], flat[2 * m : 3 * m], float(flat[3 * m]))


class _Ascent:
    """Cutting planes for the rows and for the columns, in the prices, and one variable for each row and column."""

    def __init__(self, problem: Problem, limits: Limits, is_flipped: bool, effort: Effort, deadline: float) -> None:
        self.columns = Columns.of(problem, limits, is_flipped)
        cost = np.concatenate([block for _, block in problem.cost.blocks()])
        self.cost = np.ascontiguousarray(cost if is_flipped else cost.T)  # (n, m)
        n, m = self.cost.shape
        a, capacity = (problem.b, limits.cols) if is_flipped else (problem.a, limits.rows)
        self.a, self.effort, self.deadline = a, effort, deadline
        self.total, self.most = int(limits.total), np.minimum(capacity, n)
        self.reached, self.split = self.most > 0, self.most > 1
        weight_a, weight_b = self.columns.weight_rows, self.columns.weight
        finite = np.where(np.isfinite(self.cost), self.cost, 0.0)
        terms = 2.0 * weight_a * a, 2.0 * weight_b * self.columns.b[:, None], -finite
        most = np.maximum(sum(terms) + 4.0 * UNIT * sum(np.abs(each) for each in terms), 0.0)
        room = most * (1.0 + 4.0 * UNIT) / (2.0 * (weight_a + weight_b) + problem.reg)
        self.room = np.where(np.isfinite(self.cost), room, 0.0)
        self.reg, self.work = problem.reg, new_work(2 * m)
        self.where, self.out = np.zeros(n), np.zeros(SIZE + 1)
        self.bound, self.cuts, self.right = -np.inf, [], []  # type: tuple[float, list[tuple[Ints, Floats]], list[float]]

    def begin(self, rows: Ints, cols: Ints, mass: Floats, sums: Floats) -> None:
        """Prices to begin with, and the planes of a plan."""
        n, m = self.cost.shape
        weight = self.columns.weight_rows
        self.best = _Prices(weight * sums**2, 2.0 * weight * (self.a - sums), np.zeros(m), 0.0)
        links = np.bincount(rows, minlength=m)
        dense = np.zeros((n, 2 * m))
        dense[cols, rows + m * (links[rows] > 1)] = mass
        for j in range(n):
            self._cut_column(j, np.zeros(2 * m, bool), np.zeros(2 * m))
            self._cut_column(j, dense[j] > 0.0, dense[j])
        self._cut_rows(self.best.potential, is_first=True)
        self._cut_rows(2.0 * weight * (self.a - np.bincount(rows, mass, minlength=m)))

    def run(self, value: float, gap_tol: float) -> None:
        """Maximise until the bound is close to the value, or to what the cutting planes allow, or the time is up."""
        width, prices, since = self.effort.split_width, self.best, 0
        for _ in range(self.effort.split_rounds):
            before = self.bound
            if not self._price(prices) or value - self.bound <= gap_tol * abs(value):
                return
            ceiling, prices = self._model(width)
            if self.bound > before:
                since = 0
                width = min(2.0, 1.5 * width) if self.bound > before + 0.1 * (ceiling - before) else width
            else:
                since += 1
                width *= 0.75 if since % 4 == 0 else 1.0
            if time.monotonic() > self.deadline or width < self.effort.split_least:
                return
            if ceiling - self.bound <= self.effort.split_close * abs(value):
                if width > 1.0:
                    return
                width *= 2.0

    def _price(self, at: _Prices) -> bool:
        """The bound of these prices, and its planes; False if there was no time."""
        (n, m), each = self.cost.shape, self.columns
        lows, sizes, links = np.zeros(n), 0.0, np.zeros(2 * m, bool)
        nothing = np.zeros((0, 2 * m), bool), np.zeros(0)
        price = np.concatenate([at.whole + at.link, np.maximum(at.link + at.piece, 0.0)])
        bend = np.concatenate([each.bend, np.full(m, self.reg)])
        for j in range(n):
            if time.monotonic() > self.deadline:
                return False
            first = np.where(self.split & (self.room[j] > 0.0), self.cost[j] - at.potential, np.inf)
            slack = 2.0 * UNIT * (np.abs(at.potential) + np.where(np.isfinite(first), np.abs(self.cost[j]), 0.0))
            begin, room = np.concatenate([each.begin[j], first - slack]), np.concatenate([each.room, self.room[j]])
            self.out[PRICE] = self.where[j]
            cheapest_star(
                self.work,
                begin,
                bend,
                room,
                price,
                each.b[j],
                each.weight,
                np.inf,
                self.effort.split_nodes,
                links,
                *nothing,
                self.out,
            )
            lows[j], self.where[j], sizes = self.out[LOW], self.out[PRICE], sizes + self.out[SIZE]
            mass = np.zeros(2 * m)
            cost_of_star(self.work, begin, bend, room, links, each.b[j], each.weight, mass)
            self._cut_column(j, links, mass)
        self._cut_rows(at.potential)
        bound = self._bound(at, lows, sizes)
        if bound > self.bound:
            self.bound, self.best = bound, at
        return True

    def _bound(self, at: _Prices, lows: Floats, sizes: float) -> float:
        """The bound, less a rounding margin."""
        weight, piece = self.columns.weight_rows, np.maximum(at.piece, -at.link)
        parts = at.potential * self.a, -(at.potential**2) / (4.0 * weight), -np.maximum(2.0 * piece, self.most * piece)
        alone = self.columns.alone
        rows = np.where(self.reached, alone - at.whole, alone)
        rows = np.where(self.split, np.minimum(rows, sum(parts)), rows)
        links = at.link * self.total if at.link > 0.0 else 0.0
        size = sum(float(np.abs(each).sum()) for each in (*parts, alone, at.whole, lows)) + links
        return below(float(rows.sum() + lows.sum()) - links - UNIT * sizes, size, lows.size + rows.size)

    def _add(self, places: Ints, coefficients: Floats, right: float) -> None:
        self.cuts.append((places, coefficients))
        self.right.append(right)

    def _cut_column(self, j: int, links: Bools, mass: Floats) -> None:
        """The cost of a star is no more than that of any of its links and masses, which is linear in the prices."""
        m, each = self.a.size, self.columns
        whole, pieces = np.flatnonzero(links[:m]), np.flatnonzero(links[m:])
        x, y = mass[whole], mass[m + pieces]
        cost = each.weight * (x.sum() + y.sum() - each.b[j]) ** 2 + self.cost[j, pieces] @ y + 0.5 * self.reg * y @ y
        cost += each.begin[j, whole] @ x + 0.5 * each.bend[whole] @ x**2
        places = np.concatenate([[4 * m + 1 + j, 3 * m], whole, m + pieces, 2 * m + pieces]).astype(np.int64)
        count = float(whole.size + pieces.size)
        ones = np.ones(whole.size), np.ones(pieces.size)
        self._add(places, np.concatenate([[1.0, -count], -ones[0], y, -ones[1]]), float(cost))

    def _cut_rows(self, potential: Floats, *, is_first: bool = False) -> None:
        """The tangents of what rows cost that are split; at first also what they cost otherwise."""
        m, weight = self.a.size, self.columns.weight_rows
        for i in range(m):
            own = 3 * m + 1 + i
            if is_first:
                reached = float(self.reached[i])
                self._add(np.array([own, i]), np.array([1.0, reached]), float(self.columns.alone[i]))
            if self.split[i]:
                slope = self.a[i] - potential[i] / (2.0 * weight)
                for count in {2, int(self.most[i])}:
                    places = np.array([own, m + i, 2 * m + i])
                    self._add(places, np.array([1.0, -slope, float(count)]), float(potential[i] ** 2 / (4.0 * weight)))

    def _model(self, width: float) -> tuple[float, _Prices]:
        """The best prices for all planes so far within a box around the best ones, and the value that they promise."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, vstack

        (n, m), each = self.cost.shape, self.columns
        own, most = (
            np.maximum(each.alone, 1e-3 * each.alone.max()),
            max(each.alone.max(), each.weight * (each.b**2).max()),
        )
        is_limited = self.total < m * n
        typical = 0.2 * float(np.median(np.concatenate([each.alone, each.weight * each.b**2])))
        pull = 2.0 * each.weight_rows * np.maximum(self.a, 1e-3 * self.a.max())
        scale = np.concatenate([own, pull, own, [typical]])
        low = np.concatenate([np.zeros(m), np.full(m, -np.inf), np.full(m, -most if is_limited else 0.0), [0.0]])
        high = np.concatenate([np.full(3 * m, np.inf), [most if is_limited else 0.0]])
        high[:m][~self.reached] = 0.0
        centre = self.best.flat
        limits = np.column_stack([np.maximum(low, centre - width * scale), np.minimum(high, centre + width * scale)])
        limits = np.concatenate([limits, np.tile([-np.inf, np.inf], (m + n, 1))])
        sizes = [places.size for places, _ in self.cuts]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.concatenate([places for places, _ in self.cuts])
        planes = csr_array(
            (np.concatenate([values for _, values in self.cuts]), places, starts), shape=(len(sizes), 4 * m + 1 + n)
        )
        least = csr_array(  # ν >= -μ
            (-np.ones(2 * m), (np.tile(np.arange(m), 2), np.append(2 * m + np.arange(m), np.full(m, 3 * m)))),
            shape=(m, 4 * m + 1 + n),
        )
        goal = np.concatenate([np.zeros(3 * m), [float(self.total) if is_limited else 0.0], -np.ones(m + n)])
        solve: Any = linprog
        right = np.append(self.right, np.zeros(m))
        solved = solve(goal, A_ub=vstack([planes, least]), b_ub=right, bounds=limits, method="highs-ds")
        if solved.x is None:
            return np.inf, self.best
        return -float(solved.fun), _Prices.of(solved.x[: 3 * m + 1])
