"""Kernels: their formulas, their bandwidths, their names."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

import sparsetransport as st
from sparsetransport.geometry.kernels import as_kernel

POINTS = np.random.default_rng(0).normal(size=(7, 3))
FORMULAS = {
    st.RBF: lambda d2, s2: np.exp(-d2 / (2.0 * s2)),
    st.IMQ: lambda d2, s2: (s2 + d2) ** -0.5,
    st.IMQv2: lambda d2, s2: ((1.0 + d2) / s2) ** -0.5,
}


@pytest.mark.parametrize("kernel", FORMULAS)
@pytest.mark.parametrize("sigma2", [0.1, 1.0, 7.5])
def test_gram_matrices_follow_the_formula(kernel, sigma2):
    """k(x, y) is exp(-d²/2σ²), (σ² + d²)^-½ or ((1 + d²)/σ²)^-½."""
    expected = FORMULAS[kernel](cdist(POINTS, POINTS, "sqeuclidean"), sigma2)
    np.testing.assert_allclose(kernel(sigma2).gram(POINTS), expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", FORMULAS)
@pytest.mark.parametrize(("rule", "function"), [("median", np.median), ("mean", np.mean)])
def test_bandwidth_rules_use_squared_distances(kernel, rule, function):
    """The rules give the median and the mean of the squared distances between different points."""
    assert kernel(rule).bandwidth(POINTS) == pytest.approx(function(pdist(POINTS, "sqeuclidean")), rel=1e-12)


@pytest.mark.parametrize("kernel", [st.RBF, st.IMQ])
def test_a_rule_makes_the_kernel_follow_the_scale_of_the_data(kernel):
    """Rescaling the points rescales the bandwidth with them: RBF stays, IMQ is divided by the scale."""
    shrink = {st.RBF: 1.0, st.IMQ: 8.0}[kernel]
    np.testing.assert_allclose(kernel("median").gram(8.0 * POINTS) * shrink, kernel("median").gram(POINTS), rtol=1e-12)


@pytest.mark.parametrize("points", [np.zeros((1, 2)), np.ones((4, 2))])
def test_a_rule_without_distances_falls_back_to_one(points):
    """One point, or the same point again and again, has no distance to go by: σ² = 1."""
    assert st.RBF("median").bandwidth(points) == 1.0
    np.testing.assert_array_equal(st.RBF("median").gram(points), np.ones((len(points), len(points))))


def test_a_rule_on_many_points_looks_at_a_sample():
    """Beyond a few thousand points the rule takes a sample, and is still close to the truth."""
    points = np.random.default_rng(1).normal(size=(5000, 2))
    assert st.RBF("mean").bandwidth(points) == pytest.approx(4.0, rel=0.05)  # E|x - y|² = 2 · trace of the covariance


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rbf", st.RBF()),
        ("imq", st.IMQ()),
        ("imq-v2", st.IMQv2()),
        ("delta", st.Delta()),
        ("median", st.RBF("median")),
        ("mean", st.RBF("mean")),
    ],
)
def test_kernels_go_by_names(name, expected):
    """A name means that kernel with the median rule; a bandwidth rule means RBF with it."""
    assert as_kernel("kernels", name) == expected
    assert as_kernel("kernels", expected) is expected


def test_kernels_of_different_types_are_different():
    """RBF(1) is not IMQ(1), though both hold the same number."""
    assert st.RBF(1.0) != st.IMQ(1.0)
    assert st.RBF(1.0) == st.RBF(1.0)
