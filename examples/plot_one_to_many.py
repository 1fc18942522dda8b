"""
One-to-many matching with limits
================================

Every patient gets one clinic, and every clinic takes at most three patients: the budget is an intersection, and far
pairs are forbidden.

Writes one_to_many.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st
from sparsetransport.plotting import plot_edges

rng = np.random.default_rng(3)
clinics, patients = rng.uniform(size=(10, 2)), rng.uniform(size=(24, 2))
costs = st.cost_matrix(clinics, patients, "euclidean")
costs[costs > 0.5] = np.inf

budget = st.PerRow(3) & st.PerColumn(1)
res = st.solve(costs, np.full(10, 2.4), np.ones(24), budget=budget, unbalanced="10*auto")
print(res.summary())

ax = plt.figure(figsize=(6, 5), layout="constrained").gca()
plot_edges(clinics, patients, res, ax=ax)
ax.set_title(f"{len(res.mass)} of 24 patients, at most {np.bincount(res.rows).max()} for a clinic")
ax.set_axis_off()
plt.savefig("one_to_many.png", dpi=120)
