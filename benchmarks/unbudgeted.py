"""No budget, Delta kernels, 200 x 200, against POT's solvers for the same problem."""

import warnings
from time import perf_counter

import numpy as np
import ot

import sparsetransport as st

from .table import Table, best_time, seconds

SIZE, WEIGHT = 200, 10.0
PATIENCE = 20  # seconds


def run() -> Table:
    rng = np.random.default_rng(0)
    cost = ot.dist(rng.normal(size=(SIZE, 2)), rng.normal(size=(SIZE, 2)) + 1.0)
    cost /= cost.max()
    a, b = (rng.dirichlet(np.full(SIZE, 5.0)) for _ in range(2))
    time, result = best_time(lambda: st.solve(cost, a, b, unbalanced=WEIGHT))
    table = Table(
        f"No budget, Delta, {SIZE}×{SIZE}, λ1 = {WEIGHT:g}: POT until within 1e-6 of our objective, or {PATIENCE} s",
        ["solver", "time", "objective", "above ours", "slower by"],
        [["sparsetransport", seconds(time), f"{result.value:.9f}", "", ""]],
    )
    for name, solver in (("ot.unbalanced.mm_unbalanced", _mm), ("ot.unbalanced.lbfgsb_unbalanced", _lbfgsb)):
        iterations, other, excess = 250, 0.0, np.inf
        while excess > 1e-6 and other < PATIENCE:
            iterations *= 2
            start = perf_counter()
            plan = solver(cost, a, b, iterations)
            other = perf_counter() - start
            excess = _objective(cost, a, b, plan) - result.value
        table.rows.append(
            [f"{name} ({iterations} iterations)", seconds(other), f"{result.value + excess:.9f}"]
            + [f"{excess:.1e}", f"{other / time:.0f}×"]
        )
        table.claim(f"faster than {name} ({other / time:.0f}×)", time < other)
    return table


def _objective(cost: np.ndarray, a: np.ndarray, b: np.ndarray, plan: np.ndarray) -> float:
    missed = ((plan.sum(1) - a) ** 2).sum() + ((plan.sum(0) - b) ** 2).sum()
    return float((cost * plan).sum() + WEIGHT * missed)


# POT's L2 penalty is one half of the squared norm times reg_m, hence the factor of two in both calls.
def _mm(cost: np.ndarray, a: np.ndarray, b: np.ndarray, iterations: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ot.unbalanced.mm_unbalanced(a, b, cost, 2.0 * WEIGHT, div="l2", numItermax=iterations, stopThr=0.0)


def _lbfgsb(cost: np.ndarray, a: np.ndarray, b: np.ndarray, iterations: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ot.unbalanced.lbfgsb_unbalanced(
            a, b, cost, reg=0.0, reg_m=2.0 * WEIGHT, reg_div="kl", regm_div="l2", numItermax=iterations, stopThr=1e-15
        )
