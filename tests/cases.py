"""Problems and budgets that several test files share."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import oracles

import sparsetransport as st

KERNELS = {"delta": None, "rbf": st.RBF(0.3), "imq": st.IMQ(0.5), "imq-v2": st.IMQv2(2.0)}


@dataclass(frozen=True)
class Instance:
    """A problem as dense arrays, for the package and for the oracles alike."""

    C: np.ndarray
    a: np.ndarray
    b: np.ndarray
    Ga: np.ndarray
    Gb: np.ndarray
    unbalanced: tuple[float, float]
    reg: float

    @property
    def shape(self):
        return self.C.shape

    @property
    def arrays(self):
        """What the oracles take."""
        return self.C, self.a, self.b, self.Ga, self.Gb, self.unbalanced, self.reg

    def problem(self):
        return st.Problem.from_matrices(
            self.C, self.a, self.b, kernels=(self.Ga, self.Gb), unbalanced=self.unbalanced, reg=self.reg
        )

    def solve(self, **options):
        return st.solve(self.problem(), **options)

    def value(self, plan):
        return oracles.objective(*self.arrays, np.asarray(plan))

    def constant(self):
        return self.value(np.zeros(self.shape))

    def optimum(self, allowed):
        """The least objective of a plan with an allowed support, by brute force."""
        hessian, slope, constant = oracles.quadratic(*self.arrays)
        return constant + oracles.brute_force(hessian, slope, self.shape, allowed)

    def permuted(self, rows, cols):
        return replace(
            self,
            C=self.C[np.ix_(rows, cols)],
            a=self.a[rows],
            b=self.b[cols],
            Ga=self.Ga[np.ix_(rows, rows)],
            Gb=self.Gb[np.ix_(cols, cols)],
        )

    def transposed(self):
        return Instance(self.C.T.copy(), self.b, self.a, self.Gb, self.Ga, self.unbalanced[::-1], self.reg)


def problem_of(seed, m=4, n=4, kernel="rbf", reg=0.1, unbalanced=(2.0, 2.0), *, forbidden=0.0):
    """The problem of an `instance`; "delta" is the kernel itself, searched on trees, not an identity matrix."""
    case = instance(seed, m, n, kernel, reg, unbalanced, forbidden=forbidden)
    if kernel != "delta":
        return case.problem()
    return st.Problem.from_matrices(case.C, case.a, case.b, unbalanced=unbalanced, reg=reg)


def instance(seed, m=4, n=4, kernel="rbf", reg=0.1, unbalanced=(2.0, 2.0), *, negative=False, forbidden=0.0):
    """A random problem with no two numbers alike; totals differ."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(m, 2)), rng.normal(size=(n, 2)) + 0.5
    C = ((x[:, None] - y) ** 2).sum(axis=2)
    C = C / C.max() - (0.5 if negative else 0.0)
    C[rng.random(C.shape) < forbidden] = np.inf
    chosen = KERNELS[kernel]
    Ga, Gb = (np.eye(m), np.eye(n)) if chosen is None else (chosen.gram(x), chosen.gram(y))
    return Instance(C, rng.random(m) + 0.1, rng.random(n) + 0.1, Ga, Gb, unbalanced, reg)


# --- budgets: what the package gets, and the same rule in words of the oracle ----------------------------------------


@dataclass(frozen=True)
class Budget:
    """A budget and the rule it stands for."""

    matroid: object
    allowed: object


def _at_most(k):
    return lambda support: len(support) <= k


def _per_column(k):
    return lambda support: max(Counter(j for _, j in support).values()) <= k


def _per_row(k):
    return lambda support: max(Counter(i for i, _ in support).values()) <= k


def _labelled(labels, capacities):
    def allowed(support):
        used = Counter(int(labels[i, j]) for i, j in support if labels[i, j] >= 0)
        return all(count <= capacities[g] for g, count in used.items())

    return allowed


def _both(first, second):
    return lambda support: first(support) and second(support)


QUADRANTS = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, -1, 3], [2, 2, 3, 3]])
HALVES = np.array([[0, 0, 1, 1]] * 4)
TINY_BUDGETS = {  # for plans of shape (4, 4)
    "whole": Budget(3, _at_most(3)),
    "column": Budget(st.PerColumn(1), _per_column(1)),
    "columns": Budget(
        st.PerColumn([2, 1, 0, 1]),
        lambda support: all(c <= [2, 1, 0, 1][j] for j, c in Counter(j for _, j in support).items()),
    ),
    "row": Budget(st.PerRow(1), _per_row(1)),
    "partition": Budget(st.Partition(QUADRANTS, [1, 2, 1, 1]), _labelled(QUADRANTS, [1, 2, 1, 1])),
    "laminar": Budget(
        st.Laminar(st.PerColumn(1), st.Partition(HALVES, [1, 2]), st.Uniform(3)),
        _both(_both(_per_column(1), _labelled(HALVES, [1, 2])), _at_most(3)),
    ),
    "intersection": Budget(st.PerRow(1) & st.PerColumn(1), _both(_per_row(1), _per_column(1))),
    "partitions": Budget(
        st.Partition(QUADRANTS, [1, 2, 1, 1]) & st.Partition(HALVES, [2, 1]),
        _both(_labelled(QUADRANTS, [1, 2, 1, 1]), _labelled(HALVES, [2, 1])),
    ),
}


def support(result):
    """The pairs of a result, in order of index."""
    return tuple(sorted(zip(result.rows.tolist(), result.cols.tolist(), strict=True)))


class Forest(st.Matroid):
    """Links without a cycle: the graphic matroid of the complete bipartite graph, by one method."""

    def can_add(self, support, pair):
        return no_cycle((*support, pair))


def no_cycle(support):
    """Does the bipartite graph with these links have no cycle?"""
    parent = {}

    def root(node):
        while parent.get(node, node) != node:
            node = parent[node]
        return node

    for i, j in support:
        left, right = root(("row", i)), root(("column", j))
        if left == right:
            return False
        parent[left] = right
    return True


def least(problem, allowed):
    """The best objective under any support, by brute force."""
    (rows, cols), C = map(np.arange, problem.shape), problem.cost.rows(0, problem.shape[0])
    grams = problem.gram_a.block(rows, rows), problem.gram_b.block(cols, cols)
    hessian, slope, constant = oracles.quadratic(C, problem.a, problem.b, *grams, problem.unbalanced, problem.reg)
    return constant + oracles.brute_force(hessian, slope, problem.shape, allowed)


def clouds(seed, m=14, n=11):
    """Points in the plane, uneven masses, delta kernels."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(m, 2)), rng.normal(size=(n, 2))
    return st.Problem.from_points(X, Y, rng.random(m), rng.random(n), kernels="delta")


def odd(seed):
    """Costs and masses with ties, forbidden pairs, negative costs, empty points and totals that differ, in turn."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 9, 2)
    C = rng.random((m, n)) - 0.4 * (seed % 3 == 0)
    if seed % 5 == 0:
        C = np.round(4.0 * C) / 4.0
    if seed % 7 == 0:
        C[rng.random((m, n)) < 0.4] = np.inf
    a, b = (np.ones(m), np.ones(n)) if seed % 4 == 0 else (rng.random(m), rng.random(n))
    if seed % 6 == 0:
        a[rng.integers(m)] = 0.0
    return st.Problem.from_matrices(C, a, b, unbalanced=[(1.0, 1.0), (0.2, 7.0), (300.0, 300.0)][seed % 3])
