"""
How many links are enough
=========================

How many links are enough: plans for several budgets with their lower bounds, and a proven minimum.

Writes how_many_links.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st
from sparsetransport.plotting import plot_sweep

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(80, 2)), rng.normal(size=(60, 2)) + 1.0
problem = st.Problem.from_points(X, Y, kernels=st.RBF(0.5), reg=2.0)

found = st.solve_sweep(problem, budgets=range(10, 80, 10))
for res in found:
    print(f"{len(res.mass):3d} links: objective {res.value:.4f}, lower bound {res.certify().lower_bound:.4f}")
enough = st.solve_fewest(problem, within=0.1)
print(f"within 10 % of the unbudgeted optimum: {enough.budget} links, proven minimum {enough.at_least}")

ax = plot_sweep(found)
ax.axhline(enough.target, color="0.5", linewidth=1.0)
ax.annotate("within 10 % of the best", (10, enough.target), (0, -11), textcoords="offset points", color="0.35")
plt.savefig("how_many_links.png", dpi=120)
