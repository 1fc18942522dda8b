"""The unbudgeted optimum: found once, kept with its problem, and the same by every way to it."""

import pickle
from dataclasses import replace

import numpy as np
import oracles
import pytest
from cases import KERNELS, clouds, instance, problem_of

import sparsetransport as st
from sparsetransport import optimum
from sparsetransport.engine import newton
from sparsetransport.forest import simplex
from sparsetransport.inner.solvers import UnboundedError
from sparsetransport.optimum import is_listed, is_worth_a_jump, links_before_jump, optimum_from, unbudgeted_optimum


@pytest.fixture
def solved(monkeypatch):
    """Which ways to the optimum were gone."""
    ways = []

    def by_simplex(problem, rows, cols, mass, shares=None, seek=simplex.optimum):
        ways.append("simplex" if shares is None else "shares")
        return seek(problem, rows, cols, mass, shares)

    def by_newton(problem, *plan, seek=newton.optimum):
        ways.append("newton")
        return seek(problem, *plan)

    def solver(problem, *rest, make=optimum.OMPSolver, **options):
        ways.append("grown")
        return make(problem, *rest, **options)

    monkeypatch.setattr(simplex, "optimum", by_simplex)
    monkeypatch.setattr(newton, "optimum", by_newton)
    monkeypatch.setattr(optimum, "OMPSolver", solver)
    return ways


def value_of(problem, plan):
    return problem.value(plan.rows, plan.cols, plan.mass)


@pytest.mark.parametrize("reg", [0.0, 0.1])
@pytest.mark.parametrize("kernel", KERNELS)
def test_clarabel_finds_none_better(kernel, reg):
    for seed in range(3):
        case = instance(seed, 6, 5, kernel, reg, (5.0, 2.0))
        hessian, slope, constant = oracles.quadratic(*case.arrays)
        plan = unbudgeted_optimum(problem_of(seed, 6, 5, kernel, reg, (5.0, 2.0)), st.DEFAULT)
        assert plan.status is st.Status.OPTIMAL
        assert value_of(case.problem(), plan) == pytest.approx(constant + oracles.clarabel(hessian, slope), rel=1e-6)


@pytest.mark.parametrize("kernel", ["delta", "rbf"])
@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_it_is_found_once(kernel, reg, solved):
    problem = problem_of(0, 9, 8, kernel, reg, (10.0, 10.0))
    plan = unbudgeted_optimum(problem, st.DEFAULT)
    assert len(solved) == 1
    assert unbudgeted_optimum(problem, st.THOROUGH) is plan
    assert optimum_from(problem, plan) is plan
    assert problem.memo["optimum"] is plan
    assert len(solved) == 1


@pytest.mark.parametrize("reg", [0.0, 0.1, 5.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_solve_without_a_budget_leaves_nothing_to_solve(kernel, reg, solved):
    """Its plan is the optimum, so `.gap` and `.certify()` solve nothing again."""
    result = st.solve(problem_of(0, 9, 8, kernel, reg, (10.0, 10.0)))
    assert result.status is st.Status.OPTIMAL
    solved.clear()
    assert abs(result.gap) <= 1e-9 * result.value
    assert abs(result.certify().gap) <= 1e-9 * result.value
    assert solved == []


@pytest.mark.parametrize("reg", [0.0, 0.1])
@pytest.mark.parametrize("kernel", ["delta", "rbf"])
def test_proofs_of_several_budgets_need_it_once(kernel, reg, solved):
    """With a budget that reaches every point nothing else is to be solved for a proof."""
    problem = problem_of(0, 9, 8, kernel, reg, (10.0, 10.0))
    results = [st.solve(problem, budget=budget) for budget in (9, 12, 14)]
    for result in results:
        result.certify()
    own = ("simplex",) if problem.has_trees else ("newton", "grown")  # else of the one without reg
    assert len([way for way in solved if way in own]) <= 1
    solved.clear()
    for result in results:
        assert result.gap >= -1e-9
        assert result.path.plan_at(100).certify().lower_bound <= result.value * (1.0 + 1e-9)
    assert solved == []


@pytest.mark.parametrize("budget", [9, 40, st.PerRow(1)], ids=str)
def test_what_the_search_found_serves_the_proof(budget, solved):
    """`gap_tol` looks at the gap on the way, `.gap` afterwards: one optimum for both."""
    result = instance(0, 9, 8, "rbf", 0.1, (10.0, 10.0)).solve(budget=budget, gap_tol=1e-9)
    assert solved.count("grown") <= 1
    solved.clear()
    assert result.gap >= -1e-9
    assert result.certify().gap >= -1e-9
    assert solved == []


def test_other_problems_have_others():
    """Also those made by `replace`, with other masses, costs, weights or kernels."""
    problem = instance(0, 6, 5, "rbf", 0.1).problem()
    unbudgeted_optimum(problem, st.DEFAULT)
    for other in (replace(problem, reg=0.5), replace(problem, b=2.0 * problem.b), replace(problem)):
        assert "optimum" not in other.memo
    assert st.solve(replace(problem, reg=0.5)).value != st.solve(problem).value


def test_a_coarse_solve_is_not_kept_for_the_optimum():
    problem = problem_of(0, 9, 8, "delta", 0.0, (10.0, 10.0))
    st.solve(problem, tol=1e-2)
    exact = st.solve(problem_of(0, 9, 8, "delta", 0.0, (10.0, 10.0)))
    assert value_of(problem, unbudgeted_optimum(problem, st.DEFAULT)) == pytest.approx(exact.value, rel=1e-12)


def test_a_plan_that_a_budget_or_a_callback_ends_is_not_kept():
    for options in ({"budget": 3}, {"callback": lambda step: step.entries == 3}):
        problem = instance(0, 9, 8, "rbf", 0.1, (10.0, 10.0)).problem()
        result = st.solve(problem, **options)
        kept = problem.memo.get("optimum")
        assert kept is None or value_of(problem, kept) < result.value
        assert value_of(problem, unbudgeted_optimum(problem, st.DEFAULT)) < result.value


@pytest.mark.parametrize("kernel", ["delta", "rbf"])
def test_shares_are_not_kept(kernel):
    """They stand for another problem, which is solved as it stands."""
    problem, rng = problem_of(0, 9, 8, kernel, 0.0, (10.0, 10.0)), np.random.default_rng(0)
    shares = (rng.uniform(0.2, 1.0, 9), rng.uniform(0.2, 1.0, 8)) if kernel == "delta" else (np.ones(9), np.ones(8))
    plan = unbudgeted_optimum(problem, st.DEFAULT, shares)
    assert "optimum" not in problem.memo
    other = optimum.shared_out(problem, *shares)
    assert value_of(other, plan) == pytest.approx(st.solve(other).value, rel=1e-9)
    assert "optimum" not in problem.memo


@pytest.mark.parametrize("kernel", ["delta", "rbf"])
def test_a_problem_without_one_says_so_every_time(kernel):
    flat = np.zeros((2, 2))
    problem = st.Problem.from_matrices(-np.ones((2, 2)), kernels=(flat, flat), unbalanced=1.0)
    for _ in range(2):
        with pytest.raises(UnboundedError):
            unbudgeted_optimum(problem, st.DEFAULT)
    assert "optimum" not in problem.memo


def test_where_it_takes_too_long_a_plan_towards_it_is_enough(solved):
    """Only with reg, where any dual point proves something."""
    how = replace(st.DEFAULT, newton_points=0, towards_links=7)
    with_reg, without = (instance(0, 9, 8, "rbf", reg, (10.0, 10.0)).problem() for reg in (5.0, 0.0))
    assert len(unbudgeted_optimum(with_reg, how).rows) == 7
    assert unbudgeted_optimum(without, how).status is st.Status.OPTIMAL
    assert optimum_from(with_reg, unbudgeted_optimum(with_reg, how)) is None, "which is not taken for the optimum"


@pytest.mark.parametrize("reg", [0.5, 50.0])
def test_every_way_leads_to_it(reg, solved):
    case = instance(3, 14, 11, "rbf", reg, (5.0, 5.0))
    plain, at_once = case.problem(), case.problem()
    grown = unbudgeted_optimum(plain, st.DEFAULT)
    assert solved == ["grown"]
    jumped = unbudgeted_optimum(at_once, replace(st.DEFAULT, grown_links=5, grown_links_per_point=0.0))
    assert solved == ["grown", "grown", "newton"]
    assert value_of(plain, jumped) == pytest.approx(value_of(plain, grown), rel=1e-12)


def test_when_a_jump_is_worth_it():
    delta, curved = clouds(0), instance(3, 14, 11, "rbf", 5.0).problem()
    flat, short = (
        instance(3, 14, 11, "rbf", 0.0).problem(),
        replace(st.DEFAULT, grown_links=5, grown_links_per_point=0.0),
    )
    assert links_before_jump(delta, 154, replace(st.DEFAULT, grown_tree_links=3)) == 3
    assert links_before_jump(delta, 154, replace(st.DEFAULT, free_tree_points=24)) == 10
    assert links_before_jump(delta, 154, replace(st.DEFAULT, free_tree_points=25)) == 500
    assert links_before_jump(delta, 153, replace(st.DEFAULT, free_tree_points=24)) == 500, "a budget limits them"
    assert links_before_jump(curved, 154, st.DEFAULT) == 1000
    assert links_before_jump(curved, 154, replace(st.DEFAULT, grown_links=5, grown_links_per_point=2.0)) == 50
    assert not is_worth_a_jump(curved, 154, st.DEFAULT)
    assert is_worth_a_jump(curved, 154, short)
    assert not is_worth_a_jump(curved, 5, short), "a plan of so few links is grown"
    assert not is_worth_a_jump(curved, 154, replace(short, newton_points=24))
    assert not is_worth_a_jump(flat, 154, short)
    assert is_worth_a_jump(delta, 14, replace(st.DEFAULT, grown_tree_links=3))
    assert not is_worth_a_jump(delta, 13, replace(st.DEFAULT, grown_tree_links=3)), "a point would have no link"


def test_candidates_are_listed_from_so_many_pairs_on():
    problem = instance(0, 6, 5).problem()
    assert is_listed(problem, replace(st.DEFAULT, list_above=30))
    assert not is_listed(problem, replace(st.DEFAULT, list_above=31))


def test_a_result_that_travels_takes_it_along(solved):
    """Pickled with its problem, for another process."""
    result = instance(0, 9, 8, "rbf", 0.1, (10.0, 10.0)).solve()
    sent = pickle.loads(pickle.dumps(result))
    solved.clear()
    assert sent.gap == pytest.approx(result.gap, abs=1e-12)
    assert solved == []
