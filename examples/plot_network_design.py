"""
Network design
==============

Which links to build between plants and products, if demand is known only as a sample of scenarios.

Writes network_design.png.
"""

import numpy as np

from sparsetransport.apps.network_design import design, draw

rng = np.random.default_rng(0)
plants, products = 12, 12
profit = rng.uniform(0.8, 1.2, size=(plants, products))
demand = rng.normal(rng.uniform(0.7, 1.3, products), 0.3, size=(60, products)).clip(0.0)

network = design(profit, np.ones(plants), demand[:20], links=24, held_out=demand[20:], fixed=[(0, 0), (1, 1)])
for row in network.comparison:
    print(f"{row.name:16s} {row.links:4d} links: expected profit {row.held_out:.2f} on held-out scenarios")
print(f"{'this design':16s} {len(network.links):4d} links: expected profit {network.held_out.expected:.2f}")
draw(network).savefig("network_design.png", dpi=120)
