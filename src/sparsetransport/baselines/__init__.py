"""Other ways to a transport plan, for comparison: all take a `Problem` and give a `Result`.

`gsot` takes a list of problems, scenarios that share their links, and gives a `SharedResult`.

The value of a result is *our* objective of the plan that the method made, whatever the method itself minimises;
``status`` is ``Status.BASELINE``, or what our own loop says where the method runs on it; ``converged`` says whether the
method itself converged, and the certificate compares the plan with the best one of our objective. Most of the work is
done by POT (``pip install 'sparsetransport[pot]'``).
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
