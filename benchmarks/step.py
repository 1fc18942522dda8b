"""One greedy step on a large dense problem against one pass of NumPy over the costs."""

import subprocess
import sys

import numpy as np

import sparsetransport as st

from .table import Table, best_time, seconds

SIZE, BUDGET = 5000, 50


def run() -> Table:
    cost = np.random.default_rng(0).random((SIZE, SIZE))
    scan, _ = best_time(cost.min)
    total, result = best_time(lambda: st.solve(cost, budget=BUDGET, unbalanced=1000.0), 3)
    steps = len(result.path)
    peak = _peak_memory()
    size = cost.nbytes
    table = Table(
        f"One greedy step, {SIZE}×{SIZE}, K = {BUDGET}",
        ["C.min()", "solve, checks included", "steps", "a step", "a step / C.min()", "C", "peak on top of C"],
        [
            [seconds(scan), seconds(total), steps, seconds(total / steps), f"{total / steps / scan:.2f}"]
            + [f"{size / 1e6:.0f} MB", f"{peak / 1e6:.0f} MB"]
        ],
    )
    table.claim(f"at most 1.5 times C.min() ({total / steps / scan:.2f})", total / steps <= 1.5 * scan)
    table.claim(f"peak memory below 1.5 times C on top of C ({peak / size:.2f})", peak < 1.5 * size)
    return table


def _peak_memory() -> int:
    """Bytes by which a solve raises the peak of a fresh process that holds C."""
    script = f"""
import resource, numpy as np, sparsetransport as st
st.solve(np.eye(4), budget=2)
cost = np.random.default_rng(0).random(({SIZE}, {SIZE}))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
st.solve(cost, budget={BUDGET}, unbalanced=1000.0)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return int(done.stdout)
