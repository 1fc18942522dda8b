"""
Warm starts along a path
========================

From soft to nearly hard marginals: each plan is the warm start of the next, with ten times the weight.

Writes warm_path.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(60, 2)), rng.normal(size=(50, 2)) + 1.0
C = st.cost_matrix(X, Y)

weights, results, start = np.geomspace(1.0, 1e5, 11), [], None
for weight in weights:
    start = st.solve(st.Problem.from_matrices(C, unbalanced=weight), start=start)
    results.append(start)

figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
ax.semilogx(weights, [100.0 * res.marginal_errors[0] for res in results], color="#D55E00")
ax.set(xlabel="weight of marginal errors", ylabel="marginal error, per cent")
links = ax.twinx()
links.semilogx(weights, [len(res.mass) for res in results], color="#0072B2")
links.set_ylabel("links", color="#0072B2")
ax.yaxis.label.set_color("#D55E00")
figure.savefig("warm_path.png", dpi=120)
