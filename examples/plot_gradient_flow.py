"""
Gradient flow
=============

Points that follow a sparse plan towards a ring: at every step a new plan with 60 links says where each of them goes,
and each takes a quarter of its way.

Writes gradient_flow.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsetransport as st

rng = np.random.default_rng(0)
angle = np.linspace(0.0, 2.0 * np.pi, 120, endpoint=False)
ring = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.03 * rng.normal(size=(120, 2))
points = 0.2 * rng.normal(size=(100, 2)) + [2.0, 0.0]

figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
for step in range(13):
    res = st.solve_sample(points, ring, budget=60, kernels=st.RBF(0.01), effort="quick")
    if step % 4 == 0:
        ax = axes[step // 4]
        ax.scatter(*ring.T, s=6, color="0.8")
        ax.scatter(*points.T, s=8, color="#0072B2")
        ax.set(xlim=(-1.3, 2.7), ylim=(-1.4, 1.4), title=f"step {step}: cost {res.value_linear:.3f}")
        ax.set_axis_off()
    points = points + 0.25 * (res.a_to_b - points)
figure.savefig("gradient_flow.png", dpi=120)
