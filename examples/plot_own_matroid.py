"""
A matroid of your own
=====================

Links must not form a cycle: a budget with one method, ``can_add``. Beside it the same number of links without that
condition.

Writes own_matroid.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st
from sparsetransport.plotting import plot_edges


class Forest(st.Matroid):
    """Links that join two different trees."""

    def can_add(self, support, pair):
        joined = {}

        def root(point):
            while point in joined:
                point = joined[point]
            return point

        for i, j in support:
            joined[root(("row", i))] = root(("column", j))
        return root(("row", pair[0])) != root(("column", pair[1]))


rng = np.random.default_rng(0)
X, Y = rng.normal(size=(12, 2)), rng.normal(size=(9, 2)) + [2.0, 0.5]
forest = st.solve_sample(X, Y, budget=Forest(), kernels=st.RBF(0.05), reg=20.0, effort="quick")
plain = st.solve_sample(X, Y, budget=len(forest.mass), kernels=st.RBF(0.05), reg=20.0)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, res, name in zip(axes, (forest, plain), ("no cycles", "no condition"), strict=True):
    plot_edges(X, Y, res, ax=ax)
    ax.set_title(f"{name}: {len(res.mass)} links, objective {res.value:.3f}")
    ax.set_axis_off()
figure.savefig("own_matroid.png", dpi=120)
