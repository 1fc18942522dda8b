"""Plans as matrices."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _checks
from ._common import BLUE, FEW, MANY, ORANGE, axes_or_new, entries_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WORDS = 40  # the most words written along a side


def plot_plan(plan: Any, *, ax: "Axes | None" = None, color: str = BLUE) -> "Axes":
    """Draw a plan as a matrix: one dot for each entry, its area proportional to the mass.

    Parameters
    ----------
    plan : Result, SciPy sparse array, or array of shape (m, n)
        The plan; entries that are zero are left out.
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
    rows, cols, mass, (m, n) = entries_of(plan)
    ax = axes_or_new(ax)
    ax.set(aspect="equal", xlabel="column", ylabel="row")
    if max(m, n) <= FEW:
        ax.set_xticks(range(n))
        ax.set_yticks(range(m))
        ax.grid(color="0.9", linewidth=0.8)
        ax.set_axisbelow(True)
    # A dot fills its cell, and stays visible if cells are too small to see.
    frame = ax.get_window_extent()
    cell = min(frame.width / n, frame.height / m) * 72.0 / ax.figure.dpi
    widest = float(np.clip(0.9 * cell, 5.0, 22.0))
    margin = max(0.5, 0.5 * widest / cell)  # a whole dot if that is larger than a cell
    ax.set(xlim=(-margin, n - 1 + margin), ylim=(m - 1 + margin, -margin))
    area = np.maximum(widest**2 * mass / mass.max(initial=1e-300), max(0.2 * widest, 1.2) ** 2)
    ax.scatter(cols, rows, s=area, color=color, linewidths=0)
    return ax


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
        A matplotlib colour map from light to dark.

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
    rows, cols, mass, (m, n) = entries_of(plan)
    source, target = _words("source", source, m), _words("target", target, n)
    given = _checks.pairs("links", [] if links is None else links)
    _checks.inside("links", given, (m, n))
    pairs = np.array(given, np.int64).reshape(-1, 2)
    if max(m, n) > MANY:  # cells would be smaller than a pixel
        ax = plot_plan(plan, ax=ax)
    else:
        ax = axes_or_new(ax)
        shades = np.zeros((max(m, 1), max(n, 1)))  # also for a sentence without words
        shades[rows, cols] = mass
        ax.imshow(shades, cmap=cmap, vmin=0.0, vmax=mass.max(initial=1e-300), interpolation="nearest")
    if max(m, n) <= 2 * FEW:
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
    every_row, every_col = max(-(-m // _WORDS), 1), max(-(-n // _WORDS), 1)
    size = float(np.clip(240.0 / max(min(m, _WORDS), min(n, _WORDS), 1), 5.0, 10.0))
    ax.set_yticks(range(0, m, every_row), source[::every_row], fontsize=size, parse_math=False)
    ax.set_xticks(range(0, n, every_col), target[::every_col], fontsize=size, rotation=90, parse_math=False)
    ax.set(xlabel="", ylabel="")
    ax.tick_params(which="major", length=2)
    return ax


def _words(name: str, words: Any, count: int) -> list[str]:
    """The words, checked to be as many as the plan has rows or columns."""
    found = [str(word) for word in words]
    if len(found) != count:
        raise ValueError(f"{name} must have one word for each of the {count} points, got {len(found)}")
    return found
