"""The router on a GPU: the time of a batch, and the objective of the plan against that of OMP.

Two steps, since OMP with 8,192 entries takes minutes on a CPU and the GPU is better used otherwise:

    python -m benchmarks.router reference results/router/reference.json
    python -m benchmarks.router time results/router/reference.json --out results/router
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import sparsetransport as st
from sparsetransport import nn
from sparsetransport.nn.assignment import objective

REG = 10.0


class Case(NamedTuple):
    """A batch to route."""

    tokens: int
    experts: int
    k: int
    features: int
    unbalanced: float
    goal: float  # milliseconds

    @property
    def name(self) -> str:
        return f"{self.tokens} x {self.experts}, k = {self.k}, λ1 = {self.unbalanced:g}"

    def draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of a random linear gate, and the features it looked at."""
        rng = np.random.default_rng(0)
        features = rng.standard_normal((self.tokens, self.features))
        gate = rng.standard_normal((self.features, self.experts)) / self.features**0.5
        return torch.tensor(features @ gate, dtype=torch.float32), torch.tensor(features, dtype=torch.float32)


CASES = [Case(128, 4, 1, 3072, weight, 1.0) for weight in (0.1, 10.0, 1000.0)]
CASES += [Case(4096, 64, 2, 64, weight, 20.0) for weight in (0.1, 10.0)]


def reference(path: Path) -> None:
    """The objective of one-at-a-time OMP on the CPU, in double precision."""
    found = {}
    for case in CASES:
        logits, features = case.draw()
        probabilities = logits.double().softmax(1).numpy()
        problem = st.Problem.from_matrices(
            -(probabilities / probabilities.max()).T,
            np.full(case.experts, case.tokens / case.experts),
            np.ones(case.tokens),
            kernels=(st.Delta(), st.IMQv2().gram(features.double().numpy())),
            unbalanced=case.unbalanced,
            reg=REG,
        )
        begin = time.perf_counter()
        result = st.solve(problem, budget=st.PerColumn(case.k), polish=False)
        found[case.name] = {"objective": result.value, "seconds": time.perf_counter() - begin}
        print(case.name, found[case.name], flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def milliseconds(call: Any, device: str, repeats: int = 50) -> tuple[float, float]:
    """Median and 90th percentile of the wall-clock time of a call, until its result is there."""
    seconds = []
    for _ in range(repeats):
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(1000.0 * (time.perf_counter() - begin))
    return statistics.median(seconds), sorted(seconds)[int(0.9 * len(seconds))]


def measure(case: Case, device: str, known: dict[str, Any]) -> dict[str, Any]:
    """Times of the whole router, logits in and weights out, and of plain top-k; the objective against OMP's."""
    logits, features = (each.to(device) for each in case.draw())
    router = nn.SparseTransportRouter(case.experts, case.k, unbalanced=case.unbalanced, reg=REG).to(device)
    plain = nn.TopKRouter(case.experts, case.k).to(device)
    eager = nn.SparseTransportRouter(case.experts, case.k, unbalanced=case.unbalanced, reg=REG, graphs=False).to(device)
    for _ in range(5):
        router(logits, features), plain(logits), eager(logits, features)
    timed, slow = milliseconds(lambda: router(logits, features), device)
    row = {
        "case": case.name,
        "goal ms": case.goal,
        "router ms": timed,
        "90 % below": slow,
        "without graphs ms": milliseconds(lambda: eager(logits, features), device, 10)[0],
        "whole plan ms": milliseconds(lambda: router.plan(logits, features), device, 10)[0],
        "top-k ms": milliseconds(lambda: plain(logits), device)[0],
    }
    probabilities = logits.softmax(1)
    found = router.plan(logits, features)
    gram = nn.gram_matrix(st.IMQv2(), features.double())
    values = probabilities.double() / probabilities.amax()
    value = float(objective(values, *router.capacities(probabilities), gram, found, router.setting))
    load = torch.bincount(found.experts.flatten(), minlength=case.experts)
    row |= {"objective": value, "fullest": int(load.max()), "emptiest": int(load.min())}
    if case.name in known:
        row["OMP"] = known[case.name]["objective"]
        row["above OMP"] = value / row["OMP"] - 1.0
        row["OMP seconds on a CPU"] = known[case.name]["seconds"]
    return row


def table(rows: list[dict[str, Any]], device: str) -> str:
    """The rows as Markdown."""
    columns = list(rows[0])
    lines = [f"Device: {device}, PyTorch {torch.__version__}.", ""]
    lines += ["| " + " | ".join(columns) + " |", "|---|" + "--:|" * (len(columns) - 1)]
    for row in rows:
        cells = [
            f"{row.get(name, ''):.4g}" if isinstance(row.get(name), float) else str(row.get(name, ""))
            for name in columns
        ]
        lines.append("| " + " | ".join(cells) + " |")
    fast = all(row["router ms"] <= row["goal ms"] for row in rows)
    near = all(row.get("above OMP", 0.0) <= 0.01 for row in rows)
    lines += ["", f"- {'holds' if fast else 'DOES NOT HOLD'}: every batch within its goal"]
    lines += [f"- {'holds' if near else 'DOES NOT HOLD'}: every objective at most 1 % above OMP's"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """One of the two steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=["reference", "time"])
    parser.add_argument("reference", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.step == "reference":
        reference(given.reference)
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    known = json.loads(given.reference.read_text(encoding="utf-8")) if given.reference.is_file() else {}
    rows = []
    for case in CASES:
        rows.append(measure(case, device, known))
        print(rows[-1], flush=True)
    text = table(rows, torch.cuda.get_device_name() if device == "cuda" else "CPU")
    print(text)
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        command = "Made by `python -m benchmarks.router reference results/router/reference.json` on a CPU, then "
        command += "`python -m benchmarks.router time results/router/reference.json --out results/router` on the GPU.\n"
        (given.out / "table.md").write_text(f"## The router\n\n{text}\n{command}", encoding="utf-8")
        (given.out / "table.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
