"""`TransportClassifier` keeps scikit-learn's contract, and labels are those of the clusters that points belong to."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import sparsetransport as st

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsetransport.certify import bounds
from sparsetransport.estimators import TransportClassifier, classifier


def _known_to_fail(estimator):
    twice = "a point of weight two has as many links as a point, and two points have twice as many"
    return {
        "check_methods_subset_invariance": "all new points are matched together: a label may depend on the batch",
        "check_sample_weight_equivalence_on_dense_data": twice,
    }


@parametrize_with_checks([TransportClassifier()], expected_failed_checks=_known_to_fail)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def _clusters(seed, counts, *, shift=0.0, distance=1.4):
    """Points around as many random centres as there are counts, moved together; the centres are those of the seed."""
    rng = np.random.default_rng(seed)
    centres = distance * rng.normal(size=(len(counts), 10))
    direction = rng.normal(size=10)
    labels = np.repeat(np.arange(len(counts)), counts)
    rng = np.random.default_rng([seed, *counts])
    return centres[labels] + rng.normal(size=(len(labels), 10)) + shift * direction, labels


@pytest.mark.parametrize("n_links", [1, 3])
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
def test_clusters_far_apart_get_their_labels(metric, n_links):
    """With any metric; and then the nearest neighbour says the same."""
    X, y = _clusters(0, (30, 30, 30), distance=10.0)
    new, truth = _clusters(0, (20, 15, 25), distance=10.0)
    predicted = TransportClassifier(n_links, metric=metric).fit(X, y).predict(new)
    assert (predicted == truth).all()
    assert (predicted == KNeighborsClassifier(1).fit(X, y).predict(new)).all()


def test_a_small_first_weight_is_the_nearest_neighbour():
    """With a labelled side that is free, and one link, every new point takes the nearest labelled one."""
    X, y = _clusters(1, (30, 30, 30))
    new, _ = _clusters(1, (50, 10, 20), shift=1.0)
    loose = TransportClassifier(1, unbalanced=(1e-6, 10.0), reg=0.0).fit(X, y)
    assert (loose.predict(new) == KNeighborsClassifier(1).fit(X, y).predict(new)).all()


def test_a_point_on_its_own_takes_the_nearest_label():
    """It tells nothing of a shift; and the proportions of the labels must not draw it to the middle of them."""
    X, y = _clusters(1, (30, 30, 30))
    new, _ = _clusters(1, (20, 10, 20), shift=1.0)
    model = TransportClassifier(1).fit(X, y)
    alone = np.concatenate([model.predict(point[None]) for point in new])
    assert (alone == KNeighborsClassifier(1).fit(X, y).predict(new)).all()


def _accuracy(make, seeds, **how):
    """Mean share of right labels where a tenth of the labelled points are far out and another has a random label."""
    right = []
    for seed in seeds:
        X, y = _clusters(seed, (50, 50, 50, 50))
        new, truth = _clusters(seed, how["counts"], shift=how["shift"])
        rng = np.random.default_rng(seed)
        far, wrong = rng.random(len(X)) < 0.1, rng.random(len(X)) < 0.1
        X[far] = rng.uniform(-6.0, 6.0, (int(far.sum()), 10))
        y[far | wrong] = rng.integers(4, size=int((far | wrong).sum()))
        right.append(np.mean(make().fit(X, y).predict(new) == truth))
    return float(np.mean(right))


def test_clusters_that_moved_are_matched_as_a_whole():
    """Moved together, in other proportions, with outliers and wrong labels: better than as many nearest neighbours."""
    how = {"counts": (80, 50, 40, 30), "shift": 1.5}
    ours = _accuracy(TransportClassifier, range(8), **how)
    neighbours = _accuracy(lambda: KNeighborsClassifier(3), range(8), **how)
    assert ours > neighbours + 0.03


def test_a_tight_labelled_side_keeps_its_proportions_and_a_loose_one_does_not():
    """Why the default is loose: a class with a quarter of the labels may have more than half of the new points."""
    how = {"counts": (110, 50, 30, 10), "shift": 0.0}
    ours = _accuracy(TransportClassifier, range(4), **how)
    tight = _accuracy(lambda: TransportClassifier(unbalanced=(100.0, 10.0)), range(4), **how)
    assert ours > tight + 0.1
    assert ours > _accuracy(lambda: KNeighborsClassifier(1), range(4), **how)


def test_probabilities_are_shares_of_mass():
    """Against the dense plan; with at most as many links as asked for, and every new point served."""
    X, y = _clusters(2, (30, 30, 30))
    new, _ = _clusters(2, (10, 20, 10), shift=0.5)
    model = TransportClassifier(4).fit(X, y)
    plan, shares = model.transport(new), model.predict_proba(new)
    assert plan.plan.shape == (90, 40)
    assert np.bincount(plan.cols, minlength=40).max() <= 4
    assert np.allclose(plan.marginal_b, 1.0, atol=0.1)
    for label in range(3):
        assert np.allclose(shares[:, label], plan.plan[y == label].sum(axis=0) / plan.plan.sum(axis=0))
    assert np.allclose(shares.sum(axis=1), 1.0)


def test_the_plan_solves_the_problem_of_the_docstring():
    """Costs, masses and weights written out by hand give the same plan, whatever the units."""
    X, y = _clusters(3, (20, 20))
    new, _ = _clusters(3, (15, 10))
    C = st.cost_matrix(X, new)
    by_hand = st.solve(
        C,
        np.full(40, 25 / 40),
        np.ones(25),
        kernels=(st.RBF("median").gram(X), st.Delta()),
        unbalanced=(0.5 * np.median(C) * 24 / 25**2, 20.0 * np.median(C)),
        reg=0.3 * np.median(C),
        budget=st.PerColumn(2),
        polish=False,
    )
    model = TransportClassifier(2, unbalanced=(0.5, 20.0), reg=0.3)
    assert np.allclose(model.fit(X, y).transport(new).plan, by_hand.plan)
    assert np.allclose(model.fit(1e3 * X, y).transport(1e3 * new).plan, by_hand.plan)


def test_points_that_get_no_mass_take_the_nearest_label():
    """An outlier among the new points is not worth its cost, and does not disturb the others."""
    X, y = _clusters(4, (20, 20), distance=5.0)
    new, truth = _clusters(4, (5, 5), distance=5.0)
    new[0] = X[y == 1].mean(axis=0) + 100.0 * (X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    model = TransportClassifier().fit(X, y)
    assert model.transport(new).marginal_b[0] == 0.0
    assert model.predict_proba(new)[0].tolist() == [0.0, 1.0]
    assert (model.predict(new)[1:] == truth[1:]).all()


def test_the_order_of_points_does_not_matter():
    X, y = _clusters(5, (25, 25, 25))
    new, _ = _clusters(5, (20, 10, 10), shift=0.5)
    rng = np.random.default_rng(0)
    of_labelled, of_new = rng.permutation(len(X)), rng.permutation(len(new))
    shares = TransportClassifier().fit(X, y).predict_proba(new)
    shuffled = TransportClassifier().fit(X[of_labelled], y[of_labelled]).predict_proba(new[of_new])
    assert np.allclose(shuffled, shares[of_new])


def test_labels_may_be_strings_and_of_one_class():
    X, y = _clusters(6, (20, 20), distance=10.0)
    new, truth = _clusters(6, (5, 9), distance=10.0)
    names = np.array(["T cell", "B cell"])
    model = TransportClassifier().fit(X, names[y])
    assert model.classes_.tolist() == ["B cell", "T cell"]
    assert (model.predict(new) == names[truth]).all()
    assert model.score(new, names[truth]) == 1.0
    alone = TransportClassifier().fit(X, ["B cell"] * 40)
    assert set(alone.predict(new)) == {"B cell"}
    assert (alone.predict_proba(new) == 1.0).all()


def test_points_that_are_all_the_same():
    """Their median cost, the unit of the weights, is zero."""
    model = TransportClassifier().fit(np.ones((4, 2)), [0, 0, 0, 1])
    assert model.predict(np.ones((3, 2))).tolist() == [0, 0, 0]


def test_in_pipelines_and_searches():
    X, y = _clusters(7, (30, 30, 30), distance=10.0)
    X *= 10.0 ** np.arange(-5, 5)
    pipeline = make_pipeline(StandardScaler(), TransportClassifier())
    grid = {"transportclassifier__n_links": [1, 2], "transportclassifier__unbalanced": [(0.1, 10.0), (1.0, 10.0)]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ == 1.0
    assert search.best_params_["transportclassifier__n_links"] in (1, 2)


def test_copies_predict_the_same():
    X, y = _clusters(8, (20, 20))
    model = TransportClassifier(2, kernel=st.IMQ(2.0), unbalanced=(0.3, 5.0)).fit(X, y)
    again = clone(model)
    assert not hasattr(again, "classes_")
    assert again.get_params() == model.get_params()
    expected = model.predict_proba(X + 0.5)
    assert np.array_equal(again.fit(X, y).predict_proba(X + 0.5), expected)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X + 0.5), expected)
    X += 1.0  # the labelled points were copied
    assert np.array_equal(model.predict_proba(X - 0.5), expected)


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    X, y = _clusters(9, (20, 20), distance=10.0)
    names = [f"gene {k}" for k in range(10)]
    model = TransportClassifier().fit(pandas.DataFrame(X, columns=names), pandas.Series(y))
    assert model.feature_names_in_.tolist() == names
    assert (model.predict(pandas.DataFrame(X, columns=names)) == y).all()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pandas.DataFrame(X, columns=names[::-1]))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_links": 0}, "n_links must be a positive int, got 0"),
        ({"n_links": 2.0}, "n_links must be a positive int, got 2.0"),
        ({"metric": "manhattan"}, "metric must be one of .*, got 'manhattan'"),
        ({"kernel": "wide"}, "kernel must be one of .*, got 'wide'"),
        ({"kernel": np.eye(4)}, "kernel must be one of"),
        ({"unbalanced": (1.0, -1.0)}, "unbalanced must be a positive number, got -1.0"),
        ({"unbalanced": "auto"}, "unbalanced must be a positive number or a pair of them, got 'auto'"),
        ({"unbalanced": (1.0, 2.0, 3.0)}, "unbalanced must be one value for both sides or a pair, got 3"),
        ({"reg": -1.0}, "reg must be a number that is not negative, got -1.0"),
    ],
)
def test_parameters_are_checked_by_fit(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        TransportClassifier(**wrong).fit(np.eye(4), [0, 0, 1, 1])


def test_sparse_points_are_refused():
    with pytest.raises(TypeError, match="toarray"):
        TransportClassifier().fit(scipy.sparse.eye_array(4), [0, 0, 1, 1])
    with pytest.raises(TypeError, match="toarray"):
        TransportClassifier().fit(np.eye(4), [0, 0, 1, 1]).predict(scipy.sparse.eye_array(4))


def test_without_scikit_learn_one_sentence_says_how_to_get_it():
    """And the rest of the package does without."""
    code = "import sys; sys.modules['sklearn'] = None; import sparsetransport; import sparsetransport.estimators"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "During handling" not in done.stderr
    message = "sparsetransport.estimators needs scikit-learn 1.6 or newer: pip install 'sparsetransport[sklearn]'"
    assert done.stderr.splitlines()[-1] == f"ImportError: {message}"


def test_many_links_begin_with_what_the_dual_asks_for(monkeypatch):
    """Which is nearly the best plan, and never a worse one than is built link by link."""
    (X, y), (new, _) = _clusters(0, [20, 20, 20, 20]), _clusters(0, [30, 20, 20, 10], shift=1.0)
    built = TransportClassifier(3).fit(X, y).transport(new)
    monkeypatch.setattr(classifier, "_MANY", 0)
    found = TransportClassifier(3).fit(X, y).transport(new)
    assert found.value <= built.value
    assert found.certify().relative_gap < 1e-4


def test_without_a_dual_links_are_built_one_by_one(monkeypatch):
    """Beyond the size up to which the dual is maximised, what it would ask for is of no use."""
    (X, y), (new, _) = _clusters(0, [20, 20, 20, 20]), _clusters(0, [30, 20, 20, 10], shift=1.0)
    built = TransportClassifier(3).fit(X, y).transport(new)
    monkeypatch.setattr(classifier, "_MANY", 0)
    monkeypatch.setattr(bounds, "ASCEND_UP_TO", 10)
    assert TransportClassifier(3).fit(X, y).transport(new).value == built.value


def test_more_links_than_labelled_points_are_all_of_these(recwarn):
    (X, y), (new, _) = _clusters(0, [4, 4]), _clusters(0, [5, 5], shift=1.0)
    many, all_of_them = (TransportClassifier(links).fit(X, y).transport(new) for links in (1000, 8))
    assert many.value == all_of_them.value
    assert not recwarn.list


def test_weights_of_labelled_points():
    """Those without any are left out, and the others keep their shares of the mass."""
    X, y = _clusters(0, [20, 20])
    new, _ = _clusters(0, [5, 35])
    few = np.where(y == 0, 1.0, 7.0)  # the proportions of the new points
    weighted = TransportClassifier(unbalanced=(100.0, 10.0)).fit(X, y, sample_weight=few)
    equal = TransportClassifier(unbalanced=(100.0, 10.0)).fit(X, y)
    shares = [np.bincount(y[each.transport(new).rows], each.transport(new).mass, 2) / 40 for each in (weighted, equal)]
    assert shares[0][0] == pytest.approx(1 / 8, abs=0.05)
    assert shares[1][0] > 0.25
    part = TransportClassifier().fit(X, y, sample_weight=np.arange(40) % 2)
    np.testing.assert_array_equal(
        part.predict_proba(new), TransportClassifier().fit(X[1::2], y[1::2]).predict_proba(new)
    )
    with pytest.raises(ValueError, match=r"(?i)sample.weight.*zero"):
        TransportClassifier().fit(X, y, sample_weight=np.zeros(40))
