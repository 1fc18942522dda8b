"""
Bounds closing in
=================

The objective falls as links are added, and lower bounds rise: no plan with as many links lies below the band. With a
larger ``reg`` the bound knows the budget better.

Writes bounds.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st
from sparsetransport.plotting import plot_path

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) + 1.0

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, reg in zip(axes, (0.2, 5.0), strict=True):
    res = st.solve_sample(X, Y, budget=30, reg=reg, kernels=st.RBF(0.3))
    plot_path(res, ax=ax, bounds=5)
    ax.set_title(f"reg = {reg:g}: certified gap {100.0 * res.certify().relative_gap:.1f} %")
figure.savefig("bounds.png", dpi=120)
