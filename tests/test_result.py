"""What a solve gives back: names of POT's OTResult, a path one can walk, a status in words."""

import numpy as np
import pytest
import scipy.sparse
from cases import KERNELS, instance

import sparsetransport as st

METHODS = ["omp", "stochastic", "residual", "greedy", "residual-greedy"]
BUDGETS = [9, st.PerColumn(1), st.PerRow(2), st.PerRow(1) & st.PerColumn(2)]


@pytest.fixture
def case():
    return instance(1, 8, 7, "rbf", 0.1, (5.0, 2.0))


# --- the plan --------------------------------------------------------------------------------------------------------


def test_the_plan_in_all_its_forms(case):
    """Dense, sparse and as lists of rows, columns and masses: one plan."""
    result = case.solve(budget=9)
    dense = np.zeros(case.shape)
    dense[result.rows, result.cols] = result.mass
    np.testing.assert_array_equal(result.plan, dense)
    assert isinstance(result.sparse_plan, scipy.sparse.coo_array)
    np.testing.assert_array_equal(result.sparse_plan.toarray(), dense)
    assert result.plan is result.plan


def test_arrays_are_the_users_to_change(case):
    """Normalised masses are the user's; the result keeps the plan that it proves something of."""
    result = case.solve(budget=9)
    before = result.sparse_plan.toarray()
    mass = result.mass
    mass /= mass.sum()
    result.rows[:], result.sparse_plan.data[:], result.marginal_a[:], result.potential_b[:] = 0, 0.0, 0.0, 0.0
    np.testing.assert_array_equal(result.sparse_plan.toarray(), before)
    np.testing.assert_allclose(result.marginal_a, before.sum(1))
    assert result.potential_b.any()


def test_values_and_marginals_are_those_of_the_plan(case):
    """``value`` is U, ``value_linear`` is <C, γ>, the marginals are the sums."""
    result = case.solve(budget=9)
    assert result.value == pytest.approx(case.value(result.plan))
    assert result.value_linear == pytest.approx((case.C * result.plan).sum())
    np.testing.assert_allclose(result.marginals[0], result.plan.sum(axis=1))
    np.testing.assert_allclose(result.marginals[1], result.plan.sum(axis=0))
    np.testing.assert_array_equal(result.marginal_a, result.marginals[0])
    np.testing.assert_array_equal(result.marginal_b, result.marginals[1])


@pytest.mark.parametrize("kernel", KERNELS)
def test_potentials_give_the_gradient(kernel):
    """The gradient at a pair without mass is C_ij - potential_a[i] - potential_b[j]; on the support it is -λ₂γ."""
    case = instance(1, 8, 7, kernel, 0.1, (5.0, 2.0))
    result = case.solve(budget=9)
    r = 2.0 * 5.0 * case.Ga @ (result.plan.sum(axis=1) - case.a)
    c = 2.0 * 2.0 * case.Gb @ (result.plan.sum(axis=0) - case.b)
    np.testing.assert_allclose(result.potential_a, -r, atol=1e-10)
    np.testing.assert_allclose(result.potential_b, -c, atol=1e-10)
    np.testing.assert_array_equal(result.potentials[0], result.potential_a)
    slack = case.C - result.potential_a[:, None] - result.potential_b
    np.testing.assert_allclose(slack[result.rows, result.cols], -0.1 * result.mass, atol=1e-9)


def test_the_names_of_pot_are_all_there(case):
    """Whoever knows POT's OTResult finds the same names here."""
    ot = pytest.importorskip("ot")
    result = case.solve(budget=9)
    wanted = "plan sparse_plan value value_linear potentials potential_a potential_b marginals marginal_a marginal_b"
    for name in [*wanted.split(), "status", "log"]:
        assert isinstance(getattr(ot.utils.OTResult, name), property)
        assert getattr(result, name) is not None


def test_barycentres_are_averages_of_where_the_mass_goes():
    """a_to_b[i] is the average of the points that row i sends to, b_to_a the other way; NaN where nothing moves."""
    X, Y = np.array([[0.0], [1.0], [50.0]]), np.array([[0.0], [2.0]])
    result = st.solve_sample(X, Y, [1.0, 1.0, 0.0], [1.0, 1.0], unbalanced=50.0, kernels=st.Delta(), budget=3)
    plan = result.plan
    expected = (plan @ Y)[:2] / plan.sum(axis=1)[:2, None]
    np.testing.assert_allclose(result.a_to_b[:2], expected)
    assert np.isnan(result.a_to_b[2]).all()  # it has no mass, and no warning
    np.testing.assert_allclose(result.b_to_a, (plan.T @ X) / plan.sum(axis=0)[:, None])


def test_barycentres_need_points(case):
    """From matrices there are no points to average: the error says what to call."""
    result = case.solve(budget=3)
    for name in ("a_to_b", "b_to_a"):
        with pytest.raises(ValueError, match="solve_sample"):
            getattr(result, name)


def test_results_describe_themselves(case):
    """The repr has the number of entries, the shape, the value and the status in words."""
    text = repr(case.solve(budget=9))
    assert "9 of 8x7 entries" in text
    assert "the budget is used up" in text
    assert f"{case.solve(budget=9).value:.4g}" in text


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("options", [{}, {"reclaim": False}, {"inner": "apgd"}, {"gap_tol": 0.5}])
def test_every_method_returns_the_same_type(case, method, options):
    """No flag changes what comes back."""
    result = case.solve(budget=5, method=method, rng=0, **options)
    assert type(result) is st.Result
    assert isinstance(result.status, st.Status)
    assert isinstance(result.value, float)
    assert isinstance(result.converged, bool)
    assert result.log["unbalanced"] == (5.0, 2.0)
    assert result.log["steps"] == len(result.path)


# --- the norm that was asked for, and points without a link ----------------------------------------------------------


def test_errors_are_told_in_the_norm_of_the_kernel(case):
    """From the definition, with the Gram matrices as arrays."""
    result = case.solve(budget=9)
    missed = result.plan.sum(1) - case.a, result.plan.sum(0) - case.b
    for told, by, gram, wanted in zip(result.kernel_errors, missed, (case.Ga, case.Gb), (case.a, case.b), strict=True):
        assert told == pytest.approx(np.sqrt(by @ gram @ by / (wanted @ gram @ wanted)))
    assert f"marginal errors {100 * result.kernel_errors[0]:.{int(result.kernel_errors[0] < 0.1)}f} %" in repr(result)
    delta = st.solve(case.C, case.a, case.b, budget=5)
    assert delta.kernel_errors[0] == pytest.approx(np.linalg.norm(delta.marginal_a - case.a) / np.linalg.norm(case.a))


def test_a_wide_kernel_says_that_fewer_links_are_enough():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(15, 2)) + 1.0
    wide = st.solve_sample(X, Y, budget=30, kernels=st.RBF(10.0))
    assert wide.status is st.Status.OPTIMAL
    sentence = f"{len(wide.mass)} of 30 links: at this bandwidth more would not lower the objective"
    assert sentence in repr(wide)
    assert f"status: {sentence}" in wide.summary()


def test_points_without_a_link_are_counted_and_named():
    pd = pytest.importorskip("pandas")
    X, Y = pd.DataFrame({"x": [0.0, 1.0, 5.0]}, list("pqr")), pd.DataFrame({"x": [0.0, 1.0]}, list("vw"))
    result = st.solve_sample(X, Y, budget=2, kernels=st.Delta())
    assert result.without_link == (["r"], [])
    assert "without a link: 1 of 3 rows (r) and 0 of 2 columns" in result.summary()
    with pytest.warns(st.SparseTransportWarning, match=r"a_to_b is NaN for 1 of 3 points, which have no link \(r\)"):
        assert np.isnan(result.a_to_b).tolist() == [[False], [False], [True]]
    assert not np.isnan(result.b_to_a).any()
