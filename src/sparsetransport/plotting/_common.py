"""Helpers of all plots: colours, Axes, and checks of what is drawn."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _checks
from .._checks import Floats, Ints
from ..result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, BLACK, GREY = "#0072B2", "#D55E00", "#222222", "#767676"
FEW = 30  # rows or columns up to which every one has a tick and a line
MANY = 500  # points of a side from which links are drawn over the markers, and cells as dots


def require_matplotlib() -> None:
    """Raise an error that says how to install matplotlib if it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise _checks.missing("plots need matplotlib", "plot") from None


def axes_or_new(ax: "Axes | None") -> "Axes":
    """The Axes to draw on: the one given, or one of a new figure."""
    require_matplotlib()
    if ax is not None:
        from matplotlib.axes import Axes

        if not isinstance(ax, Axes):
            raise TypeError(f"ax must be matplotlib Axes, got {type(ax).__name__}")
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def entries_of(plan: Any) -> tuple[Ints, Ints, Floats, tuple[int, int]]:
    """Rows, columns and masses of the entries of a plan, and its shape."""
    if isinstance(plan, Result):
        parts = plan._parts
        return parts.rows, parts.cols, parts.mass, parts.shape
    import scipy.sparse

    if scipy.sparse.issparse(plan):
        sparse: Any = scipy.sparse.coo_array(plan)  # type: ignore[call-overload]
        if sparse.ndim != 2:
            raise ValueError(f"plan must have 2 dimensions, got shape {sparse.shape}")
        rows, cols, mass = sparse.coords[0], sparse.coords[1], np.asarray(sparse.data, np.float64)
        shape = int(sparse.shape[0]), int(sparse.shape[1])
    else:
        dense = _checks.real_array("plan", plan, ndim=2)
        rows, cols = np.nonzero(dense)
        mass, shape = dense[rows, cols], (dense.shape[0], dense.shape[1])
    if mass.min(initial=0.0) < 0.0:
        raise ValueError(f"plan must not be negative, got {mass.min()}")
    kept = mass > 0.0
    return np.asarray(rows, np.int64)[kept], np.asarray(cols, np.int64)[kept], mass[kept], shape


def in_the_plane(name: str, points: Any, count: int) -> Floats:
    """Checked points of the plane, one for each row or column of the plan."""
    array = _checks.real_array(name, points, ndim=2)
    if array.shape != (count, 2):
        raise ValueError(f"{name} must have shape ({count}, 2) to be drawn with this plan, got {array.shape}")
    return array
