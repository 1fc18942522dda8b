"""Compiled functions on disk: when they are out of date, and what happens where nothing can be kept."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sparsetransport
from sparsetransport._numba import disk_cache
from sparsetransport.engine.grow import grow

ROOT = Path(sparsetransport.__file__).parent
TWO_FUNCTIONS = """
import numpy as np
from sparsetransport.geometry._entries import summarise
from sparsetransport.inner.apgd import kkt_residual
print(summarise(np.ones((2, 2)))[0], kkt_residual(np.ones(2), np.ones(2)), kkt_residual.stats.cache_path is None)
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the sources."""
    return shutil.copytree(ROOT, tmp_path / "sparsetransport", ignore=shutil.ignore_patterns("__pycache__"))


def python(script, folder):
    """Run it in a new process with an empty cache, or the one that is there."""
    environment = {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("cli/solve.py", False),
        ("api.py", False),
        ("engine/grow.py", True),
        ("plan.py", True),
        ("_numba/codes.py", True),
    ],
)
def test_only_sources_of_compiled_functions_count(package, file, changes):
    """Editing the command line must not cost half a minute; editing what is compiled must not go unseen."""
    before = disk_cache.stamp.__wrapped__(package)
    (package / file).touch()
    assert disk_cache.stamp.__wrapped__(package) == before
    with (package / file).open("a", encoding="utf-8") as source:
        source.write("# a comment\n")
    assert (disk_cache.stamp.__wrapped__(package) != before) == changes


def test_constants_of_compiled_functions_count():
    """Constants are compiled in: they come from files that count."""
    for path in ROOT.rglob("*.py"):
        source = path.read_bytes()
        tree = ast.parse(source)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.decorator_list]
        used = {node.id for each in functions for node in ast.walk(each) if isinstance(node, ast.Name)}
        for node in tree.body if disk_cache._USES_US.search(source) else []:
            if isinstance(node, ast.ImportFrom) and node.level and "_numba" not in (node.module or ""):
                constants = [name.name for name in node.names if name.name.isupper() and name.name in used]
                origin = path.parents[node.level - 1] / f"{(node.module or '').replace('.', '/')}.py"
                assert not constants or disk_cache._USES_US.search(origin.read_bytes()), (path, constants)


def test_the_stamp_is_in_use():
    disk_cache.keep_on_disk(grow)
    assert grow._cache._cache_file._source_stamp == disk_cache.stamp()


def test_the_log_says_once_that_functions_are_compiled(tmp_path):
    """A first solve that takes half a minute should say why; one that loads from disk has nothing to say."""
    first, second = python(TWO_FUNCTIONS, tmp_path), python(TWO_FUNCTIONS, tmp_path)
    assert first.stderr.count("\n") == first.stderr.count("compiling the functions that this call needs") == 1
    assert "'sparsetransport compile'" in first.stderr
    assert second.stderr == ""
    assert first.stdout == second.stdout == "4 1.0 False\n"


NO_FOLDER = "import numba.core.caching\nnumba.core.caching.CacheImpl._locator_classes = []"
FULL_DISK = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
NO_CACHE_CLASS = """
import numba.core.caching as caching
kept = caching.FunctionCache
del caching.FunctionCache
import sparsetransport
caching.FunctionCache = kept
"""
NO_STAMP = """
import numba.core.caching
numba.core.caching.IndexDataCacheFile._source_stamp = property(fset=lambda self, value: None)
"""


@pytest.mark.parametrize("trouble", [NO_FOLDER, FULL_DISK, NO_CACHE_CLASS, NO_STAMP])
def test_what_cannot_be_kept_is_compiled_in_memory(tmp_path, trouble):
    """No folder, no room, or a Numba with other private names: results are the same, and the log says what to do."""
    done = python(trouble + TWO_FUNCTIONS, tmp_path)
    assert done.stdout.startswith("4 1.0")
    assert done.stderr.count("set NUMBA_CACHE_DIR") == 1
    assert list(tmp_path.rglob("*.nbc")) == []


def test_damaged_files_are_compiled_again(tmp_path):
    python(TWO_FUNCTIONS, tmp_path)
    for path in tmp_path.rglob("*.nbc"):
        path.write_bytes(b"")
    assert python(TWO_FUNCTIONS, tmp_path).stdout == "4 1.0 False\n"
    assert python(TWO_FUNCTIONS, tmp_path).stderr == ""
