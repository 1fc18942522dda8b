"""The 200 images of the paper's duality-gap experiment: the first of CIFAR-10, or a fixed stand-in of the same size.

``$SPARSETRANSPORT_DATA`` names a folder with ``cifar-10-batches-py/data_batch_1``, or with the sprite
``data_batch_1.png`` (one image a row), at any depth.
"""

import os
import pickle
from pathlib import Path

import numpy as np


def images() -> tuple[np.ndarray, np.ndarray, str]:
    """Two times 100 flattened images with values in [-1, 1], and where they come from."""
    raw, source = _cifar(), "CIFAR-10"
    if raw is None:
        raw, source = _stand_in(), "synthetic stand-in (set SPARSETRANSPORT_DATA for CIFAR-10)"
    pixels = (raw.reshape(200, -1) / 255.0 - 0.5) / 0.5
    return pixels[:100], pixels[100:], source


def _cifar() -> np.ndarray | None:
    folder = os.environ.get("SPARSETRANSPORT_DATA")
    if not folder:
        return None
    for path in sorted(Path(folder).rglob("data_batch_1")):
        with path.open("rb") as file:
            batch = pickle.load(file, encoding="bytes")
        return batch[b"data"][:200].reshape(200, 3, 1024).transpose(0, 2, 1).astype(float)
    for path in sorted(Path(folder).rglob("data_batch_1.png")):
        from PIL import Image

        with Image.open(path) as sprite:
            return np.asarray(sprite.convert("RGB").crop((0, 0, 1024, 200)), float)
    return None


def _stand_in() -> np.ndarray:
    """Smooth random colour images: a few low frequencies in each channel, as photographs have."""
    rng = np.random.default_rng(20240601)
    grid = np.linspace(0.0, 1.0, 32)
    waves = np.stack([np.cos(np.pi * k * grid) / (1.0 + k) for k in range(8)])
    weight = rng.normal(size=(200, 3, 8, 8))
    picture = np.einsum("tcij,ix,jy->txyc", weight, waves, waves) + rng.normal(0.0, 0.05, (200, 32, 32, 3))
    picture = picture * 60.0 + rng.normal(118.0, 45.0, (200, 1, 1, 1))
    return np.clip(picture, 0.0, 255.0).round()


def paper_gram(points: np.ndarray, kernel: str) -> np.ndarray:
    """The Gram matrix with the bandwidth of the published code: half the median of the *unsquared* distances."""
    square = np.maximum(((points[:, None] - points[None]) ** 2).sum(-1), 0.0)
    sigma2 = 0.5 * np.median(np.sqrt(square))
    gram = {
        "RBF": lambda: np.exp(-square / (2.0 * sigma2)),
        "IMQ": lambda: (sigma2 + square) ** -0.5,
        "IMQ-v2": lambda: ((1.0 + square) / sigma2) ** -0.5,
    }[kernel]()
    return gram + 1e-10 * np.eye(len(points))


def paper_problem(kernel: str) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], str]:
    """Cost (divided by its maximum), Gram matrices, and the source of the images."""
    x, y, source = images()
    cost = ((x[:, None] - y[None]) ** 2).sum(-1)
    return cost / cost.max(), (paper_gram(x, kernel), paper_gram(y, kernel)), source
