"""Exchanges of entries for better pairs: never worse, never beyond the budget, and none that helps is left."""

import numpy as np
import pytest
from cases import TINY_BUDGETS, Forest, instance

import sparsetransport as st
from sparsetransport.budgets import as_matroid
from sparsetransport.engine import swaps
from sparsetransport.engine.omp_solver import OMPSolver
from sparsetransport.engine.room import Constraint
from sparsetransport.engine.state import new_saved
from sparsetransport.plan import new_trace


def solver_of(case, budget):
    problem = case.problem()
    return OMPSolver(problem, Constraint(as_matroid(budget), problem.shape), st.DEFAULT.tuning)


def one_pass(solver):
    """How many exchanges a pass made, and its steps."""
    room = len(solver.work.factor.mass)
    trace = new_trace(4 * room + 64, room)
    spare = new_saved(room, solver.room.left)
    return swaps.swap_pass(solver.data, solver.work, spare, trace, solver.effort, np.inf), trace


@pytest.mark.parametrize("reg", [0.0, 0.1])
@pytest.mark.parametrize("budget", [*TINY_BUDGETS, "forest"])
def test_a_pass_never_raises_the_objective_and_keeps_to_the_budget(budget, reg):
    """It lowers the objective if it says so, and changes nothing if not; masses are optimal on the new support."""
    matroid = Forest() if budget == "forest" else as_matroid(TINY_BUDGETS[budget].matroid)
    for seed in range(8):
        solver = solver_of(instance(seed, 4, 4, "rbf", reg, (10.0, 10.0)), matroid)
        solver.grow()
        before, pairs = solver.gain, solver.support()
        accepted, trace = one_pass(solver)
        after = solver.support()
        assert all(matroid.can_add(after[:k], pair) for k, pair in enumerate(after))
        if accepted:
            assert solver.gain > before
            assert trace.gain[trace.steps[0] - 1] == pytest.approx(solver.gain)
        else:
            assert (solver.gain, after, trace.steps.tolist()) == (before, pairs, [0, 0])
        exact = st.solve_support(solver.problem, links=after)
        assert solver.constant - solver.gain == pytest.approx(exact.value, rel=1e-9)
        left = Constraint(matroid, (4, 4)).room().left
        for i, j in after:
            left[[0, 1 + i, 5 + j]] -= 1
        first = 0 if budget != "forest" else 1  # whose rank is known once the plan is maximal
        np.testing.assert_array_equal(solver.room.left[first:9], left[first:9])


@pytest.mark.parametrize("kernel", ["delta", "rbf", "imq-v2"])
def test_no_exchange_of_one_entry_is_left(kernel):
    """Where all pairs compete, a plan that a pass leaves alone has no better neighbour, by brute force."""
    made = 0
    for seed in range(6):
        case = instance(seed, 5, 4, kernel, 0.1, (10.0, 10.0))
        solver = solver_of(case, 4)
        solver.grow()
        while accepted := one_pass(solver)[0]:
            made += accepted
        pairs, value = solver.support(), solver.constant - solver.gain
        outside = [pair for pair in np.ndindex(5, 4) if pair not in pairs]
        for gone in pairs:
            rest = [pair for pair in pairs if pair != gone]
            for new in outside:
                assert st.solve_support(solver.problem, links=[*rest, new]).value >= value * (1.0 - 1e-9)
    assert made > 0


def test_two_crossed_entries_are_exchanged_together():
    """No exchange of a single entry leads from one assignment to the other."""
    case = instance(0, 2, 2, "delta", 0.0, (50.0, 50.0))
    case.C[:] = [[1.0, 0.0], [0.0, 1.0]]
    case.a[:], case.b[:] = 1.0, 1.0
    solver = solver_of(case, st.PerRow(1) & st.PerColumn(1))
    solver.seed([(0, 0), (1, 1)])
    assert set(solver.support()) == {(0, 0), (1, 1)}
    assert one_pass(solver)[0] == 1
    assert set(solver.support()) == {(0, 1), (1, 0)}


def test_without_effort_nothing_is_tried():
    case = instance(0, 2, 2, "delta", 0.0, (50.0, 50.0))
    case.C[:] = [[1.0, 0.0], [0.0, 1.0]]
    solver = solver_of(case, st.PerRow(1) & st.PerColumn(1))
    solver.seed([(0, 0), (1, 1)])
    before, room = solver.support(), len(solver.work.factor.mass)
    spare = new_saved(room, solver.room.left)
    assert swaps.swap_pass(solver.data, solver.work, spare, new_trace(64, room), solver.effort, -1.0) == 0
    assert solver.support() == before
