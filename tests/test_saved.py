"""Saved results come back to the bit, and files that are not such are refused."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest

import sparsetransport as st

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(9, 2)), RNG.normal(size=(7, 2)) + 1.0
COSTS = RNG.random((9, 7))
COSTS[0, 0] = np.inf
GRAM = st.RBF(0.5).gram(X)
BUDGET = st.Laminar(st.PerColumn(2), st.Uniform(8))

RESULTS = {
    "costs": lambda: st.solve(COSTS, budget=6),
    "reg": lambda: st.solve(COSTS, budget=BUDGET, reg=0.1, unbalanced=(3.0, 20.0)),
    "no budget": lambda: st.solve(COSTS),
    "groups": lambda: st.solve(COSTS, budget=st.Partition(np.arange(63).reshape(9, 7) % 5 - 1, 1)),
    "Gram matrix": lambda: st.solve(COSTS, kernels=(GRAM, "delta"), budget=6),
    "hard": lambda: st.solve(COSTS[1:], np.full(8, 2.0), np.ones(7), budget=9, unbalanced=np.inf, sense=("<=", "=")),
    "points": lambda: st.solve_sample(X, Y, budget=6),
    "lazy": lambda: st.solve_sample(X, Y, budget=6, metric="cosine", lazy=True, kernels=st.Laplace(0.5)),
    "empty": lambda: st.solve(COSTS, np.zeros(9), np.ones(7), budget=3),
}


def same(one, other):
    """Equal to the bit, whatever it is made of."""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_comes_back(name, suffix, tmp_path):
    result, path = RESULTS[name](), tmp_path / f"plan{suffix}"
    known = result.lower_bound
    result.certify()
    result.save(path)
    again = st.load(path)
    assert same(tuple(result._parts), tuple(again._parts))
    assert same(tuple(result._facts), tuple(again._facts))
    assert (again.status, again.converged, again.kkt, again.log) == (
        result.status,
        result.converged,
        result.kkt,
        result.log,
    )
    for step in ("pairs", "objective", "entries", "gone", "gone_until", "start"):
        assert same(getattr(result.path, step), getattr(again.path, step))
    assert repr(again) == repr(result)
    assert again.lower_bound == result.lower_bound >= known
    assert again.certify().log == result.certify().log
    assert again.path.plan_at(3).value == result.path.plan_at(3).value
    np.testing.assert_array_equal(st.solve(again.problem, budget=4).plan, st.solve(result.problem, budget=4).plan)
    if result._parts.points is not None:
        np.testing.assert_array_equal(again.transport(X), result.transport(X))


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_without_the_problem_known_bounds_stay(suffix, tmp_path):
    result, path = st.solve(COSTS, budget=6), tmp_path / f"plan{suffix}"
    result.save(path, problem=False)
    with pytest.raises(ValueError, match="saved without its problem"):
        _ = st.load(path).lower_bound
    result.certify()
    result.save(path, problem=False)
    again = st.load(path)
    assert again.problem is None
    assert again.lower_bound == result.lower_bound
    np.testing.assert_array_equal(again.plan, result.plan)
    with pytest.raises(ValueError, match="saved without its problem"):
        again.path.plan_at(2)
    with pytest.raises(ValueError, match="saved without its problem"):
        again.save(path, problem=True)
    again.save(path)
    assert same(tuple(st.load(path)._parts), tuple(result._parts))


def test_a_large_problem_is_saved_on_request(tmp_path):
    size = 1500
    result = st.solve_support(np.ones((size, size)), links=[(0, 0)])
    path = tmp_path / "plan.npz"
    result.save(path)
    assert st.load(path).problem is None
    result.save(path, problem=True)
    assert st.load(path).problem.shape == (size, size)


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_labels_come_back(suffix, tmp_path):
    pd = pytest.importorskip("pandas")
    costs = pd.DataFrame(COSTS[1:4, :2], ["a", 2, ("b", 1.5)], ["x", "y"])
    path = tmp_path / f"plan{suffix}"
    result = st.solve(costs, budget=2)
    result.save(path)
    pd.testing.assert_frame_equal(st.load(path).to_frame(), result.to_frame())
    dated = st.solve(costs.set_axis(pd.date_range("2020", periods=3)), budget=2)
    with pytest.raises(TypeError, match=r"a label of Timestamp cannot be saved.*astype\(str\)"):
        dated.save(path)
    pd.testing.assert_frame_equal(st.load(path).to_frame(), result.to_frame())  # the old file is whole


def test_tensors_come_back_as_arrays(tmp_path):
    torch = pytest.importorskip("torch")
    result = st.solve(torch.tensor(COSTS[1:]), budget=3)
    result.certify()
    result.save(tmp_path / "plan.npz")
    assert same(st.load(tmp_path / "plan.npz").mass, result.mass.numpy())


def test_another_extension_is_refused(tmp_path):
    for call in (RESULTS["costs"]().save, st.load):
        with pytest.raises(ValueError, match=r"the extension of path must be one of '\.npz', '\.json', got '\.csv'"):
            call(tmp_path / "plan.csv")
    with pytest.raises(FileNotFoundError):
        st.load(tmp_path / "missing.npz")


# --- files that are no results ---------------------------------------------------------------------------------------


class Opened:
    """Pickled code that would run."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was opened",)


@pytest.fixture
def fields(tmp_path):
    """The fields of a saved result."""
    RESULTS["points"]().save(tmp_path / "plan.json")
    return json.loads((tmp_path / "plan.json").read_text())


def refused(path, message):
    with pytest.raises(ValueError, match=rf"{path.name} must be a result saved by Result\.save: .*{message}"):
        st.load(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("version", 2, "version 2 of the format, but this package reads 1"),
        ("format", "other", "does not have the format of a saved result"),
        ("status", "FINE", "FINE"),
        ("shape", {"__tuple__": [9, -7]}, "shape"),
        ("shape", {"__tuple__": [9, 8]}, "shape"),
        ("value", "1", "it has '1' in place of a number"),
        ("labels", {"__tuple__": [["a"], None]}, "a label for each row"),
        ("problem", {}, "there is no"),
        ("arrays", {}, "there is no 'rows'"),
    ],
)
def test_fields_that_do_not_fit(fields, tmp_path, name, value, message):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(fields | {name: value}))
    refused(path, message)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("rows", {"data": [99] * 6, "shape": [6]}, "rows"),
        ("path_pairs", {"data": [-1, 0], "shape": [1, 2]}, "path_pairs has a number out of range"),
        ("mass", {"shape": [-1, 2]}, "mass"),
        ("wanted_a", {"data": ["nan"] * 9}, "wanted_a must hold numbers only"),
        ("gram_a", {"shape": [81]}, "gram_a has dtype float64 and shape"),
        ("gram_a", {"data": list(range(81))}, "gram_a must be symmetric"),
        ("cost", {"dtype": "object"}, "the dtype of cost must be one of"),
        ("limits_rows", {"data": [-1] * 9}, "limits_rows has a number out of range"),
    ],
)
def test_arrays_that_do_not_fit(fields, tmp_path, name, change, message):
    fields["arrays"][name] |= change
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(fields))
    refused(path, message)


def test_files_of_the_command_line_are_told_from_results(tmp_path):
    """With what reads them: the advice works."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from sparsetransport import cli

    C = np.random.default_rng(0).random((5, 4))
    np.save(tmp_path / "c.npy", C)
    for name in ("plan.json", "plan.npz"):
        options = ["--cost-matrix", tmp_path / "c.npy", "--budget", "4", "--out", tmp_path / name]
        assert CliRunner().invoke(cli.app, ["solve", *map(str, options)]).exit_code == 0
    refused(
        tmp_path / "plan.json", r"it is the list of links that `sparsetransport solve --out` writes: json\.load reads"
    )
    held = json.loads((tmp_path / "plan.json").read_text())
    again = st.solve_support(C, links=[(each["row"], each["column"]) for each in held["links"]])
    assert again.value == pytest.approx(held["value"])
    refused(tmp_path / "plan.npz", r"scipy\.sparse\.load_npz reads it")


def test_hostile_archives(tmp_path):
    path = tmp_path / "bad.npz"
    np.savez(path, rows=np.array([Opened()], object))
    refused(path, "its array rows has dtype object")
    np.savez_compressed(path, rows=np.zeros(100_000))
    refused(path, "compressed")
    path.write_bytes(pickle.dumps(Opened()))
    refused(path, "not a zip file")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rows.npy", header.getvalue())
    refused(path, r"shape \(1000000000000,\) and 0 bytes")
    np.savez(path, rows=np.zeros(3))
    refused(path, "there is no 'meta'")


@pytest.mark.parametrize("text", ["", "[]", "3", '{"format": NaN}', "[" * 100_000, "\0"])
def test_hostile_texts(tmp_path, text):
    path = tmp_path / "bad.json"
    path.write_text(text)
    refused(path, "")
