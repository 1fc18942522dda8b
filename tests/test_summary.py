"""What a result says of itself."""

import re
from dataclasses import replace

import numpy as np
import pytest
from cases import instance

import sparsetransport as st
from sparsetransport.summary import _figure, _share

METHODS = ["omp", "stochastic", "residual", "greedy", "residual-greedy"]
BUDGETS = [9, st.PerColumn(1), st.PerRow(2), st.PerRow(1) & st.PerColumn(2)]


@pytest.fixture
def case():
    return instance(1, 8, 7, "rbf", 0.1, (5.0, 2.0))


@pytest.mark.parametrize("solve", [st.solve, lambda C, a, b, **options: st.solve_batch([(C, a, b)], **options)[0]])
def test_mass_off_the_mark(solve):
    """What is missing or too much, whichever is more; of equal totals half of all errors."""
    a, b = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.4])
    result = solve(np.eye(3)[:, :2], a, b, budget=2, unbalanced=5.0)
    for reached, wanted, share in zip(result.marginals, (a, b), result.marginal_errors, strict=True):
        missing, beyond = np.maximum(wanted - reached, 0.0).sum(), np.maximum(reached - wanted, 0.0).sum()
        assert share == pytest.approx(max(missing, beyond) / wanted.sum())
        assert share > 0.0


def alone_in_a_batch(C, a=None, **options):
    return st.solve_batch([C if a is None else (C, a)], **options)[0]


@pytest.mark.parametrize("solve", [st.solve, alone_in_a_batch])
def test_an_empty_plan_says_why(solve):
    """Costs that nothing is worth; and nothing to move, which is another matter."""
    problem = st.Problem.from_matrices(np.ones((3, 2)), unbalanced=0.1)
    assert solve(problem).status is st.Status.EMPTY
    assert solve(problem, budget=2, gap_tol=1e-3).status is st.Status.EMPTY
    assert solve(np.ones((3, 2)), np.zeros(3), unbalanced=0.1).status is st.Status.OPTIMAL


def test_links_are_the_pairs_of_the_plan():
    """As of a shared result or a design; and they are a start."""
    result = st.solve(np.random.default_rng(0).random((5, 4)), budget=4)
    assert result.links.tolist() == [list(pair) for pair in zip(result.rows, result.cols, strict=True)]
    again = st.solve(np.random.default_rng(0).random((5, 4)), budget=4, start=result.links)
    assert again.value <= result.value * (1.0 + 1e-12)


@pytest.mark.parametrize(
    ("gap", "relative", "text"),
    [
        (262.4, 1.0, "262 (100.00 % of the objective)"),
        (26240.0, 0.31234, "26200 (31.23 % of the objective)"),
        (1.5e-9, 2e-9, "1.5e-09 (below 0.01 % of the objective)"),
        (0.0, 0.0, "0 (0.00 % of the objective)"),
    ],
)
def test_a_gap_is_written_for_people(gap, relative, text):
    assert f"{_figure(gap)} ({_share(relative)} the objective)" == text


def test_a_summary_says_what_a_result_knows():
    """One line a number, whatever kind of arrays; totals that differ are both told."""
    C, a, b = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0]]), [1.0, 0.0], [0.5, 0.5, 1.0]
    res = st.solve(C, a, b, budget=1, unbalanced=(2.0, 3.0))
    lines = dict(line.split(": ", 1) for line in res.summary().splitlines())
    assert lines["entries"] == "1 of 2 x 3"
    assert float(lines["objective"]) == pytest.approx(res.value, rel=1e-5)
    assert float(lines["lower bound"]) == pytest.approx(res.lower_bound, rel=1e-5)
    assert lines["mass moved"] == f"{res.mass[0]:.6g} of 1 to send and 2 to receive"
    assert lines["weight of marginals"] == "2 and 3"
    assert lines["marginal error, rows"] == f"{100 * res.marginal_errors[0]:.1f} %"
    assert lines["without a link"] == "0 of 2 rows and 2 of 3 columns (0, 1)"  # a row that wants nothing misses nothing
    assert lines["status"] == str(res.status)


@pytest.mark.parametrize(("a", "b"), [([0.0, 0.0], [0.0, 0.0]), ([0.0, 0.0], [1.0, 2.0]), ([1e8, 2e8], [1.0, 2.0])])
@pytest.mark.filterwarnings("ignore::sparsetransport.SparseTransportWarning")
def test_figures_without_a_meaning_are_not_told_in_per_cent(a, b):
    """No masses to compare with, or masses in other units: no `of 0`, no per cent beyond 1,000, no -0.00 %."""
    res = st.solve([[-1.0, 2.0], [3.0, 4.0]], a, b, budget=2, unbalanced=1.0)
    for text in (res.summary(), repr(res)):
        assert "of 0" not in text
        assert "-0.00 %" not in text
        assert all(float(share) < 1000.0 for share in re.findall(r"([\d.e+]+) %", text))


def test_a_gap_below_zero_is_rounding():
    assert _share(-1e-17) == "0.00 % of"
    assert _share(5e7) == "5e+07 times"


def test_an_empty_plan_warns_with_the_weight_that_moves_mass():
    """Below the weight named nothing moves, above it something does."""
    C = np.array([[4.0, 3.0], [5.0, 6.0]])
    with pytest.warns(st.SparseTransportWarning, match=r"the plan is empty: .* a weight above unbalanced = 1\.5, and"):
        assert st.solve(C, unbalanced=1.0).rows.size == 0
    assert st.solve(st.Problem.from_matrices(C, unbalanced=1.499)).rows.size == 0
    assert st.solve(st.Problem.from_matrices(C, unbalanced=1.501)).links.tolist() == [[0, 1]]


def test_a_small_weight_is_told_before_the_bandwidth():
    """The clouds of the README: a weight far below "auto" leaves links unused, and a warning names the one to take."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 2)), rng.normal(size=(80, 2)) + 1.0
    with pytest.warns(
        st.SparseTransportWarning, match=r"marginal errors are up to 47 % since unbalanced = 1 makes .*2182 here"
    ):
        light = st.solve_sample(X, Y, budget=50, unbalanced=1.0, effort="quick")
    assert len(light.mass) < 50
    assert "with this weight of marginals more would not lower the objective" in repr(light)
    assert "bandwidth" not in light.summary()
    st.solve_sample(X, Y, budget=50, unbalanced="0.001*auto", effort="quick")  # who says so knows
    st.solve(st.Problem.from_points(X, Y, unbalanced=1.0), budget=50, effort="quick")


def test_points_without_a_link_are_named_by_number():
    lines = st.solve(np.eye(8), budget=3).summary()
    assert re.search(
        r"without a link: 5 of 8 rows \(\d, \d, \d, \.\.\.\) and 5 of 8 columns \(\d, \d, \d, \.\.\.\)", lines
    )


def test_what_a_side_misses_is_told_in_its_words():
    """Supply is sent and demand delivered; errors below 0.1 % at each point take one sentence."""
    C, a, b = np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([2.0, 1.0]), np.array([1.5, 3.0])
    lines = st.solve(C, a, b, budget=2, unbalanced=np.inf).summary()
    for name in ("not sent", "unserved", "sent beyond the masses", "delivered beyond the masses"):
        assert f"\n{name}: " in lines
    assert "idle" not in lines
    soft = st.solve(C, a, a, unbalanced=1e4, sense=("<=", ">=")).summary()
    assert re.search(r"^unserved: [\d.e-]+ of 3, less than 0\.1 % at each of the columns$", soft, re.M)


def test_rounding_is_told_as_zero():
    C = np.ones((5, 5)) - np.eye(5)
    result = st.solve(C, np.full(5, 0.1), np.full(5, 0.1), unbalanced=30.0)
    dusty = replace(result, _parts=result._parts._replace(value=1.059e-28))
    assert "value=0," in repr(dusty)
    assert "objective: 0\n" in dusty.summary()
