"""Room in a budget: compiled functions allow exactly what the matroid allows."""

import numpy as np
import pytest
from cases import TINY_BUDGETS, Forest
from hypothesis import given
from hypothesis import strategies as some

import sparsetransport as st
from sparsetransport._numba.compiling import compiled
from sparsetransport.budgets import as_matroid, limits_of
from sparsetransport.engine import room as rooms
from sparsetransport.engine.room import Constraint, Room, fits

SHAPE = 4, 4
PAIRS = [(i, j) for i in range(4) for j in range(4)]
moves = some.lists(some.sampled_from(PAIRS), max_size=30)


@compiled
def take(room: Room, i: int, j: int) -> None:
    rooms.count(room, i, j, -1)


@compiled
def give_back(room: Room, i: int, j: int) -> None:
    rooms.count(room, i, j, 1)


@compiled
def is_free(room: Room, i: int, j: int) -> bool:
    return rooms.is_free(room, i, j)


@compiled
def is_free_without(room: Room, i: int, j: int, k: int, l: int) -> bool:
    rooms.set_aside(room, k, l)
    free = rooms.is_free(room, i, j)
    rooms.put_back(room)
    return free


@compiled
def is_over(room: Room, i: int, j: int) -> bool:
    return rooms.is_over(room, i, j)


class Asked(st.Matroid):
    """A matroid that hides that it counts."""

    def __init__(self, matroid):
        self.matroid, self.asked = matroid, 0

    def can_add(self, support, pair):
        self.asked += 1
        return self.matroid.can_add(support, pair)


def matroids():
    counting = [as_matroid(budget.matroid) for budget in TINY_BUDGETS.values()]
    return [*counting, *map(Asked, counting), Forest(), st.PerRow(2) & Forest(), Asked(st.PerRow(1)) & st.Uniform(3)]


class Plan:
    """A support that pairs come into and leave, and its room."""

    def __init__(self, matroid):
        self.matroid, self.pairs = matroid, []
        self.constraint = Constraint(matroid, SHAPE)
        self.room = self.constraint.room()
        self.callback = self.constraint.attach(self.room, lambda: list(self.pairs))

    def toggle(self, pair):
        if pair in self.pairs:
            self.pairs.remove(pair)
            give_back(self.room, *pair)
        elif self.matroid.can_add(self.pairs, pair):
            self.pairs.append(pair)
            take(self.room, *pair)


@pytest.mark.parametrize("which", range(len(matroids())))
@given(moves=moves)
def test_a_pair_is_free_if_the_matroid_allows_it(which, moves):
    """However pairs came and went; also without one or another pair of the support."""
    plan = Plan(matroids()[which])
    for pair in moves:
        plan.toggle(pair)
    outside = [pair for pair in PAIRS if pair not in plan.pairs]
    for _ in range(2):  # what was refused is remembered
        assert [is_free(plan.room, *p) for p in outside] == [plan.matroid.can_add(plan.pairs, p) for p in outside]
    for held in plan.pairs:
        rest = [pair for pair in plan.pairs if pair != held]
        for pair in outside:
            assert is_free_without(plan.room, *pair, *held) == plan.matroid.can_add(rest, pair)
    assert [is_free(plan.room, *p) for p in outside] == [plan.matroid.can_add(plan.pairs, p) for p in outside]
    if plan.callback is not None:
        plan.callback.raise_error()


@pytest.mark.parametrize("which", range(len(TINY_BUDGETS)))
@given(moves=moves)
def test_what_is_given_back_is_there_again(which, moves):
    plan = Plan(matroids()[which])
    before = plan.room.left.copy()
    np.testing.assert_array_equal(before, limits_of(plan.matroid, SHAPE).flat)
    for pair in (*moves, *moves[::-1]):
        plan.toggle(pair)
    for pair in list(plan.pairs):
        plan.toggle(pair)
    np.testing.assert_array_equal(plan.room.left, before)


@pytest.mark.parametrize("name", TINY_BUDGETS)
@given(pairs=some.lists(some.sampled_from(PAIRS), unique=True))
def test_pairs_fit_together_if_they_are_allowed(name, pairs):
    """Nothing is taken for the question. What is beyond a capacity is what uses it."""
    budget, matroid = TINY_BUDGETS[name], as_matroid(TINY_BUDGETS[name].matroid)
    room = Constraint(matroid, SHAPE).room()
    before = room.left.copy()
    rows, cols = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    allowed = not pairs or bool(budget.allowed(tuple(pairs)))
    assert fits(room, rows, cols) == allowed
    np.testing.assert_array_equal(room.left, before)
    for pair in pairs:
        take(room, *pair)
    assert any(is_over(room, *pair) for pair in pairs) == (not allowed)


def test_a_budget_that_counts_is_not_asked():
    for matroid in (None, st.Uniform(3), st.PerRow(1) & st.PerColumn(2), st.Partition(np.zeros((4, 4), int), 2)):
        constraint = Constraint(matroid, SHAPE)
        assert constraint.oracle is None
        room = constraint.room()
        assert constraint.attach(room, list) is None
        assert room.oracle[0] == 0
    limits = limits_of(st.PerRow(1), SHAPE)
    assert Constraint.of(limits).limits is limits
    assert Constraint.of(limits).oracle is None


def test_every_room_has_capacities_of_its_own():
    constraint = Constraint(Asked(st.Uniform(1)), SHAPE)
    one, other = Plan(constraint.oracle), Plan(constraint.oracle)
    one.toggle((0, 0))
    assert not is_free(one.room, 1, 1)
    assert is_free(other.room, 1, 1)


def test_a_refusal_is_asked_for_once_until_a_pair_leaves():
    """A matroid that refuses a pair refuses it for every larger support."""
    matroid = Asked(st.PerRow(1))
    plan = Plan(matroid)
    plan.toggle((0, 0))
    matroid.asked = 0
    assert [is_free(plan.room, 0, 1) for _ in range(5)] == [False] * 5
    assert matroid.asked == 1
    plan.toggle((1, 1))
    asked = matroid.asked
    assert not is_free(plan.room, 0, 1)
    assert matroid.asked == asked
    plan.toggle((0, 0))
    assert is_free(plan.room, 0, 1)


def test_limits_of_a_part_that_counts_spare_the_question():
    matroid = Asked(st.PerColumn(1))
    plan = Plan(matroid & st.Uniform(1))
    plan.toggle((0, 0))
    matroid.asked = 0
    assert not is_free(plan.room, 1, 1)
    assert matroid.asked == 0


def test_an_error_of_the_matroid_is_kept_for_later():
    class Broken(st.Matroid):
        def can_add(self, support, pair):
            raise LookupError("mine")

    plan = Plan(Broken())
    assert not is_free(plan.room, 0, 0)
    with pytest.raises(LookupError, match="mine"):
        plan.callback.raise_error()
