"""Parts of a loop in threads."""

import threading

import pytest

from sparsetransport._numba.threads import in_parts


@pytest.mark.parametrize(("size", "part"), [(0, 3), (1, 3), (3, 3), (10, 3), (10, 100)])
def test_every_item_is_worked_on_once_and_in_order(size, part):
    found = in_parts(lambda each: list(range(each.start, each.stop)), size, part)
    assert [item for one in found for item in one] == list(range(size))
    assert all(len(one) <= part for one in found)


def test_an_error_in_a_part_arrives():
    with pytest.raises(ZeroDivisionError):
        in_parts(lambda each: 1 // (each.start - 4), 8, 2)


def test_no_thread_is_left_behind():
    before = threading.active_count()
    in_parts(lambda each: each.start, 100, 1)
    assert threading.active_count() == before
