"""Budgets: what they allow, how they combine, and the axioms that make them matroids."""

import itertools

import numpy as np
import pytest
from cases import HALVES, TINY_BUDGETS, Forest, no_cycle

import sparsetransport as st
from sparsetransport.budgets import free

SHAPE = (4, 4)
PAIRS = [(i, j) for i in range(4) for j in range(4)]
ROWS, COLS = np.divmod(np.arange(16), 4)


def _random_support(rng, allowed):
    """A random allowed set of pairs."""
    support = ()
    for k in rng.permutation(16)[: rng.integers(0, 16)]:
        if allowed((*support, PAIRS[k])):
            support = (*support, PAIRS[k])
    return support


@pytest.mark.parametrize("name", TINY_BUDGETS)
def test_a_pair_is_free_if_the_larger_support_is_allowed(name):
    """Capacities and the independence question are the rule itself: e is free iff S + e obeys it."""
    budget = TINY_BUDGETS[name]
    matroid = st.Uniform(budget.matroid) if isinstance(budget.matroid, int) else budget.matroid
    rng = np.random.default_rng(0)
    for _ in range(30):
        support = _random_support(rng, budget.allowed)
        outside = [pair not in support for pair in PAIRS]
        expected = np.array([budget.allowed((*support, pair)) for pair in PAIRS])[outside]
        np.testing.assert_array_equal(free(matroid.limits(SHAPE), support, ROWS, COLS)[outside], expected)


@pytest.mark.parametrize("name", TINY_BUDGETS)
def test_the_independence_oracle_needs_no_shape(name):
    """``can_add`` of a counting budget answers for any pair of the plan, silently, as ``limits`` would."""
    budget = TINY_BUDGETS[name]
    matroid = st.Uniform(budget.matroid) if isinstance(budget.matroid, int) else budget.matroid
    rng = np.random.default_rng(1)
    for support in [(), *(_random_support(rng, budget.allowed) for _ in range(5))]:
        for pair in sorted(set(PAIRS) - set(support)):
            assert matroid.can_add(support, pair) == budget.allowed((*support, pair))


@pytest.mark.parametrize("name", [name for name in TINY_BUDGETS if name != "intersection"])
def test_of_two_allowed_sets_the_larger_one_can_lend_a_pair(name):
    """The exchange axiom: |A| < |B|, both allowed, then some e in B - A makes A + e allowed."""
    budget = TINY_BUDGETS[name]
    rng = np.random.default_rng(2)
    for _ in range(200):
        small, large = sorted((_random_support(rng, budget.allowed) for _ in range(2)), key=len)
        if len(small) < len(large):
            assert any(budget.allowed((*small, pair)) for pair in set(large) - set(small))


def test_an_intersection_is_no_matroid_and_says_so():
    """One per row and one per column: {(0,0)} cannot be enlarged from {(0,1), (1,0)}. Nested groups stay a matroid."""
    both = st.PerRow(1) & st.PerColumn(1)
    assert not both.is_matroid
    assert not any(both.can_add([(0, 0)], pair) for pair in [(0, 1), (1, 0)])
    assert st.Laminar(st.PerColumn(1), st.Uniform(3)).is_matroid
    assert st.PerColumn(1).is_matroid


@pytest.mark.parametrize(
    ("budget", "most"),
    [
        (st.Uniform(3), 3),
        (st.PerColumn([2, 1, 0, 1]), 4),
        (st.PerRow(2), 8),
        (st.Partition(HALVES, [1, 5]), 6),
        (st.Laminar(st.PerColumn(2), st.Uniform(5)), 5),
        (st.PerRow(1) & st.PerColumn([1, 1, 0, 0]), 2),
        (st.Partition(np.where(HALVES == 0, -1, 0), 2), 10),  # pairs labelled -1 are not counted
    ],
)
def test_no_plan_within_a_budget_has_more_entries_than_it_says(budget, most):
    """``limits.most`` bounds the size of every allowed set; here it is attained."""
    assert budget.limits(SHAPE).most == most


@pytest.mark.parametrize(
    "parts",
    [
        (st.PerColumn(1), st.PerRow(1)),
        (st.Partition(HALVES, 1), st.PerRow(1)),
        (st.Partition(HALVES, 1), st.Partition(np.roll(HALVES, 1, axis=1), 1)),
    ],
)
def test_groups_that_cross_are_not_nested(parts):
    """Laminar refuses groups that overlap without one holding the other, and points to ``&``."""
    with pytest.raises(ValueError, match=r"overlap in part in Laminar\(.*&"):
        st.Laminar(*parts).limits(SHAPE)
    joined = parts[0] & parts[1]
    assert joined.limits(SHAPE).most <= 16


def test_nested_groups_are_accepted():
    """Columns inside halves inside the whole plan; a row and the plan; on one row even rows and columns."""
    three = st.Laminar(st.PerColumn(1), st.Partition(HALVES, 3), st.Uniform(5)).limits(SHAPE)
    assert (three.total, len(three.labels), three.cols.max()) == (5, 1, 1)
    assert st.Laminar(st.PerRow(1), st.Uniform(5)).limits(SHAPE).total == 5
    assert st.Laminar(st.PerRow(3), st.PerColumn(1)).limits((1, 4)).most == 3


def test_a_budget_with_one_method_works_together_with_one_that_counts():
    """``&`` joins a matroid of the user's own with a counting one: both must let a pair in; nothing is warned about."""
    for both in (Forest() & st.PerColumn(2), st.PerColumn(2) & Forest(), Forest() & st.PerColumn([2, 2, 2, 2])):
        assert not both.is_matroid
        for size in range(4):
            for support in itertools.islice(itertools.combinations(PAIRS, size), 0, None, 37):
                columns = [j for _, j in support]
                if not no_cycle(support) or max(map(columns.count, columns), default=0) > 2:
                    continue
                for pair in set(PAIRS) - set(support):
                    expected = no_cycle((*support, pair)) and columns.count(pair[1]) < 2
                    assert both.can_add(list(support), pair) == expected


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64, np.int64])
def test_labels_may_have_any_integer_type(dtype):
    """Labels are numbers of groups, whatever integers they are held in."""
    budget = st.Partition(HALVES.astype(dtype), [1, 2])
    np.testing.assert_array_equal(budget.limits(SHAPE).labels, HALVES[None])


def test_a_budget_is_joined_with_budgets_only():
    """``PerRow(1) & 3`` has three entries in all, and anything else is a TypeError of Python."""
    assert st.PerRow(1) & 3 == 3 & st.PerRow(1) == st.PerRow(1) & st.Uniform(3)
    assert st.Laminar(st.PerColumn(2), 4) == st.Laminar(st.PerColumn(2), st.Uniform(4))
    with pytest.raises(TypeError, match="unsupported operand"):
        st.PerRow(1) & 2.5


def test_mask_asks_pair_by_pair():
    """The array form of the question is the question for each pair."""
    support = [(0, 0), (0, 1), (1, 0)]
    expected = [no_cycle((*support, pair)) for pair in PAIRS[5:]]
    np.testing.assert_array_equal(Forest().mask(support, ROWS[5:], COLS[5:]), expected)


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (st.Uniform(3), "Uniform(3)"),
        (st.PerColumn([1, 2]), "PerColumn([1, 2])"),
        (st.PerRow(2) & st.Uniform(4), "PerRow(2) & Uniform(4)"),
        (st.Laminar(st.PerRow(2), st.Uniform(4)), "Laminar(PerRow(2), Uniform(4))"),
        (st.Partition(HALVES, 2), "Partition(4x4 labels, 2)"),
    ],
)
def test_budgets_say_what_they_are(budget, text):
    """The repr is how one would write the budget down."""
    assert repr(budget) == text


SAME = [
    lambda: st.Uniform(3),
    lambda: st.Uniform(4),
    lambda: st.PerColumn(3),
    lambda: st.PerRow(3),
    lambda: st.PerRow([3]),
    lambda: st.PerRow([3, 1]),
    lambda: st.PerRow(2) & st.Uniform(4),
    lambda: st.Laminar(st.PerRow(2), st.Uniform(4)),
    lambda: st.Partition(HALVES, 2),
    lambda: st.Partition(HALVES, [2, 1]),
    lambda: st.Partition(HALVES.T, 2),
]


def test_budgets_are_equal_if_they_are_made_with_the_same():
    """Whether they have been used or not; and as keys of a dictionary."""
    for k, first in enumerate(SAME):
        for l, second in enumerate(SAME):
            one, other = first(), second()
            assert (one == other) == (k == l)
            assert (hash(one) == hash(other)) >= (k == l)
    used = st.Uniform(3)
    used.limits((4, 4))
    assert {used: 1}[st.Uniform(3)] == 1
    assert st.PerRow(np.array([3, 1])) == st.PerRow([3, 1])
    assert st.Uniform(3) != 3


@pytest.mark.parametrize("kind", [st.PerColumn, st.PerRow])
def test_capacities_are_those_at_the_making(kind):
    """Whatever happens to the list later; and what is no capacity is refused at once."""
    capacities = [1, 1, 2]
    budget = kind(capacities)
    capacities[:] = [3, 3, 3]
    assert budget == kind((1, 1, 2)) != kind([3, 3, 3])
    assert st.solve(np.ones((3, 3)), budget=budget, reg=1.0).rows.size == 4
    with pytest.raises(TypeError, match=f"{kind.__name__} must be a positive int or a list of ints"):
        kind([1.5, 2.0])
    with pytest.raises(ValueError, match=f"{kind.__name__} must not be negative, got -1 at 1"):
        kind([1, -1])


def test_a_group_without_pairs_may_have_a_capacity():
    """Capacities of groups that no pair is in change nothing; those that are must be sound all the same."""
    labels = np.array([[0, 0, 1], [0, 0, 1]])
    spare = st.Partition(labels, [2, 1, 5])
    assert spare == st.Partition(labels, [2, 1])
    C = np.arange(6.0).reshape(2, 3)
    for budget in (spare, spare & st.PerRow(2)):
        res = st.solve(C, budget=budget)
        assert (np.bincount(labels[res.rows, res.cols], minlength=2) <= [2, 1]).all()
    with pytest.raises(ValueError, match=r"capacities.*negative.*-1 at 2"):
        st.Partition(labels, [2, 1, -1])


class _NoFirstRow(st.Uniform):
    """A budget that counts, and forbids more than that."""

    def can_add(self, support, pair):
        return super().can_add(support, pair) and pair[0] != 0


@pytest.mark.parametrize("budget", [_NoFirstRow(3), _NoFirstRow(3) & st.PerColumn(1), st.PerColumn(1) & _NoFirstRow(3)])
def test_what_a_subclass_forbids_is_forbidden(budget):
    """Counting alone would give the cheapest row away."""
    result = st.solve(np.array([[0.0, 0.0, 0.0], [5.0, 5.0, 5.0], [6.0, 6.0, 6.0]]), budget=budget, unbalanced=100.0)
    assert result.rows.size == 3
    assert 0 not in result.rows


def test_a_subclass_is_no_part_of_an_intersection():
    """Whose limits could not say what it forbids."""
    with pytest.raises(TypeError, match="budgets that count"):
        st.Intersection(_NoFirstRow(3), st.PerRow(1))


@pytest.mark.parametrize("budget", [10**30, st.PerColumn(10**30), st.PerRow([10**18] * 3)])
def test_budgets_without_end_are_clamped(budget):
    """However large a number is, more than all pairs is all pairs."""
    with pytest.warns(UserWarning, match="clamped"):
        assert st.solve(np.ones((3, 4)), budget=budget).status is st.Status.OPTIMAL


def test_labels_of_another_shape_are_another_budget():
    """With the same bytes."""
    assert st.Partition(np.zeros((2, 3), int), 1) != st.Partition(np.zeros((3, 2), int), 1)


def test_a_partition_between_groups():
    """By names; pairs of groups that are not in the dict are not counted."""
    rows, cols = np.array(["a", "b", "a", "c"]), ["x", "y", "x"]
    all_alike = st.Partition.between(rows, cols, 2)
    for (i, j), (k, l) in itertools.product(np.ndindex(4, 3), repeat=2):
        same = rows[i] == rows[k] and cols[j] == cols[l]
        assert (all_alike.labels[i, j] == all_alike.labels[k, l]) == same
    some = st.Partition.between(rows, cols, {("a", "x"): 1, ("c", "y"): 0})
    np.testing.assert_array_equal(some.labels >= 0, [[1, 0, 1], [0, 0, 0], [1, 0, 1], [0, 1, 0]])
    result = st.solve(np.zeros((4, 3)), budget=some)
    inside = some.labels[result.rows, result.cols]
    assert (inside == 0).sum() <= 1
    assert not (inside == 1).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1]], [1], 2), r"rows must be a list with the group of each row or column, got shape \(1, 1\)"),
        (([1], [], 2), r"cols must be a list with the group of each row or column, got shape \(0,\)"),
        (
            (["a"], ["b"], {("a", "c"): 1}),
            r"capacities must have pairs of a row group and a column group as keys, got \('a', 'c'\)",
        ),
        ((["a"], ["b"], {"a": 1}), "capacities must have pairs of a row group and a column group as keys, got 'a'"),
    ],
)
def test_groups_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        st.Partition.between(*arguments)
