"""Startup of a process: the import, and the first solve with a cold and with a warm cache of compiled functions."""

import os
import subprocess
import sys
import tempfile

from .table import Table, seconds

IMPORT = "import time; t = time.perf_counter(); import sparsetransport; print(time.perf_counter() - t)"
SOLVE = """
import time, numpy as np, sparsetransport as st
cost = np.random.default_rng(0).random((30, 25))
t = time.perf_counter(); st.solve(cost, budget=20); print(time.perf_counter() - t)
t = time.perf_counter(); st.solve(cost, budget=20); print(time.perf_counter() - t)
"""


def run() -> Table:
    imports = min(_run(IMPORT, {})[0] for _ in range(5))
    with tempfile.TemporaryDirectory() as cache:
        cold = _run(SOLVE, {"NUMBA_CACHE_DIR": cache})
        warm = _run(SOLVE, {"NUMBA_CACHE_DIR": cache})
    table = Table(
        "A fresh process (30×25, K = 20)",
        ["import", "first solve, cold cache", "first solve, warm cache", "every solve after that"],
        [[seconds(imports), seconds(cold[0]), seconds(warm[0]), seconds(warm[1])]],
    )
    table.claim(f"import in less than 0.5 s ({imports:.2f} s)", imports < 0.5)
    return table


def _run(script: str, environment: dict[str, str]) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env={**os.environ, **environment}
    )
    return [float(line) for line in done.stdout.split()]
