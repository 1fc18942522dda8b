"""The shell examples of docs/cli.md run, top to bottom, and print what is written below them."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparsetransport.cli import design, outputs, solve, writing
from sparsetransport.cli.table import READABLE

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
def test_the_examples_print_what_the_page_says(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, code in (("python", ""), ("sparsetransport", " -c 'from sparsetransport.cli import main; main()'")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{code} "$@"\n')
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    work = tmp_path / "work"
    work.mkdir()
    fences = [(fence[1], fence[2]) for fence in FENCE.finditer(PAGE.read_text(encoding="utf-8"))]
    ran = 0
    for (kind, code), following in zip(fences, [*fences[1:], ("", "")], strict=True):
        if kind not in ("sh", "python"):
            continue
        command = ["sh", "-e", "-c", code] if kind == "sh" else [sys.executable, "-c", code]
        done = subprocess.run(
            command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert done.returncode == 0, done.stdout
        if kind == "sh":
            ran += 1
            assert following[0] == "text", "every example says what it prints"
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            printed = re.sub(r"^compiling the functions that this call needs.*\n", "", done.stdout, flags=re.MULTILINE)
            assert doctest.OutputChecker().check_output(following[1], printed, flags), printed
    assert ran >= 5


def test_the_page_names_every_option_and_ending():
    import inspect

    page = PAGE.read_text(encoding="utf-8")
    for name in [*inspect.signature(solve.solve).parameters, *inspect.signature(design.design).parameters]:
        if name not in ("source", "target"):
            assert f"--{name.replace('_', '-')}" in page
    for ending in (*READABLE, *writing.ENDINGS, *outputs.PICTURES):
        assert f"`{ending}`" in page
