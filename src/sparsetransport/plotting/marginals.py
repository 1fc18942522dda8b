"""The given masses and the marginals of a plan."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _checks
from .._checks import Floats
from ..result import Result
from ._common import BLACK, BLUE, FEW, axes_or_new, entries_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_marginals(plan: Any, a: Any = None, b: Any = None, *, ax: "Axes | None" = None, color: str = BLUE) -> "Axes":
    """Draw the given masses and the marginals of a plan: rows upwards, columns downwards.

    Filled bars are the row and column sums of the plan, the black outline is the given masses. More than a few points
    are sorted by their mass, then by their sum.

    Parameters
    ----------
    plan : Result, SciPy sparse array, or array of shape (m, n)
        The plan.
    a, b : arrays of shape (m,) and (n,), optional
        The given masses. By default those of the result; for an array, uniform with total one, as in `solve`.
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
    rows, cols, mass, (m, n) = entries_of(plan)
    known = plan._parts.wanted if isinstance(plan, Result) else (None, None)
    asked_a = _checks.masses("a", known[0] if a is None else a, m)
    asked_b = _checks.masses("b", known[1] if b is None else b, n)
    ax = axes_or_new(ax)
    _draw_marginal(ax, asked_a, np.bincount(rows, mass, m).astype(np.float64), "rows", 1.0, color)
    _draw_marginal(ax, asked_b, np.bincount(cols, mass, n).astype(np.float64), "columns", -1.0, color)
    ax.axhline(0.0, color=BLACK, linewidth=0.8)
    ax.set(xlim=(0.0, 1.0), ylabel="mass", xticks=[])
    ax.set_xlabel("points" if max(m, n) <= FEW else "points, sorted by their given mass")
    ax.yaxis.set_major_formatter(lambda height, _: f"{abs(height):.3g}")
    ax.margins(y=0.25)  # room for the texts and the legend
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.legend(*_first_two(ax), frameon=False, loc="upper left", ncols=2)
    return ax


def _draw_marginal(ax: "Axes", asked: Floats, reached: Floats, side: str, sign: float, color: str) -> None:
    """Bars upwards or downwards over the whole width of the Axes, and the share of the mass in place."""
    count = len(asked)
    if count > FEW:
        order = np.lexsort((-reached, -asked))
        asked, reached = asked[order], reached[order]
    edges = np.linspace(0.0, 1.0, count + 1)
    width = (0.8 if count <= FEW else 1.0) / count
    lows, highs = (edges[:-1] + edges[1:] - width) / 2.0, (edges[:-1] + edges[1:] + width) / 2.0
    bars = np.stack([lows, lows, highs, highs], axis=1).ravel()
    heights = sign * np.stack([0.0 * reached, reached, reached, 0.0 * reached], axis=1).ravel()
    ax.fill_between(bars, heights, color=color, alpha=0.45, linewidth=0, label="plan")
    ax.stairs(sign * asked, edges, color=BLACK, linewidth=1.3, label="given masses")
    total = float(asked.sum())
    share = 100.0 * float(np.minimum(asked, reached).sum()) / total if total else 100.0
    height, va = (0.91, "top") if sign > 0.0 else (0.02, "bottom")
    text = f"{side}: {share:.0f} % of the mass in place"
    ax.text(0.99, height, text, transform=ax.transAxes, ha="right", va=va, fontsize=9)


def _first_two(ax: "Axes") -> tuple[list[Any], list[str]]:
    """The handles and labels of the first two items; later ones repeat them."""
    handles, labels = ax.get_legend_handles_labels()
    return handles[:2], labels[:2]
