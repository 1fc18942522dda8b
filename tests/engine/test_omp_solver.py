"""What drives the compiled functions: room, pauses, callbacks, swaps and backward elimination."""

import subprocess
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from cases import KERNELS, TINY_BUDGETS, instance, support

import sparsetransport as st
from sparsetransport.budgets import pairs_of
from sparsetransport.effort import Eliminate, Grow, Grown, Swap
from sparsetransport.engine import elimination, omp_solver, shell
from sparsetransport.engine.omp_solver import OMPSolver
from sparsetransport.engine.room import Constraint

EIGHT = [3, 8, st.PerColumn(1), st.PerRow(2), st.PerRow(1) & st.PerColumn(1)]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_plan_may_outgrow_its_first_room(kernel, monkeypatch):
    """Room for entries is doubled when it runs out; the plan is the one a large room gives."""
    case = instance(0, 25, 20, kernel, 0.5, (5.0, 5.0))
    roomy = case.solve(polish=False)
    monkeypatch.setattr(omp_solver, "min", lambda *_: 2, raising=False)  # the first room, and the steps of a call
    cramped = case.solve(polish=False)
    assert roomy.rows.size > 10
    assert support(cramped) == support(roomy)


@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_gram_columns_may_be_forgotten(reg, monkeypatch):
    """With room for few columns beyond those of the plan, which are computed anew, the plan is that of the matrix."""
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(60, 2)), rng.normal(size=(50, 2)) + 0.5
    solve = {"budget": 8, "reg": reg, "kernels": st.RBF(0.5)}
    dense = st.solve_sample(X, Y, lazy=False, **solve)
    monkeypatch.setattr(omp_solver, "_SPARE_COLUMNS", 2)
    monkeypatch.setattr(omp_solver, "first_entries", lambda *_: 4)
    lazy = st.solve_sample(X, Y, lazy=True, **solve)
    np.testing.assert_array_equal(lazy.path.pairs, dense.path.pairs)
    np.testing.assert_allclose(lazy.plan, dense.plan, rtol=1e-9, atol=1e-12)


def test_pauses_change_nothing(monkeypatch):
    """The kernel returns to Python now and then, for Ctrl-C; how often makes no difference to the plan."""
    case = instance(0, 30, 25, "rbf", 0.1, (10.0, 10.0))
    for budget in (None, 40, st.PerColumn(1)):
        whole = case.solve(budget=budget, polish=False)
        with monkeypatch.context() as patch:
            patch.setattr(shell, "OPERATIONS", 1.0)
            patch.setattr(shell, "STEPS", 3)
            pieces = case.solve(budget=budget, polish=False)
        np.testing.assert_array_equal(whole.plan, pieces.plan)
        np.testing.assert_array_equal(whole.path.pairs, pieces.path.pairs)
        np.testing.assert_array_equal(whole.path.objective, pieces.path.objective)


@pytest.mark.parametrize("budget", EIGHT, ids=repr)
@pytest.mark.parametrize("polish", [False, True])
def test_a_callback_that_only_looks_changes_nothing(budget, polish):
    """The plan does not depend on whether somebody watches."""
    for seed in range(8):
        case = instance(seed, 14, 12, "rbf", 0.1, (10.0, 10.0))
        alone = case.solve(budget=budget, polish=polish)
        watched = case.solve(budget=budget, polish=polish, callback=lambda step: None)
        assert support(watched) == support(alone)


NOTHING = """
import numpy as np, sparsetransport as st
for budget in st.PerRow([0, 0, 0]), st.PerColumn([0, 0]), st.Partition(np.zeros((3, 2), int), [0]):
    print(st.solve(np.ones((3, 2)), budget=budget).rows.size)
"""


def test_a_budget_of_nothing_gives_the_empty_plan():
    """Capacities that are all zero leave an empty plan, and the solve ends; in its own process, lest it does not."""
    done = subprocess.run([sys.executable, "-c", NOTHING], capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == ["0", "0", "0"], done.stderr


# --- polish ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", EIGHT, ids=repr)
@pytest.mark.parametrize("kernel", ["delta", "rbf", "imq-v2"])
@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_the_polish_never_raises_the_objective(budget, kernel, reg):
    """Exchanges are kept only if they lower U, so the polished plan is no worse and still within the budget."""
    for seed in range(5):
        case = instance(seed, 10, 8, kernel, reg, (10.0, 10.0))
        rough, polished = case.solve(budget=budget, polish=False), case.solve(budget=budget)
        assert polished.value <= rough.value + 1e-12
        matroid = st.Uniform(budget) if isinstance(budget, int) else budget
        limits, used = matroid.limits(case.shape), polished
        assert used.rows.size <= limits.total
        assert (np.bincount(used.rows, minlength=10) <= limits.rows).all()
        assert (np.bincount(used.cols, minlength=8) <= limits.cols).all()


def test_the_polish_finds_what_omp_missed():
    """On tiny problems the polished plan is more often the best of all than the rough one."""
    rough = polished = 0
    for seed in range(20):
        case = instance(seed, 4, 4, "rbf", 0.1, (10.0, 10.0))
        best = case.optimum(TINY_BUDGETS["whole"].allowed)
        rough += case.solve(budget=3, polish=False).value <= best + 1e-9
        polished += case.solve(budget=3).value <= best + 1e-9
    assert polished > rough


@pytest.mark.parametrize("method", ["greedy", "stochastic", "residual", "residual-greedy"])
@pytest.mark.parametrize("budget", EIGHT, ids=repr)
def test_the_polish_of_other_methods_never_raises_the_objective(method, budget):
    """The plan of any method, polished, is no worse than it was, and the steps of the polish come last in the path."""
    for seed in range(4):
        case = instance(seed, 10, 8, "rbf", 0.1, (10.0, 10.0))
        rough = case.solve(budget=budget, method=method, polish=False, rng=seed)
        polished = case.solve(budget=budget, method=method, rng=seed)
        assert polished.value <= rough.value + 1e-12
        np.testing.assert_array_equal(polished.path.pairs[: len(rough.path)], rough.path.pairs)
        assert polished.path.objective[-1] == pytest.approx(polished.value, rel=1e-9)


@pytest.mark.parametrize("budget", EIGHT, ids=repr)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_polished_plan_has_no_free_pair_that_helps(budget, kernel):
    """When it ends, no pair that the budget still allows has a negative gradient: freed capacity was spent again."""
    for seed in range(5):
        case = instance(seed, 10, 8, kernel, 0.1, (10.0, 10.0))
        matroid = st.Uniform(budget) if isinstance(budget, int) else budget
        result = case.solve(budget=matroid)
        gradient = case.C - result.potential_a[:, None] - result.potential_b
        limits = matroid.limits(case.shape)
        left_rows = limits.rows - np.bincount(result.rows, minlength=10)
        left_cols = limits.cols - np.bincount(result.cols, minlength=8)
        free = (left_rows[:, None] > 0) & (left_cols[None, :] > 0) & (result.rows.size < limits.total)
        free[result.rows, result.cols] = False
        assert gradient[free].min(initial=0.0) >= -1e-9


# --- backward elimination --------------------------------------------------------------------------------------------


def _whole(problem):
    """The plan without a budget."""
    solver = OMPSolver(problem, Constraint(None, problem.shape), st.DEFAULT.tuning)
    solver.grow()
    return solver.outcome()


def _kept_of(problem, matroid, full):
    """The pairs that backward elimination keeps of a plan, before anything is added to them."""
    solver = OMPSolver(problem, Constraint(matroid, problem.shape), st.DEFAULT.tuning)
    solver.eliminate_from(pairs_of(full.rows, full.cols), full.mass)
    return solver.support()


@pytest.mark.parametrize("budget", TINY_BUDGETS)
@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_backward_elimination_keeps_to_the_budget(budget, reg):
    """Deleting from the unbudgeted optimum what is missed least ends with an allowed part of it."""
    for seed in range(5):
        case = instance(seed, 4, 4, "rbf", reg, (10.0, 10.0))
        problem, matroid = case.problem(), TINY_BUDGETS[budget].matroid
        matroid = st.Uniform(matroid) if isinstance(matroid, int) else matroid
        full = _whole(problem)
        kept = _kept_of(problem, matroid, full)
        assert TINY_BUDGETS[budget].allowed(kept)
        assert set(kept) <= set(zip(full.rows.tolist(), full.cols.tolist(), strict=True))


@pytest.mark.parametrize("reg", [0.0, 0.5])
def test_backward_elimination_comes_back_every_so_often(reg, monkeypatch):
    """So that Ctrl-C is heard between two pieces of the work; the pieces do not change the result."""
    rng = np.random.default_rng(0)
    problem = st.Problem.from_matrices(rng.random((40, 40)), rng.random(40), rng.random(40), unbalanced=50.0, reg=reg)
    full, budget = _whole(problem), st.PerRow(1)
    whole = _kept_of(problem, budget, full)
    calls = []
    shrink = elimination.shrink
    monkeypatch.setattr(elimination, "shrink", lambda *args: calls.append(1) or shrink(*args))
    monkeypatch.setattr(omp_solver, "OPERATIONS", 1000.0)
    assert _kept_of(problem, budget, full) == whole
    assert len(calls) > 20
    assert len(full.rows) - len(whole) > 20


@pytest.mark.parametrize("reg", [0.0, 0.3])
def test_every_deletion_costs_what_it_says(reg):
    """Deleting down to one entry, each time the one whose absence raises the objective least, by brute force."""
    case = instance(2, 6, 5, "imq", reg, (20.0, 5.0))
    problem = case.problem()
    full = _whole(problem)
    kept = list(zip(full.rows.tolist(), full.cols.tolist(), strict=True))
    for budget in range(len(kept) - 1, 0, -1):
        trials = [[pair for pair in kept if pair != lost] for lost in kept]
        without = min((st.solve_support(problem, links=trial) for trial in trials), key=lambda result: result.value)
        # What a deletion empties goes with it.
        kept = list(zip(without.rows.tolist(), without.cols.tolist(), strict=True))
        if len(kept) < budget:
            continue
        assert sorted(_kept_of(problem, st.Uniform(budget), full)) == sorted(kept)


def test_backward_elimination_deletes_what_is_missed_least():
    """With a diagonal Hessian the entries with the smallest x²H stay out."""
    C = np.full((3, 3), np.inf)
    np.fill_diagonal(C, [0.0, 0.5, 1.0])
    problem = st.Problem.from_matrices(C, np.ones(3), np.ones(3), unbalanced=1.0)
    full = _whole(problem)
    assert sorted(_kept_of(problem, st.Uniform(2), full)) == [(0, 0), (1, 1)]


def test_the_path_leads_on_to_a_plan_from_the_other_end():
    """Where another start wins, the path has the steps before it, and ends at its plan."""
    won = 0
    for seed in range(10):
        case = instance(seed, 12, 12, "imq-v2", 0.1, (300.0, 300.0))
        plain, asked = case.solve(budget=15), case.solve(budget=15, gap_tol=1e-9)
        assert asked.value <= plain.value + 1e-12
        assert support(asked) == tuple(sorted(asked.path.support_at(15)))
        assert asked.path.plan_at(15).value == pytest.approx(asked.value)
        assert asked.path.plan_at(5).rows.size == 5
        assert asked.path.entries.max() <= 15
        won += asked.value < plain.value - 1e-9
    assert won > 0


def test_the_path_of_a_warm_start_knows_what_a_jump_left_behind():
    """Its first step may be part of a jump, in which pairs come in before others leave."""
    C = [[0.58, 0.53, 0.86], [0.73, 0.48, 0.82], [0.54, 0.44, 0.01]]
    options = {"a": [0.68, 0.79, 0.71], "b": [0.96, 0.72, 0.01], "unbalanced": 0.3}
    budget = st.PerRow(1) & st.PerColumn(1)
    start = st.solve(C, budget=budget, polish=False, **options)
    result = st.solve(C, budget=budget, start=start, **options)
    for entries in range(4):
        pairs = result.path.support_at(entries)
        assert len(pairs) <= entries
        assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert tuple(sorted(result.path.support_at(3))) == support(result)


@pytest.mark.parametrize("seed", [45, *range(12)])
@pytest.mark.parametrize("inner", ["apgd", "active_set"])
def test_a_gap_asked_for_of_any_inner_solver(seed, inner):
    """What another start finds may be the same pairs with other masses."""
    C = np.random.default_rng(seed).random((2, 2))
    plain, asked = (st.solve(C, budget=3, reg=0.1, inner=inner, **gap) for gap in ({}, {"gap_tol": 1e-6}))
    assert asked.value <= plain.value + 1e-9


def test_a_gap_asked_for_where_there_is_no_optimum_without_a_budget():
    """The proof has nothing to say, and the plan stays as it was."""
    options = {"kernels": np.array([[1.0, 0.0], [0.0, 0.0]]), "budget": 1, "unbalanced": 1.0}
    plain, asked = (
        st.solve([[-1.0, 1.0], [1.0, -1.0]], [1.0, 1.0], [1.0, 1.0], **options, **gap) for gap in ({}, {"gap_tol": 0.1})
    )
    assert asked.value == plain.value
    assert asked.status is st.Status.GAP_OPEN


def test_a_gap_asked_for_brings_better_plans():
    """``gap_tol`` polishes on and tries other starts: never worse than the default, somewhere better."""
    better = 0
    for seed in range(3):
        case = instance(seed, 9, 9, "imq-v2", 0.1, (10.0, 10.0))
        plain = case.solve(budget=st.PerColumn(1))
        thorough = case.solve(budget=st.PerColumn(1), gap_tol=1e-9)
        assert thorough.value <= plain.value + 1e-12
        assert np.bincount(thorough.cols).max() == 1
        better += thorough.value < plain.value - 1e-9
    assert better > 0


@pytest.mark.parametrize("budget", [st.Uniform(8), st.Uniform(12), st.PerColumn(1), st.PerRow(1) & st.PerColumn(1)])
def test_beyond_the_budget_and_back(budget):
    """The objective falls or all stays as it was; the plan is within the budget, and the path leads to it."""
    jumps = 0
    for seed, kernel in product(range(4), KERNELS):
        problem, constraint = instance(seed, 12, 10, kernel, 0.0, (30.0, 30.0)).problem(), Constraint(budget, (12, 10))
        one = OMPSolver(problem, constraint, st.DEFAULT.tuning)
        one.grow()
        before, steps = one.outcome(), len(one.record)
        better = one.eliminate(128)
        after = one.outcome()
        jumps += better
        assert (problem.value(*after[:3]) < problem.value(*before[:3])) == better
        assert (len(one.record) > steps) == better
        assert (one.room.left >= 0).all()
        path = after.record.path((), None)
        assert set(path.support_at(10**6)) == set(zip(after.rows.tolist(), after.cols.tolist(), strict=True))
        assert path.entries.max() <= constraint.limits.most
        assert path.objective[-1] == pytest.approx(problem.value(*after[:3]), rel=1e-9)
    assert jumps > 0


def _one_start(*improvers):
    """An effort that only grows from nothing, with these improvers."""
    return replace(st.QUICK, starts=(Grown(),), improvers=(Grow(), *improvers))


def test_tight_budgets_are_better_than_with_swaps_alone():
    """On the same problems: with backward elimination, and without it."""
    ratios = []
    for seed in range(20):
        problem = st.Problem.from_matrices(np.random.default_rng(seed).random((25, 25)), unbalanced=10.0, reg=0.1)
        here, without = (
            st.solve(problem, budget=25, effort=_one_start(Swap(passes=2.0), *more, Swap())).value
            for more in ((Eliminate(),), ())
        )
        ratios.append(here / without)
    assert max(ratios) < 1.01
    assert np.mean(ratios) < 0.9


def test_backward_elimination_is_judged_after_swaps():
    """On the same problems: judged after two passes of them, and at once."""
    ratios = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        points, masses = rng.normal(size=(2, 30, 2)), rng.random((2, 30)) + 0.1
        kernel = st.RBF() if seed % 2 else st.IMQ()
        problem = st.Problem.from_points(*points, *masses, kernels=kernel)
        here, at_once = (
            st.solve(problem, budget=6, effort=_one_start(Swap(passes=2.0), Eliminate(passes=passes), Swap())).value
            for passes in (2.0, 0.0)
        )
        ratios.append(here / at_once)
    assert np.mean(ratios) < 0.99


def test_few_links_are_nearly_as_good_as_a_gap_asked_for_finds():
    """Far below what the unbudgeted optimum has: OMP alone is at two or three times the objective."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) + 1.0
        problem = st.Problem.from_points(X, Y, kernels="median")
        plain, default, asked = (
            st.solve(problem, budget=5, **options).value for options in ({"polish": False}, {}, {"gap_tol": 1e-9})
        )
        assert default < 0.7 * plain
        assert asked <= default < 1.3 * asked


def test_the_status_is_of_the_plan_at_the_end():
    """Whether the budget is used up, whatever it was on the way."""
    said = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(rng.integers(5, 30), 2)), rng.normal(size=(rng.integers(5, 30), 2)) + 0.3
        problem = st.Problem.from_points(x, y, kernels="median")
        for result in (
            st.solve(problem, budget=st.PerColumn(1)),
            st.solve_batch([problem], budget=st.PerColumn(1))[0],
        ):
            full = result.rows.size == len(y)
            assert result.status in (st.Status.OPTIMAL, st.Status.BUDGET_USED if full else st.Status.LOCAL)
            said.add(result.status)
    assert {st.Status.BUDGET_USED, st.Status.LOCAL} <= said


def test_steps_that_gain_nothing_are_gone_through():
    """Degenerate steps, a dozen and more in a row, before the optimum without a budget."""
    result = st.solve(np.random.default_rng(0).random((1000, 1000)))
    assert result.status is st.Status.OPTIMAL
    assert result.relative_gap < 1e-6


def test_an_unbounded_way_beyond_the_budget_is_left():
    """The kernel sees no error in equal masses: one link has a best mass, two can take any."""
    C, gram = np.array([[-1.0, np.inf], [np.inf, -1.0]]), np.array([[1.0, -1.0], [-1.0, 1.0]])
    with pytest.raises(ValueError, match="bound"):
        st.solve(C, kernels=gram, unbalanced=1.0)
    for result in (
        st.solve(C, kernels=gram, unbalanced=1.0, budget=1),
        st.solve_batch([C], kernels=gram, unbalanced=1.0, budget=1)[0],
    ):
        assert result.rows.size == 1
        assert result.mass[0] == pytest.approx(0.25)


# --- starts with masses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lazy", [False, True])
def test_a_nearby_plan_is_taken_over_at_once(lazy):
    """From the plan of a nearby problem: most pairs stay, few steps are needed, and the optimum is that of no start."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2))
    before, after = (
        st.Problem.from_points(shifted, y, kernels=st.RBF(0.1), unbalanced=20.0, lazy=lazy)
        for shifted in (x, x + 0.01 * rng.normal(size=x.shape))
    )
    earlier = st.solve(before)
    cold, warm = st.solve(after), st.solve(after, start=earlier)
    assert warm.value == pytest.approx(cold.value, rel=1e-12)
    assert warm.status is st.Status.OPTIMAL
    assert 0.8 * earlier.rows.size < len(warm.path.start) <= earlier.rows.size
    assert set(warm.path.start) <= set(zip(earlier.rows.tolist(), earlier.cols.tolist(), strict=True))
    assert len(warm.path) < 0.5 * len(cold.path)
    assert warm.path.plan_at(10**6).value == pytest.approx(warm.value, rel=1e-12)


def test_a_start_whose_pairs_depend_on_one_another_is_taken_one_by_one():
    """A cycle changes no marginal at reg = 0: the Hessian on it is singular, and one of its pairs must go."""
    regular = st.Problem.from_matrices([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], [0.5, 0.5], unbalanced=1.0, reg=10.0)
    earlier = st.solve(regular)
    assert earlier.rows.size == 4
    problem = st.Problem.from_matrices([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], [0.5, 0.5], unbalanced=1.0)
    result = st.solve(problem, start=earlier)
    assert result.path.start == ()
    assert result.value == pytest.approx(st.solve(problem).value)


def test_a_start_with_a_pair_forbidden_since_leaves_it_out():
    C = np.ones((3, 3)) - np.eye(3)
    earlier = st.solve(C, budget=3, unbalanced=50.0)
    assert (earlier.rows == earlier.cols).all()
    C[1, 1] = np.inf
    result = st.solve(C, budget=3, unbalanced=50.0, start=earlier)
    assert (1, 1) not in set(zip(result.rows.tolist(), result.cols.tolist(), strict=True))
    assert np.isfinite(result.value)


# --- tight budgets ---------------------------------------------------------------------------------------------------


def test_two_crossed_entries_are_exchanged_together():
    """The free pair is taken first, which leaves the dear one; no single exchange keeps the marginals."""
    C = np.array([[0.0, 0.1], [0.1, 5.0]])
    for budget in (2, st.PerColumn(1), st.PerRow(1) & st.PerColumn(1), st.Partition(np.zeros((2, 2), int), 2)):
        result = st.solve(C, budget=budget, unbalanced=100.0)
        assert sorted(zip(result.rows.tolist(), result.cols.tolist(), strict=True)) == [(0, 1), (1, 0)]
    groups = st.Partition(np.array([[0, 1], [1, 0]]), [2, 1])  # crossed pairs share a group with room for one
    kept = st.solve(C, budget=groups, unbalanced=100.0)
    assert sorted(zip(kept.rows.tolist(), kept.cols.tolist(), strict=True)) != [(0, 1), (1, 0)]


@pytest.mark.parametrize("lazy", [False, True])
def test_one_link_a_point_is_near_the_best_assignment(lazy):
    """With uniform masses, hard marginals and n links the best plan is an assignment, which SciPy finds exactly."""
    from scipy.optimize import linear_sum_assignment

    ratios, greedy = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
        problem = st.Problem.from_points(x, y, kernels=st.Delta(), unbalanced=1e4, lazy=lazy)
        C = st.cost_matrix(x, y)
        best = C[linear_sum_assignment(C)].sum() / 20.0
        ratios.append(st.solve(problem, budget=20).value / best)
        greedy.append(st.solve(problem, budget=20, polish=False).value / best)
    assert min(ratios) > 0.99
    assert np.mean(ratios) < 1.1 < 1.5 < np.mean(greedy)


def test_a_plan_is_a_start_too():
    """The plan as an array, of whatever library, is the same start as the result it came from."""
    rng = np.random.default_rng(0)
    C = rng.random((8, 7))
    earlier = st.solve(C, unbalanced=5.0)
    by_result, by_plan = (st.solve(C + 0.01, unbalanced=5.0, start=start) for start in (earlier, earlier.plan))
    assert set(by_plan.path.start) == set(by_result.path.start) != set()
    np.testing.assert_allclose(by_plan.plan, by_result.plan, atol=1e-12)
    with pytest.raises(ValueError, match=r"start must be a plan of shape \(8, 7\), got shape \(7, 8\)"):
        st.solve(C, start=earlier.plan.T)
    with pytest.raises(ValueError, match="start must be finite"):
        st.solve(C, start=np.full((8, 7), np.nan))


def test_a_dense_plan_is_no_burden_as_a_start():
    """More entries than the budget allows are not factorised: the start is cut to the budget, pair by pair."""
    rng = np.random.default_rng(0)
    C = rng.random((30, 30))
    result = st.solve(C, budget=30, start=np.full(C.shape, 1.0 / 900.0))
    assert result.rows.size <= 30
    sparse = st.solve(C, budget=30)
    again = st.solve(C, budget=30, start=sparse.sparse_plan)
    assert again.value <= sparse.value * (1.0 + 1e-12)
    with pytest.raises(ValueError, match=r"start must be a plan of shape \(30, 30\), got shape \(29, 30\)"):
        st.solve(C, budget=30, start=st.solve(C[:29], budget=30))
    with pytest.raises(TypeError, match="a plan of floats or a list of pairs of ints, got dtype int64"):
        st.solve(C, budget=30, start=np.ones((30, 30), int))


def test_a_callback_ends_the_search_for_a_smaller_gap():
    """It hears the steps of the other starts too, and what was found so far is kept."""
    case = instance(3, 20, 15, "rbf", 0.05, (5.0, 5.0))
    first = []
    case.solve(budget=4, callback=first.append)
    heard = []
    options = {"budget": 4, "gap_tol": 1e-12}
    full = case.solve(callback=lambda step: heard.append(step), **options)
    assert full.status is st.Status.GAP_OPEN
    assert len(heard) > len(first)
    few = []
    stopped = case.solve(callback=lambda step: few.append(step) or len(few) > len(first) + 1, **options)
    assert stopped.status is st.Status.STOPPED
    assert len(few) == len(first) + 2
    assert full.value <= stopped.value <= case.solve(budget=4).value + 1e-12
