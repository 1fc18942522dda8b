"""Kernels between the points of one side: what makes marginal errors at close points forgivable."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import _checks
from .._checks import Floats
from . import _entries
from .costs import squared_distances

_RULES: dict[str, Callable[[Floats], Any]] = {"median": np.median, "mean": np.mean}
SAMPLE = 2000  # a bandwidth rule looks at no more points than this


@dataclass(frozen=True)
class Delta:
    """The kernel that is one at equal indices and zero elsewhere: a plain squared error of the marginals.

    Examples
    --------
    >>> import sparsetransport as st
    >>> st.solve([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], [0.5, 0.5], kernels=st.Delta(), budget=2).rows
    array([0, 1])
    """

    code: ClassVar[int] = _entries.DELTA


@dataclass(frozen=True)
class _Radial:
    """A kernel of the squared distance ``d²`` with a squared bandwidth, given or found by a rule."""

    sigma2: float | str = "median"
    code: ClassVar[int]

    def __post_init__(self) -> None:
        if isinstance(self.sigma2, str):
            _checks.choice("sigma2", self.sigma2, _RULES)
        else:
            sigma2 = _checks.number("sigma2", self.sigma2, positive=True)
            object.__setattr__(self, "sigma2", sigma2)  # the dataclass is frozen

    def bandwidth(self, points: Floats) -> float:
        """The squared bandwidth: ``sigma2``, or the median or mean of the squared distances between the points."""
        if not isinstance(self.sigma2, str):
            return float(self.sigma2)
        step = -(-len(points) // SAMPLE)
        sample = points[::step]
        square = squared_distances(sample, sample)[np.triu_indices(len(sample), 1)]
        found = float(_RULES[self.sigma2](square)) if square.size else 0.0
        return found if found > 0.0 else 1.0

    def gram(self, points: Any) -> Floats:
        """The Gram matrix of the points."""
        points = _checks.real_array("points", points, ndim=2)
        gram = squared_distances(points, points)
        _entries.apply_kernel(self.code, self.bandwidth(points), gram.reshape(-1))
        return gram


class RBF(_Radial):
    """The Gaussian kernel ``exp(-d² / 2σ²)``.

    Parameters
    ----------
    sigma2 : float or {"median", "mean"}
        The squared bandwidth σ², or the rule that finds it from the squared distances between the points of a side, so
        that rescaling the data changes nothing.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> st.RBF(0.5).gram(np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    code = _entries.RBF


class IMQ(_Radial):
    """The inverse multiquadratic kernel ``(σ² + d²)^-½``.

    Parameters
    ----------
    sigma2 : float or {"median", "mean"}
        σ², or the rule that finds it from the squared distances between the points of a side.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> st.IMQ(1.0).gram(np.array([[0.0], [np.sqrt(3.0)]])).round(3)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    code = _entries.IMQ


class IMQv2(_Radial):
    """The second inverse multiquadratic kernel of the paper, ``((1 + d²) / σ²)^-½``.

    Parameters
    ----------
    sigma2 : float or {"median", "mean"}
        σ², or the rule that finds it from the squared distances between the points of a side.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> st.IMQv2(4.0).gram(np.array([[0.0], [np.sqrt(3.0)]])).round(3)
    array([[2., 1.],
           [1., 2.]])
    """

    code = _entries.IMQ_V2


Kernel = Delta | _Radial
NAMES: dict[str, type[Delta] | type[_Radial]] = {"rbf": RBF, "imq": IMQ, "imq-v2": IMQv2, "delta": Delta}


def as_kernel(name: str, value: Any) -> Kernel:
    """A kernel object from an object, a kernel's name, or a bandwidth rule (then RBF)."""
    if isinstance(value, Delta | _Radial):
        return value
    if isinstance(value, type) and issubclass(value, Delta | _Radial):
        raise TypeError(f"{name} must be a kernel, got the class {value.__name__}: make one with {value.__name__}()")
    if isinstance(value, str) and value in _RULES:
        return RBF(value)
    kind = _checks.choice(name, value, {**NAMES, **dict.fromkeys(_RULES)})
    kernel: Kernel = kind()
    return kernel
