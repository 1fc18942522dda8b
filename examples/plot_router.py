"""
Loads of a router
=================

Routing a batch of tokens to eight experts: the load of each, and the gate probability that balance costs.

Writes router.png.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from sparsetransport import nn

generator = torch.Generator().manual_seed(0)
features = torch.randn(512, 16, generator=generator)
logits = features @ torch.randn(16, 8, generator=generator) / 2.0 + torch.linspace(1.5, -1.5, 8)

routers = {
    "top-1": nn.TopKRouter(8),
    "λ = 0.001": nn.SparseTransportRouter(8, unbalanced=0.001),
    "λ = 0.01": nn.SparseTransportRouter(8, unbalanced=0.01),
    "λ = 1": nn.SparseTransportRouter(8, unbalanced=1.0),
}
figure, axes = plt.subplots(1, len(routers), figsize=(13, 3.6), sharey=True, layout="constrained")
for ax, (name, router) in zip(axes, routers.items(), strict=True):
    routing = router(logits, features)
    ax.bar(np.arange(8), routing.load.numpy(), color="#0072B2")
    ax.axhline(512 / 8, color="#D55E00", linewidth=1.0)
    ax.set_title(f"{name}\nmean probability {routing.weights.mean():.2f}", fontsize=11)
    ax.set(xlabel="expert", xticks=range(8))
axes[0].set_ylabel("tokens")
figure.savefig("router.png", dpi=120)
