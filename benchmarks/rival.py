"""This tree against an earlier commit, in the same run: objectives and times of the same calls as ratios.

python -m benchmarks.rival REVISION

The commit is checked out as a worktree in a temporary folder. A child process of the same Python runs each version, one
at a time, in turns, so that both meet the same machine; each keeps compiled functions beside its own source.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

TURNS = 3


def cases() -> dict[str, Callable[[], float]]:
    """Calls that both versions know, each giving the objective."""
    import sparsetransport as st

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 2)), rng.normal(size=(80, 2)) + 1.0
    a, b = rng.dirichlet(np.ones(300)), rng.dirichlet(np.ones(300))
    C, small = rng.random((300, 300)), rng.random((30, 25))
    stack = rng.random((500, 25, 25))
    scenarios = [st.Problem.from_matrices(C[:60, :50], np.full(60, 1 / 60), d) for d in rng.random((6, 50)) / 25]
    found: dict[str, Callable[[], float]] = {
        "README: 100×80 points, 50 links, reg": lambda: (
            st.solve_sample(X, Y, kernels="median", budget=50, reg=1.0, gap_tol=1e-3).value
        ),
        "30×25, 20 links": lambda: st.solve(small, budget=20).value,
        "30×25, 20 links, quick": lambda: st.solve(small, budget=20, polish="quick").value,
        "500 problems of 25×25": lambda: sum(one.value for one in st.solve_batch(stack, budget=25, reg=0.1)),
        "6 scenarios of 60×50, 40 links": lambda: st.solve_shared(scenarios, budget=40, n_jobs=1).value,
        "1,000×1,000 points, Delta, no budget": lambda: _large(st),
    }
    for links in (10, 20, 50):
        found[f"100×80 points, {links} links"] = lambda k=links: st.solve_sample(X, Y, kernels="median", budget=k).value
        found[f"100×80 points, RBF(0.1), {links} links"] = lambda k=links: (
            st.solve_sample(X, Y, budget=k, kernels=st.RBF(0.1)).value
        )
    budgets = {
        "150 links": 150,
        "300 links": 300,
        "450 links": 450,
        "1 a row": st.PerRow(1),
        "2 a row": st.PerRow(2),
        "1 a column": st.PerColumn(1),
        "2 a row and a column": st.PerRow(2) & st.PerColumn(2),
    }
    for name, budget in budgets.items():
        found[f"300×300, Delta, {name}"] = lambda k=budget: st.solve(C, a, b, budget=k).value
    return found


def _large(st: object) -> float:
    rng = np.random.default_rng(1)
    X, Y = rng.random((1000, 2)), rng.random((1000, 2))
    return st.solve_sample(X, Y, kernels=st.Delta()).value  # type: ignore[attr-defined, no-any-return]


def measure() -> None:
    """Print objective and CPU seconds of every case, the first call of each left out."""
    warnings.simplefilter("ignore")
    out = {}
    for name, call in cases().items():
        call()
        start = time.process_time()
        value = call()
        out[name] = value, time.process_time() - start
    print(json.dumps(out))


def main(revision: str) -> None:
    from .table import Table

    root = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        rival = Path(folder) / "rival"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", rival, revision], cwd=root, check=True)
        try:
            turns = [(_child(root, rival), _child(root, root)) for _ in range(TURNS)]
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", rival], cwd=root, check=True)
    table = Table(f"This tree against {revision}", ["what", "objective", "time before", "time", "ratio"], [])
    worse, slower = [], []
    for name in turns[0][0]:
        (value, before), (ours, now) = (
            min((turn[side][name] for turn in turns), key=lambda one: one[1]) for side in (0, 1)
        )
        table.rows.append(
            [name, f"{ours / value:.4f}", f"{before * 1e3:.1f} ms", f"{now * 1e3:.1f} ms", f"{now / before:.2f}"]
        )
        worse += [name] if ours > value * 1.001 else []
        slower += [name] if now > before * 1.1 else []
    table.claim(f"no objective worse by more than 0.1 % ({', '.join(worse) or 'none is'})", not worse)
    table.claim(f"no time worse by more than 10 % ({', '.join(slower) or 'none is'})", not slower)
    print(table.markdown())


def _child(root: Path, tree: Path) -> dict[str, tuple[float, float]]:
    """What one version measures, in a process of its own."""
    environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{root}", "OPENBLAS_NUM_THREADS": "1"}
    call = [sys.executable, "-c", "from benchmarks.rival import measure; measure()"]
    done = subprocess.run(call, cwd=root, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, tuple[float, float]] = json.loads(done.stdout.splitlines()[-1])
    return measured


if __name__ == "__main__":
    main(sys.argv[1])
