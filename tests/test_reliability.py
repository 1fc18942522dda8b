"""Nothing false at the edges: numbers too large or too small, tolerances, weights, arrays that are written to."""

import numpy as np
import pytest

import sparsetransport as st


@pytest.mark.parametrize("power", [-165, -110, 110, 150])
@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_numbers_whose_products_are_none_are_refused(power, reg):
    """Squares below 1e-308 or above 1e308 would make bounds false."""
    s = 10.0**power
    C = np.array([[1.0, 2.0], [2.0, 1.0]]) * s
    for solve in (st.solve, lambda *a, **k: st.solve_batch([a[0]] * 2, **k)):
        with pytest.raises(ValueError, match="between 1e-100 and 1e\\+100"):
            solve(C, budget=1, unbalanced=5.0 * s, reg=reg * s)
    with pytest.raises(ValueError, match="between 1e-50 and 1e\\+50"):
        st.solve_sample(np.eye(2) * 10.0 ** (power / 2), np.ones((2, 2)) * 10.0 ** (power / 2), budget=1)


@pytest.mark.parametrize("power", [-80, 80])
def test_units_change_no_plan(power):
    """Costs, weights and reg times a power of four: the same plan, value and bound times it, to the last bit."""
    rng, s = np.random.default_rng(0), 4.0**power
    C = rng.random((7, 6))
    for reg in (0.0, 0.1):
        plain = st.solve(C, budget=5, unbalanced=20.0, reg=reg)
        scaled = st.solve(C * s, budget=5, unbalanced=20.0 * s, reg=reg * s)
        np.testing.assert_array_equal(plain.plan, scaled.plan)
        assert scaled.value == plain.value * s
        assert scaled.lower_bound == plain.lower_bound * s


@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-4])
def test_a_loose_tolerance_is_no_optimum(tol):
    """The status says what tol allows, in every function that takes one."""
    C = np.random.default_rng(0).random((12, 10))
    best = st.solve(C, unbalanced=10.0)
    loose = st.solve(C, unbalanced=10.0, tol=tol)
    assert best.status is st.Status.OPTIMAL
    assert loose.status is st.Status.TOLERANCE
    assert best.value <= loose.value
    assert st.solve_batch([C, C], unbalanced=10.0, tol=tol)[0].status is st.Status.TOLERANCE
    assert st.solve_shared([(C, None, None)], unbalanced=10.0, tol=tol).status is st.Status.TOLERANCE


@pytest.mark.parametrize("tol", [0.0, 1.0, 3.0, np.nan])
def test_a_tolerance_that_makes_no_sense_is_refused(tol):
    for solve in (lambda: st.solve(np.ones((2, 2)), tol=tol), lambda: st.solve_shared([(np.ones((2, 2)),)], tol=tol)):
        with pytest.raises(ValueError, match="tol must be"):
            solve()


def test_a_side_that_is_lost_in_rounding_is_told():
    """Weights that differ by 2e13: the plan is not the optimum, which is half as large."""
    for solve in (st.solve, lambda C, a, b, **k: st.solve_batch([(C, a, b)] * 2, **k)):
        with pytest.warns(UserWarning, match="lost in rounding"):
            found = solve(np.zeros((4, 1)), np.ones(4), np.ones(1), unbalanced=(2.3e-4, 4.6e9))
        assert (found[0] if isinstance(found, list) else found).status is st.Status.ROUNDING
    with pytest.warns(UserWarning, match="lost in rounding"):
        found = st.solve_shared(
            [(np.ones((4, 1)), np.ones(4), np.ones(1)), (np.zeros((4, 1)), np.ones(4), np.ones(1))],
            unbalanced=(2.3e-4, 4.6e9),
        )
    assert found.status is st.Status.ROUNDING


def test_an_objective_is_as_exact_as_its_marginal_errors():
    """An error of a marginal of 1e-23 counts if its weight is 1e48: it is no difference of products of that size."""
    a = np.array([1.06933959e-07, 2.84863740e-07])
    gram = np.array([[4.25711181e48, 3.46408131e48], [3.46408131e48, 4.25711181e48]])
    C = np.array([[-0.16, -0.01], [-0.36, -0.32]])
    with pytest.warns(UserWarning, match="lost in rounding"):
        found = st.solve(C, a, a, kernels=(gram, np.eye(2)), unbalanced=(1.8, 6.7e-58))
    assert found.lower_bound <= found.value == found._parts.value
    missed = found.marginals[0] - a
    assert found.value == pytest.approx(C[found.rows, found.cols] @ found.mass + 1.8 * missed @ gram @ missed)


def test_masses_and_kernels_of_a_problem_cannot_be_written_to():
    rbf, points = st.RBF(1.0), np.arange(4.0).reshape(2, 2)
    for problem in (
        st.Problem.from_matrices(np.ones((2, 2)), kernels=rbf.gram(points)),
        st.Problem.from_points(points, points, kernels=rbf),
    ):
        st.solve(problem, budget=1)  # compiled functions take it nevertheless
        for array in (problem.a, problem.b, problem.gram_a.matrix, problem.gram_b.matrix):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = np.nan
