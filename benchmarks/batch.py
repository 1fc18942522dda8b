"""Ten thousand problems of 25 x 25, on one core and on two, against the published algorithm."""

import time

import numpy as np

import sparsetransport as st

from .table import Table

COUNT, SIZE, LETTERS = 10_000, 25, 40
SETTING = {"budget": SIZE, "unbalanced": 10.0, "reg": 0.1}


def run() -> Table:
    costs = np.random.default_rng(0).random((COUNT, SIZE, SIZE))
    letter = {"inner": "apgd", "reclaim": False, "tol": 1e-300, "max_iter": 100}
    st.solve_batch(costs[:300], n_jobs=2, **SETTING)
    st.solve(costs[0], **SETTING, **letter)
    one = two = quick = alone = np.inf
    for _ in range(5):
        one = min(one, _seconds(lambda: _read(st.solve_batch(costs, n_jobs=1, **SETTING))) / COUNT)
        two = min(two, _seconds(lambda: _read(st.solve_batch(costs, n_jobs=2, **SETTING))) / COUNT)
        quick = min(quick, _seconds(lambda: [st.solve(C, polish="quick", **SETTING) for C in costs[:500]]) / 500)
        alone = min(alone, _seconds(lambda: [st.solve(C, **SETTING) for C in costs[:100]]) / 100)
    literal = _seconds(lambda: [st.solve(C, **SETTING, **letter) for C in costs[:LETTERS]]) / LETTERS
    worse = sum(
        ours.value > st.solve(C, **SETTING, **letter).value * (1.0 + 1e-12)
        for C, ours in zip(costs[:LETTERS], st.solve_batch(costs[:LETTERS], **SETTING), strict=True)
    )
    table = Table(
        f"{COUNT:,} random {SIZE}×{SIZE} problems, K = {SIZE}, from cost matrices to values and links",
        ["how", "ms a problem", "times as fast as the letter"],
        [
            [name, f"{seconds * 1e3:.3f}", f"{literal / seconds:.2g}×"]
            for name, seconds in (
                ("`solve_batch`, one core", one),
                ("`solve_batch`, two cores", two),
                ("`solve` with the same polish, one after another", quick),
                ("`solve` as it is, which grafts links", alone),
                ("the letter, 100 APGD iterations a step, compiled", literal),
            )
        ],
    )
    table.claim(f"at most 0.25 ms a problem a core ({one * 1e3:.3f}; the paper: 1,060)", one <= 0.25e-3)
    table.claim(f"two cores at least 1.7 times one ({one / two:.2f})", one / two >= 1.7)
    table.claim(f"the objective is never worse than the letter's ({worse} of {LETTERS} are)", worse == 0)
    return table


def _read(results: list[st.Result]) -> None:
    """What is made when it is first asked for belongs to the time."""
    for result in results:
        _ = result.value, result.rows, result.cols, result.mass


def _seconds(function: object) -> float:
    start = time.perf_counter()
    function()  # type: ignore[operator]
    return time.perf_counter() - start
