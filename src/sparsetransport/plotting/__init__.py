"""Plots of plans and of the paths of solves. Needs matplotlib, which is imported only when something is drawn.

Every function takes ``ax=`` and returns the Axes. The colours are the colour-blind safe palette of Okabe and Ito;
markers and fills carry the same information, so that nothing is lost in greyscale.
"""

from ._common import require_matplotlib
from .links import label_points, plot_edges
from .marginals import plot_marginals
from .matrices import plot_alignment, plot_plan
from .paths import plot_path, plot_sweep

__all__ = [
    "label_points",
    "plot_alignment",
    "plot_edges",
    "plot_marginals",
    "plot_path",
    "plot_plan",
    "plot_sweep",
    "require_matplotlib",
]
