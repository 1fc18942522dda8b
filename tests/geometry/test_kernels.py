"""Kernels: their formulas, their bandwidths, their names. What is checked here over the table holds for new entries."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

import sparsetransport as st
from sparsetransport.geometry.kernels import NAMES, Delta, as_kernel
from sparsetransport.geometry.matrices import Gram
from sparsetransport.geometry.radial import TABLE, formulas, kernel_value

POINTS = np.random.default_rng(0).normal(size=(7, 3))
FORMULAS = {
    st.RBF: lambda d2, s2: np.exp(-d2 / (2.0 * s2)),
    st.IMQ: lambda d2, s2: (s2 + d2) ** -0.5,
    st.IMQv2: lambda d2, s2: ((1.0 + d2) / s2) ** -0.5,
    st.Laplace: lambda d2, s2: np.exp(-np.sqrt(d2) / s2**0.5),
}


@pytest.fixture(params=TABLE)
def radial(request):
    """Every kernel of the table, by its class."""
    return NAMES[request.param]


def test_every_formula_has_a_public_class():
    """What the table holds, users can name: by a class, by a string, on the command line."""
    assert {*TABLE, "delta"} == set(NAMES)
    for name, kernel in NAMES.items():
        assert getattr(st, kernel.__name__) is kernel
        assert isinstance(as_kernel("kernels", name), kernel)


@pytest.mark.parametrize("sigma2", [0.1, 1.0, 7.5])
def test_numba_numpy_and_python_read_the_same_formula(radial, sigma2):
    """Compiled for arrays, called as a Python function, or on NumPy's arrays, a formula has the same values."""
    square = cdist(POINTS, POINTS, "sqeuclidean")
    expected = formulas(np.exp, np.sqrt, np.sqrt)[radial.name](square, sigma2)
    np.testing.assert_allclose(radial(sigma2).gram(POINTS), expected, rtol=1e-12)
    number = list(TABLE).index(radial.name)
    np.testing.assert_allclose(np.vectorize(lambda d2: kernel_value(number, d2, sigma2))(square), expected, rtol=1e-12)


@pytest.mark.parametrize("sigma2", [0.3, 2.0, "median"])
def test_lazy_gram_matrices_are_dense_ones(radial, sigma2):
    """Blocks, products and the diagonal do not depend on how a matrix is held; the diagonal is the value at zero."""
    points = np.random.default_rng(1).normal(size=(300, 3))
    dense, lazy = (Gram.of_points(radial(sigma2), points, lazy=flag) for flag in (False, True))
    np.testing.assert_allclose(lazy.block(np.arange(300), np.arange(300)), dense.matrix, rtol=1e-9)
    np.testing.assert_allclose(lazy.times(points[:, 0]), dense.matrix @ points[:, 0], rtol=1e-9)
    at_zero = TABLE[radial.name](0.0, radial(sigma2).bandwidth(points))
    for gram in (dense, lazy):
        np.testing.assert_allclose(gram.diagonal, at_zero, rtol=1e-12)


@pytest.mark.parametrize("features", [1, 2, 10])
def test_kernels_are_positive_semidefinite(radial, features):
    """No eigenvalue of a Gram matrix is negative, which is what makes a marginal error a norm."""
    points = np.random.default_rng(features).normal(size=(60, features))
    for sigma2 in (0.1, 1.0, 10.0):
        values = np.linalg.eigvalsh(radial(sigma2).gram(points))
        assert values[0] > -1e-12 * values[-1]
        assert values[-1] > 0.0


def test_lazy_solves_are_dense_ones(radial):
    """The solver reads entries of the matrix, columns of the points and the diagonal: the plan is the same."""
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(25, 2)) + 0.5
    dense, lazy = (
        st.solve_sample(X, Y, kernels=radial(0.4), budget=8, unbalanced=5.0, reg=0.1, lazy=flag)
        for flag in (False, True)
    )
    assert dense.rows.size == 8
    np.testing.assert_array_equal(lazy.rows, dense.rows)
    np.testing.assert_array_equal(lazy.cols, dense.cols)
    np.testing.assert_allclose(lazy.mass, dense.mass, rtol=1e-8)
    assert lazy.value == pytest.approx(dense.value, rel=1e-10)


@pytest.mark.parametrize("kernel", FORMULAS)
@pytest.mark.parametrize("sigma2", [0.1, 1.0, 7.5])
def test_gram_matrices_follow_the_formula(kernel, sigma2):
    """k(x, y) is exp(-d²/2σ²), (σ² + d²)^-½, ((1 + d²)/σ²)^-½ or exp(-d/σ)."""
    expected = FORMULAS[kernel](cdist(POINTS, POINTS, "sqeuclidean"), sigma2)
    np.testing.assert_allclose(kernel(sigma2).gram(POINTS), expected, rtol=1e-12)


@pytest.mark.parametrize(("rule", "function"), [("median", np.median), ("mean", np.mean)])
def test_bandwidth_rules_use_squared_distances(radial, rule, function):
    """The rules give the median and the mean of the squared distances between different points."""
    assert radial(rule).bandwidth(POINTS) == pytest.approx(function(pdist(POINTS, "sqeuclidean")), rel=1e-12)


@pytest.mark.parametrize("kernel", [st.RBF, st.IMQ, st.Laplace])
def test_a_rule_makes_the_kernel_follow_the_scale_of_the_data(kernel):
    """Rescaling the points rescales the bandwidth with them: RBF and Laplace stay, IMQ is divided by the scale."""
    shrink = {st.RBF: 1.0, st.IMQ: 8.0, st.Laplace: 1.0}[kernel]
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


class TestOwn:
    """A function of the user's, k(X, Y)."""

    X, Y = np.random.default_rng(3).normal(size=(20, 2)), np.random.default_rng(4).normal(size=(15, 2))

    @staticmethod
    def cauchy(x, y):
        """1 / (1 + d²)."""
        return 1.0 / (1.0 + cdist(x, y, "sqeuclidean"))

    @pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
    def test_it_is_what_its_gram_matrices_are(self, metric):
        """Alone or as one of a pair, a function gives the plan of its matrices; with cosine costs, of directions."""
        sides = [p / np.linalg.norm(p, axis=1, keepdims=True) if metric == "cosine" else p for p in (self.X, self.Y)]
        grams = [self.cauchy(side, side) for side in sides]
        for mine, theirs in ((self.cauchy, grams), ((self.cauchy, Delta()), (grams[0], Delta()))):
            found, expected = (
                st.solve_sample(self.X, self.Y, metric=metric, kernels=kernels, budget=6, reg=0.1)
                for kernels in (mine, theirs)
            )
            np.testing.assert_array_equal(found.rows, expected.rows)
            assert found.value == pytest.approx(expected.value, rel=1e-12)

    def test_an_object_that_can_be_called_is_a_function(self):
        """Such as the kernels of scikit-learn."""
        kernels = pytest.importorskip("sklearn.gaussian_process.kernels")
        found = st.solve_sample(self.X, self.Y, kernels=kernels.RBF(0.5), budget=6)
        assert found.value == pytest.approx(st.solve_sample(self.X, self.Y, kernels=st.RBF(0.25), budget=6).value)

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda x, y: np.ones(len(x)), r"Gram matrix of kernels\[1\].*2 dimensions.*\(15,\)"),
            (lambda x, y: np.ones((len(x), 3)), r"Gram matrix of kernels\[1\].*\(15, 15\), got \(15, 3\)"),
            (lambda x, y: x[:, :1] - y[:, 0], r"Gram matrix of kernels\[1\].*symmetric"),
            (lambda x, y: -cdist(x, y), r"Gram matrix of kernels\[1\].*semi-definite"),
            (lambda x, y: np.full((len(x), len(y)), np.nan), r"Gram matrix of kernels\[1\].*nan"),
        ],
    )
    def test_its_gram_matrix_is_checked(self, function, message):
        """As one that is given: shape, symmetry, eigenvalues."""
        with pytest.raises(ValueError, match=message):
            st.solve_sample(self.X, self.Y, kernels=("median", function))

    def test_it_needs_points_and_a_matrix(self):
        """A function is called once, for all points of a side."""
        with pytest.raises(ValueError, match=r"kernels\[0\] needs points to compute cauchy: call solve_sample"):
            st.solve(np.eye(2), kernels=self.cauchy)
        with pytest.raises(ValueError, match=r"kernels\[0\].*lazy, got the function cauchy: pass lazy=False"):
            st.solve_sample(self.X, self.Y, kernels=self.cauchy, lazy=True)


def test_multiples_of_a_rule():
    """With spaces or without; an error names the rules."""
    points = np.random.default_rng(0).normal(size=(9, 2))
    whole = st.RBF("median").bandwidth(points)
    for text in ("0.25*median", " .25 * median"):
        assert st.RBF(text).bandwidth(points) == pytest.approx(0.25 * whole)
        assert as_kernel("kernel", text) == st.RBF(text)
    for wrong in ("median*2", "-1*median", "0*mean", "inf*mean", "x*mean", "mode"):
        with pytest.raises(ValueError, match=r"sigma2 must be a positive number, 'median' or 'mean', or a multiple"):
            st.IMQ(wrong)
        with pytest.raises(ValueError, match="kernel must be one of"):
            as_kernel("kernel", wrong)


def test_the_default_of_points_is_a_tenth_of_the_median():
    points = np.random.default_rng(0).normal(size=(9, 2))
    given, default = (st.Problem.from_points(points, points, kernels=each) for each in ("0.1*median", None))
    np.testing.assert_array_equal(given.gram_a.matrix, default.gram_a.matrix)
