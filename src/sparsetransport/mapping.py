"""Where a plan sends points: barycentres of its links, for its own points and for new ones."""

from typing import Any

import numpy as np

from . import _checks, _tables
from ._checks import Floats
from .geometry import _entries
from .geometry.costs import squared_distances
from .geometry.kernels import Radial
from .problem import Problem
from .result import Parts

_AT_ONCE = 1 << 22  # entries of the kernel between points and links


def barycentres(problem: Problem, parts: Parts, side: int) -> Floats:
    """Where the points of a side go on average.

    Under a kernel the points at the other ends of all links, weighted by mass times kernel; under `Delta` those of the
    point's own links, and NaN without one.
    """
    near, far, points = _ends(parts, side)
    gram = (problem.gram_a, problem.gram_b)[side]
    if gram.is_delta:
        total = np.zeros((parts.shape[side], points.shape[1]))
        np.add.at(total, near, parts.mass[:, None] * points[far])
        weight = parts.marginals[side][:, None]
        return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0.0)
    own = _own_points(parts, side)
    used, at = np.unique(near, return_inverse=True)

    def average(first: int, last: int) -> Floats:
        similar = gram.block(np.arange(first, last), used)
        return _average(similar, lambda: squared_distances(own[first:last], own[used]), at, parts.mass, points[far])

    return _in_blocks(average, len(own), len(near))


def of_new_points(problem: Problem, parts: Parts, side: int, new: Any) -> Floats:
    """The same for points that the plan does not know, under a kernel of the package."""
    near, far, points = _ends(parts, side)
    gram = (problem.gram_a, problem.gram_b)[side]
    name = "XY"[side]
    new = new.toarray() if hasattr(new, "toarray") else new
    new = _tables.aligned(name, new, "columns", problem.coordinates, "columns of the points of the plan")
    given = _checks.real_array(name, new, ndim=2, cure="each row is a point")
    own = _own_points(parts, side)
    if given.shape[1] != own.shape[1]:
        raise ValueError(f"{name} must have {own.shape[1]} features, as the points of the plan, got {given.shape[1]}")
    kernel = gram.kernel
    if not isinstance(kernel, Radial):
        raise ValueError(
            "new points need a kernel of the package other than Delta on their side, such as kernels='median': "
            "under others it is not known how similar they are to the points of the plan"
        )
    if not np.array_equal(gram.points, own):  # the kernel compares directions, as the cosine does
        given = given / np.maximum(np.linalg.norm(given, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    used, at = np.unique(near, return_inverse=True)
    known = gram.points[used]

    def average(first: int, last: int) -> Floats:
        square = squared_distances(given[first:last], known) if len(known) else np.zeros((last - first, 0))
        similar = square.copy()
        _entries.apply_kernel(kernel.code, gram.bandwidth, similar.reshape(-1))
        return _average(similar, lambda: square, at, parts.mass, points[far])

    return _in_blocks(average, len(given), len(near))


def _ends(parts: Parts, side: int) -> tuple[Any, Any, Floats]:
    """The ends of the links on a side, those on the other, and the points there."""
    _own_points(parts, side)
    assert parts.points is not None
    ends = parts.rows, parts.cols
    return ends[side], ends[1 - side], parts.points[1 - side]


def _own_points(parts: Parts, side: int) -> Floats:
    if parts.points is None:
        raise ValueError("a_to_b, b_to_a and transport need points: solve with solve_sample or Problem.from_points")
    return parts.points[side]


def _average(similar: Floats, square: Any, at: Any, mass: Floats, points: Floats) -> Floats:
    """The points at the ends of links, weighted by the kernel; where that is zero everywhere, of the closest."""
    if not len(mass):
        return np.full((len(similar), points.shape[1]), np.nan)
    similar = similar.clip(0.0)
    lost = ~similar.any(axis=1)
    if lost.any():
        distance = square()[lost]
        similar[lost] = distance == distance.min(axis=1, keepdims=True)
    weight = similar[:, at] * mass
    return np.asarray(weight @ points / weight.sum(axis=1, keepdims=True))


def _in_blocks(average: Any, count: int, links: int) -> Floats:
    step = max(_AT_ONCE // max(links, 1), 1)
    return np.concatenate([average(first, min(first + step, count)) for first in range(0, count, step)])
