"""The scan for shared links: scores are weighted sums of squares over scenarios, as NumPy adds them up."""

from dataclasses import replace

import numpy as np
import pytest
from cases import QUADRANTS, instance

import sparsetransport as st
from sparsetransport._numba.codes import BUDGET_USED
from sparsetransport.engine import shared_plans as plans
from sparsetransport.engine import shared_scan as scan
from sparsetransport.engine.room import Constraint
from sparsetransport.inner.solvers import EXACT
from sparsetransport.plan import new_trace


def fields_of(z, m, n, seed=0):
    """Random fields and weights of ``z`` scenarios."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(z, m)), rng.normal(size=(z, n)), rng.random(z)


def scores(C, r, c, weights, members):
    """``sum_s w_s max(0, -(C + r_s + c_s))^2``."""
    gradient = C + r[members, :, None] + c[members, None, :]
    return np.tensordot(weights[members], np.maximum(-gradient, 0.0) ** 2, 1)


def group_of(case, members):
    return plans.new_group([case.problem()] * len(members), members, EXACT)


@pytest.mark.parametrize("members", [[0], [0, 1, 2], [2, 3, 4, 5], [1, 2, 3, 4, 5, 6], [0, 2, 3, 5, 6]], ids=str)
@pytest.mark.parametrize("first", [0, 3])
def test_scores_are_weighted_sums_of_squares(first, members):
    """Of any rows, for scenarios that follow one another, four at a time, or not; forbidden pairs score nothing."""
    case = instance(0, 7, 9, forbidden=0.2)
    r, c, weights = fields_of(7, 7, 9)
    expected = scores(case.C, r, c, weights, members)
    score = np.ones((4, 9))
    scan.accumulate(score, group_of(case, members), first, weights, r, c)
    np.testing.assert_allclose(score, 1.0 + expected[first : first + 4], rtol=1e-12)
    assert (score[np.isinf(case.C[first : first + 4])] == 1.0).all()
    rows, cols = np.divmod(np.arange(63), 9)
    some = np.zeros(63)
    scan.squares(group_of(case, members), weights, r, c, rows, cols, some)
    np.testing.assert_allclose(some, expected.ravel(), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    "matroid",
    [None, st.PerRow(1), st.PerColumn(1), st.Partition(QUADRANTS, [1, 2, 1, 1]), st.PerRow(2) & st.PerColumn(1)],
    ids=repr,
)
def test_the_mask_leaves_what_the_matroid_allows(matroid):
    """Zero on the support and where nothing may be added, whichever rows are looked at; `available` says the same."""
    links = [(0, 0), (2, 1), (3, 3)]
    room, support = Constraint(matroid, (4, 4)).room(), plans.new_support(8, 4)
    for i, j in links:
        plans.append(support, i, j)
        room.left[[0, 1 + i, 5 + j]] -= 1
        for family in room.labels:
            if family[i, j] >= 0:
                room.left[9 + family[i, j]] -= 1
    free = [pair not in links and (matroid is None or matroid.can_add(links, pair)) for pair in np.ndindex(4, 4)]
    free = np.reshape(free, (4, 4))
    assert free.any()
    score = np.ones((3, 4))
    scan.mask(score, 1, support, room)
    np.testing.assert_array_equal(score > 0.0, free[1:])
    rows, cols = np.divmod(np.arange(16), 4)
    np.testing.assert_array_equal(scan.available(rows, cols, support, room), free.ravel())


def test_the_best_of_all_rows_is_the_best_pair():
    """For more rows than are scored at one time; ties go to the first row, then to the first column."""
    case = instance(0, 150, 3)
    r, c, weights = fields_of(5, 150, 3)
    case.C[140], r[:, 140] = case.C[70], r[:, 70]
    group, support, room = group_of(case, range(5)), plans.new_support(4, 150), Constraint(None, (150, 3)).room()
    expected = scores(case.C, r, c, weights, np.arange(5))
    for _ in range(4):
        row, column = divmod(int(expected.argmax()), 3)
        value, *pair = scan.best_pair(group, support, r, c, weights, room)
        assert pair == [row, column]
        assert value == pytest.approx(expected.max())
        plans.append(support, row, column)
        expected[row, column] = 0.0


@pytest.mark.parametrize("depth", [1, 3])
def test_the_best_of_every_row_are_those_of_a_sort(depth):
    """In falling order, of equals the first; -1 where a row has fewer positive scores."""
    score = np.random.default_rng(0).integers(0, 4, (20, 6)).astype(float)
    score[3] = 0.0
    best, where = np.empty((20, depth)), np.empty((20, depth), np.int64)
    scan.best_of_rows(score, best, where)
    order = np.argsort(-score, axis=1, kind="stable")[:, :depth]
    np.testing.assert_array_equal(best, np.take_along_axis(score, order, 1))
    np.testing.assert_array_equal(where, np.where(best > 0.0, order, -1))


def test_links_without_mass_are_reclaimed_but_fixed_ones_stay():
    room, support = Constraint(st.Uniform(6), (4, 4)).room(), plans.new_support(8, 4)
    for k in range(4):
        plans.append(support, k, k)
    room.left[0] -= 4
    mass = np.zeros((2, 8))
    mass[1, 2] = 0.5
    trace = new_trace(1, 8)
    scan.reclaim(support, mass, room, 1, trace)
    assert support.rows[: support.size[0]].tolist() == [0, 2]
    assert mass[:, :2].tolist() == [[0.0, 0.0], [0.0, 0.5]]
    assert trace.gone[0, : trace.steps[1]].tolist() == [3, 1]
    assert room.left[0] == 4


def test_the_compiled_loop_adds_the_pair_with_the_largest_score():
    """Step by step, with the scores of NumPy at the plans before each."""
    case, rng = instance(2, 7, 6, "rbf", 0.1, (10.0, 10.0)), np.random.default_rng(0)
    first = case.problem()
    problems = [replace(first, b=rng.random(6)) for _ in range(3)]
    group = plans.new_group(problems, range(3), EXACT)
    r, c = (np.stack([problem.base[side] for problem in problems]) for side in (0, 1))
    support, room = plans.new_support(16, 7), Constraint(st.PerRow(1), (7, 6)).room()
    mass, gains, weights = np.zeros((3, 16)), np.zeros(3), np.array([1.0, 2.0, 0.5])
    for step in range(8):  # noqa: B007
        trace = new_trace(1, 16)
        score = scores(case.C, r, c, weights, np.arange(3))
        score[support.rows[: support.size[0]]] = 0.0
        code = scan.grow(group, support, r, c, mass, gains, weights, room, 0, trace, np.zeros(2), 64.0)
        if not trace.steps[0]:
            break
        assert trace.added[:, 0].tolist() == list(divmod(int(score.argmax()), 6))
        assert trace.gain[0] == pytest.approx(weights @ gains)
    assert step > 4
    assert not score.any() or code == BUDGET_USED
