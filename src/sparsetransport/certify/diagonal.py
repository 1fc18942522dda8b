r"""The largest diagonal in a Gram matrix: what points count by themselves.

A point that a plan does not reach costs :math:`\lambda d_i w_i^2` at least if :math:`G - \mathrm{diag}(d)` is positive
semidefinite. The largest :math:`\sum d_i` is a semidefinite programme, solved by Newton's method with a barrier. Wide
kernels have next to no diagonal, narrow ones are next to nothing else.
"""

import numpy as np

from .._checks import Floats
from ..geometry.matrices import Gram

_LEAST = 1e-7  # of the largest entry: a smallest eigenvalue below this is nothing
_SHORT = 1e-12  # of a step: a shorter one goes nowhere
_STEPS, _FALL, _END = 60, 0.3, 1e-4  # Newton steps; the barrier falls by this factor, from one to this


def largest(gram: Gram) -> Floats | None:
    """The diagonal, or None where there is next to none."""
    every = np.arange(gram.size)
    matrix = gram.block(every, every)
    least, scale = float(np.linalg.eigvalsh(matrix)[0]), float(np.abs(matrix).max())
    if least <= _LEAST * scale:
        return None
    own, barrier = np.full(gram.size, 0.5 * least), least
    for _ in range(_STEPS):
        try:
            inverse = np.linalg.inv(matrix - np.diag(own))
            slope = 1.0 - barrier * np.diagonal(inverse) + barrier / own
            curvature = barrier * (inverse**2 + np.diag(own**-2.0))
            step, length = np.linalg.solve(curvature, slope), 1.0
        except np.linalg.LinAlgError:  # at the boundary to rounding: what there is serves as well
            break
        while length > _SHORT and not _is_inside(matrix, own + length * step):
            length *= 0.5
        if length <= _SHORT:
            break
        own = own + length * step
        if length == 1.0:
            if barrier <= _END * least:
                break
            barrier *= _FALL
    # safe: the smallest eigenvalue as computed, and a margin for its own rounding
    norm = float(np.abs(matrix).sum(1).max())
    spare = min(float(np.linalg.eigvalsh(matrix - np.diag(own))[0]), 0.0) - 4e-16 * gram.size * norm
    return np.maximum(own + spare, 0.0)


def _is_inside(matrix: Floats, own: Floats) -> bool:
    if not own.min() > 0.0:  # NaN is outside too
        return False
    try:
        np.linalg.cholesky(matrix - np.diag(own))
    except np.linalg.LinAlgError:
        return False
    return True
