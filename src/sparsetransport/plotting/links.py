"""Plans as links between points of the plane, with names beside them."""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _checks
from .._checks import Floats
from ._common import BLACK, BLUE, MANY, ORANGE, axes_or_new, entries_of, in_the_plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 10.0  # the largest aspect ratio of a plot with equal scales
_DISTANCES = (3.0, 10.0, 20.0, 30.0)
_DIRECTIONS = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (0.7, 0.7), (0.7, -0.7), (-0.7, 0.7), (-0.7, -0.7)]


def plot_edges(
    X: Any,
    Y: Any,
    plan: Any,
    *,
    ax: "Axes | None" = None,
    weights: tuple[Any, Any] | None = None,
    widest: float = 4.0,
    color: str = BLUE,
) -> "Axes":
    """Draw a plan as links between two clouds of points in the plane, their width proportional to the mass.

    Both coordinates have the same scale, unless one spans more than ten times as much as the other.

    Parameters
    ----------
    X, Y : arrays of shape (m, 2) and (n, 2)
        The points: filled squares and open circles.
    plan : Result, SciPy sparse array, or array of shape (m, n)
        The links.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    weights : pair of arrays of shape (m,) and (n,), optional
        Weights that the areas of the markers are proportional to; equal by default.
    widest : float
        The width of the heaviest link in points.
    color : str
        The colour of the links.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np, sparsetransport as st
    >>> from sparsetransport.plotting import plot_edges
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(30, 2)), rng.normal(size=(25, 2)) + 1.0
    >>> ax = plot_edges(X, Y, st.solve_sample(X, Y, budget=20))
    >>> len(ax.collections[0].get_segments())
    20
    """
    rows, cols, mass, (m, n) = entries_of(plan)
    x, y = in_the_plane("X", X, m), in_the_plane("Y", Y, n)
    weight_x, weight_y = (np.ones(m), np.ones(n)) if weights is None else _two("weights", weights)
    area_x, area_y = (
        _marker_areas(name, weight, count) for name, weight, count in (("first", weight_x, m), ("second", weight_y, n))
    )
    ax = axes_or_new(ax)
    from matplotlib.collections import LineCollection

    order = np.argsort(mass, kind="stable")  # heavy links on top
    ends = np.stack([x[rows[order]], y[cols[order]]], axis=1)
    width = np.maximum(widest * mass[order] / mass.max(initial=1e-300), 0.25)
    above = 5 if max(m, n) > MANY else 2  # many markers would hide the links
    ax.add_collection(
        LineCollection(list(ends), linewidths=width, colors=color, alpha=0.75, capstyle="round", zorder=above)
    )
    rim_x, rim_y = (np.minimum(0.15 * np.sqrt(area), 0.9) for area in (area_x, area_y))
    ax.scatter(
        y[:, 0],
        y[:, 1],
        s=area_y,
        marker="o",
        facecolors="white",
        edgecolors=BLACK,
        linewidths=rim_y.tolist(),
        zorder=3,
    )
    ax.scatter(
        x[:, 0],
        x[:, 1],
        s=area_x,
        marker="s",
        facecolors=ORANGE,
        edgecolors="white",
        linewidths=(0.6 * rim_x).tolist(),
        zorder=4,
    )
    width, height = np.ptp(np.concatenate([x, y]), axis=0)
    # The same scale for both coordinates, unless the plot would be too long.
    ax.set_aspect("equal" if min(width, height) > max(width, height) / _LONGEST else "auto")
    ax.autoscale_view()
    return ax


def _two(name: str, value: Any) -> tuple[Any, Any]:
    """A pair of arrays, one for each cloud."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise TypeError(f"{name} must be a pair of arrays, one for X and one for Y, got {type(value).__name__}")
    return value[0], value[1]


def _marker_areas(side: str, weight: Any, count: int) -> Floats:
    """Areas in square points, proportional to the weights, smaller for many points."""
    array = _checks.masses(f"the {side} of weights", weight, count)
    usual = float(np.clip(3000.0 / count, 3.0, 45.0))
    mean = array.mean()
    return np.maximum(usual * array / mean, 1.0) if mean > 0.0 else np.full(count, usual)


def label_points(points: Any, names: Any, *, ax: "Axes", farthest: float = 10.0, **style: Any) -> "Axes":
    """Write names beside points in the given order, and leave out those for which there is no room.

    Markers and texts that are on the Axes already are not covered. Set the limits of the Axes first.

    Parameters
    ----------
    points : array of shape (count, 2)
        The points.
    names : list of str
        The names of the points.
    ax : matplotlib Axes
        The Axes with the points.
    farthest : float
        The largest distance of a name from its marker, in points; beyond 10 a line joins them.
    **style
        Arguments of matplotlib's ``Text``, such as ``fontsize``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from sparsetransport.plotting import label_points
    >>> _, ax = plt.subplots()
    >>> ax = label_points([[0.2, 0.5], [0.7, 0.5], [0.7, 0.5]], ["left", "right", "right too"], ax=ax)
    >>> [text.get_text() for text in ax.texts][:2]
    ['left', 'right']
    """
    ax = axes_or_new(ax)
    style = {"parse_math": False} | style
    from matplotlib.patheffects import withStroke

    ax.figure.canvas.figure.draw_without_rendering()  # settles the layout
    frame, pixels = ax.get_window_extent(), ax.figure.dpi / 72.0
    centres, reaches = _markers(ax)
    taken = [*np.hstack([centres - reaches[:, None], centres + reaches[:, None]])]
    taken += [text.get_window_extent().extents for text in ax.texts if text.get_text()]
    for point, name in zip(in_the_plane("points", points, len(names)), names, strict=True):
        there = np.abs(centres - ax.transData.transform(point)).max(axis=1) < 1.0
        reach = reaches[there].max(initial=0.0) / pixels
        for away, (right, up) in itertools.product([d for d in _DISTANCES if d <= farthest], _DIRECTIONS):
            offset = (reach + away) * right, (reach + away) * up
            ha, va = ("center", "left", "right")[int(np.sign(right))], ("center", "bottom", "top")[int(np.sign(up))]
            text = ax.annotate(name, point, offset, textcoords="offset points", ha=ha, va=va, zorder=6, **style)
            box = text.get_window_extent().extents
            inside = frame.x0 <= box[0] and box[2] <= frame.x1 and frame.y0 <= box[1] and box[3] <= frame.y1
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                text.set_path_effects([withStroke(linewidth=2.0, foreground="white")])
                if away > 10.0:
                    line = {"arrowstyle": "-", "color": BLACK, "linewidth": 0.6, "shrinkA": 0.0, "shrinkB": reach}
                    ax.annotate("", point, offset, textcoords="offset points", zorder=5, arrowprops=line)
                break
            text.remove()
    return ax


def _markers(ax: "Axes") -> tuple[Floats, Floats]:
    """Centres and half widths of the markers on the Axes, in pixels."""
    from matplotlib.collections import PathCollection

    centres, reaches = [np.zeros((0, 2))], [np.zeros(0)]
    for marks in ax.collections:
        if isinstance(marks, PathCollection):
            centre = ax.transData.transform(np.asarray(marks.get_offsets()))
            reach = np.sqrt(marks.get_sizes()) / 2.0 * ax.figure.dpi / 72.0
            centres.append(centre)
            reaches.append(np.resize(reach, len(centre)))
    return np.concatenate(centres), np.concatenate(reaches)


def _overlap(one: Any, other: Any) -> bool:
    return bool(one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3])
