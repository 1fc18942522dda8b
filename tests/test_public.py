"""The public names: listed once, all there, all explained; importing is silent and light."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparsetransport as st

ROOT = Path(__file__).parents[1]
CLASSES = [getattr(st, name) for name in st.__all__ if inspect.isclass(getattr(st, name))]


def _python(code, **environment):
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("name", st.__all__)
def test_every_public_name_resolves_and_has_a_docstring(name):
    """A name in ``__all__`` is an attribute with a docstring of its own, not an inherited one."""
    thing = getattr(st, name)
    assert thing.__doc__
    assert len(thing.__doc__.split()) >= 4
    if inspect.isclass(thing):
        assert "__doc__" in vars(thing)


@pytest.mark.parametrize("thing", CLASSES, ids=lambda thing: thing.__name__)
def test_every_public_method_has_a_docstring(thing):
    """So has every public method and property that a class of ours defines."""
    for name, member in vars(thing).items():
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property | classmethod)):
            continue
        assert inspect.getdoc(getattr(thing, name)), f"{thing.__name__}.{name}"


def test_public_names_are_listed_once():
    """No name twice, none private."""
    assert len(set(st.__all__)) == len(st.__all__)
    assert not [name for name in st.__all__ if name.startswith("_")]


def test_experiments_use_what_users_can_use():
    """No private name of a part of the library is imported by an experiment: what they need, users need too."""
    for path in (Path(st.__file__).parent / "experiments").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sparsetransport"):
                names = {*str(node.module).split("."), *(one.name for one in node.names)} - {"_checks"}
                assert not [name for name in names if name.startswith("_")], f"{path.name}: {names}"


def test_importing_prints_nothing():
    """``import sparsetransport`` is silent, on both streams, even if every warning is shown."""
    done = _python("import sparsetransport", PYTHONWARNINGS="default")
    assert done.stdout == ""
    assert "sparsetransport" not in done.stderr


def test_importing_loads_nothing_that_is_optional():
    """torch, POT, JAX, matplotlib and scikit-learn are imported where they are used, not before."""
    heavy = ["torch", "ot", "jax", "matplotlib", "sklearn", "clarabel", "pandas"]
    done = _python(f"import sys, sparsetransport; print([name for name in {heavy} if name in sys.modules])")
    assert done.stdout.strip() == "[]"


def test_the_version_is_the_same_everywhere():
    """``__version__`` is the source of that of the package's metadata; the citation and the changelog follow."""
    from importlib.metadata import version

    assert st.__version__ == version("sparsetransport")
    assert f"\nversion: {st.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {st.__version__} - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


SOLVE = """
import numpy as np, sparsetransport as st
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(9, 2)), rng.normal(size=(8, 2))
one = st.PerRow(1) & st.PerColumn(1)
for options in {"budget": 5}, {"budget": one}, {"method": "greedy", "budget": 4}, {"lazy": True}:
    result = st.solve_sample(X, Y, unbalanced=5.0, reg=0.1, **options)
    print(repr(result.rows.tolist()), repr(result.cols.tolist()), *np.round(result.mass, 10))
"""


def test_kernels_mean_the_same_without_the_compiler():
    """With NUMBA_DISABLE_JIT=1 the kernels are plain Python, and the plans are the same."""
    plain, compiled = _python(SOLVE, NUMBA_DISABLE_JIT="1"), _python(SOLVE)
    assert plain.stdout == compiled.stdout
    assert len(plain.stdout.splitlines()) == 4


def test_warnings_have_one_family():
    """Everything we warn about can be caught by one class."""
    assert issubclass(st.ConvergenceWarning, st.SparseTransportWarning)
    assert issubclass(st.SparseTransportWarning, UserWarning)


def test_the_example_of_the_readme_runs():
    """Two point sets, a budget, a plan, a proof: the five lines everybody tries first."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(25, 2)) + 1.0
    result = st.solve_sample(X, Y, budget=20)
    assert result.sparse_plan.nnz == 20
    assert result.lower_bound <= result.value


TYPED = """
import numpy as np
import sparsetransport as st

C = np.ones((3, 3))
one: st.Result = st.solve_sample(C, C, budget=np.int64(3), gap_tol=1e-3, method=st.StochasticOMP(eps=0.1))
many: list[st.Result] = st.solve_batch([C], budget=min, n_jobs=2)
some: list[st.Result | st.ProblemError] = st.solve_batch([C], budget=2, on_error="record")
st.solve_sample(C, C, budgett=3)  # wrong
st.solve(st.Problem.from_matrices(C), methods="omp")  # wrong
st.solve_batch([C], n_job=2)  # wrong
"""


def test_type_checkers_know_the_options(tmp_path):
    """Those that exist pass, those that are misspelt do not."""
    api = pytest.importorskip("mypy.api")
    script = tmp_path / "script.py"
    script.write_text(TYPED)
    report = api.run(["--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), str(script)])[0]
    lines = {int(line.split(":")[1]) for line in report.splitlines() if ": error:" in line}
    assert lines == {k for k, line in enumerate(TYPED.splitlines(), 1) if line.endswith("# wrong")}, report
