"""What rounding hides: told where costs are lost beside much larger ones, and not elsewhere."""

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.rounding import hides_a_gain, warn_of_a_hidden_gain


def plan_of(costs, pairs, weight):
    problem = st.Problem.from_matrices(np.array(costs), kernels=st.Delta(), unbalanced=weight)
    result = st.solve_support(problem, links=pairs)
    return problem, (result.rows, result.cols, result.mass), result.value


@pytest.mark.parametrize(("small", "hidden"), [(1.0, False), (1e-9, True)])
def test_a_worse_plan_beside_large_costs_is_told(small, hidden):
    """The plan on the diagonal costs twice as much as the other: where that is lost, no status may be sure of it."""
    costs = [[2.0 * small, small, 1e3], [small, 2.0 * small, 1e3], [1e3, 1e3, small]]
    problem, plan, value = plan_of(costs, [(0, 1), (1, 0), (2, 2)], 1e6)
    assert not hides_a_gain(problem, plan, value) or hidden
    other, worse, cost = plan_of(costs, [(0, 0), (1, 1), (2, 2)], 1e6)
    assert hides_a_gain(other, worse, cost) or not hidden


def test_plans_that_cost_nothing_hide_nothing():
    assert not hides_a_gain(*plan_of(np.zeros((2, 2)), [(0, 0), (1, 1)], 1.0))


def test_the_warning_says_what_to_write():
    problem = plan_of(np.ones((2, 2)), [(0, 0)], 1.0)[0]
    with pytest.warns(st.SparseTransportWarning, match="mark forbidden pairs with inf, not with large costs"):
        warn_of_a_hidden_gain(problem)
