"""What solvers do around compiled functions: pauses, room, callbacks, and errors from a budget of the user's own."""

import numpy as np
import pytest
from cases import instance

import sparsetransport as st
from sparsetransport._numba.codes import LOCAL, NEEDS_ROOM, PAUSED, UNBOUNDED
from sparsetransport.engine import shell
from sparsetransport.engine.omp_solver import OMPSolver
from sparsetransport.engine.room import Constraint
from sparsetransport.engine.shell import Shell
from sparsetransport.inner.solvers import UnboundedError
from sparsetransport.plan import Outcome, Record


class Counting(Shell):
    """A solver whose compiled function returns prepared codes, with one step for each."""

    def __init__(self, codes, callback=None):
        super().__init__(Constraint(None, (4, 4)), 10.0, callback)
        self.codes, self.rooms, self.limits = list(codes), [], []

    def support(self):
        return []

    def enlarge(self):
        return 100

    def step(self, trace, limit):
        self.rooms.append(trace.gone.shape[1] - trace.gain.size)
        self.limits.append(limit)
        trace.added[:, 0], trace.gain[0], trace.steps[0] = 1, len(self.rooms), 1
        return self.codes.pop(0)


def test_a_function_is_called_until_it_is_done():
    """A pause calls it again, want of room with more room; every step is in the record, and effort may go on."""
    solver = Counting([PAUSED, NEEDS_ROOM, PAUSED, LOCAL, PAUSED])
    solver.effort[0] = 5.0
    assert solver.advance(solver.step, 7) == LOCAL
    assert solver.codes == [PAUSED]
    assert solver.rooms == [7, 7, 100, 100]
    assert solver.limits == [5.0 + shell.OPERATIONS] * 4
    assert len(solver.record) == 4
    path = solver.record.path((), lambda *_: None)
    np.testing.assert_array_equal(path.objective, [9.0, 8.0, 7.0, 6.0])


def test_no_minimum_is_an_error():
    solver = Counting([PAUSED, UNBOUNDED])
    with pytest.raises(UnboundedError):
        solver.advance(solver.step, 7)


def test_a_callback_that_answers_true_stops():
    """After the step it was told of, and for good."""
    told = []
    solver = Counting([PAUSED] * 9, callback=lambda step: told.append(step) or step.number == 2)
    assert solver.advance(solver.step, 7) == PAUSED
    assert solver.stopped
    assert [step.number for step in told] == [0, 1, 2]
    assert [step.objective for step in told] == [9.0, 8.0, 7.0]
    assert solver.advance(solver.step, 7) == PAUSED
    assert len(solver.codes) == 6


@pytest.mark.parametrize("error", [LookupError("mine"), KeyboardInterrupt()])
def test_what_a_matroid_raises_comes_out(error):
    """The error itself, Ctrl-C included, though it was raised within a compiled function."""

    class Broken(st.Matroid):
        def can_add(self, support, pair):
            if len(support) == 2:
                raise error
            return True

    problem = instance(0, 6, 5).problem()
    solver = OMPSolver(problem, Constraint(Broken(), problem.shape), st.DEFAULT.tuning)
    with pytest.raises(type(error)) as caught:
        solver.grow()
    assert caught.value is error
    assert solver.size == 2


def test_the_better_plan_goes_on_from_the_path_of_the_first():
    """A plan that is not better leaves the first one as it is."""
    case = instance(1, 6, 5, "rbf", 0.1, (10.0, 10.0))
    problem = case.problem()

    def outcome(pairs):
        plan = st.solve_support(problem, links=pairs)
        return Outcome(plan.rows, plan.cols, plan.mass, st.Status.GIVEN, ((4, 4),), Record(), True)

    one, two = outcome([(0, 0)]), outcome([(0, 0), (1, 1), (2, 2), (3, 3)])
    assert len(two.mass) > 1
    assert shell.better(problem, two, one) is two
    assert shell.better(problem, two, two) is two
    assert len(two.record) == 0
    joined = shell.better(problem, one, two)
    np.testing.assert_array_equal(joined.mass, two.mass)
    assert joined.record is one.record
    assert joined.start == one.start
    assert len(joined.record) == len(two.mass) - 1
