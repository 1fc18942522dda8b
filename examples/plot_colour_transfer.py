"""
Colour transfer
===============

A picture in the colours of another: two palettes of 64 colours, and a plan with 100 links between them.

Needs ``pip install sparsetransport[sklearn]``. Writes colour_transfer.png.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_sample_images

from sparsetransport.apps.colour_transfer import colour_transfer

pagoda, flower = (image[::3, ::3] for image in load_sample_images().images)
transfer = colour_transfer(pagoda, flower, colours=64, budget=100, rng=0)

figure, axes = plt.subplots(1, 3, figsize=(12, 3.0), layout="constrained")
pictures = {"picture": pagoda, "colours": flower, f"{len(transfer.result.mass)} links": transfer.image}
for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
    ax.imshow(picture)
    ax.set_title(name)
    ax.set_axis_off()
figure.savefig("colour_transfer.png", dpi=120)
