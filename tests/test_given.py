"""Weights, kernels and masses as users give them."""

from dataclasses import replace

import numpy as np
import pytest

import sparsetransport as st


def test_automatic_weights_make_nothing_a_hundred_times_as_bad_as_everything():
    """λ = 100 · mean cost · transportable mass / squared norm of what would be missed."""
    C = np.array([[1.0, 2.0], [3.0, np.inf]])
    problem = st.Problem.from_matrices(C, [1.0, 2.0], [0.5, 1.5])
    assert problem.unbalanced == (pytest.approx(100.0 * 2.0 * 2.0 / (5.0 + 2.5)),) * 2
    assert problem.constant == pytest.approx(100.0 * 2.0 * 2.0)


def test_a_side_without_masses_is_uniform_with_the_total_of_the_other():
    """In whatever way the problem is made; with total one if both have none, or if the other moves nothing."""
    C, m = np.ones((2, 4)), [5.0, 3.0]
    for problem in (
        st.Problem.from_matrices(C, m),
        st.Problem.from_points(np.eye(2), np.ones((4, 2)), m),
        st.solve(C, m, budget=3).problem,
        st.solve_sample(np.eye(2), np.ones((4, 2)), a=m, budget=3).problem,
        replace(st.Problem.from_matrices(C, m, [1.0] * 4), b=None),
    ):
        np.testing.assert_array_equal(problem.b, [2.0] * 4)
    np.testing.assert_array_equal(st.Problem.from_matrices(C.T, b=m).a, [2.0] * 4)
    for nothing in (None, [0.0, 0.0]):
        np.testing.assert_array_equal(st.Problem.from_matrices(C, nothing).b, [0.25] * 4)


@pytest.mark.parametrize("C", [np.zeros((2, 2)), np.full((2, 2), np.inf)])
def test_automatic_weights_without_a_scale_are_one(C):
    """Where costs give no scale, λ = 1."""
    assert st.Problem.from_matrices(C).unbalanced == (1.0, 1.0)
    assert st.Problem.from_matrices(np.ones((2, 2)), [0.0, 0.0], [0.0, 0.0]).unbalanced == (1.0, 1.0)


def test_one_weight_is_for_both_sides_and_a_pair_for_one_each():
    """A float, a tuple, a list and an array of two all work."""
    C = np.ones((2, 3))
    assert st.Problem.from_matrices(C, unbalanced=3).unbalanced == (3.0, 3.0)
    for pair in [(1.0, 2.0), [1.0, 2.0], np.array([1.0, 2.0])]:
        assert st.Problem.from_matrices(C, unbalanced=pair).unbalanced == (1.0, 2.0)


def test_one_gram_matrix_is_for_both_sides():
    """The same Gram matrix for both sides may be given once, as may a kernel; also when it is 2 by 2."""
    for size in (2, 3):
        gram = np.eye(size) + 0.25
        C = np.ones((size, size))
        once = st.Problem.from_matrices(C, kernels=gram, unbalanced=1.0)
        twice = st.Problem.from_matrices(C, kernels=(gram, gram), unbalanced=1.0)
        assert once.constant == twice.constant


@pytest.mark.parametrize(
    ("unbalanced", "factors"),
    [("auto", (1, 1)), ("100*auto", (100, 100)), (" 0.5 x auto", (0.5, 0.5)), (("auto", "1e3*auto"), (1, 1000))],
)
def test_weights_may_be_multiples_of_auto(unbalanced, factors):
    """Alone and in a batch."""
    C, a, b = np.random.default_rng(0).random((5, 4)), np.full(5, 0.2), np.full(4, 0.25)
    auto = st.Problem.from_matrices(C, a, b).unbalanced[0]
    weights = tuple(factor * auto for factor in factors)
    assert st.Problem.from_matrices(C, a, b, unbalanced=unbalanced).unbalanced == pytest.approx(weights)
    alone, [result] = st.solve(C, a, b, unbalanced=weights), st.solve_batch([(C, a, b)], unbalanced=unbalanced)
    np.testing.assert_allclose(result.plan, alone.plan, atol=1e-12)
    assert st.Problem.from_matrices(C, a, b, unbalanced=("auto", 3.0)).unbalanced == pytest.approx((auto, 3.0))


@pytest.mark.parametrize("unbalanced", ["-1*auto", "0*auto", "*auto", "nan*auto", "auto*2", "2auto", ("auto", "many")])
def test_what_is_no_multiple_of_auto(unbalanced):
    with pytest.raises(ValueError, match=r"unbalanced must be a positive number, inf, 'auto' or a multiple such as"):
        st.Problem.from_matrices(np.eye(2), unbalanced=unbalanced)
