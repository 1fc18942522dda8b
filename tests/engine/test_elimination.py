"""Backward elimination: what a deletion costs, and what is left after it, against solves on the remaining links."""

import numpy as np
import pytest
from cases import KERNELS, TINY_BUDGETS, instance
from hypothesis import given
from hypothesis import strategies as some

import sparsetransport as st
from sparsetransport.budgets import as_matroid
from sparsetransport.engine import elimination
from sparsetransport.engine.omp_solver import OMPSolver
from sparsetransport.engine.room import Constraint, fits
from sparsetransport.plan import Record, new_trace


def grown(case, matroid=None):
    problem = case.problem()
    solver = OMPSolver(problem, Constraint(matroid, problem.shape), st.DEFAULT.tuning)
    solver.grow()
    return solver


def room_for(solver):
    return len(solver.work.factor.mass)


@pytest.mark.parametrize("reg", [0.0, 0.1])
@pytest.mark.parametrize("kernel", KERNELS)
def test_losses_are_what_the_objective_rises_by(kernel, reg):
    """Exactly where no other entry is emptied by the deletion; where one is, the rise is larger."""
    exact = 0
    for seed in range(4):
        case = instance(seed, 6, 5, kernel, reg, (20.0, 5.0))
        solver = grown(case)
        pairs, value = solver.support(), solver.constant - solver.gain
        losses = elimination.losses(solver.work)
        assert len(losses) == len(pairs) > 3
        for pair, loss in zip(pairs, losses, strict=True):
            rest = [other for other in pairs if other != pair]
            without = st.solve_support(case.problem(), links=rest)
            assert without.value >= value + loss * (1.0 - 1e-7) - 1e-12
            if len(without.mass) == len(rest):
                assert without.value == pytest.approx(value + loss, rel=1e-9)
                exact += 1
    assert exact > 5


def test_discarded_entries_are_gone_and_the_rest_is_optimal():
    """Their capacity is there again, and the masses are the best on what is left; what a deletion empties goes too."""
    for seed in range(5):
        case = instance(seed, 7, 6, "imq", 0.2, (20.0, 20.0))
        solver = grown(case, st.PerRow(2))
        pairs = solver.support()
        lost = np.array([*pairs[::3], (6, 5)] if (6, 5) not in pairs else pairs[::3])
        trace = new_trace(0, 2 * room_for(solver))
        elimination.discard(solver.work, trace, lost[:, 0].copy(), lost[:, 1].copy())
        rest = [pair for pair in pairs if list(pair) not in lost.tolist()]
        assert set(solver.support()) <= set(rest)
        best = st.solve_support(case.problem(), links=solver.support())
        assert len(best.mass) == solver.size > 3
        assert solver.constant - solver.gain == pytest.approx(best.value, rel=1e-10)
        assert set(map(tuple, trace.gone[:, : trace.steps[1]].T.tolist())) == set(pairs) - set(solver.support())
        used = np.bincount([i for i, _ in solver.support()], minlength=7)
        np.testing.assert_array_equal(solver.room.left[1:8], 2 - used)


@pytest.mark.parametrize("budget", TINY_BUDGETS)
@given(extra=some.integers(1, 16))
def test_a_lift_lets_in_so_many_more_anywhere(budget, extra):
    """Whatever the capacities are; `lower` takes back exactly what `lift` gave."""
    room = Constraint(as_matroid(TINY_BUDGETS[budget].matroid), (4, 4)).room()
    before = room.left.copy()
    total = elimination.lift(room, extra)
    rows, cols = np.divmod(np.arange(16), 4)
    assert fits(room, rows[:extra].copy(), cols[:extra].copy())
    if extra < 16:
        assert not fits(room, rows[: extra + 1].copy(), cols[: extra + 1].copy())
    elimination.lower(room, extra, total)
    np.testing.assert_array_equal(room.left, before)


def test_a_jump_leads_from_one_plan_to_the_other():
    """The steps written down turn the pairs of the first plan into those of the second; False if none is new."""
    case = instance(1, 8, 7, "rbf", 0.1, (20.0, 20.0))
    first, second = grown(case, st.Uniform(5)), grown(case, st.PerColumn(1))
    new = set(second.support()) - set(first.support())
    assert new
    trace = new_trace(room_for(second), room_for(first))
    assert elimination.write_jump(first.work.factor, second.work.factor, trace)
    record = Record()
    record.follow(trace, first.constant, None)
    path = record.path(tuple(first.support()), lambda *_: None)
    assert set(map(tuple, path.pairs.tolist())) == new
    assert set(path.support_at(7)) == set(second.support())
    assert path.objective[-1] == pytest.approx(second.constant - second.gain)
    nothing = new_trace(room_for(first), room_for(first))
    assert not elimination.write_jump(first.work.factor, first.work.factor, nothing)


def test_a_plan_beyond_its_budget_is_no_better_one():
    """However much more it gains; nor is one that gains the same."""
    case = instance(1, 8, 7, "rbf", 0.1, (20.0, 20.0))
    few, many = grown(case, st.Uniform(4)), grown(case, st.Uniform(8))
    assert many.gain > few.gain
    compare = elimination.is_better
    assert compare(many.work.factor, many.room, few.work.factor, many.data.wanted)
    assert not compare(few.work.factor, few.room, many.work.factor, many.data.wanted)
    assert not compare(few.work.factor, few.room, few.work.factor, few.data.wanted)
    many.room.left[1] = -1
    assert not compare(many.work.factor, many.room, few.work.factor, many.data.wanted)
