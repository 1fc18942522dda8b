"""Random small problems with their best plans by brute force, in fractions where it matters, to try proofs on."""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from oracles import Exact, _solved, supports

import sparsetransport as st

CLOSE = 1e-9  # of the empty plan's objective: supports this close to the best one are solved in fractions


class Case(NamedTuple):
    """A problem, a budget, and the least objective within it, exactly."""

    problem: st.Problem
    budget: Any
    best: Fraction


class Rule:
    """A budget and the supports that it allows: hashable, so that lists of supports are kept."""

    def __init__(self, budget: Any, total: int, rows: int, cols: int) -> None:
        self.budget, self.key = budget, (total, rows, cols)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.key == other.key

    def __call__(self, support: Any) -> bool:
        total, rows, cols = self.key
        by_row, by_col = (np.bincount(each).max() for each in zip(*support, strict=True))
        return len(support) <= total and by_row <= rows and by_col <= cols


def drawn(seed: int, most_pairs: int = 12) -> Case:
    """Uneven and even masses, ties, forbidden pairs, negative costs, weights that differ, with reg and without."""
    rng = np.random.default_rng([77, seed])
    m = int(rng.integers(1, 5))
    n = int(rng.integers(1, min(most_pairs // m, 5) + 1))
    C = rng.random((m, n)) if rng.random() < 0.7 else rng.integers(0, 4, (m, n)).astype(float)
    if rng.random() < 0.2:
        C -= 0.5
    if rng.random() < 0.2:
        C[rng.random((m, n)) < 0.25] = np.inf
    a, b = (rng.lognormal(size=k) if rng.random() < 0.7 else np.ones(k) / k for k in (m, n))
    weights = tuple(10.0 ** rng.uniform(-1.0, 2.0, 2)) if rng.random() < 0.7 else (5.0, 5.0)
    reg = 0.0 if rng.random() < 0.7 else float(10.0 ** rng.uniform(-3.0, 0.5))
    problem = st.Problem.from_matrices(C, a, b, unbalanced=weights, reg=reg)
    rule = _rule(rng, m, n)
    return Case(problem, rule.budget, optimum(problem, rule))


def _rule(rng: np.random.Generator, m: int, n: int) -> Rule:
    kind, k = int(rng.integers(5)), int(rng.integers(1, m + n))
    few = int(rng.integers(1, 3))
    rows, cols = min(few, n), min(few, m)
    if kind == 0:
        return Rule(st.PerRow(rows), m * n, rows, m)
    if kind == 1:
        return Rule(st.PerColumn(cols), m * n, n, cols)
    if kind == 2:
        return Rule(st.PerRow(1) & st.PerColumn(1), m * n, 1, 1)
    if kind == 3:
        return Rule(st.PerRow(rows) & st.Uniform(min(k, m * n)), min(k, m * n), rows, m)
    return Rule(st.Uniform(min(k, m * n)), min(k, m * n), n, m)


def optimum(problem: st.Problem, rule: Rule) -> Fraction:
    """The least objective: all supports in floating point, and in fractions those that come close to the best."""
    m, n = problem.shape
    C = problem.cost.rows(0, m)
    exact = Exact(C, problem.a, problem.b, np.eye(m), np.eye(n), problem.unbalanced, problem.reg)
    weight_a, weight_b = problem.unbalanced
    hessian = 2.0 * weight_a * np.kron(np.eye(m), np.ones((n, n))) + 2.0 * weight_b * np.kron(
        np.ones((m, m)), np.eye(n)
    )
    hessian += problem.reg * np.eye(m * n)
    slope = problem.gradient_rows(problem.base, 0, m).ravel()
    found: list[tuple[float, list[int]]] = []
    for index in supports((m, n), rule):
        index = index[np.isfinite(slope[index]).all(axis=1)]
        block, linear = hessian[index[:, :, None], index[:, None, :]], slope[index]
        singular = np.linalg.svd(block, compute_uv=False) if len(index) else np.zeros((0, 1))
        regular = singular[:, -1] > 1e-12 * singular[:, 0]
        x = np.linalg.solve(block[regular], -linear[regular][:, :, None])[:, :, 0]
        fine = (x >= -1e-9 * np.abs(x).max(axis=1, initial=0.0)[:, None]).all(axis=1)
        values = 0.5 * (linear[regular] * x).sum(axis=1)
        found += zip(values[fine].tolist(), index[regular][fine].tolist(), strict=True)
    least = min((value for value, _ in found), default=0.0)
    best = Fraction(0)
    for value, flat in found:
        if value <= least + CLOSE * problem.constant:
            pairs = [divmod(k, n) for k in flat]
            f = [exact.slope[pair] for pair in pairs]
            x = _solved(exact.hessian(pairs), f)
            if x is not None and min(x) >= 0:
                best = min(best, sum((p * q for p, q in zip(f, x, strict=True)), Fraction(0)) / 2)
    return exact.constant + best


def false_claims(case: Case, **options: Any) -> list[str]:
    """What a solve of the case says that is not true: a bound above the optimum, a plan that is not optimal."""
    result = st.solve(case.problem, budget=case.budget, gap_tol=1e-9, **options)
    lower_bound = result.lower_bound
    slack = 1e-9 * abs(float(case.best)) + 1e-12 * case.problem.constant
    wrong = [
        f"{each.name} {each.value!r} above the optimum {float(case.best)!r}"
        for each in result._proofs[max(result._proofs)].log
        if Fraction(each.value) > case.best
    ]
    if Fraction(lower_bound) > case.best:
        wrong.append(f"{lower_bound!r} above the optimum {float(case.best)!r}")
    if result.status in (st.Status.OPTIMAL_PROVEN, st.Status.OPTIMAL) and result.value > float(case.best) + slack:
        wrong.append(f"{result.status.name} at {result.value!r}, and the optimum is {float(case.best)!r}")
    if result.value < float(case.best) - slack:
        wrong.append(f"a plan of {result.value!r}, below the optimum {float(case.best)!r}: over the budget?")
    return wrong
