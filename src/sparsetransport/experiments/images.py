"""The problem that the paper's duality-gap and timing experiments solve: two batches of images."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import Problem, cost_matrix
from .._checks import Floats
from . import cifar

PER_COLUMN = 4
KERNELS = ("IMQ-v2", "IMQ", "RBF")


class Batches(NamedTuple):
    """Two sets of flattened images with values in [-1, 1]."""

    x: Floats
    y: Floats

    def problem(self, kernel: str, unbalanced: float, reg: float) -> Problem:
        """Squared Euclidean costs divided by the largest, uniform masses, the published code's Gram matrices."""
        cost = cost_matrix(self.x, self.y, "sqeuclidean", normalize=True)
        kernels = published_gram(self.x, kernel), published_gram(self.y, kernel)
        return Problem.from_matrices(cost, kernels=kernels, unbalanced=unbalanced, reg=reg)


def read(data: Path | None, *, size: int = 100) -> Batches:
    """The first images of CIFAR-10 against the next ones."""
    return _split(cifar.load(data, count=2 * size).images, size)


def stand_in(size: int = 100, seed: int = 0) -> Batches:
    """Smooth random colour images, with a few low frequencies in each channel, for tests without the data."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0.0, 1.0, 32)
    waves = np.stack([np.cos(np.pi * k * grid) / (1.0 + k) for k in range(8)])
    weight = rng.normal(size=(2 * size, 3, 8, 8))
    pictures = np.einsum("tcij,ix,jy->txyc", weight, waves, waves) + rng.normal(0.0, 0.05, (2 * size, 32, 32, 3))
    pictures = 60.0 * pictures + rng.normal(118.0, 45.0, (2 * size, 1, 1, 1))
    return _split(np.clip(pictures, 0.0, 255.0).astype(np.uint8), size)


def _split(images: NDArray[np.uint8], size: int) -> Batches:
    pixels = (images.reshape(2 * size, -1) / 255.0 - 0.5) / 0.5
    return Batches(pixels[:size], pixels[size:])


def published_gram(points: Floats, kernel: str) -> Floats:
    """The Gram matrix of the published code.

    Its bandwidth σ² is half the median of the *unsquared* distances, zeros on the diagonal included. This is not the
    median heuristic, whose unit is that of a squared distance, but the tables of the paper were made with it.
    """
    square = cost_matrix(points, points, "sqeuclidean")
    sigma2 = 0.5 * float(np.median(np.sqrt(square)))
    if kernel == "RBF":
        gram = np.exp(-square / (2.0 * sigma2))
    elif kernel == "IMQ":
        gram = (sigma2 + square) ** -0.5
    else:
        gram = ((1.0 + square) / sigma2) ** -0.5
    return np.asarray(gram + 1e-10 * np.eye(len(points)))
