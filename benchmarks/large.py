"""Time against the budget, up to 2,000 links on 2,000 x 2,000."""

import time

import numpy as np

import sparsetransport as st

from .table import Table, seconds

SIZE = 2000


def run() -> Table:
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
