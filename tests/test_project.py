"""The checks of the Makefile, of the pre-commit hooks and of the hosted tests are the same."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / ".github").exists(), reason="not in the source distribution")


def _yaml(name):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def _recipe(target):
    """The commands of a target of the Makefile, without their folder."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", text, re.MULTILINE)[1].splitlines()
    return [line.strip().removeprefix("$(BIN)/") for line in lines]


def test_pre_commit_hooks_are_make_lint():
    hooks = _yaml(".pre-commit-config.yaml")["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == _recipe("lint")


def test_windows_runs_what_make_test_runs():
    jobs = _yaml(".github/workflows/test.yml")["jobs"]
    _install, *commands = [step["run"] for step in jobs["windows"]["steps"] if "run" in step]
    (tests,) = (line.replace("$(WORKERS)", "auto").removesuffix(" $(ARGS)") for line in _recipe("test"))
    assert commands == [*_recipe("lint"), tests]
    assert any(step.get("run", "").startswith("make test") for step in jobs["unix"]["steps"])


def test_hosted_tests_cover_the_versions_that_the_package_names():
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert _yaml(".github/workflows/test.yml")["jobs"]["unix"]["strategy"]["matrix"]["python"] == named
