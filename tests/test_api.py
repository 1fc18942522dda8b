"""The functions that users call: arrays and a Problem mean the same, and older calls are answered."""

import numpy as np
import oracles
import pytest
from cases import KERNELS, instance, support
from hypothesis import given
from hypothesis import strategies as some
from strategies import instances

import sparsetransport as st
from sparsetransport import _checks
from sparsetransport.api import solve_after
from sparsetransport.options import Options

CASE = instance(3, 7, 6, "rbf", 0.1, (10.0, 4.0))


@pytest.mark.parametrize("budget", [None, 5, st.PerRow(1)], ids=repr)
@pytest.mark.parametrize("kernel", KERNELS)
def test_arrays_and_the_problem_of_them_have_the_same_plan(kernel, budget):
    case = instance(2, 7, 6, kernel, 0.1, (10.0, 4.0))
    options = {"kernels": (case.Ga, case.Gb), "unbalanced": case.unbalanced, "reg": case.reg}
    arrays = st.solve(case.C, case.a, case.b, budget=budget, **options)
    problem = case.solve(budget=budget)
    np.testing.assert_array_equal(arrays.plan, problem.plan)
    assert arrays.value == problem.value == pytest.approx(case.value(problem.plan), rel=1e-10)
    links = [(0, 0), (1, 2), (6, 5)]
    given = st.solve_support(case.C, case.a, case.b, links=links, **options)
    np.testing.assert_array_equal(given.plan, st.solve_support(case.problem(), links=links).plan)


@pytest.mark.parametrize(
    "given",
    [{"a": CASE.a}, {"b": CASE.b}, {"kernels": (CASE.Ga, CASE.Gb)}, {"unbalanced": 10.0}, {"reg": 0.1}],
    ids=lambda given: next(iter(given)),
)
def test_what_a_problem_settles_is_not_given_again(given):
    """Not even if it is the same; the error names it. The second argument was another thing once, and is no mass."""
    (name,) = given
    calls = [st.solve, st.solve_sample, lambda problem, **same: st.solve_support(problem, links=[(0, 0)], **same)]
    for call in calls:
        with pytest.raises(TypeError, match=f"^{name} must not be given together with a Problem"):
            call(CASE.problem(), **given)


def test_points_and_their_options_do_not_go_with_a_problem():
    for option in ({"Y": np.zeros((6, 2))}, {"metric": "cosine"}, {"normalize_cost": True}, {"forbidden": [(0, 0)]}):
        (name,) = option
        with pytest.raises(TypeError, match=f"^{name} must not be given together with a Problem"):
            st.solve_sample(CASE.problem(), **option)


OLDER = {
    "links": lambda *second, **named: st.solve_support(CASE.problem(), *second, **named).value,
    "within": lambda *second, **named: st.solve_fewest(CASE.problem(), *second, **named).result.value,
    "budgets": lambda *second, **named: [one.value for one in st.solve_sweep(CASE.problem(), *second, **named)],
}


@pytest.mark.parametrize(("name", "value"), [("links", [(0, 0), (1, 2)]), ("within", 0.2), ("budgets", [2, 4])])
def test_a_second_positional_argument_warns_and_works(name, value):
    """After a Problem it is what it used to be; by name there is no warning."""
    with pytest.warns(st.SparseTransportWarning, match=f"^{name} is a keyword argument now: write {name}=") as told:
        older = OLDER[name](value)
    assert len(told) == 1
    assert told[0].filename == __file__, "the line of the caller"
    assert older == OLDER[name](**{name: value})


def test_an_older_name_warns_and_works():
    with pytest.warns(st.SparseTransportWarning, match="solve_problem is deprecated: call solve"):
        older = st.solve_problem(CASE.problem(), budget=5)
    np.testing.assert_array_equal(older.plan, CASE.solve(budget=5).plan)
    with pytest.warns(st.SparseTransportWarning), pytest.raises(TypeError, match="call solve for an array of costs"):
        st.solve_problem(CASE.C)


@given(case=instances((4, 3)), chosen=some.sets(some.integers(0, 11)))
def test_masses_on_given_links_are_the_best_there(case, chosen):
    """Clarabel finds none better on the links that are not forbidden."""
    flat = sorted(chosen)
    result = st.solve_support(case.problem(), links=[divmod(k, 3) for k in flat])
    hessian, slope, constant = oracles.quadratic(*case.arrays)
    flat = [k for k in flat if np.isfinite(slope[k])]
    best = constant + (oracles.clarabel(hessian[np.ix_(flat, flat)], slope[flat]) if flat else 0.0)
    assert result.value == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert set(support(result)) <= {divmod(k, 3) for k in flat}


def test_a_start_of_another_shape_is_refused():
    for start in (np.ones((7, 5)), [(7, 0)], [(0, 6)]):
        with pytest.raises(ValueError, match=r"start must .* shape \(7, 6\)"):
            CASE.solve(start=start)


def test_a_plan_of_a_smaller_budget_is_never_better():
    """`solve_after` goes on from the best of them where the plain solve is worse."""
    problem, earlier = CASE.problem(), CASE.solve(budget=6, gap_tol=1e-9)
    options = Options.checked(budget=6, polish=False)
    plain = st.solve(problem, budget=6, polish=False)
    found = solve_after(problem, options, [earlier, CASE.solve(budget=2)])
    assert found.value <= min(plain.value, earlier.value) * (1.0 + 1e-12)
    assert solve_after(problem, options, []).value == plain.value
    assert found.rows.size <= 6


def test_results_have_the_kind_of_the_arrays_given():
    """A Problem holds NumPy arrays; masses of another library make a result of it."""
    torch = pytest.importorskip("torch")
    result = st.solve(CASE.C, torch.tensor(CASE.a), torch.tensor(CASE.b), budget=3, unbalanced=5.0)
    assert isinstance(result.plan, torch.Tensor)
    assert isinstance(CASE.solve(budget=3).plan, np.ndarray)
    assert _checks.to_numpy(result.plan).sum() > 0.0


def test_tensors_that_require_gradients_are_warned_of():
    """No gradient passes through NumPy: it would be missing without a word."""
    torch = pytest.importorskip("torch")
    costs, points = torch.rand(3, 4, requires_grad=True), torch.rand(5, 2, requires_grad=True)
    with pytest.warns(
        st.SparseTransportWarning, match=r"C requires a gradient, and none .*nn\.sparse_transport.*C\.det"
    ):
        st.solve(costs, budget=3)
    with pytest.warns(st.SparseTransportWarning, match=r"Y requires a gradient, and none .*nn\.sparse_transport"):
        st.solve_sample(points.detach(), points, budget=3)
    with torch.no_grad():
        st.solve(costs, budget=3)
    st.solve(costs.detach(), budget=3)


def test_a_plan_of_another_program_is_proved():
    """Its masses count as they are; a list of pairs gets the best ones; without a plan one is found."""
    rng = np.random.default_rng(0)
    C, a, b = rng.random((5, 4)), rng.lognormal(size=5), rng.lognormal(size=4)
    problem = st.Problem.from_matrices(C, a, b, unbalanced=5.0)
    plan = np.zeros((5, 4))
    plan[[0, 1, 2], [0, 1, 2]] = 0.1
    proof = st.lower_bound(problem, 3, plan)
    truth = (C * plan).sum() + 5.0 * (((plan.sum(1) - a) ** 2).sum() + ((plan.sum(0) - b) ** 2).sum())
    best = st.solve(problem, budget=3, gap_tol=1e-9)
    assert best.status is st.Status.OPTIMAL_PROVEN
    assert proof.value == pytest.approx(truth, rel=1e-12)
    assert proof.better.value == pytest.approx(best.value, rel=1e-9)
    assert proof.lower_bound == pytest.approx(best.value, rel=1e-8)
    assert st.lower_bound(problem, 3, [(0, 0), (1, 1), (2, 2)], effort="quick").value < proof.value
    assert st.lower_bound(problem, 3).lower_bound == pytest.approx(best.value, rel=1e-8)
    for wrong, message in ((plan + 0.1, "plan must be within the budget"), (-plan, "plan must not be negative")):
        with pytest.raises(ValueError, match=message):
            st.lower_bound(problem, 3, wrong)
    forbidden = st.Problem.from_matrices(np.where(plan > 0.0, np.inf, C), a, b, unbalanced=5.0)
    with pytest.raises(ValueError, match="forbidden"):
        st.lower_bound(forbidden, 3, plan)
