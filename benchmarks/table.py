"""A table of measurements, and how to measure: warm up first, best of several runs, ratios within one process."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Table:
    title: str
    columns: list[str]
    rows: list[list[Any]]
    claims: list[tuple[str, bool]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def claim(self, text: str, holds: bool) -> None:
        self.claims.append((text, bool(holds)))

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", "| " + " | ".join(self.columns) + " |", "|" + "---|" * len(self.columns)]
        lines += ["| " + " | ".join(map(str, row)) + " |" for row in self.rows]
        lines += ["", *(f"- {'holds' if holds else 'DOES NOT HOLD'}: {text}" for text, holds in self.claims)]
        lines += ["", *self.notes] if self.notes else []
        return "\n".join(lines)


def best_time(function: Callable[[], Any], repeats: int = 5) -> tuple[float, Any]:
    """Seconds of the fastest of several runs after one to warm up, and what the last run returned.

    With no repeats there is one run and no warming up: for what needs none and takes long.
    """
    result = function() if repeats else None
    times = []
    for _ in range(max(repeats, 1)):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def seconds(value: float) -> str:
    return f"{value * 1e6:.0f} µs" if value < 1e-3 else f"{value * 1e3:.3g} ms" if value < 1.0 else f"{value:.3g} s"
