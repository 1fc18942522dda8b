"""Starts and improvers: who carries them out, that more of them are never worse, and that scenarios go the same way."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from cases import KERNELS, clouds, instance, odd, problem_of, support

import sparsetransport as st
from sparsetransport import effort, strategy
from sparsetransport.effort import Eliminate, Found, Grow, Grown, Matching, Optimum, Perturb, Random, Repeat, Swap
from sparsetransport.engine.omp_solver import OMPSolver
from sparsetransport.engine.room import Constraint
from sparsetransport.improvers import improve
from sparsetransport.search import Links, Search
from sparsetransport.strategy import begin, find

BUDGETS = {"few": 6, "row": st.PerRow(1), "column": st.PerColumn(2), "matching": st.PerRow(1) & st.PerColumn(1)}
STARTS = [
    Grown,
    Matching,
    effort.Mean,
    effort.Unregularised,
    Found,
    effort.DualWish,
    effort.Regularised,
    Optimum,
    Random,
]
IMPROVERS = [Grow, Swap, Eliminate, Repeat]
ON_TREES = [effort.TreeSearch, Perturb]


def search_of(problem, budget=6, how=st.DEFAULT, **options):
    constraint = Constraint(st.Uniform(budget) if isinstance(budget, int) else budget, problem.shape)
    return Search(problem, constraint, how, given=Links([]), **options)


def value_of(problem, plan):
    return problem.value(plan.rows, plan.cols, plan.mass)


# --- dispatch --------------------------------------------------------------------------------------------------------


def test_every_start_and_improver_is_known():
    """All dataclasses of `effort` are carried out by somebody, and no function waits for what is not there."""
    assert set(begin.registry) - {object} == set(STARTS)
    assert set(improve.registry) - {object} == set(IMPROVERS)
    parts = {each for each in vars(effort).values() if isinstance(each, type) and hasattr(each, "__dataclass_fields__")}
    others = {effort.Regrow, effort.Prices, effort.Listed, effort.DevicePrices, effort.ByParts, effort.Branching}
    assert parts == {*STARTS, *IMPROVERS, *ON_TREES, *others, st.Effort}


@dataclass(frozen=True)
class Unknown:
    """Neither a start nor an improver."""


@pytest.mark.parametrize("thing", [Unknown(), Grow(), "grown", None, Grown], ids=repr)
def test_an_unknown_start_is_an_error(thing):
    problem = instance(0).problem()
    with pytest.raises(TypeError, match="must hold registered starts"):
        st.solve(problem, budget=3, effort=replace(st.QUICK, starts=(thing,)))
    with pytest.raises(TypeError, match="must hold registered starts"):
        st.solve(clouds(0), budget=6, effort=replace(st.DEFAULT, tree_starts=(thing,)))


@pytest.mark.parametrize("thing", [Unknown(), Grown(), Swap(), "search"], ids=repr)
@pytest.mark.parametrize("place", ["tree_improvers", "tree_finish"])
def test_an_unknown_improver_on_trees_is_an_error(place, thing):
    with pytest.raises(TypeError, match="must hold improvers of trees"):
        st.solve(clouds(0), budget=6, effort=replace(st.DEFAULT, **{place: (thing,)}))


@pytest.mark.parametrize("thing", [effort.TreeSearch(), Perturb()], ids=repr)
def test_improvers_on_trees_are_for_trees_alone(thing):
    with pytest.raises(TypeError, match="must hold improvers for these kernels"):
        instance(0).solve(budget=3, effort=replace(st.QUICK, improvers=(Grow(), thing)))


def test_an_effort_without_a_start_is_an_error():
    for how in (replace(st.QUICK, starts=()), replace(st.QUICK, starts=(effort.Mean(),))):
        with pytest.raises((AssertionError, ValueError), match="an effort must begin with"):
            instance(0).solve(budget=3, effort=how)


# --- starts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "yes", "no"),
    [
        (Matching(), search_of(instance(0).problem(), BUDGETS["matching"]), search_of(instance(0).problem(), 3)),
        (
            Matching(pairs=15),
            search_of(instance(0, 3, 4).problem(), BUDGETS["matching"]),
            search_of(instance(0, 4, 4).problem(), BUDGETS["matching"]),
        ),
        (
            effort.Unregularised(),
            search_of(problem_of(0, kernel="delta"), 3),
            search_of(instance(0, kernel="rbf", reg=0.1).problem(), 3),
        ),
        (
            effort.DualWish(),
            search_of(instance(0, reg=0.1).problem(), 3),
            search_of(instance(0, reg=0.0).problem(), 3),
        ),
        (
            effort.Regularised(),
            search_of(instance(0, reg=0.0).problem(), 3),
            search_of(instance(0, reg=0.1).problem(), 3),
        ),
        (Optimum(), search_of(instance(0).problem(), 3), search_of(instance(0).problem(), 3, replace(st.DEFAULT))),
        (Random(count=2), search_of(instance(0).problem(), 3), None),
    ],
    ids=lambda value: repr(value) if not isinstance(value, Search | None) else "",
)
def test_a_start_begins_where_it_applies(start, yes, no):
    best = find(search_of(yes.problem, 3, st.BARE))
    begun = list(begin(start, yes, best))
    assert begun
    for solver in begun:
        assert isinstance(solver, OMPSolver)
        assert (solver.room.left >= 0).all()
    if isinstance(start, Optimum):
        assert not list(begin(Optimum(links=1), no, best))
    elif no is not None:
        assert not list(begin(start, no, best))


@pytest.mark.parametrize("eliminate", [False, True])
def test_what_the_budget_leaves_of_the_optimum_is_part_of_it(eliminate):
    search = search_of(instance(3, 8, 7, "rbf", 0.1, (10.0, 10.0)).problem(), 6)
    (solver,) = begin(Optimum(eliminate=eliminate), search, find(search_of(search.problem, 6, st.BARE)))
    full = search.problem.memo["optimum"]
    inside = set(zip(full.rows.tolist(), full.cols.tolist(), strict=True))
    assert 0 < solver.size <= 6 < len(inside)
    assert set(solver.support()) <= inside


def test_random_starts_are_the_same_every_time_and_of_the_size_asked_for():
    problem = instance(0, 9, 8).problem()
    first, again = (
        [sorted(one.support()) for one in begin(Random(count=5, share=0.1), search_of(problem, 72), None)]
        for _ in range(2)
    )
    assert first == again
    assert len(first) == 5
    assert len({tuple(one) for one in first}) == 5
    assert max(map(len, first)) <= 8
    assert len(list(begin(Random(count=5, looks=2 * 72), search_of(problem, 6), None))) == 2
    assert len(list(begin(Random(count=5, operations=0.0), search_of(problem, 6), None))) == 1


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_one_more_start_is_never_worse(kernel, budget):
    for seed in range(3):
        problem = problem_of(seed, 9, 8, kernel, 0.05 * (seed % 2), (10.0, 10.0))
        fewer = replace(st.QUICK, starts=(Grown(),))
        plain = st.solve(problem, budget=budget, effort=fewer)
        for start in (
            Matching(),
            effort.Unregularised(),
            effort.DualWish(),
            effort.Regularised(),
            Optimum(),
            Random(4),
        ):
            more = st.solve(problem, budget=budget, effort=replace(fewer, starts=(Grown(), start)))
            assert more.value <= plain.value * (1.0 + 1e-12)
            np.testing.assert_array_equal(more.path.pairs[: len(plain.path)], plain.path.pairs)
            assert set(support(more)) <= set(more.path.support_at(10**6))


# --- more is never worse ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("reg", [0.0, 0.05])
def test_thorough_is_never_worse_than_default(kernel, budget, reg):
    """Nor is default than growing alone."""
    for seed in range(3):
        problem = problem_of(seed, 9, 8, kernel, reg, (10.0, 10.0), forbidden=0.2 * (seed == 2))
        bare, default, thorough = (
            st.solve(problem, budget=budget, effort=how).value for how in (st.BARE, "default", "thorough")
        )
        assert thorough <= default * (1.0 + 1e-12) <= bare * (1.0 + 2e-12)


@pytest.mark.parametrize("seed", range(24))
def test_thorough_is_never_worse_than_default_where_ties_abound(seed):
    problem = odd(seed)
    m, n = problem.shape
    for budget in (1 + seed % (m * n), st.PerRow(1)):
        default, thorough = (st.solve(problem, budget=budget, effort=how) for how in ("default", "thorough"))
        assert thorough.value <= default.value + 1e-12 * abs(default.value)


def test_thorough_is_what_a_gap_that_is_out_of_reach_finds():
    for kernel in KERNELS:
        problem = problem_of(1, 9, 8, kernel, 0.05, (10.0, 10.0))
        asked, thorough = (st.solve(problem, budget=5, **how) for how in ({"gap_tol": 1e-13}, {"effort": "thorough"}))
        assert asked.value == pytest.approx(thorough.value, rel=1e-12)


@pytest.mark.parametrize("method", ["greedy", "stochastic", "residual", "residual-greedy"])
def test_the_plan_of_a_rule_is_improved_the_more_the_longer(method):
    for seed in range(3):
        case = instance(seed, 9, 8, "rbf", 0.05, (10.0, 10.0))
        values = [
            case.solve(budget=6, method=method, rng=seed, effort=how).value
            for how in (st.BARE, "quick", "default", "thorough")
        ]
        assert all(after <= before + 1e-12 for before, after in pairwise(values))


def test_a_search_ends_where_the_gap_is_reached(monkeypatch):
    begun = []
    original = strategy.begin
    monkeypatch.setattr(strategy, "begin", lambda start, *rest: begun.append(type(start)) or original(start, *rest))
    case = instance(1, 8, 8, "rbf", 0.5, (10.0, 10.0))
    result = case.solve(budget=20, gap_tol=0.5)
    assert result.status in (st.Status.GAP_REACHED, st.Status.OPTIMAL)
    assert effort.DualWish not in begun
    begun.clear()
    case.solve(budget=4, gap_tol=1e-13)
    assert Random in begun


# --- improvers of the best plan --------------------------------------------------------------------------------------


def kernel_problem(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(14, 2)), rng.normal(size=(12, 2)) + 1.0
    return st.Problem.from_points(X, Y, rng.dirichlet(np.ones(14)), rng.dirichlet(np.ones(12)), kernels=st.RBF(0.1))


def test_growing_again_from_parts_of_a_plan_pays():
    """It is never worse, for one problem and for shared links, and with narrow kernels lower by some per cent."""
    once, ratios = replace(st.DEFAULT, finish=()), []
    for seed in range(12):
        problem = kernel_problem(seed)
        for solve in (st.solve, lambda problem, **options: st.solve_shared([problem], **options)):
            before, after = (solve(problem, budget=7, effort=how).value for how in (once, st.DEFAULT))
            assert after <= before * (1.0 + 1e-12)
            ratios.append(after / before)
    assert np.mean(ratios) < 0.995


def test_growing_again_has_limits():
    """No round begins that would take more operations than allowed, and none without links to drop."""
    problem = kernel_problem(0)
    once = st.solve(problem, budget=7, effort=replace(st.DEFAULT, finish=()))
    for regrow in (effort.Regrow(rounds=0), effort.Regrow(operations=1.0)):
        how = replace(st.DEFAULT, finish=(regrow,))
        np.testing.assert_array_equal(st.solve(problem, budget=7, effort=how).plan, once.plan)
    for regrow, same in ((effort.Regrow(operations=1.0), True), (effort.Regrow(), False)):
        plans = [
            st.solve_shared([kernel_problem(5)], budget=7, effort=replace(st.DEFAULT, finish=finish)).plans[0]
            for finish in ((), (regrow,))
        ]
        assert np.array_equal(*(plan.rows for plan in plans)) is same
    assert st.solve(problem, budget=1).rows.size == 1


@pytest.mark.parametrize("thing", [Unknown(), Grow(), Perturb()], ids=repr)
def test_an_unknown_improver_of_the_best_plan_is_an_error(thing):
    how = replace(st.DEFAULT, finish=(thing,))
    with pytest.raises(TypeError, match="must hold improvers of the best plan"):
        st.solve(kernel_problem(0), budget=7, effort=how)
    with pytest.raises(TypeError, match="must hold improvers of the best plan"):
        st.solve_shared([kernel_problem(0)], budget=7, effort=how)


@pytest.mark.parametrize("effort", ["quick", "default"])
def test_neither_the_order_of_points_nor_their_side_decides(effort):
    """Permuted or transposed, or with lazy costs, a problem without ties has the same objective."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        m, n = rng.integers(4, 31, 2)
        X, Y = rng.normal(size=(m, 2)), rng.normal(size=(n, 2)) + 0.5
        a, b = rng.lognormal(size=m), rng.lognormal(size=n)
        k = int(rng.integers(2, m + n))
        row, column = st.PerRow(1), st.PerColumn(1)
        turns = [(k, k), (row, column), (column, row), (row & column, row & column)]
        budget, turned = turns[seed % 4]
        options = {"kernels": [st.Delta(), st.RBF(0.5)][seed // 4 % 2], "reg": [0.0, 0.1][seed // 8 % 2]}
        options |= {"unbalanced": 50.0, "effort": effort}
        i, j = rng.permutation(m), rng.permutation(n)
        value = st.solve_sample(X, Y, a, b, budget=budget, **options).value
        others = [
            st.solve_sample(X[i], Y[j], a[i], b[j], budget=budget, **options),
            st.solve_sample(Y, X, b, a, budget=turned, **options),
            st.solve_sample(X, Y, a, b, budget=budget, lazy=True, **options),
        ]
        assert [other.value for other in others] == pytest.approx(3 * [value], rel=0.01), seed
