"""Certified gaps of plans with Delta kernels, against the bound that holds for any budget: the unbudgeted optimum."""

import numpy as np

import sparsetransport as st

from .table import Table, best_time, seconds

SHAPE, SEEDS = (40, 30), range(5)
FEW = 30  # links: as many as the shorter side has points


def run() -> Table:
    m, n = SHAPE
    title = f"Proofs with Delta, {m}×{n} random costs, uniform masses, λ1 auto: gaps relative to the objective"
    bounds = ["without a budget", "`relative_gap`", "`certify()`"]
    table = Table(
        title, ["links", "λ2", "objective", *(f"{each}, worst of {len(SEEDS)}" for each in bounds), "both take"], []
    )
    few = []
    for links in (10, FEW, 35, 50, 60):
        for reg in (0.0, 0.01):
            values, free, cheap, tight, times = [], [], [], [], []
            for seed in SEEDS:
                costs = np.random.default_rng(seed).random(SHAPE)
                result = st.solve(costs, budget=links, reg=reg)
                values.append(result.value)
                free.append(1.0 - st.solve(costs, reg=reg).value / result.value)
                problem = st.Problem.from_matrices(costs, reg=reg)
                time, gaps = best_time(lambda plan=result, problem=problem: _gaps(problem, plan), 3)
                cheap.append(gaps[0])
                tight.append(gaps[1])
                times.append(time)
            if links <= FEW:
                few += tight
            numbers = [f"{max(each):.1e}" for each in (free, cheap, tight)]
            table.rows.append([links, f"{reg:g}", f"{np.mean(values):.4g}", *numbers, seconds(max(times))])
    table.claim(f"{FEW} links and fewer: certified within 0.1 % ({max(few):.1e})", max(few) <= 1e-3)
    return table


def _gaps(problem: st.Problem, plan: st.Result) -> tuple[float, float]:
    """The cheap and the tight gap of a plan, proved anew."""
    fresh = st.solve_support(problem, links=plan)
    return fresh.relative_gap, fresh.certify().relative_gap
