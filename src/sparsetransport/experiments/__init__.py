"""The tables and figures of the paper, one module for each experiment, with the paper's numbers beside ours."""

from collections.abc import Callable
from importlib import import_module

from .report import Progress, Quiet, Report, Table

EXPERIMENTS: dict[str, str] = {
    "duality-gap": "sparsetransport.experiments.duality_gap",
    "timing": "sparsetransport.experiments.timing",
    "diversity": "sparsetransport.experiments.diversity",
    "gradient-flow": "sparsetransport.experiments.gradient_flow",
    "colour-transfer": "sparsetransport.experiments.colour_transfer",
    "network-design": "sparsetransport.experiments.network_design",
    "word-alignment": "sparsetransport.experiments.word_alignment",
    "moe-toy": "sparsetransport.experiments.moe_toy",
    "moe-cifar": "sparsetransport.experiments.moe_cifar",
}
"""Every experiment and the module with its ``run``, which is imported on demand."""

SUMMARIES: dict[str, str] = {
    "duality-gap": "objective and duality gap of three solvers (Table 4 and two of the appendix); CIFAR-10",
    "timing": "objective against time, the paper's algorithm and ours (a figure of the appendix); CIFAR-10",
    "diversity": "which points a few links reach (two figures of the appendix)",
    "gradient-flow": "points that flow to a target (a figure of the appendix)",
    "colour-transfer": "the colours of one photograph given to another (a figure of the appendix)",
    "network-design": "profit of networks with few links for uncertain demand (Table 1 and two of the appendix)",
    "word-alignment": "links between the words of two sentences (Table 2 and one of the appendix); MultiMWA-Wiki",
    "moe-toy": "three small experts under eight routers (the t-SNE figure)",
    "moe-cifar": "four ResNet-18s under eight routers (Table 3); CIFAR-10, and a GPU for --full",
}
"""One line about each experiment."""


def load(name: str) -> Callable[..., Report]:
    """The function ``run(*, data, full, seed, progress)`` of an experiment, which returns its `Report`.

    Examples
    --------
    >>> from sparsetransport import experiments
    >>> experiments.load("timing").__name__
    'run'
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"the experiment must be one of {', '.join(map(repr, EXPERIMENTS))}, got {name!r}")
    run: Callable[..., Report] = import_module(EXPERIMENTS[name]).run
    return run


__all__ = ["EXPERIMENTS", "SUMMARIES", "Progress", "Quiet", "Report", "Table", "load"]
