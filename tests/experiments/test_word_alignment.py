"""Scores are those of the definition, the data is read as it is, and every method goes through the same hands."""

import os
from pathlib import Path

import numpy as np
import pytest
from sentences import PAIRS, gold, letters

from sparsetransport.experiments import Quiet, multimwa
from sparsetransport.experiments import word_alignment as experiment
from sparsetransport.experiments.alignment_methods import METHODS, OURS, TRIALS, Method, Pair
from sparsetransport.experiments.alignment_scores import bootstrap, per_pair, precision_recall, summary
from sparsetransport.experiments.data_files import MissingDataError


def links(*pairs):
    return frozenset(pairs)


def test_scores_by_hand():
    """Null words are those without a link; with links and null words together, the total."""
    wanted = [links((0, 0), (1, 1)), links((0, 0), (1, 0)), links((0, 0), (1, 1))]
    given = [links((0, 0), (1, 1)), links((0, 0)), links((0, 1), (1, 0))]
    rows = per_pair(wanted, given, [(3, 2), (2, 1), (2, 2)])
    # Right to the last link: word 2 of the first sentence is the only null word.
    assert rows[0].tolist() == [1.0] * 6
    # Nobody should be null, and one word is: precision 0, recall 0; total: 1 of 2 given, 1 of 2 wanted.
    assert rows[1].tolist() == [0.0, 0.0, 0.0, 0.5, 0.5, 0.0]
    # No null words on either side: right; both links wrong.
    assert rows[2].tolist() == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    found = summary(rows)
    assert found.null_accuracy == pytest.approx(100 * 2 / 3)
    assert found.null_f1 == pytest.approx(100 * 2 / 3)
    assert found.total_accuracy == pytest.approx(100 / 3)
    assert found.total_f1 == pytest.approx(100 * 0.5)
    assert precision_recall(rows) == pytest.approx((200 / 3, 200 / 3, 50.0, 50.0))


def test_nothing_given_where_something_is_wanted():
    rows = per_pair([links((0, 0))], [links()], [(1, 1)])
    # Two null words given, none wanted.
    assert rows[0].tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    rows = per_pair([links()], [links((0, 0))], [(1, 1)])
    assert rows[0].tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert per_pair([links()], [links()], [(0, 0)]).tolist() == [[1.0] * 6]


def test_f1_is_that_of_the_means_not_the_mean_of_f1():
    rows = np.array([[1.0, 0.2, 0, 1.0, 0.2, 0], [0.2, 1.0, 0, 0.2, 1.0, 0]])
    assert summary(rows).null_f1 == pytest.approx(60.0)
    assert summary(rows).total_f1 == pytest.approx(60.0)


def test_the_bootstrap_is_paired():
    """Two methods that differ by the same on every pair differ by that in every draw."""
    rng = np.random.default_rng(0)
    other = (rng.random((200, 6)) < 0.5).astype(float)
    other[:, 2] = other[:, 5] = 0.0
    better = other.copy()
    better[:, 5] = 1.0
    low, high = bootstrap(better, other, draws=50, rng=rng)
    assert (low[2], high[2]) == pytest.approx((100.0, 100.0))
    assert low[0] == high[0] == low[1] == high[1] == low[3] == high[3] == 0.0
    half = other.copy()
    half[::2, 5] = 1.0
    low, high = bootstrap(half, other, draws=2000, rng=rng)
    assert 40.0 < low[2] < 45.0  # 50 less 1.96 · 50 / √200
    assert 55.0 < high[2] < 60.0


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mwa")
    lines = ["\t".join([str(k), a.upper(), "x", b, "x", "1", "1", c, "", ""]) for k, (a, b, c) in enumerate(PAIRS)]
    (folder / "deep").mkdir()
    for split in multimwa.SPLITS:
        (folder / "deep" / f"wiki-{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_the_data_is_read_in_lower_case_with_its_links(data):
    examples = multimwa.load(data, "dev")
    assert len(examples) == 10
    assert examples[0].first == PAIRS[0][0].split()
    assert examples[0].links == gold(PAIRS[0][2])
    assert examples[0].shape == (5, 7)


def test_missing_and_broken_data_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("SPARSETRANSPORT_DATA", raising=False)
    with pytest.raises(MissingDataError, match="needs MultiMWA-Wiki"):
        multimwa.load(None, "dev")
    with pytest.raises(MissingDataError, match=r"wiki-dev.tsv of MultiMWA-Wiki is not under"):
        multimwa.load(tmp_path, "dev")
    path = tmp_path / "wiki-dev.tsv"
    path.write_text("0\ta\tx\tb\n")
    with pytest.raises(ValueError, match=r"wiki-dev.tsv, line 1: must have at least 8 columns, got 4"):
        multimwa.load(tmp_path, "dev")
    path.write_text("\n".join(["0\ta\tx\tb\tx\t1\t1\t0-0", "0\ta\tx\tb\tx\t1\t1\t0-1"]))
    with pytest.raises(ValueError, match=r"line 2: '0-1' is not a link of 1 and 1 words"):
        multimwa.load(tmp_path, "dev")


def test_every_method_has_as_many_settings():
    assert {len(method.trials) for method in METHODS} == {TRIALS}
    assert METHODS[-1] is OURS


@pytest.fixture(scope="module")
def split():
    vectors = [(letters(first.split()), letters(second.split())) for first, second, _ in PAIRS]
    centre = np.concatenate([side for both in vectors for side in both]).mean(axis=0)
    pairs = [Pair(first, second, centre) for first, second in vectors]
    shapes = [(len(first), len(second)) for first, second in vectors]
    return experiment.Split(pairs, [gold(text) for *_, text in PAIRS], shapes)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_aligns_most_words_of_the_ten_pairs(split, method):
    pytest.importorskip("ot")
    short = Method(method.name, method.trials[::4], method.plan)
    _, _, scores = experiment.tune(split, short, Quiet())
    assert scores.total_f1 > 80.0


def test_tuning_takes_the_best_setting(split):
    """Of a setting that is right everywhere and one that is wrong everywhere, the first, wherever it stands."""
    right = {pair: text for pair, (*_, text) in zip(map(id, split.pairs), PAIRS, strict=True)}

    def plan(pair, trial):
        found = np.zeros(pair.between.shape)
        for i, j in gold(right[id(pair)]):
            found[(i, j) if trial["right"] else (i, -1)] = 1.0
        return found

    for trials in ([{"right": True}, {"right": False}], [{"right": False}, {"right": True}]):
        trial, _, scores = experiment.tune(split, Method("fake", trials, plan), Quiet())
        assert trial == {"right": True}
        assert scores == (100.0, 100.0, 100.0, 100.0)


def test_the_whole_experiment_on_ten_pairs(data, monkeypatch, tmp_path):
    pytest.importorskip("ot")
    pytest.importorskip("matplotlib")
    few = [Method(method.name, method.trials[:1], method.plan) for method in METHODS]
    real = experiment.WordAligner
    monkeypatch.setattr(experiment, "METHODS", few)
    monkeypatch.setattr(experiment, "WordAligner", lambda name, cache: real(letters))
    monkeypatch.setattr(experiment, "is_installed", lambda name: False)
    monkeypatch.setattr(experiment, "_REPEATS", 1)
    report = experiment.run(data=data, full=True, seed=0, progress=Quiet())
    scores, differences, precision, chosen, parts = report.tables
    assert [row[0] for row in scores.rows] == [method.name for method in METHODS]
    assert all(row[5] > 0.0 for row in scores.rows), "every method is timed"
    assert len(differences.rows) == len(METHODS) - 1
    assert len(precision.rows) == len(chosen.rows) == len(METHODS)
    assert parts.rows[3][1:] == scores.rows[-1][1:5], "all parts together are ours"
    assert len(report.claims) == 4
    names = [path.name for path in report.write(tmp_path)]
    assert names == ["table.md", "table.json", "differences-minilm.png"]


@pytest.mark.long
@pytest.mark.skipif("SPARSETRANSPORT_DATA" not in os.environ, reason="needs $SPARSETRANSPORT_DATA with MultiMWA-Wiki")
def test_ours_is_first_on_the_real_data():
    """Takes half an hour and all-mpnet-base-v2 or all-MiniLM-L6-v2."""
    pytest.importorskip("transformers")
    data = Path(os.environ["SPARSETRANSPORT_DATA"])
    report = experiment.run(data=data, full=False, seed=0, progress=Quiet())
    first, above, _, default = report.claims
    assert first.holds, first.text
    assert above.holds, above.text
    assert default.holds, default.text
