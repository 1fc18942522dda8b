"""
Budgets side by side
====================

One problem under four budgets, each plan drawn as a matrix.

Writes budgets.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st
from sparsetransport.plotting import plot_plan

rng = np.random.default_rng(0)
X, Y = np.sort(rng.normal(size=(25, 1)), axis=0), np.sort(rng.normal(size=(20, 1)), axis=0)
budgets = {
    "none": None,
    "20 in all": 20,
    "one a column": st.PerColumn(1),
    "one a row, one a column": st.PerRow(1) & st.PerColumn(1),
}

figure, axes = plt.subplots(1, 4, figsize=(14, 5.0), layout="constrained")
for ax, (name, budget) in zip(axes, budgets.items(), strict=True):
    res = st.solve_sample(X, Y, kernels=st.RBF(0.02), unbalanced=20.0, reg=3.0, budget=budget)
    plot_plan(res, ax=ax)
    ax.set_title(f"budget: {name}\n{len(res.mass)} entries, objective {res.value:.3f}")
    ax.set(xticks=[], yticks=[])
figure.savefig("budgets.png", dpi=120)
