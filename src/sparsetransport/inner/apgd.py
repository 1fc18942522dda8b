"""The inner solve of the paper: accelerated projected gradient descent."""

import math

import numpy as np

from .._checks import Floats
from .._numba.compiling import compiled, part


@part
def times(hessian: Floats, x: Floats, out: Floats) -> None:
    """``out = H x`` for a symmetric ``H``, four rows at a time."""
    size = x.size
    out[:] = 0.0
    k = 0
    while k + 4 <= size:
        h0, h1, h2, h3 = hessian[k], hessian[k + 1], hessian[k + 2], hessian[k + 3]
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        for i in range(size):
            out[i] += x0 * h0[i] + x1 * h1[i] + x2 * h2[i] + x3 * h3[i]
        k += 4
    while k < size:
        h0, x0 = hessian[k], x[k]
        for i in range(size):
            out[i] += x0 * h0[i]
        k += 1


@compiled
def largest_eigenvalue(hessian: Floats) -> float:
    """An upper estimate of the largest eigenvalue by power iteration.

    The Hessians of the built-in kernels have no negative entries, so a positive start is not orthogonal to the leading
    eigenvector. For other Gram matrices the estimate is the largest sum of absolute values in a row.
    """
    size = hessian.shape[0]
    lowest, widest = 0.0, 0.0
    for i in range(size):
        total = 0.0
        for j in range(size):
            lowest = min(lowest, hessian[i, j])
            total += abs(hessian[i, j])
        widest = max(widest, total)
    if lowest < -1e-12 * widest:
        return widest
    x, y = np.full(size, 1.0 / math.sqrt(size)), np.empty(size)
    value = 0.0
    for _ in range(100):
        times(hessian, x, y)
        norm = math.sqrt(np.sum(y * y))
        if norm == 0.0:
            break
        if norm <= value * (1.0 + 1e-4):
            value = norm
            break
        value = norm
        x[:] = y / norm
    return 1.01 * value


@compiled
def kkt_residual(gradient: Floats, x: Floats) -> float:
    """The KKT residual of ``x >= 0``: the gradient where there is mass, its negative part where there is none."""
    worst = 0.0
    for i in range(x.size):
        worst = max(worst, abs(gradient[i]) if x[i] > 0.0 else -gradient[i])
    return worst


@compiled
def apgd(hessian: Floats, slope: Floats, x: Floats, tol: float, max_iter: int) -> tuple[float, int]:
    """Minimise ``½ x'Hx + f'x`` over ``x >= 0`` with step ``1/L``, in place; returns KKT residual and iterations.

    The gradient is taken at the extrapolated point; being linear, it follows from the gradients at the last two
    iterates, so one product with ``H`` an iteration gives the step and the residual.
    """
    size = slope.size
    gradient, previous = np.empty(size), np.empty(size)
    times(hessian, x, gradient)
    gradient += slope
    previous[:] = gradient
    old = x.copy()
    length = largest_eigenvalue(hessian)
    residual = kkt_residual(gradient, x)
    momentum, used = 1.0, 0
    while used < max_iter and residual > tol and length > 0.0:
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        beta = (momentum - 1.0) / following
        momentum = following
        for i in range(size):
            point = x[i] + beta * (x[i] - old[i])
            slant = gradient[i] + beta * (gradient[i] - previous[i])
            old[i], previous[i] = x[i], gradient[i]
            x[i] = max(point - slant / length, 0.0)
        times(hessian, x, gradient)
        gradient += slope
        residual = kkt_residual(gradient, x)
        used += 1
    return residual, used
