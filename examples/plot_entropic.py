"""
Sparse, exact and entropic plans
================================

The same two clouds by a budget of links, by exact transport and by entropic transport (POT's Sinkhorn).

Needs ``pip install sparsetransport[pot]``. Writes entropic.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st
from sparsetransport.baselines import entropic_ot, exact_ot
from sparsetransport.plotting import plot_edges

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) + [3.0, 1.0]
problem = st.Problem.from_points(X, Y, kernels=st.RBF(0.2))
plans = {
    "budget of 25 links": st.solve(problem, budget=25),
    "exact transport": exact_ot(problem),
    "entropic transport": entropic_ot(problem, reg=0.3),
}

figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
for ax, (name, res) in zip(axes, plans.items(), strict=True):
    plot_edges(X, Y, res, ax=ax)
    used = int((np.asarray(res.mass) > 1e-6).sum())
    ax.set_title(f"{name}: {used} links,\ncost {res.value_linear:.2f}, error {100.0 * max(res.kernel_errors):.1f} %")
    ax.set_axis_off()
figure.savefig("entropic.png", dpi=120)
