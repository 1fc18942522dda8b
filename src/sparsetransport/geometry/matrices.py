"""Costs and Gram matrices, dense or lazy, behind one interface.

A dense one holds the matrix. A lazy one holds points and computes entries on demand: the cost in blocks of rows, the
Gram matrix by columns, so that no array of the size of the plan ever exists. Both give the same plan.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import _checks
from .._checks import Floats, Ints
from .._numba.threads import in_parts
from . import _entries, radial
from ._entries import FAR, SUMMED
from .costs import factored, lazy_cost
from .kernels import Delta, Own, Radial, as_kernel
from .low_rank import Factor, factor_of

_NO_POINTS = np.zeros((0, 0))
_BLOCK = SUMMED
COPIED_UP_TO = 1 << 26  # bytes; larger cost matrices are not copied
_SAMPLE = 4096  # costs that are sampled
_TILE = 256, 1024  # rows and columns of a lazy Gram matrix that exist at one time in a product
_PART = 2048  # rows of a Gram matrix that one thread multiplies at a time
_FACTORISED_FROM = 8000  # points; the products of a smaller Gram matrix take less time than its factor
_FEW_DIMENSIONS = 4  # up to which differences are as fast as products
_EXACT = 1e-13  # of the bandwidth: the error of a squared distance that is nothing
_STRICT = 1e-8  # of the largest entry: the asymmetry that a Gram matrix in double precision may have


@dataclass(frozen=True, eq=False)
class Cost:
    """Costs between two sides; ``compiled`` is their form for compiled functions."""

    compiled: _entries.Cost
    shape: tuple[int, int]

    @classmethod
    def dense(cls, matrix: Any) -> "Cost":
        """From a matrix, which is copied unless it is large; ``+inf`` forbids a pair.

        A copy is needed since bounds and plans of smaller budgets are computed later, when the array may have changed.
        """
        array = _checks.real_array(
            "C",
            matrix,
            ndim=2,
            infinite=True,
            cure="for many problems call solve_batch"
            if getattr(matrix, "ndim", 1) > 2
            else "costs come first, then a and b",
        )
        theirs = array is matrix or not array.flags.owndata
        return cls.of_matrix(array.copy() if theirs and array.nbytes <= COPIED_UP_TO else array)

    @classmethod
    def of_matrix(cls, array: Floats) -> "Cost":
        """From a matrix that has been checked."""
        array = array if array.flags.writeable else array.copy()  # compiled functions take writable arrays only
        return cls(_entries.Cost(_entries.MATRIX, array, _NO_POINTS, _NO_POINTS, 1.0), (array.shape[0], array.shape[1]))

    @classmethod
    def lazy(cls, x: Floats, y: Floats, metric: str, *, normalize: bool = False) -> "Cost":
        """From points."""
        compiled = lazy_cost(x, y, metric)
        cost = cls(compiled, (len(x), len(y)))
        if normalize:
            largest = max(float(block.max()) for _, block in cost.blocks())
            cost = cls(compiled._replace(scale=compiled.scale / largest if largest > 0.0 else 1.0), cost.shape)
        return cost

    @property
    def is_squared(self) -> bool:
        """True if entries are squared distances between points, computed on demand."""
        return self.compiled.kind == _entries.SQEUCLIDEAN

    @property
    def is_lazy(self) -> bool:
        """True if entries are computed on demand."""
        return self.compiled.kind != _entries.MATRIX

    def rows(self, first: int, last: int) -> Floats:
        """Rows ``first`` to ``last``; not to be written to."""
        if not self.is_lazy:
            return self.compiled.matrix[first:last]
        return _entries.lazy_block(self.compiled, first, last)

    def blocks(self) -> Any:
        """All rows, a block at a time: pairs of first row and block."""
        for first in range(0, self.shape[0], _BLOCK):
            yield first, self.rows(first, min(first + _BLOCK, self.shape[0]))

    def columns(self, which: Ints) -> Floats:
        """Some columns, as an array of shape (m, len(which))."""
        if not self.is_lazy:
            return self.compiled.matrix[:, which]
        return _entries.lazy_block(
            self.compiled._replace(y=np.ascontiguousarray(self.compiled.y[:, which])), 0, self.shape[0]
        )

    def entries(self, rows: Ints, cols: Ints) -> Floats:
        """The entries at the given pairs."""
        return _entries.cost_entries(self.compiled, *(np.ascontiguousarray(at, np.int64) for at in (rows, cols)))

    def restricted(self, rows: Ints, cols: Ints) -> "Cost":
        """The costs between some rows and some columns, in the given order; lazy ones stay lazy."""
        theirs = self.compiled
        if not self.is_lazy:
            return Cost.of_matrix(theirs.matrix[np.ix_(rows, cols)])
        part = theirs._replace(x=theirs.x[rows], y=np.ascontiguousarray(theirs.y[:, cols]))
        return Cost(part, (len(rows), len(cols)))

    def between(self, x: Floats, y: Floats) -> "Cost":
        """The same lazy costs between other points: those of `pricing.Pricing.points`, or means of them.

        They stay where they are, so that points of several such costs can be compared.
        """
        return Cost(factored(self.compiled.kind, x, y, self.compiled.scale), (len(x), len(y)))

    @cached_property
    def _summary(self) -> tuple[int, float, float]:
        """How many pairs are allowed, the lowest cost among them, and their mean absolute cost.

        Squared distances have a mean in closed form; what is said of their lowest is that they are not negative.
        """
        count, lowest, total = 0, np.inf, 0.0
        if self.compiled.kind == _entries.SQEUCLIDEAN:
            x, y = -0.5 * self.compiled.x[:, :-2], self.compiled.y[:-2].T
            spread = x.var(axis=0).sum() + y.var(axis=0).sum() + np.sum((x.mean(axis=0) - y.mean(axis=0)) ** 2)
            return int(np.prod(self.shape)), 0.0, float(spread) * self.compiled.scale
        for _, block in self.blocks():
            some, least, size = _entries.summarise(block)
            count, lowest, total = count + some, min(lowest, least), total + size
        return count, lowest, total / max(count, 1)

    @property
    def has_pairs(self) -> bool:
        """True if any pair is allowed."""
        return self._summary[0] > 0

    @property
    def lowest(self) -> float:
        """The lowest cost of an allowed pair."""
        return self._summary[1]

    @property
    def mean(self) -> float:
        """The mean absolute cost of the allowed pairs."""
        return self._summary[2]

    @cached_property
    def common(self) -> float:
        """The mean cost, without the largest one if it seems to stand for inf: all others of a sample are far below."""
        if self.lowest > FAR * self.mean:
            return self.mean
        drawn = np.arange(pairs) if (pairs := int(np.prod(self.shape))) <= _SAMPLE else _drawn(pairs)
        costs = np.abs(self.entries(drawn // self.shape[1], drawn % self.shape[1]))
        costs = costs[np.isfinite(costs)]
        rest = costs[costs < costs.max(initial=0.0)]
        is_apart = 0.0 < rest.max(initial=0.0) < FAR * costs.max(initial=0.0)
        return float(rest.mean()) if is_apart else self.mean


def _drawn(pairs: int) -> Ints:
    """A sample of pair numbers, always the same one."""
    return np.random.default_rng(0).integers(0, pairs, _SAMPLE)


@dataclass(frozen=True, eq=False)
class Gram:
    """A kernel between the points of one side; ``dense``, ``lazy`` or ``delta``."""

    kind: int
    size: int
    stored: Floats = field(default_factory=lambda: _NO_POINTS)  # the matrix, which compiled functions want writable
    points: Floats = field(default_factory=lambda: _NO_POINTS)
    bandwidth: float = 1.0
    kernel: Delta | Radial | None = None  # the kernel it was made with; None for a matrix or a function of the user

    @property
    def matrix(self) -> Floats:
        """The matrix of a dense one, read-only; else there is none."""
        view = self.stored.view()
        view.flags.writeable = False
        return view

    @classmethod
    def delta(cls, size: int) -> "Gram":
        """The identity matrix, which is not stored."""
        return cls(_entries.DELTA, size, kernel=Delta())

    @classmethod
    def dense(cls, name: str, matrix: Any, size: int) -> "Gram":
        """From a matrix: symmetric and positive semi-definite up to rounding in the precision that it was given in."""
        array = _checks.real_array(name, matrix, ndim=2)
        if array.shape != (size, size):
            raise ValueError(f"{name} must have shape ({size}, {size}), got {array.shape}")
        slack = max(_STRICT, gram_rounding(size, _checks.rounding(matrix))) * float(np.abs(array).max())
        lopsided = float(np.abs(array - array.T).max())
        if lopsided > slack:
            raise ValueError(
                f"{name} must be symmetric, got entries that differ by {lopsided:.3g} from the transpose: "
                "compute it in float64, or take the mean of it and its transpose"
            )
        array = 0.5 * (array + array.T)  # also a copy: the user's array may change before a bound is computed
        array = _semidefinite(name, array, slack)
        return cls(_entries.DENSE, size, array)

    @classmethod
    def of_points(cls, kernel: Delta | Radial, points: Floats, *, lazy: bool) -> "Gram":
        """From a kernel and points."""
        if isinstance(kernel, Delta):
            return cls.delta(len(points))
        bandwidth = kernel.bandwidth(points)
        if lazy:
            return cls(kernel.code, len(points), points=points, bandwidth=bandwidth, kernel=kernel)
        matrix = replace(kernel, sigma2=bandwidth).gram(points)
        return cls(_entries.DENSE, len(points), matrix, points, bandwidth, kernel)

    def compiled(self, weight: float, slots: int) -> _entries.Gram:
        """The form for compiled functions, multiplied by ``weight``; a lazy one has room for ``slots`` columns."""
        lazy = self.kind > _entries.DENSE
        slot = np.append(np.full(self.size, -1), 0) if lazy else np.arange(self.size + 1)
        columns = np.empty((min(slots, self.size), self.size)) if lazy else self.stored
        return _entries.Gram(self.kind, weight, self.bandwidth, columns, slot, self.points)

    def block(self, rows: Ints, cols: Ints) -> Floats:
        """The matrix between two lists of points."""
        if self.kind == _entries.DELTA:
            return np.asarray(rows[:, None] == cols[None, :], np.float64)
        if self.kind == _entries.DENSE:
            return np.asarray(self.stored[np.ix_(rows, cols)])
        return _entries.gram_block(self.kind, self.bandwidth, self._centred, self._lengths, rows, cols)

    def times(self, vector: Floats, *, exact: bool = False) -> Floats:
        """The matrix times a vector; by its low-rank factor if it has one, unless the ``exact`` matrix is asked for."""
        if self.kind == _entries.DELTA:
            return vector.copy()
        if self.kind == _entries.DENSE:
            return np.asarray(self.stored @ vector)
        used = np.flatnonzero(vector)
        if 2 * len(used) > self.size:
            if not exact and self.factor is not None:
                return self.factor.times(vector)
            return self._product(vector)
        result = np.zeros(self.size)
        everything = np.arange(self.size)
        for first in range(0, len(used), _BLOCK):
            part = used[first : first + _BLOCK]
            result += self.block(everything, part) @ vector[part]
        return result

    def _product(self, vector: Floats) -> Floats:
        """The product of a lazy matrix, from all of its entries; the last one is kept: proofs ask for it again."""
        vector = np.ascontiguousarray(vector)
        for known, product in self._last:
            if np.array_equal(known, vector):
                return product.copy()
            if np.array_equal(known, -vector):
                return -product
        parts = in_parts(lambda part: self._part_of_product(vector, part), self.size, _PART)
        product = np.asarray(sum(parts, np.zeros(self.size)))
        self._last[:] = [(vector.copy(), product.copy())]
        return product

    def _part_of_product(self, vector: Floats, part: slice) -> Floats:
        """What the entries on and above the diagonal in some rows, and their mirrors, add to the product.

        NumPy's exponentials are vectorised, those of compiled functions are not.
        """
        out, tile, (height, width) = np.zeros(self.size), np.empty(_TILE[0] * _TILE[1]), _TILE
        formula = list(radial.ON_ARRAYS.values())[self.kind - _entries.RADIAL]
        for top in range(part.start, part.stop, height):
            end = min(top + height, part.stop)
            for left in range(top, self.size, width):
                right = min(left + width, self.size)
                square = tile[: (end - top) * (right - left)].reshape(end - top, right - left)
                _entries.square_block(self._centred, self._lengths, (top, end), (left, right), square)
                block = formula(square, self.bandwidth)
                out[top:end] += block @ vector[left:right]
                below = max(left, end)
                if below < right:
                    out[below:right] += vector[top:end] @ block[:, below - left :]
        return out

    @cached_property
    def _last(self) -> list[tuple[Floats, Floats]]:
        return []

    @cached_property
    def factor(self) -> Factor | None:
        """A low-rank factor of a large lazy matrix, if it has one that is exact up to rounding."""
        if self.kind <= _entries.DENSE or self.size < _FACTORISED_FROM:
            return None
        everything = np.arange(self.size)
        return factor_of(lambda i: self.block(everything, np.array([i]))[:, 0], float(self.diagonal[0]), self.size)

    @cached_property
    def _centred(self) -> Floats:
        """The points around their mean, where products of them lose least."""
        return np.ascontiguousarray(self.points - self.points.mean(axis=0))

    @cached_property
    def _lengths(self) -> Floats:
        """Squared lengths of the points, for distances by products; none where differences are as fast, or needed.

        A square by products is off by a few units of the squared lengths, which must be nothing beside the bandwidth.
        """
        lengths = np.sum(self._centred**2, axis=1)
        d = self.points.shape[1]
        if d <= _FEW_DIMENSIONS or (d + 4) * np.finfo(np.float64).eps * lengths.max() > _EXACT * self.bandwidth:
            return np.zeros(0)
        return np.asarray(lengths)

    @cached_property
    def root(self) -> Floats:
        """A square root: ``root.T @ root`` is the matrix."""
        every = np.arange(self.size)
        values, vectors = np.linalg.eigh(self.block(every, every))
        return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T, np.float64)

    def __getstate__(self) -> dict[str, Any]:
        """What it was made from: a copy in another process computes the rest again."""
        return {name: value for name, value in vars(self).items() if name in self.__dataclass_fields__}

    @property
    def is_delta(self) -> bool:
        """True if this is the identity matrix."""
        return self.kind == _entries.DELTA

    @property
    def diagonal(self) -> Floats:
        """The diagonal, which is constant for a radial kernel."""
        if self.kind == _entries.DENSE:
            return self.stored.diagonal()
        return np.full(self.size, self.block(np.array([0]), np.array([0]))[0, 0])


def gram_rounding(size: int, eps: float) -> float:
    """The rounding error of a Gram matrix in a precision with this epsilon, as a share of its largest entry."""
    return min(4.0 * size * eps, 0.1)  # so that a matrix far from a Gram matrix is refused in half precision too


def _semidefinite(name: str, matrix: Floats, slack: float) -> Floats:
    """The matrix, checked to be positive semi-definite up to the slack; a ridge makes up for low precision."""
    # A Cholesky factorisation is much cheaper than eigenvalues, which are computed only if it fails.
    strict = min(slack, _STRICT * float(np.abs(matrix).max())) + np.finfo(np.float64).tiny
    try:
        np.linalg.cholesky(matrix + strict * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        if smallest < -max(slack, strict):
            raise ValueError(
                f"{name} must be positive semi-definite, got a smallest eigenvalue of {smallest:.3g}: if that is "
                "rounding, compute it in float64 or add that amount to its diagonal"
            ) from None
        if smallest < -strict:  # make it convex, or no bound would hold
            return matrix - smallest * np.eye(len(matrix))
    return matrix


def as_gram(name: str, value: Any, size: int, points: Floats | None = None, *, lazy: bool = False) -> Gram:
    """A Gram matrix from a matrix, or from a kernel (object, name or function) and points; a `Gram` stays as it is."""
    if isinstance(value, Gram):
        if value.size != size:
            raise ValueError(f"{name} must be a Gram matrix of {size} points, got one of {value.size}")
        return value
    if isinstance(value, int | float) or value is None:
        raise TypeError(f"{name} must be a kernel, its name or a Gram matrix, got {value!r}")
    if not (callable(value) or isinstance(value, str | Delta | Radial | Own)):
        return Gram.dense(name, value, size)
    kernel = as_kernel(name, value)
    if isinstance(kernel, Delta):
        return Gram.delta(size)
    if points is None:
        raise ValueError(f"{name} needs points to compute {kernel}: call solve_sample, or pass a Gram matrix")
    if isinstance(kernel, Radial):
        return Gram.of_points(kernel, points, lazy=lazy)
    if lazy:
        raise ValueError(
            f"{name} must be a kernel of the package or a Gram matrix where costs are lazy, got the function {kernel}: "
            "pass lazy=False, or the Gram matrix"
        )
    return Gram.dense(f"the Gram matrix of {name}", kernel.gram(points), size)
