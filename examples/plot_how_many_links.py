"""How many links are enough? One solve shows the plans on the way, and the bounds say what is left to gain.

The plans on the way are not polished: ``solve(budget=k)`` finds better ones, but would have to run for every k.

Writes how_many_links.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st
from sparsetransport.plotting import plot_path

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(80, 2)), rng.normal(size=(60, 2)) + 1.0
res = st.solve_sample(X, Y, budget=70, kernels=st.RBF(0.5), reg=2.0, gap_tol=1e-3)

ax = plot_path(res, bounds=10)
ax.set_title(f"{len(res.mass)} links: certified gap {100.0 * res.relative_gap:.1f} %")
for entries in (10, 30, 50, 70):
    plan = res.path.plan_at(entries)
    print(f"{entries:3d} links: objective {plan.value:.4f}, no plan below {plan.certify().lower_bound:.4f}")
plt.savefig("how_many_links.png", dpi=120)
