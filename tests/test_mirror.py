"""Tests mirror the source: every module of the core has its test file."""

from pathlib import Path

import pytest

import sparsetransport

SOURCE, TESTS = Path(sparsetransport.__file__).parent, Path(__file__).parent
APART = {"apps", "nn", "cli", "experiments", "plotting", "baselines"}
"""Folders that are tested by what they do, not file by file."""


def modules():
    """The modules of the core, relative to the package."""
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE)
        if module.parts[0] not in APART and module.name not in ("__init__.py", "__main__.py"):
            yield module


def test_the_core_is_found():
    assert len(list(modules())) > 40


@pytest.mark.parametrize("module", list(map(str, modules())))
def test_every_module_has_its_tests(module):
    """At the same path, ``test_`` before the name, which may lose a leading underscore; and there are tests in it."""
    module = Path(module)
    names = {f"test_{module.stem}.py", f"test_{module.stem.lstrip('_')}.py"}
    found = [TESTS / module.parent / name for name in names if (TESTS / module.parent / name).exists()]
    assert found, f"tests/{module.parent / sorted(names)[-1]} is missing"
    assert "def test_" in found[0].read_text(encoding="utf-8")
