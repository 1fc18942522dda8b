"""Pictures of plans and of how they came about. Needs matplotlib, which is imported only when something is drawn.

Every function takes ``ax=`` and returns the Axes. The colours are those of Okabe and Ito, which the colour-blind can
tell apart; shapes and fillings say the same, so that nothing is lost in greyscale.
"""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _checks
from ._checks import Floats
from .result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Ints = NDArray[np.int64]
BLUE, ORANGE, BLACK, GREY = "#0072B2", "#D55E00", "#222222", "#767676"
_FEW = 30  # rows or columns up to which every one gets its tick and its line
_WORDS = 40  # words written along a side at the most
_MANY = 500  # points of a side from which links are drawn over the markers


def plot_plan(plan: Any, *, ax: "Axes | None" = None, color: str = BLUE) -> "Axes":
    """Draw a plan as a matrix: one dot an entry, its area proportional to the mass.

    Parameters
    ----------
    plan : Result, SciPy sparse array, or array of shape (m, n)
        What to draw; entries that are zero are left out.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    color : str
        The colour of the dots.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np, sparsetransport as st
    >>> from sparsetransport.plotting import plot_plan
    >>> res = st.solve(np.ones((4, 3)) - np.eye(4, 3), budget=3)
    >>> ax = plot_plan(res)
    >>> len(ax.collections[0].get_offsets())
    3
    """
    rows, cols, mass, (m, n) = _entries(plan)
    ax = _axes(ax)
    ax.set(xlim=(-0.5, n - 0.5), ylim=(m - 0.5, -0.5), aspect="equal", xlabel="column", ylabel="row")
    if max(m, n) <= _FEW:
        ax.set_xticks(range(n))
        ax.set_yticks(range(m))
        ax.grid(color="0.9", linewidth=0.8)
        ax.set_axisbelow(True)
    # A dot fills its cell where cells can be seen, and stays visible where they cannot.
    frame = ax.get_window_extent()
    cell = min(frame.width / n, frame.height / m) * 72.0 / ax.figure.dpi
    widest = float(np.clip(0.9 * cell, 5.0, 22.0))
    area = np.maximum(widest**2 * mass / mass.max(initial=1e-300), max(0.2 * widest, 1.2) ** 2)
    ax.scatter(cols, rows, s=area, color=color, linewidths=0)
    return ax


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

    Parameters
    ----------
    X, Y : arrays of shape (m, 2) and (n, 2)
        The points: filled squares and open circles.
    plan : Result, SciPy sparse array, or array of shape (m, n)
        The links.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    weights : pair of arrays of shape (m,) and (n,), optional
        What the areas of the markers are proportional to; all alike by default.
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
    rows, cols, mass, (m, n) = _entries(plan)
    x, y = _in_the_plane("X", X, m), _in_the_plane("Y", Y, n)
    weight_x, weight_y = (np.ones(m), np.ones(n)) if weights is None else weights
    area_x, area_y = (
        _marker_areas(name, weight, count) for name, weight, count in (("first", weight_x, m), ("second", weight_y, n))
    )
    ax = _axes(ax)
    from matplotlib.collections import LineCollection

    order = np.argsort(mass, kind="stable")  # heavy links on top
    ends = np.stack([x[rows[order]], y[cols[order]]], axis=1)
    width = np.maximum(widest * mass[order] / mass.max(initial=1e-300), 0.25)
    above = 5 if max(m, n) > _MANY else 2  # so many markers would hide the links
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
    ax.set_aspect("equal")
    ax.autoscale_view()
    return ax


def plot_path(
    result: Result, *, ax: "Axes | None" = None, bounds: int = 0, knee: bool = True, color: str = BLUE
) -> "Axes":
    """Draw the objective and its gap against the number of entries along the path of a solve.

    The line is the lowest objective seen with at most so many entries; the dot is the plan itself, the diamond the knee
    of the line. A dashed line shows the lower bound where the result has one already: ask for ``result.lower_bound`` or
    ``result.certify()`` first, or for ``bounds``, which shade the gap along the path as well.

    Parameters
    ----------
    result : Result
        What `solve` gave back.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    bounds : int
        Prove the tight lower bound for so many sizes on the way, this plan's own included, and draw those and the gap.
    knee : bool
        Mark the size beyond which further entries bring little: the point of the line, as drawn, that lies farthest
        below the straight one between its ends.
    color : str
        The colour of the line.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np, sparsetransport as st
    >>> from sparsetransport.plotting import plot_path
    >>> res = st.solve(np.arange(20.0).reshape(4, 5) % 7, budget=6, reg=0.1)
    >>> ax = plot_path(res)
    >>> ax.get_xlabel()
    'entries of the plan'
    """
    path = result.path
    if not len(path):
        raise ValueError(f"result must have a path to draw, got {result!r}")
    entries = np.unique(path.entries)
    lowest = np.minimum.accumulate([path.objective[path.entries == count].min() for count in entries])
    count = len(result._parts.mass)
    logarithmic = min(lowest.min(), result.value) > 0.0 and lowest.max() > 20.0 * lowest.min()
    ax = _axes(ax)
    ax.plot(entries, lowest, color=color, linewidth=1.8, label="objective")
    if bounds > 0:
        sizes = np.unique(np.linspace(count, 0, bounds, endpoint=False).round().astype(int))
        plans = [path.plan_at(int(size)) for size in sizes if 0 < size < count] + [result]
        used, proved = [len(plan._parts.mass) for plan in plans], [plan.certify().lower_bound for plan in plans]
        ax.plot(used, proved, "--.", color=BLACK, linewidth=1.2, markersize=4, label="lower bound")
        between = (entries >= used[0]) & (entries <= used[-1])
        below = np.interp(entries[between], used, proved)
        ax.fill_between(entries[between], below, lowest[between], color="0.87", linewidth=0, label="gap", zorder=1)
    elif result._proofs:
        ax.axhline(result.lower_bound, color=BLACK, linestyle="--", linewidth=1.2, label="lower bound")
    bend = _knee(entries, np.log(lowest) if logarithmic else lowest) if knee else None
    if bend is not None:
        at = f"knee: {_count(int(entries[bend]), 'entry', 'entries')}"
        ax.plot(
            entries[bend], lowest[bend], "D", color="white", markeredgecolor=BLACK, markersize=6, label=at, zorder=3
        )
    ax.plot(count, result.value, "o", color=color, markersize=7, label="this plan")
    if logarithmic:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        from matplotlib.ticker import LogFormatter

        ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.4)))
    ax.set(xlabel="entries of the plan", ylabel="objective")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax


def _knee(entries: Ints, heights: Floats) -> int | None:
    """The point of a falling line farthest below the chord between its ends, in shares of both; None if straight."""
    fall = float(heights[0] - heights[-1])
    if fall <= 0.0:
        return None
    below = 1.0 - (heights[0] - heights) / fall
    depth = 1.0 - (entries - entries[0]) / float(entries[-1] - entries[0]) - below
    return int(depth.argmax()) if depth.max() > 0.05 else None


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def plot_marginals(plan: Any, a: Any = None, b: Any = None, *, ax: "Axes | None" = None, color: str = BLUE) -> "Axes":
    """Draw the masses asked for and those a plan reaches: rows upwards, columns downwards.

    Filled bars are the sums of the plan, the black outline is what was asked for. Where there are more than a few
    points, they are sorted by what was asked for, then by what was reached.

    Parameters
    ----------
    plan : Result, SciPy sparse array, or array of shape (m, n)
        The plan.
    a, b : arrays of shape (m,) and (n,), optional
        What was asked for; uniform with total one by default, as in `solve`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    color : str
        The colour of the bars.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np, sparsetransport as st
    >>> from sparsetransport.plotting import plot_marginals
    >>> ax = plot_marginals(st.solve(np.ones((4, 3)) - np.eye(4, 3), budget=3))
    >>> [text.get_text() for text in ax.texts]
    ['rows: 75 % of the mass in place', 'columns: 88 % of the mass in place']
    """
    rows, cols, mass, (m, n) = _entries(plan)
    asked_a, asked_b = _checks.masses("a", a, m), _checks.masses("b", b, n)
    ax = _axes(ax)
    _draw_marginal(ax, asked_a, np.bincount(rows, mass, m).astype(np.float64), "rows", 1.0, color)
    _draw_marginal(ax, asked_b, np.bincount(cols, mass, n).astype(np.float64), "columns", -1.0, color)
    ax.axhline(0.0, color=BLACK, linewidth=0.8)
    ax.set(xlim=(0.0, 1.0), ylabel="mass", xticks=[])
    ax.set_xlabel("points" if max(m, n) <= _FEW else "points, sorted by the mass asked for")
    ax.yaxis.set_major_formatter(lambda height, _: f"{abs(height):.3g}")
    ax.margins(y=0.25)  # room for the texts and the legend
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.legend(*_first_two(ax), frameon=False, loc="upper left", ncols=2)
    return ax


def _draw_marginal(ax: "Axes", asked: Floats, reached: Floats, side: str, sign: float, color: str) -> None:
    """Bars upwards or downwards over the whole width of the Axes, and how much of the mass is in place."""
    count = len(asked)
    if count > _FEW:
        order = np.lexsort((-reached, -asked))
        asked, reached = asked[order], reached[order]
    edges = np.linspace(0.0, 1.0, count + 1)
    width = (0.8 if count <= _FEW else 1.0) / count
    lows, highs = (edges[:-1] + edges[1:] - width) / 2.0, (edges[:-1] + edges[1:] + width) / 2.0
    bars = np.stack([lows, lows, highs, highs], axis=1).ravel()
    heights = sign * np.stack([0.0 * reached, reached, reached, 0.0 * reached], axis=1).ravel()
    ax.fill_between(bars, heights, color=color, alpha=0.45, linewidth=0, label="reached")
    ax.stairs(sign * asked, edges, color=BLACK, linewidth=1.3, label="asked for")
    total = float(asked.sum())
    share = 100.0 * float(np.minimum(asked, reached).sum()) / total if total else 100.0
    height, va = (0.91, "top") if sign > 0.0 else (0.02, "bottom")
    text = f"{side}: {share:.0f} % of the mass in place"
    ax.text(0.99, height, text, transform=ax.transAxes, ha="right", va=va, fontsize=9)


def _first_two(ax: "Axes") -> tuple[list[Any], list[str]]:
    """The handles and labels of the first two things drawn: later ones repeat them."""
    handles, labels = ax.get_legend_handles_labels()
    return handles[:2], labels[:2]


def plot_alignment(
    plan: Any, source: Any, target: Any, *, ax: "Axes | None" = None, links: Any = None, cmap: str = "Blues"
) -> "Axes":
    """Draw a plan between the words of two sentences as a shaded matrix.

    Parameters
    ----------
    plan : Result, SciPy sparse array, or array of shape (m, n)
        The plan; darker cells carry more mass.
    source, target : lists of m and n str
        The words of the rows and of the columns; as many are written as there is room for.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    links : list of pairs, optional
        Links to compare with, drawn as open squares.
    cmap : str
        A matplotlib colour map that goes from light to dark.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from sparsetransport.plotting import plot_alignment
    >>> ax = plot_alignment(np.eye(2, 3), ["the", "cat"], ["le", "chat", "dort"], links=[(0, 0), (1, 1)])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['the', 'cat']
    """
    rows, cols, mass, (m, n) = _entries(plan)
    source, target = _words("source", source, m), _words("target", target, n)
    pairs = np.asarray([] if links is None else links, np.int64).reshape(-1, 2)
    if pairs.size and (pairs.min() < 0 or (pairs >= (m, n)).any()):
        raise ValueError(f"links must hold pairs of a plan of shape {(m, n)}, got {pairs.max(axis=0).tolist()}")
    if max(m, n) > _MANY:  # cells would be smaller than a pixel
        ax = plot_plan(plan, ax=ax)
    else:
        ax = _axes(ax)
        shades = np.zeros((m, n))
        shades[rows, cols] = mass
        ax.imshow(shades, cmap=cmap, vmin=0.0, vmax=mass.max(initial=1e-300), interpolation="nearest")
    if max(m, n) <= 2 * _FEW:
        ax.set_xticks(np.arange(n + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(m + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="0.88", linewidth=0.6)
        ax.tick_params(which="minor", length=0)
    if len(pairs):
        frame = ax.get_window_extent()
        cell = min(frame.width / n, frame.height / m) * 72.0 / ax.figure.dpi
        side = float(np.clip(0.62 * cell, 3.0, 16.0))
        marks: dict[str, Any] = {
            "facecolors": "none",
            "edgecolors": ORANGE,
            "linewidths": float(np.clip(0.12 * side, 0.6, 1.6)),
        }
        ax.scatter(pairs[:, 1], pairs[:, 0], s=side**2, marker="s", label="links given", **marks)
    every_row, every_col = -(-m // _WORDS), -(-n // _WORDS)
    size = float(np.clip(240.0 / max(min(m, _WORDS), min(n, _WORDS)), 5.0, 10.0))
    ax.set_yticks(range(0, m, every_row), source[::every_row], fontsize=size)
    ax.set_xticks(range(0, n, every_col), target[::every_col], fontsize=size, rotation=90)
    ax.set(xlabel="", ylabel="")
    ax.tick_params(which="major", length=2)
    return ax


def _words(name: str, words: Any, count: int) -> list[str]:
    """As many words as the plan has rows or columns."""
    found = [str(word) for word in words]
    if len(found) != count:
        raise ValueError(f"{name} must have one word for each of the {count} points, got {len(found)}")
    return found


def label_points(points: Any, names: Any, *, ax: "Axes", farthest: float = 10.0, **style: Any) -> "Axes":
    """Write names beside points, the first ones first, and leave out those for which there is no room.

    Markers and texts that are on the Axes already are not covered. Set the limits of the Axes before.

    Parameters
    ----------
    points : array of shape (count, 2)
        The points.
    names : list of str
        What to write beside them.
    ax : matplotlib Axes
        Where the points are.
    farthest : float
        How far from its marker a name may stand, in points; beyond 10 a line joins them.
    **style
        What matplotlib's ``Text`` understands, such as ``fontsize``.

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
    require_matplotlib()
    from matplotlib.patheffects import withStroke

    ax.figure.canvas.figure.draw_without_rendering()  # settles the layout
    frame, pixels = ax.get_window_extent(), ax.figure.dpi / 72.0
    centres, reaches = _markers(ax)
    taken = [*np.hstack([centres - reaches[:, None], centres + reaches[:, None]])]
    taken += [text.get_window_extent().extents for text in ax.texts if text.get_text()]
    for point, name in zip(_in_the_plane("points", points, len(names)), names, strict=True):
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


_DISTANCES = (3.0, 10.0, 20.0, 30.0)
_DIRECTIONS = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (0.7, 0.7), (0.7, -0.7), (-0.7, 0.7), (-0.7, -0.7)]


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


def require_matplotlib() -> None:
    """Say in one sentence what is missing, if it is."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("plots need matplotlib: pip install matplotlib") from None


def _axes(ax: "Axes | None") -> "Axes":
    """The Axes to draw on: the one given, or one of a new figure."""
    require_matplotlib()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _entries(plan: Any) -> tuple[Ints, Ints, Floats, tuple[int, int]]:
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


def _in_the_plane(name: str, points: Any, count: int) -> Floats:
    """Checked points of the plane, one for each row or column of the plan."""
    array = _checks.real_array(name, points, ndim=2)
    if array.shape != (count, 2):
        raise ValueError(f"{name} must have shape ({count}, 2) to be drawn beside this plan, got {array.shape}")
    return array


def _marker_areas(side: str, weight: Any, count: int) -> Floats:
    """Areas in square points, proportional to the weights, smaller where there are many."""
    array = _checks.masses(f"the {side} of weights", weight, count)
    usual = float(np.clip(3000.0 / count, 3.0, 45.0))
    mean = array.mean()
    return np.maximum(usual * array / mean, 1.0) if mean > 0.0 else np.full(count, usual)
