"""``sparsetransport design``: labelled files in, links and a picture out, and complaints that name the place."""

import csv
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from sparsetransport import cli
from sparsetransport.apps.network_design import evaluate
from sparsetransport.cli.design import _range

PLANTS, PRODUCTS = ["Leeds", "Porto", "Lyon"], ["1", "trams", "cabs, red", "carts"]
PROFIT = np.array([[3.0, 2.0, 1.0, 1.0], [1.0, 3.0, 2.0, 1.0], [1.0, 1.0, 3.0, 2.5]])
DEMAND = np.array([[8.0, 12.0, 5.0, 5.0], [12.0, 8.0, 10.0, 2.0], [5.0, 9.0, 9.0, 9.0]])


def write(path, header, names, values):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([name, *row] for name, row in zip(names, values, strict=True))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three files; supply and demand have their names in another order than the profits."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "profit.csv", ["plant", *PRODUCTS], PLANTS, PROFIT)
    write(tmp_path / "supply.csv", ["plant", "capacity"], PLANTS[::-1], [[11.0], [10.0], [9.0]])
    write(tmp_path / "demand.csv", ["scenario", *PRODUCTS[::-1]], ["low", "mid", "high"], DEMAND[:, ::-1])
    return tmp_path


def run(*more, links=6):
    files = ["--profit", "profit.csv", "--supply", "supply.csv", "--demand", "demand.csv", "--links", str(links)]
    return CliRunner().invoke(cli.app, ["design", *files, *map(str, more)])


def links_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_links_come_out_with_their_names(folder):
    """The file holds the links in order of choice, and the table says what the linear program says."""
    answer = run("--out", "network.csv")
    assert answer.exit_code == 0, answer.output
    rows = links_of(folder / "network.csv")
    assert [row["order"] for row in rows] == [str(k + 1) for k in range(len(rows))]
    assert 4 <= len(rows) <= 6
    pairs = [(PLANTS.index(row["plant"]), PRODUCTS.index(row["product"])) for row in rows]
    earned = evaluate(pairs, PROFIT, [9.0, 10.0, 11.0], DEMAND)
    assert f"{earned.expected:.6g}" in answer.output
    np.testing.assert_allclose([float(row["expected_flow"]) for row in rows], earned.expected_flows, atol=1e-6)
    assert [float(row["profit"]) for row in rows] == [PROFIT[pair] for pair in pairs]
    for name in ("full flexibility", "dedicated", "long chain", "demand unmet", "capacity idle", "capacity used"):
        assert name in answer.output


def test_rounding_is_no_unmet_demand(folder):
    """Demand that is served to the last digit but some is served."""
    write(folder / "demand.csv", ["scenario", *PRODUCTS], ["low", "lower"], DEMAND[:2] / 3.0)
    assert "demand unmet: 0 expected, 0 at the most" in run(links=12).stdout
    left = np.array([[1e-15, 0.0], [0.2, 0.1]])
    assert _range(1e-15, left[:1], 10.0) == "0 expected, 0 at the most"
    assert _range(0.15, left, 10.0) == "0.15 expected, 0.3 at the most"


def test_the_output_may_be_the_terminal(folder):
    answer = run("--out", "-")
    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[0] == "order,plant,product,expected_flow,profit,fixed"
    assert "full flexibility" not in answer.stdout


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_a_picture(folder, ending):
    pytest.importorskip("matplotlib")
    answer = run("--plot", f"network.{ending}")
    assert answer.exit_code == 0, answer.output
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[ending]
    assert (folder / f"network.{ending}").read_bytes().startswith(start)


def test_names_with_dollars_and_signs_that_a_font_lacks(folder):
    pytest.importorskip("matplotlib")
    write(folder / "profit.csv", ["plant", *PRODUCTS], ["A$#B$", "$10 {$", "工厂"], PROFIT)
    write(folder / "supply.csv", ["plant", "capacity"], ["A$#B$", "$10 {$", "工厂"], [[9.0], [10.0], [11.0]])
    answer = run("--plot", "network.png")
    assert answer.exit_code == 0, answer.output
    assert (folder / "network.png").exists()
    assert answer.stderr.count("Warning") == 1
    assert "has no 工厂: network.png has boxes for them" in answer.stderr


def test_links_stay_when_the_picture_fails(folder, monkeypatch):
    pytest.importorskip("matplotlib")

    def fail(*_, **__):
        raise ValueError("no ink")

    monkeypatch.setattr("sparsetransport.cli.design.draw", fail)
    answer = run("--out", "network.csv", "--plot", "network.png")
    assert answer.exit_code == 1
    assert "cannot draw network.png: no ink" in answer.stderr
    assert "links: network.csv" in answer.stdout
    assert "this design" in answer.stdout
    assert 4 <= len(links_of(folder / "network.csv")) <= 6
    assert sorted(path.name for path in folder.iterdir()) == ["demand.csv", "network.csv", "profit.csv", "supply.csv"]


def test_weights_of_scenarios_and_limits_of_each(folder):
    """Matched by name; the numbers are those of the function."""
    write(folder / "weights.csv", ["scenario", "weight"], ["high", "low", "mid"], [[7.0], [2.0], [1.0]])
    write(folder / "plants.csv", ["plant", "most"], ["Lyon", "Leeds", "Porto"], [[3], [1], [2]])
    write(folder / "products.csv", ["product", "most"], PRODUCTS, [[1], [2], [3], [1]])
    more = ("--weights", "weights.csv", "--max-per-plant", "plants.csv", "--max-per-product", "products.csv")
    answer = run(*more, "--out", "network.csv")
    assert answer.exit_code == 0, answer.output
    pairs = [(PLANTS.index(row["plant"]), PRODUCTS.index(row["product"])) for row in links_of(folder / "network.csv")]
    earned = evaluate(pairs, PROFIT, [9.0, 10.0, 11.0], DEMAND, weights=[2.0, 1.0, 7.0])
    assert f"{earned.expected:.6g}" in answer.stdout
    assert (np.bincount([i for i, _ in pairs], minlength=3) <= [1, 2, 3]).all()
    assert (np.bincount([j for _, j in pairs], minlength=4) <= [1, 2, 3, 1]).all()
    spoil(folder, "plants.csv", "Lyon,3", "Lyon,2.5")
    answer = run(*more)
    assert answer.exit_code == 2
    assert "plants.csv, row 'Lyon': must be a whole number, got 2.5" in answer.stderr


def test_fewer_links_than_asked_for_are_explained(folder):
    limits = "--max-per-plant", 1
    assert "fewer links: 3 of 6, since no others are within --max-per-plant\n" in run(*limits).stdout
    limits += ("--max-per-product", 1)
    assert (
        "fewer links: 3 of 6, since no others are within --max-per-plant and --max-per-product\n" in run(*limits).stdout
    )
    never = [f'{plant},"{product}"' for i, plant in enumerate(PLANTS) for j, product in enumerate(PRODUCTS) if i != j]
    (folder / "never.csv").write_text("\n".join(["plant,product", *never]), encoding="utf-8")
    assert "fewer links: 3 of 6, since no others may be built" in run("--forbidden", "never.csv").stdout
    assert "fewer links" not in run(links=5).stdout
    write(folder / "demand.csv", ["scenario", *PRODUCTS], ["only"], [[9.0, 0.0, 0.0, 0.0]])
    why = "since no other one that may be built is of use\n"
    assert f"fewer links: 1 of 12, {why}" in run(links=12).stdout
    why = "since no other one within --max-per-plant is of use\n"
    assert f"fewer links: 1 of 12, {why}" in run("--max-per-plant", 3, links=12).stdout


def test_time_to_compile_is_told_apart(folder, monkeypatch):
    from contextlib import contextmanager

    @contextmanager
    def timer(callback):
        yield
        callback(1e-6)

    run()
    assert "to compile" not in run().stdout
    monkeypatch.setattr("sparsetransport.cli.design.compile_timer", timer)
    assert ", and 0 ms to compile, the first time only" in run().stdout


def test_fixed_and_forbidden_links_and_limits(folder):
    (folder / "old.csv").write_text("Plant,PRODUCT,since\nLyon,1,1999\nLyon,1,2001\n", encoding="utf-8")
    (folder / "never.csv").write_text('product,plant\n1,Leeds\n"cabs, red",Lyon\n', encoding="utf-8")
    more = ("--fixed", "old.csv", "--forbidden", "never.csv", "--max-per-plant", 2, "--max-per-product", 2)
    answer = run(*more, "--out", "network.csv", links=5)
    assert answer.exit_code == 0, answer.output
    rows = links_of(folder / "network.csv")
    assert (rows[0]["plant"], rows[0]["product"], rows[0]["fixed"]) == ("Lyon", "1", "yes")
    assert all(row["fixed"] == "no" for row in rows[1:])
    pairs = [(row["plant"], row["product"]) for row in rows]
    assert ("Leeds", "1") not in pairs
    assert ("Lyon", "cabs, red") not in pairs
    assert max(pairs.count(pair) for pair in pairs) == 1
    assert max([plant for plant, _ in pairs].count(name) for name in PLANTS) <= 2
    assert run("--fixed", "old.csv", "--fixed-free", "--out", "free.csv", links=1).exit_code == 0
    assert len(links_of(folder / "free.csv")) == 2


def test_a_link_that_is_fixed_and_forbidden(folder):
    """Both places are named, by file and line, and nothing is chosen."""
    (folder / "old.csv").write_text("plant,product\nLeeds,1\nLyon,carts\n", encoding="utf-8")
    (folder / "never.csv").write_text("since,product,plant\n1999,1,Porto\n\n2001,carts,Lyon\n", encoding="utf-8")
    answer = run("--fixed", "old.csv", "--forbidden", "never.csv", "--out", "network.csv")
    assert answer.exit_code == 2
    assert answer.stderr == (
        "Error: never.csv, line 4, columns 'plant' and 'product': the link of 'Lyon' and 'carts' cannot be forbidden, "
        "it is fixed by old.csv, line 3\n"
    )
    assert not (folder / "network.csv").exists()


def test_held_out_scenarios_get_their_columns(folder):
    write(folder / "later.csv", ["scenario", *PRODUCTS], ["a", "b"], DEMAND[:2])
    answer = run("--held-out", "later.csv")
    assert answer.exit_code == 0
    assert "held out" in answer.output


def spoil(folder, name, old, new):
    text = (folder / name).read_text(encoding="utf-8")
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("supply.csv", "Porto", "Oporto", "supply.csv has no row 'Porto', which profit.csv has"),
        ("supply.csv", "Leeds,9.0", "Leeds,9.0\nRome,3", "supply.csv, row 'Rome': profit.csv has nothing of that name"),
        (
            "supply.csv",
            "Porto,10.0",
            "Porto,-10",
            "supply.csv, line 3 (row 'Porto'), column 'capacity': must not be negative",
        ),
        ("supply.csv", "10.0", "ten", "supply.csv, line 3 (row 'Porto'), column 'capacity': 'ten' is not a number"),
        ("supply.csv", "plant,capacity", "plant,capacity,more", "supply.csv, line 2: 2 cells where line 1 has 3"),
        ("demand.csv", "carts", "charts", "demand.csv has no column 'carts', which profit.csv has"),
        (
            "demand.csv",
            "mid,2.0",
            "mid,nan",
            "demand.csv, line 3 (row 'mid'), column 'carts': nan is not a finite number",
        ),
        ("demand.csv", "mid,2.0", "mid,", "demand.csv, line 3 (row 'mid'), column 'carts': the cell is empty"),
        (
            "demand.csv",
            "mid,2.0",
            "mid,-2",
            "demand.csv, line 3 (row 'mid'), column 'carts': must not be negative, got -2",
        ),
        ("demand.csv", "mid", "low", "demand.csv, line 3: the row 'low' appears twice, first in line 2"),
        ("profit.csv", "trams", "", "profit.csv, column 3: the column has no name"),
        ("profit.csv", "Porto", "Leeds", "profit.csv, line 3: the row 'Leeds' appears twice"),
        ("profit.csv", "plant", "Plan 2024,,,,\nplant", "profit.csv, line 1 must name the columns; if it is a title"),
        (
            "demand.csv",
            "scenario",
            "in tons\nscenario",
            "demand.csv, line 2: 5 cells where line 1 has 1 "
            "(cells are separated by commas, semicolons or tabs; a title above the header must go)",
        ),
    ],
)
def test_bad_cells_are_named_by_file_row_and_column(folder, name, old, new, message):
    spoil(folder, name, old, new)
    answer = run("--out", "network.csv")
    assert answer.exit_code == 2
    assert message in answer.output.replace("\n", " ") or message in answer.output
    assert not (folder / "network.csv").exists()


@pytest.mark.parametrize("name", ["supply.csv", "weights.csv", "limits.csv"])
def test_names_and_numbers_need_no_header(folder, name):
    """A first line that begins with one of the names is none; one that does not is, whatever its number."""
    write(folder / "weights.csv", ["scenario", "2030"], ["high", "low", "mid"], [[7.0], [2.0], [1.0]])
    write(folder / "limits.csv", ["plant", "2030"], PLANTS, [[1], [2], [2]])
    more = ("--weights", "weights.csv", "--max-per-plant", "limits.csv", "--out", "-")
    whole = run(*more)
    assert whole.exit_code == 0, whole.output
    lines = (folder / name).read_text(encoding="utf-8").splitlines()
    (folder / name).write_text("\n".join(lines[1:]), encoding="utf-8")
    answer = run(*more)
    assert (answer.exit_code, answer.stdout) == (0, whole.stdout)
    (folder / name).write_text("\n".join(lines[1:-1]), encoding="utf-8")
    assert f"{name} has no row " in run(*more).stderr
    (folder / name).write_text("\n".join([*lines[1:-1], "Rome,-1"]), encoding="utf-8")
    assert f"{name}, line 3 (row 'Rome'), column 2: must not be negative, got -1" in run(*more).stderr


def test_thousands_with_points_are_not_read_as_decimals(folder):
    """Beside profits with decimal commas, 1.200 is hardly 1.2."""
    text = (folder / "profit.csv").read_text(encoding="utf-8").replace('"cabs, red"', "cabs. red")
    (folder / "profit.csv").write_text(
        text.replace(",", ";").replace(".0", ",5").replace("2.5", "2,5"), encoding="utf-8"
    )
    (folder / "supply.csv").write_text("plant;capacity\nLeeds;1.200\nPorto;1.150\nLyon;1.900\n")
    answer = run()
    assert answer.exit_code == 2
    assert answer.stderr == (
        "Error: supply.csv, line 2 (row 'Leeds'), column 'capacity': '1.200' is not a number, "
        "as it may be 1.2 or 1200: write the one that is meant\n"
    )


def test_no_scenario(folder):
    (folder / "demand.csv").write_text("scenario,1,trams,carts\n", encoding="utf-8")
    answer = run()
    assert answer.exit_code == 2
    assert "demand.csv has no scenarios" in answer.output


def test_fewer_links_than_are_there(folder):
    (folder / "old.csv").write_text("plant,product\nLyon,1\nLeeds,1\n", encoding="utf-8")
    answer = run("--fixed", "old.csv", links=1)
    assert answer.exit_code == 2
    assert "--links 1 is fewer than the 2 links of old.csv" in answer.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plant,thing\nLyon,1\n", "old.csv must have a column 'product', it has 'plant', 'thing'"),
        ("plant,product\nLyon,ships\n", "old.csv, line 2, column 'product': there is no product 'ships'"),
        ("", "old.csv is empty"),
    ],
)
def test_bad_links(folder, text, message):
    (folder / "old.csv").write_text(text, encoding="utf-8")
    answer = run("--fixed", "old.csv")
    assert answer.exit_code == 2
    assert message in answer.output


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--out", "network.xlsx"), "--out network.xlsx must end in .csv"),
        (("--plot", "network.gif"), "--plot network.gif must end in .png, .pdf or .svg"),
        (("--out", "profit.csv"), "--out profit.csv would overwrite the input"),
        (("--max-per-plant", "0"), "--max-per-plant must be a positive int, got 0"),
        (("--fixed-free",), "--fixed-free needs --fixed"),
        (
            ("--supply", "at-most"),
            "--supply must be a file, got at-most: for how much of the demand to serve use --serve",
        ),
        (("--demand", "exact"), "--demand must be a file, got exact: for how much of the demand to serve use --serve"),
        (("--max-per-plant", "many.csv"), "cannot read many.csv: No such file or directory"),
        (("--out", "/proc/network.csv"), "cannot open /proc/network.csv: "),
        (("--held-out", "nothing.csv"), "cannot read nothing.csv: No such file or directory"),
    ],
)
def test_bad_options(folder, more, message):
    answer = run(*more)
    assert answer.exit_code == 2
    assert message in answer.output


class TestNamesThatAreCommands:
    """What a spreadsheet runs, or a terminal obeys, comes out as plain text; and is read back as the same name."""

    NAMES = ("=cmd|' /C calc'!A0", "+Porto", "@Lyon")

    @pytest.fixture
    def hostile(self, folder):
        write(folder / "profit.csv", ["plant", *PRODUCTS], self.NAMES, PROFIT)
        write(folder / "supply.csv", ["plant", "capacity"], self.NAMES, [[9.0], [10.0], [11.0]])
        return folder

    def test_formulas(self, hostile):
        answer = run("--out", "network.csv")
        assert answer.exit_code == 0, answer.output
        assert {row["plant"] for row in links_of(hostile / "network.csv")} == {f"'{name}" for name in self.NAMES}

    def test_they_are_read_back(self, hostile):
        assert run("--out", "network.csv").exit_code == 0
        again = run("--fixed", "network.csv", "--out", "again.csv")
        assert again.exit_code == 0, again.output
        old, new = (
            [(row["plant"], row["product"]) for row in links_of(hostile / name)]
            for name in ("network.csv", "again.csv")
        )
        assert new[: len(old)] == old

    def test_escape_codes(self, folder):
        names = ["\x1b[31mLeeds\x1b[0m", "Porto\x07", "Lyon"]
        write(folder / "profit.csv", ["plant", *PRODUCTS], names, PROFIT)
        write(folder / "supply.csv", ["plant", "capacity"], names, [[9.0], [10.0], [11.0]])
        answer = run("--out", "-")
        assert answer.exit_code == 0, answer.output
        assert "\\x1b[31mLeeds\\x1b[0m" in answer.stdout
        assert not set("\x1b\x07") & set(answer.output)


@pytest.mark.parametrize(
    ("capacity", "message"),
    [
        (0.0, "supply.csv must have a capacity above zero, got zeros only"),
        (
            1e9,
            "supply.csv has a capacity of 3e+09 in all and demand.csv a demand of 32 at the most: give both in",
        ),
    ],
)
def test_amounts_that_make_no_sense_are_one_sentence(folder, capacity, message):
    write(folder / "supply.csv", ["plant", "capacity"], PLANTS, [[capacity]] * 3)
    answer = run()
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"Error: {message}")


def test_links_that_cost_something_and_demand_to_be_served(folder):
    """One number or a file for their cost, instead of --links; the profit that is left is told."""
    write(folder / "fees.csv", ["plant", *PRODUCTS[::-1]], PLANTS[::-1], np.full((3, 4), 4.0))
    files = ["design", "--profit", "profit.csv", "--supply", "supply.csv", "--demand", "demand.csv"]
    told = []
    for fee in ("4", "fees.csv"):
        answer = CliRunner().invoke(cli.app, [*files, "--link-cost", fee, "--out", "links.csv"])
        assert answer.exit_code == 0
        told.append(
            (answer.stdout.split("which leaves a profit of ")[1].split()[0], len(links_of(folder / "links.csv")))
        )
    assert told[0] == told[1]
    assert 3 <= told[0][1] < 6
    served = run("--serve", "exact", links=1)
    assert re.search(r"^Warning: --serve exact cannot be met in all scenarios: products .*carts lack", served.stderr)
    assert served.stderr.count("Warning") == 1
    for options, message in (
        ([], "give --links, --link-cost or both"),
        (["--links", "2", "--serve", "all"], "--serve"),
    ):
        bad = CliRunner().invoke(cli.app, [*files, *options])
        assert (bad.exit_code, message in bad.stderr) == (2, True)
