"""
Supply at most, demand exactly
==============================

Twelve depots have more capacity than sixty shops need. Every shop gets its demand, no depot sends more than it has, and
the number of links is limited: the cheapest plan of the linear programme, and one with as many links as shops. In the
third plan links cost something instead, whatever they carry. The white inside the rings is capacity that stays idle.

Writes senses.png.
"""

# %%
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st

rng = np.random.default_rng(0)
depots, shops = rng.random((12, 2)), rng.random((60, 2))
capacity, demand = rng.integers(150, 290, 12).astype(float), rng.integers(10, 45, 60).astype(float)
C = st.cost_matrix(depots, shops, "euclidean")

# %%
# Both sides are hard, ``unbalanced=inf``; ``sense`` says that the first one is an upper limit.
problem = st.Problem.from_matrices(C, capacity, demand, unbalanced=np.inf, sense=("<=", "="))
rent = 4.0 * np.repeat(rng.uniform(0.2, 1.8, (12, 1)), 60, axis=1)  # of a link, by its depot
plans = [st.solve(problem, budget=71), st.solve(problem, budget=60), st.solve(replace(problem, link_cost=rent))]
fig, axes = plt.subplots(1, 3, figsize=(13, 5), sharex=True, sharey=True, layout="constrained")
for ax, res in zip(axes, plans, strict=True):
    for i, j, mass in zip(res.rows, res.cols, res.mass, strict=True):
        ax.plot(*np.transpose([depots[i], shops[j]]), color="0.6", linewidth=0.05 * mass)
    ax.scatter(*shops.T, s=demand, color="tab:blue", label="demand")
    ax.scatter(*depots.T, s=2.0 * capacity, facecolors="white", edgecolors="tab:red", label="capacity", zorder=3)
    ax.scatter(*depots.T, s=2.0 * res.marginal_a, color="tab:orange", label="sent", zorder=4)
    ax.set(
        title=f"{len(res.mass)} links, cost {res.value_linear:.0f}, {res.idle[0].sum():.0f} idle",
        aspect="equal",
        xticks=[],
        yticks=[],
    )
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
fig.savefig("senses.png", dpi=120)
