r"""One link a row: plans are partitions into stars, of a column and the rows that are linked with it.

Without links the rows cost :math:`A = \lambda_a \|a\|^2`. A link of mass ``x`` adds :math:`(C_{ij} - 2\lambda_a a_i) x
+ (2\lambda_a + \lambda_2) x^2/2`, so the cost :math:`F_j(R)` of a star is that of a single column: see `stars_pricing`.
The optimum is A plus the least sum of stars, one a column, that share no row and have K links at most. With prices
:math:`p \ge 0` of the rows

.. math::
    A - \text{the K largest of } p + \sum_j \min_R \Big(F_j(R) + \sum_{i \in R} p_i\Big)

is a lower bound. The best prices are found by column generation, with prices between the best ones so far and those of
the linear programme. Then no star whose reduced cost is above the gap is part of a better plan; an integer programme
over all the others closes the gap, or finds a better plan. Budgets of one link a column are transposed.
"""

import time
from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from ..budgets import Limits
from ..effort import Effort
from ..problem import Problem
from .one_to_one import is_two_sided
from .rounding import UNIT, below
from .stars_master import Stars, choose
from .stars_pricing import FOUND, LOW, NODES, PRICE, SIZE, Bools, cheapest_star, cost_of_star, new_work

Plan = tuple[Ints, Ints, Floats]


def applies(problem: Problem, limits: Limits) -> bool:
    """True if every row, or every column, has one link at the most, and marginal errors count point by point."""
    one_a_line = bool((limits.rows <= 1).all() or (limits.cols <= 1).all())
    return one_a_line and problem.has_deltas and is_two_sided(problem)


def prove(
    problem: Problem,
    limits: Limits,
    plan: Plan,
    gap_tol: float,
    deadline: float,
    effort: Effort,
    sums: tuple[Floats, Floats],
) -> tuple[float, Plan | None]:
    """A lower bound, and a better plan if one was found.

    ``sums`` are row and column sums of a plan that is optimal or nearly so without the budget.
    """
    if problem.shape[0] * problem.shape[1] > effort.star_pairs:
        return -np.inf, None
    is_flipped = not bool((limits.rows <= 1).all())
    columns = Columns.of(problem, limits, is_flipped)
    rows, cols, mass = plan[:2][::-1] + plan[2:] if is_flipped else plan
    search = Search(columns, effort, deadline)
    start = np.full(columns.begin.shape[1], -1)
    start[rows[mass > 0.0]] = cols[mass > 0.0]
    search.begin(start, columns.weight_rows * sums[is_flipped] ** 2)
    search.run(gap_tol)
    if search.better is None or len(limits.labels):
        return search.bound, None
    rows, cols, mass = search.better
    return search.bound, (cols, rows, mass) if is_flipped else (rows, cols, mass)


class Columns(NamedTuple):
    """The columns and their links, rows with a capacity of one."""

    begin: Floats  # (n, m) the slope of a link without mass
    bend: Floats  # (m,) its second derivative
    room: Floats  # (m,)
    b: Floats
    weight: float
    weight_rows: float
    alone: Floats  # (m,) what a row costs without a link
    total: int
    capacity: Ints  # (n,)

    @classmethod
    def of(cls, problem: Problem, limits: Limits, is_flipped: bool) -> "Columns":
        """Those of a problem, or with rows and columns exchanged."""
        cost = np.concatenate([block for _, block in problem.cost.blocks()])
        (weight_a, weight_b), a, b, allowed, capacity = (
            problem.unbalanced,
            problem.a,
            problem.b,
            limits.rows,
            limits.cols,
        )
        if is_flipped:
            cost, weight_a, weight_b, a, b, allowed, capacity = cost.T, weight_b, weight_a, b, a, capacity, allowed
        pull = 2.0 * weight_a * a
        begin = cost.T - pull
        # rounded down, and a link that is cheaper than it is makes the bound no higher than it is
        is_there = np.isfinite(begin)
        begin -= 2.0 * UNIT * (np.abs(np.where(is_there, cost.T, 0.0)) + pull)
        begin[:, allowed == 0] = np.inf
        m = len(a)
        return cls(
            np.ascontiguousarray(begin),
            np.full(m, 2.0 * weight_a + problem.reg),
            np.full(m, np.inf),
            b,
            weight_b,
            weight_a,
            weight_a * a * a,
            int(min(limits.total, m)),
            capacity,
        )


class Search:
    """Column generation, and the integer programme at its end."""

    def __init__(self, columns: Columns, effort: Effort, deadline: float) -> None:
        self.columns, self.effort, self.deadline = columns, effort, deadline
        n, m = columns.begin.shape
        self.stars, self.work, self.nodes = Stars(m), new_work(m), effort.star_nodes
        self.where, self.links, self.out = np.zeros(n), np.zeros(m, bool), np.zeros(SIZE + 1)
        self.bound, self.value, self.better = -np.inf, np.inf, None  # type: tuple[float, float, Plan | None]

    def begin(self, column_of: Ints, prices: Floats) -> None:
        """The stars of a plan, and prices to begin with."""
        for j in range(len(self.columns.b)):
            for links in (np.zeros(len(column_of), bool), column_of == j):
                self._add(j, links)
        self.value = self._cost(column_of)
        self.best = self.last = self._projected(prices)
        self.lows: Floats = np.zeros(len(self.columns.b))

    def run(self, gap_tol: float) -> None:
        """Go on until the gap is closed, the time is up or nothing helps."""
        mix, share = 0.0, self.effort.star_share
        for _ in range(self.effort.star_rounds):
            prices = self.best + mix * (self.last - self.best)
            found = self._price(prices)
            if found is None:
                return
            added, is_cut = found
            relaxed, self.last = self.stars.relaxed(len(self.columns.b), self.columns.total)
            relaxed += float(self.columns.alone.sum())
            gap = self.value - self.bound
            if gap <= gap_tol * abs(self.value) or time.monotonic() > self.deadline:
                return
            is_stuck = not added and mix == 1.0 and not is_cut
            if relaxed - self.bound <= share * gap or is_stuck:
                if self._improve():
                    continue
                if self._close() or is_stuck:
                    return
                share *= self.effort.star_share
            if not added and is_cut:
                self.nodes *= 4.0
            mix = self.effort.star_mix if added else 1.0

    def _price(self, prices: Floats) -> tuple[int, bool] | None:
        """The bound of these prices, and new stars: how many, and whether a search was cut short; None without time."""
        lows, sizes, added, is_cut = np.zeros(len(self.columns.b)), 0.0, 0, False
        nothing = np.zeros((0, len(prices)), bool), np.zeros(0)
        for j in range(len(lows)):
            if time.monotonic() > self.deadline:
                return None
            self._search(j, prices, np.inf, self.nodes, *nothing)
            lows[j], self.where[j] = self.out[LOW], self.out[PRICE]
            sizes += self.out[SIZE]
            is_cut = is_cut or self.out[NODES] > self.nodes
            added += self._add(j, self.links)
        bound = self._bound(prices, lows, sizes)
        if bound > self.bound:
            self.bound, self.best, self.lows, self.margin = bound, prices, lows, UNIT * sizes
        return added, is_cut

    def _bound(self, prices: Floats, lows: Floats, sizes: float) -> float:
        """The bound of prices and of the cheapest stars, whose terms are of this size, less a rounding margin."""
        largest = -np.sort(-prices)[: self.columns.total]
        terms = np.concatenate([self.columns.alone, -largest, lows])
        return below(float(terms.sum()) - UNIT * sizes, float(np.abs(terms).sum()), len(terms))

    def _search(self, j: int, prices: Floats, cut: float, nodes: float, sets: Bools, values: Floats) -> None:
        each = self.columns
        self.out[PRICE] = self.where[j]
        cheapest_star(
            self.work,
            each.begin[j],
            each.bend,
            each.room,
            prices,
            each.b[j],
            each.weight,
            cut,
            nodes,
            self.links,
            sets,
            values,
            self.out,
        )

    def _add(self, j: int, links: Bools) -> bool:
        """Add a star, if it is a new one."""
        if not self.stars.is_new(j, links):
            return False
        self.stars.add(j, links, self._star(j, links)[0])
        return True

    def _star(self, j: int, links: Bools) -> tuple[float, Floats]:
        each, mass = self.columns, np.zeros(links.size)
        cost = cost_of_star(self.work, each.begin[j], each.bend, each.room, links, each.b[j], each.weight, mass)
        return cost, mass

    def _cost(self, column_of: Ints) -> float:
        return float(self.columns.alone.sum()) + sum(
            self._star(j, column_of == j)[0] for j in range(len(self.columns.b))
        )

    def _projected(self, prices: Floats) -> Floats:
        """Prices at least as high as the K-th largest, where there are fewer links than rows: no bound is worse."""
        total = self.columns.total
        if total >= prices.size:
            return prices
        return np.asarray(np.maximum(prices, -np.sort(-prices)[max(total - 1, 0)]))

    def _improve(self) -> bool:
        """The best plan of known stars; True if it is better."""
        return self._choose(self.stars)[1]

    def _choose(self, stars: Stars) -> tuple[float, bool]:
        """The bound of a choice among stars, in shares of the gap, and whether it found a better plan."""
        gap, prices, total = self.value - self.bound, self.best, self.columns.total
        spare = float(np.sort(prices)[-total]) if 0 < total < prices.size else 0.0
        extra = np.maximum(prices - spare, 0.0)
        reduced = stars.priced(np.maximum(prices, spare)) - self.lows[stars.columns]
        fits = np.flatnonzero((reduced <= gap + self.margin) & (stars.sizes <= self.columns.capacity[stars.columns]))
        left, n = stars.only(fits), len(self.columns.b)
        seconds = min(self.deadline - time.monotonic(), self.effort.star_seconds)
        choice = choose(
            left, reduced[fits] / gap, extra / gap, spare / gap, n, total, seconds, self.effort.star_branches
        )
        if choice.chosen is None:
            return choice.bound, False
        column_of = np.full(stars.rows, -1)
        for k in choice.chosen.tolist():
            column_of[left.links[k]] = left.columns[k]
        value = self._cost(column_of)
        if value >= self.value - self.margin:
            return choice.bound, False
        mass = np.sum([self._star(j, column_of == j)[1] for j in range(n)], axis=0)
        rows = np.flatnonzero(mass > 0.0)
        self.value, self.better = value, (rows, column_of[rows], mass[rows])
        return choice.bound, True

    def _close(self) -> bool:
        """List all stars that a better plan may have and choose among them; True if that was possible."""
        gap, before = self.value - self.bound, self.bound
        sets, values = np.zeros((self.effort.star_list, len(self.best)), bool), np.zeros(self.effort.star_list)
        stars = Stars(self.stars.rows)
        for j in range(len(self.columns.b)):
            room = slice(len(stars), None)
            if time.monotonic() > self.deadline:
                return False
            cut = self.lows[j] + gap + self.margin
            self._search(j, self.best, cut, self.effort.star_list_nodes, sets[room], values[room])
            if self.out[FOUND] < 0.0:
                return False
            for links in sets[room][: int(self.out[FOUND])]:
                stars.add(j, links, self._star(j, links)[0])
        bound, _ = self._choose(stars)
        self.bound = max(self.bound, min(before + bound * gap - self.margin, self.value - self.margin))
        return True
