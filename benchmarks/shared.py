"""One set of links for many scenarios: time against their number, and 1,000 plants, 1,000 products, 50 scenarios."""

import resource
import sys
import time
from dataclasses import replace

import numpy as np

import sparsetransport as st

from .table import Table, best_time, seconds

SIZE, SCENARIOS, LINKS = 1000, 50, 2000


def problems(size: int, count: int) -> list[st.Problem]:
    """Random profits, uniform capacities, demands that vary by a tenth; all scenarios share the cost object."""
    rng = np.random.default_rng(0)
    profit = rng.uniform(0.5, 1.5, (size, size))
    demand = np.maximum(rng.normal(rng.uniform(5.0, 8.0, size), 0.65, (count, size)), 0.0)
    demand /= demand.sum(axis=1, keepdims=True)
    weight = 16.0 * profit.mean() * size / 2.0
    first = st.Problem.from_matrices(-profit, np.full(size, 1.0 / size), demand[0], unbalanced=weight)
    return [replace(first, b=b) for b in demand]


def run() -> list[Table]:
    return [_growth(), _large()]


def _growth() -> Table:
    table = Table(
        "Shared support, growth with the scenarios: 200×200, 200 links", ["scenarios", "time", "a scenario"], []
    )
    times = []
    for count in (5, 10, 20, 40, 80):
        scenarios = problems(200, count)
        took, _ = best_time(lambda scenarios=scenarios: st.solve_shared(scenarios, budget=200, polish=False), repeats=3)
        times.append(took / count)
        table.rows.append([count, seconds(took), seconds(took / count)])
    text = f"time grows linearly in the scenarios: {times[-1] / times[0]:.2f} times as much for each of 80 as of 5"
    table.claim(text, times[-1] < 2.0 * times[0])
    return table


def _large() -> Table:
    table = Table(
        f"Shared support, {SIZE:,} plants, {SIZE:,} products, {SCENARIOS} scenarios",
        ["links", "time", "objective", "peak memory"],
        [],
    )
    scenarios = problems(SIZE, SCENARIOS)
    start = time.perf_counter()
    shared = st.solve_shared(scenarios, budget=LINKS)
    took = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
    table.rows.append([len(shared.links), seconds(took), f"{shared.value:.6f}", f"{peak:.2f} GiB"])
    table.claim(f"{LINKS:,} links in minutes: {took / 60.0:.1f}", took < 600.0)
    table.notes.append(
        "Peak memory is that of the whole process. Most of it is the plans' factors; the cost matrix is there once."
    )
    return table
