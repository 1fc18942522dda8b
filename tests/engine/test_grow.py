"""The compiled search does what the general one does, whatever holds the geometry."""

from dataclasses import replace

import numpy as np
import pytest
from cases import KERNELS, instance, support
from hypothesis import given, settings
from strategies import instances, seeds

import sparsetransport as st
from sparsetransport.engine import omp_solver

SHAPE = (11, 9)
BLOCKS = (np.arange(11)[:, None] // 3) * 2 + np.arange(9)[None, :] // 5
BUDGETS = {
    "none": None,
    "uniform": st.Uniform(13),
    "row": st.PerRow(1),
    "rows": st.PerRow([2, 0, 1, 3, 1, 1, 9, 1, 0, 2, 1]),
    "column": st.PerColumn(2),
    "partition": st.Partition(BLOCKS, [2, 1, 3, 2, 1, 2, 4, 0]),
    "uncounted": st.Partition(np.where(BLOCKS == 3, -1, BLOCKS), 1),
    "laminar": st.Laminar(st.PerRow(2), st.Partition(BLOCKS // 2, 4), st.Uniform(11)),
    "intersection": st.PerRow(2) & st.PerColumn(1),
    "three": st.PerRow(2) & st.PerColumn(2) & st.Partition(BLOCKS, 2) & st.Uniform(9),
}


def _assert_same_plans(problem, budget, start=()):
    """Both loops pick the same pairs in the same order and end with the same masses."""
    compiled = st.solve(problem, budget=budget, polish=False, start=start)
    general = st.maximise(problem, budget, st.OMP(), start=start)
    order = np.lexsort((compiled.cols, compiled.rows))
    other = np.lexsort((general.cols, general.rows))
    np.testing.assert_array_equal(compiled.rows[order], general.rows[other])
    np.testing.assert_array_equal(compiled.cols[order], general.cols[other])
    np.testing.assert_allclose(compiled.mass[order], general.mass[other], atol=1e-9)
    return compiled, general.record.path((), None)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_compiled_loop_is_the_general_loop(budget, kernel):
    """For every counting budget and kernel: the same pairs in the same order, the same departures, the same masses."""
    for seed in range(3):
        case = instance(seed, *SHAPE, kernel, (0.1, 0.0, 1.0)[seed], (5.0, 2.0), forbidden=0.2 * (seed == 1))
        result, path = _assert_same_plans(case.problem(), BUDGETS[budget])
        np.testing.assert_array_equal(result.path.pairs, path.pairs)
        np.testing.assert_allclose(result.path.objective, path.objective, atol=1e-9)
        np.testing.assert_array_equal(result.path.entries, path.entries)


@given(instances((4, 5), regs=(0.0, 0.125)))
def test_both_loops_reach_the_same_optimum_where_ties_abound(case):
    """Ties may be broken by rounding, so the ways may differ; without a budget the objective at the end may not."""
    problem = case.problem()
    compiled = st.solve(problem, polish=False)
    general = st.maximise(problem, None, st.OMP())
    assert compiled.value == pytest.approx(problem.value(general.rows, general.cols, general.mass), abs=1e-10)


@pytest.mark.parametrize("kernel", ["delta", "rbf", "imq", "imq-v2"])
@pytest.mark.parametrize("budget", [3, 12, st.PerColumn(1), st.PerRow(2) & st.PerColumn(2), None], ids=repr)
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
@pytest.mark.parametrize("polish", [False, True])
def test_dense_and_lazy_geometry_give_the_same_plan(kernel, budget, metric, polish):
    """Points kept and entries computed on demand, or matrices built at once: one plan."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(20, 3)), rng.normal(size=(18, 3)) + 0.5
        geometry = {"kernels": kernel, "metric": metric, "normalize_cost": True, "unbalanced": 10.0, "reg": 0.1}
        options = geometry | {"budget": budget, "polish": polish}
        dense, lazy = (st.solve_sample(X, Y, lazy=lazy, **options) for lazy in (False, True))
        assert support(dense) == support(lazy)
        np.testing.assert_allclose(dense.plan, lazy.plan, atol=1e-8)
        assert lazy.value == pytest.approx(dense.value, rel=1e-8)
        assert lazy.lower_bound == pytest.approx(dense.lower_bound, rel=1e-6, abs=1e-9)


def test_a_lazy_geometry_finds_room_for_all_columns_it_needs(monkeypatch):
    """A solve that touches more points on its way than there was room for at first ends with the dense plan."""
    monkeypatch.setattr(omp_solver, "_SPARE_COLUMNS", 1)
    touched = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2))
        options = {"kernels": st.RBF(3.0), "unbalanced": 10.0, "budget": 12, "polish": False}
        dense, lazy = (st.solve_sample(X, Y, lazy=lazy, **options) for lazy in (False, True))
        touched = max(touched, len(set(lazy.path.pairs[:, 0].tolist())))
        assert support(dense) == support(lazy)
        assert lazy.value == pytest.approx(dense.value, rel=1e-9)
    assert touched > 12


def test_a_lazy_plan_of_many_points_is_polished_like_a_dense_one():
    """The swaps look at far more rows and columns than the plan uses; a lazy geometry computes those for them."""
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(600, 2)), rng.normal(size=(600, 2)) + 0.5
    halves = st.Partition(np.repeat(np.arange(600)[:, None] // 300, 600, axis=1), 6)
    dense, lazy = (
        st.solve_sample(X, Y, budget=halves, unbalanced=10.0, reg=0.1, normalize_cost=True, lazy=lazy)
        for lazy in (False, True)
    )
    assert support(dense) == support(lazy)
    assert lazy.value == pytest.approx(dense.value, rel=1e-9)


@pytest.mark.parametrize(
    ("seed", "kernel", "budget"), [(33, "imq-v2", st.Partition(BLOCKS, 2)), (40, "imq", st.PerRow(2) & st.PerColumn(2))]
)
def test_an_entry_that_left_may_come_back_in_the_same_step(seed, kernel, budget):
    """The inner solve is on the whole of S + e: an entry at zero that wants back in gets in before the next choice."""
    _assert_same_plans(instance(seed, *SHAPE, kernel, (0.1, 0.0, 1.0)[seed % 3], (5.0, 2.0)).problem(), budget)


# --- the candidate list ----------------------------------------------------------------------------------------------


def _listed(effort, above):
    """The effort with a candidate list from so many pairs on."""
    return replace(effort, list_above=above)


def _points(dimension):
    rng = np.random.default_rng(dimension)
    return rng.normal(size=(500, dimension)), rng.normal(size=(520, dimension)) + 0.3


@pytest.mark.parametrize(
    ("dimension", "kernel"), [(2, "median"), (2, "imq"), (2, "imq-v2"), (2, "delta"), (8, "median")]
)
def test_the_list_loses_next_to_nothing(dimension, kernel):
    """Adding from a list of good pairs between scans ends within 0.1 % of one scan for each addition."""
    problem = st.Problem.from_points(*_points(dimension), kernels=kernel, normalize_cost=True, unbalanced=10.0, reg=0.1)
    scanned, listed = (st.solve(problem, budget=500, effort=_listed(st.BARE, above)) for above in (10**9, 0))
    assert listed.value <= scanned.value + 1e-3 * abs(scanned.value)
    assert listed.path.pairs.tolist() != scanned.path.pairs.tolist()  # the list was in use


@pytest.mark.parametrize("kernel", ["median", "imq-v2", "delta"])
@pytest.mark.parametrize("size", [30, 100])
@pytest.mark.parametrize("reg", [0.0, 0.1])
@pytest.mark.parametrize("effort", [st.BARE, st.DEFAULT], ids=["bare", "default"])
def test_the_list_ends_at_the_optimum(kernel, size, reg, effort):
    """Without a budget the list changes the way, not the end: no pair is left with a negative gradient."""
    x, y = _points(2)
    problem, other = (
        st.Problem.from_points(x[:size], y[:size], kernels=kernel, normalize_cost=True, reg=reg) for _ in range(2)
    )
    scanned = st.solve(problem, effort=_listed(effort, 10**9))
    listed = st.solve(other, effort=_listed(effort, 0))
    assert listed.status is st.Status.OPTIMAL
    assert listed.value == pytest.approx(scanned.value, rel=1e-8)
    gradient = problem.cost.rows(0, size) - listed.potential_a[:, None] - listed.potential_b
    gradient[listed.rows, listed.cols] = 0.0
    assert gradient.min() >= -1e-11 * problem.scale


@settings(max_examples=20)
@given(instances((4, 4)), seeds)
def test_the_list_keeps_to_the_budget(case, seed):
    """Feasible, and no pair of the list is ever taken that has no capacity left."""
    rng = np.random.default_rng(seed)
    capacity = rng.integers(0, 3, 4)
    if capacity.max() == 0:
        capacity[0] = 1
    result = case.solve(budget=st.PerRow(capacity) & st.Uniform(5), effort=_listed(st.DEFAULT, 0))
    assert result.rows.size <= 5
    assert (np.bincount(result.rows, minlength=4) <= capacity).all()
    assert len(set(support(result))) == result.rows.size


@pytest.mark.parametrize("budget", ["uniform", "column", "intersection"])
def test_a_start_is_taken_up_by_both_loops(budget):
    """Beginning with the same feasible pairs, both loops end with the same plan."""
    case = instance(5, *SHAPE, "rbf", 0.1, (5.0, 5.0))
    start = support(case.solve(budget=st.PerRow(1) & st.PerColumn(1) & st.Uniform(4), polish=False))
    _assert_same_plans(case.problem(), BUDGETS[budget], start)
