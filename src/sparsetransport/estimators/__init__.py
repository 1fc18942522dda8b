"""Transport in the interface of scikit-learn: labels, and maps of points, by one sparse plan.

Needs scikit-learn (``pip install 'sparsetransport[sklearn]'``); ``import sparsetransport`` does not import this.
"""

from .. import _checks

try:
    import sklearn  # noqa: F401
except ImportError:
    raise _checks.missing("sparsetransport.estimators needs scikit-learn 1.6 or newer", "sklearn") from None

from .classifier import TransportClassifier
from .mapping import SparseTransport

__all__ = ["SparseTransport", "TransportClassifier"]
