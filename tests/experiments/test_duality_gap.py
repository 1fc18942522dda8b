"""A small version of the duality-gap experiment from end to end, and the orderings that the paper claims."""

import json

import numpy as np
import pytest

from sparsetransport.experiments import data_files, duality_gap, images


class Steps(list):
    def step(self, text):
        self.append(text)


@pytest.fixture(scope="module")
def steps():
    return Steps()


@pytest.fixture(scope="module")
def report(steps):
    return duality_gap.run(data=None, full=False, seed=0, progress=steps, stand_in=True, size=20, max_iter=100)


def columns(table, *names):
    return [np.array([row[table.columns.index(name)] for row in table.rows], float) for name in names]


def test_all_rows_of_the_paper_are_there(report, steps):
    settings = [tuple(row[:3]) for row in report.tables[0].rows]
    assert settings == list(duality_gap.PAPER)
    assert len(settings) == len(set(settings)) == 18
    assert sum("of 18" in step for step in steps) == 18
    assert [row[:3] for row in report.tables[1].rows] == [row[:3] for row in report.tables[2].rows]


def test_ours_has_the_lowest_objective_and_the_smallest_gap(report):
    """Ours ≤ SCOT's solver and ≤ Algorithm 2, in objective and gap, row by row; and SCOT's is not optimal."""
    literal, scot, end, ours = columns(report.tables[0], "literal", "SCOT", "to the end", "ours")
    assert (ours <= np.minimum(np.minimum(literal, scot), end) * (1.0 + 1e-9)).all()
    assert (scot > ours * 1.001).any()
    literal, scot, end, ours = columns(report.tables[1], "literal", "SCOT", "to the end", "ours")
    assert (ours <= np.minimum(np.minimum(literal, scot), end) + 1e-9).all()
    assert (np.minimum(literal, np.minimum(scot, end)) >= -1e-9).all()


def test_ours_is_certified(report):
    (relative,) = columns(report.tables[1], "ours, relative")
    assert relative.max() <= 1e-2  # the paper's size reaches 1e-4
    assert (relative <= 1e-4).sum() >= 9


def test_the_claims_agree_with_the_table(report):
    claims = {claim.text: claim.holds for claim in report.claims}
    assert claims["ours has the lower objective than SCOT's solver in every row"]
    assert claims["and the smaller gap"]
    assert not any("paper" in text for text in claims), "synthetic images are not compared with the paper"


def test_the_report_is_written_with_a_picture(report, tmp_path):
    paths = report.write(tmp_path)
    assert [path.name for path in paths] == ["table.md", "table.json", "gap.png"]
    assert paths[2].stat().st_size > 10_000
    found = json.loads(paths[1].read_text(encoding="utf-8"))
    assert found["command"] == "sparsetransport reproduce duality-gap"
    assert len(found["tables"][0]["rows"]) == 18


def test_the_bandwidth_is_the_published_one():
    """σ² is half the median of the unsquared distances, with the zeros of the diagonal in it."""
    points = np.array([[0.0], [1.0], [4.0]])  # distances: three zeros, 1, 1, 3, 3, 4, 4; the median is 1
    np.testing.assert_allclose(images.published_gram(points, "RBF")[0, 1], np.exp(-1.0))
    np.testing.assert_allclose(images.published_gram(points, "IMQ")[0, 2], (0.5 + 16.0) ** -0.5)
    np.testing.assert_allclose(images.published_gram(points, "IMQ-v2")[1, 2], (10.0 / 0.5) ** -0.5)


def test_pixels_are_scaled_and_split_in_order():
    batches = images.stand_in(3)
    assert batches.x.shape == batches.y.shape == (3, 3072)
    both = np.concatenate(batches)
    assert both.min() >= -1.0
    assert both.max() <= 1.0
    assert both.min() < 0.0 < both.max()


def test_without_cifar_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.delenv("SPARSETRANSPORT_DATA", raising=False)
    with pytest.raises(data_files.MissingDataError, match="this needs CIFAR-10"):
        duality_gap.run(data=None)
