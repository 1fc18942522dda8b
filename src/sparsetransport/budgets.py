"""Budgets: which sets of pairs a plan may use.

The budgets of this module count entries: in the whole plan, a row, a column, or groups of the user's own. A budget of
any other kind is a subclass of `Matroid` with one method.
"""

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ClassVar, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from . import _checks, _tables
from ._checks import Ints

Pair = tuple[int, int]
Shape = tuple[int, int]

UNLIMITED = 2**62


def pairs_of(rows: Ints, cols: Ints) -> list[Pair]:
    """The pairs ``(rows[k], cols[k])``."""
    return list(zip(rows.tolist(), cols.tolist(), strict=True))


class Matroid(ABC):
    """A family of sets of pairs that the support of a plan may be chosen from.

    A budget of your own is a subclass with the method `can_add`. The guarantees of the paper hold if the sets form a
    matroid (every subset of an allowed set is allowed, and of two allowed sets the larger one has a pair that may be
    added to the smaller one); the algorithms stay feasible as long as the first of these holds.

    Examples
    --------
    At most one link out of every odd row, as many as you like elsewhere:

    >>> import numpy as np, sparsetransport as st
    >>> class OddRowsOnce(st.Matroid):
    ...     def can_add(self, support, pair):
    ...         return pair[0] % 2 == 0 or all(i != pair[0] for i, _ in support)
    >>> C = np.arange(9.0).reshape(3, 3) % 4
    >>> res = st.solve(C, budget=OddRowsOnce(), unbalanced=100.0)
    >>> int((res.rows == 1).sum())
    1
    """

    is_matroid = True

    def __init_subclass__(cls, **options: Any) -> None:
        """Check the answers of a method `can_add` of the user's own."""
        super().__init_subclass__(**options)
        own = vars(cls).get("can_add")
        if own is not None and own.__module__ != __name__:
            cls.can_add = _checked(own)  # type: ignore[method-assign]

    @abstractmethod
    def can_add(self, support: Sequence[Pair], pair: Pair) -> bool:
        """True if ``pair`` may be added to ``support``, which is allowed and does not contain it."""

    def mask(self, support: Sequence[Pair], rows: Ints, cols: Ints) -> NDArray[np.bool_]:
        """Which of the pairs ``(rows[k], cols[k])`` may be added."""
        return np.array([self.can_add(support, (int(i), int(j))) for i, j in zip(rows, cols, strict=True)], bool)

    def __and__(self, other: "Matroid | SupportsIndex") -> "Matroid":
        """Both budgets at once: in general not a matroid, but the greedy methods stay feasible."""
        other = _of_number(other)
        if not isinstance(other, Matroid):
            return NotImplemented
        if isinstance(self, Counting) and isinstance(other, Counting) and counts(self) and counts(other):
            return Intersection(self, other)
        return _Both(self, other)

    __rand__ = __and__


def _checked(can_add: Callable[..., Any]) -> Callable[..., bool]:
    """The method, with an error if it answers anything but True or False."""

    @wraps(can_add)
    def answer(self: Matroid, support: Sequence[Pair], pair: Pair) -> bool:
        found = can_add(self, support, pair)
        if not isinstance(found, bool | np.bool):
            raise TypeError(f"can_add of {type(self).__name__} must return True or False, got {found!r} for {pair}")
        return bool(found)

    return answer


class _Both(Matroid):
    """Two budgets at once, at least one of which is not a `Counting` budget."""

    is_matroid = False

    def __init__(self, first: Matroid, second: Matroid) -> None:
        self.parts = (first, second)

    def can_add(self, support: Sequence[Pair], pair: Pair) -> bool:
        return all(part.can_add(support, pair) for part in self.parts)


class Limits(NamedTuple):
    """What a counting budget allows: capacities of the whole plan, of rows, of columns and of groups."""

    total: int
    rows: Ints  # (m,)
    cols: Ints  # (n,)
    labels: NDArray[np.int32]  # (q, m, n) the group of each pair in the numbering of ``groups``; -1: in none
    groups: Ints

    @property
    def flat(self) -> Ints:
        """All capacities in one array: whole, rows, columns, groups."""
        return np.concatenate([np.array([self.total]), self.rows, self.cols, self.groups]).astype(np.int64)

    @property
    def most(self) -> int:
        """No plan within the limits has more entries than this."""
        m, n = len(self.rows), len(self.cols)
        by_rows = int(np.minimum(self.rows, n).sum())
        by_cols = int(np.minimum(self.cols, m).sum())
        most = min(self.total, by_rows, by_cols, m * n)
        for layer in self.labels:
            size = np.bincount(layer[layer >= 0].ravel(), minlength=len(self.groups))
            most = min(most, int((layer < 0).sum() + np.minimum(size, self.groups)[size > 0].sum()))
        return most


def no_limits(shape: Shape) -> Limits:
    """The limits that forbid nothing."""
    m, n = shape
    return Limits(
        UNLIMITED,
        np.full(m, UNLIMITED),
        np.full(n, UNLIMITED),
        np.zeros((0, m, n), np.int32),
        np.zeros(0, np.int64),
    )


class Counting(Matroid):
    """A budget that limits the number of entries in groups of pairs; two with the same capacities are equal."""

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._key))

    @property
    def _key(self) -> Any:
        """What tells budgets of one kind apart."""
        return id(self)

    def limits(self, shape: Shape) -> Limits:
        """The capacities on a plan of this shape; raises errors, and warns once about capacities that are clamped."""
        known: dict[Shape, Limits] = self.__dict__.setdefault("_known", {})
        if shape not in known:
            known[shape] = self._limits(shape)
        return known[shape]

    @abstractmethod
    def _limits(self, shape: Shape) -> Limits:
        """The capacities on a plan of this shape."""


def counts(matroid: Matroid | None) -> bool:
    """True if the limits describe the whole budget, which they do not if a subclass forbids more."""
    return matroid is None or (isinstance(matroid, Counting) and type(matroid).can_add.__module__ == __name__)


def limits_of(matroid: Matroid | None, shape: Shape) -> Limits:
    """Limits that every plan within the budget keeps; they describe the whole budget if it `counts`."""
    if isinstance(matroid, _Both):
        return _joined([limits_of(part, shape) for part in matroid.parts])
    return matroid.limits(shape) if isinstance(matroid, Counting) else no_limits(shape)


def _joined(every: Sequence[Limits]) -> Limits:
    """All of the limits at once."""
    labels, offset = [], 0
    for one in every:
        labels.append(np.where(one.labels >= 0, one.labels + offset, -1).astype(np.int32))
        offset += len(one.groups)
    return Limits(
        min(one.total for one in every),
        np.min([one.rows for one in every], axis=0),
        np.min([one.cols for one in every], axis=0),
        np.concatenate(labels),
        np.concatenate([one.groups for one in every]),
    )


def free(limits: Limits, support: Sequence[Pair], rows: Ints, cols: Ints) -> NDArray[np.bool_]:
    """Which of the pairs ``(rows[k], cols[k])`` have capacity left."""
    used = np.array(support, np.int64).reshape(-1, 2)
    left_rows = limits.rows - np.bincount(used[:, 0], minlength=len(limits.rows))
    left_cols = limits.cols - np.bincount(used[:, 1], minlength=len(limits.cols))
    allowed = (left_rows[rows] > 0) & (left_cols[cols] > 0) & (limits.total > len(used))
    for layer in limits.labels:
        held = layer[used[:, 0], used[:, 1]]
        left = limits.groups - np.bincount(held[held >= 0], minlength=len(limits.groups))
        label = layer[rows, cols]
        allowed &= (label < 0) | (left[label] > 0) if len(left) else True
    return np.asarray(allowed)


def _own(name: str, value: Any) -> int | tuple[int, ...]:
    """One capacity or several, as an immutable copy."""
    if np.ndim(value) == 0:
        return _checks.positive_int(name, value)
    array = np.asarray(_tables.by_position(name, value))
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"{name} must be a positive int or a list of ints, got {value!r}")
    if array.min(initial=0) < 0:
        raise ValueError(f"{name} must not be negative, got {array.min()} at {int(array.argmin())}")
    return tuple(array.tolist())


def _shown(capacities: int | tuple[int, ...]) -> str:
    return str(capacities if isinstance(capacities, int) else list(capacities))


def _capacities(
    name: str, value: int | tuple[int, ...], count: int, largest: int, of: str, *, spare: bool = False
) -> Ints:
    """One capacity for all or one each; more than ``largest`` is clamped with a warning, spare ones are left out."""
    if isinstance(value, int):
        value = (value,) * count
    if len(value) < count or (len(value) > count and not spare):
        raise ValueError(f"{name} must have one capacity for each of the {count} {of}, got {len(value)}")
    array = np.array([min(one, UNLIMITED) for one in value[:count]], np.int64)
    if array.max(initial=0) > largest:
        _checks.warn(f"{name} = {max(value)} is more than the number of pairs that it limits: clamped to {largest}")
    return np.minimum(array, largest)


class Uniform(Counting):
    """At most ``k`` entries in the whole plan.

    Examples
    --------
    >>> import sparsetransport as st
    >>> st.solve([[1.0, 2.0], [2.0, 1.0]], budget=st.Uniform(1)).rows.size
    1
    """

    def __init__(self, k: int) -> None:
        self.k = _checks.positive_int("budget", k)

    def __repr__(self) -> str:
        return f"Uniform({self.k})"

    @property
    def _key(self) -> int:
        return self.k

    def _limits(self, shape: Shape) -> Limits:
        return no_limits(shape)._replace(total=int(_capacities("budget", self.k, 1, shape[0] * shape[1], "plans")[0]))

    def can_add(self, support: Sequence[Pair], pair: Pair) -> bool:
        """True if ``pair`` may be added to ``support``."""
        return len(support) < self.k


class _PerLine(Counting):
    """At most ``k`` entries in every line, or ``k[i]`` in line ``i``."""

    _axis: ClassVar[int]  # 0: lines are rows, 1: columns

    def __init__(self, k: Any) -> None:
        self.k = _own(type(self).__name__, k)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_shown(self.k)})"

    @property
    def _key(self) -> Any:
        return self.k

    def _limits(self, shape: Shape) -> Limits:
        count, largest, of = shape[self._axis], shape[1 - self._axis], ("rows", "columns")[self._axis]
        capacities: Any = _capacities(type(self).__name__, self.k, count, largest, of)
        return no_limits(shape)._replace(**{("rows", "cols")[self._axis]: capacities})

    def can_add(self, support: Sequence[Pair], pair: Pair) -> bool:
        """True if ``pair`` may be added to ``support``."""
        line = pair[self._axis]
        capacity = self.k if isinstance(self.k, int) else self.k[line]
        return bool(sum(held[self._axis] == line for held in support) < capacity)


class PerColumn(_PerLine):
    """At most ``k`` entries in every column, or ``k[j]`` in column ``j``.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> res = st.solve(np.ones((4, 3)), budget=st.PerColumn(1))
    >>> np.bincount(res.cols)
    array([1, 1, 1])
    """

    _axis = 1


class PerRow(_PerLine):
    """At most ``k`` entries in every row, or ``k[i]`` in row ``i``.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> res = st.solve(np.ones((3, 4)), budget=st.PerRow(1))
    >>> np.bincount(res.rows)
    array([1, 1, 1])
    """

    _axis = 0


class Partition(Counting):
    """At most ``capacities[g]`` entries among the pairs labelled ``g``.

    Parameters
    ----------
    labels : int array of shape (m, n)
        The group of every pair; pairs with a negative label are not limited.
    capacities : int or list of int
        One for all groups, or one for each; groups at the end may have no pair.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> labels = np.array([[0, 0, 1], [0, 0, 1]])
    >>> res = st.solve(np.ones((2, 3)), budget=st.Partition(labels, [2, 1]))
    >>> np.bincount(labels[res.rows, res.cols])
    array([2, 1])
    """

    def __init__(self, labels: Any, capacities: Any) -> None:
        array = np.asarray(_tables.by_position("labels", labels))
        if array.dtype.kind not in "iu" or array.ndim != 2:
            raise TypeError(f"labels must be a matrix of ints, got dtype {array.dtype} and shape {array.shape}")
        if array.size and array.max() >= array.size:
            raise ValueError(f"labels must be below the number of pairs, {array.size}, got {array.max()}")
        self.labels = np.maximum(array.astype(np.int64), -1).astype(np.int32)
        self.capacities = _own("capacities", capacities)
        groups, of = int(self.labels.max(initial=-1)) + 1, "groups that labels name"
        self._caps = _capacities("capacities", self.capacities, groups, array.size, of, spare=True)

    @classmethod
    def between(cls, rows: Any, cols: Any, capacities: int | Mapping[tuple[Any, Any], int]) -> "Partition":
        """A limit on the entries between each group of rows and each group of columns.

        Parameters
        ----------
        rows, cols : arrays of shape (m,) and (n,)
            The group of every row and column: numbers, strings or other values that can be sorted.
        capacities : int or dict
            One for all pairs of groups; or a dict from pairs of groups to capacities; a missing pair has no limit.

        Examples
        --------
        >>> import sparsetransport as st
        >>> rows, cols = ["young", "young", "old"], ["north", "south"]
        >>> budget = st.Partition.between(rows, cols, {("young", "north"): 1, ("old", "south"): 0})
        >>> st.solve([[1, 2], [1, 3], [2, 1]], budget=budget, unbalanced="100*auto").plan.round(2)
        array([[0.  , 0.33],
               [0.17, 0.17],
               [0.33, 0.  ]])
        """
        (near, i), (far, j) = (
            np.unique(_line_of_groups(*side), return_inverse=True) for side in (("rows", rows), ("cols", cols))
        )
        labels = i[:, None] * len(far) + j
        if not isinstance(capacities, Mapping):
            return cls(labels, capacities)
        first, second = ({name: k for k, name in enumerate(names.tolist())} for names in (near, far))
        group = np.full(len(near) * len(far), -1)
        for k, pair in enumerate(capacities):
            if not (isinstance(pair, tuple) and len(pair) == 2 and pair[0] in first and pair[1] in second):
                raise ValueError(f"capacities must have pairs of a row group and a column group as keys, got {pair!r}")
            group[first[pair[0]] * len(far) + second[pair[1]]] = k
        return cls(group[labels], list(capacities.values()))

    def __repr__(self) -> str:
        return f"Partition({self.labels.shape[0]}x{self.labels.shape[1]} labels, {_shown(self.capacities)})"

    @property
    def _key(self) -> Any:
        return self.labels.shape, self.labels.tobytes(), tuple(self._caps.tolist())

    def _limits(self, shape: Shape) -> Limits:
        if self.labels.shape != shape:
            raise ValueError(f"labels must have the shape of the plan, {shape}, got {self.labels.shape}")
        return no_limits(shape)._replace(labels=self.labels[None], groups=self._caps)

    def can_add(self, support: Sequence[Pair], pair: Pair) -> bool:
        """True if ``pair`` may be added to ``support``."""
        group = self.labels[pair]
        return bool(group < 0 or sum(self.labels[held] == group for held in support) < self._caps[group])


def _line_of_groups(name: str, groups: Any) -> NDArray[Any]:
    array = np.asarray(_tables.by_position(name, groups))
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must be a list with the group of each row or column, got shape {array.shape}")
    return array


class Intersection(Counting):
    """Several counting budgets at once: ``PerRow(1) & PerColumn(1)``.

    In general an intersection is not a matroid: the greedy methods stay feasible and the bounds hold, but the a-priori
    guarantees of the paper do not apply.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> res = st.solve(np.ones((3, 3)), budget=st.PerRow(1) & st.PerColumn(1))
    >>> sorted(res.rows.tolist()) == sorted(res.cols.tolist()) == [0, 1, 2]
    True
    """

    is_matroid = False

    def __init__(self, *given: Counting | SupportsIndex) -> None:
        parts = tuple(map(_of_number, given))
        if not parts or not all(isinstance(part, Counting) and counts(part) for part in parts):
            raise TypeError(f"{type(self).__name__} needs budgets that count entries, got {parts}")
        self.parts = parts

    def __repr__(self) -> str:
        return " & ".join(map(repr, self.parts))

    @property
    def _key(self) -> tuple[Counting, ...]:
        return self.parts

    def _limits(self, shape: Shape) -> Limits:
        return _joined([part.limits(shape) for part in self.parts])

    def can_add(self, support: Sequence[Pair], pair: Pair) -> bool:
        """True if ``pair`` may be added to ``support``."""
        return all(part.can_add(support, pair) for part in self.parts)


class Laminar(Intersection):
    """Limits on nested groups, for example at most ``k`` entries in every column and ``K`` in the whole plan.

    Groups must be nested: any two are disjoint, or one contains the other. Then the allowed sets form a matroid.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> res = st.solve(np.ones((4, 3)), budget=st.Laminar(st.PerColumn(2), st.Uniform(4)))
    >>> res.rows.size, int(np.bincount(res.cols).max())
    (4, 2)
    """

    is_matroid = True

    def __repr__(self) -> str:
        return f"Laminar({', '.join(map(repr, self.parts))})"

    def _limits(self, shape: Shape) -> Limits:
        limits = super()._limits(shape)
        layers: list[NDArray[Any]] = list(limits.labels)
        if limits.rows.min() < UNLIMITED:
            layers.append(np.broadcast_to(np.arange(shape[0])[:, None], shape))
        if limits.cols.min() < UNLIMITED:
            layers.append(np.broadcast_to(np.arange(shape[1])[None, :], shape))
        for k, first in enumerate(layers):
            for second in layers[:k]:
                if not _nested(first, second):
                    raise ValueError(f"groups must be nested, got some that overlap in part in {self!r}: use &")
        return limits


def _nested(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """True if every two groups, one of each partition, are disjoint or nested."""
    counted = (first >= 0) & (second >= 0)
    size_1 = np.bincount(first[first >= 0])
    size_2 = np.bincount(second[second >= 0])
    cells, count = np.unique(np.stack([first[counted], second[counted]]), axis=1, return_counts=True)
    return bool(np.all(count == np.minimum(size_1[cells[0]], size_2[cells[1]])))


def as_matroid(budget: Any) -> Matroid | None:
    """``budget`` as the user gave it: an int, a matroid or None."""
    matroid = _of_number(budget)
    if matroid is None or isinstance(matroid, Matroid):
        return matroid
    given = f"the class {budget.__name__}" if isinstance(budget, type) else repr(budget)
    raise TypeError(
        "budget must be a positive int, a Matroid such as PerRow(2), several of them joined by &, "
        f"or None for no budget, got {given}"
    )


def _of_number(budget: Any) -> Any:
    """A whole-plan budget if this is an int, else the argument unchanged."""
    is_int = isinstance(budget, numbers.Integral) and not isinstance(budget, bool | np.bool)
    return Uniform(int(budget)) if is_int else budget
