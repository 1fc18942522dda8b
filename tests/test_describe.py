"""Results as tables, graphs and pictures."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import sparsetransport as st

RNG = np.random.default_rng(0)
COSTS = RNG.random((4, 3))
ROWS, COLS = list("pqrs"), list("xyz")


@pytest.fixture(scope="module")
def plain():
    return st.solve(COSTS, budget=4)


def check(frame, result, rows, cols):
    """The links by name, with their masses and costs to the bit."""
    assert list(frame["source"]) == [rows[i] for i in result.rows]
    assert list(frame["target"]) == [cols[j] for j in result.cols]
    np.testing.assert_array_equal(np.asarray(frame["mass"]), result.mass)
    np.testing.assert_array_equal(np.asarray(frame["cost"]), COSTS[result.rows, result.cols])


def test_a_table_of_numbers(plain):
    pd = pytest.importorskip("pandas")
    frame = plain.to_frame()
    assert isinstance(frame, pd.DataFrame)
    check(frame, plain, range(4), range(3))


def test_a_table_of_labels(plain):
    pd = pytest.importorskip("pandas")
    check(st.solve(pd.DataFrame(COSTS, ROWS, COLS), budget=4).to_frame(), plain, ROWS, COLS)


def test_a_table_of_the_library_that_the_data_came_in(plain):
    """Its labels are in a column of strings."""
    pl = pytest.importorskip("polars")
    costs = pl.DataFrame({"name": ROWS} | dict(zip(COLS, COSTS.T, strict=True)))
    masses = pl.DataFrame({"who": ROWS[::-1], "mass": [0.4, 0.3, 0.2, 0.1]})
    result = st.solve(costs, masses, budget=4)
    np.testing.assert_array_equal(result.problem.a, [0.1, 0.2, 0.3, 0.4])
    frame = result.to_frame()
    assert isinstance(frame, pl.DataFrame)
    check(frame, result, ROWS, COLS)
    points = pl.DataFrame({"name": ROWS, "u": COSTS[:, 0], "v": COSTS[:, 1]})
    sample = st.solve_sample(points, points.select("v", "u", "name").reverse(), budget=4, kernels=st.Delta())
    assert all(source == target for source, target, _, _ in sample.to_frame().iter_rows())
    assert isinstance(sample.to_frame("pandas"), pytest.importorskip("pandas").DataFrame)
    with pytest.raises(ValueError, match=r"library must be one of 'pandas', 'polars', .*, got 'pola'"):
        sample.to_frame("pola")


def test_a_graph_has_all_points(plain):
    pytest.importorskip("networkx")
    graph = plain.to_networkx()
    assert graph.number_of_nodes() == 7
    assert {(i, j): (data["mass"], data["cost"]) for (_, i), (_, j), data in graph.edges(data=True)} == {
        (i, j): (mass, COSTS[i, j]) for i, j, mass in zip(plain.rows, plain.cols, plain.mass, strict=True)
    }
    moved = [graph.nodes["source", i]["moved"] for i in range(4)]
    np.testing.assert_array_equal(moved, plain.marginal_a)


def elements(result):
    """The tags of the picture of a result, which is well-formed."""
    page = ElementTree.fromstring(result._repr_html_())
    return [element.tag.rpartition("}")[2] for element in page.iter()], "".join(page.itertext())


def test_a_notebook_shows_figures_and_a_picture(plain):
    tags, text = elements(plain)
    assert tags.count("line") == len(plain.mass)
    assert tags.count("circle") == 7
    for told in ("gap", "marginal error, rows", f"{len(plain.mass)} of 4 x 3"):
        assert told in text


@pytest.mark.parametrize("points", [np.zeros((3, 2)), RNG.normal(size=(3, 2)), RNG.normal(size=(3, 5))])
def test_pictures_of_points(points):
    tags, _ = elements(st.solve_sample(points, points + 1.0, budget=2, kernels=st.Delta()))
    assert "svg" in tags
    assert "nan" not in st.solve_sample(points, points, budget=2, kernels=st.Delta())._repr_html_()


def test_labels_are_text_in_a_page():
    pd = pytest.importorskip("pandas")
    costs = pd.DataFrame([[0.0, 1.0], [1.0, 0.0]], ["<script>", "b"], ["c", "d"])
    assert "<script>" not in st.solve(costs, budget=1)._repr_html_()


def test_a_console_shows_the_figures(plain):
    from rich.console import Console

    console = Console(record=True, width=100)
    with console.capture() as captured:
        console.print(plain)
    assert "marginal error, rows" in captured.get()
