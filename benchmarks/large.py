"""Large problems: time against the budget, and plans from dual prices up to 100,000 points, beside POT's solvers."""

import resource
import time

import numpy as np
import ot

import sparsetransport as st

from .table import Table, seconds

SIZE = 2000
EMD_UP_TO = 5000  # points: beyond that its matrix and its time are too large


def run() -> list[Table]:
    return [_growth(), _from_prices()]


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


def _from_prices() -> Table:
    table = Table(
        "Large problems without a budget, Delta, squared distances, from dual prices",
        ["problem", "time", "CPU time", "certified gap", "links", "peak memory", "POT on the same points"],
        [],
    )
    how = {True: "equal", False: "lognormal"}
    st.solve_sample(*clouds(5000, 2, equal=True), kernels=st.Delta())  # compiles
    st.solve_sample(*clouds(5000, 50, equal=True), kernels=st.Delta())
    times: dict[int, float] = {}
    for size, d, equal in (
        (5000, 2, True),
        (10_000, 2, False),
        (10_000, 2, True),
        (10_000, 50, False),
        (30_000, 2, True),
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
        name = f"{size:,}², d = {d}, {how[equal]} masses"
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
