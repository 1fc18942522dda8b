"""Large problems: time against the budget, and plans from dual prices up to 100,000 points, beside POT's solvers."""

import resource
import time
from dataclasses import replace
from typing import Any

import numpy as np
import ot

import sparsetransport as st
from sparsetransport.effort import Listed

from .table import Table, seconds

SIZE = 2000
HOW = {True: "equal", False: "lognormal"}
EMD_UP_TO = 5000  # points: beyond that its matrix and its time are too large


def run() -> list[Table]:
    return [_growth(), _dense(), _from_prices(), _quality(), _within_budgets()]


def _growth() -> Table:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(SIZE, 3)), rng.normal(size=(SIZE, 3)) + 0.5
    problem = st.Problem.from_points(x, y, kernels=st.RBF(0.05), normalize_cost=True, unbalanced=1000.0, reg=0.01)
    table = Table(
        f"Growth with the budget, {SIZE}×{SIZE}, RBF, λ1 = 1000, λ2 = 0.01",
        ["K", "OMP and reclaim", "with polish", "steps", "entries", "objective", "objective, polished"],
        [],
    )
    st.solve(problem, budget=3)
    times = []
    for budget in (500, 1000, 2000):
        start = time.perf_counter()
        plain = st.solve(problem, budget=budget, polish=False)
        times.append(time.perf_counter() - start)
        start = time.perf_counter()
        polished = st.solve(problem, budget=budget)
        whole = time.perf_counter() - start
        table.rows.append(
            [budget, seconds(times[-1]), seconds(whole), len(plain.path), plain.mass.size]
            + [f"{plain.value:.6f}", f"{polished.value:.6f}"]
        )
    table.claim(f"K = 2,000 finishes; {times[-1] / times[0]:.1f} times the time of K = 500", True)
    return table


def clouds(size: int, d: int, *, equal: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Uniform against clustered points, or Gaussians whose spectrum falls; equal or lognormal masses of mean one."""
    rng = np.random.default_rng(0)
    if d <= 3:
        x, centres = rng.random((size, d)), rng.random((20, d))
        y = centres[rng.integers(20, size=size)] + 0.08 * rng.normal(size=(size, d))
    else:
        spectrum = np.arange(1, d + 1) ** -0.7
        x, y = rng.normal(size=(size, d)) * spectrum, rng.normal(size=(size, d)) * spectrum + 0.3 * spectrum
    masses = [np.ones(size) if equal else np.exp(0.7 * rng.normal(size=size)) for _ in range(2)]
    a, b = (size * each / each.sum() for each in masses)
    return x, y, a, b


def _dense() -> Table:
    """Ours has soft marginals, and `ot.emd` hard ones, with the default weight nearly the same plan."""
    table = Table(
        "A matrix of squared distances in the plane, Delta, no budget: CPU time of the exact optimum beside `ot.emd`",
        ["matrix", "masses", "ours", "status", "`ot.emd`", "ours / `ot.emd`"],
        [],
    )
    ratios = []
    for size in (2000, 5000):
        for equal in (True, False):
            x, y, a, b = clouds(size, 2, equal=equal)
            C = ot.dist(x, y)
            st.solve(C[:50, :50])  # loads what is compiled
            start = time.process_time()
            result = st.solve(C, a, b, effort=UNPRICED)
            between = time.process_time()
            ot.emd(a, b, C, numItermax=10**8)
            ours, theirs = between - start, time.process_time() - between
            ratios.append(ours / theirs)
            row = [f"{size:,} × {size:,}", HOW[equal], seconds(ours), result.status.name, seconds(theirs)]
            table.rows.append([*row, f"{ratios[-1]:.1f}"])
    table.claim(f"no slower than `ot.emd` (up to {max(ratios):.1f} times its time)", max(ratios) <= 1.0)
    return table


def _from_prices() -> Table:
    table = Table(
        "Large problems without a budget, Delta, squared distances, from dual prices",
        ["problem", "time", "CPU time", "certified gap", "links", "peak memory", "POT on the same points"],
        [],
    )
    st.solve_sample(*clouds(5000, 2, equal=True), kernels=st.Delta())  # compiles
    st.solve_sample(*clouds(5000, 50, equal=True), kernels=st.Delta())
    times: dict[int, float] = {}
    for size, d, equal in (
        (5000, 2, True),
        (10_000, 2, False),
        (10_000, 2, True),
        (10_000, 50, False),
        (30_000, 2, True),
        (30_000, 50, False),
        (100_000, 2, True),
        (100_000, 2, False),
    ):
        x, y, a, b = clouds(size, d, equal=equal)
        start, busy = time.perf_counter(), time.process_time()
        result = st.solve_sample(x, y, a, b, kernels=st.Delta())
        took, worked = time.perf_counter() - start, time.process_time() - busy
        if d == 2 and equal:
            times[size] = took
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        name = f"{size:,}², d = {d}, {HOW[equal]} masses"
        others = _pot(x, y, a, b, result.value_linear) if equal and d == 2 else ""
        table.rows.append(
            [name, seconds(took), seconds(worked), f"{result.relative_gap:.3%}", result.mass.size]
            + [f"{memory:.2f} GB", others]
        )
        table.claim(f"{name}: certified within 0.06 %", result.relative_gap <= 6e-4)
    exponent = float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])
    table.claim(f"time grows with the points to the power of {exponent:.2f}, 1.3 at the most", exponent <= 1.3)
    table.notes.append("Peak memory is that of the process so far. BSP-OT pairs points one to one and proves nothing.")
    return table


def _pot(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray, ours: float) -> str:
    """What BSP-OT, and up to some size the network simplex, take, and how their costs compare with ours."""
    start = time.perf_counter()
    _, pairing, _ = ot.bsp.compute_bspot_bijection(x, y)
    paired = float(((x - y[np.asarray(pairing)]) ** 2).sum())
    told = f"BSP-OT {seconds(time.perf_counter() - start)}, cost {paired / ours - 1.0:+.2%}"
    if len(x) > EMD_UP_TO:
        return told
    start = time.perf_counter()
    exact = ot.emd2(a, b, ot.dist(x, y), numItermax=10**8)
    return f"{told}; emd {seconds(time.perf_counter() - start)}, cost {exact / ours - 1.0:+.2%}"


PRICED = replace(st.DEFAULT, prices=replace(st.DEFAULT.prices, above=0, budgets=Listed(above=0)))
UNPRICED = replace(st.DEFAULT, prices=None)


def _budgeted(size: int, cols: int, *, equal: bool, budget: Any, effort: st.Effort) -> tuple[st.Result, float, float]:
    """A plan within a budget, its wall time and its CPU time; uneven masses have 2 λ mean mass = 10 × mean cost."""
    x, y, a, b = clouds(size, 2, equal=equal)
    y, b = y[:cols], b[:cols] * (a.sum() / b[:cols].sum())
    weight = "auto" if equal else 5.0 * st.Problem.from_points(x, y, a, b, kernels=st.Delta()).cost.mean / a.mean()
    start, busy = time.perf_counter(), time.process_time()
    result = st.solve_sample(x, y, a, b, kernels=st.Delta(), budget=budget, unbalanced=weight, effort=effort)
    return result, time.perf_counter() - start, time.process_time() - busy


def _budgets_of(size: int) -> dict[str, Any]:
    return {"PerRow(1)": st.PerRow(1), "PerRow(2)": st.PerRow(2), "K = m": size, "K = m/10": size // 10}


def _quality() -> Table:
    size = 3000
    table = Table(
        f"Budgets from dual prices against the search on all pairs, {size:,}², Delta, squared distances",
        ["masses", "budget", "CPU time, all pairs", "CPU time", "objective, all pairs", "objective", "change"],
        [],
    )
    changes = []
    for equal in (True, False):
        for name, budget in _budgets_of(size).items():
            before, _, long = _budgeted(size, size, equal=equal, budget=budget, effort=UNPRICED)
            after, _, short = _budgeted(size, size, equal=equal, budget=budget, effort=PRICED)
            changes.append(after.value / before.value - 1.0)
            table.rows.append(
                [HOW[equal], name, seconds(long), seconds(short)]
                + [f"{before.value:.6g}", f"{after.value:.6g}", f"{changes[-1]:+.3%}"]
            )
    table.claim(f"never more than 0.2 % above: {max(changes):+.3%} at the most", max(changes) <= 2e-3)
    table.claim(f"below on average: {np.mean(changes):+.3%}", np.mean(changes) < 0.0)
    return table


def _within_budgets() -> Table:
    table = Table(
        "Large problems within a budget, Delta, squared distances, d = 2, from dual prices",
        ["problem", "masses", "budget", "time", "CPU time", "above the unbudgeted bound", "links", "peak memory"],
        [],
    )
    # seconds on two idle cores, and how far above the bound a plan may be
    goals = {
        (10_000, True): [(8, 8e-3), (20, 2e-3), (15, 8e-3), (20, np.inf)],
        (10_000, False): [(20, np.inf), (60, np.inf), (60, np.inf), (30, np.inf)],
        (100_000, True): [(60, 8e-3), (240, 2e-3), (240, 8e-3)],
        (100_000, False): [(240, np.inf), (240, np.inf), (240, np.inf)],
    }
    todo = [
        (size, size, equal, *one)
        for (size, equal), row in goals.items()
        for one in zip(_budgets_of(size), row, strict=False)
    ]
    times: dict[int, float] = {}
    for size, cols, equal, name, (most, close) in [*todo, (100_000, 1000, True, "PerRow(1)", (30, 5e-3))]:
        budget = _budgets_of(size)[name]
        result, took, worked = _budgeted(size, cols, equal=equal, budget=budget, effort=st.DEFAULT)
        bound = result.lower_bound
        gap = (result.value - bound) / result.value
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        problem = f"{size:,} × {cols:,}"
        if cols == size and equal and name == "PerRow(1)":
            times[size] = worked
        table.rows.append(
            [problem, HOW[equal], name, seconds(took), seconds(worked), f"{gap:.3%}"]
            + [result.mass.size, f"{memory:.2f} GB"]
        )
        table.claim(f"{problem}, {HOW[equal]} masses, {name}: {took:.0f} s, {most} s at the most", took <= most)
        if close < np.inf:
            table.claim(f"{problem}, {HOW[equal]} masses, {name}: within {close:.1%} of the bound", gap <= close)
    exponent = float(np.log(times[100_000] / times[10_000]) / np.log(10.0))
    table.claim(f"CPU time of PerRow(1) grows with the points to the power of {exponent:.2f}", exponent <= 1.3)
    table.notes.append(
        "With lognormal masses 2 λ mean mass = 10 × mean cost. Peak memory is that of the process so far."
    )
    return table
