"""Named tuples by address: fields as they are by value, nothing leaks, nothing goes too early."""

import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

from sparsetransport._numba.borrowed import Borrowed, borrowed, by_address, keep


@by_address
class Inner(NamedTuple):
    weight: float
    matrix: np.ndarray


@by_address
class Outer(NamedTuple):
    name: int
    inner: Inner
    flag: bool
    vector: np.ndarray


@numba.njit
def _product(outer):
    total = 0.0
    for i in range(outer.inner.matrix.shape[0]):
        for j in range(outer.inner.matrix.shape[1]):
            total += outer.inner.matrix[i, j] * outer.vector[j]
    outer.vector[0] = -1.0
    return total * outer.inner.weight + (outer.name if outer.flag else 0)


@numba.njit
def _make_and_use(size):
    outer = Outer(size, Inner(2.0, np.ones((size, size))), size > 0, np.arange(size) * 1.0)
    address = borrowed(outer)
    clutter = [np.full((size, size), np.nan) for _ in range(8)]  # would land where the tuple's arrays were
    result = _product(address) + len(clutter) - 8
    keep(outer)
    return result


def _outer(size):
    return Outer(size, Inner(2.0, np.ones((size, size))), True, np.arange(size) * 1.0)


def test_fields_are_those_of_the_tuple():
    outer = _outer(5)
    assert isinstance(numba.typeof(outer), Borrowed)
    assert _product(outer) == 2.0 * 5 * 10 + 5
    assert outer.vector[0] == -1.0  # arrays are the caller's own


def test_other_arrays_are_another_type():
    outer = _outer(4)
    turned = outer._replace(inner=Inner(2.0, np.asfortranarray(np.arange(16.0).reshape(4, 4))))
    assert numba.typeof(outer) == numba.typeof(_outer(7))
    assert numba.typeof(turned) != numba.typeof(outer)
    assert _product(turned) == 2.0 * (turned.inner.matrix @ np.arange(4.0)).sum() + 4


def test_a_call_leaves_no_references():
    outer = _outer(3)
    _product(outer)
    before = [sys.getrefcount(array) for array in (outer.vector, outer.inner.matrix)]
    for _ in range(10):
        _product(outer)
    assert [sys.getrefcount(array) for array in (outer.vector, outer.inner.matrix)] == before


def test_what_compiled_code_makes_is_kept():
    assert [_make_and_use(size) for size in (3, 50)] == [2.0 * 3 * 3 + 3, 2.0 * 50 * 1225 + 50]


def test_a_tuple_of_arrays_is_a_field_like_others():
    @by_address
    class Box(NamedTuple):
        pair: tuple
        vector: np.ndarray

    @numba.njit
    def total(box):
        pair = box.pair
        return pair[0][0] + pair[1][0] + box.vector[0]

    box = Box((np.ones(3), np.full(3, 2.0)), np.full(3, 4.0))
    total(box)
    before = [sys.getrefcount(array) for array in (*box.pair, box.vector)]
    assert [total(box) for _ in range(10)] == [7.0] * 10
    assert [sys.getrefcount(array) for array in (*box.pair, box.vector)] == before


def test_tuples_within_plain_tuples_leave_no_references():
    class Plain(NamedTuple):
        inner: Inner

    @by_address
    class Around(NamedTuple):
        plain: Plain

    @numba.njit
    def weight(around):
        return around.plain.inner.weight

    matrix = np.ones((2, 2))
    around = Around(Plain(Inner(3.0, matrix)))
    weight(around)
    before = sys.getrefcount(matrix)
    assert [weight(around) for _ in range(10)] == [3.0] * 10
    assert sys.getrefcount(matrix) == before


def test_classes_of_one_name_are_two_types():
    def box(*names):
        return by_address(NamedTuple("Box", [(name, np.ndarray) for name in names]))

    @numba.njit
    def low(box):
        return box.low[0]

    one, two = np.full(1, 1.0), np.full(1, 2.0)
    assert (low(box("low", "high")(one, two)), low(box("high", "low")(two, one))) == (1.0, 1.0)


def test_only_a_tuple_made_here_can_be_borrowed_and_kept():
    for function in (borrowed, keep):

        @numba.njit
        def uses(outer, function=function):
            function(outer)

        with pytest.raises(numba.TypingError):
            uses(_outer(2))


def test_unknown_field_is_an_error():
    @numba.njit
    def reads(outer):
        return outer.nothing

    with pytest.raises(numba.TypingError, match="nothing"):
        reads(_outer(2))


def test_for_python_nothing_changes():
    outer = _outer(2)
    assert borrowed(outer) is outer
    keep(outer)
