"""Entries of costs and kernels for compiled functions, dense or on demand, against NumPy and SciPy."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import sparsetransport as st
from sparsetransport._checks import Floats, Ints
from sparsetransport._numba.compiling import compiled
from sparsetransport.geometry import _entries
from sparsetransport.geometry.costs import lazy_cost
from sparsetransport.geometry.matrices import Gram

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(13, 3)), RNG.normal(size=(9, 3))
METRICS = ["sqeuclidean", "euclidean", "cosine"]


@compiled
def diagonal(gram: _entries.Gram, i: int) -> float:
    return _entries.gram_diagonal(gram, i)


@compiled
def fetch(gram: _entries.Gram, i: int) -> bool:
    return _entries.fetch(gram, i)


@compiled
def entry(gram: _entries.Gram, i: int, k: int) -> float:
    return _entries.gram_entry(gram, i, k)


@compiled
def potential(gram: _entries.Gram, base: Floats, mass: Floats, active: Ints, count: int, out: Floats) -> None:
    _entries.potential(gram, base, mass, active, count, out)


@compiled
def smoothed(gram: _entries.Gram, mass: Floats, label: Ints, entry_mass: Floats, i: int) -> float:
    return _entries.smoothed(gram, mass, label, entry_mass, label.size, i)


@pytest.mark.parametrize("metric", METRICS)
def test_costs_on_demand_are_distances(metric):
    """Blocks of rows and single entries, in any order and twice; also from a matrix."""
    lazy, expected = lazy_cost(X, Y, metric), cdist(X, Y, metric)
    np.testing.assert_allclose(_entries.lazy_block(lazy, 0, 13), expected, rtol=1e-12)
    np.testing.assert_allclose(_entries.lazy_block(lazy, 4, 7), expected[4:7], rtol=1e-12)
    rows, cols = RNG.integers(0, 13, 40), RNG.integers(0, 9, 40)
    np.testing.assert_allclose(_entries.cost_entries(lazy, rows, cols), expected[rows, cols], rtol=1e-12)
    nothing = np.zeros((0, 0))
    dense = _entries.Cost(_entries.MATRIX, expected, nothing, nothing, 1.0)
    np.testing.assert_array_equal(_entries.cost_entries(dense, rows, cols), expected[rows, cols])


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_points_that_nearly_coincide_keep_their_digits(metric):
    """Far from the origin the terms of |x|² - 2xy + |y|² cancel; equal points are at distance zero exactly."""
    x = RNG.normal(size=(6, 2)) + 1e4
    y = x + 1e-5 * RNG.normal(size=(6, 2))
    y[2] = x[2]
    lazy, expected = lazy_cost(x, y, metric), cdist(x, y, metric)
    every = np.arange(6)
    for found in (_entries.lazy_block(lazy, 0, 6).diagonal(), _entries.cost_entries(lazy, every, every)):
        np.testing.assert_allclose(found, expected.diagonal(), rtol=1e-5)
        assert found[2] == 0.0


@pytest.mark.parametrize("kernel", [st.RBF(0.7), st.IMQ(0.7), st.IMQv2(0.7), st.Laplace(0.7)])
def test_kernel_values_between_two_lists_of_points(kernel):
    rows, cols = RNG.integers(0, 13, 5), RNG.integers(0, 13, 7)
    block, by_products = (
        _entries.gram_block(kernel.code, 0.7, X, lengths, rows, cols)
        for lengths in (np.zeros(0), np.sum(X * X, axis=1))
    )
    np.testing.assert_allclose(block, kernel.gram(X)[np.ix_(rows, cols)], rtol=1e-11)
    np.testing.assert_allclose(by_products, block, rtol=1e-11)
    square = cdist(X[rows], X[cols], "sqeuclidean")
    if isinstance(kernel, st.RBF):
        np.testing.assert_allclose(block, np.exp(-square / 1.4), rtol=1e-12)


@pytest.mark.parametrize("kind", ["delta", "dense", "lazy"])
def test_every_gram_matrix_is_read_in_the_same_way(kind):
    """Entries, diagonal, and products with masses of a few points or of many: ``2 λ G``, whichever form it has."""
    matrix = np.eye(13) if kind == "delta" else np.exp(-cdist(X, X, "sqeuclidean") / 1.4)
    made = Gram.delta(13) if kind == "delta" else Gram.of_points(st.RBF(0.7), X, lazy=kind == "lazy")
    gram, base, out = made.compiled(3.0, 13), RNG.normal(size=13), np.empty(13)
    for few in (1, 4, 6, 11):
        active = RNG.choice(13, few, replace=False)
        mass = np.zeros(13)
        mass[active] = RNG.random(few)
        assert all(fetch(gram, i) for i in active)
        potential(gram, base, mass, active, few, out)
        np.testing.assert_allclose(out, base + 3.0 * matrix @ mass, rtol=1e-11)
        label = np.concatenate([active, active[:1]])  # two entries in one row
        shares = np.append(mass[active], 0.4 * mass[active[0]])
        shares[0] *= 0.6
        for i in range(13):
            assert smoothed(gram, mass, label, shares, i) == pytest.approx(3.0 * matrix[i] @ mass, rel=1e-11)
            assert diagonal(gram, i) == pytest.approx(3.0 * matrix[i, i], rel=1e-13)
            assert entry(gram, i, int(active[0])) == pytest.approx(3.0 * matrix[i, active[0]], rel=1e-11)


def test_columns_are_computed_once_while_there_is_room():
    gram = Gram.of_points(st.RBF(0.7), X, lazy=True).compiled(3.0, 2)
    assert [fetch(gram, i) for i in (5, 5, 8, 5, 1, 8)] == [True, True, True, True, False, True]
    assert gram.slot[-1] == 2
    assert (gram.slot[[5, 8, 1]] == [0, 1, -1]).all()


def test_a_summary_leaves_out_forbidden_pairs():
    """How many are left, the lowest, and the sum of their sizes."""
    block = RNG.normal(size=(5, 6))
    finite = block.copy().ravel()[3:]
    block.ravel()[:3] = np.inf
    assert _entries.summarise(block) == (27, finite.min(), pytest.approx(np.abs(finite).sum()))
