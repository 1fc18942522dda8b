"""The objective and its bounds along the path of a solve, or over several budgets."""

from collections.abc import Iterable, Sequence
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

    The line is the lowest objective on the path with at most so many entries; the dot is the plan itself, the diamond
    the knee of the line. A dashed line shows the lower bound if the result has one already: call ``result.lower_bound``
    or ``result.certify()`` first, or give ``bounds``, which also shades the gap along the path.

    Parameters
    ----------
    result : Result
        The result of `solve`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    bounds : int
        The number of sizes, this plan's included, for which to compute and draw the tight lower bound and the gap.
    knee : bool
        Mark the knee: the point farthest, as drawn, below the straight line between the ends. The plans on the path are
        not improved, so the best plan of that size may be much better.
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
    plans = []
    if bounds > 0:
        sizes = np.unique(np.linspace(count, 0, bounds, endpoint=False).round().astype(int))
        plans = [path.plan_at(int(size)) for size in sizes if 0 < size < count] + [result]
    ax = axes_or_new(ax)
    floor = _draw(ax, entries, lowest, plans, knee=knee, color=color)
    if not plans and result._proofs:
        ax.axhline(result.lower_bound, color=BLACK, linestyle="--", linewidth=1.2, label="lower bound")
    ax.plot(count, result.value, "o", color=color, markersize=7, label="this plan")
    return _finish(ax, floor)


def plot_sweep(
    results: Iterable[Result], *, ax: "Axes | None" = None, bounds: bool = True, knee: bool = True, color: str = BLUE
) -> "Axes":
    """Draw the objective of several plans and its lower bound against their numbers of entries.

    Each plan is the result of its own solve, unlike the plans of `plot_path`, which are steps towards one plan.

    Parameters
    ----------
    results : list of Result
        The results of `solve_sweep`, or ``tried.values()`` of the result of `solve_fewest`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    bounds : bool
        Compute the tight lower bound of each plan, and draw the bounds and the gap.
    knee : bool
        Mark the knee of the line, as in `plot_path`.
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
    >>> from sparsetransport.plotting import plot_sweep
    >>> problem = st.Problem.from_matrices(np.arange(20.0).reshape(4, 5) % 7)
    >>> ax = plot_sweep(st.solve_sweep(problem, budgets=[2, 4, 6, 8]))
    >>> ax.get_ylabel()
    'objective'
    """
    if isinstance(results, Result) or not hasattr(results, "__iter__"):
        raise TypeError(f"results must be a list of Results, got {results!r}")
    plans = list(results)
    for plan in plans:
        if not isinstance(plan, Result):
            raise TypeError(f"results must be a list of Results, got a {type(plan).__name__} in it")
    if not plans:
        raise ValueError("results must hold at least one Result, got none")
    best = {len(plan._parts.mass): plan for plan in sorted(plans, key=lambda plan: -plan.value)}
    plans = [best[count] for count in sorted(best)]
    entries, values = np.array(sorted(best)), np.array([plan.value for plan in plans])
    ax = axes_or_new(ax)
    floor = _draw(ax, entries, values, plans if bounds else [], knee=knee, color=color, marker="o")
    if len(entries) == 1:
        ax.set_xlim(entries[0] - 1, entries[0] + 1)
    return _finish(ax, floor)


def _draw(
    ax: "Axes",
    entries: Ints,
    values: Floats,
    plans: Sequence[Result],
    *,
    knee: bool,
    color: str,
    marker: str | None = None,
) -> float:
    """Draw the objective, the tight bounds of some plans, the gap between them and the knee.

    Returns the lower end of a logarithmic axis, which hides bounds that are zero up to rounding; 0 for a linear axis.
    """
    is_log = bool(values.min() > 0.0 and values.max() > 20.0 * values.min())
    ax.plot(entries, values, color=color, linewidth=1.8, marker=marker, markersize=5, label="objective")
    if plans:
        used = np.array([len(plan._parts.mass) for plan in plans])
        proved = np.array([plan.certify().lower_bound for plan in plans])
        ax.plot(used, proved, "--.", color=BLACK, linewidth=1.2, markersize=4, label="lower bound")
        between = np.unique([*entries[(entries >= used[0]) & (entries <= used[-1])], *used])
        above, below = (_between(between, x, y, is_log) for x, y in ((entries, values), (used, proved)))
        ax.fill_between(between, below, above, color="0.87", linewidth=0, label="gap", zorder=1)
    bend = _knee(entries, np.log(values) if is_log else values) if knee else None
    if bend is not None:
        at = f"knee: {_count(int(entries[bend]), 'entry', 'entries')}"
        ax.plot(
            entries[bend], values[bend], "D", color="white", markeredgecolor=BLACK, markersize=6, label=at, zorder=3
        )
    return 1e-3 * float(values.min()) if is_log else 0.0


def _between(places: Ints, x: Ints, y: Floats, is_log: bool) -> Floats:
    """Heights of a line that is drawn straight between its points."""
    if is_log and y.min() > 0.0:
        return np.exp(np.interp(places, x, np.log(y)))
    return np.interp(places, x, y)


def _finish(ax: "Axes", floor: float) -> "Axes":
    """Set the scales, logarithmic down to at most the floor if there is one, labels and the legend."""
    from matplotlib.ticker import LogFormatter, MaxNLocator

    if floor > 0.0:
        ax.set_yscale("log")
        ax.set_ylim(bottom=max(ax.get_ylim()[0], floor))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.4)))
    ax.set(xlabel="entries of the plan", ylabel="objective")
    places = ax.xaxis.get_major_locator()
    if isinstance(places, MaxNLocator):  # not if the user set other ticks
        places.set_params(integer=True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax


def _knee(entries: Ints, heights: Floats) -> int | None:
    """The point of a falling line farthest below the chord between its ends, both axes scaled; None if straight."""
    fall = float(heights[0] - heights[-1])
    if fall <= 0.0:
        return None
    below = 1.0 - (heights[0] - heights) / fall
    depth = 1.0 - (entries - entries[0]) / float(entries[-1] - entries[0]) - below
    return int(depth.argmax()) if depth.max() > 0.05 else None


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
