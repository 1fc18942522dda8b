"""Answers that owe nothing to the package: formulas on dense arrays, brute force, Clarabel and POT."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np

Pair = tuple[int, int]
Support = tuple[Pair, ...]
Allowed = Callable[[Support], bool]


def objective(C, a, b, Ga, Gb, unbalanced, reg, plan):
    """U of a dense plan, term by term; a forbidden pair without mass costs nothing."""
    p, q = plan.sum(axis=1) - a, plan.sum(axis=0) - b
    linear = float((np.where(plan > 0.0, C, 0.0) * plan).sum())
    missed = unbalanced[0] * float(p @ Ga @ p) + unbalanced[1] * float(q @ Gb @ q)
    return linear + missed + 0.5 * reg * float((plan**2).sum())


def gradient(C, a, b, Ga, Gb, unbalanced, reg, plan):
    """The gradient of U at a dense plan."""
    r = 2.0 * unbalanced[0] * Ga @ (plan.sum(axis=1) - a)
    c = 2.0 * unbalanced[1] * Gb @ (plan.sum(axis=0) - b)
    return C + r[:, None] + c[None, :] + reg * plan


def quadratic(C, a, b, Ga, Gb, unbalanced, reg):
    """``(H, f, constant)`` with ``U = constant + f'x + x'Hx/2`` for the plan read row by row."""
    m, n = C.shape
    hessian = 2.0 * unbalanced[0] * np.kron(Ga, np.ones((n, n))) + 2.0 * unbalanced[1] * np.kron(np.ones((m, m)), Gb)
    slope = gradient(C, a, b, Ga, Gb, unbalanced, reg, np.zeros((m, n))).ravel()
    constant = unbalanced[0] * float(a @ Ga @ a) + unbalanced[1] * float(b @ Gb @ b)
    return hessian + reg * np.eye(m * n), slope, constant


# --- brute force -----------------------------------------------------------------------------------------------------


def _grow(pairs: list[Pair], allowed: Allowed, support: Support, first: int) -> Iterable[Support]:
    for k in range(first, len(pairs)):
        larger = (*support, pairs[k])
        if allowed(larger):
            yield larger
            yield from _grow(pairs, allowed, larger, k + 1)


@lru_cache(maxsize=64)
def supports(shape: tuple[int, int], allowed: Allowed) -> tuple[np.ndarray, ...]:
    """All allowed supports but the empty one, as flat indices: an array of shape (how many, size) for every size."""
    pairs = [(i, j) for i in range(shape[0]) for j in range(shape[1])]
    by_size: dict[int, list[list[int]]] = {}
    for support in _grow(pairs, allowed, (), 0):
        by_size.setdefault(len(support), []).append([i * shape[1] + j for i, j in support])
    return tuple(np.array(by_size[size]) for size in sorted(by_size))


def brute_force(hessian, slope, shape, allowed: Allowed) -> float:
    """The least of ``f'x + x'Hx/2`` over all ``x >= 0`` whose support is allowed.

    At the optimum the positive entries solve ``Hx = -f`` among themselves, and where H is singular there they can be
    made fewer. So it is enough to look at the unconstrained minimiser of every allowed support with a regular H.
    """
    best = 0.0
    for index in supports(shape, allowed):
        index = index[np.isfinite(slope[index]).all(axis=1)]
        block = hessian[index[:, :, None], index[:, None, :]]
        scale = np.abs(block).max(axis=(1, 2), initial=0.0)
        regular = np.linalg.svd(block, compute_uv=False)[:, -1] > 1e-12 * scale
        block, linear = block[regular], slope[index[regular]]
        x = np.linalg.solve(block, -linear[:, :, None])[:, :, 0]
        value = 0.5 * (linear * x).sum(axis=1)
        best = min(best, value[(x >= 0.0).all(axis=1)].min(initial=0.0))
    return float(best)


# --- the same without rounding ---------------------------------------------------------------------------------------


class Exact:
    """A tiny problem in fractions: objectives and optima are those of the numbers given, with no rounding at all."""

    def __init__(self, C, a, b, Ga, Gb, unbalanced, reg):
        exact = np.vectorize(lambda x: Fraction(float(x)), otypes=[object])
        a, b, Ga, Gb, (weight_a, weight_b), self.reg = map(exact, (a, b, Ga, Gb, unbalanced, reg))
        self.constant = weight_a * (a @ Ga @ a) + weight_b * (b @ Gb @ b)
        r, c = -2 * weight_a * (Ga @ a), -2 * weight_b * (Gb @ b)
        self.pairs = [(int(i), int(j)) for i, j in np.argwhere(np.isfinite(C))]
        self.slope = {(i, j): Fraction(float(C[i, j])) + r[i] + c[j] for i, j in self.pairs}
        self.grams = 2 * weight_a * Ga, 2 * weight_b * Gb

    def hessian(self, support):
        """The quadratic term between the pairs of a support, as a list of rows."""
        (Ga, Gb), reg = self.grams, self.reg.item()
        return [[Ga[i, k] + Gb[j, l] + reg * ((i, j) == (k, l)) for k, l in support] for i, j in support]

    def value(self, rows, cols, mass):
        """The objective of a sparse plan."""
        support = list(zip(rows.tolist(), cols.tolist(), strict=True))
        x = [Fraction(float(each)) for each in mass]
        linear = sum(self.slope[pair] * each for pair, each in zip(support, x, strict=True))
        square = sum(x[k] * x[l] * each for k, row in enumerate(self.hessian(support)) for l, each in enumerate(row))
        return self.constant + linear + square / 2

    def optimum(self, allowed: Allowed = lambda support: True):
        """The least objective of a plan with an allowed support, by brute force: see `brute_force`."""
        best = Fraction(0)
        for size in range(1, len(self.pairs) + 1):
            for support in filter(allowed, combinations(self.pairs, size)):
                slope = [self.slope[pair] for pair in support]
                x = _solved(self.hessian(support), slope)
                if x is not None and min(x) >= 0:
                    best = min(best, sum(f * each for f, each in zip(slope, x, strict=True)) / 2)
        return self.constant + best


def _solved(hessian, slope):
    """The solution of ``Hx = -f`` in fractions by elimination; None if H is singular."""
    lines = [[*row, -f] for row, f in zip(hessian, slope, strict=True)]
    for k in range(len(lines)):
        pivot = next((l for l in range(k, len(lines)) if lines[l][k]), None)
        if pivot is None:
            return None
        lines[k], lines[pivot] = lines[pivot], lines[k]
        for l, line in enumerate(lines):
            if l != k and line[k]:
                factor = line[k] / lines[k][k]
                lines[l] = [x - factor * y for x, y in zip(line, lines[k], strict=True)]
    return [line[-1] / line[k] for k, line in enumerate(lines)]


# --- other solvers ---------------------------------------------------------------------------------------------------


def clarabel(hessian, slope) -> float:
    """The least of ``f'x + x'Hx/2`` over ``x >= 0`` by Clarabel's interior point."""
    import clarabel as solver
    from scipy import sparse

    size = len(slope)
    scale = float(np.abs(slope).max()) or 1.0
    settings = solver.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    settings.max_iter = 500
    problem = solver.DefaultSolver(
        sparse.csc_matrix(np.triu(hessian) / scale),
        slope / scale,
        sparse.csc_matrix(-np.eye(size)),
        np.zeros(size),
        [solver.NonnegativeConeT(size)],
        settings,
    )
    x = np.maximum(np.array(problem.solve().x), 0.0)
    return float(slope @ x + 0.5 * x @ hessian @ x)


def pot_l2(C, a, b, unbalanced, reg, method: str):
    """The plan without a budget for squared marginal errors, by POT, whose divergence is half of ours."""
    import ot

    options = {"reg": reg, "reg_m": 2.0 * np.array(unbalanced), "c": np.zeros_like(C), "numItermax": 200_000}
    if method == "mm":
        # Multiplicative updates never leave zero: start with mass everywhere.
        return ot.unbalanced.mm_unbalanced(a, b, C, div="l2", stopThr=1e-14, **options)
    return ot.unbalanced.lbfgsb_unbalanced(a, b, C, reg_div="l2", regm_div="l2", stopThr=1e-15, **options)


def emd(C, a, b) -> float:
    """The value of balanced optimal transport, by POT."""
    import ot

    return float(ot.emd2(a, b, C))


def sided_least(problem, support) -> float:
    """The least objective on a support whatever the senses are, with their slack as variables, by Clarabel."""
    m, n = problem.shape
    rows, cols = np.array(support).reshape(-1, 2).T
    sides = []
    for size, sense, first in ((m, problem.sense[0], rows), (n, problem.sense[1], cols)):
        sums = np.equal.outer(np.arange(size), first).astype(float)
        sign = {"=": 0.0, "<=": 1.0, ">=": -1.0}[sense]
        sides.append((sums, sign * np.eye(size)[:, : size * (sense != "=")]))
    (A, slack_a), (B, slack_b) = sides
    A = np.hstack([A, slack_a, np.zeros((m, slack_b.shape[1]))])
    B = np.hstack([B, np.zeros((n, slack_a.shape[1])), slack_b])
    grams = [gram.block(np.arange(gram.size), np.arange(gram.size)) for gram in (problem.gram_a, problem.gram_b)]
    hessian, slope, constant = np.zeros((A.shape[1], A.shape[1])), np.zeros(A.shape[1]), 0.0
    for weight, gram, sums, wanted in zip(problem.unbalanced, grams, (A, B), (problem.a, problem.b), strict=True):
        hessian += 2.0 * weight * sums.T @ gram @ sums
        slope -= 2.0 * weight * sums.T @ gram @ wanted
        constant += weight * float(wanted @ gram @ wanted)
    hessian[range(len(rows)), range(len(rows))] += problem.reg
    slope[: len(rows)] += problem.cost.entries(rows, cols)
    return constant + clarabel(hessian, slope)
