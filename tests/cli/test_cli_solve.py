"""``sparsetransport solve``: what the files say is what the API gets, and bad input ends in one sentence."""

import builtins
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

import sparsetransport as st
from sparsetransport import cli
from sparsetransport.cli import reading, solve

COMMAND = [sys.executable, "-c", "from sparsetransport.cli import main; main()"]
RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(9, 2)), RNG.normal(size=(7, 2)) + 1.0
A, B = RNG.uniform(0.5, 1.5, 9), RNG.uniform(0.5, 1.5, 7)
C = st.cost_matrix(X, Y)
ASKED = ["--kernel", "rbf", "--bandwidth", "0.1*median"]  # the default; whoever asks for it gets no warning of points


def invoke(*arguments):
    return CliRunner().invoke(cli.app, ["solve", *map(str, arguments)])


def write_csv(path, array, header=None):
    lines = [",".join(map(repr, row)) for row in np.asarray(array).tolist()]
    path.write_text("\n".join(([header] if header else []) + lines) + "\n")
    return path


def links(path):
    """Rows, columns and masses of a CSV file of links."""
    with path.open(newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0][:3] == ["row", "column", "mass"]
    return [(int(i), int(j), float(mass)) for i, j, mass, *_ in lines[1:]]


def links_of(result):
    return sorted(zip(result.rows.tolist(), result.cols.tolist(), result.mass.tolist(), strict=True))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def files(folder):
    """Two point sets and their costs as arrays."""
    np.save("x.npy", X)
    np.save("y.npy", Y)
    np.save("c.npy", C)
    return folder


@pytest.fixture(scope="module")
def expected():
    return st.solve_sample(X, Y, A, B, budget=6, reg=1.0)


def store_csv(folder):
    write_csv(folder / "x.csv", np.column_stack([X, A]), "x,y,w")
    write_csv(folder / "y.csv", np.column_stack([B, Y[:, ::-1]]), "w,y,x")
    return ["x.csv", "y.csv", "--mass-column", "w"]


def store_plain_csv(folder):
    write_csv(folder / "x.csv", X)
    write_csv(folder / "y.csv", Y)
    write_csv(folder / "a.csv", A[:, None], "mass")
    write_csv(folder / "b.csv", B[None])
    return ["x.csv", "y.csv", "--a", "a.csv", "--b", "b.csv"]


def store_semicolons(folder):
    for name, array in (("x.csv", np.column_stack([X, A])), ("y.csv", np.column_stack([Y, B]))):
        text = write_csv(folder / name, array, "x,y,w").read_text()
        (folder / name).write_text("\n" + text.replace(",", ";").replace("\n", "\r\n"), encoding="utf-8-sig")
    return ["x.csv", "y.csv", "--mass-column", "w", "--columns", "x, y"]


def store_tsv(folder):
    for name, array in (("x.tsv", X), ("y.TSV", Y)):
        text = write_csv(folder / name, array).read_text()
        (folder / name).write_text(text.replace(",", "\t"))
    np.save(folder / "a.npy", A)
    np.save(folder / "b.npy", B)
    return ["x.tsv", "y.TSV", "--a", "a.npy", "--b", "b.npy"]


def store_npy(folder):
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", Y)
    np.savez(folder / "masses.npz", a=A, b=B)
    return ["x.npy", "y.npy", "--a", "masses.npz", "--b", "masses.npz"]


def store_npz(folder):
    np.savez(folder / "all.npz", X=X, Y=Y, a=A, b=B)
    return ["all.npz"]


def store_two_npz(folder):
    np.savez(folder / "x.npz", points=X)
    np.savez(folder / "y.npz", X=X, Y=Y)
    np.savez(folder / "m.npz", a=A, b=B)
    return ["x.npz", "y.npz", "--a", "m.npz", "--b", "m.npz"]


def store_parquet(folder):
    pyarrow = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    index = {"__index_level_0__": list(range(9))}
    pq.write_table(pyarrow.table({"x": X[:, 0], "y": X[:, 1], "w": A, **index}), folder / "x.parquet")
    pq.write_table(pyarrow.table({"w": B, "y": Y[:, 1], "x": Y[:, 0]}), folder / "y.parquet")
    return ["x.parquet", "y.parquet", "--mass-column", "w"]


@pytest.mark.parametrize(
    "store",
    [
        store_csv,
        store_plain_csv,
        store_semicolons,
        store_tsv,
        store_npy,
        store_npz,
        store_two_npz,
        store_parquet,
    ],
)
def test_every_format_in_is_the_same_problem(store, folder, expected):
    arguments = store(folder)
    answer = invoke(*arguments, *ASKED, "--budget", 6, "--reg", 1, "--out", "plan.csv")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert links(folder / "plan.csv") == links_of(expected)


@pytest.mark.parametrize("kind", ["csv", "npy", "npz", "bundle", "parquet"])
def test_costs_from_every_format_with_forbidden_pairs(kind, folder):
    costs = C.copy()
    costs[0, 0] = np.inf
    name = f"c.{kind}"
    arguments = ["--cost-matrix", name, "--a", "m.npz", "--b", "m.npz"]
    np.savez("m.npz", a=A, b=B)
    if kind == "csv":
        write_csv(folder / name, costs)
    elif kind == "npy":
        np.save(name, costs)
    elif kind == "npz":
        np.savez(name, any=costs)
    elif kind == "bundle":
        np.savez("all.npz", C=costs, a=A, b=B)
        arguments = ["all.npz"]
    else:
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.table({str(k): column for k, column in enumerate(costs.T)})
        pytest.importorskip("pyarrow.parquet").write_table(table, name)
    answer = invoke(*arguments, "--per-column", 1, "--unbalanced", 30, "--out", "plan.csv")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert links(folder / "plan.csv") == links_of(st.solve(costs, A, B, budget=st.PerColumn(1), unbalanced=30.0))


def test_every_format_out_holds_the_plan(files, expected):
    np.savez("m.npz", a=A, b=B)
    arguments = ["x.npy", "y.npy", "--a", "m.npz", "--b", "m.npz", "--budget", "6", "--reg", "1", *ASKED]
    for name in ("new/plan.csv", "plan.npz", "plan.json"):
        answer = invoke(*arguments, "--out", name)
        assert (answer.exit_code, answer.stderr) == (0, "")
        note = " (in a new folder)" if name.startswith("new") else ""
        assert answer.stdout.splitlines()[-1] == f"plan: {name}{note}"
    assert links(files / "new" / "plan.csv") == links_of(expected)
    assert (scipy.sparse.load_npz("plan.npz").toarray() == expected.plan).all()
    found = json.loads((files / "plan.json").read_text())
    assert [tuple(link.values()) for link in found["links"]] == links_of(expected)
    assert found["shape"] == [9, 7]
    assert found["value"] == expected.value
    assert found["lower_bound"] == pytest.approx(expected.lower_bound, rel=1e-12)
    assert found["gap"] == pytest.approx(found["value"] - found["lower_bound"])
    assert found["status"] == str(expected.status)
    assert found["unbalanced"] == list(expected.log["unbalanced"])
    assert found["versions"]["sparsetransport"] == st.__version__
    for side, reached, wanted in (("a", expected.marginal_a, A), ("b", expected.marginal_b, B)):
        missing, extra = np.maximum(wanted - reached, 0.0).sum(), np.maximum(reached - wanted, 0.0).sum()
        assert found[f"marginal_error_{side}"] == pytest.approx(max(missing, extra) / wanted.sum())
    assert found["moved"] == pytest.approx(expected.mass.sum())
    assert (found["to_send"], found["to_receive"]) == pytest.approx((A.sum(), B.sum()))


@pytest.mark.parametrize(
    ("costs", "b", "moved", "missed"),
    [
        ("inf,inf\ninf,inf\n", None, "0 of 1", ("100.0", "100.0")),
        ("0,inf\ninf,0\n", "0.5\n0.5\n", "1 of 1", ("0.0", "0.0")),
        ("0,inf\ninf,0\n", "1.5\n0\n", "1.25 of 1 to send and 1.5 to receive", ("50.0", "33.3")),
    ],
)
def test_the_summary_says_how_much_mass_is_moved(files, costs, b, moved, missed):
    """If nothing is sent, the marginal error is 100 %, not 50 %."""
    (files / "costs.csv").write_text(costs)
    (files / "b.csv").write_text(b or "0.5\n0.5\n")
    (files / "a.csv").write_text("0.5\n0.5\n")
    masses = ["--a", "a.csv", "--b", "b.csv"] if b else []
    answer = invoke("--cost-matrix", "costs.csv", "--budget", "2", "--unbalanced", "1", *masses)
    lines = dict(line.split(": ", 1) for line in answer.stdout.splitlines())
    assert lines["mass moved"] == moved
    assert lines["marginal error, rows"] == f"{missed[0]} %"
    assert lines["marginal error, columns"] == f"{missed[1]} %"


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (["--budget", "5"], {"budget": 5}),
        (["--per-row", "1"], {"budget": st.PerRow(1)}),
        (["--per-row", "1", "--per-column", "2"], {"budget": st.PerRow(1) & st.PerColumn(2)}),
        (
            ["--per-row", "1", "--per-column", "1", "--budget", "4"],
            {"budget": st.Uniform(4) & st.PerColumn(1) & st.PerRow(1)},
        ),
        ([], {}),
        (["--kernel", "imq", "--bandwidth", "0.5"], {"budget": None, "kernels": st.IMQ(0.5)}),
        (["--kernel", "imq-v2", "--bandwidth", "mean"], {"kernels": st.IMQv2("mean")}),
        (["--kernel", "laplace", "--bandwidth", "2"], {"kernels": st.Laplace(2.0)}),
        (["--kernel", "delta"], {"kernels": st.Delta()}),
        (["--bandwidth", "0.2"], {"kernels": st.RBF(0.2)}),
        (["--bandwidth", "0.5*mean"], {"kernels": st.RBF("0.5*mean")}),
        (["--metric", "euclidean", "--normalize-cost"], {"metric": "euclidean", "normalize_cost": True}),
        (["--metric", "cosine"], {"metric": "cosine"}),
        (["--unbalanced", "3,50", "--reg", "0.5"], {"unbalanced": (3.0, 50.0), "reg": 0.5}),
        (["--budget", "5", "--method", "stochastic", "--seed", "7"], {"budget": 5, "method": "stochastic", "rng": 7}),
        (["--budget", "5", "--reg", "1", "--gap-tol", "1e-3"], {"budget": 5, "reg": 1.0, "gap_tol": 1e-3}),
        (
            ["--budget", "5", "--gap-tol", "1e-3", "--time-limit", "60"],
            {"budget": 5, "gap_tol": 1e-3, "time_limit": 60},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_option_reaches_the_solver(options, arguments, files):
    answer = invoke("x.npy", "y.npy", *options, "--out", "plan.csv", "--bound", "none")
    assert (answer.exit_code, answer.stderr) == (0, "")
    result = st.solve_sample(X, Y, **arguments)
    assert links(files / "plan.csv") == links_of(result)
    assert "lower bound" not in answer.stdout


@pytest.mark.parametrize(("options", "bound"), [([], "cheap"), ([], "tight"), (["--per-row", "2"], "none")])
def test_as_few_links_as_are_enough(options, bound, files):
    answer = invoke("x.npy", "y.npy", *options, "--within", "0.2", "--reg", "1", "--bound", bound, "--out", "plan.json")
    assert (answer.exit_code, answer.stderr) == (0, "")
    count = (lambda k: st.PerRow(2) & st.Uniform(k)) if options else st.Uniform
    found = st.solve_fewest(st.Problem.from_points(X, Y, reg=1.0), within=0.2, budget=count)
    written = json.loads((files / "plan.json").read_text())
    assert len(written["links"]) == len(found.result.mass)
    assert written["value"] == pytest.approx(found.result.value)
    assert written["target"] == pytest.approx(found.target)
    assert written["value_without_budget"] == pytest.approx(found.optimum.value)
    assert written["links_at_least"] == (found.at_least if bound == "tight" else None)
    known = f"proven minimum: {found.at_least} entries" if bound == "tight" else "--bound tight computes"
    assert f"target: {found.target:.6g} ({known}" in answer.stdout
    assert f"unbudgeted optimum: {len(found.optimum.mass)} entries, {found.optimum.value:.6g}" in answer.stdout


def test_normalized_costs_of_a_matrix_and_kernels_of_points(files):
    answer = invoke("x.npy", "y.npy", "--cost-matrix", "c.npy", "--normalize-cost", "--kernel", "rbf", "--out", "p.csv")
    assert answer.exit_code == 0
    kernels = (st.RBF().gram(X), st.RBF().gram(Y))
    assert links(files / "p.csv") == links_of(st.solve(C / C.max(), kernels=kernels))


@pytest.mark.parametrize("corner", ["", "plant"])
def test_a_matrix_may_have_names_and_masses_go_by_them(folder, corner):
    (folder / "c.csv").write_text(f"{corner},lyon,bari\nulm,0,9\nbrno,9,0\n")
    (folder / "a.csv").write_text("plant,tons\nbrno ,1\nulm,3\n")
    (folder / "b.csv").write_text("3,1\n")
    answer = invoke("--cost-matrix", "c.csv", "--a", "a.csv", "--b", "b.csv", "--budget", 2, "--out", "-")
    assert answer.exit_code == 0, answer.stderr
    lines = list(csv.DictReader(answer.stdout.splitlines()))
    assert [(line["row_label"], line["column_label"]) for line in lines] == [("ulm", "lyon"), ("brno", "bari")]
    assert [float(line["mass"]) for line in lines] == pytest.approx([3.0, 1.0])


def test_signs_in_quotes_separate_nothing(folder):
    (folder / "x.csv").write_text('"lat;deg","lon\tdeg"\n0,0\n1,1\n')
    assert invoke("x.csv", "x.csv", "--budget", 2).exit_code == 0


def test_names_of_a_matrix_may_be_numbers_below_an_empty_title(folder):
    """What pandas writes of a table with an index."""
    (folder / "c.csv").write_text(",p,q\n10,0,9\n20,inf,0\n")
    answer = invoke("--cost-matrix", "c.csv", "--budget", 2, "--out", "-")
    assert [line["row_label"] for line in csv.DictReader(answer.stdout.splitlines())] == ["10", "20"]


@pytest.mark.parametrize(
    ("costs", "masses", "sentence"),
    [
        (",p,q\nu,0,9\nv,9,0\n", "name,mass\nu,1\nw,1\n", "a.csv has no mass for 'v'"),
        (",p,q\nu,0,9\nv,9,0\n", "name,mass\nu,1\nu,1\n", "a.csv has no mass for 'v'"),
        (",p,q\nu,0,9\nu,9,0\n", "name,mass\nu,1\nw,1\n", "a.csv has names, and 'u' is the name of several rows"),
        ("0,9\n9,0\n", "name,mass\nu,1\nv,1\n", "a.csv has names, and the rows have none to match"),
        ("x,p,q\nu,0,9\n1,9,0\n", "1\n1\n", "c.csv, line 2, column 'x': 'u' is not a number"),
        (",p,q\nu,0,9\nv,9,\n", "1\n1\n", "c.csv, line 3, column 'q': the cell is empty"),
    ],
)
def test_names_that_do_not_match(folder, costs, masses, sentence):
    (folder / "c.csv").write_text(costs)
    (folder / "a.csv").write_text(masses)
    answer = invoke("--cost-matrix", "c.csv", "--a", "a.csv", "--budget", 2)
    assert (answer.exit_code, answer.stderr) == (2, f"Error: {sentence}\n")


def test_the_tight_bound_is_not_below_the_cheap_one(files):
    bounds = []
    for bound in ("cheap", "tight"):
        invoke("x.npy", "y.npy", "--budget", "5", "--reg", "1", "--bound", bound, "--out", "plan.json")
        bounds.append(json.loads((files / "plan.json").read_text())["lower_bound"])
    result = st.solve_sample(X, Y, budget=5, reg=1.0)
    assert bounds == pytest.approx([result.lower_bound, result.certify().lower_bound], rel=1e-9)
    assert bounds[1] > bounds[0]


def test_the_gap_of_the_summary_has_no_exponent(files):
    """A plan of one link that misses nearly everything: its gap is nearly all of a large objective."""
    answer = invoke("x.npy", "y.npy", "--budget=1", "--unbalanced=1e5", "--bound=tight", "--bandwidth=median")
    gap = next(line for line in answer.stdout.splitlines() if line.startswith("gap: "))
    assert re.fullmatch(r"gap: \d{4,} \(9\d\.\d\d % of the objective\)", gap)


def test_labels_are_kept(folder):
    (folder / "x.csv").write_text('name,x,y\n"one, two",0,0\n007,1,1\n')
    (folder / "y.csv").write_text("x,name,y\n0,a,0\n1,b,1\n")
    options = ["--label-column", "name", "--budget", 2, "--kernel", "delta"]
    answer = invoke("x.csv", "y.csv", *options, "--out", "-")
    assert answer.exit_code == 0
    lines = list(csv.DictReader(answer.stdout.splitlines()))
    assert [(line["row_label"], line["column_label"]) for line in lines] == [("one, two", "a"), ("007", "b")]
    invoke("x.csv", "y.csv", *options, "--out", "plan.json")
    found = json.loads((folder / "plan.json").read_text())["links"]
    assert [(link["row_label"], link["column_label"]) for link in found] == [("one, two", "a"), ("007", "b")]


def test_columns_with_other_names_go_by_position(folder, expected):
    np.savez("m.npz", a=A, b=B)
    write_csv(folder / "x.csv", X, "x,y")
    write_csv(folder / "y.csv", Y, "lon,lat")
    masses = ["--a", "m.npz", "--b", "m.npz"]
    assert invoke("x.csv", "y.csv", *masses, "--budget", 6, "--reg", 1, "--out", "plan.csv").exit_code == 0
    assert links(folder / "plan.csv") == links_of(expected)


def test_columns_may_be_given_for_each_file(folder):
    (folder / "depots.csv").write_text("Depot Name,Stock [t],x,y\nUlm,1,0,0\nBrno,3,1,1\n")
    (folder / "shops.csv").write_text("y,x,Shop,Need\n1,1,a,3\n0,0,b,1\n")
    answer = invoke("depots.csv", "shops.csv")
    assert "if these are names, use --label-column 'Depot Name'" in answer.stderr
    names = ["--label-column", "Depot Name", "--label-column", "Shop"]
    masses = ["--mass-column", "Stock [t]", "--mass-column", "Need"]
    options = ["--kernel", "delta", "--unbalanced", 1e5, "--budget", 2, "--out", "-"]

    def links_by_name(*arguments):
        answer = invoke("depots.csv", "shops.csv", *names, *arguments, *options)
        assert answer.exit_code == 0, answer.stderr
        lines = csv.DictReader(answer.stdout.splitlines())
        return {(line["row_label"], line["column_label"]): round(float(line["mass"]), 3) for line in lines}

    expected = {("Ulm", "b"): 1.0, ("Brno", "a"): 3.0}
    assert links_by_name(*masses) == expected
    assert links_by_name(*masses, "--columns", "x,y") == expected
    crossed = [*masses, "--columns", "x,y", "--columns", "y,x"]  # in the order given, not by name
    assert links_by_name(*crossed) == expected
    (folder / "shops.csv").write_text("south,east,Shop,Need\n1,1,a,3\n0,0,b,1\n")
    assert links_by_name(*masses, "--columns", "x,y", "--columns", "east,south") == expected
    (folder / "shops.csv").write_text("y,x,Shop\n1,1,a\n0,0,b\n")
    (folder / "needs.csv").write_text("b,1\na,3\n")
    assert links_by_name("--mass-column", "Stock [t]", "--b", "needs.csv") == expected


def test_totals_that_differ_by_rounding_are_one(folder):
    """0.7 + 0.2 + 0.1 is not 0.1 + 0.2 + 0.7 to a machine."""
    (folder / "c.csv").write_text("0,1,1\n1,0,1\n1,1,0\n")
    (folder / "a.csv").write_text("0.7\n0.2\n0.1\n")
    (folder / "b.csv").write_text("0.1\n0.2\n0.7\n")
    totals = [np.loadtxt(name).sum() for name in ("a.csv", "b.csv")]
    assert totals[0] != totals[1]
    answer = invoke("--cost-matrix", "c.csv", "--a", "a.csv", "--b", "b.csv", "--unbalanced", "1e6")
    assert re.search(r"^mass moved: \S+ of 1$", answer.stdout, re.MULTILINE)


@pytest.mark.parametrize("arguments", [["x.npy", "y.npy"], ["--cost-matrix", "c.npy"]])
@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_a_picture(arguments, ending, files):
    pytest.importorskip("matplotlib")
    answer = invoke(*arguments, "--budget", "5", "--plot", f"plan.{ending}")
    assert answer.exit_code == 0
    content = (files / f"plan.{ending}").read_bytes()
    assert len(content) > 3000
    assert content.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[ending])


@pytest.fixture
def drawn(monkeypatch):
    """The Axes that pictures are made of."""
    matplotlib = pytest.importorskip("matplotlib")
    found = []
    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", lambda figure, *_, **__: found.extend(figure.axes))
    yield found
    matplotlib.pyplot.close("all")


def test_a_picture_names_points_axes_and_sides(folder, drawn):
    (folder / "x.csv").write_text("name,east,north\nfar,0,0\nhere,1000,1\n")
    (folder / "y.csv").write_text("name,north,east\nthere,0.5,500\n")
    options = ["--label-column", "name", "--budget", 2, "--plot", "plan.png"]
    assert invoke("x.csv", "y.csv", *options, "--kernel", "delta").exit_code == 0
    (ax,) = drawn
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("east", "north")
    assert sorted(text.get_text() for text in ax.texts) == ["far", "here", "there"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["source", "target"]
    assert ax.get_aspect() == "auto"


def test_a_picture_of_a_matrix_names_rows_and_columns(folder, drawn):
    (folder / "c.csv").write_text(",lyon,$5_$\nulm,0,9\nbrno,9,0\n")
    assert invoke("--cost-matrix", "c.csv", "--plot", "plan.png").exit_code == 0
    (ax,) = drawn
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["ulm", "brno"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["lyon", "$5_$"]


BAD_FILES = {
    "empty.csv": "",
    "blank.csv": ";;\n ; ;\n",
    "header.csv": "x,y\n",
    "ragged.csv": "1,2\n3\n",
    "word.csv": "x,y\n1,2\n\n3,four\n",
    "hole.csv": "x,y\n1,\n",
    "nan.csv": "1,2\n3,nan\n",
    "half.csv": "1,two\n3,4\n",
    "index.csv": ",x\n0,1\n",
    "twice.csv": "x,x\n1,2\n",
    "negative.csv": "x,y,mass\n1,2,3\n1,2,-1\n",
    "spaces.csv": "1 2\n3 4\n",
    "other.csv": "x,z\n1,2\n",
    "good.csv": "x,y\n1,2\n",
    "wide.csv": "x,y,z\n1,2,3\n",
    "notes.txt": "1,2\n",
    "bad.npy": "1,2\n",
    "bad.npz": "1,2\n",
    "bad.parquet": "1,2\n",
}


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """A folder of files, hardly one of which is right."""
    place = tmp_path_factory.mktemp("bad")
    for name, text in BAD_FILES.items():
        (place / name).write_text(text)
    (place / "latin.csv").write_bytes("x,größe\n1,2\n".encode("latin-1"))
    np.save(place / "words.npy", np.array([["a", "b"]]))
    np.save(place / "objects.npy", np.array([[None, 1]], dtype=object))
    np.save(place / "cube.npy", np.zeros((2, 2, 2)))
    np.save(place / "nan.npy", np.array([[1.0, 2.0], [np.inf, 1.0]]))
    np.save(place / "nothing.npy", np.zeros((0, 2)))
    np.save(place / "minus.npy", np.array([[1.0, -np.inf]]))
    np.save(place / "good.npy", np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.save(place / "zero.npy", np.array([[0.0, 0.0], [3.0, 4.0]]))
    np.save(place / "three.npy", np.ones(3))
    np.savez(place / "named.npz", P=np.ones((2, 2)), Q=np.ones((2, 2)))
    (place / "named.csv").write_text("id,x,y\nu,0,0\nv,1,1\n")
    (place / "folder.csv").mkdir()
    return place


SENTENCES = [
    ("gone.csv good.csv", "cannot read gone.csv: No such file or directory"),
    ("gone.npy good.npy", "cannot read gone.npy: No such file or directory"),
    ("gone.npz", "cannot read gone.npz: No such file or directory"),
    ("folder.csv good.csv", "cannot read folder.csv: Is a directory"),
    ("empty.csv good.csv", "empty.csv is empty"),
    ("blank.csv good.csv", "blank.csv is empty"),
    ("header.csv good.csv", "header.csv has no rows"),
    ("ragged.csv good.csv", "ragged.csv, line 2: 1 cells where line 1 has 2"),
    ("good.csv word.csv", "word.csv, line 4, column 'y': 'four' is not a number"),
    ("good.csv hole.csv", "hole.csv, line 2, column 'y': the cell is empty"),
    ("nan.csv good.csv", "nan.csv, line 2, column 2: nan is not a finite number"),
    ("half.csv good.csv", "half.csv, line 1, column 2: 'two' is not a number, but other cells of the line are"),
    ("index.csv good.csv", "index.csv has a column without a name: choose the columns of coordinates with --columns"),
    ("twice.csv good.csv --columns x", "--columns x: twice.csv has 2 columns 'x'"),
    ("spaces.csv spaces.csv", "spaces.csv, line 2, column '1 2': '3 4' is not a number"),
    ("latin.csv good.csv", "latin.csv must be text in UTF-8 (invalid start byte at byte 4): save it as CSV UTF-8"),
    ("notes.txt good.csv", "notes.txt must end in .csv, .tsv, .npy, .npz or .parquet"),
    ("bad.npy good.npy", "bad.npy is not a NumPy file of numbers"),
    ("objects.npy good.npy", "objects.npy is not a NumPy file of numbers"),
    ("bad.npz", "bad.npz is not a NumPy file of numbers"),
    ("words.npy good.npy", "words.npy must hold real numbers, got dtype <U1"),
    ("cube.npy good.npy", "cube.npy must have one or two dimensions, got shape (2, 2, 2)"),
    ("nan.npy good.npy", "nan.npy, row 1 (counted from 0), column 1: inf is not a finite number"),
    ("nothing.npy good.npy", "nothing.npy has no rows"),
    ("named.npz good.npy", "named.npz has no array 'X', only 'P', 'Q'"),
    ("named.npz", "give a second file of points: named.npz is not an NPZ file"),
    ("good.csv", "give a second file of points"),
    ("", "give the files of two point sets, or --cost-matrix"),
    ("good.csv wide.csv", "good.csv has 2 columns of coordinates and wide.csv has 3"),
    ("good.csv other.csv", "good.csv has the columns x, y and other.csv has x, z"),
    ("good.csv good.csv --mass-column w", "--mass-column w: good.csv has no column 'w', only 'x', 'y'"),
    ("good.csv wide.csv --label-column z", "--label-column z: good.csv has no column 'z'"),
    (
        "wide.csv good.csv --label-column z",
        "has no column 'z', only 'x', 'y' (--label-column may be given twice, for the first file and the second)",
    ),
    ("good.npy good.npy --mass-column w", "--mass-column w: good.npy has no names of columns"),
    ("ragged.csv good.csv --columns x", "ragged.csv, line 2"),
    ("named.csv good.csv", "column 'id': 'u' is not a number; if these are names, use --label-column id"),
    ("negative.csv negative.csv --mass-column mass", "column 'mass': must not be negative, got -1"),
    (
        "wide.csv wide.csv --mass-column z --a three.npy",
        "--a and --mass-column both give the masses of wide.csv: choose",
    ),
    ("wide.csv wide.csv --mass-column z --mass-column y --b three.npy", "--b and --mass-column both give the masses:"),
    ("good.npy good.npy --mass-column z --a three.npy --b three.npy", "--a and --mass-column both give the masses:"),
    (
        "good.csv good.csv --label-column x --label-column y --label-column z",
        "--label-column may be given once, for both",
    ),
    (
        "--cost-matrix good.csv --label-column x --label-column y",
        "--label-column twice needs the files of two point sets",
    ),
    ("good.npy good.npy --a three.npy", "three.npy has 3 masses a, and there are 2 points"),
    ("--cost-matrix good.npy --b three.npy", "three.npy has 3 masses b, and there are 2 columns"),
    ("good.npy good.npy --a good.npy", "good.npy must have one column of masses, or names and masses, it has 2"),
    ("good.csv good.csv --cost-matrix good.npy", "good.npy has the shape (2, 2), and there are 1 and 1 points"),
    ("--cost-matrix minus.npy", "minus.npy, row 0 (counted from 0), column 2: -inf is not a finite number or inf"),
    ("--cost-matrix good.npy --columns x", "--columns needs the files of two point sets"),
    ("--cost-matrix good.npy --kernel rbf", "--kernel other than delta, and --bandwidth, need the files of two"),
    ("--cost-matrix good.npy --metric cosine", "--metric must not be given with a matrix of costs"),
    ("zero.npy good.npy --metric cosine", "X has the zero vector at row 0"),
    ("good.npy good.npy --within -0.1", "--within must be a number that is not negative, got -0.1"),
    ("good.npy good.npy --within 0.1 --budget 3", "--within must not be given with --budget, since it finds"),
    ("good.npy good.npy --budget 0", "--budget must be a positive int, got 0"),
    ("good.npy good.npy --per-row -1", "--per-row must be a positive int, got -1"),
    ("good.npy good.npy --per-column 0", "--per-column must be a positive int, got 0"),
    (
        "good.npy good.npy --kernel gauss",
        "--kernel must be one of 'rbf', 'imq', 'imq-v2', 'laplace', 'delta', got 'gauss'",
    ),
    ("good.npy good.npy --bandwidth wide", "--bandwidth must be a number, median or mean, got 'wide'"),
    ("good.npy good.npy --bandwidth -1", "--bandwidth must be a positive number, got -1.0"),
    ("good.npy good.npy --kernel delta --bandwidth 1", "--bandwidth must not be given with --kernel delta"),
    ("good.npy good.npy --metric l1", "--metric must be one of 'sqeuclidean', 'euclidean', 'cosine', got 'l1'"),
    ("good.npy good.npy --method magic", "--method must be one of 'omp', "),
    ("good.npy good.npy --bound loose", "--bound must be one of 'none', 'cheap', 'tight', got 'loose'"),
    (
        "good.npy good.npy --unbalanced much",
        "--unbalanced must be a number, two numbers (3,5), auto or a multiple",
    ),
    ("good.npy good.npy --unbalanced 1,2,3", "--unbalanced must be a number, two numbers (3,5), auto"),
    ("good.npy good.npy --unbalanced 0", "--unbalanced must be a positive number, got 0.0"),
    ("good.npy good.npy --reg -1", "--reg must be a number that is not negative, got -1.0"),
    ("good.npy good.npy --reg nan", "--reg must be a number that is not negative, got nan"),
    ("good.npy good.npy --time-limit 0", "--time-limit must be a positive number, got 0.0"),
    ("good.npy good.npy --gap-tol 0", "--gap-tol must be a positive number, got 0.0"),
    ("good.npy good.npy --seed -1", "--seed must not be negative, got -1"),
    ("good.npy good.npy --out plan.xlsx", "--out plan.xlsx must end in .csv, .npz or .json"),
    ("good.npy good.npy --plot plan", "--plot plan must end in .png, .pdf or .svg"),
    ("good.csv good.csv --out good.csv", "--out good.csv would overwrite the input"),
    ("good.npy good.npy --out folder.csv", "folder.csv: is a folder"),
    ("good.npy good.npy --out good.csv/plan.csv", "good.csv"),
    ("good.npy good.npy --out good.csv/deep/plan.csv", "good.csv"),
    ("good.npy good.npy --plot good.csv/plan.png", "good.csv"),
]


@pytest.mark.parametrize(("arguments", "sentence"), SENTENCES, ids=[line[0] for line in SENTENCES])
def test_bad_input_ends_in_one_sentence(arguments, sentence, bad, monkeypatch):
    monkeypatch.chdir(bad)
    before = sorted(bad.iterdir())
    answer = invoke(*arguments.split())
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr.startswith("Error: ")
    assert answer.stderr.count("\n") == 1
    assert sentence in answer.stderr
    assert sorted(bad.iterdir()) == before, "nothing was written"


def test_a_file_that_is_not_parquet(bad, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(bad)
    assert invoke("bad.parquet", "good.csv").stderr == "Error: bad.parquet is not a Parquet file\n"
    assert "cannot read gone.parquet: " in invoke("gone.parquet", "good.csv").stderr


def test_columns_of_a_parquet_file(folder):
    pyarrow = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pyarrow.table({"name": ["p", None], "x": [1, 2], "y": [0.5, None]}), "t.parquet")
    answer = invoke("t.parquet", "t.parquet")
    assert "t.parquet, row 0 (counted from 0), column 'name': 'p' is not a number" in answer.stderr
    answer = invoke("t.parquet", "t.parquet", "--label-column", "name")
    assert "t.parquet, row 1 (counted from 0), column 'y': nan is not a finite number" in answer.stderr
    side = reading.read_points(folder / "t.parquet", "X", columns=["x"], label="name")
    assert side.points.tolist() == [[1.0], [2.0]]
    assert side.labels == ["p", ""]


def test_without_pyarrow_one_sentence_says_what_to_install(bad, monkeypatch):
    def refuse(name, *args, **kwargs):
        if name.split(".")[0] == "pyarrow":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.chdir(bad)
    answer = invoke("bad.parquet", "good.csv")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr == "Error: reading Parquet files needs pyarrow: pip install 'sparsetransport[parquet]'\n"


def test_a_budget_larger_than_the_plan_is_told_once(files):
    answer = invoke("x.npy", "y.npy", "--budget", 9999)
    assert answer.exit_code == 0
    assert answer.stderr.count("Warning: budget = 9999") == 1


def test_a_solve_that_fails_leaves_the_old_plan(files, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("out of luck")

    (files / "plan.csv").write_text("old")
    before = sorted(files.iterdir())
    monkeypatch.setattr("sparsetransport.cli.solve.solve_transport", fail)
    answer = invoke("x.npy", "y.npy", "--out", "plan.csv", "--plot", "new/plan.png")
    assert answer.exit_code == 1
    assert answer.stderr == "Error: RuntimeError: out of luck (--debug shows where)\n"
    assert sorted(files.iterdir()) == before
    assert (files / "plan.csv").read_text() == "old"
    answer = invoke("x.npy", "y.npy", "--debug")
    assert "Traceback" in answer.stderr
    assert answer.stderr.endswith("Error: RuntimeError: out of luck (--debug shows where)\n")


def test_a_whole_session_in_pipes(files):
    """In a process of its own: numbers to the output, nothing else, and no sign of colours or bars."""
    command = [*COMMAND, "solve", "x.npy", "y.npy", "--budget", "5", "--reg", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    result = st.solve_sample(X, Y, budget=5, reg=1.0)
    assert lines["entries"] == "5 of 9 x 7"
    assert float(lines["objective"]) == pytest.approx(result.value, rel=1e-5)
    assert float(lines["lower bound"]) == pytest.approx(result.lower_bound, rel=1e-5)
    assert list(lines)[2:4] == ["lower bound", "gap"]
    assert {"status", "time", "marginal error, rows", "marginal error, columns"} <= lines.keys()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_sees_a_bar_and_a_table(files):
    """With the error stream on a terminal there are signs of life, and the plan is the same."""
    import pty

    ours, theirs = pty.openpty()
    command = [*COMMAND, "solve", "x.npy", "y.npy", "--budget", "5", "--reg", "1", "--out", "plan.csv"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # what Linux says when the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    assert process.wait() == 0
    assert b"Preparing" in seen
    assert b"\x1b[" in seen
    assert b"5 of 9 x 7" in seen
    assert links(files / "plan.csv") == links_of(st.solve_sample(X, Y, budget=5, reg=1.0))


@pytest.mark.parametrize(
    "arguments",
    [
        ["gone.csv", "y.npy"],
        ["x.npy", "y.npy", "--budget", "many"],
        ["x.npy", "y.npy", "--out", "x.npy/below/plan.csv"],
    ],
)
def test_bad_input_in_a_process_of_its_own(arguments, files):
    done = subprocess.run([*COMMAND, "solve", *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert re.search(r"gone\.csv|--budget|x\.npy/below", done.stderr)


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe that is closed is another error there")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["info"],
        ["solve", "x.npy", "y.npy", "--budget", "5"],
        ["solve", "large.npz", "--reg", "100", "--out", "-"],  # more than a buffer holds: noticed while writing
    ],
    ids=["version", "help", "info", "short", "long"],
)
def test_a_reader_that_goes_away_is_no_error(arguments, files):
    """As after ``| head -1``: not a word, whether the output is noticed to be closed at once or at the very end."""
    points = np.random.default_rng(0).normal(size=(2, 40, 2))
    np.savez("large.npz", X=points[0], Y=points[1])
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run([*COMMAND, *arguments], stdout=theirs, stderr=subprocess.PIPE, text=True)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (1, "")


def test_ctrl_c_in_the_middle_of_a_long_solve(folder):
    """One line, exit code 130, the old plan untouched and nothing left over."""
    points = np.random.default_rng(0).normal(size=(2, 3000, 3))
    np.savez("all.npz", X=points[0], Y=points[1])
    (folder / "plan.csv").write_text("old")
    options = ["--budget", "3000", "--method", "greedy", "--out", "plan.csv", "--plot", "new/plan.png"]
    process = subprocess.Popen(
        [*COMMAND, "solve", "all.npz", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not list(folder.glob("new/.*.png")):  # from here on it solves
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, complaints = process.communicate()
    assert (process.returncode, output) == (130, "")
    assert complaints == "Interrupted: no unfinished file is left behind.\n"
    assert sorted(path.name for path in folder.iterdir()) == ["all.npz", "plan.csv"]
    assert (folder / "plan.csv").read_text() == "old"


@pytest.mark.parametrize("title", ["plant", "Plant code", "from"])
def test_numbers_that_may_be_names_are_pointed_out(folder, title):
    """Codes of plants are whole numbers, each once; costs under such a title need not be."""
    (folder / "ids.csv").write_text(f"{title},P1,P2\n1000,5,6\n2000,7,8\n")
    assert (
        f"the column '{title}' of ids.csv is read as costs: if these are names"
        in invoke("--cost-matrix", "ids.csv").stderr
    )
    (folder / "costs.csv").write_text(f"{title},P1,P2\n1.5,5,6\n2.75,7,8\n")
    assert "are names" not in invoke("--cost-matrix", "costs.csv").stderr


def test_names_of_masses_that_are_numbers_need_a_header(folder):
    (folder / "c.csv").write_text("depot,A,B\n10,5,6\n20,7,8\n")
    (folder / "a.csv").write_text("10,3\n20,4\n")
    answer = invoke("--cost-matrix", "c.csv", "--label-column", "depot", "--a", "a.csv")
    assert "it has 2: if the names are numbers, add a header line" in answer.stderr
    (folder / "a.csv").write_text("id,mass\n20,4\n10,3\n")
    assert invoke("--cost-matrix", "c.csv", "--label-column", "depot", "--a", "a.csv").exit_code == 0


def test_the_summary_says_who_has_no_link(files):
    soft = invoke("x.npy", "y.npy", "--budget", 1).stdout
    assert re.search(r"^without a link: \d+ of \d+ rows \(.*\) and \d+ of \d+ columns \(.*\)$", soft, re.M)
    assert soft.count("(with --kernel delta every point counts individually)") == 2
    assert "--kernel delta" not in invoke("x.npy", "y.npy", "--budget", 1, "--kernel", "delta").stdout


class TestOutputs:
    """What is there already is kept: permissions, pipes and links; names come out as they are, never as commands."""

    NAMES = "Köln,=1+1,-Ulm,＝1+1,-3,\x1b[2J"

    @pytest.fixture
    def costs(self, folder):
        path = folder / "costs.csv"
        path.write_text(f"depot,{self.NAMES}\nÅrhus,1,2,3,4,5,6\n", encoding="utf-8")
        return path

    @pytest.mark.parametrize("name", ["plan.csv", "plan.json", "plan.npz", "plan.png"])
    def test_permissions_are_kept(self, files, name):
        path = files / name
        path.write_text("old")
        path.chmod(0o600)
        option = "--plot" if name == "plan.png" else "--out"
        assert invoke("x.npy", "y.npy", "--budget", 5, option, name).exit_code == 0
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_bytes()[:3] != b"old"

    def test_a_pipe_is_written_to(self, files):
        os.mkfifo(files / "plan.csv")
        reader = subprocess.Popen(["cat", "plan.csv"], stdout=subprocess.PIPE, text=True)
        assert invoke("x.npy", "y.npy", "--budget", 5, "--out", "plan.csv").exit_code == 0
        assert len(reader.communicate(timeout=30)[0].splitlines()) == 6
        assert (files / "plan.csv").is_fifo()

    def test_links_in_a_circle_are_one_sentence(self, files):
        (files / "plan.csv").symlink_to("other.csv")
        (files / "other.csv").symlink_to("plan.csv")
        answer = invoke("x.npy", "y.npy", "--budget", 5, "--out", "plan.csv")
        assert answer.exit_code == 2
        assert re.fullmatch(r"Error: cannot open plan\.csv: .*symbolic links\n", answer.stderr)

    def test_a_full_disk_names_the_file(self, files):
        (files / "plan.csv").symlink_to("/dev/full")
        answer = invoke("x.npy", "y.npy", "--budget", 5, "--out", "plan.csv")
        assert answer.exit_code == 2
        assert answer.stderr == "Error: cannot write plan.csv: No space left on device\n"

    def test_a_full_standard_output_is_told_however_much_is_written(self, files):
        np.save(files / "large.npy", np.random.default_rng(0).random((60, 60)))
        call = [sys.executable, "-m", "sparsetransport", "solve", "--cost-matrix", "large.npy", "--out", "-"]
        with open("/dev/full", "w") as full:
            answer = subprocess.run(
                call, stdout=full, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": "1"}
            )
        assert answer.returncode == 1
        assert answer.stderr.decode().endswith("Error: cannot write to standard output: No space left on device\n")

    def test_a_picture_is_valid_whatever_names_hold(self, files):
        """An SVG file has names as comments, where control characters are errors."""
        rows = ["a\x1b[31m", "b\x07", "c--d"]
        (files / "named.csv").write_text("name,x\x1b,y\n" + "".join(f"{name},1,2\n" for name in rows))
        call = "--cost-matrix", "named.csv", "--label-column", "name", "--plot", "named.svg"
        assert invoke(*call).exit_code == 0
        assert ElementTree.parse(files / "named.svg").getroot().tag.endswith("svg")

    def test_names_in_csv(self, costs):
        answer = invoke("--cost-matrix", costs, "--label-column", "depot", "--unbalanced", "100", "--out", "-")
        assert [line.split(",")[-1] for line in answer.stdout.splitlines()[1:]] == [
            "Köln",
            "'=1+1",
            "'-Ulm",
            "'＝1+1",
            "-3",
            "\\x1b[2J",
        ]

    def test_names_in_json(self, costs):
        assert (
            invoke(
                "--cost-matrix", costs, "--label-column", "depot", "--unbalanced", "100", "--out", "plan.json"
            ).exit_code
            == 0
        )
        text = (costs.parent / "plan.json").read_text(encoding="utf-8")
        assert '"Köln"' in text
        assert [link["column_label"] for link in json.loads(text)["links"]] == self.NAMES.split(",")


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("0 0", "0 0", "the masses a of a.csv are all zero: there is nothing to move"),
        ("1 2", "0 0", "the masses b of b.csv are all zero: there is nothing to move"),
        (
            "1e8 2e8",
            "1 2",
            "the masses a of a.csv have a total of 3e+08 and the masses b of b.csv of 3: give both sides in",
        ),
    ],
)
def test_masses_that_make_no_sense_are_one_sentence(folder, a, b, message):
    (folder / "costs.csv").write_text("1,2\n3,4\n")
    options = []
    for name, masses in (("a", a), ("b", b)):
        if masses is not None:
            (folder / f"{name}.csv").write_text(masses.replace(" ", "\n"))
            options += [f"--{name}", f"{name}.csv"]
    answer = invoke("--cost-matrix", "costs.csv", *options, "--budget", 2)
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"Error: {message}")
    assert not answer.stdout


def test_a_side_without_masses_has_the_total_of_the_other(folder):
    (folder / "costs.csv").write_text("1,2\n3,4\n")
    (folder / "a.csv").write_text("100\n200\n")
    assert " of 300\n" in invoke("--cost-matrix", "costs.csv", "--a", "a.csv").stdout


def test_supply_at_most_and_demand_exactly(folder):
    """The plan of the linear programme, and with fewer links one that serves all; a warning where none does."""
    rng = np.random.default_rng(0)
    costs, stock, need = rng.random((4, 9)), rng.integers(30, 60, 4), rng.integers(5, 15, 9)
    for name, array in (("costs", costs), ("stock", stock), ("need", need)):
        np.save(f"{name}.npy", array.astype(float))
    data = ["--cost-matrix", "costs.npy", "--a", "stock.npy", "--b", "need.npy", "--bound", "none"]
    planned = [*data, "--supply", "at-most", "--demand", "exact"]
    ours = st.solve(costs, stock, need, unbalanced=np.inf, sense=("<=", "="))
    answer = invoke(*planned, "--out", "plan.json")
    assert answer.exit_code == 0
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["value"] == pytest.approx(ours.value, rel=1e-12)
    assert (plan["sense"], plan["unbalanced"]) == (["<=", "="], [None, None])
    assert "unserved: nothing" in answer.stdout
    assert "Warning" not in answer.stderr
    few = invoke(*planned, "--budget", "5", "--out", "few.json")
    assert json.loads((folder / "few.json").read_text())["value"] is None
    assert "links needed: at least 9" in few.stdout
    assert "Warning: no plan that keeps the hard marginals" in few.stderr
    soft = invoke(*data, "--budget", "5")
    assert "--demand exact" in soft.stderr
    bad = invoke(*data, "--supply", "most")
    assert (bad.exit_code, bad.stderr.count("--supply must be one of 'at-most', 'exact', 'at-least'")) == (2, 1)


@pytest.fixture
def market(folder):
    """Depots and shops with names and masses, shops of half the mass."""
    rng = np.random.default_rng(0)
    for name, count, total in (("depot", 6, 200.0), ("shop", 30, 100.0)):
        points, mass = rng.random((count, 2)) * 10.0, rng.random(count) + 0.3
        rows = np.column_stack([points, mass / mass.sum() * total]).tolist()
        lines = [",".join([f"{name}{k}", *map(repr, row)]) for k, row in enumerate(rows)]
        (folder / f"{name}s.csv").write_text("\n".join(["name,x,y,mass", *lines]) + "\n")
    return ["depots.csv", "shops.csv", "--label-column", "name", "--bound", "none"]


@pytest.mark.parametrize("more", [[], ["--kernel", "delta"]])
def test_given_masses_that_are_missed_are_named(market, more):
    """With the options that keep to them, whichever kernel was the default; not where a kernel was asked for."""
    few = invoke(*market, "--mass-column", "mass", "--budget", 15, *more)
    assert few.exit_code == 0
    (warning,) = (line for line in few.stderr.splitlines() if line.startswith("Warning"))
    alone = re.search(r"(\d+) of 30 targets have no link \(((?:shop\d+, ){4}shop\d+) and (\d+) more\)", warning)
    assert int(alone[1]) == 5 + int(alone[3]) == int(re.search(r"and (\d+) of 30 columns", few.stdout)[1])
    assert set(alone[2].split(", ")[:3]) == set(re.search(r"columns \((.*), \.\.\.\)", few.stdout)[1].split(", "))
    assert re.search(r"\d+ of 30 targets \(.*\) lack [\d.]+ of 100 in all", warning)
    assert "sources" not in warning
    assert "--supply at-most --demand exact keeps to the masses" in warning
    assert ("under the default kernel" in warning) == (not more)
    asked = invoke(*market, "--mass-column", "mass", "--budget", 15, "--kernel", "rbf")
    uniform = invoke(*market, "--columns", "x,y", "--budget", 15)
    kept = invoke(*market, "--mass-column", "mass", "--supply", "at-most", "--demand", "exact")
    assert "Warning" not in asked.stderr + uniform.stderr + kept.stderr


def test_what_is_sent_beyond_the_masses_is_told(folder):
    (folder / "costs.csv").write_text("depot,x,y\nA,1,9\nB,8,1\n")
    (folder / "stock.csv").write_text("A,1\nB,9\n")
    (folder / "need.csv").write_text("x,8\ny,4\n")
    data = ["--cost-matrix", "costs.csv", "--a", "stock.csv", "--b", "need.csv", "--unbalanced", "2,4"]
    soft = invoke(*data)
    assert "1 of 2 sources (A) send " in soft.stderr
    assert "--supply exact --demand at-most keeps to the masses" in soft.stderr
    assert "--supply exact keeps" in invoke(*data, "--demand", "at-most").stderr


def test_names_are_told_of_unserved_and_idle_points(market):
    """Control characters of names are written out."""
    shops = Path("shops.csv")
    shops.write_text(shops.read_text().replace("shop3,", "\x1b[2J,"))
    plan = [*market, "--mass-column", "mass", "--supply", "at-most", "--demand", "exact"]
    assert re.search(r"^idle: 100 of 200, at \d of 6 rows \(depot\d", invoke(*plan).stdout, re.M)
    few = invoke(*plan, "--budget", 5).stdout
    assert re.search(r"^unserved: .* of 30 columns \(shop", few, re.M)
    assert "\x1b" not in few


def test_a_limit_of_time_that_leaves_no_plan_is_told(market, monkeypatch):
    solved = solve._solved

    def stopped(*args):
        problem, result, *rest = solved(*args)
        return problem, replace(result, status=st.Status.TIME_LIMIT), *rest

    monkeypatch.setattr(solve, "_solved", stopped)
    answer = invoke(*market, "--mass-column", "mass", "--supply", "at-most", "--demand", "exact", "--budget", 5)
    assert "Warning: the time limit was reached, and this plan violates the hard marginals" in answer.stderr


def test_links_that_cost_something(folder):
    """A number for all links, or a file whose rows and columns are matched by their names."""
    (folder / "costs.csv").write_text("depot,x,y,z\nA,1,2,3\nB,3,1,1\n")
    (folder / "fees.csv").write_text("depot,z,y,x\nB,9,1,1\nA,1,1,1\n")
    (folder / "stock.csv").write_text("5\n6\n")
    (folder / "need.csv").write_text("2\n3\n1\n")
    data = ["--cost-matrix", "costs.csv", "--a", "stock.csv", "--b", "need.csv", "--supply", "at-most"]
    data += ["--demand", "exact", "--out", "plan.json"]
    for fee, best in (("0.5", 6.0 + 1.5), ("fees.csv", 8.0 + 3.0)):
        answer = invoke(*data, "--link-cost", fee)
        assert answer.exit_code == 0
        plan = json.loads((folder / "plan.json").read_text())
        assert plan["value"] == pytest.approx(best)
        assert plan["value_links"] == pytest.approx(best - plan["value_linear"])
        assert f"cost of links: {plan['value_links']:.6g}" in answer.stdout
    for options, message in (
        (["--link-cost", "-1"], "--link-cost must"),
        (["--link-cost", "1", "--within", "0.1"], "--within must not be given with --link-cost"),
        (["--link-cost", "stock.csv"], "stock.csv has the shape"),
    ):
        bad = invoke(*data, *options)
        assert (bad.exit_code, message in bad.stderr) == (2, True)
