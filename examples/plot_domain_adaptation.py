"""
Domain adaptation
=================

Two moons with labels, and the same moons turned and shifted. `SparseTransport` moves the labelled points along a
sparse plan; neighbours among the moved points label the new ones.

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

move = SparseTransport(budget=60).fit(X, target=Y)
moved, links = move.transform(X), len(move.result_.mass)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, points, name in zip(axes, (X, moved), ("as they are", f"moved by {links} links"), strict=True):
    score = KNeighborsClassifier(3).fit(points, labels).score(Y, truth)
    ax.scatter(*Y.T, color="0.8", s=20, label="new points")
    ax.scatter(*points.T, c=labels, cmap="coolwarm", s=14, label="labelled points")
    ax.set_title(f"labelled points {name}: accuracy {score:.2f}")
    ax.set_axis_off()
axes[0].legend(loc="lower left")
figure.savefig("domain_adaptation.png", dpi=120)
