"""The names of ``sparsetransport.nn``: all there, all explained; and one sentence where PyTorch is missing."""

import inspect
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from sparsetransport import nn


@pytest.mark.parametrize("name", nn.__all__)
def test_every_name_resolves_and_is_explained(name):
    thing = getattr(nn, name)
    assert inspect.getdoc(thing)
    if inspect.isclass(thing):
        assert "__doc__" in vars(thing)
        for method, member in vars(thing).items():
            if inspect.isfunction(member) and not method.startswith("_"):
                assert inspect.getdoc(getattr(thing, method)), f"{name}.{method}"


def test_without_pytorch_it_says_how_to_get_it():
    code = "import sys; sys.modules['torch'] = None; import sparsetransport; import sparsetransport.nn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert done.stderr.strip().endswith("sparsetransport.nn needs PyTorch: pip install 'sparsetransport[torch]'")
