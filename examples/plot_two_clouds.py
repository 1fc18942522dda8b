"""
Two clouds of points
====================

Two point clouds with budgets of 10, 30 and 90 links: the plans, their objectives and certified gaps.

Writes two_clouds.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st
from sparsetransport.plotting import plot_edges

rng = np.random.default_rng(1)
angle = rng.uniform(0.0, 2.0 * np.pi, 60)
X = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.12 * rng.normal(size=(60, 2))
Y = np.array([[2.2, 0.3], [-0.2, 2.0], [1.8, 1.9]])[rng.integers(3, size=40)] + 0.25 * rng.normal(size=(40, 2))

figure, axes = plt.subplots(1, 3, figsize=(12, 4.6), layout="constrained")
for ax, budget in zip(axes, (10, 30, 90), strict=True):
    res = st.solve_sample(X, Y, budget=budget, kernels=st.RBF(0.1), unbalanced=100.0, reg=1.0, gap_tol=1e-3)
    plot_edges(X, Y, res, ax=ax)
    ax.set_title(f"{len(res.mass)} links: objective {res.value:.3f}, gap {100.0 * res.relative_gap:.1f} %")
    ax.set_axis_off()
figure.savefig("two_clouds.png", dpi=120)
