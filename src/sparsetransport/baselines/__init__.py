"""Other methods for transport plans, for comparison: all take a `Problem` and return a `Result`.

`gsot` takes a list of problems, scenarios that share their links, and returns a `SharedResult`.

The value of a result is *our* objective of the method's plan, whatever the method itself minimises; ``status`` is
``Status.BASELINE``, or the status of our generic greedy loop for methods that run on it; ``converged`` says whether the
method itself converged, and the certificate bounds our objective. Most methods use POT
(``pip install 'sparsetransport[pot]'``).
"""

from ._wrap import require_pot
from .algorithm_1 import algorithm_1
from .algorithm_2 import algorithm_2
from .entropic import entropic_ot
from .entropic_partial import entropic_partial_ot
from .exact import exact_ot
from .gsot import gsot
from .kl_unbalanced import kl_uot
from .mmd_unbalanced import mmd_uot
from .partial import partial_ot
from .scot import scot
from .scot_dual import scot_dual
from .ssot import ssot
from .top_k import top_k

__all__ = [
    "algorithm_1",
    "algorithm_2",
    "entropic_ot",
    "entropic_partial_ot",
    "exact_ot",
    "gsot",
    "kl_uot",
    "mmd_uot",
    "partial_ot",
    "require_pot",
    "scot",
    "scot_dual",
    "ssot",
    "top_k",
]
