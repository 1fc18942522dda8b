r"""Branch and bound over links: for small problems, with `Delta` kernels and budgets that count entries.

A node forbids some links and keeps the capacity that others take. Its bound is the larger one of the unbudgeted optimum
of the links that are left and the bound by degrees at the prices of that optimum. If the optimum is within the budget,
the node is solved; otherwise its heaviest link where the budget is exceeded is forbidden in one child, and takes its
capacity in the other. The node with the least bound comes first, and every node tries what its optimum leaves when it
is cut down to the budget.
"""

import heapq
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from ..budgets import Limits, Pair, pairs_of
from ..effort import Branching
from ..engine.room import Constraint, fits
from ..geometry.matrices import Cost
from ..inner.solvers import ActiveSet
from ..problem import Problem
from . import degrees, parts

Plan = tuple[Ints, Ints, Floats]
_ROUNDING = 1e-12  # of the objective: a plan must be better by more than this


class Node(NamedTuple):
    """Links that are forbidden, with an infinite cost, and links that have taken their capacity."""

    bound: float
    number: int
    cost: Floats
    taken: tuple[Pair, ...]
    links: Plan  # the optimum without the budget


class Search:
    """The open nodes, the best plan, and the least bound of the nodes that were closed."""

    def __init__(self, problem: Problem, limits: Limits, plan: Plan, value: float, degree_links: int) -> None:
        self.problem, self.limits, self.best, self.value = problem, limits, plan, value
        self.constraint, self.solver, self.degree_links = Constraint.of(limits), ActiveSet(problem), degree_links
        self.open: list[Node] = []
        self.closed, self.made = np.inf, 0

    @property
    def bound(self) -> float:
        """No plan within the limits has a lower objective."""
        return min(self.closed, self.value, self.open[0].bound if self.open else np.inf)

    def add(self, cost: Floats, taken: tuple[Pair, ...], known: float, gap: float) -> None:
        """Bound a node, and keep it open unless it is solved or cannot hold a plan that is better by the gap."""
        self.made += 1
        bound, links = _unbudgeted(self.problem, cost)
        bound = max(bound, known)
        if self._is_within(links):
            self._offer(links[0], links[1])
            self.closed = min(self.closed, bound)
            return
        if bound < self.value - gap:
            bound = max(bound, self._by_degrees(cost, links))
            self._offer(*self._cut_down(links))
        if bound < self.value - gap:
            heapq.heappush(self.open, Node(bound, self.made, cost, taken, links))
        else:
            self.closed = min(self.closed, bound)

    def branch(self, gap: float) -> None:
        """Open the node with the least bound."""
        node = heapq.heappop(self.open)
        if node.bound >= self.value - gap:
            self.closed = min(self.closed, node.bound)
            return
        i, j = self._contested(node)
        without = node.cost.copy()
        without[i, j] = np.inf
        self.add(without, node.taken, node.bound, gap)
        taken = (*node.taken, (i, j))
        self.add(self._left(node.cost, taken), taken, node.bound, gap)

    def _by_degrees(self, cost: Floats, links: Plan) -> float:
        problem = self.problem
        sums = problem.marginals(*links)
        v = problem.b - sums[1]
        beta = 2.0 * problem.unbalanced[1] * v
        alpha = np.minimum(2.0 * problem.unbalanced[0] * problem.a, (cost - beta).min(axis=1))
        u = alpha / (2.0 * problem.unbalanced[0])
        masked = _with_costs(problem, cost)
        return degrees.bound(masked, self.limits, u, v, self.degree_links)

    def _is_within(self, links: Plan) -> bool:
        return bool(fits(self.constraint.room(), links[0], links[1]))

    def _cut_down(self, links: Plan) -> tuple[Ints, Ints]:
        """The heaviest links that the budget allows together."""
        kept = np.zeros(0, np.int64)
        for k in np.argsort(-links[2], kind="stable"):
            more = np.append(kept, k)
            if fits(self.constraint.room(), links[0][more], links[1][more]):
                kept = more
        return links[0][kept], links[1][kept]

    def _offer(self, rows: Ints, cols: Ints) -> None:
        """Take the plan on these links if it is better."""
        mass = self.solver.solve(rows, cols, np.zeros(len(rows))).mass
        value = self.problem.value(rows, cols, mass)
        if value < self.value - _ROUNDING * abs(self.value):
            self.best, self.value = (rows, cols, mass), value

    def _contested(self, node: Node) -> Pair:
        """The heaviest link that has not taken its capacity yet, where the budget is exceeded."""
        rows, cols, mass = node.links
        (m, n), limits = self.problem.shape, self.limits
        over = (np.bincount(rows, minlength=m) > limits.rows)[rows] | (np.bincount(cols, minlength=n) > limits.cols)[
            cols
        ]
        if len(rows) > limits.total or not over.any():
            over[:] = True
        free = np.array([pair not in node.taken for pair in pairs_of(rows, cols)])
        k = int(np.where(over & free, mass, -1.0).argmax())
        return int(rows[k]), int(cols[k])

    def _left(self, cost: Floats, taken: tuple[Pair, ...]) -> Floats:
        """The costs of the links for which there is capacity beside those taken."""
        limits, (rows, cols) = self.limits, (np.array(each) for each in zip(*taken, strict=True))
        (m, n), open_pairs = cost.shape, np.ones(cost.shape, bool)
        open_pairs &= (np.bincount(rows, minlength=m) < limits.rows)[:, None]
        open_pairs &= np.bincount(cols, minlength=n) < limits.cols
        open_pairs &= len(taken) < limits.total
        for layer in limits.labels:
            held = layer[rows, cols]
            left = limits.groups - np.bincount(held[held >= 0], minlength=len(limits.groups))
            open_pairs &= (layer < 0) | (left[layer] > 0)
        open_pairs[rows, cols] = True
        return np.where(open_pairs, cost, np.inf)


def search(
    problem: Problem,
    limits: Limits,
    plan: Plan,
    value: float,
    known: float,
    gap: float,
    how: Branching,
    degree_links: int,
    deadline: float = np.inf,
) -> tuple[float, Plan]:
    """The bound when the gap is closed, the nodes or the time are spent, and the best plan."""
    tree = Search(problem, limits, plan, value, degree_links)
    tree.add(problem.cost.rows(0, problem.shape[0]).copy(), (), known, gap)
    most = how.nodes if deadline == np.inf else np.inf
    while tree.open and tree.made < most and time.monotonic() < deadline:
        tree.branch(gap)
    return max(tree.bound, known), tree.best


def _unbudgeted(problem: Problem, cost: Floats) -> tuple[float, Plan]:
    """A lower bound, sharp up to rounding, of the plans with these costs, and the best one."""
    (m, n), found = problem.shape, np.zeros(1, np.int64)
    pairs, mass = np.empty((2, m * n + 1), np.int64), np.empty(m * n + 1)
    wanted, weights = np.concatenate([problem.a, problem.b]), np.array(problem.unbalanced)
    bound = parts.optimum(cost, wanted, weights, problem.reg, (1 << (m + n)) - 1, pairs, mass, found)
    size = int(found[0])
    return float(bound), (pairs[0, :size].copy(), pairs[1, :size].copy(), mass[:size].copy())


def _with_costs(problem: Problem, cost: NDArray[np.float64]) -> Problem:
    """The problem with other costs; all else has been checked."""
    made = object.__new__(Problem)
    fields = {name: vars(problem)[name] for name in Problem.__dataclass_fields__}
    vars(made).update(fields, cost=Cost.of_matrix(cost))
    return made
