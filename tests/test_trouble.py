"""Processes in trouble: nowhere to write, a disk that fills up, Ctrl-C in the first solve, workers that are killed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dying import DiesOnce

import sparsetransport as st

ROOT = Path(st.__file__).parent
SMALL = """
import numpy as np
from sparsetransport.geometry._entries import summarise
print(summarise(np.ones((2, 2)))[0], flush=True)
"""
SOLVE = """
import numpy as np, sparsetransport as st
print(st.solve(np.arange(12.0).reshape(3, 4), budget=3, unbalanced=50.0).value.hex(), flush=True)
"""
FIRST_SOLVE = """
import os, signal, threading, time
import numpy as np, sparsetransport as st

timer = threading.Timer({delay}, os.kill, [os.getpid(), signal.SIGINT])
try:
    timer.start()
    st.solve(np.arange(12.0).reshape(3, 4), budget=3, unbalanced=50.0)
    print("finished", flush=True)
    timer.join()
    time.sleep(1.0)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def python(script, *, timeout=300, **environment):
    """What a new process says, with some variables of its environment changed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=timeout)


@pytest.fixture
def unwritable(tmp_path):
    """A copy of the package and a home that nobody, not even root, can write to: files are where folders would be."""
    package = shutil.copytree(ROOT, tmp_path / "sparsetransport", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *filter(Path.is_dir, package.rglob("*"))]:
        (folder / "__pycache__").touch()
    nowhere = tmp_path / "nowhere"
    nowhere.touch()
    paths = [str(tmp_path), *(path for path in sys.path if Path(path).resolve() != ROOT.parent)]
    home = {name: str(nowhere / "home") for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE")}
    return {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": "", "TMPDIR": str(tmp_path), **home}


def files(folder):
    return {path for path in folder.rglob("*") if path.suffix in (".nbi", ".nbc", ".pyc")}


def test_a_package_and_a_home_that_cannot_be_written_to(unwritable, tmp_path):
    """Functions are compiled in memory, with one line in the log, and no file appears."""
    done = python("import sparsetransport; print(sparsetransport.__file__)" + SMALL, **unwritable)
    assert done.stdout.split() == [str(tmp_path / "sparsetransport" / "__init__.py"), "4"], done.stderr
    assert done.stderr.count("set NUMBA_CACHE_DIR") == 1
    assert files(tmp_path) == set()


@pytest.mark.long
def test_a_whole_solve_without_anywhere_to_write(unwritable):
    """Interrupted at a random time while it compiles, and again from the beginning: the same value as ever."""
    delay = np.random.default_rng().uniform(0.0, 30.0)
    done = python(FIRST_SOLVE.format(delay=delay) + SOLVE, **unwritable)
    assert done.stdout.split() == ["interrupted", python(SOLVE).stdout.strip()], (delay, done.stderr)
    assert done.stderr.count("set NUMBA_CACHE_DIR") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of resources there")
def test_a_disk_that_fills_up_in_the_middle_of_a_file(tmp_path):
    """The rest of the file is missing: this process goes on, the next one finds nothing that misleads it."""
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
    broken = python(full + SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    assert broken.stdout == "4\n", broken.stderr
    assert broken.stderr.count("set NUMBA_CACHE_DIR") == 1
    for expected in ("compiling the functions", ""):  # the first process with room compiles, the second loads
        done = python(SMALL, NUMBA_CACHE_DIR=str(tmp_path))
        assert done.stdout == "4\n"
        assert done.stderr.strip().startswith(expected)
        assert bool(done.stderr) == bool(expected)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child there")
@pytest.mark.parametrize("delay", np.random.default_rng(0).uniform(0.0, 0.6, 4).round(3))
def test_ctrl_c_in_the_first_solve(delay):
    """Whenever it arrives, it raises KeyboardInterrupt, and the next solve in the same process is as ever."""
    done = python(FIRST_SOLVE.format(delay=delay) + SOLVE)
    expected = st.solve(np.arange(12.0).reshape(3, 4), budget=3, unbalanced=50.0).value.hex()
    assert done.stdout.replace("finished\n", "").split() == ["interrupted", expected], (delay, done.stderr)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_worker_of_joblib_is_an_error_and_the_next_batch_works(tmp_path):
    """Processes of joblib do not come back by themselves: its error says that a worker is gone, and nothing hangs."""
    joblib = pytest.importorskip("joblib", reason="batches in processes need joblib")
    problems = list(np.random.default_rng(0).random((300, 6, 5)))
    problems[250] = np.ones((7, 4))
    budget = DiesOnce((7, 4), tmp_path / "died")
    with joblib.parallel_config(backend="loky", n_jobs=2):
        with pytest.raises(RuntimeError, match="worker process managed by the executor was unexpectedly terminated"):
            st.solve_batch(problems, budget=budget)
        results = st.solve_batch(problems, budget=budget)
    for result, alone in zip(results, st.solve_batch(problems, budget=min), strict=True):
        np.testing.assert_array_equal(result.plan, alone.plan)
