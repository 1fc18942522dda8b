"""
A kernel of your own
====================

Times of the day, where 23:30 is close to 0:30: the kernel of each side is a Gram matrix of any formula. The kernel
beside it does not know that the day is a circle.

Writes own_kernel.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st

rng = np.random.default_rng(0)
wanted = (rng.normal(0.0, 1.5, size=(50, 1))) % 24.0  # around midnight
offered = rng.uniform(0.0, 24.0, size=(40, 1))


def circular(X, Y):
    return np.exp((np.cos(2.0 * np.pi * (X - Y.T) / 24.0) - 1.0) / 0.02)


gap = np.abs(offered - wanted.T)
costs = np.minimum(gap, 24.0 - gap)
kernels = {"circular": (circular(offered, offered), circular(wanted, wanted))}
kernels["RBF"] = (st.RBF(0.3).gram(offered), st.RBF(0.3).gram(wanted))

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), subplot_kw={"projection": "polar"}, layout="constrained")
for ax, (name, kernel) in zip(axes, kernels.items(), strict=True):
    res = st.solve(costs, kernels=kernel, budget=12)
    for i, j, mass in zip(res.rows, res.cols, res.mass, strict=True):
        ends = np.radians(15.0 * np.array([offered[i, 0], wanted[j, 0]]))
        ax.plot(ends, [1.0, 0.7], color="0.4", linewidth=20.0 * mass)
    ax.scatter(np.radians(15.0 * offered), np.ones(40), s=12, color="#0072B2", label="offered")
    ax.scatter(np.radians(15.0 * wanted), np.full(50, 0.7), s=12, color="#D55E00", label="wanted")
    ax.set(xticks=np.radians([0, 90, 180, 270]), xticklabels=["0:00", "6:00", "12:00", "18:00"], yticks=[])
    ax.set_title(f"{name}: {len(res.mass)} links, error {100.0 * max(res.kernel_errors):.1f} %")
axes[0].legend(loc="lower left")
figure.savefig("own_kernel.png", dpi=120)
