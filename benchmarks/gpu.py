"""Large problems on a GPU: time, certified gap and memory; needs CUDA, and keeps its tables in ``results/gpu.md``.

python -m benchmarks.gpu            all rows
python -m benchmarks.gpu 100000     rows of at most so many points a side
python -m benchmarks.gpu budgets    plans within a budget, and the same plans without the GPU, alone
"""

import platform
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import sparsetransport as st
from sparsetransport.effort import DevicePrices
from sparsetransport.prices import device

from .table import Table

ROWS = (  # points, points, dimensions, masses, seconds at the most, gap at the most
    (3_000, 3_000, 2, "lognormal", None, None),
    (100_000, 100_000, 2, "lognormal", 4.0, 5e-4),
    (100_000, 100_000, 2, "equal", 4.0, 5e-4),
    (100_000, 100_000, 64, "lognormal", 6.0, 1e-3),
    (100_000, 100_000, 64, "equal", 6.0, 1e-3),
    (1_000_000, 1_000_000, 2, "lognormal", 12.0, 5e-4),
    (1_000_000, 1_000_000, 64, "lognormal", 40.0, 5e-4),
)
SEEDS = 3
MEMORY = 10.0  # GiB at the most
BUDGETS = {  # of the larger side's points
    "no budget": lambda m: None,
    "PerRow(1)": lambda m: st.PerRow(1),
    "PerRow(2)": lambda m: st.PerRow(2),
    "K = m": lambda m: m,
}
SEARCHED = (  # points, points, masses, budget, is the CPU alone timed beside it?, seconds and gap at the most
    (3_000, 3_000, "lognormal", "no budget", True, None, None),
    (3_000, 3_000, "equal", "PerRow(1)", True, None, None),
    (1_000_000, 10_000, "equal", "PerRow(1)", False, 12.0, 4e-3),
    (1_000_000, 1_000_000, "lognormal", "no budget", False, 12.0, 5e-4),
    (100_000, 100_000, "equal", "PerRow(1)", True, None, None),
    (100_000, 100_000, "equal", "K = m", True, None, None),
    (100_000, 100_000, "equal", "PerRow(2)", True, None, None),
)
ALIKE = 1e-4  # what objectives and bounds of both may differ by, relative, at 3,000 points


def points(m: int, n: int, d: int, masses: str, seed: int) -> tuple[np.ndarray, ...]:
    """Uniform against clustered points in few dimensions, Gaussians with a falling spectrum in many."""
    rng = np.random.default_rng(seed)
    if d <= 3:
        centres = rng.random((20, d))
        X, Y = rng.random((m, d)), centres[rng.integers(0, 20, n)] + 0.08 * rng.normal(size=(n, d))
    else:
        spectrum = np.arange(1, d + 1) ** -0.7
        X, Y = rng.normal(size=(m, d)) * spectrum, (rng.normal(size=(n, d)) + 0.3) * spectrum
    a, b = (np.ones(k) if masses == "equal" else rng.lognormal(0.0, 0.7, k) for k in (m, n))
    return X, Y, a / a.mean(), b * (a.sum() / a.mean() / b.sum())


def problem(m: int, n: int, d: int, masses: str, seed: int) -> st.Problem:
    """The weight is five times the mean cost: marginal errors are a few per cent at the most."""
    X, Y, a, b = points(m, n, d, masses, seed)
    mean = X.var(0).sum() + Y.var(0).sum() + ((X.mean(0) - Y.mean(0)) ** 2).sum()
    return st.Problem.from_points(X, Y, a, b, kernels=st.Delta(), unbalanced=5.0 * float(mean), lazy=True)


def solved(given: st.Problem) -> tuple[float, float, float, int]:
    """Seconds, certified gap, GiB on the device and links, copies to the device included."""
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    found = device.prices(given, DevicePrices(), "cuda")
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    gap = (found.value - found.bound) / found.value
    return seconds, gap, torch.cuda.max_memory_allocated() / 2**30, found.rows.shape[0]


def run(most: int) -> Table:
    """The best of the seeds' times, and the worst of their gaps."""
    head = ["points", "d", "masses", "seeds", "seconds", "worst certified gap", "links", "GiB"]
    table = Table("Dual prices on a GPU, no budget, Delta kernels, squared distances", head, [])
    for m, n, d, masses, within, least in ROWS:
        if max(m, n) > most:
            continue
        seeds = SEEDS if m * d <= 64_000_000 // 8 else 1
        solved(problem(min(m, 30_000), min(n, 30_000), d, masses, 0))  # compiles
        told = [solved(problem(m, n, d, masses, seed)) for seed in range(seeds)]
        seconds, gap, memory = (max(each) for each in list(zip(*told, strict=True))[:3])
        table.rows.append(
            [f"{m:,} × {n:,}", str(d), masses, str(seeds), f"{seconds:.2f}", f"{gap:.4%}", f"{told[0][3]:,}"]
            + [f"{memory:.1f}"]
        )
        if within is not None and least is not None:
            name = f"{m:,}², d = {d}, {masses}"
            table.claim(f"{name}: at most {within:g} s ({seconds:.2f} s, the slowest seed)", seconds <= within)
            table.claim(f"{name}: certified within {least:.2%} ({gap:.4%})", gap <= least)
            table.claim(f"{name}: at most {MEMORY:g} GiB ({memory:.1f} GiB)", memory <= MEMORY)
    return table


def searched(m: int, n: int, masses: str, budget: object, where: str | None) -> tuple[float, st.Result]:
    """Seconds, and the plan of a whole solve; prices are found on the device, the rest is done by the CPU."""
    X, Y, a, b = points(m, n, 2, masses, 0)
    weight = "auto" if masses == "equal" else problem(m, n, 2, masses, 0).unbalanced
    how = replace(st.DEFAULT, prices=replace(st.DEFAULT.prices, above=0))
    start = time.perf_counter()
    result = st.solve_sample(
        X, Y, a, b, kernels=st.Delta(), unbalanced=weight, budget=budget, lazy=True, device=where, effort=how
    )
    return time.perf_counter() - start, result


def run_budgets() -> Table:
    """Whole solves with the GPU's prices, and with those of the CPU."""
    head = ["points", "masses", "budget", "prices of", "seconds", "objective", "certified gap", "links"]
    table = Table("Plans from prices of the GPU or of the CPU, d = 2, Delta kernels, squared distances", head, [])
    for where in ("cuda", None):  # compiles
        for name in ("no budget", "PerRow(1)"):
            searched(5_000, 5_000, "equal", BUDGETS[name](5_000), where)
    for m, n, masses, name, is_beside, within, least in SEARCHED:
        told = {}
        for where in ("cuda", None) if is_beside else ("cuda",):
            seconds, result = searched(m, n, masses, BUDGETS[name](m), where)
            told[where] = seconds, result.value, result.lower_bound
            row = [f"{m:,} × {n:,}", masses, name, "the GPU" if where else "the CPU", f"{seconds:.1f}"]
            table.rows.append([*row, f"{result.value:.8g}", f"{result.relative_gap:.4%}", f"{result.rows.size:,}"])
            print(*table.rows[-1], sep=" | ", flush=True)
        what, (seconds, value, bound) = f"{m:,} × {n:,}, {masses}, {name}", told["cuda"]
        if within is not None and least is not None:
            gap = (value - bound) / value
            table.claim(f"{what}: at most {within:g} s ({seconds:.1f} s)", seconds <= within)
            table.claim(f"{what}: certified within {least:.2%} ({gap:.3%})", gap <= least)
        if is_beside:
            alone, other, proven = told[None]
            apart = max(abs(value - other) / other, abs(bound - proven) / proven)
            if m <= 3_000:
                table.claim(f"{what}: the same with the GPU, within {ALIKE:g} ({apart:.2g})", apart <= ALIKE)
            else:
                said = f"{alone / seconds:.1f} times as fast, objective {value / other - 1.0:+.2%}"
                table.claim(f"{what}: faster with the GPU ({said})", seconds < alone)
    return table


def main() -> None:
    if sys.argv[1:] == ["budgets"]:
        print(run_budgets().markdown())
        return
    text = run(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9).markdown()
    print(text)
    if len(sys.argv) == 1:
        text += "\n\n" + run_budgets().markdown()
        versions = f"Python {platform.python_version()}, PyTorch {torch.__version__}, {torch.cuda.get_device_name()}"
        Path("results/gpu.md").write_text(
            f"# Large problems on a GPU\n\n`python -m benchmarks.gpu` printed this ({versions}).\n\n{text}\n"
        )


if __name__ == "__main__":
    main()
