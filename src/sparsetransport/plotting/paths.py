"""How a plan came about: the objective and its bounds along the path."""

from typing import TYPE_CHECKING

import numpy as np

from .._checks import Floats, Ints
from ..result import Result
from ._common import BLACK, BLUE, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        Mark where the line bends most: the point that, as drawn, lies farthest below the straight one between its ends.
        The plans on the way are not polished, so the best plan of that size may be much better.
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
    if not isinstance(result, Result):
        raise TypeError(f"result must be a Result, which has a path, got {type(result).__name__}")
    path = result.path
    if not len(path):
        raise ValueError(f"result must have a path to draw, got {result!r}")
    entries = np.unique(path.entries)
    lowest = np.minimum.accumulate([path.objective[path.entries == count].min() for count in entries])
    count = len(result._parts.mass)
    logarithmic = min(lowest.min(), result.value) > 0.0 and lowest.max() > 20.0 * lowest.min()
    ax = axes_or_new(ax)
    from matplotlib.ticker import LogFormatter, MaxNLocator

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
        ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.4)))
    ax.set(xlabel="entries of the plan", ylabel="objective")
    places = ax.xaxis.get_major_locator()
    if isinstance(places, MaxNLocator):  # not so on Axes that the user gave other ticks
        places.set_params(integer=True)
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
