"""Differentiable costs and kernels on tensors of any device, the same as those for arrays."""

from typing import Any

import torch
from torch import Tensor

from .. import _checks
from ..geometry.costs import METRICS
from ..geometry.kernels import SAMPLE, Delta, Own, as_kernel, rule_of
from ..geometry.radial import formulas


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """All squared Euclidean distances between points of shape (..., m, d) and (..., n, d), without autocast.

    Computed from differences if there are few features, which is exact for equal points, and by a matrix product if
    there are many.
    """
    if x.shape[-1] <= 16:
        return (x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1)
    centre = y.mean(-2, keepdim=True).detach()  # distances do not change, but rounding errors are smaller
    x, y = x - centre, y - centre
    with torch.autocast(x.device.type, enabled=False):
        return ((x * x).sum(-1, keepdim=True) - 2.0 * x @ y.mT + (y * y).sum(-1).unsqueeze(-2)).clamp_min(0.0)


def cost_matrix(x: Tensor, y: Tensor, metric: str = "sqeuclidean") -> Tensor:
    """The differentiable matrix of costs between two point sets.

    Parameters
    ----------
    x, y : tensors of shape (..., m, d) and (..., n, d)
        The points; leading dimensions are a batch.
    metric : {"sqeuclidean", "euclidean", "cosine"}
        "cosine" is one minus the cosine of the angle, which is not defined for zero vectors. The gradient of a
        Euclidean distance of zero is zero.

    Examples
    --------
    >>> import torch
    >>> from sparsetransport import nn
    >>> nn.cost_matrix(torch.tensor([[0.0], [1.0]]), torch.tensor([[1.0], [3.0]]))
    tensor([[1., 9.],
            [0., 4.]])
    """
    x, y = two_sides(x, y)
    _checks.choice("metric", metric, METRICS)
    if metric == "cosine":
        with torch.autocast(x.device.type, enabled=False):
            return 1.0 - directions("x", x) @ directions("y", y).mT
    square = squared_distances(x, y)
    return square if metric == "sqeuclidean" else distance(square)


def distance(square: Tensor) -> Tensor:
    """The root of squared distances, with a gradient of zero where they are zero."""
    apart = square > 0.0
    return torch.where(apart, torch.where(apart, square, 1.0).sqrt(), 0.0)


_FORMULAS = formulas(torch.exp, torch.sqrt, distance)


def gram_matrix(kernel: Any, points: Tensor) -> Tensor | None:
    """The differentiable Gram matrix of points of shape (..., n, d); None for `Delta`.

    Parameters
    ----------
    kernel : kernel, name, rule or function
        A kernel of the package. A rule finds a bandwidth for each set of points of a batch, which gets no gradient. A
        function is called with the points as both arguments and returns a tensor of shape (..., n, n).
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
    require_points("points", points)
    if isinstance(kernel, Delta):
        return None
    points = points if points.is_floating_point() else points.to(torch.get_default_dtype())
    if isinstance(kernel, Own):
        gram: Tensor = kernel.function(points, points)
        require_tensor("the Gram matrix of kernel", gram)
        if gram.shape != (shape := (*points.shape[:-1], points.shape[-2])):
            raise ValueError(f"the Gram matrix of kernel must have shape {shape}, got {tuple(gram.shape)}")
        return gram
    square = squared_distances(points, points)
    square.diagonal(dim1=-2, dim2=-1).zero_()  # a root would amplify the rounding errors there
    values: Tensor = _FORMULAS[kernel.name](square, bandwidth(kernel.sigma2, square.detach()))
    return values


def bandwidth(sigma2: float | str, square: Tensor) -> Tensor | float:
    """σ² itself, or what its rule makes of the squared distances of each set of points; one if that is zero."""
    if not isinstance(sigma2, str):
        return float(sigma2)
    factor, rule = rule_of("sigma2", sigma2)
    n = square.shape[-1]
    step = -(-n // SAMPLE)
    few = square[..., ::step, ::step]
    size = few.shape[-1]
    if size == 1:
        return 1.0
    above = few[..., torch.ones(size, size, dtype=torch.bool, device=few.device).triu(1)]
    if rule == "mean":
        found = above.mean(-1)
    else:
        ordered, count = above.sort(-1).values, above.shape[-1]  # the mean of the two in the middle, as in NumPy
        found = 0.5 * (ordered[..., (count - 1) // 2] + ordered[..., count // 2])
    return torch.where(found > 0.0, factor * found, 1.0)[..., None, None]


def directions(name: str, points: Tensor) -> Tensor:
    """Points divided by their lengths."""
    length = torch.linalg.vector_norm(points, dim=-1, keepdim=True)
    if (length == 0.0).any():
        *problem, row = (length[..., 0] == 0.0).nonzero()[0].tolist()
        where = f"problem {', '.join(map(str, problem))} of the batch: " if problem else ""
        raise ValueError(f"{where}{name} has the zero vector at row {row}: its cosine is not defined")
    unit: Tensor = points / length
    return unit


def two_sides(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Two checked sets of points, in one floating-point precision."""
    require_points("x", x)
    require_points("y", y)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"x and y must have the same number of features, got {x.shape[-1]} and {y.shape[-1]}")
    if any(k != j and 1 not in (k, j) for k, j in zip(x.shape[-3::-1], y.shape[-3::-1], strict=False)):
        raise ValueError(
            f"x and y must have equal batch dimensions, got {tuple(x.shape[:-2])} and {tuple(y.shape[:-2])}"
        )
    dtype = torch.promote_types(x.dtype, y.dtype)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    return x.to(dtype), y.to(dtype)


def require_points(name: str, points: Any) -> None:
    """Raise an error unless this is a tensor of points, or of a batch of point sets."""
    require_tensor(name, points)
    if points.ndim < 2:
        raise ValueError(f"{name} must have at least 2 dimensions, got shape {tuple(points.shape)}")
    if 0 in points.shape:
        raise ValueError(f"{name} must not be empty, got shape {tuple(points.shape)}")


def require_finite(**points: Tensor) -> None:
    """Raise an error if a coordinate is NaN or infinite."""
    for name, each in points.items():
        bad = (~torch.isfinite(each)).nonzero()
        if len(bad):
            place = tuple(bad[0].tolist())
            raise ValueError(f"{name} must be finite, got {each[place].item()} at {place}") from None


def require_tensor(name: str, value: Any) -> None:
    """Raise an error unless an input is a tensor of real numbers."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    if value.is_complex() or value.dtype == torch.bool:
        raise TypeError(f"{name} must hold real numbers, got dtype {value.dtype}")
