"""Random small problems with their best plans by brute force, in fractions where it matters, to try proofs on."""

import warnings
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from oracles import _solved, supports

import sparsetransport as st
from sparsetransport.budgets import limits_of
from sparsetransport.certify.strongest import BOUNDS, Task

CLOSE = 1e-7  # of the best objective, and rounding: plans this close to it are solved in fractions,
MOST = 8  # but so many that have exact masses at the most
_NUDGE = 1e-14  # of the typical coefficient: makes all systems regular
_OFF, _ON = 0, 1  # a marginal whose errors count or not; both are tried where the sense is one-sided

ALL = 99


class Rule:
    """A budget and the supports that it allows: hashable, so that lists of supports are kept."""

    def __init__(
        self, budget: Any, total: int = ALL, rows: Any = ALL, cols: Any = ALL, labels: Any = None, groups: Any = ALL
    ) -> None:
        self.budget, self.total = budget, total
        self.rows, self.cols, self.labels, self.groups = rows, cols, labels, groups

    def __call__(self, support: Any) -> bool:
        i, j = np.array(support).T
        groups = np.zeros(0, int) if self.labels is None else self.labels[i, j]
        return (
            len(support) <= self.total
            and _is_within(np.bincount(i), self.rows)
            and _is_within(np.bincount(j), self.cols)
            and _is_within(np.bincount(groups[groups >= 0]), self.groups)
        )


def _is_within(counts: np.ndarray, most: Any) -> bool:
    return bool((counts <= (most if isinstance(most, int) else most[: counts.size])).all())


class Case(NamedTuple):
    """A problem, a rule, and the least objective within it, exactly; None if no plan keeps the marginals."""

    problem: st.Problem
    rule: Rule
    best: Fraction | None


class Own(st.Matroid):
    """A budget of the user's own."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def can_add(self, support: Any, pair: Any) -> bool:
        return self.rule((*support, pair))


def drawn(seed: int, most_pairs: int = 12) -> Case:
    """Uneven and even masses, ties, forbidden pairs, negative costs, all senses, hard marginals, all budgets, any λ."""
    rng = np.random.default_rng([77, seed])
    m = int(rng.integers(1, 5))
    n = int(rng.integers(1, min(most_pairs // m, 5) + 1))
    C = rng.random((m, n)) if rng.random() < 0.7 else rng.integers(0, 4, (m, n)).astype(float)
    if rng.random() < 0.2:
        C -= 0.5
    if rng.random() < 0.2:
        C[rng.random((m, n)) < 0.25] = np.inf
    a, b = (rng.lognormal(size=k) if rng.random() < 0.7 else np.ones(k) / k for k in (m, n))
    kind = rng.random()
    weights = (5.0, 5.0) if kind < 0.2 else tuple(10.0 ** rng.uniform(-1.0, 2.0, 2))
    if kind > 0.7:
        weights = tuple(10.0 ** rng.uniform(-6.0, 6.0, 2))
    senses = ["=", "="]
    if m * n <= 9 and rng.random() < 0.3:
        senses = [str(each) for each in rng.choice(["=", "<=", ">="], 2)]
        C = np.abs(C)  # more and more mass at negative costs has no least objective where it is never too much
    if m * n <= 9 and rng.random() < 0.2:
        weights = tuple(np.inf if is_hard else each for is_hard, each in zip(rng.random(2) < 0.6, weights, strict=True))
        a, b = (rng.integers(1, 9, k) / 16.0 for k in (m, n))  # whose sums have no rounding
        b[0] += max(a.sum() - b.sum(), 0.0)
        a[0] += max(b.sum() - a.sum(), 0.0)
    reg = 0.0 if rng.random() < 0.7 else float(10.0 ** rng.uniform(-3.0, 0.5))
    problem = st.Problem.from_matrices(C, a, b, unbalanced=weights, reg=reg, sense=tuple(senses))
    rule = _rule(rng, m, n)
    return Case(problem, rule, optimum(problem, rule))


def _rule(rng: np.random.Generator, m: int, n: int) -> Rule:
    kind, k = int(rng.integers(10)), min(int(rng.integers(1, m + n)), m * n)
    few = int(rng.integers(1, 3))
    rows, cols = min(few, n), min(few, m)
    each = np.minimum(rng.integers(1, 3, m), n)
    labels, caps = rng.integers(-1, min(3, m * n), (m, n)), rng.integers(1, 3, 3)
    rules = (
        Rule(st.PerRow(rows), rows=rows),
        Rule(st.PerRow(each), rows=each),
        Rule(st.PerColumn(cols), cols=cols),
        Rule(st.PerRow(1) & st.PerColumn(1), rows=1, cols=1),
        Rule(st.PerRow(rows) & st.Uniform(k), k, rows=rows),
        Rule(st.Uniform(k), k),
        Rule(st.Partition(labels, np.minimum(caps, m * n)), labels=labels, groups=np.minimum(caps, m * n)),
        Rule(st.Laminar(st.PerColumn(cols), st.Uniform(k)), k, cols=cols),
        Rule(None),
        Rule(None, k, cols=cols),
    )
    rule = rules[kind]
    if kind == 9:
        rule.budget = Own(rule)
    return rule


# --- brute force -----------------------------------------------------------------------------------------------------


def optimum(problem: st.Problem, rule: Rule) -> Fraction | None:
    """The least objective: all supports in floating point, and in fractions those that come close to the best.

    A plan that is optimal and, among such plans, has least links and most marginals without errors solves linear
    equations in its masses and in the prices of the marginals that count. All choices of both are tried; whatever is
    found is an objective that some plan within the budget has.
    """
    whole = problem.constant if problem.constant < np.inf else 0.0
    found: list[tuple[float, tuple[int, ...], tuple[int, ...]]] = []
    modes = _modes(problem)
    for index in supports(problem.shape, rule):
        index = index[np.isfinite(problem.cost.rows(0, problem.shape[0]).ravel()[index]).all(axis=1)]
        for mode in modes:
            values = _stationary(problem, index, np.array(mode))
            found += [(value, tuple(index[k].tolist()), mode) for k, value in enumerate(values) if value < np.inf]
    found.sort(key=lambda each: each[0])
    exact = _Exactly(problem)
    best = exact.value([], [])
    if not found:
        return best
    near = found[0][0] + CLOSE * abs(found[0][0]) + 1e-13 * whole
    tried = 0
    for value, flat, mode in found:
        if value > near or tried == MOST:
            break
        pairs = [divmod(k, problem.shape[1]) for k in flat]
        masses = exact.masses(pairs, mode)
        if masses is not None and min(masses) >= 0:
            tried += 1
            told = exact.value(pairs, masses)
            best = told if best is None or (told is not None and told < best) else best
    return best


def _modes(problem: st.Problem) -> list[tuple[int, ...]]:
    choices = []
    for size, sense, weight in zip(problem.shape, problem.sense, problem.unbalanced, strict=True):
        choices += [(_ON,) if sense == "=" and weight < np.inf else (_OFF, _ON)] * size
    return list(product(*choices))


def _lines(problem: st.Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of rows and columns: which pairs they have, their masses and their weights."""
    m, n = problem.shape
    pairs = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])
    return pairs, np.concatenate([problem.a, problem.b]), np.repeat(problem.unbalanced, [m, n])


def _stationary(problem: st.Problem, index: np.ndarray, mode: np.ndarray) -> np.ndarray:
    """The objective of the stationary masses on each support where these marginals count; infinity if negative."""
    lines, masses, weights = _lines(problem)
    on = mode == _ON
    size, many = index.shape[1], int(on.sum())
    cost = problem.cost.rows(0, problem.shape[0]).ravel()[index]
    sums = np.ascontiguousarray(np.moveaxis(lines[on][:, index], 1, 0))  # (supports, lines, links)
    system = np.zeros((len(index), size + many, size + many))
    system[:, range(size), range(size)] = problem.reg + _NUDGE * (1.0 + problem.reg)
    system[:, size:, :size], system[:, :size, size:] = sums, np.swapaxes(sums, 1, 2)
    system[:, range(size, size + many), range(size, size + many)] = -0.5 / weights[on] - _NUDGE
    right = np.concatenate([-cost, np.broadcast_to(masses[on], (len(index), many))], axis=1)
    x = np.linalg.solve(system, right[:, :, None])[:, :size, 0]
    fine = np.isfinite(x).all(axis=1) & (x >= -1e-7 * np.abs(x).max(axis=1, initial=0.0)[:, None]).all(axis=1)
    x = np.maximum(np.where(fine[:, None], x, 0.0), 0.0)
    sums_of = np.einsum("lsk,sk->sl", lines[:, index], x)
    errors = sums_of - masses
    for first, sense in zip((0, problem.shape[0]), problem.sense, strict=True):
        side = slice(first, problem.shape[0]) if first == 0 else slice(first, None)
        if sense != "=":
            errors[:, side] = np.maximum(errors[:, side], 0.0) if sense == "<=" else np.minimum(errors[:, side], 0.0)
    hard = weights == np.inf
    fine &= (np.abs(errors[:, hard]) <= 1e-7 * masses.max()).all(axis=1)
    missed = (np.where(hard, 0.0, weights) * errors**2).sum(axis=1)
    values = (cost * x).sum(axis=1) + missed + 0.5 * problem.reg * (x**2).sum(axis=1)
    return np.where(fine, values, np.inf)


class _Exactly:
    """A problem in fractions."""

    def __init__(self, problem: st.Problem) -> None:
        self.problem, (self.m, self.n) = problem, problem.shape
        self.cost = problem.cost.rows(0, self.m)
        self.masses_of = [Fraction(float(each)) for each in (*problem.a, *problem.b)]
        self.weights = np.repeat(problem.unbalanced, [self.m, self.n]).tolist()
        self.senses = [problem.sense[0]] * self.m + [problem.sense[1]] * self.n
        self.reg = Fraction(problem.reg)

    def masses(self, pairs: list[tuple[int, int]], mode: tuple[int, ...]) -> list[Fraction] | None:
        """The stationary masses on a support where these marginals count; None if they are not unique."""
        on = [k for k, each in enumerate(mode) if each == _ON and any(k in (i, self.m + j) for i, j in pairs)]
        size = len(pairs)
        system = [[Fraction(0)] * (size + len(on)) for _ in range(size + len(on))]
        for k, (i, j) in enumerate(pairs):
            system[k][k] = self.reg
            for l, line in enumerate(on, size):
                system[k][l] = system[l][k] = Fraction(int(line in (i, self.m + j)))
        for l, line in enumerate(on, size):
            weight = self.weights[line]
            system[l][l] = Fraction(0) if weight == np.inf else -1 / (2 * Fraction(weight))
        slope = [Fraction(float(self.cost[pair])) for pair in pairs] + [-self.masses_of[line] for line in on]
        solved = _solved(system, slope)
        return None if solved is None else solved[:size]

    def value(self, pairs: list[tuple[int, int]], masses: list[Fraction]) -> Fraction | None:
        """The objective of a plan; None if it misses a hard marginal."""
        sums = [Fraction(0)] * (self.m + self.n)
        total = Fraction(0)
        for (i, j), x in zip(pairs, masses, strict=True):
            sums[i] += x
            sums[self.m + j] += x
            total += Fraction(float(self.cost[i, j])) * x + self.reg * x * x / 2
        for held, wanted, weight, sense in zip(sums, self.masses_of, self.weights, self.senses, strict=True):
            error = held - wanted
            if (sense == "<=" and error < 0) or (sense == ">=" and error > 0):
                error = Fraction(0)
            if error and weight == np.inf:
                return None
            total += Fraction(weight) * error * error if error else 0
        return total


# --- what is claimed -------------------------------------------------------------------------------------------------


def false_claims(case: Case, **options: Any) -> list[str]:
    """What a solve of the case says that is not true: a bound above the optimum, a plan that is not optimal."""
    problem, budget = case.problem, case.rule.budget
    if problem.is_hard:  # whose search has no proofs that end it
        options = {"effort": "default"} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", st.SparseTransportWarning)  # weights of 1e±6, empty plans
        result = st.solve(problem, budget=budget, gap_tol=1e-9, **options)
        quick = st.solve(problem, budget=budget, effort="quick")
    bounds = {"cheap": quick.lower_bound, "best": result.lower_bound}
    bounds |= {each.name: each.value for each in result._proofs[max(result._proofs)].log}
    bounds |= _alone(case, result)
    if case.best is None:
        return [f"{result.status.name} where there is no plan"] if result.status in _PROVEN else []
    best = float(case.best)
    size = abs(best) + (1e-6 * problem.constant if problem.constant < np.inf else 0.0)
    if np.inf in problem.unbalanced:  # hard marginals are kept up to rounding, which has a price
        size += float(np.abs(result.potential_a).sum() + np.abs(result.potential_b).sum())
    slack = 1e-9 * size
    wrong = [f"{name} {value!r} above the optimum {best!r}" for name, value in bounds.items() if value > case.best]
    if result.status in _PROVEN and result.value > best + slack:
        wrong.append(f"{result.status.name} at {result.value!r}, and the optimum is {best!r}")
    if result.value < best - slack:
        wrong.append(f"a plan of {result.value!r}, below the optimum {best!r}: over the budget?")
    return wrong


_PROVEN = st.Status.OPTIMAL_PROVEN, st.Status.OPTIMAL


def _alone(case: Case, result: st.Result) -> dict[str, float]:
    """Each of the bounds that apply, by itself and beside an empty plan, whose gap is wide."""
    problem, budget, parts = case.problem, case.rule.budget, result._parts
    if not problem.is_plain or budget is None or isinstance(budget, Own):
        return {}
    limits, empty = limits_of(budget, problem.shape), (parts.rows[:0], parts.cols[:0], parts.mass[:0])
    task = Task(problem, limits, empty, problem.constant, effort=replace(st.THOROUGH, split_rounds=20))
    applying = [each for each in BOUNDS if each.applies(problem, limits)]
    return {f"{each.name} beside no links": each.run(task).bound for each in applying}
