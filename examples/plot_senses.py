"""
Supply at most, demand exactly
==============================

Twelve depots have more capacity than sixty shops need. Every shop gets its demand, no depot sends more than it has, and
the number of links is limited: the cheapest plan of the linear programme, and one with a link less for every ten shops.
The rings are capacity that stays idle.

Writes senses.png.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st

rng = np.random.default_rng(0)
depots, shops = rng.random((12, 2)), rng.random((60, 2))
capacity, demand = rng.integers(150, 290, 12).astype(float), rng.integers(10, 45, 60).astype(float)
C = st.cost_matrix(depots, shops, "euclidean")

# %%
# Both sides are hard, ``unbalanced=inf``; ``sense`` says that the first one is an upper limit.
fig, axes = plt.subplots(1, 2, figsize=(10, 5), sharex=True, sharey=True)
for ax, budget in zip(axes, (71, 60), strict=True):
    res = st.solve(C, capacity, demand, budget=budget, unbalanced=np.inf, sense=("<=", "="))
    for i, j, mass in zip(res.rows, res.cols, res.mass, strict=True):
        ax.plot(*np.transpose([depots[i], shops[j]]), color="0.6", linewidth=0.05 * mass)
    ax.scatter(*shops.T, s=demand, color="tab:blue", label="demand")
    ax.scatter(*depots.T, s=capacity, color="tab:orange", label="sent")
    ax.scatter(*depots.T, s=capacity + res.idle[0], facecolors="none", edgecolors="tab:red", label="idle")
    ax.set(title=f"{len(res.mass)} links, cost {res.value:.0f}, {res.idle[0].sum():.0f} idle", aspect="equal")
axes[0].legend(loc="upper right")
fig.savefig("senses.png", dpi=120)
