"""Proofs of plans with a budget, `Delta` kernels and uneven masses: gaps, times, and SCIP on the same problems.

python -m benchmarks.run proofs                                all of it, which takes an hour or two
python -m benchmarks.proofs gaps --seeds 1 --only "m, 10"      one table, with fewer problems or some rows alone
python -m benchmarks.proofs false --problems 10000             random problems of at most 12 pairs against brute force

The rival is SCIP with a plain formulation (a binary variable for every pair, bounds on masses, one quadratic
constraint), where pyscipopt is installed. Times are of the processor, so that other programmes do not count; problems
are solved in as many processes as there are CPUs to use.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import sparsetransport as st

from .table import Table, seconds

GAP = 1e-4  # of SCIP and of ours in the comparison
LIMIT = 60.0  # seconds that either has
SEEDS = 5  # of problems of each kind
LIGHT = replace(st.QUICK, proofs="all")  # less search, and so more for the bounds to do


class Row(NamedTuple):
    """Problems of one size and budget, and what is aimed at."""

    name: str
    points: int
    seconds: float
    gap: float  # on average
    proven: float = 0.0  # the share of problems that are proven within `GAP`
    of_before: float = np.inf  # the gap as a share of the one without these bounds

    @property
    def label(self) -> str:
        return f"{self.name}, {self.points}"


ROWS = (
    Row("one-to-one", 300, 10.0, 1e-9, 1.0),
    Row("one a row", 20, 1.0, 1e-4, 1.0),
    Row("one a row", 50, 6.0, 0.02, 0.5),
    Row("one a row", 100, 15.0, 0.025),
    Row("one a row", 300, 60.0, 0.1),
    Row("one a column", 20, 1.0, 1e-4, 1.0),
    Row("one a column", 50, 6.0, 0.02, 0.5),
    Row("m/2", 20, 5.0, 1e-4),
    Row("m/2", 50, 20.0, 0.005),
    Row("m", 8, 5.0, 1e-4, 1.0),
    Row("m", 10, 30.0, 0.05, 0.5),
    Row("m", 20, 10.0, 0.08),
    Row("m", 50, 60.0, 0.3),
    Row("1.5 m", 8, 10.0, 1e-4, 1.0),
    Row("1.5 m", 10, 30.0, 0.05),
    Row("1.5 m", 20, 20.0, 1.0, of_before=0.75),
    Row("two a row", 8, 10.0, 1e-4, 1.0),
    Row("two a row", 10, 30.0, 0.05),
    Row("two a row", 20, 20.0, 1.0, of_before=0.75),
)


def budget_of(name: str, m: int) -> Any:
    """The budget of a row of the tables, for so many points a side."""
    return {
        "one-to-one": st.PerRow(1) & st.PerColumn(1),
        "one a row": st.PerRow(1),
        "one a column": st.PerColumn(1),
        "two a row": st.PerRow(2),
        "m/2": m // 2,
        "m": m,
        "1.5 m": 3 * m // 2,
    }[name]


def instance(m: int, cost: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Costs of points in the square or at random, and lognormal masses of total one."""
    rng = np.random.default_rng([m, seed])
    if cost == "points":
        costs = ((rng.random((m, 1, 2)) - rng.random((1, m, 2))) ** 2).sum(axis=-1)
    else:
        costs = rng.random((m, m))
    a, b = rng.lognormal(size=(2, m))
    return costs, a / a.sum(), b / b.sum()


def problems(m: int, seeds: int) -> list[st.Problem]:
    return [
        st.Problem.from_matrices(*instance(m, cost, seed), unbalanced=weight)
        for cost in ("points", "random")
        for weight in ("auto", "10*auto")
        for seed in range(seeds)
    ]


def run() -> list[Table]:
    return [gaps(), against_scip(), narrow(), against_brute_force()]


def gaps(seeds: int = SEEDS, only: str = "") -> Table:
    """The gap that is left after a time, the one before, and how good the plan of the default effort was."""
    title = "Proofs that know the budget: lognormal masses, points and random costs, λ1 auto and 10·auto"
    columns = [
        "budget",
        "m = n",
        "gap before (`certify()`), mean",
        "gap, mean",
        "worst",
        "proven",
        "CPU, mean",
        "worst",
    ]
    columns += ["default plan above a proven optimum, mean", "worst", "its CPU, mean"]
    table, excesses = Table(title, columns, []), []
    for row in ROWS:
        if only not in ("", row.label):
            continue
        several = problems(row.points, min(seeds, 2) if row.points >= 100 else seeds)
        found = _each(partial(_gap, budget_of(row.name, row.points), row.seconds), several)
        before, after, took, excess, default = map(np.array, zip(*found, strict=True))
        is_proven = after <= GAP
        means = [f"{100.0 * each.mean():.2g} %" for each in (before, after)]
        line = [row.name, row.points, *means, f"{100.0 * after.max():.2g} %", f"{is_proven.sum()} of {len(after)}"]
        line += [seconds(float(took.mean())), seconds(took.max())]
        above = excess[is_proven]
        line += [f"{100.0 * above.mean():.2g} %", f"{100.0 * above.max():.2g} %"] if above.size else ["", ""]
        table.rows.append([*line, seconds(float(default.mean()))])
        excesses += above.tolist() if row.points <= 50 else []
        table.claim(f"{row.label}: a gap of at most {row.gap:.2g} on average", after.mean() <= row.gap)
        if row.proven:
            table.claim(f"{row.label}: {100 * row.proven:.0f} % are proven", is_proven.mean() >= row.proven)
        if row.of_before < np.inf:
            text = f"{row.label}: at most {row.of_before:g} of the gap before"
            table.claim(text, after.mean() <= row.of_before * before.mean())
    if excesses:
        share = f"{100.0 * np.mean(excesses):.2g} %"
        text = f"up to 50 points default plans are within 1 % of {len(excesses)} proven optima on average ({share})"
        table.claim(text, np.mean(excesses) <= 0.01)
    return table


def _each(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """What the function gives for each item, from as many processes as there are CPUs to use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn"), initializer=_warm_up) as pool:
        return list(pool.map(function, items))


def _warm_up() -> None:
    """Load what proofs are compiled to."""
    for name in ("one-to-one", "one a row", "one a column", "m", "two a row"):
        st.solve(problems(8, 1)[0], budget=budget_of(name, 8), gap_tol=GAP, time_limit=LIMIT)


def _solved(budget: Any, limit: float, problem: st.Problem) -> tuple[st.Result, float]:
    """The plan, and the CPU seconds that it takes once everything is compiled."""
    begun = time.process_time()
    result = st.solve(problem, budget=budget, gap_tol=GAP, time_limit=limit)
    return result, time.process_time() - begun


def _gap(budget: Any, limit: float, problem: st.Problem) -> tuple[float, float, float, float, float]:
    """The gap by the dual alone, the gap that is reached, CPU seconds; what the default plan is above it, and takes."""
    result, took = _solved(budget, limit, problem)
    dual = next(each.value for each in result.certify().log if each.name == "dual")
    st.solve(problem, budget=budget)
    begun = time.process_time()
    default = st.solve(problem, budget=budget)
    default_took = time.process_time() - begun
    size = abs(result.value)
    excess = (default.value - result.value) / size
    return (result.value - dual) / size, max(result.relative_gap, 0.0), took, excess, default_took


def _both(budget: Any, problem: st.Problem) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """The objective, a bound and CPU seconds: SCIP's and ours."""
    result, took = _solved(budget, LIMIT, problem)
    return scip(problem, budget), (result.value, result.lower_bound, took)


def against_scip(seeds: int = 1, only: str = "") -> Table:
    """What SCIP ends, and how long ours takes for it."""
    title = f"Proven within {GAP:g}: CPU seconds beside SCIP's (plain formulation, {LIMIT:.0f} s)"
    table = Table(title, ["budget", "m = n", "SCIP ends", "SCIP", "ours", "ours proven", "same optimum"], [])
    try:
        import pyscipopt  # noqa: F401
    except ImportError:
        table.notes.append("pyscipopt is not installed.")
        return table
    total = [0.0, 0.0]
    for name in ("one a row", "m", "1.5 m", "two a row"):
        for m in range(6, 11):
            if only not in ("", f"{name}, {m}"):
                continue
            theirs, ours, same, proven, several = [], [], 0, 0, problems(m, seeds)
            for rival, own in _each(partial(_both, budget_of(name, m)), several):
                if rival[0] == np.inf or rival[0] - rival[1] > 1.01 * GAP * abs(rival[0]):
                    continue
                theirs.append(rival[2])
                ours.append(own[2])
                same += abs(own[0] - rival[0]) <= 2.0 * GAP * abs(rival[0])
                proven += own[0] - own[1] <= GAP * abs(own[0])
            count = f"{len(theirs)} of {len(several)}"
            sums = [seconds(sum(each)) for each in (theirs, ours)]
            table.rows.append([name, m, count, *sums, f"{proven} of {len(ours)}", f"{same} of {len(ours)}"])
            table.claim(f"{name}, {m}: what SCIP ends is proven, and the same", proven == same == len(ours))
            total = [total[0] + sum(theirs), total[1] + sum(ours)]
    table.claim(f"in total no slower than SCIP ({total[1]:.1f} s and {total[0]:.1f} s)", total[1] <= total[0])
    return table


def scip(problem: st.Problem, budget: Any) -> tuple[float, float, float]:
    """SCIP's plan, its bound and its CPU seconds."""
    from pyscipopt import Model, quicksum

    (m, n), (weight_a, weight_b) = problem.shape, problem.unbalanced
    costs, model = problem.cost.rows(0, m), Model()
    model.hideOutput()
    model.setParam("timing/clocktype", 1)  # seconds of the processor
    model.setParam("limits/time", LIMIT)
    model.setParam("limits/gap", GAP)
    most = (weight_a * problem.a[:, None] + weight_b * problem.b - 0.5 * costs).clip(0.0) / (weight_a + weight_b)
    x = [[model.addVar(lb=0.0, ub=float(most[i, j])) for j in range(n)] for i in range(m)]
    z = [[model.addVar(vtype="B") for _ in range(n)] for _ in range(m)]
    for i in range(m):
        for j in range(n):
            model.addCons(x[i][j] <= float(most[i, j]) * z[i][j])
        if isinstance(budget, st.PerRow):
            model.addCons(quicksum(z[i]) <= budget.k)
    if not isinstance(budget, st.PerRow):
        model.addCons(quicksum(each for row in z for each in row) <= budget)
    rows, cols = ([model.addVar(lb=None) for _ in range(size)] for size in (m, n))
    for i in range(m):
        model.addCons(rows[i] == quicksum(x[i]) - float(problem.a[i]))
    for j in range(n):
        model.addCons(cols[j] == quicksum(x[i][j] for i in range(m)) - float(problem.b[j]))
    missed = model.addVar(lb=0.0)
    model.addCons(
        missed >= quicksum(weight_a * each * each for each in rows) + quicksum(weight_b * each * each for each in cols)
    )
    model.setObjective(quicksum(float(costs[i, j]) * x[i][j] for i in range(m) for j in range(n)) + missed)
    begun = time.process_time()
    try:
        model.optimize()
    except Exception as error:  # its own class for what its linear solver does not solve
        print(f"SCIP gives up: {error}", file=sys.stderr)
        return np.inf, -np.inf, time.process_time() - begun
    return model.getPrimalbound(), model.getDualbound(), time.process_time() - begun


def narrow() -> Table:
    """The diagonal of narrow kernels."""
    table = Table(
        "Narrow kernels, 60×50, 20 links, λ2 = 1", ["kernel", "points", "gap without the diagonal", "gap", "takes"], []
    )
    rng = np.random.default_rng(0)
    X, Y, other = rng.normal(size=(60, 2)), rng.normal(size=(50, 2)) + 1.0, np.random.default_rng(1)
    far = other.normal(size=(60, 10)), other.normal(size=(50, 10)) + 0.3
    for points, kernel, aim in (((X, Y), st.RBF(0.01), 0.35), (far, st.RBF(0.5), 0.05), ((X, Y), st.RBF(0.2), 1.0)):
        problem = st.Problem.from_points(*points, kernels=kernel, reg=1.0)
        result = st.solve(problem, budget=20, effort="quick")
        bare = st.solve(problem, budget=20, effort="quick").relative_gap
        begun = time.process_time()
        gap = result.certify().relative_gap
        took = time.process_time() - begun
        table.rows.append([kernel, f"d = {points[0].shape[1]}", f"{bare:.3f}", f"{gap:.3f}", seconds(took)])
        table.claim(f"{kernel}: a gap of at most {aim}", gap <= aim)
    return table


def _false_claims(seed: int) -> list[str]:
    """What is claimed of the problem of a seed and is not so."""
    tests = str(Path(__file__).parents[1] / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    from proving import drawn, false_claims

    options = {} if seed % 4 == 0 else {"effort": LIGHT}
    return [f"problem {seed}: {text}" for text in false_claims(drawn(seed), **options)]


def against_brute_force(count: int = 200) -> Table:
    """Random problems of at most 12 pairs: no bound above the optimum, nothing proven that is not so."""
    begun = time.perf_counter()
    wrong = [text for texts in _each(_false_claims, range(count)) for text in texts]
    title = f"{count:,} random problems of at most 12 pairs against brute force in fractions"
    table = Table(title, ["problems", "false", "took"], [])
    table.rows.append([count, len(wrong), seconds(time.perf_counter() - begun)])
    table.claim("no bound above the optimum, no plan proven optimal that is not", not wrong)
    table.notes += wrong[:10]
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=["gaps", "scip", "narrow", "false"])
    parser.add_argument("--seeds", type=int, default=1, help="problems of each kind, in gaps and scip")
    parser.add_argument("--only", default="", help="one row of gaps or scip: its budget and its size")
    parser.add_argument("--problems", type=int, default=10_000, help="of false")
    given = parser.parse_args()
    tables = {
        "gaps": lambda: gaps(given.seeds, given.only),
        "scip": lambda: against_scip(given.seeds, given.only),
        "narrow": narrow,
        "false": lambda: against_brute_force(given.problems),
    }
    print(tables[given.table]().markdown())
