"""Costs and kernels on tensors: the same as those of the package, but gradients flow through them, on any device."""

from typing import Any

import torch
from torch import Tensor

from .. import _checks
from ..geometry.costs import METRICS
from ..geometry.kernels import IMQ, RBF, Delta, IMQv2, as_kernel

_SAMPLE = 2000  # a bandwidth rule looks at no more points than this


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """All squared Euclidean distances between points of shape (..., m, d) and (..., n, d), without autocast.

    From the differences where there are few features, which is exact for equal points; by a product of matrices where
    there are many.
    """
    if x.shape[-1] <= 16:
        return (x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1)
    centre = y.mean(-2, keepdim=True).detach()  # distances do not change, rounding does
    x, y = x - centre, y - centre
    with torch.autocast(x.device.type, enabled=False):
        return ((x * x).sum(-1, keepdim=True) - 2.0 * x @ y.mT + (y * y).sum(-1).unsqueeze(-2)).clamp_min(0.0)


def cost_matrix(x: Tensor, y: Tensor, metric: str = "sqeuclidean") -> Tensor:
    """The matrix of costs between two point sets, through which gradients flow.

    Parameters
    ----------
    x, y : tensors of shape (..., m, d) and (..., n, d)
        The points.
    metric : {"sqeuclidean", "euclidean", "cosine"}
        Cosine means one minus the cosine of the angle. The gradient of a Euclidean distance of zero is zero.

    Examples
    --------
    >>> import torch
    >>> from sparsetransport import nn
    >>> nn.cost_matrix(torch.tensor([[0.0], [1.0]]), torch.tensor([[1.0], [3.0]]))
    tensor([[1., 9.],
            [0., 4.]])
    """
    _checks.choice("metric", metric, METRICS)
    if metric == "cosine":
        with torch.autocast(x.device.type, enabled=False):
            return 1.0 - torch.nn.functional.normalize(x, dim=-1) @ torch.nn.functional.normalize(y, dim=-1).mT
    square = squared_distances(x, y)
    if metric == "sqeuclidean":
        return square
    apart = square > 0.0
    return torch.where(apart, torch.where(apart, square, 1.0).sqrt(), 0.0)


def gram_matrix(kernel: Any, points: Tensor) -> Tensor | None:
    """The Gram matrix of points of shape (..., n, d), through which gradients flow; None for `Delta`.

    Parameters
    ----------
    kernel : kernel, name or rule
        `RBF`, `IMQ`, `IMQv2` or `Delta` of the package. A bandwidth that a rule finds is held fixed: no gradient flows
        through it, and a batch shares one.
    points : tensor of shape (..., n, d)

    Examples
    --------
    >>> import torch
    >>> import sparsetransport as st
    >>> from sparsetransport import nn
    >>> nn.gram_matrix(st.IMQv2(4.0), torch.tensor([[0.0], [3.0**0.5]]))
    tensor([[2., 1.],
            [1., 2.]])
    """
    kernel = as_kernel("kernel", kernel)
    if isinstance(kernel, Delta):
        return None
    square = squared_distances(points, points)
    return kernel_of(kernel, square, bandwidth(kernel.sigma2, square.detach()))


def kernel_of(kernel: Any, square: Tensor, sigma2: Tensor | float) -> Tensor:
    """A radial kernel of squared distances."""
    if isinstance(kernel, RBF):
        return torch.exp(square * (-0.5 / sigma2))
    if isinstance(kernel, IMQ):
        return (sigma2 + square).rsqrt()
    assert isinstance(kernel, IMQv2)
    return ((1.0 + square) * (1.0 / sigma2)).rsqrt()


def bandwidth(sigma2: float | str, square: Tensor) -> Tensor | float:
    """σ² itself, or the median or mean of the squared distances between different points; one where they are zero."""
    if not isinstance(sigma2, str):
        return float(sigma2)
    n = square.shape[-1]
    step = -(-n // _SAMPLE)
    few = square[..., ::step, ::step]
    size = few.shape[-1]
    above = few[..., torch.ones(size, size, dtype=torch.bool, device=few.device).triu(1)]
    if above.numel() == 0:
        return 1.0
    if sigma2 == "mean":
        found = above.mean()
    else:
        ordered = above.flatten().sort().values  # the mean of the two in the middle, as NumPy has it
        found = 0.5 * (ordered[(ordered.numel() - 1) // 2] + ordered[ordered.numel() // 2])
    return torch.where(found > 0.0, found, 1.0)
