"""Classical greedy: the pair that lowers the objective most (appendix of the paper)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._checks import Floats, Ints
from ..budgets import Pair
from ..inner.solvers import ActiveSet, InnerSolver
from ..plan import as_arrays
from .generic_greedy import View

_CHUNK = 1024


@dataclass(frozen=True)
class Greedy:
    """Take the free pair with the largest marginal gain ``F(S + e) - F(S)``."""

    exhaustive: ClassVar[bool] = True

    def select(self, view: View) -> Pair | None:
        """A free pair off the support, or None if there is none."""
        rows, cols, gain = marginal_gains(view)
        if not rows.size or gain.max() <= 0.0:
            best = view.best()
            return None if best is None else best[1]
        k = np.lexsort((rows, cols, -gain))[0]
        return int(rows[k]), int(cols[k])


def marginal_gains(view: View) -> tuple[Ints, Ints, Floats]:
    """The free pairs with a negative gradient, and their marginal gains; all other pairs gain nothing."""
    rows, cols, gradient = view.candidates(below=-view.tol)
    allowed = view.is_free(rows, cols)
    rows, cols, gradient = rows[allowed], cols[allowed], gradient[allowed]
    inner = view.inner
    if isinstance(inner, ActiveSet) and np.all(view.mass > 0.0):
        parts = [
            inner.gains(rows[k : k + _CHUNK], cols[k : k + _CHUNK], gradient[k : k + _CHUNK])
            for k in range(0, len(rows), _CHUNK)
        ]
        return rows, cols, np.concatenate([np.zeros(0), *parts])
    gain = [_gain(view, inner, (int(i), int(j))) for i, j in zip(rows, cols, strict=True)]
    return rows, cols, np.array(gain, float)


def _gain(view: View, inner: InnerSolver, pair: Pair) -> float:
    """The marginal gain by solving on the larger support; the state of the inner solver is not changed."""
    rows, cols = as_arrays([*view.support, pair])
    mass = inner.fresh().solve(rows, cols, np.append(view.mass, 0.0)).mass
    change = mass - np.append(view.mass, 0.0)
    hessian, slope = view.objective.hessian(rows, cols, rows, cols), view.objective.slope(rows, cols)
    middle = mass - 0.5 * change
    return -float(change @ (slope + hessian @ middle))
