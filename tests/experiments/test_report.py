"""Reports: what is shown, and files that appear whole or not at all."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from sparsetransport import experiments
from sparsetransport.experiments.report import Quiet, Report, Table, command


@pytest.fixture
def report():
    table = Table("Numbers", ["name", "value", "gap"], [["a|b", 1.23456789, np.float64(2e-7)], ["c", 2, None]])
    table.formats["gap"] = ".0e"
    made = Report("numbers", command("numbers", seed=3), 3, [table], times={"all": 1.5})
    made.claim("one is one", True)
    made.claim("one is two", False)
    made.notes.append("A note.")
    return made


def test_markdown_has_everything(report):
    text = report.markdown()
    assert r"| a\|b | 1.23457 | 2e-07 |" in text
    assert "| c | 2 |  |" in text
    assert "|---|--:|--:|" in text
    assert "- holds: one is one" in text
    assert "- DOES NOT HOLD: one is two" in text
    assert "A note." in text
    assert "sparsetransport reproduce numbers --seed 3" in text


def test_the_terminal_shows_the_same(report):
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(report.rich())
    text = console.export_text()
    for part in ("Numbers", "a|b", "1.23457", "2e-07", "DOES NOT HOLD: one is two", "A note."):
        assert part in text


def test_json_has_raw_values_versions_seed_and_times(report, tmp_path):
    report.tables[0].rows.append(["d", float("nan"), np.int64(4)])
    report.write(tmp_path)
    found = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert found["tables"][0]["rows"] == [["a|b", 1.23456789, 2e-7], ["c", 2, None], ["d", None, 4]]
    assert found["seed"] == 3
    assert found["seconds"] == {"all": 1.5}
    assert {"sparsetransport", "numpy", "numba", "python"} <= set(found["versions"])
    assert found["claims"][1] == {"text": "one is two", "holds": False}


def test_pictures_are_figures_bytes_or_functions(report, tmp_path):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot([0, 1])
    report.figures = {
        "figure.png": figure,
        "bytes.gif": b"GIF89a",
        "function.txt": lambda path: path.write_text("drawn", encoding="utf-8"),
    }
    written = report.write(tmp_path / "deep" / "folder")
    assert [path.name for path in written] == ["table.md", "table.json", *report.figures]
    assert written[2].read_bytes().startswith(b"\x89PNG")
    assert written[3].read_bytes() == b"GIF89a"
    assert written[4].read_text(encoding="utf-8") == "drawn"
    assert "![figure](figure.png)" in written[0].read_text(encoding="utf-8")


def test_a_picture_that_fails_leaves_no_file_and_keeps_the_old_one(report, tmp_path):
    (tmp_path / "bad.png").write_bytes(b"old")

    def fail(path):
        path.write_bytes(b"half")
        raise RuntimeError("out of ink")

    report.figures = {"bad.png": fail}
    with pytest.raises(RuntimeError, match="out of ink"):
        report.write(tmp_path)
    assert (tmp_path / "bad.png").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.png", "table.json", "table.md"]


def test_a_picture_of_another_kind_is_refused_before_anything_is_written(report, tmp_path):
    report.figures = {"odd.png": 3}
    with pytest.raises(TypeError, match=r"the figure odd.png must be a Figure"):
        report.write(tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_command_repeats_the_options():
    assert command("timing") == "sparsetransport reproduce timing"
    assert command("timing", full=True, seed=2) == "sparsetransport reproduce timing --full --seed 2"


def test_every_experiment_has_a_summary_and_unknown_ones_are_named():
    assert set(experiments.EXPERIMENTS) == set(experiments.SUMMARIES)
    assert Quiet().step("anything") is None
    with pytest.raises(ValueError, match=r"must be one of 'duality-gap'.*got 'gap'"):
        experiments.load("gap")
