"""PyTorch: differentiable plans and values, a loss, and routers for mixtures of experts.

Needs PyTorch (``pip install 'sparsetransport[torch]'``); nothing else in the package imports it.
"""

from .. import _checks

try:
    import torch  # noqa: F401
except ImportError:
    raise _checks.missing("sparsetransport.nn needs PyTorch", "torch") from None

from .autograd import Transport, sparse_transport
from .baseline_routers import EntropicRouter, KLRouter, MMDRouter, SCOTRouter, SSOTRouter
from .geometry import cost_matrix, gram_matrix
from .loss import SparseTransportLoss
from .moe import SparseMoE
from .router import NoisyTopKRouter, Router, Routing, SparseTransportRouter, TopKRouter

__all__ = [
    "EntropicRouter",
    "KLRouter",
    "MMDRouter",
    "NoisyTopKRouter",
    "Router",
    "Routing",
    "SCOTRouter",
    "SSOTRouter",
    "SparseMoE",
    "SparseTransportLoss",
    "SparseTransportRouter",
    "TopKRouter",
    "Transport",
    "cost_matrix",
    "gram_matrix",
    "sparse_transport",
]
