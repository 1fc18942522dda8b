"""Network design: the links to build between plants and products for uncertain demand.

``design`` chooses the links, ``evaluate`` computes the profit of any set of links, ``dedicated`` and ``long_chain`` are
the classic networks to compare with, and ``draw`` plots a network.
"""

from .choose import Comparison, Design, design
from .classic import dedicated, long_chain
from .evaluation import Evaluation, evaluate
from .picture import draw, draw_curve, draw_network

__all__ = [
    "Comparison",
    "Design",
    "Evaluation",
    "dedicated",
    "design",
    "draw",
    "draw_curve",
    "draw_network",
    "evaluate",
    "long_chain",
]
