"""Kernels between the points of one side, under which marginal errors at close points cancel."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import _checks
from .._checks import Floats
from . import _entries, radial
from .costs import squared_distances

_RULES: dict[str, Callable[[Floats], Any]] = {"median": np.median, "mean": np.mean}
DEFAULT_RULE = "0.1*median"
"""The bandwidth of points without a kernel; ``python -m benchmarks.run bandwidth`` compares it with others."""
SAMPLE = 2000  # points that a bandwidth rule samples at most


@dataclass(frozen=True)
class Delta:
    """The kernel that is one at equal indices and zero elsewhere: the squared error of the marginals, point by point.

    Examples
    --------
    >>> import sparsetransport as st
    >>> st.solve([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], [0.5, 0.5], kernels=st.Delta(), budget=2).rows
    array([0, 1])
    """


@dataclass(frozen=True)
class Own:
    """A kernel given as a function ``k(X, Y)`` that returns an array of shape ``(len(X), len(Y))``."""

    function: Callable[[Any, Any], Any]

    def __repr__(self) -> str:
        return str(getattr(self.function, "__name__", repr(self.function)))

    def gram(self, points: Any) -> Any:
        """The Gram matrix of the points as the function returns it, not checked yet."""
        points = _checks.real_array("points", points, ndim=2)
        return self.function(points, points)


@dataclass(frozen=True)
class Radial:
    """A kernel of the squared distance ``d²`` with a squared bandwidth, given or found by a rule."""

    sigma2: float | str = "median"
    name: ClassVar[str]  # of its formula in the table of `radial`

    def __post_init__(self) -> None:
        if isinstance(self.sigma2, str):
            rule_of("sigma2", self.sigma2)
        else:
            sigma2 = _checks.number("sigma2", self.sigma2, positive=True)
            object.__setattr__(self, "sigma2", sigma2)  # the dataclass is frozen

    @property
    def code(self) -> int:
        """The number of the kernel in compiled functions."""
        return _entries.RADIAL + list(radial.TABLE).index(self.name)

    def bandwidth(self, points: Floats) -> float:
        """The squared bandwidth: ``sigma2``, or what the rule makes of the squared distances between the points."""
        if not isinstance(self.sigma2, str):
            return float(self.sigma2)
        factor, rule = rule_of("sigma2", self.sigma2)
        step = -(-len(points) // SAMPLE)
        sample = points[::step]
        square = squared_distances(sample, sample)[np.triu_indices(len(sample), 1)]
        found = factor * float(_RULES[rule](square)) if square.size else 0.0
        return found if found > 0.0 else 1.0

    def gram(self, points: Any) -> Floats:
        """The Gram matrix of the points."""
        points = _checks.real_array("points", points, ndim=2)
        gram = squared_distances(points, points)
        _entries.apply_kernel(self.code, self.bandwidth(points), gram.reshape(-1))
        return gram


class RBF(Radial):
    """The Gaussian kernel ``exp(-d² / 2σ²)``.

    Parameters
    ----------
    sigma2 : float, "median", "mean", or a multiple of one such as "0.1*median"
        The squared bandwidth σ², or the rule that finds it from the squared distances between the points of a side, so
        that rescaling the data changes nothing.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> st.RBF(0.5).gram(np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    name = "rbf"


class IMQ(Radial):
    """The inverse multiquadratic kernel ``(σ² + d²)^-½``.

    Parameters
    ----------
    sigma2 : float, "median", "mean", or a multiple of one such as "0.1*median"
        σ², or the rule that finds it from the squared distances between the points of a side.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> st.IMQ(1.0).gram(np.array([[0.0], [np.sqrt(3.0)]])).round(3)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    name = "imq"


class IMQv2(Radial):
    """The second inverse multiquadratic kernel of the paper, ``((1 + d²) / σ²)^-½``.

    Parameters
    ----------
    sigma2 : float, "median", "mean", or a multiple of one such as "0.1*median"
        σ², or the rule that finds it from the squared distances between the points of a side.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> st.IMQv2(4.0).gram(np.array([[0.0], [np.sqrt(3.0)]])).round(3)
    array([[2., 1.],
           [1., 2.]])
    """

    name = "imq-v2"


class Laplace(Radial):
    """The Laplace kernel ``exp(-d / σ)``, which is not smooth at distance zero, unlike the Gaussian.

    Parameters
    ----------
    sigma2 : float, "median", "mean", or a multiple of one such as "0.1*median"
        σ², or the rule that finds it from the squared distances between the points of a side.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> st.Laplace(4.0).gram(np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    name = "laplace"


Kernel = Delta | Radial | Own
NAMES: dict[str, type[Delta] | type[Radial]] = {
    **{kernel.name: kernel for kernel in (RBF, IMQ, IMQv2, Laplace)},
    "delta": Delta,
}


def rule_of(name: str, text: Any) -> tuple[float, str]:
    """The factor and the rule of a bandwidth such as "median" or "0.1*median"."""
    found = _parsed(text)
    if found is None:
        known = " or ".join(map(repr, _RULES))
        raise ValueError(f"{name} must be a positive number, {known}, or a multiple such as '0.1*median', got {text!r}")
    return found


def _parsed(text: str) -> tuple[float, str] | None:
    """The same, or None for another text."""
    parts = re.fullmatch(rf"(?:(.+?)\s*\*\s*)?({'|'.join(_RULES)})", text.strip())
    try:
        factor = float(parts[1] or 1.0) if parts else np.nan
    except ValueError:
        return None
    return (factor, parts[2]) if parts and 0.0 < factor < np.inf else None


def as_kernel(name: str, value: Any) -> Kernel:
    """A kernel object from an object, a kernel's name, a bandwidth rule (then RBF), or a function."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, type) and issubclass(value, Delta | Radial):
        raise TypeError(f"{name} must be a kernel, got the class {value.__name__}: make one with {value.__name__}()")
    if isinstance(value, str) and _parsed(value) is not None:
        return RBF(value)
    if callable(value) and not isinstance(value, type):
        return Own(value)
    kind = _checks.choice(name, value, {**NAMES, **dict.fromkeys(_RULES)})
    kernel: Kernel = kind()
    return kernel
