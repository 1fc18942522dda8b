"""A small version of the timing experiment from end to end."""

import numpy as np
import pytest

from sparsetransport.experiments import data_files, timing


@pytest.fixture(scope="module")
def report():
    return timing.run(data=None, full=False, seed=0, stand_in=True, size=20, max_iter=300)


def test_both_courses_fall_and_ours_ends_lower(report):
    """The objective falls along the literal run and ours; ours ends no higher. No limit on the clock."""
    table = report.tables[0]
    courses = {}
    for solver, *point in table.rows:
        courses.setdefault(solver, []).append(point)
    assert set(courses) == {"literal", "ours"}
    for course in courses.values():
        steps, _, seconds, objective, above = np.array(course, float).T
        assert (np.diff(steps) > 0).all()
        assert (np.diff(seconds) >= 0.0).all()
        assert (np.diff(objective) < 1e-9).all()
        assert (above >= 0.0).all()
        assert objective[0] > 1.05 * objective[-1]
    assert courses["ours"][-1][3] <= courses["literal"][-1][3] + 1e-9
    assert courses["literal"][-1][0] == 80  # four entries in each of 20 columns
    assert report.claims[0].holds


def test_the_report_is_written_with_a_picture(report, tmp_path):
    paths = report.write(tmp_path)
    assert [path.name for path in paths] == ["table.md", "table.json", "objective.png"]
    assert paths[2].stat().st_size > 10_000


def test_without_cifar_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.delenv("SPARSETRANSPORT_DATA", raising=False)
    with pytest.raises(data_files.MissingDataError, match="this needs CIFAR-10"):
        timing.run(data=None)
