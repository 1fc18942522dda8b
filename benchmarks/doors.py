"""One search behind every door: shared links, budgets of one's own and efforts against `solve`, on random problems."""

import time
from itertools import product

import numpy as np

import sparsetransport as st

from .table import Table, best_time

PROBLEMS, LARGE, CLOUDS = 500, 300, 8


class OwnUniform(st.Matroid):
    """A budget of the user's own that equals `Uniform`."""

    def __init__(self, k: int) -> None:
        self.k = k

    def can_add(self, support: list[tuple[int, int]], pair: tuple[int, int]) -> bool:
        return len(support) < self.k


class OwnPerRow(OwnUniform):
    """A budget of the user's own that equals `PerRow`."""

    def can_add(self, support: list[tuple[int, int]], pair: tuple[int, int]) -> bool:
        return sum(i == pair[0] for i, _ in support) < self.k


def run() -> list[Table]:
    return [_shared(), _own(), _efforts(), _gap()]


def _problem(seed: int, kind: str) -> st.Problem:
    rng = np.random.default_rng(seed)
    m, n = rng.integers(4, 41, 2)
    X, Y = rng.normal(size=(m, 2)), rng.normal(size=(n, 2)) + 1.0
    a, b = rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(n))
    return st.Problem.from_points(X, Y, a, b, kernels=st.Delta() if kind == "Delta" else st.RBF(0.3))


def _budgets(problem: st.Problem) -> list[st.Matroid]:
    (m, n), rng = problem.shape, np.random.default_rng(0)
    labels = rng.integers(0, 3, (m, n))
    few = max(min(m, n) // 2, 1)
    return [
        st.Uniform(few),
        st.Uniform(max(m, n)),
        st.PerRow(1),
        st.PerRow(2),
        st.PerColumn(1),
        st.PerRow(1) & st.PerColumn(1),
        st.Partition(labels, few),
        st.Laminar(st.PerColumn(2), st.Uniform(max(m, n))),
    ]


def _shared() -> Table:
    table = Table(
        "`solve_shared([p])` against `solve(p)`: objectives as a ratio", ["kernels", "problems", "mean", "worst"], []
    )
    worst, means = 0.0, []
    for kind in ("Delta", "RBF"):
        ratios = []
        for seed in range(PROBLEMS // 2):
            problem = _problem(seed, kind)
            budgets = _budgets(problem)
            budget = budgets[seed % len(budgets)]
            ratios.append(st.solve_shared([problem], budget=budget).value / st.solve(problem, budget=budget).value)
        table.rows.append([kind, str(len(ratios)), f"{np.mean(ratios):.5f}", f"{max(ratios):.4f}"])
        worst, means = max(worst, *ratios), [*means, *ratios]
    rng = np.random.default_rng(0)
    C, a, b = rng.random((LARGE, LARGE)), rng.dirichlet(np.ones(LARGE)), rng.dirichlet(np.ones(LARGE))
    large = []
    for links in (LARGE // 2, LARGE, 3 * LARGE // 2):
        ratio = st.solve_shared([(C, a, b)], budget=links).value / st.solve(C, a, b, budget=links).value
        table.rows.append([f"Delta, {LARGE}×{LARGE}, {links} links", "1", "", f"{ratio:.4f}"])
        large.append(ratio)
    table.claim(f"mean at most 1.005 ({np.mean(means):.5f})", np.mean(means) <= 1.005)
    table.claim(f"worst at most 1.05 ({worst:.4f})", worst <= 1.05)
    table.claim(f"{LARGE}×{LARGE} at most 1.02 ({max(large):.4f})", max(large) <= 1.02)
    return table


def _own() -> Table:
    table = Table(
        f"A matroid of one's own against the same built in, {CLOUDS} pairs of clouds of 40 and 30 points",
        ["kernel", "budget", "objective: mean", "worst", "CPU time", "times as long"],
        [],
    )
    ratios, times = [], []
    kernels = {"RBF, median": st.RBF("median"), "RBF, narrow": st.RBF(0.1), "Delta": st.Delta()}
    for (name, kernel), (built_in, own) in product(
        kernels.items(),
        [(st.Uniform(12), OwnUniform(12)), (st.Uniform(30), OwnUniform(30)), (st.Uniform(60), OwnUniform(60))]
        + [(st.PerRow(1), OwnPerRow(1)), (st.PerRow(2), OwnPerRow(2))],
    ):
        told = []
        for seed in range(-1, CLOUDS):  # the first one compiles
            rng = np.random.default_rng(max(seed, 0))
            X, Y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) + 1.0
            problem = st.Problem.from_points(X, Y, kernels=kernel)
            began = time.process_time()
            known = st.solve(problem, budget=built_in)
            between = time.process_time()
            asked = st.solve(problem, budget=own)
            told.append((asked.value / known.value, between - began, time.process_time() - between))
        ratio, seconds, own_seconds = np.mean(told[1:], axis=0)
        ratios.append(ratio)
        times.append(own_seconds / seconds)
        table.rows.append(
            [name, str(built_in), f"{ratio:.4f}", f"{max(each[0] for each in told[1:]):.4f}"]
            + [f"{own_seconds * 1e3:.1f} ms", f"{times[-1]:.1f}"]
        )
    table.claim(f"objective within 1 % on average (highest {max(ratios):.4f})", max(ratios) <= 1.01)
    table.claim(f"at most 20 times the time (highest {max(times):.1f})", max(times) <= 20.0)
    return table


def _efforts() -> Table:
    table = Table(
        "Efforts on `Delta` kernels, six budgets each: objective above the best of all three, and time",
        ["points", "masses", "quick", "default: mean", "default: worst", "thorough", "default", "thorough takes"],
        [],
    )
    above, spent = [], []
    for m, uneven in product((20, 50, 100), (False, True)):
        gaps: dict[str, list[float]] = {"quick": [], "default": [], "thorough": []}
        seconds = dict.fromkeys(gaps, 0.0)
        rng = np.random.default_rng(m)
        X, Y = rng.random((m, 2)), rng.random((m, 2))
        a, b = (rng.lognormal(0.0, 0.7, (2, m)) if uneven else np.ones((2, m))) / m
        problem = st.Problem.from_points(X, Y, a, b, kernels=st.Delta())
        for budget in (m // 2, m, 3 * m // 2, st.PerRow(1), st.PerRow(2), st.PerRow(2) & st.PerColumn(2)):
            values = {}
            for name in gaps:
                seconds_, result = best_time(lambda p=problem, k=budget, e=name: st.solve(p, budget=k, effort=e), 1)
                values[name], seconds[name] = result.value, seconds[name] + seconds_ / 6
            best = min(values.values())
            for name, value in values.items():
                gaps[name].append(value / best - 1.0)
        above += [d - t for d, t in zip(gaps["default"], gaps["thorough"], strict=True)]
        spent.append(seconds)
        table.rows.append(
            [f"{m}×{m}", "lognormal" if uneven else "even", f"{np.mean(gaps['quick']):.1%}"]
            + [f"{np.mean(gaps['default']):.1%}", f"{max(gaps['default']):.1%}", f"{np.mean(gaps['thorough']):.1%}"]
            + [f"{seconds['default'] * 1e3:.0f} ms", f"{seconds['thorough'] * 1e3:.0f} ms"]
        )
    table.claim(f"default within 3 % of thorough on average ({np.mean(above):.1%})", np.mean(above) <= 0.03)
    table.claim(f"and within 15 % at worst ({max(above):.1%})", max(above) <= 0.15)
    return table


def _gap() -> Table:
    rng = np.random.default_rng(0)
    C = rng.random((LARGE, LARGE))
    result = st.solve(C, budget=st.PerRow(2))
    seconds, _ = best_time(lambda: st.solve(C, budget=st.PerRow(2)), 3)
    start = time.perf_counter()
    _ = result.gap
    after = time.perf_counter() - start
    table = Table(
        f"`.gap` after `solve`, {LARGE}×{LARGE}, two links a row: nothing is solved twice",
        ["solve", "gap"],
        [[f"{seconds * 1e3:.0f} ms", f"{after * 1e3:.1f} ms"]],
    )
    table.claim(f"at most 15 ms, a tenth of what it took ({after * 1e3:.1f} ms)", after <= 0.015)
    return table
