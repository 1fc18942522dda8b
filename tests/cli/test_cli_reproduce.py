"""``sparsetransport reproduce``: runs what it is told, writes whole folders, and goes on after a failure."""

import json
import signal
import subprocess
import sys
import time
from types import ModuleType

import pytest
from typer.testing import CliRunner

from sparsetransport import cli, experiments
from sparsetransport.experiments.data_files import MissingDataError
from sparsetransport.experiments.report import Report, Table


def invoke(*arguments):
    return CliRunner().invoke(cli.app, ["reproduce", *map(str, arguments)])


def good(*, data, full, seed, progress):
    progress.step("counting")
    table = Table("Numbers", ["data", "full", "seed"], [[str(data), full, seed]])
    return Report("good", "sparsetransport reproduce good", seed, [table], {"dot.png": b"picture"})


def broken(**options):
    raise RuntimeError("out of luck")


def hungry(**options):
    raise MissingDataError("this needs CIFAR-10: get it from somewhere")


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    """Three experiments that take no time: one fails, one has no data, one works."""
    monkeypatch.chdir(tmp_path)
    for run in (broken, hungry, good):
        module = ModuleType(f"fake_{run.__name__}")
        module.run = run
        monkeypatch.setitem(sys.modules, module.__name__, module)
    names = {run.__name__: f"fake_{run.__name__}" for run in (broken, hungry, good)}
    monkeypatch.setattr(experiments, "EXPERIMENTS", names)
    return tmp_path


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_list_has_a_line_for_every_experiment():
    answer = invoke("--list")
    assert answer.exit_code == 0
    assert [line.split()[0] for line in answer.stdout.splitlines()] == list(experiments.EXPERIMENTS)
    assert all(len(line.split()) > 3 for line in answer.stdout.splitlines()), "each says what it shows"


def test_one_experiment_prints_its_table_and_writes_its_folder(fakes):
    (fakes / "data").mkdir()
    answer = invoke("good", "--data", "data", "--full", "--seed", 3, "--out", "new/results")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert "| data | yes | 3 |" in answer.stdout
    assert "\x1b" not in answer.stdout
    assert files(fakes) == [f"new/results/good/{name}" for name in ("dot.png", "table.json", "table.md")]
    found = json.loads((fakes / "new/results/good/table.json").read_text())
    assert found["tables"][0]["rows"] == [["data", True, 3]]


def test_the_defaults(fakes):
    answer = invoke("good")
    assert answer.exit_code == 0
    assert "| None | no | 0 |" in answer.stdout
    assert files(fakes)[0].startswith("results/good/")


def test_all_goes_on_after_a_failure_and_says_which(fakes):
    answer = invoke("all")
    assert answer.exit_code == 1
    assert answer.stderr.splitlines() == [
        "Error: broken failed: RuntimeError: out of luck (--debug shows where)",
        "Skipped hungry: this needs CIFAR-10: get it from somewhere",
        "Error: 1 of 3 failed: broken",
    ]
    assert "| None | no | 0 |" in answer.stdout
    assert {path.split("/")[1] for path in files(fakes)} == {"good"}
    assert "Traceback" in invoke("all", "--debug").stderr


def test_all_is_content_where_data_is_missing(fakes, monkeypatch):
    monkeypatch.delitem(experiments.EXPERIMENTS, "broken")
    answer = invoke("all")
    assert answer.exit_code == 0
    assert answer.stderr == "Skipped hungry: this needs CIFAR-10: get it from somewhere\n"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "give the name of an experiment: broken, hungry, good or all"),
        (["table-9"], 2, "the experiment must be broken, hungry, good or all, got 'table-9'"),
        (["good", "--data", "gone"], 2, "--data gone is not a folder"),
        (["hungry"], 2, "this needs CIFAR-10: get it from somewhere"),
        (["broken"], 1, "RuntimeError: out of luck (--debug shows where)"),
        (["good", "--out", "file/below"], 2, "cannot open"),
        (["good", "--out", "file"], 2, "cannot open"),
    ],
)
def test_bad_input_ends_in_one_sentence_and_leaves_no_folder(arguments, code, sentence, fakes):
    (fakes / "file").write_text("not a folder")
    answer = invoke(*arguments)
    assert (answer.exit_code, answer.stdout) == (code, "")
    assert answer.stderr.startswith("Error: ")
    assert answer.stderr.count("\n") == 1
    assert sentence in answer.stderr
    assert [path.name for path in fakes.iterdir()] == ["file"]


SLOW = """
import sys, time, types
from pathlib import Path
from sparsetransport import cli, experiments

def run(**options):
    time.sleep(0.5)  # until the thread that hears Ctrl-C waits for this one
    Path("started").touch()
    time.sleep(600)

sys.modules["slow"] = types.SimpleNamespace(run=run)
experiments.EXPERIMENTS = {"slow": "slow"}
cli.main()
"""


def test_ctrl_c_ends_an_experiment(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "reproduce", "all"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "started").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, complaints = process.communicate()
    assert (process.returncode, output) == (130, "")
    assert complaints == "Interrupted: no unfinished file is left behind.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["started"]
