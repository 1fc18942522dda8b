"""What users give for kernels, weights, senses and costs of links, checked."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import _checks, _tables
from ._checks import ArrayLike, Floats
from ._tables import Labels
from .geometry.kernels import Kernel

KernelLike = Kernel | str | Callable[[Any, Any], Any] | ArrayLike
"""A kernel, its name or a rule for its bandwidth, a function of two sets of points, or a Gram matrix."""
KernelsLike = KernelLike | tuple[KernelLike, KernelLike] | None
"""One kernel for both sides, or one each; None for the default."""
WeightsLike = float | str | tuple[float | str, float | str]
"""The weight of marginal errors, "auto" or a multiple of it: one for both sides, or one each."""
SenseLike = str | tuple[str, str]
"""What marginals ask for, "=", "<=" or ">=": one for both sides, or one each."""
LinkCostLike = ArrayLike | float | None
"""A fixed cost of every link in use: one for all, or a matrix; None for none."""
_NOISE = 1e-8  # of the terms of a gradient: what is below may be rounding
SMALLEST, LARGEST = 1e-100, 1e100  # numbers whose products of three are numbers
_WEIGHTS = "a positive number, inf, 'auto' or a multiple such as '100*auto', or a pair of them"
SAME_UNITS = 1e6
"""Totals of masses that differ by a larger factor are taken for different units."""
SENSES = "=", "<=", ">="
"""What a side asks for: that its sums are its masses, at most its masses, or at least its masses."""


def require_finite_weights(unbalanced: Any, what: str) -> None:
    """Raise an error for infinite weights where something does not know hard marginals."""
    if np.inf in weights_of(unbalanced).numbers:
        raise ValueError(f"unbalanced must be finite for {what}, which does not support hard marginals")


def masses_of(a: Any, b: Any, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """The masses of both sides, checked; a side without any is uniform, with the total of the other one or with one."""
    first = None if a is None else _checks.masses("a", a, shape[0])
    second = None if b is None else _checks.masses("b", b, shape[1])
    return (
        uniform(shape[0], second) if first is None else first,
        uniform(shape[1], first) if second is None else second,
    )


def uniform(size: int, other: Floats | None) -> Floats:
    """Uniform masses with the total of the other side; with total one if that has none, or no total."""
    with np.errstate(over="ignore"):
        total = 1.0 if other is None else float(other.sum())
    return np.full(size, (total if 0.0 < total < np.inf else 1.0) / size)


class Weights(NamedTuple):
    """The weights of the two marginals as the user gave them: numbers, or multiples of "auto"."""

    numbers: tuple[float, float]
    of_auto: tuple[bool, bool]

    @property
    def need_auto(self) -> bool:
        """True if one of the weights is a multiple of "auto"."""
        return any(self.of_auto)

    def given(self, auto: Any) -> tuple[Any, Any]:
        """The weights for this value of "auto"."""
        first, second = (x * auto if multiple else x for x, multiple in zip(*self, strict=True))
        return first, second


def weights_of(unbalanced: Any) -> Weights:
    """The weights of the two marginals, checked."""
    if unbalanced is None:
        raise TypeError(f"unbalanced must be {_WEIGHTS}, got None: inf stands for hard marginals")
    single = isinstance(unbalanced, str) or np.ndim(unbalanced) == 0
    first, second = map(_weight, _pair("unbalanced", unbalanced, single=single))
    return Weights((first[0], second[0]), (first[1], second[1]))


def senses_of(sense: Any) -> tuple[str, str]:
    """The senses of the two sides, checked."""
    first, second = _pair("sense", sense, single=isinstance(sense, str) or not hasattr(sense, "__len__"))
    for each in (first, second):
        if each not in SENSES:
            raise ValueError(f"sense must be '=', '<=' or '>=', or a pair of them, got {sense!r}")
    return first, second


def link_cost_of(given: Any, shape: tuple[int, int], labels: tuple[Labels, Labels]) -> Floats | None:
    """What every link costs, checked; None if links cost nothing. One number for all takes no memory."""
    if given is None:
        return None
    if isinstance(given, np.ndarray) and given.shape == shape and given.strides == (0, 0):
        return given if given.any() else None  # checked before
    if np.ndim(given) == 0:
        found = np.broadcast_to(_checks.number("link_cost", given, positive=False), shape)
    else:
        found = _checks.real_array("link_cost", _tables.matched("link_cost", given, *labels), ndim=2)
        if found.shape != shape:
            raise ValueError(f"link_cost must be a number or have the shape of the costs, {shape}, got {found.shape}")
        if found.min() < 0.0:
            place = tuple(int(k) for k in np.argwhere(found < 0.0)[0])
            raise ValueError(f"link_cost must not be negative, got {found[place]} at {place}")
        found = found.copy()
        found.setflags(write=False)
    return found if found.any() else None


def potentials_of(sense: str) -> tuple[float, float]:
    """The lowest and the highest potential that the sense of a side allows."""
    return (0.0 if sense == ">=" else -np.inf), (0.0 if sense == "<=" else np.inf)


def _weight(value: Any) -> tuple[float, bool]:
    """The weight of one marginal, and whether it is a multiple of "auto"."""
    if isinstance(value, str):
        factor = re.fullmatch(r"(?:(.+?)\s*[*x]\s*)?auto", value.strip())
        try:
            return _checks.number("unbalanced", float(factor[1] or 1.0) if factor else np.nan, positive=True), True
        except ValueError:
            raise ValueError(f"unbalanced must be {_WEIGHTS}, got {value!r}") from None
    if isinstance(value, float | np.floating) and value == np.inf:
        return np.inf, False
    return _checks.number("unbalanced", value, positive=True), False


def costs_are_lost(scale: Any, common: Any) -> Any:
    """As `Problem.costs_are_lost`, from the scales and the common costs of problems."""
    return (scale * _NOISE > common) & (common > 0.0)


def side_is_lost(first: Any, second: Any) -> Any:
    """As `Problem.side_is_lost`, from the largest gradients of the marginal errors of the sides."""
    small, large = np.minimum(first, second), np.maximum(first, second)
    return (small > 0.0) & (small < _NOISE * large)


def is_in_range(size: Any) -> Any:
    """True if products of such numbers are neither too large nor too small for floating-point numbers."""
    return (size == 0.0) | ((size >= SMALLEST) & (size <= LARGEST))


def auto_weight(mean_cost: float, a: Floats, b: Floats, undelivered: float) -> float:
    """The weight of "auto": the empty plan costs a hundred times what moving all mass costs on average."""
    delivered = mean_cost * min(float(a.sum()), float(b.sum()))
    return 100.0 * delivered / undelivered if delivered > 0.0 and undelivered > 0.0 else 1.0


def sides_of(kernels: Any, default: Any) -> tuple[Any, Any]:
    """The kernel of each side, from what the user gave as kernels."""
    kernels = default if kernels is None else kernels
    return _pair("kernels", kernels, single=not isinstance(kernels, list | tuple))


def _pair(name: str, value: Any, *, single: bool) -> tuple[Any, Any]:
    """One thing for both sides, or one each."""
    if single:
        return value, value
    if len(value) != 2:
        raise ValueError(f"{name} must be one value for both sides or a pair, got {len(value)} values")
    return value[0], value[1]
