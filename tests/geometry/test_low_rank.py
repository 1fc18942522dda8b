"""Low-rank factors: close to the matrix by what they say, and none where the spectrum does not fall."""

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.geometry import low_rank, matrices
from sparsetransport.geometry.low_rank import Factor, factor_of
from sparsetransport.geometry.matrices import Gram


def factor(matrix):
    return factor_of(lambda i: matrix[i], float(matrix[0, 0]), len(matrix))


@pytest.mark.parametrize("kernel", [st.RBF(), st.RBF("mean"), st.IMQ(30.0)], ids=repr)
@pytest.mark.parametrize("d", [1, 2])
def test_no_entry_is_further_off_than_it_says(kernel, d):
    rng = np.random.default_rng(d)
    matrix = kernel.gram(np.concatenate([rng.normal(size=(1200, d)), 0.1 * rng.normal(size=(2000, d)) + 2.0]))
    found = factor(matrix)
    assert 0.0 < found.error < 1.5e-13 * matrix[0, 0] + 1e-13
    assert np.abs(found.lines.T @ found.lines - matrix).max() <= found.error
    vector = rng.normal(size=3200)
    off = np.abs(found.times(vector) - matrix @ vector)
    assert off.max() <= (found.error + 3200 * 2e-16 * matrix[0, 0]) * np.abs(vector).sum()


@pytest.mark.parametrize(("kernel", "d"), [(st.RBF(), 50), (st.RBF(1e-3), 2), (st.Laplace(), 2)], ids=str)
def test_there_is_none_where_the_spectrum_does_not_fall(kernel, d):
    """It is given up after few columns, not after as many as a factor may have."""
    matrix, asked = kernel.gram(np.random.default_rng(0).normal(size=(3200, d))), []
    assert factor_of(lambda i: asked.append(i) or matrix[i], float(matrix[0, 0]), 3200) is None
    assert len(asked) < 100


def test_duplicate_points_and_equal_ones():
    """Columns of the same points take nothing away; with all points equal the rank is one."""
    points = np.repeat(np.random.default_rng(0).normal(size=(40, 2)), 40, axis=0)
    assert len(factor(st.RBF().gram(points)).lines) <= 40
    assert len(factor(np.ones((100, 100))).lines) == 1


def test_products_use_it_and_proofs_do_not(monkeypatch):
    """A factor that is wrong spoils the plan, not the bound: it holds for plans of the problem as it is."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) + 0.5
    right = st.solve_sample(X, Y, kernels=st.RBF(), lazy=True)
    monkeypatch.setattr(matrices, "_FACTORISED_FROM", 30)
    rough = Gram.of_points(st.RBF(), X, lazy=True).block(np.arange(40), np.arange(40)) + 0.01
    monkeypatch.setattr(
        matrices, "factor_of", lambda column, diagonal, size: Factor(np.linalg.cholesky(rough).T[:, :size], 0.0)
    )
    with pytest.warns(st.ConvergenceWarning, match="KKT residual"):  # which is computed by the wrong one
        wrong = st.solve_sample(X, Y, kernels=st.RBF(), lazy=True, unbalanced=right.log["unbalanced"])
    assert wrong.lower_bound <= right.value * (1.0 + 1e-9)
    gram = Gram.of_points(st.RBF(), X, lazy=True)
    vector = rng.normal(size=40)
    assert np.abs(gram.times(vector) - rough @ vector).max() < 1e-9
    np.testing.assert_allclose(gram.times(vector, exact=True), st.RBF().gram(X) @ vector, atol=1e-12)


def test_its_size_has_a_limit(monkeypatch):
    matrix = st.RBF().gram(np.random.default_rng(0).normal(size=(1600, 1)))
    assert factor(matrix) is not None
    monkeypatch.setattr(low_rank, "_BYTES", 8 * 1600 * 10)
    assert factor(matrix) is None
