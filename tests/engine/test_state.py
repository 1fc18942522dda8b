"""The state of a solve: what is saved comes back, and what follows from a plan is what NumPy says."""

import numpy as np
import pytest
from cases import KERNELS, instance

import sparsetransport as st
from sparsetransport._numba.compiling import compiled
from sparsetransport.engine import state
from sparsetransport.engine.omp_solver import OMPSolver
from sparsetransport.engine.room import Constraint
from sparsetransport.engine.state import Data, Saved, Work
from sparsetransport.geometry.matrices import Gram


@compiled
def save(work: Work, saved: Saved) -> None:
    state.save(work, saved)


@compiled
def restore(saved: Saved, work: Work) -> None:
    state.restore(saved, work)


@compiled
def refresh(data: Data, work: Work) -> None:
    state.refresh(data, work)


def grown(case, matroid, entries):
    problem = case.problem()
    solver = OMPSolver(problem, Constraint(matroid, problem.shape), st.DEFAULT.tuning)
    solver.grow(entries=entries)
    return solver


def plan_of(solver):
    """The pairs, their masses, the factor and the capacities, copied."""
    factor, size = solver.work.factor, solver.size
    upper = np.triu(factor.upper[:size, :size])
    return solver.support(), factor.mass[:size].copy(), upper, factor.target[:size].copy(), solver.room.left.copy()


@pytest.mark.parametrize("matroid", [None, st.PerRow(2) & st.PerColumn(3)])
def test_a_saved_plan_comes_back(matroid):
    """After the plan has grown on: pairs, masses, factor and capacities, and it grows on to the same end."""
    solver = grown(instance(0, 9, 8, "rbf", 0.1, (10.0, 10.0)), matroid, 4)
    saved = state.new_saved(len(solver.work.factor.mass), solver.room.left)
    save(solver.work, saved)
    before = plan_of(solver)
    solver.grow()
    end = plan_of(solver)
    assert len(end[0]) > len(before[0]) == 4
    restore(saved, solver.work)
    for there, then in zip(plan_of(solver), before, strict=True):
        np.testing.assert_array_equal(there, then)
    solver.grow()
    for there, then in zip(plan_of(solver), end, strict=True):
        np.testing.assert_array_equal(there, then)


def test_a_saved_plan_shares_no_memory_with_the_state():
    solver = grown(instance(0, 9, 8), None, 4)
    saved = state.new_saved(len(solver.work.factor.mass), solver.room.left)
    save(solver.work, saved)
    solver.work.factor.mass[:] = np.nan
    solver.room.left[:] = -7
    assert np.isfinite(saved.factor.mass[:4]).all()
    assert (saved.left >= 0).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_marginals_and_fields_are_those_of_the_plan(kernel):
    """``r = 2 λ Ga (row sums - a)`` and the same for columns; `holds` knows the support and nothing else."""
    case = instance(2, 9, 8, kernel, 0.1, (10.0, 4.0))
    solver = grown(case, None, 7)
    refresh(solver.data, solver.work)
    work, plan = solver.work, np.zeros(case.shape)
    plan[tuple(work.factor.label[:, :7])] = work.factor.mass[:7]
    np.testing.assert_allclose(work.mass_a, plan.sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(work.mass_b, plan.sum(axis=0), rtol=1e-14)
    np.testing.assert_allclose(work.r, 20.0 * case.Ga @ (plan.sum(axis=1) - case.a), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(work.c, 8.0 * case.Gb @ (plan.sum(axis=0) - case.b), rtol=1e-11, atol=1e-12)
    held = [pair for pair in np.ndindex(case.shape) if state.holds(work.head, work.link, work.factor.label[1], *pair)]
    assert held == sorted(solver.support())


def test_more_columns_keep_those_there_are():
    """Only a lazy Gram matrix that is nearly full grows, never beyond the number of points."""
    points = np.random.default_rng(0).normal(size=(20, 2))
    lazy = Gram.of_points(st.RBF(1.0), points, lazy=True).compiled(2.0, 4)
    lazy.columns[:] = np.arange(4.0)[:, None]
    lazy.slot[:3], lazy.slot[-1] = np.arange(3), 3
    assert state.with_more_columns(lazy, 1) is lazy
    larger = state.with_more_columns(lazy, 5)
    np.testing.assert_array_equal(larger.columns[:3], lazy.columns[:3])
    assert larger.columns.shape == (13, 20)
    assert state.with_more_columns(larger, 50).columns.shape == (20, 20)
    dense = Gram.of_points(st.RBF(1.0), points, lazy=False).compiled(2.0, 4)
    assert state.with_more_columns(dense, 50) is dense


def test_columns_that_are_not_needed_make_room():
    """What is needed stays, wherever it was; only if that is not enough there is more room."""
    points = np.random.default_rng(0).normal(size=(20, 2))
    lazy = Gram.of_points(st.RBF(1.0), points, lazy=True).compiled(2.0, 6)
    expected, there = st.RBF(1.0).gram(points), np.array([7, 3, 11, 0, 19])
    lazy.columns[:5], lazy.slot[there], lazy.slot[-1] = expected[there], np.arange(5), 5
    fewer = state.with_more_columns(lazy, 4, np.array([19, 3, 3]))
    assert fewer.columns is lazy.columns
    assert np.flatnonzero(fewer.slot[:-1] >= 0).tolist() == [3, 19]
    np.testing.assert_allclose(fewer.columns[fewer.slot[[3, 19]]], expected[[3, 19]], rtol=1e-12)
    more = state.with_more_columns(fewer, 5, np.array([19, 3, 4]))
    assert more.columns.shape == (17, 20)
    np.testing.assert_allclose(more.columns[more.slot[[3, 19]]], expected[[3, 19]], rtol=1e-12)


def test_a_search_stalls_after_so_many_steps_without_gain():
    """Gains that are only rounding do not count; a real one starts the count anew."""
    progress = np.zeros(2)
    assert not state.stalls(progress, 1.0, 3.0)
    assert [state.stalls(progress, 1.0, 3.0) for _ in range(4)] == [False, False, False, True]
    assert not state.stalls(progress, 1.1, 3.0)
    assert [state.stalls(progress, 1.1 * (1.0 + 1e-15), 3.0) for _ in range(4)] == [False, False, False, True]


def test_masses_beyond_all_measure_are_not_sound():
    solver = grown(instance(0, 9, 8), None, 4)
    assert state.is_sound(solver.work.factor, solver.data.wanted)
    for mass in (2e8 * solver.data.wanted, np.nan):
        solver.work.factor.mass[2] = mass
        assert not state.is_sound(solver.work.factor, solver.data.wanted)
