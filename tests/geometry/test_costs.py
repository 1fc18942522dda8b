"""Costs between points."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import sparsetransport as st
from sparsetransport.geometry.matrices import Cost

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(9, 3)), RNG.normal(size=(6, 3)) + 1.0


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
def test_costs_are_what_scipy_says(metric):
    """Squared Euclidean, Euclidean and cosine costs agree with SciPy's distances."""
    np.testing.assert_allclose(st.cost_matrix(X, Y, metric), cdist(X, Y, metric), atol=1e-12)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
def test_normalised_costs_have_maximum_one(metric):
    """Normalised costs are the costs divided by their largest."""
    plain = st.cost_matrix(X, Y, metric)
    np.testing.assert_allclose(st.cost_matrix(X, Y, metric, normalize=True), plain / plain.max(), rtol=1e-13)


def test_normalising_zeros_leaves_zeros():
    """Where every cost is zero there is nothing to divide by."""
    np.testing.assert_array_equal(st.cost_matrix(np.ones((2, 1)), np.ones((3, 1)), normalize=True), np.zeros((2, 3)))


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_equal_points_far_from_the_origin_cost_nothing(metric):
    """The distance of a point to itself is zero and that of close points exact, wherever the origin is."""
    far = 1e6 + X
    cost = st.cost_matrix(far, np.vstack([far, far + 1e-3]), metric)
    np.testing.assert_array_equal(np.diag(cost), np.zeros(len(X)))
    near = np.diag(cost[:, len(X) :])
    np.testing.assert_allclose(near, 3e-6 if metric == "sqeuclidean" else np.sqrt(3e-6), rtol=1e-5)


def test_nearly_parallel_vectors_keep_their_digits():
    """Half the squared angle, where one minus a cosine would be rounding."""
    x, y = np.array([[1.0, 0.0], [1.0, 1e-9]]), np.array([[1.0, 2e-9]])
    np.testing.assert_allclose(st.cost_matrix(x, y, "cosine")[:, 0], [2e-18, 5e-19], rtol=1e-6)
    lazy = Cost.lazy(x, y, "cosine", normalize=True)
    np.testing.assert_allclose(lazy.rows(0, 2)[:, 0], [1.0, 0.25], rtol=1e-6)


@pytest.mark.parametrize("size", [1e-200, 1e-160, 1e-60, 1e60, 1e160, 1e200])
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
@pytest.mark.parametrize("lazy", [False, True])
def test_points_whose_squares_would_be_lost_are_refused(size, metric, lazy):
    rng = np.random.default_rng(0)
    X, Y = size * rng.random((4, 2)), size * rng.random((5, 2))
    with pytest.raises(ValueError, match="X and Y must have absolute values between 1e-50 and"):
        st.solve_sample(X, Y, budget=3, metric=metric, lazy=lazy)


def test_directions_do_not_depend_on_lengths():
    rng = np.random.default_rng(0)
    X, Y = rng.random((4, 3)), rng.random((5, 3))
    lengths = np.array([1e-180, 1.0, 1e-20, 1e40])[:, None]
    np.testing.assert_allclose(st.cost_matrix(X * lengths, Y, "cosine"), st.cost_matrix(X, Y, "cosine"), rtol=1e-12)
