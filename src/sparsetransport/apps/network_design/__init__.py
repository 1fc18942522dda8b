"""Which links to build between plants and products, for demand that is not known yet.

``design`` chooses them, ``evaluate`` says what any set of links earns, ``dedicated`` and ``long_chain`` are the classic
answers to compare with, and ``draw`` makes the picture.
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
