"""
Domain adaptation
=================

Two moons with labels, and the same moons turned and shifted. `SparseTransport` moves the labelled points along a
sparse plan; neighbours among the moved points label the new ones. Under a wide kernel links stand for many points,
whose averages shrink but keep their neighbours; under a narrow one points land where the new ones are.

Needs ``pip install sparsetransport[sklearn]``. Writes domain_adaptation.png.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.neighbors import KNeighborsClassifier

from sparsetransport.estimators import SparseTransport

X, labels = make_moons(100, noise=0.08, random_state=0)
Y, truth = make_moons(100, noise=0.08, random_state=1)
turn = np.radians(35.0)
Y = Y @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]) + [0.3, 0.4]

wide = SparseTransport(budget=60).fit(X, target=Y)
narrow = SparseTransport(budget=60, kernel="0.01*median", unbalanced="auto").fit(X, target=Y)
panels = {
    "as they are": X,
    f"moved by {len(wide.result_.mass)} links, default kernel": wide.transform(X),
    f"by {len(narrow.result_.mass)} links, narrow kernel": narrow.transform(X),
}

figure, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
for ax, (name, points) in zip(axes, panels.items(), strict=True):
    score = KNeighborsClassifier(3).fit(points, labels).score(Y, truth)
    ax.scatter(*Y.T, color="0.8", s=20, label="new points")
    ax.scatter(*points.T, c=labels, cmap="coolwarm", s=14, label="labelled points")
    ax.set_title(f"{name}: accuracy {score:.2f}")
    ax.set_axis_off()
axes[0].legend(loc="lower left")
figure.savefig("domain_adaptation.png", dpi=120)
