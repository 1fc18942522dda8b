"""A small version of the network-design experiment from end to end."""

import numpy as np
import pytest

from sparsetransport.experiments import flexibility, network_design
from sparsetransport.experiments.data_files import MissingDataError

CSV = "price,demand_mean,demand_std\n110,1000,200\n99,1100,300\n80,1400,250\n90,2500,340\n"
METHODS = [network_design.GSOT, network_design.OMP, *network_design.EPS, network_design.SHARED, network_design.DESIGN]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "deeper"
    folder.mkdir()
    (folder / flexibility.REAL).write_text(CSV, encoding="utf-8")
    return network_design.run(data=folder.parent, size=12, seeds=2, max_iter=20, gsot_iter=5)


def shares(table, method):
    row = next(row for row in table.rows if row[0] == method)
    return [float(text.split()[0]) for text in row[-1].split(" / ")]


def test_every_method_is_judged_both_ways_and_with_both_points(report):
    titles = [table.title for table in report.tables]
    assert sum(title.startswith("Expected profit") and "points" in title for title in titles) == 4
    for table in report.tables[:4]:
        assert [row[0] for row in table.rows][: len(METHODS)] == METHODS
        assert shares(table, "full flexibility") == [100.0] * 4
        for method in METHODS:
            assert all(0.0 < share <= 100.01 for share in shares(table, method))
        assert "paper" not in " ".join(table.columns), "the paper's numbers are for its own size"


def test_sharing_links_earns_more_than_splitting_them(report):
    """Held out: ours above 85 % of full flexibility, the paper's split and GSOT below two thirds."""
    for table in (report.tables[1], report.tables[3]):
        for method in (network_design.SHARED, network_design.DESIGN):
            assert min(shares(table, method)) > 85.0
        for method in (network_design.GSOT, network_design.OMP):
            assert max(shares(table, method)) < 67.0


def test_the_real_data_has_its_table(report):
    table = next(table for table in report.tables if "real products" in table.title)
    assert [name for name in table.columns if name.startswith("l = ")] == [
        f"l = {k}" for k in (4, 6, 8, 10, 12, 14, 16)
    ]
    assert shares(table, network_design.DESIGN)[-1] > 99.0
    assert len(shares(table, network_design.GSOT)) == 7
    assert len(shares(table, "long chain")) == 1


def test_the_report_is_written_with_its_pictures(report, tmp_path):
    paths = report.write(tmp_path)
    assert [path.name for path in paths] == ["table.md", "table.json", "profit.png", "network.png"]
    assert all(path.stat().st_size > 5_000 for path in paths[2:])


def test_without_the_real_data_its_table_is_left_out(monkeypatch, tmp_path):
    monkeypatch.delenv("SPARSETRANSPORT_DATA", raising=False)
    with pytest.raises(MissingDataError, match="this needs the real data"):
        flexibility.find(None)
    report = network_design.run(data=tmp_path, size=12, seeds=1, max_iter=2, gsot_iter=2)
    assert not any("real products" in table.title for table in report.tables)
    assert any("real_process_flexibility.csv is not under" in note for note in report.notes)


def test_normalised_plants_are_one_point():
    """So that profits depend on the product alone; without normalising they do not."""
    one, other = (flexibility.synthetic(3, size=9, normalised=normalised) for normalised in (True, False))
    assert np.ptp(one.profit, axis=0).max() < 1e-12
    assert np.ptp(other.profit, axis=0).min() > 0.05
    np.testing.assert_allclose(one.train, other.train)
    np.testing.assert_allclose(one.train.sum(axis=1), 1.0)
    assert one.train.shape == one.test.shape == (10, 9)
    assert not np.allclose(one.train, one.test)
    assert one.as_published().train is one.test


def test_the_real_market_follows_its_file(tmp_path):
    path = tmp_path / flexibility.REAL
    path.write_text(CSV, encoding="utf-8")
    market = flexibility.real(path, 0)
    np.testing.assert_allclose(market.supply, np.array([1000, 1100, 1400, 2500]) / 6000)
    np.testing.assert_allclose(market.profit, np.tile(np.array([110, 99, 80, 90]) / 110, (4, 1)))
    assert abs(market.train.mean(axis=0) - market.supply).max() < 0.1


def test_more_seeds_of_the_published_protocol_are_more_of_the_same():
    """What `--full` adds is what the table has for that seed, and it is joined to it."""
    markets = [flexibility.synthetic(3, size=12).as_published()]
    usual = network_design._measure(markets, (12, 20, 24), max_iter=20, gsot_iter=5)
    options = {"size": 12, "max_iter": 20, "gsot_iter": 5, "progress": network_design.Quiet()}
    again = network_design._published([3, 4], (12, 20), **options)
    assert set(again) == {(method, count) for method in network_design.PAPER for count in (12, 20)}
    for place, cell in again.items():
        assert len(cell.profits) == 2
        assert cell.profits[0] == pytest.approx(usual[place].profits[0], rel=1e-9)
    joined = network_design._joined(usual, again, (12, 20))
    assert all(len(cell.profits) == len(cell.shares) == 3 for cell in joined.values())
    alone = network_design._joined(usual, {}, (12, 20))
    assert all(cell.profits == usual[place].profits for place, cell in alone.items())


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_the_comparison_with_the_paper_says_what_differs(shift):
    """Runs around the paper's means differ nowhere; of those that are far off one is named, and nothing else is."""
    rng = np.random.default_rng(0)
    counts, cells = (100, 175, 250), {}
    for method, numbers in network_design.PAPER.items():
        for count, (mean, deviation) in zip(counts, numbers, strict=True):
            runs = rng.normal(size=25)
            runs = mean + deviation * (runs - runs.mean()) / runs.std()
            cells[method, count] = network_design.Cell(runs.tolist(), [], [])
    off = network_design.OMP, 175
    cells[off] = network_design.Cell([profit + shift for profit in cells[off].profits], [], [])
    report = network_design.Report("x", "x")
    network_design._compare_with_paper(report, cells, counts)
    within, same = report.claims
    assert "25 seeds: in 15 within" in within.text if not shift else "25 seeds: in 14 within" in within.text
    assert within.holds == same.holds == (not shift)
    assert ("they do in non-stochastic OMP, l = 175" in same.text) == bool(shift)
    (table,) = report.tables
    assert len(table.rows) == 15
    p = {row[0]: row[-1] for row in table.rows}
    assert (p["non-stochastic OMP, l = 175"] < 1e-6) == bool(shift)
    assert min(value for name, value in p.items() if name != "non-stochastic OMP, l = 175") > 0.9


@pytest.mark.long
def test_the_figures_of_the_full_experiment_hold():
    """The paper's size and five seeds: every claim but two.

    The ratio of times belongs to the machine. That all 15 means are within the paper's deviations does not hold; that
    none differs from the paper's by more than chance does.
    """
    report = network_design.run()
    open_ones = ("times faster", "within one standard deviation")
    failed = [claim.text for claim in report.claims if not claim.holds and not any(t in claim.text for t in open_ones)]
    assert not failed
    assert any("differ significantly" in claim.text for claim in report.claims)
