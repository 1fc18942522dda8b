"""Large problems on a GPU: time, certified gap and memory; needs CUDA, and keeps its tables in ``results/gpu.md``.

python -m benchmarks.gpu            all rows
python -m benchmarks.gpu 100000     rows of at most so many points a side
"""

import platform
import sys
import time
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


def main() -> None:
    text = run(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9).markdown()
    print(text)
    if len(sys.argv) == 1:
        versions = f"Python {platform.python_version()}, PyTorch {torch.__version__}, {torch.cuda.get_device_name()}"
        Path("results/gpu.md").write_text(
            f"# Large problems on a GPU\n\n`python -m benchmarks.gpu` printed this ({versions}).\n\n{text}\n"
        )


if __name__ == "__main__":
    main()
