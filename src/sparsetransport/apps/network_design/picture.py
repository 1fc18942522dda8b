"""Plots of a network, and of its profit against the number of links."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...plotting._common import BLUE, GREY, ORANGE, require_matplotlib
from .choose import Design

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = 60  # plants or products up to which all are named


def draw(
    network: Design, *, plants: Sequence[str] | None = None, products: Sequence[str] | None = None, points: int = 20
) -> "Figure":
    """Plot the network, and beside it the expected profit against the number of links.

    Parameters
    ----------
    network : Design
    plants, products : lists of str, optional
        Their names; numbers by default.
    points : int
        How many numbers of links to evaluate.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> from sparsetransport.apps.network_design import design, draw
    >>> demand = np.random.default_rng(0).uniform(0.5, 1.5, size=(20, 5))
    >>> figure = draw(design(np.ones((5, 5)), np.ones(5), demand, links=10), points=4)
    >>> len(figure.axes)
    2
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    _check_names(network, plants, products)
    rows = max(network._task.rates.shape)
    height = min(max(4.5, 0.19 * min(rows, _NAMES) + 1.4), 13.0)
    figure = Figure(figsize=(11.5, height), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1.0])
    draw_network(left, network, plants=plants, products=products)
    draw_curve(right, network, points=points)
    return figure


def draw_network(
    ax: "Axes", network: Design, *, plants: Sequence[str] | None = None, products: Sequence[str] | None = None
) -> None:
    """Draw plants left and products right; the width of a link is proportional to its expected flow."""
    _check_names(network, plants, products)
    m, n = network._task.rates.shape
    y_left, y_right = _heights(m), _heights(n)
    flows = network.training.expected_flows
    widest = float(flows.max(initial=0.0)) or 1.0
    thick = np.clip(220.0 / max(len(flows), 1), 1.5, 7.0)
    for k, (i, j) in enumerate(network.links.tolist()):
        old = k < network.fixed
        ax.plot(
            [0.0, 1.0],
            [y_left[i], y_right[j]],
            color=GREY if old else BLUE,
            linewidth=max(thick * flows[k] / widest, 0.4),
            linestyle=(0, (4, 1.5)) if old else "-",
            alpha=0.75,
            solid_capstyle="round",
            zorder=1,
        )
    size = float(np.clip(900.0 / max(m, n), 6.0, 60.0))
    ax.scatter(np.zeros(m), y_left, size, color="#222222", marker="s", zorder=2)
    ax.scatter(np.ones(n), y_right, size, color=ORANGE, marker="o", zorder=2)
    for names, count, heights, x, side in ((plants, m, y_left, -0.03, "right"), (products, n, y_right, 1.03, "left")):
        if count > _NAMES:
            continue
        for k in range(count):
            text = str(k if names is None else names[k])
            size = float(np.clip(300.0 / count, 5.0, 9.0))
            ax.text(x, heights[k], text, ha=side, va="center", fontsize=size, parse_math=False)
    ax.set(xlim=(-0.35, 1.35) if max(m, n) <= _NAMES else (-0.08, 1.08), ylim=(1.04, -0.04))
    ax.set_axis_off()
    there = f" ({network.fixed} there already, dashed)" if network.fixed else ""
    title = f"{_count(len(network.links), 'link')}{there} from {_count(m, 'plant')} to {_count(n, 'product')}"
    ax.set_title(f"{title}\nwidth: expected flow", fontsize=10.5, loc="left")


def draw_curve(ax: "Axes", network: Design, *, points: int = 20) -> None:
    """Draw the expected profit against the number of links, built one by one, and full flexibility as a line.

    A design with a smaller ``links`` can earn more than the first links of this one.
    """
    counts, train, test = network.curve(points)
    train_full, test_full = network.full
    ax.plot(counts, train, "o-", color=BLUE, markersize=4, label="these scenarios")
    ax.axhline(train_full.expected, color=BLUE, linewidth=1.0, linestyle="--", label="full flexibility")
    if test is not None and test_full is not None:
        ax.plot(counts, test, "s-", color=ORANGE, markersize=4, markerfacecolor="none", label="held-out scenarios")
        ax.axhline(test_full.expected, color=ORANGE, linewidth=1.0, linestyle=":", label="full flexibility, held out")
    title = "no link that may be built earns anything"
    if train_full.expected > 0.0:
        share = 100.0 * train[-1] / train_full.expected
        title = f"{share:.1f} % of the profit of {_count(len(train_full.links), 'link')}"
    ax.set_title(title, fontsize=10.5, loc="left")
    ax.set(xlabel="links of this design, built one by one", ylabel="expected profit", xlim=(0, None), ylim=(0, None))
    ax.locator_params(axis="x", integer=True)
    ax.grid(color="0.92")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower right", frameon=False)


def _check_names(network: Design, plants: Sequence[str] | None, products: Sequence[str] | None) -> None:
    """Raise an error unless every plant and product has a name, or none has."""
    shape = network._task.rates.shape
    for what, names, count in zip(("plants", "products"), (plants, products), shape, strict=True):
        if names is not None and len(names) != count:
            raise ValueError(f"{what} must have one name for each of the {count} {what}, got {len(names)}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _heights(count: int) -> np.ndarray:
    """Evenly spaced heights from top to bottom."""
    return (np.arange(count) + 0.5) / count
