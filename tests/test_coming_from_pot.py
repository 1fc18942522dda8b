"""What the guide says under "Coming from POT" holds, row by row, against POT itself."""

import numpy as np
import pytest

import sparsetransport as st

ot = pytest.importorskip("ot")

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=(9, 2)) + 1.0
A, B = (masses / masses.sum() for masses in (RNG.random(12), RNG.random(9)))
M = st.cost_matrix(X, Y)
EXACT = {"max_iter": 200_000, "tol": 1e-16}


@pytest.fixture(scope="module")
def hard():
    return ot.solve(M, A, B)


@pytest.fixture(scope="module")
def close():
    return st.solve(M, A, B, unbalanced=100.0 * st.Problem.from_matrices(M, A, B).unbalanced[0])


def test_a_large_weight_comes_close_to_hard_marginals(hard, close):
    assert close.value == pytest.approx(hard.value, rel=1e-3)
    np.testing.assert_allclose(close.plan, hard.plan, atol=1e-3)


def test_what_is_large_follows_the_problem():
    """A hundred times the weight of "auto" for more points in more dimensions, where 1e5 would be soft."""
    rng = np.random.default_rng(1)
    costs = st.cost_matrix(rng.normal(size=(150, 50)), rng.normal(size=(150, 50)) + 0.3)
    auto = st.Problem.from_matrices(costs).unbalanced[0]
    assert auto > 1e5
    assert st.solve(costs, unbalanced=100.0 * auto).value_linear == pytest.approx(ot.solve(costs).value, rel=1e-4)
    assert max(st.solve(costs).marginal_errors) < 0.01


@pytest.mark.parametrize("weight", [50.0, (20.0, 200.0)])
def test_the_weight_of_marginals_is_twice_ours(weight):
    ours = st.solve(M, A, B, unbalanced=tuple(np.divide(weight, 2.0)) if isinstance(weight, tuple) else weight / 2.0)
    theirs = ot.unbalanced.mm_unbalanced(A, B, M, reg_m=weight, div="l2", numItermax=200_000, stopThr=1e-16)
    np.testing.assert_allclose(theirs, ours.plan, atol=1e-6)
    if not isinstance(weight, tuple):
        result = ot.solve(M, A, B, unbalanced=weight, unbalanced_type="L2", **EXACT)
        np.testing.assert_allclose(result.plan, ours.plan, atol=1e-6)
        assert (result.value, result.value_linear) == pytest.approx((ours.value, ours.value_linear))


def test_the_quadratic_term_is_the_same_and_counts_twice_in_the_value():
    ours = st.solve(M, A, B, reg=3.0, unbalanced=1e6)
    theirs = ot.solve(M, A, B, reg=3.0, reg_type="L2", max_iter=100_000, tol=1e-14)
    np.testing.assert_allclose(theirs.plan, ours.plan, atol=1e-4)
    assert theirs.value - theirs.value_linear == pytest.approx(2.0 * 1.5 * (theirs.plan**2).sum())
    assert ours.value - ours.value_linear == pytest.approx(1.5 * (ours.mass**2).sum(), rel=0.01)


def test_beside_unbalanced_the_quadratic_term_is_ours_if_measured_from_nothing():
    ours = st.solve(M, A, B, unbalanced=25.0, reg=3.0)
    both = {"unbalanced": 50.0, "unbalanced_type": "L2", "reg": 3.0, "reg_type": "L2", **EXACT}
    np.testing.assert_allclose(ot.solve(M, A, B, c=np.zeros_like(M), **both).plan, ours.plan, atol=1e-6)
    assert np.abs(ot.solve(M, A, B, **both).plan - ours.plan).max() > 1e-3


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
def test_metrics_are_costs(metric):
    theirs = ot.solve_sample(X, Y, A, B, metric=metric, unbalanced=50.0, unbalanced_type="L2", **EXACT)
    ours = st.solve_sample(X, Y, A, B, metric=metric, unbalanced=25.0, kernels=st.Delta())
    np.testing.assert_allclose(theirs.plan, ours.plan, atol=1e-6)
    assert np.abs(st.solve_sample(X, Y, A, B, metric=metric, unbalanced=25.0).plan - ours.plan).max() > 1e-3


def test_potentials_have_the_same_sums_on_the_links(hard, close):
    rows, cols = close.rows, close.cols
    sums = [np.asarray(res.potential_a)[rows] + np.asarray(res.potential_b)[cols] for res in (hard, close)]
    np.testing.assert_allclose(sums[0], sums[1], atol=1e-8)
    np.testing.assert_allclose(sums[0], M[rows, cols], atol=1e-8)


def test_results_have_the_names_but_for_three(hard):
    theirs = {name for name in dir(ot.utils.OTResult) if not name.startswith("_")}
    assert theirs - set(dir(st.Result)) - set(vars(st.solve([[1.0]]))) == {"value_quad", "lazy_plan", "citation"}
    with pytest.raises(NotImplementedError):
        _ = hard.a_to_b


@pytest.mark.parametrize(("theirs", "ours"), [("plan_init", "start"), ("random_state", "rng")])
def test_the_name_of_an_option_in_pot_leads_to_ours(theirs, ours):
    with pytest.raises(TypeError, match=rf"^unknown option {theirs} \({theirs} is called {ours} here\): help"):
        st.solve_sample(X, Y, **{theirs: None})


def test_no_weight_is_not_balanced_transport():
    rule = "unbalanced must be .*, got None: inf stands for hard marginals"
    with pytest.raises(TypeError, match=rule):
        st.solve(M, A, B, unbalanced=None)
