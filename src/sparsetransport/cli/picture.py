"""The plot of ``sparsetransport solve``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import plotting
from ..plotting._common import ORANGE
from ..result import Result
from .cells import printable
from .inputs import Inputs, Pair
from .writing import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMED = 60  # points of a side that are named, those with the most mass
_TICKS = 40  # rows or columns up to which every one is named


def draw(path: Path, ending: str, result: Result, inputs: Inputs) -> None:
    """Draw links between points if these are in the plane, else the plan as a matrix; with names if there are any."""
    names = inputs.labels
    shown = Labels(*(None if each is None else [printable(name) for name in each] for each in (names.rows, names.cols)))
    inputs = inputs._replace(labels=shown)
    in_the_plane = inputs.points is not None and inputs.points[0].shape[1] == 2
    ax = _links(result, inputs, inputs.points) if in_the_plane and inputs.points else _matrix(result, inputs.labels)
    figure: Any = ax.figure
    figure.savefig(path, format=ending, bbox_inches="tight", dpi=150)


def _links(result: Result, inputs: Inputs, points: Pair) -> "Axes":
    weights = inputs.masses if inputs.a is not None or inputs.b is not None else None
    ax = plotting.plot_edges(*points, result, weights=weights)
    circles, squares = ax.collections[1:3]
    sizes: Any = squares
    above: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2}
    signs, named = [squares, circles], ["source", "target"]
    idle = np.asarray(result.idle[0])
    if idle.any():  # a white part of each square, as large as its share of what it has
        share = idle / np.maximum(result._parts.wanted[0], np.finfo(float).tiny)
        left = np.broadcast_to(sizes.get_sizes(), share.shape) * share
        x, y = points[0].T
        signs.append(
            ax.scatter(x, y, s=left, marker="s", facecolors="white", edgecolors=ORANGE, linewidths=0.6, zorder=4.5)
        )
        named.append("idle")
    ax.legend(signs, named, ncols=len(named), frameon=False, **above)
    if inputs.coordinates is not None:
        ax.set_xlabel(inputs.coordinates[0], parse_math=False)
        ax.set_ylabel(inputs.coordinates[1], parse_math=False)
    for side, names, mass in zip(points, inputs.labels, (result.marginal_a, result.marginal_b), strict=True):
        if names is not None:
            heaviest = [k for k in np.argsort(-np.asarray(mass), kind="stable").tolist() if names[k]][:_NAMED]
            if heaviest:
                plotting.label_points(side[heaviest], [names[k] for k in heaviest], ax=ax, fontsize=8)
    return ax


def _matrix(result: Result, labels: Labels) -> "Axes":
    ax = plotting.plot_plan(result)
    for axis, names, turn in ((ax.yaxis, labels.rows, 0), (ax.xaxis, labels.cols, 90)):
        if names is not None and len(names) <= _TICKS:
            axis.set_ticks(range(len(names)), names, rotation=turn, parse_math=False)
    return ax
