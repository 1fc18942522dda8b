"""Costs of moving mass between the points of two sides."""

from typing import Any

import numpy as np

from .. import _checks, _tables
from .._checks import Floats
from . import _entries

METRICS = {"sqeuclidean": _entries.SQEUCLIDEAN, "euclidean": _entries.EUCLIDEAN, "cosine": _entries.SQEUCLIDEAN}
_SMALLEST, _LARGEST = 1e-50, 1e50  # of the largest coordinate: squares are within the range of costs
_NO_MATRIX = np.zeros((0, 0))


def squared_distances(x: Floats, y: Floats) -> Floats:
    """All squared Euclidean distances, exactly zero for equal points."""
    return _entries.lazy_block(lazy_cost(x, y, "sqeuclidean"), 0, len(x))


def lazy_cost(x: Floats, y: Floats, metric: str) -> _entries.Cost:
    """A lazy cost: points in a form whose matrix product gives the distances."""
    kind, scale = METRICS[metric], 1.0
    if metric == "cosine":  # half the squared distance of directions, which rounds better than one minus their product
        x, y, scale = directions("X", x), directions("Y", y), 0.5
    centre = y.mean(axis=0)
    return factored(kind, x - centre, y - centre, scale)


def factored(kind: int, x: Floats, y: Floats, scale: float) -> _entries.Cost:
    """A lazy cost between points as they are: for the least rounding they should be around zero."""
    one_x, one_y = np.ones((len(x), 1)), np.ones((len(y), 1))
    left = np.hstack([-2.0 * x, np.sum(x * x, axis=1, keepdims=True), one_x])
    right = np.hstack([y, one_y, np.sum(y * y, axis=1, keepdims=True)])
    return _entries.Cost(kind, _NO_MATRIX, left, np.ascontiguousarray(right.T), scale)


def directions(name: str, x: Floats) -> Floats:
    """Points with length one, however long they are."""
    largest = np.abs(x).max(axis=1, keepdims=True, initial=0.0)
    if largest.size and largest.min() == 0.0:
        raise ValueError(f"{name} has the zero vector at row {int(largest.argmin())}: its cosine is not defined")
    x = x / largest
    directions: Floats = x / np.linalg.norm(x, axis=1, keepdims=True)
    return directions


def cost_matrix(x: Any, y: Any, metric: str = "sqeuclidean", *, normalize: bool = False) -> Floats:
    """The matrix of costs between two point sets.

    Parameters
    ----------
    x, y : arrays of shape (m, d) and (n, d)
        The points.
    metric : {"sqeuclidean", "euclidean", "cosine"}
        "cosine" is one minus the cosine of the angle.
    normalize : bool
        Divide by the largest entry.

    Examples
    --------
    >>> import sparsetransport as st
    >>> st.cost_matrix([[0.0], [1.0]], [[1.0], [3.0]], normalize=True).round(3)
    array([[0.111, 1.   ],
           [0.   , 0.444]])
    """
    x, y = points(x, y)
    require_metric(metric)
    matrix = _entries.lazy_block(lazy_cost(x, y, metric), 0, len(x))
    largest = matrix.max()
    return matrix / largest if normalize and largest > 0.0 else matrix


def require_metric(metric: Any) -> None:
    """Raise an error unless the metric is a known one."""
    if not isinstance(metric, str) or metric not in METRICS:
        known = ", ".join(map(repr, METRICS))
        raise ValueError(f"metric must be one of {known}, got {metric!r}: for others, give a cost matrix to solve")


def points(x: Any, y: Any) -> tuple[Floats, Floats]:
    """Two checked point sets of the same dimension; sparse ones become dense."""
    x, y = (each.toarray() if hasattr(each, "toarray") else each for each in (x, y))
    y = _tables.aligned("Y", y, "columns", _tables.labels(x, "columns"), "columns of X")
    cure = "each row is a point; reshape(-1, 1) makes points on a line"
    x, y = (_checks.real_array(name, each, ndim=2, cure=cure) for name, each in (("X", x), ("Y", y)))
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"X and Y must have the same number of features, got {x.shape[1]} and {y.shape[1]}")
    largest = max(float(np.abs(each).max(initial=0.0)) for each in (x, y))
    if largest and not _SMALLEST <= largest <= _LARGEST:
        raise ValueError(
            f"X and Y must have absolute values between {_SMALLEST:g} and {_LARGEST:g}, whose squares can be added, "
            f"got {largest:g} as the largest: choose other units"
        )
    return x, y
