"""Accelerated projected gradient: the step length, the stopping test, the answer."""

import numpy as np
import pytest
from scipy.optimize import nnls

import sparsetransport as st
from sparsetransport.inner.apgd import apgd, kkt_residual, largest_eigenvalue


def _quadratic(seed, size):
    rng = np.random.default_rng(seed)
    basis = rng.random((size, size))
    return basis @ basis.T + 0.1 * np.eye(size), -basis @ rng.normal(0.3, 1.0, size)


@pytest.mark.parametrize("size", [1, 3, 4, 7, 40])
def test_the_step_is_short_enough(size):
    """Power iteration gives L, never below the largest eigenvalue and at most a few per cent above."""
    hessian, _ = _quadratic(size, size)
    exact = np.linalg.eigvalsh(hessian)[-1]
    assert exact <= largest_eigenvalue(hessian) <= 1.05 * exact


@pytest.mark.parametrize("size", [1, 3, 4, 7, 40])
def test_it_converges_to_the_solution(size):
    """Run long enough, the iterates reach SciPy's NNLS solution and the residual says so."""
    hessian, slope = _quadratic(size, size)
    x = np.zeros(size)
    residual, used = apgd(hessian, slope, x, 1e-10, 1_000_000)
    lower = np.linalg.cholesky(hessian)
    np.testing.assert_allclose(x, nnls(lower.T, -np.linalg.solve(lower, slope))[0], atol=1e-8)
    assert residual <= 1e-10
    assert used < 1_000_000
    assert residual == pytest.approx(kkt_residual(hessian @ x + slope, x), abs=1e-13)


@pytest.mark.parametrize("size", [2, 3, 30])
def test_entries_may_be_negative(size):
    """Gram matrices of the user's own, such as a linear kernel's: the step is short enough there too."""
    x = np.random.default_rng(size).choice([-1.0, 1.0], size=size)
    x[:2] = 1.0, -1.0  # the ones vector need not meet the leading eigenvector
    hessian = 40.0 * np.outer(x, x) + 0.1 * np.eye(size)
    assert largest_eigenvalue(hessian) >= np.linalg.eigvalsh(hessian)[-1]


def test_a_kernel_with_negative_entries_is_solved_as_the_active_set_does():
    kernel = np.array([[1.0, -1.0], [-1.0, 1.0]])
    options = {"kernels": (kernel, kernel), "unbalanced": 10.0, "reg": 0.1}
    exact = st.solve([[-1.0, 5.0], [5.0, -1.0]], **options)
    assert st.solve([[-1.0, 5.0], [5.0, -1.0]], inner="apgd", max_iter=100_000, **options).value == pytest.approx(
        exact.value, rel=1e-6
    )


def test_it_stops_at_the_limit_and_says_how_far_it_got():
    """With three iterations allowed, three are used, and the residual is that of the point returned."""
    hessian, slope = _quadratic(0, 20)
    x = np.zeros(20)
    residual, used = apgd(hessian, slope, x, 1e-12, 3)
    assert used == 3
    assert residual > 1e-12
    assert residual == pytest.approx(kkt_residual(hessian @ x + slope, x), rel=1e-9)


def test_the_optimum_needs_no_iteration():
    """Started at the solution, it stays there."""
    hessian, slope = np.eye(3), np.array([-1.0, 2.0, -3.0])
    x = np.array([1.0, 0.0, 3.0])
    residual, used = apgd(hessian, slope, x, 1e-12, 100)
    assert used == 0
    assert residual == 0.0
    np.testing.assert_array_equal(x, [1.0, 0.0, 3.0])


@pytest.mark.parametrize(
    ("gradient", "x", "expected"),
    [
        ([0.0, 1.0], [1.0, 0.0], 0.0),  # optimal
        ([0.5, 1.0], [1.0, 0.0], 0.5),  # mass with a gradient
        ([-0.5, 1.0], [1.0, 0.0], 0.5),
        ([0.0, -2.0], [1.0, 0.0], 2.0),  # a gradient that wants mass
    ],
)
def test_the_residual_is_the_violation_of_the_optimality_conditions(gradient, x, expected):
    """|g| where there is mass, the negative part of g where there is none, whichever is largest."""
    assert kkt_residual(np.array(gradient), np.array(x)) == expected
