"""
Large problems: gap against time
================================

Large problems are solved from dual prices, which prove how far the plan may be from the best one. Rounds of pivots
bring it nearer, in the end to the optimum, at the bottom. Numbers of points a side are 500 to 2,000 here, or those on
the command line: with 100,000 it takes some minutes (:doc:`/large-problems`).

Writes large.png.
"""

import sys
import time
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st

sizes = [int(text) for text in sys.argv[1:] if text.isdigit()] or [500, 1000, 2000]
figure, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
for size in [300, *sizes]:  # the first one loads compiled functions
    rng = np.random.default_rng(0)
    X, centres = rng.random((size, 2)), rng.random((20, 2))
    Y = centres[rng.integers(20, size=size)] + 0.08 * rng.normal(size=(size, 2))
    seconds, gaps = [], []
    for rounds in (0, 4, 16, 64):
        prices = replace(st.DEFAULT.prices, above=0, rounds=rounds, close=1e-6)
        start = time.process_time()
        res = st.solve_sample(X, Y, kernels=st.Delta(), effort=replace(st.DEFAULT, prices=prices))
        seconds.append(time.process_time() - start)
        gaps.append(max(res.relative_gap, 1e-6))
    if size in sizes:
        ax.loglog(seconds, gaps, "o-", label=f"{size:,} points a side, {res.mass.size:,} links")
ax.set(
    xlabel="seconds of the processor",
    ylabel="certified relative gap",
    title="Without a budget, after 0, 4, 16 and 64 rounds of pivots",
)
ax.grid(alpha=0.3)
ax.legend(loc="lower left", bbox_to_anchor=(0.16, 0.02))
figure.savefig("large.png", dpi=120)
