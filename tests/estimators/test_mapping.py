"""`SparseTransport` keeps scikit-learn's contract, and moves points to where a plan with a few links sends them."""

import pickle

import numpy as np
import pytest

import sparsetransport as st

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsetransport.estimators import SparseTransport

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = RNG.normal(size=(30, 3)) + 4.0


@pytest.mark.filterwarnings("ignore:target is not given")  # which these checks never give
@parametrize_with_checks([SparseTransport(5, effort="quick")])
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    return SparseTransport(20).fit(X, target=Y)


def test_the_map_is_that_of_the_plan(fitted):
    """In and out of sample, there and back."""
    plan = st.solve_sample(X, Y, kernels="0.2*median", unbalanced="0.01*auto", budget=20)
    np.testing.assert_array_equal(fitted.result_.plan, plan.plan)
    np.testing.assert_allclose(fitted.transform(X), plan.a_to_b)
    np.testing.assert_allclose(fitted.inverse_transform(Y), plan.b_to_a)
    new = RNG.normal(size=(7, 3))
    np.testing.assert_array_equal(fitted.transform(new), plan.transport(new))
    np.testing.assert_allclose(fitted.transform(new[:1]), fitted.transform(new)[:1])


def test_points_arrive_among_the_target(fitted):
    """At averages of it; without a target, among themselves."""
    with pytest.warns(st.SparseTransportWarning, match="target is not given, .* onto a few of themselves"):
        alone = SparseTransport(20).fit(X, np.arange(40) % 3)
    for model, goal in (fitted, Y), (alone, X):
        moved = model.transform(X)
        assert (moved >= goal.min(0)).all()
        assert (moved <= goal.max(0)).all()
        assert len(model.result_.mass) <= 20


def test_labels_follow_a_rotation():
    """Clusters whose nearest neighbours in the target are of another class, before they are moved."""
    rng = np.random.default_rng(3)
    centres, labels = np.array([[2.0, 0.0], [-1.0, 1.8], [-1.0, -1.8]]), np.repeat([0, 1, 2], 20)
    turn = np.array([[0.57, 0.82], [-0.82, 0.57]])  # by 55 degrees
    source, target = (centres[labels] + 0.3 * rng.normal(size=(60, 2)) for _ in range(2))
    target = target @ turn
    moved = SparseTransport(12).fit_transform(source, target=target)
    assert KNeighborsClassifier(1).fit(moved, labels).score(target, labels) == 1.0


def test_frames_and_pipelines():
    pandas = pytest.importorskip("pandas")
    frame, goal = (pandas.DataFrame(each, columns=["u", "v", "w"]) for each in (X, Y))
    move = SparseTransport(10).set_output(transform="pandas").fit(frame, target=goal)
    moved = move.transform(frame)
    assert list(moved.columns) == ["u", "v", "w"]
    np.testing.assert_array_equal(moved.index, frame.index)
    pipeline = make_pipeline(StandardScaler(), SparseTransport(10), KNeighborsClassifier(1))
    pipeline.fit(X, np.arange(40) % 2, sparsetransport__target=StandardScaler().fit_transform(Y))
    assert pipeline.predict(X).shape == (40,)


def test_copies_move_alike(fitted):
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X))
    again = clone(fitted)
    assert not hasattr(again, "result_")
    assert again.get_params() == fitted.get_params()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kernel": st.Delta()}, r"kernel must be RBF, .* got Delta\(\)"),
        ({"kernel": "wide"}, "kernel must be one of"),
        ({"budget": -3}, "budget must be a positive int"),
        ({"unbalanced": np.inf}, "unbalanced must be finite"),
        ({"unbalanced": 1e-9}, "unbalanced must be large enough for mass to move, got 1e-09"),
    ],
)
@pytest.mark.filterwarnings("ignore:the plan is empty")
def test_parameters_are_checked_by_fit(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SparseTransport(**wrong).fit(X, target=Y)


def test_a_target_with_other_features_is_refused():
    with pytest.raises(ValueError, match="2 features"):
        SparseTransport().fit(X, target=Y[:, :2])


@pytest.mark.parametrize("points", [Y, Y.tolist(), Y[:, 0], X])
def test_points_in_the_place_of_labels_are_refused(points):
    with pytest.raises(ValueError, match=r"y must hold a label for each of the 40 points .* fit\(X, target=Y\)"):
        SparseTransport().fit(X, points)


def test_labels_beside_a_target_are_not_used(fitted):
    again = SparseTransport(20).fit(X, np.eye(3)[np.arange(40) % 3], target=Y)
    assert again.result_.value == fitted.result_.value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Xs": X, "Xt": Y}, r"got Xs, Xt \(Xs is called X here, Xt is called target here: fit\(X, target=Y\)\)"),
        ({"X": X, "target": Y, "yt": None}, "fit takes X, y and target, got yt$"),
        ({"X": X, "goal": Y}, "fit takes X, y and target, got goal$"),
        ({"target": Y}, "X must be the points of the source, got None"),
    ],
)
def test_names_of_pot_are_answered_with_ours(given, message):
    with pytest.raises(TypeError, match=message):
        SparseTransport().fit(**given)
