"""Barycentres: of links under Delta, of links weighted by the kernel elsewhere, for new points as for old ones."""

import numpy as np
import pytest
import scipy.sparse

import sparsetransport as st

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=(9, 2)) + [3.0, 0.0]


@pytest.fixture(scope="module")
def narrow():
    return st.solve_sample(X, Y, budget=8, kernels=st.RBF(0.1))


def by_definition(result, points, *, back=False):
    """Kernel times mass over all links."""
    near, far = (result.cols, result.rows) if back else (result.rows, result.cols)
    own, other = (Y, X) if back else (X, Y)
    square = ((points[:, None] - own[near]) ** 2).sum(-1)
    weight = np.exp(-square / 0.2) * result.mass
    return weight @ other[far] / weight.sum(1, keepdims=True)


def test_every_point_has_a_value(narrow):
    assert len(np.unique(narrow.rows)) < len(X)
    np.testing.assert_allclose(narrow.a_to_b, by_definition(narrow, X))
    np.testing.assert_allclose(narrow.b_to_a, by_definition(narrow, Y, back=True))


def test_new_points(narrow):
    new = RNG.normal(size=(4, 2))
    np.testing.assert_allclose(narrow.transport(new), by_definition(narrow, new))
    np.testing.assert_allclose(narrow.transport(scipy.sparse.csr_array(new)), by_definition(narrow, new))
    np.testing.assert_allclose(narrow.inverse_transport(new), by_definition(narrow, new, back=True))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
def test_points_of_the_plan_as_new_ones(lazy, metric):
    """The same kernel, of the same points or directions."""
    result = st.solve_sample(X, Y, budget=8, kernels=st.IMQ(0.2), metric=metric, lazy=lazy)
    np.testing.assert_allclose(result.transport(X), result.a_to_b)
    np.testing.assert_allclose(result.inverse_transport(3.0 * Y if metric == "cosine" else Y), result.b_to_a)


def test_far_from_all_points_it_is_the_closest_link(narrow):
    """Where the kernel underflows."""
    far = np.array([[500.0, 0.0]])
    closest = np.argmin(((X[narrow.rows] - far) ** 2).sum(1))
    own = narrow.rows == narrow.rows[closest]
    expected = np.average(Y[narrow.cols[own]], axis=0, weights=narrow.mass[own])
    np.testing.assert_allclose(narrow.transport(far), expected[None])


def test_an_empty_plan_leads_nowhere():
    with pytest.warns(st.SparseTransportWarning, match="the plan is empty"):
        result = st.solve_sample(X, Y, unbalanced=1e-6)
    assert np.isnan(result.a_to_b).all()


def test_what_new_points_need(narrow):
    with pytest.raises(ValueError, match="X must have 2 features, as the points of the plan, got 3"):
        narrow.transport(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"X must have 2 dimensions, got shape \(2,\): each row is a point"):
        narrow.transport([0.0, 0.0])
    with pytest.raises(ValueError, match="new points need a kernel of the package other than Delta"):
        st.solve_sample(X, Y, budget=3, kernels=st.Delta()).transport(X)
    with pytest.raises(ValueError, match="need points: solve with solve_sample"):
        st.solve(st.cost_matrix(X, Y), budget=3).transport(X)


def test_columns_of_new_points_are_matched_by_label(tmp_path):
    """In whatever order they come, also after the result was saved; other labels are refused."""
    pd = pytest.importorskip("pandas")
    first, second, new = (pd.DataFrame(each, columns=["u", "v"]) for each in (X, Y, X[:3]))
    result = st.solve_sample(first, second[["v", "u"]], budget=8, kernels=st.RBF(0.1))
    result.save(tmp_path / "plan.json")
    for known in (result, st.load(tmp_path / "plan.json")):
        expected = result.transport(X[:3])
        np.testing.assert_array_equal(known.transport(new[["v", "u"]]), expected)
        np.testing.assert_array_equal(known.inverse_transport(new[["v", "u"]]), result.inverse_transport(X[:3]))
        with pytest.raises(ValueError, match="X must have the same labels as the columns of the points of the plan"):
            known.transport(new.rename(columns={"u": "w"}))
    with pytest.raises(ValueError, match="Y must have 2 features, as the points of the plan, got 1"):
        result.inverse_transport(new[["u"]])
