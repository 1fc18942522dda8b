"""
Large problems: gap against time
================================

Large problems are solved from dual prices, which prove how far the plan may be from the best one. Rounds of pivots bring
it nearer. Numbers of points a side are 1,000 and 4,000 here, or those on the command line: with 100,000 it takes some
minutes (:doc:`/large-problems`).

Writes large.png.
"""

import sys
import time
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st

sizes = [int(text) for text in sys.argv[1:] if text.isdigit()] or [1000, 4000]
figure, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
for size in [300, *sizes]:  # the first one loads compiled functions
    rng = np.random.default_rng(0)
    X, centres = rng.random((size, 2)), rng.random((20, 2))
    Y = centres[rng.integers(20, size=size)] + 0.08 * rng.normal(size=(size, 2))
    seconds, gaps = [], []
    for rounds in (0, 1, 2, 4, 8):
        prices = replace(st.DEFAULT.prices, above=0, rounds=rounds, close=1e-6)
        start = time.perf_counter()
        res = st.solve_sample(X, Y, kernels=st.Delta(), effort=replace(st.DEFAULT, prices=prices))
        seconds.append(time.perf_counter() - start)
        gaps.append(res.relative_gap)
    if size in sizes:
        ax.loglog(seconds, gaps, "o-", label=f"{size:,} points a side, {res.mass.size:,} links")
ax.set(xlabel="seconds", ylabel="certified relative gap", title="Without a budget, after 0, 1, 2, 4 and 8 rounds of pivots")
ax.grid(alpha=0.3, which="both")
ax.legend(frameon=False)
figure.savefig("large.png", dpi=120)
