"""The images of the mixture-of-experts experiment: CIFAR-10, and CIFAR-10 rotated by 30°."""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

ANGLE = 30.0
CROP = 24
BLUR = (3, 7)  # pixels across and down
SIGMA = (1.1, 2.2)
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
_CHUNK = 5000


class Images(NamedTuple):
    """Images of shape (count, 3, 32, 32) with values from 0 to 255, and whether each is rotated."""

    pixels: Tensor
    rotated: Tensor

    def __len__(self) -> int:
        return len(self.pixels)


def prepare(images: Any, device: torch.device) -> Images:
    """All images, then all of them rotated; both cropped to the centre and resized to 32 pixels.

    Parameters
    ----------
    images : array of shape (count, 32, 32, 3), of bytes
    device : torch.device
    """
    parts = []
    for rotated in (False, True):
        for first in range(0, len(images), _CHUNK):
            chunk = torch.tensor(np.ascontiguousarray(images[first : first + _CHUNK]), device=device)
            pixels = chunk.permute(0, 3, 1, 2).float()
            pixels = rotate(pixels, ANGLE) if rotated else pixels
            parts.append(crop_and_resize(pixels).to(torch.uint8))
    label = torch.arange(2, device=device).repeat_interleave(len(images))
    return Images(torch.cat(parts), label)


def rotate(pixels: Tensor, angle: float) -> Tensor:
    """Rotate counter-clockwise about the centre, to the nearest pixel; black outside of the image."""
    turn = math.radians(angle)
    matrix = [[math.cos(turn), -math.sin(turn), 0.0], [math.sin(turn), math.cos(turn), 0.0]]
    theta = torch.tensor(matrix, device=pixels.device).expand(len(pixels), 2, 3)
    grid = functional.affine_grid(theta, list(pixels.shape), align_corners=False)
    return functional.grid_sample(pixels, grid, mode="nearest", padding_mode="zeros", align_corners=False)


def crop_and_resize(pixels: Tensor) -> Tensor:
    """Crop to the centre, which removes the black corners, and resize to the full size, as Pillow does."""
    size = pixels.shape[-1]
    first = (size - CROP) // 2
    pixels = pixels[..., first : first + CROP, first : first + CROP]
    for shape in ((CROP, size), (size, size)):
        pixels = functional.interpolate(pixels, size=shape, mode="bilinear", align_corners=False)
        pixels = (pixels + 0.5).floor().clamp(0, 255)
    return pixels


def blur(pixels: Tensor, sigma: Tensor) -> Tensor:
    """A Gaussian blur of 3 by 7 pixels, with a deviation for every image."""
    for width, dim in zip(BLUR, (3, 2), strict=True):
        reach = width // 2
        offsets = torch.arange(-reach, reach + 1, device=pixels.device, dtype=pixels.dtype)
        weight = torch.exp(-0.5 * (offsets / sigma[:, None]).square())
        weight = weight / weight.sum(1, keepdim=True)
        sides = (reach, reach, 0, 0) if dim == 3 else (0, 0, reach, reach)
        wide = functional.pad(pixels, sides, mode="reflect")
        shifted = [wide.narrow(dim, k, pixels.shape[dim]) * weight[:, k, None, None, None] for k in range(width)]
        pixels = torch.stack(shifted).sum(0)
    return pixels


def normalise(pixels: Tensor) -> Tensor:
    """Pixels as numbers around zero."""
    mean, deviation = _moments(pixels.device)
    return (pixels / 255.0 - mean) / deviation


@functools.cache
def _moments(device: torch.device) -> tuple[Tensor, Tensor]:
    """Mean and deviation of the channels, kept on the device: sending them with every batch would wait for it."""
    mean, deviation = torch.tensor([MEAN, DEVIATION], device=device).reshape(2, 1, 3, 1, 1)
    return mean, deviation


def batch(images: Images, index: Tensor, *, blurred: bool) -> tuple[Tensor, Tensor]:
    """Some images, blurred by a random deviation each or sharp, and whether they are rotated."""
    pixels = images.pixels[index].float()
    if blurred:
        low, high = SIGMA
        pixels = blur(pixels, low + (high - low) * torch.rand(len(index), device=pixels.device))
    return normalise(pixels), images.rotated[index]
