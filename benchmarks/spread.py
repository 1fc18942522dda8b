"""No budget and a large reg, which gives plans of tens of thousands of entries, against POT's solver."""

import warnings
from time import perf_counter

import numpy as np
import ot

import sparsetransport as st

from .table import Table, best_time, seconds

SIZE, WEIGHT = 300, 1000.0


def run() -> Table:
    rng = np.random.default_rng(0)
    cost = ot.dist(rng.normal(size=(SIZE, 3)), rng.normal(size=(SIZE, 3)) + 0.5)
    a = b = np.full(SIZE, 1.0 / SIZE)
    table = Table(
        f"No budget, Delta, {SIZE}×{SIZE}, λ1 = {WEIGHT:g}, by λ2: POT's L-BFGS-B as it ends by itself",
        ["λ2", "entries", "time", "relative gap", "steps", "`ot.solve`", "above ours", "slower by"],
        [],
    )
    ratios, gaps = [], []
    for reg in (100.0, 1e4, 1e6):
        problem = st.Problem.from_matrices(cost, a, b, unbalanced=WEIGHT, reg=reg)
        time, result = best_time(lambda problem=problem: st.solve(problem), 3)
        start = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = ot.solve(
                cost, a, b, reg=reg, reg_type="L2", c=np.zeros_like(cost), unbalanced=2.0 * WEIGHT,
                unbalanced_type="L2", max_iter=100_000, tol=1e-15,
            ).plan  # fmt: skip
        other = perf_counter() - start
        rows, cols = np.nonzero(plan)
        excess = problem.value(rows, cols, plan[rows, cols]) - result.value
        ratios.append(other / time)
        gaps.append(abs(result.relative_gap))
        table.rows.append(
            [f"{reg:g}", result.mass.size, seconds(time), f"{gaps[-1]:.0e}", len(result.path)]
            + [seconds(other), f"{excess / result.value:.1e}", f"{other / time:.0f}×"]
        )
    table.claim(f"optimal: relative gap at most 1e-9 ({max(gaps):.0e})", max(gaps) <= 1e-9)
    table.claim(f"faster than `ot.solve` (least: {min(ratios):.0f}×)", min(ratios) > 1.0)
    return table
