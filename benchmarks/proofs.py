"""Proofs of plans with a budget, `Delta` kernels and uneven masses: gaps, times, and SCIP on the same problems.

python -m benchmarks.run proofs
python -m benchmarks.proofs --problems 10000   random problems of at most 12 pairs against brute force, and nothing else

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
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import sparsetransport as st

from .table import Table, seconds

GAP = 1e-4  # of SCIP and of ours in the comparison
LIMIT = 60.0  # seconds that either has
SEEDS = range(5)
ROWS: list[tuple[str, Any, int, float, float]] = [  # budget, as a function of the points, points, seconds, gap aimed at
    ("one-to-one", lambda m: st.PerRow(1) & st.PerColumn(1), 300, 10.0, 1e-9),
    ("one a row", lambda m: st.PerRow(1), 20, 1.0, 1e-4),
    ("one a row", lambda m: st.PerRow(1), 50, 6.0, 0.02),
    ("one a row", lambda m: st.PerRow(1), 100, 15.0, 0.025),
    ("one a row", lambda m: st.PerRow(1), 300, 60.0, 0.1),
    ("m/2", lambda m: m // 2, 20, 5.0, 1e-4),
    ("m/2", lambda m: m // 2, 50, 20.0, 0.005),
    ("m", lambda m: m, 8, 5.0, 1e-4),
    ("m", lambda m: m, 10, 30.0, 1e-4),
    ("m", lambda m: m, 20, 10.0, 0.08),
    ("m", lambda m: m, 50, 60.0, 0.3),
    ("1.5 m", lambda m: 3 * m // 2, 8, 10.0, 1e-4),
    ("1.5 m", lambda m: 3 * m // 2, 10, 30.0, 0.05),
    ("two a row", lambda m: st.PerRow(2), 8, 10.0, 1e-4),
    ("two a row", lambda m: st.PerRow(2), 10, 30.0, 0.05),
    ("two a row", lambda m: st.PerRow(2), 20, 20.0, 0.5),
]


def instance(m: int, cost: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Costs of points in the square or at random, and lognormal masses of total one."""
    rng = np.random.default_rng([m, seed])
    if cost == "points":
        costs = ((rng.random((m, 1, 2)) - rng.random((1, m, 2))) ** 2).sum(axis=-1)
    else:
        costs = rng.random((m, m))
    a, b = rng.lognormal(size=(2, m))
    return costs, a / a.sum(), b / b.sum()


def problems(m: int, seeds: Any = SEEDS) -> list[st.Problem]:
    return [
        st.Problem.from_matrices(*instance(m, cost, seed), unbalanced=weight)
        for cost in ("points", "random")
        for weight in ("auto", "10*auto")
        for seed in seeds
    ]


def run() -> list[Table]:
    return [_gaps(), _against_scip(), _narrow(), _false()]


def _gaps() -> Table:
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
    table = Table(title, columns, [])
    for name, budget, m, limit, aim in ROWS:
        several = problems(m, SEEDS[: 2 if m >= 100 else len(SEEDS)])
        before, after, took = zip(*_each(partial(_gap, budget(m), limit), several), strict=True)
        proven = f"{sum(gap <= GAP for gap in after)} of {len(after)}"
        means = [f"{100.0 * np.mean(each):.2g} %" for each in (before, after)]
        worst = f"{100.0 * max(after):.2g} %"
        table.rows.append([name, m, *means, worst, proven, seconds(float(np.mean(took))), seconds(max(took))])
        table.claim(f"{name}, {m}: a gap of at most {aim:.2g} on average", np.mean(after) <= aim)
    return table


def _each(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """What the function gives for each item, from as many processes as there are CPUs to use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        return list(pool.map(function, items))


def _solved(budget: Any, limit: float, problem: st.Problem) -> tuple[st.Result, float]:
    """The plan, and the CPU seconds that it takes once everything is compiled."""
    st.solve(problem, budget=budget, gap_tol=GAP, time_limit=0.2)
    begun = time.process_time()
    result = st.solve(problem, budget=budget, gap_tol=GAP, time_limit=limit)
    return result, time.process_time() - begun


def _gap(budget: Any, limit: float, problem: st.Problem) -> tuple[float, float, float]:
    """The gap by the dual alone, the gap that is reached, and its CPU seconds."""
    result, took = _solved(budget, limit, problem)
    dual = next(each.value for each in result.certify().log if each.name == "dual")
    return (result.value - dual) / abs(result.value), max(result.relative_gap, 0.0), took


def _both(budget: Any, problem: st.Problem) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """The objective, a bound and CPU seconds: SCIP's and ours."""
    result, took = _solved(budget, LIMIT, problem)
    return scip(problem, budget), (result.value, result.lower_bound, took)


def _against_scip() -> Table:
    title = f"Proven within {GAP:g}: CPU seconds beside SCIP's (plain formulation, {LIMIT:.0f} s)"
    table = Table(title, ["budget", "m = n", "SCIP ends", "SCIP", "ours", "ours proven", "same optimum"], [])
    try:
        import pyscipopt  # noqa: F401
    except ImportError:
        table.notes.append("pyscipopt is not installed.")
        return table
    total = [0.0, 0.0]
    for name, budget in (("one a row", st.PerRow(1)), ("m", None), ("1.5 m", None), ("two a row", st.PerRow(2))):
        for m in (6, 8, 10):
            allowed = budget if budget is not None else m if name == "m" else 3 * m // 2
            theirs, ours, same, proven = [], [], 0, 0
            for rival, own in _each(partial(_both, allowed), problems(m, range(1))):
                if rival[0] - rival[1] > 1.01 * GAP * abs(rival[0]):
                    continue
                theirs.append(rival[2])
                ours.append(own[2])
                same += abs(own[0] - rival[0]) <= 2.0 * GAP * abs(rival[0])
                proven += own[0] - own[1] <= GAP * abs(own[0])
            count = f"{len(theirs)} of 4"
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
    model.optimize()
    return model.getPrimalbound(), model.getDualbound(), time.process_time() - begun


def _narrow() -> Table:
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

    return [f"problem {seed}: {text}" for text in false_claims(drawn(seed))]


def _false(count: int = 200) -> Table:
    """Random problems of at most 12 pairs: no bound above the optimum, nothing proven that is not so."""
    begun = time.perf_counter()
    wrong = [text for texts in _each(_false_claims, range(count)) for text in texts]
    table = Table(
        f"{count:,} random problems of at most 12 pairs against brute force", ["problems", "false", "took"], []
    )
    table.rows.append([count, len(wrong), seconds(time.perf_counter() - begun)])
    table.claim("no bound above the optimum, no plan proven optimal that is not", not wrong)
    table.notes += wrong[:10]
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=10_000, help="random problems")
    print(_false(parser.parse_args().problems).markdown())
