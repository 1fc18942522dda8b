"""Delta kernels, thousands of points: no budget, and three links per row, against POT's plan for hard marginals."""

from time import perf_counter

import numpy as np
import ot

import sparsetransport as st

from .table import Table, seconds

SIZES = (500, 500), (1000, 1500), (2000, 2000)


def run() -> Table:
    table = Table(
        "Delta, clouds of points in the plane with uneven masses, λ1 auto",
        [
            "points",
            "no budget",
            "relative gap",
            "entries",
            "`ot.emd` (hard marginals)",
            "`PerRow(3)`",
            "gap, certified",
        ],
        [],
    )
    st.solve(np.ones((2, 2))).certify()  # compiles, or loads, what follows
    _solve(30, 20)
    ratios, gaps = [], []
    for m, n in SIZES:
        free, took, exact, three, three_took = _solve(m, n)
        ratios.append(took / exact)
        gaps.append(abs(free.relative_gap))
        table.rows.append(
            [f"{m:,} × {n:,}", seconds(took), f"{gaps[-1]:.0e}", len(free.mass), seconds(exact), seconds(three_took)]
            + [f"{100.0 * three.relative_gap:.1f} %"]
        )
    table.claim(f"optimal without a budget: relative gap at most 1e-8 ({max(gaps):.0e})", max(gaps) <= 1e-8)
    table.claim(f"at most ten times as long as `ot.emd` (most: {max(ratios):.1f} times)", max(ratios) <= 10.0)
    return table


def _solve(m: int, n: int) -> tuple[st.Result, float, float, st.Result, float]:
    """Without a budget, its time, that of POT, with three links a row, and its time."""
    rng = np.random.default_rng(0)
    cost = st.cost_matrix(rng.normal(size=(m, 2)), rng.normal(size=(n, 2)) + 1.0)
    a, b = rng.dirichlet(np.full(m, 5.0)), rng.dirichlet(np.full(n, 5.0))
    start = perf_counter()
    free = st.solve(cost, a, b)
    solved = perf_counter()
    ot.emd(a, b, cost, numItermax=10_000_000)
    compared = perf_counter()
    three = st.solve(cost, a, b, budget=st.PerRow(3))
    return free, solved - start, compared - solved, three, perf_counter() - compared
