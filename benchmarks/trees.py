"""Budgets with Delta kernels, the default for costs: tree local search against swaps and POT's largest links."""

from time import perf_counter

import numpy as np
import ot

import sparsetransport as st

from .table import Table, seconds

SIZE = 300
BUDGETS = {
    "150 links": 150,
    "300 links": 300,
    "450 links": 450,
    "1 a row": st.PerRow(1),
    "2 a row": st.PerRow(2),
    "3 a row": st.PerRow(3),
    "2 a row and column": st.PerRow(2) & st.PerColumn(2),
}


def run() -> Table:
    rng = np.random.default_rng(0)
    cost = st.cost_matrix(rng.normal(size=(SIZE, 2)), rng.normal(size=(SIZE, 2)) + 0.5)
    a, b = rng.dirichlet(np.ones(SIZE)), rng.dirichlet(np.ones(SIZE))
    problem = st.Problem.from_matrices(cost, a, b)
    exact = ot.emd(a, b, cost)
    for choice in ("quick", "default"):
        st.solve(cost[:40, :40], budget=60, effort=choice, gap_tol=0.9)  # compiles, or loads, what follows
    free = st.solve(problem)
    table = Table(
        f"Budgets with Delta: clouds of {SIZE} points in the plane, very uneven masses, λ1 auto; without a budget "
        f"{free.value:.3f}, {len(free.mass)} links",
        ["budget", "`ot.emd`'s largest links, re-optimised", "growing alone", '`effort="quick"`', "time", "default"]
        + ["time", "`gap_tol`", "time", "gap, certified"],
        [],
    )
    never_worse, slower, gains = True, [], []
    for name, budget in BUDGETS.items():
        cut = st.solve_support(problem, links=_largest(exact, budget))
        grown = st.solve(problem, budget=budget, effort=st.BARE)
        (quick, quick_took), (plan, took), (longer, longer_took) = (
            _timed(problem, budget=budget, **options) for options in ({"effort": "quick"}, {}, {"gap_tol": 1e-6})
        )
        values = [cut.value, grown.value, quick.value]
        never_worse &= longer.value <= plan.value * (1 + 1e-12) and plan.value <= min(values) * (1 + 1e-12)
        slower.append(took / quick_took)
        gains.append(plan.value / quick.value)
        table.rows.append(
            [name, f"{cut.value:.3f}", f"{grown.value:.3f}", f"{quick.value:.3f}", seconds(quick_took)]
            + [f"{plan.value:.3f}", seconds(took), f"{longer.value:.3f}", seconds(longer_took)]
            + [f"{100.0 * longer.certify().relative_gap:.1f} %"]
        )
    table.claim("never worse: the default than the columns before it, `gap_tol` than the default", never_worse)
    lower = 100.0 * (1.0 - float(np.mean(gains)))
    table.claim(f"a fifth lower than the quick effort on average ({lower:.0f} %)", lower >= 20.0)
    table.notes.append(
        f"The default takes {min(slower):.1f} to {max(slower):.1f} times as long as the quick effort. Growing alone is "
        "OMP with exact masses and reclaim. From POT's plan the largest links that the budget allows are taken."
    )
    return table


def _largest(plan: np.ndarray, budget: object) -> list[tuple[int, int]]:
    """The pairs with the most mass that the budget allows."""
    matroid = st.Uniform(budget) if isinstance(budget, int) else budget
    chosen: list[tuple[int, int]] = []
    for i, j in sorted(zip(*np.nonzero(plan), strict=True), key=lambda pair: -plan[pair]):
        if matroid.can_add(chosen, (int(i), int(j))):
            chosen.append((int(i), int(j)))
    return chosen


def _timed(problem: st.Problem, **options: object) -> tuple[st.Result, float]:
    start = perf_counter()
    result = st.solve(problem, **options)
    return result, perf_counter() - start
