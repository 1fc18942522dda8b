"""Dense and lazy geometry share one interface, and agree."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import sparsetransport as st
from sparsetransport.geometry.costs import cost_matrix
from sparsetransport.geometry.matrices import Cost, Gram

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(300, 3)), RNG.normal(size=(270, 3)) + 1.0  # more than one block of rows
ROWS, COLS = np.array([0, 5, 299, 5]), np.array([269, 0, 3, 0])


@pytest.fixture(params=["sqeuclidean", "euclidean", "cosine"])
def costs(request):
    """The same normalised cost, dense and lazy."""
    dense = Cost.dense(cost_matrix(X, Y, request.param, normalize=True))
    return dense, Cost.lazy(X, Y, request.param, normalize=True)


def test_lazy_costs_have_the_entries_of_dense_ones(costs):
    """Entries, rows, columns and blocks of a lazy cost are those of the matrix."""
    dense, lazy = costs
    matrix = dense.rows(0, 300)
    assert not dense.is_lazy
    assert lazy.is_lazy
    for cost in costs:
        assert cost.shape == (300, 270)
        np.testing.assert_allclose(cost.rows(250, 300), matrix[250:300], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(cost.columns(COLS), matrix[:, COLS], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(cost.entries(ROWS, COLS), matrix[ROWS, COLS], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(np.vstack([block for _, block in cost.blocks()]), matrix, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_lazy_and_dense_costs_agree_where_points_coincide(metric, offset):
    """A root would blow up what rounding leaves of a distance of zero: equal points cost nothing at all, either way."""
    x, y = X + offset, np.vstack([X[:100], X[:100] + 1e-9, Y]) + offset
    matrix, lazy = cost_matrix(x, y, metric), Cost.lazy(x, y, metric)
    same = np.arange(100)
    for found in (lazy.rows(0, 300), lazy.columns(np.arange(470)), matrix):
        np.testing.assert_array_equal(found[same, same], 0.0)
        np.testing.assert_allclose(found, matrix, rtol=1e-9, atol=1e-15)
        near, step = found[same, 100 + same], np.linalg.norm(x[:100] - y[100:200], axis=1)
        np.testing.assert_allclose(near, step**2 if metric == "sqeuclidean" else step, rtol=1e-3)
    np.testing.assert_array_equal(lazy.entries(same, same), 0.0)
    rows, cols = np.indices(matrix.shape)
    np.testing.assert_allclose(lazy.entries(rows.ravel(), cols.ravel()), matrix.ravel(), rtol=1e-9, atol=1e-15)


def test_lazy_costs_have_the_summary_of_dense_ones(costs):
    """Largest and mean cost do not depend on how the costs are held."""
    dense, lazy = costs
    known = 0.0 if lazy.is_squared else dense.lowest  # squares are not negative, and no more is said of them
    assert lazy.lowest == pytest.approx(known, abs=1e-12)
    assert lazy.mean == pytest.approx(dense.mean)
    assert lazy.has_pairs


def test_forbidden_pairs_do_not_count_in_the_summary():
    """The lowest cost and the mean absolute cost are those of the allowed pairs."""
    cost = Cost.dense([[np.inf, -3.0], [1.0, np.inf]])
    assert (cost.lowest, cost.mean, cost.has_pairs) == (-3.0, 2.0, True)
    assert not Cost.dense([[np.inf]]).has_pairs


@pytest.fixture(params=[st.Delta(), st.RBF(2.0), st.RBF("median")], ids=repr)
def grams(request):
    """The same kernel, dense and lazy."""
    return Gram.of_points(request.param, X, lazy=False), Gram.of_points(request.param, X, lazy=True)


def test_lazy_grams_have_the_entries_of_dense_ones(grams):
    """Blocks, products and the largest diagonal entry of a lazy Gram matrix are those of the matrix."""
    dense, _ = grams
    every = np.arange(300)
    matrix = dense.block(every, every)
    sparse = np.where(np.arange(300) % 7 == 0, RNG.random(300), 0.0)
    for gram in grams:
        np.testing.assert_allclose(gram.block(ROWS, COLS), matrix[np.ix_(ROWS, COLS)], atol=1e-12)
        np.testing.assert_allclose(gram.times(sparse), matrix @ sparse, atol=1e-12)
        np.testing.assert_allclose(gram.diagonal, matrix.diagonal())


@pytest.mark.parametrize("d", [2, 10])
@pytest.mark.parametrize("away", [0.0, 1e6])
def test_products_with_many_masses(d, away):
    """Tiles above the diagonal and their mirrors make the whole matrix, and far from the origin nothing cancels."""
    points = np.random.default_rng(d).normal(size=(700, d))
    points[1] = points[0]
    vector = np.random.default_rng(0).normal(size=700)
    for sigma2 in (1e-12, 0.01, 3.0):
        expected = np.exp(cdist(points, points, "sqeuclidean") / (-2.0 * sigma2))
        gram = Gram.of_points(st.RBF(sigma2), points + away, lazy=True)
        loose = 1e-15 * away / sigma2**0.5  # from the coordinates
        np.testing.assert_allclose(gram.times(vector), expected @ vector, atol=1e-11 + 1e3 * loose)
        np.testing.assert_allclose(gram.times(-vector), -(expected @ vector), atol=1e-11 + 1e3 * loose)
        block = gram.block(ROWS, COLS)
        np.testing.assert_allclose(block, expected[np.ix_(ROWS, COLS)], atol=1e-12 + 10 * loose)


def test_a_lazy_geometry_holds_no_matrix():
    """What a lazy problem keeps grows with the number of points, not with the number of pairs."""
    problem = st.Problem.from_points(X, Y, kernels=st.RBF(1.0), lazy=True)
    held = [problem.cost.compiled.matrix, problem.cost.compiled.x, problem.cost.compiled.y]
    held += [problem.gram_a.matrix, problem.gram_a.points, problem.gram_b.matrix, problem.gram_b.points]
    assert sum(array.size for array in held) < 20 * (len(X) + len(Y))


def test_a_gram_matrix_may_be_wrong_by_rounding():
    """Asymmetry and negative eigenvalues of the size of rounding are let through; the matrix is made symmetric."""
    rank_one = np.outer(X[:20, 0], X[:20, 0])
    rank_one[0, 1] += 1e-12
    gram = Gram.dense("kernels", rank_one, 20)
    np.testing.assert_array_equal(gram.matrix, gram.matrix.T)


def test_a_gram_matrix_of_zeros_is_positive_semidefinite():
    """The zero matrix is a valid kernel: no marginal error matters."""
    assert not Gram.dense("kernels", np.zeros((3, 3)), 3).diagonal.any()
