r"""Low-rank factors of Gram matrices, by Cholesky factorisation with pivoting.

:math:`G \approx LL^\top`, where each column of :math:`L` takes away what is left at the point where most is left. What
is left, :math:`E = G - LL^\top`, is positive semidefinite, so that :math:`|E_{ij}| \le \sqrt{E_{ii}E_{jj}}`: the
largest entry of its diagonal, which is computed anew from :math:`L`, bounds all of its entries, up to rounding.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._checks import Floats

_CLOSE = 1e-13  # of the diagonal: no entry of a factor is further off
_MOST, _BYTES = 512, 1 << 28  # columns, and bytes of a factor, at the most
_LOOK = 32  # columns between two looks at how fast it gets better
_UNIT = 2.0**-53


class Factor(NamedTuple):
    """``lines.T @ lines``, and what no entry of it is further off than."""

    lines: Floats  # (rank, n)
    error: float

    def times(self, vector: Floats) -> Floats:
        """The product with a vector."""
        return np.asarray((self.lines @ vector) @ self.lines)


def factor_of(column: Callable[[int], Floats], diagonal: float, size: int) -> Factor | None:
    """The factor of a matrix with a constant diagonal, given by its columns; None if it needs too many of them."""
    most = min(_MOST, size // 16, _BYTES // (8 * size))
    lines, left = np.empty((most, size)), np.full(size, diagonal)
    before, k = diagonal, 0
    for k in range(most):
        pivot = int(left.argmax())
        worst = float(left[pivot])
        if worst <= 0.5 * _CLOSE * diagonal:
            break
        if k and k % _LOOK == 0:
            fall = np.log(before / worst)
            if k + _LOOK * np.log(worst / (_CLOSE * diagonal)) / max(fall, 1e-9) > most:  # later columns take away less
                return None
            before = worst
        line = (column(pivot) - lines[:k, pivot] @ lines[:k]) / np.sqrt(worst)
        lines[k] = line
        left -= line * line
        left[pivot] = 0.0  # but for rounding
    else:
        return None
    lines = lines[:k]  # of what is behind, no page has been touched
    error = float(np.max(diagonal - np.einsum("kn,kn->n", lines, lines))) + (k + 8) * _UNIT * diagonal
    return Factor(lines, error) if error <= _CLOSE * diagonal + (k + 8) * _UNIT * diagonal else None
