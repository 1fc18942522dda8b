"""Files as people have them: decimal commas, lines of Excel's, names that are numbers, names in another order."""

import csv
import io
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

from sparsetransport import cli
from sparsetransport.cli import labelled, reading, table


def invoke(*arguments):
    return CliRunner().invoke(cli.app, ["solve", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan_of(answer):
    """The links of ``--out -``, by name where there are names."""
    assert answer.exit_code == 0, answer.stderr
    return list(csv.DictReader(answer.stdout.splitlines()))


@pytest.mark.parametrize("header", ["", "x{0}y\n"])
@pytest.mark.parametrize("sign", [";", "\t"])
def test_decimal_commas_where_something_else_separates_cells(folder, sign, header):
    """Also where the first line alone has such commas: it is no header."""
    for name, rows in (("x.csv", ["0,5 1,5", "2 3", "4 -5e0"]), ("y.csv", ["-,5 1,25e1", "1,000 2,000"])):
        (folder / name).write_text(header.format(sign) + "\n".join(rows).replace(" ", sign) + "\n")
    x, y = (reading.read_points(folder / name, "X").points.tolist() for name in ("x.csv", "y.csv"))
    assert x == [[0.5, 1.5], [2.0, 3.0], [4.0, -5.0]]
    assert y == [[-0.5, 12.5], [1.0, 2.0]]
    assert plan_of(invoke("x.csv", "y.csv", "--budget", 2, "--out", "-"))


@pytest.mark.parametrize("first", ["sep=;", '"SEP=;"', "sep=|"])
def test_a_first_line_that_names_the_separator(folder, first):
    sign = first.strip('"')[-1]
    (folder / "x.csv").write_text(f"\n{first}\r\nx, m{sign}y\r\n1{sign}2\r\n3{sign}4\r\n", newline="")
    side = reading.read_points(folder / "x.csv", "X")
    assert (side.names, side.points.tolist()) == (["x, m", "y"], [[1.0, 2.0], [3.0, 4.0]])
    (folder / "x.csv").write_text(f"{first}\nx{sign}y\n1{sign}two\n")
    with pytest.raises(ValueError, match="line 3, column 'y': 'two' is not a number"):
        reading.read_points(folder / "x.csv", "X")


CURE = "is not a number: write numbers like 1234.5"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('"0,5",1\n2,3\n', f"line 1, column 1: '0,5' {CURE} (or 1234,5 where semicolons or tabs separate the cells)"),
        ('"0,5","1,5"\n2,3\n', f"line 1, column 1: '0,5' {CURE}"),
        ("10%,20%\n1,2\n", f"line 1, column 1: '10%' {CURE}"),
        ("x,y\n1,10%\n", f"line 2, column 'y': '10%' {CURE}"),
        ("1_000,2\n", f"line 1, column 1: '1_000' {CURE}"),
        ("x;y\n1.234,5;2\n", f"line 2, column 'x': '1.234,5' {CURE}"),
        ("x;y\n1'234;2\n", f"line 2, column 'x': \"1'234\" {CURE}"),
        ("x;y\n1,234;2\n3;4\n", "'1,234' is not a number, as it may be 1.2340 or 1234: write the one that is meant"),
        ("x;y\n1,5;2.5\n", "line 2, column 'y': '2.5' has a point, and other cells of the file have a comma before"),
        (
            "x\n0,5\n",
            "line 2: 2 cells where line 1 has 1 (cells are separated by commas, semicolons or tabs; a title above",
        ),
        ("\nx,y\n1,2\n3\n", "line 4: 1 cells where line 2 has 2"),
    ],
)
def test_numbers_that_are_written_otherwise_are_said_to_be(folder, text, sentence):
    (folder / "x.csv").write_text(text)
    answer = invoke("x.csv", "x.csv")
    assert answer.exit_code == 2
    assert answer.stderr.startswith("Error: x.csv, line ")
    assert sentence in answer.stderr


@pytest.mark.parametrize("sign", [";", "\t"])
@pytest.mark.parametrize("header", ["", "x;y\n"])
@pytest.mark.parametrize(
    ("rows", "meanings"),
    [
        ("1.200;2\n3;4\n", "'1.200' is not a number, as it may be 1.2 or 1200"),
        ("-12.345;7\n1.000;4\n", "'-12.345' is not a number, as it may be -12.3450 or -12345"),
        ("7;900\n1.000;4\n", "'1.000' is not a number, as it may be 1 or 1000"),
        ("1.234;1.234.567\n", "'1.234' is not a number, as it may be 1.2340 or 1234"),
        ('"1.234";2\n', "'1.234' is not a number, as it may be 1.2340 or 1234"),
    ],
)
def test_points_that_may_be_of_thousands_are_refused(folder, rows, header, meanings, sign):
    (folder / "x.csv").write_text((header + rows).replace(";", sign))
    answer = invoke("x.csv", "x.csv")
    assert answer.exit_code == 2
    assert f"{meanings}: write the one that is meant" in answer.stderr


@pytest.mark.parametrize("settled", ["0.125", "-0.125", ".125", "1.5", "12.3456", "1234.567", "1.234e3", "1.2340"])
@pytest.mark.parametrize("label", [None, "name"])
def test_one_number_that_is_no_thousands_settles_all_points(folder, settled, label):
    rows = ["name;x;y", f"1;{settled};2.125", "2;1.200;3"]
    (folder / "x.csv").write_text("\n".join(rows))
    points = reading.read_points(folder / "x.csv", "X", columns=["x", "y"], label=label).points
    assert points.tolist() == [[float(settled), 2.125], [1.2, 3.0]]


def test_commas_between_cells_settle_points(folder):
    (folder / "x.csv").write_text("1.200,2\n1.125,4\n")
    assert reading.read_points(folder / "x.csv", "X").points.tolist() == [[1.2, 2.0], [1.125, 4.0]]


def test_masses_with_names_need_no_header(folder):
    (folder / "c.csv").write_text(",p,q\nNorth,0,9\nWest,9,0\n")
    (folder / "a.csv").write_text("West,150\nNorth,100\n")
    options = ["--unbalanced", "1e4,10", "--budget", 2, "--out", "-"]
    sent = {
        line["row_label"]: float(line["mass"])
        for line in plan_of(invoke("--cost-matrix", "c.csv", "--a", "a.csv", *options))
    }
    assert sent == pytest.approx({"North": 100.0, "West": 150.0}, rel=0.05)
    (folder / "a.csv").write_text("150,West\n100,North\n")
    answer = invoke("--cost-matrix", "c.csv", "--a", "a.csv")
    assert (answer.exit_code, answer.stderr) == (
        2,
        "Error: a.csv, line 1, column 2: 'West' is not a number, "
        "but other cells of the line are, so the line is no header\n",
    )


def test_names_of_masses_may_be_numbers_below_a_header(folder):
    (folder / "c.csv").write_text(",2021,2022\nu,3,4\n")
    (folder / "b.csv").write_text("year,tons\n2022,100\n2021,1\n")
    options = ["--unbalanced", "10,1e4", "--out", "-"]
    lines = plan_of(invoke("--cost-matrix", "c.csv", "--b", "b.csv", *options))
    assert {line["column_label"]: float(line["mass"]) for line in lines}["2022"] == pytest.approx(100.0, rel=0.05)


@pytest.mark.parametrize(
    ("text", "label", "names"),
    [
        ("depot,2021,2022\n1,3,4\n2,5,6\n", None, ["1", "2"]),
        ("depot,2021,2022\n1,3,4\n2,5,6\n", "depot", ["1", "2"]),
        ("the depot;2021;2022\n01;3;4\n02;5;6\n", "the depot", ["01", "02"]),
        ("2021,2022,depot\n3,4,Ulm\n5,6,Bonn\n", "depot", ["Ulm", "Bonn"]),
        ("depot,2021,2022\nUlm,3,4\nBonn,5,6\n", "depot", ["Ulm", "Bonn"]),
        (",2021,2022\nUlm,3,4\nBonn,5,6\n", None, ["Ulm", "Bonn"]),
        (",2021,2022\n1,3,4\n2,5,6\n", None, ["1", "2"]),
    ],
)
def test_a_header_of_costs_may_have_numbers_for_names(folder, text, label, names):
    (folder / "c.csv").write_text(text)
    answer = invoke(
        "--cost-matrix", "c.csv", *(["--label-column", label] if label else []), "--unbalanced", 99, "--out", "-"
    )
    lines = plan_of(answer)
    assert {line["row_label"] for line in lines} == set(names)
    assert {line["column_label"] for line in lines} == {"2021", "2022"}
    sure = label or text.startswith(",")
    assert answer.stderr == (
        ""
        if sure
        else "Warning: c.csv, line 1 is read as a header, and the first column as names: "
        "--label-column depot confirms it\n"
    )
    assert reading.read_costs(folder / "c.csv", "C", label=label or text.partition(",")[0]).matrix.tolist() == [
        [3.0, 4.0],
        [5.0, 6.0],
    ]


def test_a_first_line_of_costs_that_may_be_either_is_refused(folder):
    """The first row of costs, or the names of columns?"""
    (folder / "c.csv").write_text("the depot,2021,2022\nUlm,3,4\n")
    answer = invoke("--cost-matrix", "c.csv")
    assert (answer.exit_code, answer.stderr) == (
        2,
        "Error: c.csv, line 1, column 1: 'the depot' is not a number, but other cells of the line are; "
        "if it is a header, use --label-column 'the depot'\n",
    )


@pytest.mark.parametrize(
    "text", ["Plan 2024,,\nname,x,y\nu,1,2\n", "Plan 2024\n\nname;x;y\nu;1;2\n", "A plan\nin t\nx,y\n1,2\n"]
)
def test_a_title_above_the_header_is_said_to_be_one(folder, text):
    (folder / "x.csv").write_text(text)
    for answer in (invoke("x.csv", "x.csv"), invoke("x.csv", "x.csv", "--label-column", "name")):
        assert answer.exit_code == 2
        title = text.partition(",")[0].partition("\n")[0]
        assert answer.stderr == f"Error: x.csv, line 1: {title!r} looks like a title: delete what is above the header\n"


def test_names_like_those_of_cells_of_a_sheet_are_names(folder):
    (folder / "c.csv").write_text("e5;01.05.2024\n0;9\n9;0\n")
    assert [line["column_label"] for line in plan_of(invoke("--cost-matrix", "c.csv", "--out", "-"))] == [
        "e5",
        "01.05.2024",
    ]


@pytest.mark.parametrize("text", ["id,u,v\n7,0,9\n3,9,0\n", "plant,u,v\n2,0,9\n3,9,0\n"])
def test_numbers_of_rows_among_the_costs(folder, text):
    """They are costs, with a warning, unless the column is said to have the names."""
    (folder / "c.csv").write_text(text)
    title = text.partition(",")[0]
    answer = invoke("--cost-matrix", "c.csv", "--out", "-")
    assert answer.stderr == (
        f"Warning: the column '{title}' of c.csv is read as costs: if these are names, use --label-column {title}\n"
    )
    answer = invoke("--cost-matrix", "c.csv", "--label-column", title, "--unbalanced", 100, "--budget", 2, "--out", "-")
    names = [row.split(",")[0] for row in text.split()[1:]]
    assert [(line["row_label"], line["column_label"]) for line in plan_of(answer)] == list(
        zip(names, "uv", strict=True)
    )
    assert answer.stderr == ""


@pytest.mark.parametrize("text", ["u,v\n0,9\n9,0\n", "u,v\ninf,9\ninf,0\n", "0,1\n1,0\n", "id\n1\n2\n"])
def test_costs_without_numbers_of_rows_are_not_warned_of(folder, text):
    (folder / "c.csv").write_text(text)
    assert invoke("--cost-matrix", "c.csv", "--budget", 1).stderr.count("numbers") == 0


@pytest.mark.parametrize("costs", ["u,v\n0,9\n", ",u,v\nr,0,9\n"])
def test_a_row_of_masses_goes_by_the_names_above_it(folder, costs):
    (folder / "c.csv").write_text(costs)
    (folder / "b.csv").write_text("v,u\n100,1\n")
    (folder / "other.csv").write_text("first,second\n1,100\n")
    for masses in ("b.csv", "other.csv"):
        options = ["--cost-matrix", "c.csv", "--b", masses, "--unbalanced", "10,1e4", "--out", "-"]
        received = {line["column_label"]: float(line["mass"]) for line in plan_of(invoke(*options))}
        assert received["v"] == pytest.approx(100.0, rel=0.01)
    (folder / "b.csv").write_text("v,w\n100,1\n")
    answer = invoke("--cost-matrix", "c.csv", "--b", "b.csv")
    assert (answer.exit_code, answer.stderr) == (2, "Error: b.csv has no mass for 'u'\n")


def test_a_matrix_with_names_is_matched_with_those_of_the_points(folder):
    (folder / "x.csv").write_text("name,x\nb,0\na,1\n")
    (folder / "y.csv").write_text("name,x\nv,0\nu,1\n")
    (folder / "c.csv").write_text(",u,v\na,9,2\nb,9,9\n")
    options = ["x.csv", "y.csv", "--label-column", "name", "--cost-matrix", "c.csv", "--kernel", "delta"]
    (link,) = plan_of(invoke(*options, "--budget", 1, "--out", "-"))
    assert (link["row"], link["column"], link["row_label"], link["column_label"]) == ("1", "0", "a", "v")
    (folder / "c.csv").write_text(",u,w\na,9,2\nb,9,9\n")
    answer = invoke(*options)
    assert (answer.exit_code, answer.stderr) == (2, "Error: c.csv has no column for 'v'\n")


def test_tables_with_names_are_read_alike(folder):
    (folder / "t.csv").write_text("sep=;\nplant;vans;cabs\nLeeds;6,07;-2\nLyon, France;1,500;,5\n")
    table = labelled.read_labelled(folder / "t.csv", negative=True)
    assert (table.rows, table.columns) == (["Leeds", "Lyon, France"], ["vans", "cabs"])
    assert table.values.tolist() == [[6.07, -2.0], [1.5, 0.5]]


@pytest.mark.parametrize("cell", ['"6,07"', "10%", "1_000", '"1,234.5"'])
def test_tables_with_names_refuse_what_is_no_number(folder, cell):
    (folder / "t.csv").write_text(f"plant,vans\nLeeds,{cell}\n")
    with pytest.raises(ValueError, match=r"line 2 \(row 'Leeds'\), column 'vans': '.*' is not a number: write numbers"):
        labelled.read_labelled(folder / "t.csv")


# --- hostile files ---------------------------------------------------------------------------------------------------


def test_an_archive_that_unpacks_to_much_more_than_its_size_is_refused(tmp_path, monkeypatch):
    """Zeros and runs of one number: an error before memory is taken for them."""
    pyarrow = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    zeros = np.zeros((2**20, 1))
    np.savez_compressed(tmp_path / "x.npz", x=zeros)
    pq.write_table(pyarrow.table({"x": zeros[:, 0]}), tmp_path / "x.parquet")
    for name in ("x.npz", "x.parquet"):
        assert len(reading.read_points(tmp_path / name, "X").points) == len(zeros)
    monkeypatch.setattr(table, "_UNPACKED", (2**20, 100))
    for name in ("x.npz", "x.parquet"):
        with pytest.raises(ValueError, match=f"{name} would unpack to 0.0 GiB, more than 100 times its size"):
            reading.read_points(tmp_path / name, "X")


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_a_header_that_promises_more_than_there_is(name, tmp_path):
    path, header = tmp_path / name, io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**46, 2)})
    if path.suffix == ".npy":
        path.write_bytes(header.getvalue() + bytes(64))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", header.getvalue() + bytes(64))
    with pytest.raises(ValueError, match=r"not a NumPy file of numbers|not an array of numbers"):
        reading.read_points(path, "X")


def test_pickled_objects_are_never_loaded(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.array([_Trap()], dtype=object))
    with pytest.raises(ValueError, match="not an array of numbers"):
        reading.read_points(path, "X")
    assert not _Trap.sprung


class _Trap:
    """An object that tells when it is unpickled."""

    sprung = False

    def __setstate__(self, state):
        _Trap.sprung = True

    def __getstate__(self):
        return {"set": True}


def test_a_parquet_file_with_changed_bytes_is_read_or_refused(tmp_path):
    """Headers that lie about sizes and offsets: numbers or one error that names the file."""
    pyarrow, rng = pytest.importorskip("pyarrow"), np.random.default_rng(0)
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    pq.write_table(pyarrow.table({"x": rng.random(20), "y": rng.random(20)}), path)
    right, refused = path.read_bytes(), 0
    for _ in range(300):
        changed = bytearray(right)
        for place in rng.integers(0, len(right), 3):
            changed[place] = rng.integers(256)
        path.write_bytes(changed)
        try:
            reading.read_points(path, "X")
        except ValueError as error:
            refused += 1
            assert "x.parquet" in str(error)  # noqa: PT017
    assert refused > 100
