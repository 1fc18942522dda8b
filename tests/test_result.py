"""What a solve gives back: names of POT's OTResult, a path one can walk, a status in words."""

import re

import numpy as np
import pytest
import scipy.sparse
from cases import KERNELS, instance, support
from hypothesis import given
from hypothesis import strategies as some
from strategies import instances

import sparsetransport as st
from sparsetransport.certify import certifier
from sparsetransport.result import _figure, _share

METHODS = ["omp", "stochastic", "residual", "greedy", "residual-greedy"]
BUDGETS = [9, st.PerColumn(1), st.PerRow(2), st.PerRow(1) & st.PerColumn(2)]


@pytest.fixture
def case():
    return instance(1, 8, 7, "rbf", 0.1, (5.0, 2.0))


# --- the plan --------------------------------------------------------------------------------------------------------


def test_the_plan_in_all_its_forms(case):
    """Dense, sparse and as lists of rows, columns and masses: one plan."""
    result = case.solve(budget=9)
    dense = np.zeros(case.shape)
    dense[result.rows, result.cols] = result.mass
    np.testing.assert_array_equal(result.plan, dense)
    assert isinstance(result.sparse_plan, scipy.sparse.coo_array)
    np.testing.assert_array_equal(result.sparse_plan.toarray(), dense)
    assert result.plan is result.plan


def test_arrays_are_the_users_to_change(case):
    """Normalised masses are the user's; the result keeps the plan that it proves something of."""
    result = case.solve(budget=9)
    before = result.sparse_plan.toarray()
    mass = result.mass
    mass /= mass.sum()
    result.rows[:], result.sparse_plan.data[:], result.marginal_a[:], result.potential_b[:] = 0, 0.0, 0.0, 0.0
    np.testing.assert_array_equal(result.sparse_plan.toarray(), before)
    np.testing.assert_allclose(result.marginal_a, before.sum(1))
    assert result.potential_b.any()


def test_values_and_marginals_are_those_of_the_plan(case):
    """``value`` is U, ``value_linear`` is <C, γ>, the marginals are the sums."""
    result = case.solve(budget=9)
    assert result.value == pytest.approx(case.value(result.plan))
    assert result.value_linear == pytest.approx((case.C * result.plan).sum())
    np.testing.assert_allclose(result.marginals[0], result.plan.sum(axis=1))
    np.testing.assert_allclose(result.marginals[1], result.plan.sum(axis=0))
    np.testing.assert_array_equal(result.marginal_a, result.marginals[0])
    np.testing.assert_array_equal(result.marginal_b, result.marginals[1])


@pytest.mark.parametrize("kernel", KERNELS)
def test_potentials_give_the_gradient(kernel):
    """The gradient at a pair without mass is C_ij - potential_a[i] - potential_b[j]; on the support it is -λ₂γ."""
    case = instance(1, 8, 7, kernel, 0.1, (5.0, 2.0))
    result = case.solve(budget=9)
    r = 2.0 * 5.0 * case.Ga @ (result.plan.sum(axis=1) - case.a)
    c = 2.0 * 2.0 * case.Gb @ (result.plan.sum(axis=0) - case.b)
    np.testing.assert_allclose(result.potential_a, -r, atol=1e-10)
    np.testing.assert_allclose(result.potential_b, -c, atol=1e-10)
    np.testing.assert_array_equal(result.potentials[0], result.potential_a)
    slack = case.C - result.potential_a[:, None] - result.potential_b
    np.testing.assert_allclose(slack[result.rows, result.cols], -0.1 * result.mass, atol=1e-9)


def test_the_names_of_pot_are_all_there(case):
    """Whoever knows POT's OTResult finds the same names here."""
    ot = pytest.importorskip("ot")
    result = case.solve(budget=9)
    wanted = "plan sparse_plan value value_linear potentials potential_a potential_b marginals marginal_a marginal_b"
    for name in [*wanted.split(), "status", "log"]:
        assert isinstance(getattr(ot.utils.OTResult, name), property)
        assert getattr(result, name) is not None


def test_barycentres_are_averages_of_where_the_mass_goes():
    """a_to_b[i] is the average of the points that row i sends to, b_to_a the other way; NaN where nothing moves."""
    X, Y = np.array([[0.0], [1.0], [50.0]]), np.array([[0.0], [2.0]])
    result = st.solve_sample(X, Y, [1.0, 1.0, 0.0], [1.0, 1.0], unbalanced=50.0, kernels=st.Delta(), budget=3)
    plan = result.plan
    expected = (plan @ Y)[:2] / plan.sum(axis=1)[:2, None]
    np.testing.assert_allclose(result.a_to_b[:2], expected)
    assert np.isnan(result.a_to_b[2]).all()  # it has no mass, and no warning
    np.testing.assert_allclose(result.b_to_a, (plan.T @ X) / plan.sum(axis=0)[:, None])


def test_barycentres_need_points(case):
    """From matrices there are no points to average: the error says what to call."""
    result = case.solve(budget=3)
    for name in ("a_to_b", "b_to_a"):
        with pytest.raises(ValueError, match="solve_sample"):
            getattr(result, name)


def test_results_describe_themselves(case):
    """The repr has the number of entries, the shape, the value and the status in words."""
    text = repr(case.solve(budget=9))
    assert "9 of 8x7 entries" in text
    assert "the budget is used up" in text
    assert f"{case.solve(budget=9).value:.4g}" in text


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("options", [{}, {"reclaim": False}, {"inner": "apgd"}, {"gap_tol": 0.5}])
def test_every_method_returns_the_same_type(case, method, options):
    """No flag changes what comes back."""
    result = case.solve(budget=5, method=method, rng=0, **options)
    assert type(result) is st.Result
    assert isinstance(result.status, st.Status)
    assert isinstance(result.value, float)
    assert isinstance(result.converged, bool)
    assert result.log["unbalanced"] == (5.0, 2.0)
    assert result.log["steps"] == len(result.path)


# --- status ----------------------------------------------------------------------------------------------------------


def test_the_status_says_why_it_ended(case):
    """Budget used up; optimum reached; nothing allowed helps; stopped; each a sentence."""
    assert case.solve(budget=3).status is st.Status.BUDGET_USED
    assert case.solve().status is st.Status.OPTIMAL
    with pytest.warns(st.SparseTransportWarning):
        assert case.solve(budget=57).status is st.Status.OPTIMAL
    assert case.solve(budget=56).status is st.Status.OPTIMAL
    assert case.solve(budget=st.PerColumn([1, 0, 0, 0, 0, 0, 0])).status is not st.Status.OPTIMAL
    assert case.solve(budget=9, callback=lambda step: True).status is st.Status.STOPPED
    assert all(len(str(status)) > 15 for status in st.Status)
    assert len({str(status) for status in st.Status}) == len(st.Status)


@given(instances((4, 4), regs=(0.125,)), some.integers(1, 8))
def test_a_status_of_optimal_is_true(case, k):
    """If the status says optimum, the value is that of the plan without a budget; if not, a pair still wants in."""
    result = case.solve(budget=k)
    free = case.solve().value
    if result.status is st.Status.OPTIMAL:
        assert result.value == pytest.approx(free, abs=1e-9)
    elif result.status is not st.Status.ALL_FORBIDDEN:
        slack = case.C - result.potential_a[:, None] - result.potential_b
        slack[result.rows, result.cols] = 0.0
        assert slack.min() < 0.0


# --- path ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("reclaim", [True, False])
def test_the_objective_falls_along_the_path(case, method, budget, reclaim):
    """Each step solves on a larger support: the objective never rises, and the last one is the value."""
    result = case.solve(budget=budget, method=method, reclaim=reclaim, polish=False, rng=0)
    path = result.path
    assert len(path) == len(path.pairs) == len(path.entries) > 0
    assert (np.diff(path.objective) <= 1e-10 * case.constant()).all()
    assert path.objective[0] < case.constant()
    assert path.objective[-1] == pytest.approx(result.value, rel=1e-9)
    assert path.entries[-1] == result.rows.size


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("options", [{}, {"polish": False}, {"reclaim": False}], ids=repr)
def test_the_path_has_a_plan_for_every_smaller_budget(case, method, budget, options):
    """``plan_at(k)`` has at most k entries, is optimal on its support, and improves with k."""
    result = case.solve(budget=budget, method=method, rng=0, **options)
    values = [case.constant()]
    for k in range(1, 10):
        part = result.path.plan_at(k)
        assert part.rows.size <= k
        assert part.value == pytest.approx(case.value(part.plan))
        assert part.kkt < 1e-10
        on_support = set(support(part))
        assert on_support <= set(result.path.support_at(k))
        values.append(part.value)
    assert (np.diff(values) <= 1e-9).all()
    assert result.path.plan_at(result.rows.size).value <= result.value + 1e-9
    assert result.path.plan_at(0).rows.size == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_plan_on_the_path_is_no_worse_than_that_of_the_smaller_budget(kernel):
    """OMP begins alike whatever the budget, so ``plan_at(k)`` is the plan for k, or a better one met later on."""
    case = instance(1, 8, 7, kernel, 0.1, (5.0, 2.0))
    path = case.solve(budget=12, polish=False).path
    for k in range(1, 12):
        alone = case.solve(budget=k, polish=False)
        np.testing.assert_array_equal(path.pairs[: len(alone.path)], alone.path.pairs)
        assert path.plan_at(k).value <= alone.value + 1e-10
    np.testing.assert_allclose(path.plan_at(2).plan, case.solve(budget=2, polish=False).plan, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("polish", [True, False])
def test_a_path_from_a_start_keeps_count(case, method, polish):
    """Begun with earlier pairs, used or not, ``plan_at(k)`` still has at most k entries."""
    start = [(i, j) for i in range(3) for j in range(3)]
    result = case.solve(budget=st.Uniform(12), method=method, polish=polish, start=start, rng=0)
    for k in range(13):
        assert result.path.plan_at(k).rows.size <= k


@given(instances(lowest=-1, regs=(0.0625, 1.0)), some.integers(1, 25))
def test_the_path_adds_up(case, k):
    """Pairs added less pairs gone are the entries, at every step; at the end they are the plan. Polish included."""
    m, n = case.shape
    result = case.solve(budget=min(k, m * n))
    path, held, first = result.path, set(), 0
    for step, pair in enumerate(map(tuple, path.pairs.tolist())):
        held.add(pair)
        held -= set(map(tuple, path.gone[first : path.gone_until[step]].tolist()))
        first = path.gone_until[step]
        assert len(held) == path.entries[step]
    assert held == set(support(result))


def test_paths_and_certificates_print_in_one_line(case):
    result = case.solve(budget=5)
    path, proof = result.path, result.certify()
    first, last = f"{path.objective[0]:.4g}", f"{path.objective[-1]:.4g}"
    assert repr(path) == f"Path({len(path)} steps to {path.entries[-1]} entries, objective from {first} to {last})"
    assert repr(st.solve([[np.inf]]).path) == "Path(0 steps)"
    assert repr(proof).startswith(
        f"Certificate(value={result.value:.6g}, lower_bound={proof.lower_bound:.6g}, relative"
    )
    assert len(repr(proof)) < 100


def test_a_negative_number_of_entries_is_an_error(case):
    """There is no plan with fewer entries than none."""
    with pytest.raises(ValueError, match=r"entries.*-1"):
        case.solve(budget=3).path.plan_at(-1)
    for entries in (2.5, 2.0, True, "two"):
        with pytest.raises(TypeError, match=rf"entries must be an int that is not negative, got {entries!r}"):
            case.solve(budget=3).path.plan_at(entries)


# --- certificate -----------------------------------------------------------------------------------------------------


def test_the_cheap_bound_comes_first_and_the_tight_one_stays(case):
    """``lower_bound`` is the cheap bound until ``certify`` was called; from then on the better one."""
    result = case.solve(budget=st.PerColumn(1))
    cheap = result.lower_bound
    assert result.gap == result.value - cheap
    assert result.relative_gap == pytest.approx(result.gap / result.value)
    proof = result.certify()
    assert isinstance(proof, st.Certificate)
    assert proof.lower_bound > cheap
    assert result.lower_bound == proof.lower_bound
    assert result.certify() is proof
    assert proof.value == result.value


def test_nobody_pays_for_a_bound_who_does_not_ask(case, monkeypatch):
    """Bounds are computed on first use, once."""
    calls = []
    original = certifier.Certifier.__call__
    monkeypatch.setattr(certifier.Certifier, "__call__", lambda *args: calls.append(1) or original(*args))
    result = case.solve(budget=4)
    assert not calls
    assert result.lower_bound == result.lower_bound
    assert len(calls) == 1


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
    assert lines["without a link"] == "0 of 2 rows and 2 of 3 columns"  # a row that wants nothing misses nothing
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
    with pytest.warns(st.SparseTransportWarning, match=r"the plan is empty: .* unbalanced = 1\.5 for the first link"):
        assert st.solve(C, unbalanced=1.0).rows.size == 0
    assert st.solve(st.Problem.from_matrices(C, unbalanced=1.499)).rows.size == 0
    assert st.solve(C, unbalanced=1.501).links.tolist() == [[0, 1]]


# --- the norm that was asked for, and points without a link ----------------------------------------------------------


def test_errors_are_told_in_the_norm_of_the_kernel(case):
    """From the definition, with the Gram matrices as arrays."""
    result = case.solve(budget=9)
    missed = result.plan.sum(1) - case.a, result.plan.sum(0) - case.b
    for told, by, gram, wanted in zip(result.kernel_errors, missed, (case.Ga, case.Gb), (case.a, case.b), strict=True):
        assert told == pytest.approx(np.sqrt(by @ gram @ by / (wanted @ gram @ wanted)))
    assert f"marginal errors {100 * result.kernel_errors[0]:.{int(result.kernel_errors[0] < 0.1)}f} %" in repr(result)
    delta = st.solve(case.C, case.a, case.b, budget=5)
    assert delta.kernel_errors[0] == pytest.approx(np.linalg.norm(delta.marginal_a - case.a) / np.linalg.norm(case.a))


def test_a_wide_kernel_says_that_fewer_links_are_enough():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(15, 2)) + 1.0
    wide = st.solve_sample(X, Y, budget=30, kernels=st.RBF(10.0))
    assert wide.status is st.Status.OPTIMAL
    sentence = f"{len(wide.mass)} of 30 links: at this bandwidth more would not lower the objective"
    assert sentence in repr(wide)
    assert f"status: {sentence}" in wide.summary()


def test_points_without_a_link_are_counted_and_named():
    pd = pytest.importorskip("pandas")
    X, Y = pd.DataFrame({"x": [0.0, 1.0, 5.0]}, list("pqr")), pd.DataFrame({"x": [0.0, 1.0]}, list("vw"))
    result = st.solve_sample(X, Y, budget=2, kernels=st.Delta())
    assert result.without_link == (["r"], [])
    assert "without a link: 1 of 3 rows (r) and 0 of 2 columns" in result.summary()
    with pytest.warns(st.SparseTransportWarning, match=r"a_to_b is NaN for 1 of 3 points, which have no link \(r\)"):
        assert np.isnan(result.a_to_b).tolist() == [[False], [False], [True]]
    assert not np.isnan(result.b_to_a).any()
