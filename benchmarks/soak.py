"""Solve for hours and look for what is false: memory that grows, and results that do not check.

python -m benchmarks.soak --solves 100000 --problems 20000 --seed 1 --minutes 60 --keep failures
python -m benchmarks.soak --replay failures/1-417.npz

``--solves`` small problems show whether resident memory stays flat. ``--problems`` random problems of all kinds are
checked by code that shares nothing with the package: budgets kept, masses not negative, objectives recomputed in long
double, no bound above the objective of any plan found for the same problem, and no pair with a negative reduced cost in
a plan that is called optimal. A failure is kept as a file, from which it runs again.
"""

import argparse
import json
import os
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import sparsetransport as st

MEMORY = 0.05  # growth of resident memory after warm-up that counts as flat
WARM_UP = 0.2  # of the solves
CLOSE = 1e-10  # of the terms of an objective: what rounding may change, in costs and kernels from points too
KERNELS = {"rbf": st.RBF, "imq": st.IMQ, "imq-v2": st.IMQv2, "laplace": st.Laplace}
EFFORTS = {"bare": st.BARE, "quick": st.QUICK, "default": st.DEFAULT, "thorough": st.THOROUGH}
DOORS = ("solve", "sample", "lazy", "batch", "shared")
ODD = ("line", "large", "duplicates", "near", "ties", "negative", "forbidden", "outlier", "zero", "nothing", "totals")
ODD += ("weights", "bandwidth", "small reg", "extreme")
BUDGETS = ("none", "whole", "row", "column", "row and column", "groups", "laminar", "own")


# --- a problem as data -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A problem, how to solve it, and what is unusual about it; ``a`` and ``b`` have a row for every scenario."""

    a: np.ndarray
    b: np.ndarray
    door: str
    kernel: str
    budget: tuple[tuple[str, int], ...]  # kinds and capacities, all at once
    unbalanced: Any
    reg: float
    effort: str
    cost: np.ndarray | None = None  # or points
    X: np.ndarray | None = None
    Y: np.ndarray | None = None
    grams: tuple[np.ndarray, np.ndarray] | None = None  # for the kernel "gram"
    labels: np.ndarray | None = None  # for the budget "groups"
    sigma2: float = 1.0
    metric: str = "sqeuclidean"
    odd: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        return self.a.shape[1], self.b.shape[1]

    @property
    def is_extreme(self) -> bool:
        """Numbers so large or small that an error is a fair answer."""
        return "extreme" in self.odd

    def save(self, path: Path, failures: list[str]) -> None:
        """Arrays as arrays, the rest as JSON beside them."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values |= dict(zip(("Ga", "Gb"), values.pop("grams") or (None, None), strict=True))
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        rest = {name: value for name, value in values.items() if name not in arrays and value is not None}
        np.savez(path, **arrays, rest=json.dumps(rest | {"failures": failures}))

    @classmethod
    def load(cls, path: Path) -> "Case":
        """The case that was saved."""
        with np.load(path) as file:
            arrays = dict(file)
        rest = json.loads(str(arrays.pop("rest")))
        rest.pop("failures")
        grams = (arrays.pop("Ga"), arrays.pop("Gb")) if "Ga" in arrays else None
        unbalanced = rest.pop("unbalanced")
        return cls(
            **arrays,
            **rest
            | {"budget": tuple(map(tuple, rest["budget"])), "odd": tuple(rest["odd"])}
            | {"unbalanced": tuple(unbalanced) if isinstance(unbalanced, list) else unbalanced, "grams": grams},
        )

    def permuted(self, rng: np.random.Generator) -> "Case":
        """The same points in another order."""
        rows, cols = rng.permutation(self.shape[0]), rng.permutation(self.shape[1])

        def both(matrix: np.ndarray | None) -> np.ndarray | None:
            return None if matrix is None else matrix[np.ix_(rows, cols)]

        return replace(
            self,
            a=self.a[:, rows],
            b=self.b[:, cols],
            cost=both(self.cost),
            X=None if self.X is None else self.X[rows],
            Y=None if self.Y is None else self.Y[cols],
            grams=self.grams and (self.grams[0][np.ix_(rows, rows)], self.grams[1][np.ix_(cols, cols)]),
            labels=both(self.labels),
        )

    def transposed(self) -> "Case":
        """The two sides exchanged."""
        other = {"row": "column", "column": "row"}

        def turned(matrix: np.ndarray | None) -> np.ndarray | None:
            return None if matrix is None else matrix.T.copy()

        return replace(
            self,
            a=self.b,
            b=self.a,
            cost=turned(self.cost),
            X=self.Y,
            Y=self.X,
            grams=self.grams and self.grams[::-1],
            labels=turned(self.labels),
            budget=tuple((other.get(kind, kind), k) for kind, k in self.budget),
            unbalanced=self.unbalanced[::-1] if isinstance(self.unbalanced, tuple) else self.unbalanced,
        )


class Own(st.Matroid):
    """At most ``k`` entries, said by one method."""

    def __init__(self, k: int) -> None:
        self.k = k

    def can_add(self, support, pair):
        return len(support) < self.k


def budget_of(case: Case) -> Any:
    """The budget as the package takes it."""
    if not case.budget:
        return None
    make = {"whole": st.Uniform, "row": st.PerRow, "column": st.PerColumn, "own": Own}
    parts = [st.Partition(case.labels, k) if kind == "groups" else make[kind](k) for kind, k in case.budget]
    if len(parts) == 2 and case.budget[0][0] == "column" and case.budget[1][0] == "whole":
        return st.Laminar(*parts)
    return parts[0] if len(parts) == 1 else parts[0] & parts[1]


# --- random problems -------------------------------------------------------------------------------------------------


def draw(rng: np.random.Generator) -> Case:
    """A random problem: of any kind, and unusual in none, one or several ways."""
    odd = [name for name in ODD if rng.random() < (0.02 if name in ("large", "nothing") else 0.12)]
    m, n = (int(k) for k in rng.integers(1, 40 if "large" in odd else 12, 2))
    if "line" in odd:
        m, n = (1, n) if rng.random() < 0.5 else (m, 1)
    door = str(rng.choice(DOORS))
    kernel = str(rng.choice(["delta", "delta", "gram", *KERNELS]))
    if door in ("sample", "lazy"):
        kernel = "rbf" if kernel == "gram" else kernel
        odd = [
            name for name in odd if name not in ("negative", "outlier") and (name != "forbidden" or door == "sample")
        ]
    scenarios = int(rng.integers(1, 4)) if door in ("batch", "shared") else 1
    d = int(rng.integers(1, 4))
    X, Y = rng.normal(size=(m, d)), rng.normal(size=(n, d)) + 0.5
    if "duplicates" in odd:
        X, Y = X[rng.integers(0, m, m)], np.round(Y)
        Y[0] = X[0]
    if "near" in odd:
        X = X[rng.integers(0, m, m)] + 10.0 ** rng.uniform(-12, -4) * rng.normal(size=(m, d))
    a, b = (0.02 + rng.random((scenarios, size)) for size in (m, n))
    if "totals" not in odd:
        a, b = a / a.sum(axis=1, keepdims=True), b / b.sum(axis=1, keepdims=True)
    if "ties" in odd:
        a[:], b[:] = 1.0 / m, 1.0 / n
        X, Y = np.round(2.0 * X) / 2.0, np.round(2.0 * Y) / 2.0
    if "zero" in odd:
        a[rng.random(a.shape) < 0.3] = 0.0
        b[rng.random(b.shape) < 0.3] = 0.0
    if "nothing" in odd:
        (a if rng.random() < 0.5 else b)[:] = 0.0
    cost = None
    metric = str(rng.choice(["sqeuclidean", "euclidean"]))
    if door not in ("sample", "lazy"):
        cost = np.asarray(_distances(X, Y, metric), float)
        if "negative" in odd:
            cost = cost - rng.random() * cost.max()
        if "outlier" in odd:
            cost[rng.random((m, n)) < 0.1] *= 10.0 ** rng.uniform(3, 12)
    if "forbidden" in odd:
        cost = np.asarray(_distances(X, Y, metric), float) if cost is None else cost
        cost[rng.random((m, n)) < rng.choice([0.2, 0.6, 1.0], p=[0.6, 0.35, 0.05])] = np.inf
    grams = None
    if kernel == "gram":
        roots = [rng.normal(size=(size, max(1, size - int(rng.integers(0, 3))))) for size in (m, n)]
        grams = tuple(root @ root.T for root in roots)
    unbalanced = [
        "auto",
        "10*auto",
        float(10.0 ** rng.uniform(-3, 4)),
        (float(10.0 ** rng.uniform(-2, 3)), float(10.0 ** rng.uniform(-2, 3))),
    ][rng.integers(4)]
    if "weights" in odd:
        unbalanced = tuple(float(10.0 ** rng.uniform(-9, 9)) for _ in range(2))
    reg = 0.0 if rng.random() < 0.5 else float(10.0 ** rng.uniform(-4, 3))
    if "small reg" in odd:
        reg = float(10.0 ** rng.uniform(-14, -6))
    if "extreme" in odd:
        unit = float(10.0 ** rng.uniform(-140, 140))
        cost = None if cost is None else cost * unit
        if cost is None:
            X, Y = X * unit**0.5, Y * unit**0.5
        reg = reg * unit
        unbalanced = unbalanced if isinstance(unbalanced, str) else tuple(np.ravel(unbalanced) * unit)
        total = float(10.0 ** rng.uniform(-60, 60)) if rng.random() < 0.3 else 1.0
        a, b = a * total, b * total
    kind = str(rng.choice(BUDGETS))
    k = int(rng.integers(1, max(2, (m + n) // 2) + 1))
    budget = {
        "none": (),
        "row and column": (("row", 1), ("column", 1)),
        "row": (("row", int(rng.integers(1, 3))),),
        "column": (("column", int(rng.integers(1, 3))),),
        "groups": (("groups", int(rng.integers(1, 4))),),
        "laminar": (("column", 1), ("whole", k)),
    }.get(kind, ((kind, k),))
    budget = tuple((name, min(size, _pairs_of(name, m, n))) for name, size in budget)
    return Case(
        a,
        b,
        door,
        kernel,
        budget,
        unbalanced,
        reg,
        str(rng.choice(list(EFFORTS), p=[0.1, 0.3, 0.5, 0.1])),
        cost,
        None if door not in ("sample", "lazy") and kernel not in KERNELS else X,
        None if door not in ("sample", "lazy") and kernel not in KERNELS else Y,
        grams,
        rng.integers(-1, min(3, m * n), (m, n)) if kind == "groups" else None,
        float(10.0 ** rng.uniform(*((-6, 6) if "bandwidth" in odd else (-1, 1)))) * (float(X.var() + Y.var()) or 1.0),
        metric,
        tuple(odd),
    )


def _pairs_of(kind: str, m: int, n: int) -> int:
    """The pairs that a capacity of a budget limits."""
    return {"row": n, "column": m, "groups": m * n}.get(kind, m * n)


def _distances(X: np.ndarray, Y: np.ndarray, metric: str) -> np.ndarray:
    square = ((X.astype(np.longdouble)[:, None] - Y.astype(np.longdouble)) ** 2).sum(axis=2)
    return square if metric == "sqeuclidean" else np.sqrt(square)


# --- solving ---------------------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """What is claimed of one scenario."""

    rows: np.ndarray
    cols: np.ndarray
    mass: np.ndarray
    value: float
    bounds: tuple[float, float]
    status: st.Status
    weights: tuple[float, float]


def solved(case: Case) -> list[Plan]:
    """The plans of all scenarios."""
    options: dict[str, Any] = {"budget": budget_of(case), "effort": EFFORTS[case.effort]}
    if case.door in ("sample", "lazy"):
        kernels = st.Delta() if case.kernel == "delta" else KERNELS[case.kernel](case.sigma2)
        forbidden = None if case.cost is None else ~np.isfinite(case.cost)
        points = {"metric": case.metric, "kernels": kernels, "forbidden": forbidden, "lazy": case.door == "lazy"}
        weights = {"unbalanced": case.unbalanced, "reg": case.reg}
        return [_plan(st.solve_sample(case.X, case.Y, case.a[0], case.b[0], **points, **weights, **options))]
    grams = None if case.kernel == "delta" else tuple(np.asarray(each, float) for each in _grams(case))
    problems = [
        st.Problem.from_matrices(case.cost, a, b, kernels=grams, unbalanced=case.unbalanced, reg=case.reg)
        for a, b in zip(case.a, case.b, strict=True)
    ]
    if case.door == "solve":
        return [_plan(st.solve(problems[0], **options))]
    if case.door == "batch":
        return [_plan(result) for result in st.solve_batch(problems, **options)]
    return [_plan(result) for result in st.solve_shared(problems, **options).plans]


def _plan(result: st.Result) -> Plan:
    bounds = result.lower_bound, result.certify().lower_bound
    weights = tuple(map(float, result.log["unbalanced"]))
    return Plan(result.rows, result.cols, result.mass, result.value, bounds, result.status, weights)


# --- the same without the package ------------------------------------------------------------------------------------


def _grams(case: Case) -> tuple[np.ndarray, np.ndarray]:
    if case.kernel == "delta":
        return tuple(np.eye(size, dtype=np.longdouble) for size in case.shape)
    if case.grams is not None:
        return tuple(gram.astype(np.longdouble) for gram in case.grams)
    s = np.longdouble(case.sigma2)
    formula = {
        "rbf": lambda d2: np.exp(-d2 / (2 * s)),
        "imq": lambda d2: 1 / np.sqrt(s + d2),
        "imq-v2": lambda d2: np.sqrt(s / (1 + d2)),
        "laplace": lambda d2: np.exp(-np.sqrt(d2 / s)),
    }[case.kernel]
    return tuple(formula(_distances(points, points, "sqeuclidean")) for points in (case.X, case.Y))


@dataclass
class Truth:
    """One scenario in long double."""

    C: np.ndarray
    a: np.ndarray
    b: np.ndarray
    Ga: np.ndarray
    Gb: np.ndarray
    weights: tuple[float, float]
    reg: float

    def __post_init__(self) -> None:
        self.weight_a, self.weight_b = map(np.longdouble, self.weights)

    def errors(self, rows, cols, mass) -> tuple[np.ndarray, np.ndarray]:
        """Row and column sums minus the masses that are asked for."""
        p, q = -self.a, -self.b
        np.add.at(p, rows, mass)
        np.add.at(q, cols, mass)
        return p, q

    def value(self, rows, cols, mass) -> tuple[float, float]:
        """The objective of a plan, and the size of its terms, which rounding is relative to."""
        x = mass.astype(np.longdouble)
        p, q = self.errors(rows, cols, x)
        linear, square = self.C[rows, cols] * x, np.longdouble(self.reg) * (x @ x) / 2
        value = linear.sum() + self.weight_a * (p @ self.Ga @ p) + self.weight_b * (q @ self.Gb @ q) + square
        size = np.abs(linear).sum() + square
        for weight, gram, error, wanted in ((self.weight_a, self.Ga, p, self.a), (self.weight_b, self.Gb, q, self.b)):
            size += weight * (abs(error) @ abs(gram) @ (abs(error) + wanted))
        return value, size

    def reduced_costs(self, rows, cols, mass) -> tuple[np.ndarray, float]:
        """The gradient at all pairs, and the size of its terms."""
        x = mass.astype(np.longdouble)
        p, q = self.errors(rows, cols, x)
        r, c = 2 * self.weight_a * (self.Ga @ p), 2 * self.weight_b * (self.Gb @ q)
        gradient = self.C + r[:, None] + c
        gradient[rows, cols] += np.longdouble(self.reg) * x
        size = 2 * self.weight_a * (abs(self.Ga) @ self.a).max() + 2 * self.weight_b * (abs(self.Gb) @ self.b).max()
        finite = np.abs(self.C[np.isfinite(self.C)])
        return gradient, max(size, finite.max(initial=0))


def truths(case: Case, plans: list[Plan]) -> list[Truth]:
    """Every scenario in long double, with the weights that were in use."""
    if case.door in ("sample", "lazy"):
        C = _distances(case.X, case.Y, case.metric)
        C = C if case.cost is None else np.where(np.isfinite(case.cost), C, np.inf)
    else:
        C = case.cost.astype(np.longdouble)
    wide = np.longdouble
    pairs = zip(case.a, case.b, plans, strict=True)
    return [Truth(C, a.astype(wide), b.astype(wide), *_grams(case), plan.weights, case.reg) for a, b, plan in pairs]


def over_budget(case: Case, pairs: set[tuple[int, int]]) -> bool:
    """True if the links are more than the budget allows, counted one by one."""
    for kind, k in case.budget:
        if kind == "groups":
            groups = [int(case.labels[pair]) for pair in pairs if case.labels[pair] >= 0]
        else:
            groups = [{"row": i, "column": j}.get(kind, 0) for i, j in pairs]
        if max(Counter(groups).values(), default=0) > k:
            return True
    return False


# --- checks ----------------------------------------------------------------------------------------------------------


def failures_of(case: Case, seed: Any = 0) -> tuple[str, list[str]]:
    """What became of a case ("checked", or why it was refused), and everything that is false about it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            plans = solved(case)
            others = _others(case, plans, np.random.default_rng(seed))
            found = [(case, plans), *((other, solved(other)) for other in others)]
        except ValueError as error:
            if str(st.UnboundedError()) in str(error):  # by itself, or as the reason why a problem of a batch failed
                return "unbounded", [] if case.kernel == "gram" else ["the objective is said to fall without bound"]
            return "refused", [] if case.is_extreme else [f"refused: {error}"]
        except Exception:  # whatever it is, it is a failure to keep
            return "crashed", [traceback.format_exc()]
    texts = {str(each.message): issubclass(each.category, st.SparseTransportWarning) for each in caught}
    wrong = [f"warning: {text}" for text, is_ours in texts.items() if not is_ours]
    checked = [_plans(*each) for each in found]
    for name, (_, complaints) in zip(("", "permuted, ", "transposed, ", "another effort, "), checked, strict=True):
        wrong += [f"{name}{text}" for text in complaints]
    if not wrong:
        warned = any("lost in rounding" in text for text in texts)
        for k, plan in enumerate(plans):
            values = [each[k] for each, _ in checked]
            bounds = [max(each[k].bounds) for _, each in found]
            wrong += [f"scenario {k}: {text}" for text in _together(plan, values, bounds, warned)]
    return "checked", wrong


def _others(case: Case, plans: list[Plan], rng: np.random.Generator) -> list[Case]:
    """Other ways to solve the same problem with the same weights, whose plans are within the same budget."""
    case = replace(case, unbalanced=plans[0].weights) if len(plans) == 1 else case
    other = "quick" if case.effort in ("default", "thorough") else "default"
    return [case.permuted(rng), case.transposed(), replace(case, effort=other)]


def _plans(case: Case, plans: list[Plan]) -> tuple[list[tuple[float, float]], list[str]]:
    """Objectives and sizes of their terms, recomputed for every scenario, and what is false about the plans."""
    values, wrong = [], []
    links = [{(int(i), int(j)) for i, j in zip(plan.rows, plan.cols, strict=True)} for plan in plans]
    if any(over_budget(case, each) for each in ([set().union(*links)] if case.door == "shared" else links)):
        wrong.append(f"the budget {case.budget} is not kept")
    for k, (plan, truth) in enumerate(zip(plans, truths(case, plans), strict=True)):
        wrong += [f"scenario {k}: {text}" for text in _one_plan(case, plan, truth)]
        values.append(tuple(map(float, truth.value(plan.rows, plan.cols, plan.mass))))
    return values, wrong


def _together(plan: Plan, values: list[tuple[float, float]], bounds: list[float], warned: bool) -> list[str]:
    """What several plans for one problem, the first of them ``plan``, show to be false."""
    (value, size), best = values[0], min(value for value, _ in values)
    rounding = CLOSE * size + 1e-9 * abs(best)
    wrong = [f"a bound of {each!r}, and a plan with {best!r}" for each in bounds if each > best + rounding]
    if plan.status in (st.Status.OPTIMAL, st.Status.EMPTY) and not warned and best < value - rounding:
        wrong.append(f"{plan.status.name} at {value!r}, and a plan with {best!r}")
    return wrong


def _one_plan(case: Case, plan: Plan, truth: Truth) -> list[str]:
    """What is false about a plan by itself."""
    wrong = []
    numbers = [plan.value, *plan.bounds, *plan.mass]
    if not np.isfinite(numbers).all():
        return [f"not finite: value {plan.value}, bounds {plan.bounds}, masses {plan.mass}"]
    if (plan.mass < 0.0).any():
        wrong.append(f"negative mass {plan.mass.min()}")
    if len(set(zip(plan.rows.tolist(), plan.cols.tolist(), strict=True))) < plan.mass.size:
        wrong.append("a pair comes twice")
    if np.isinf(truth.C[plan.rows, plan.cols]).any():
        return [*wrong, "mass on a forbidden pair"]
    value, size = truth.value(plan.rows, plan.cols, plan.mass)
    if not abs(plan.value - value) <= CLOSE * size:
        wrong.append(f"value {plan.value!r}, recomputed {float(value)!r}, terms of {float(size):.3g}")
    for name, bound in zip(("cheap", "tight"), plan.bounds, strict=True):
        if bound > value + CLOSE * size:
            wrong.append(f"the {name} bound {bound!r} is above the value {float(value)!r}")
    if plan.status in (st.Status.OPTIMAL, st.Status.EMPTY) and case.door != "shared":
        gradient, scale = truth.reduced_costs(plan.rows, plan.cols, plan.mass)
        if gradient.min() < -1e-9 * scale:
            wrong.append(f"{plan.status.name}, with a reduced cost of {float(gradient.min() / scale):.2g} of the scale")
    if (plan.status is st.Status.ALL_FORBIDDEN) != bool(np.isinf(truth.C).all()):
        wrong.append(f"status {plan.status.name}, with {int(np.isfinite(truth.C).sum())} pairs that are allowed")
    return wrong


# --- the two runs ----------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What was tried, and what was false."""

    tried: Counter = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        kinds: dict[str, list[str]] = {}
        for (kind, name), count in sorted(self.tried.items()):
            kinds.setdefault(kind, []).append(f"{name} {count:,}")
        return [f"{kind}: {', '.join(names)}" for kind, names in kinds.items()]


def fuzz(problems: int, seed: int, *, keep: Path | None = None, deadline: float = np.inf) -> Tally:
    """Check so many random problems, or as many as there is time for."""
    tally = Tally()
    for k in range(problems):
        if time.monotonic() > deadline:
            break
        case = draw(np.random.default_rng([seed, k]))
        end, wrong = failures_of(case, [seed, k, 1])
        tally.tried["problems", end] += 1
        kinds = {"by": case.door, "kernel": case.kernel, "effort": case.effort, "reg": "yes" if case.reg else "no"}
        kinds["budget"] = " and ".join(kind for kind, _ in case.budget) or "none"
        tally.tried.update(kinds.items())
        tally.tried.update(("unusual", name) for name in case.odd)
        if wrong:
            tally.failures.append(f"problem {seed}-{k}: " + "\n  ".join(wrong))
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                case.save(keep / f"{seed}-{k}.npz", wrong)
    return tally


def memory(solves: int, seed: int, *, deadline: float = np.inf) -> tuple[int, float, float]:
    """Solves made, and resident MiB after warm-up and at most since then; NaN where /proc does not tell them."""
    rng = np.random.default_rng(seed)
    every, after, most, done = max(1, solves // 200), np.nan, np.nan, 0
    often = [
        lambda C: st.solve(C, budget=6, effort="quick").lower_bound,
        lambda C: st.solve(C, budget=st.PerRow(1), reg=0.1, effort="quick"),
        lambda C: st.solve(C),
        lambda C: st.solve_batch([C] * 4, budget=6),
        lambda C: st.solve_sample(C, C[:, ::-1], budget=5, lazy=True, effort="quick"),
    ]
    seldom = [
        lambda C: st.solve(C, budget=6).certify(),
        lambda C: st.solve(C, budget=st.PerRow(1) & st.PerColumn(1), reg=0.1).certify(),
        lambda C: st.solve_shared([C, 2.0 * C], budget=6),
    ]
    for k in range(solves):
        kinds = seldom if k % 97 == 0 else often
        kinds[k % len(kinds)](rng.random((8, 8)))
        done += 1
        if k >= WARM_UP * solves and k % every == 0:
            now = _resident()
            after = now if np.isnan(after) else after
            most = np.fmax(most, now)
        if time.monotonic() > deadline:
            break
    return done, after, most


def _resident() -> float:
    """Resident memory in MiB."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return np.nan


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; 1 if anything is false."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solves", type=int, default=100_000, help="small solves, for memory")
    parser.add_argument("--problems", type=int, default=20_000, help="random problems that are checked")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=np.inf, help="the longest time for each of the two")
    parser.add_argument("--keep", type=Path, help="a folder for the problems that fail")
    parser.add_argument("--replay", type=Path, help="one such problem again, and nothing else")
    given = parser.parse_args(arguments)
    if given.replay is not None:
        end, wrong = failures_of(Case.load(given.replay), [*map(int, given.replay.stem.split("-")), 1])
        print("\n".join([f"{given.replay}: {end}", *(wrong or ["nothing is false"])]))
        return 1 if wrong else 0
    start = time.monotonic()
    tally = fuzz(given.problems, given.seed, keep=given.keep, deadline=start + 60.0 * given.minutes)
    took = time.monotonic() - start
    count = sum(number for (kind, _), number in tally.tried.items() if kind == "problems")
    print("\n".join([f"{count:,} problems in {took:.0f} s, seed {given.seed}", *tally.lines(), *tally.failures]))
    print(f"{len(tally.failures)} failures", flush=True)
    start = time.monotonic()
    done, after, most = memory(given.solves, given.seed, deadline=start + 60.0 * given.minutes)
    grown = (most - after) / after
    print(f"{done:,} solves in {time.monotonic() - start:.0f} s: {after:.0f} MiB after warm-up, at most {most:.0f} MiB")
    return 1 if tally.failures or grown > MEMORY else 0


if __name__ == "__main__":
    sys.exit(main())
