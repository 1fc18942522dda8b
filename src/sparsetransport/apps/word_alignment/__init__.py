"""Word alignment: encoders, sparse plans between the words of two sentences, and links."""

from .aligner import Alignment, WordAligner, cosines
from .links import DEFAULTS, Settings, align_costs, word_costs

__all__ = ["DEFAULTS", "Alignment", "Settings", "WordAligner", "align_costs", "cosines", "word_costs"]
