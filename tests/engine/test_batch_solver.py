"""Problems side by side in one compiled call: each gets the plan that it gets alone."""

import numpy as np
import pytest
from cases import instance, problem_of

import sparsetransport as st
from sparsetransport._numba.codes import BUDGET_USED, LOCAL, OPTIMAL
from sparsetransport.batch.stack import Stack
from sparsetransport.budgets import as_matroid, limits_of
from sparsetransport.effort import QUICK
from sparsetransport.engine import batch_solver
from sparsetransport.engine.omp_solver import OMPSolver
from sparsetransport.engine.room import Constraint
from sparsetransport.inner.solvers import EXACT

STATUS = {BUDGET_USED: st.Status.BUDGET_USED, LOCAL: st.Status.LOCAL, OPTIMAL: st.Status.OPTIMAL}


def mixed():
    """Problems of several shapes, with delta kernels and others, with and without reg, some pairs forbidden."""
    return [
        problem_of(k, 3 + k % 5, 8 - k % 4, ["delta", "rbf", "imq"][k % 3], [0.0, 0.1][k % 2], (10.0, 5.0), forbidden=f)
        for k in range(12)
        for f in [0.3 * (k % 4 == 3)]
    ]


def alone(problem, matroid):
    """The steps of the quick effort, one after the other, by the solver of single problems."""
    solver = OMPSolver(problem, Constraint(matroid, problem.shape), QUICK.tuning)
    _, swap, eliminate, last = QUICK.improvers
    solver.grow()
    built = float(solver.effort[0])
    solver.swap(swap.share * built + swap.free, swap.passes)
    extra = min(max(solver.size, eliminate.least), eliminate.most)
    solver.eliminate(extra, eliminate.share * built + eliminate.free, eliminate.passes)
    solver.swap(last.share * built + last.free, last.passes)
    return solver


def together(problems, matroid):
    stack = Stack.of_problems(problems)
    packed = stack.pack([limits_of(matroid, problem.shape) for problem in problems], QUICK, EXACT)
    return batch_solver.solve(packed, QUICK.program, QUICK.tuning)


@pytest.mark.parametrize("budget", [None, 5, st.PerColumn(1), st.PerRow(1) & st.PerColumn(2)], ids=repr)
def test_every_problem_gets_the_plan_it_gets_alone(budget):
    """The same pairs, the same masses to the last bit, for the same reason and by the same steps."""
    problems, matroid = mixed(), as_matroid(budget)
    plans = together(problems, matroid)
    entry = step = 0
    for k, problem in enumerate(problems):
        expected = alone(problem, matroid).outcome()
        entries, steps, _ = plans.sizes[k]
        found = slice(entry, entry + entries)
        np.testing.assert_array_equal(plans.label[found], np.column_stack([expected.rows, expected.cols]))
        np.testing.assert_array_equal(plans.mass[found], expected.mass)
        assert STATUS[int(plans.code[k])] is expected.status
        path = expected.record.path((), lambda *_: None)
        np.testing.assert_array_equal(plans.added[step : step + steps], path.pairs)
        entry, step = entry + entries, step + steps
    assert (entry, step) == (len(plans.mass), len(plans.gain))


def test_figures_are_those_of_the_plans():
    """Cost, objective, marginals and fields, by the formulas on dense arrays."""
    cases = [instance(k, 4 + k % 3, 6, "rbf", 0.1, (10.0, 5.0)) for k in range(5)]
    plans = together([case.problem() for case in cases], st.Uniform(5))
    entry = point = 0
    for case, (entries, _, _), number in zip(cases, plans.sizes.tolist(), plans.number, strict=True):
        (m, n), found = case.shape, slice(entry, entry + entries)
        plan = np.zeros(case.shape)
        plan[tuple(plans.label[found].T)] = plans.mass[found]
        np.testing.assert_allclose(number[:2], [(case.C * plan).sum(), case.value(plan)], rtol=1e-10)
        assert number[2] < 1e-10
        sums = plan.sum(axis=1), plan.sum(axis=0)
        np.testing.assert_allclose(plans.marginal[point : point + m + n], np.concatenate(sums), rtol=1e-12)
        fields = 20.0 * case.Ga @ (sums[0] - case.a), 10.0 * case.Gb @ (sums[1] - case.b)
        np.testing.assert_allclose(plans.field[point : point + m + n], np.concatenate(fields), rtol=1e-9, atol=1e-11)
        entry, point = entry + entries, point + m + n


def test_a_look_sees_what_numpy_sees():
    """How many pairs are allowed, the lowest and the mean cost, the largest masses, and what is not sound."""
    rng = np.random.default_rng(0)
    costs = [rng.normal(size=shape) for shape in [(3, 4), (1, 1), (300, 2), (2, 2), (2, 2), (2, 2)]]
    masses = [(rng.random(len(C)), rng.random(C.shape[1])) for C in costs]
    costs[0][1, 2] = costs[2][::3, 0] = np.inf
    costs[3][0, 0], costs[4][0, 0], masses[5][1][1] = np.nan, -np.inf, -1.0
    sides = [side for both in masses for side in both]
    seen = batch_solver.look(
        np.array([C.shape for C in costs]), np.concatenate(costs, axis=None), np.concatenate(sides)
    )
    assert seen.sound.tolist() == [True, True, True, False, False, False]
    for k, (C, both) in enumerate(zip(costs[:3], masses, strict=False)):
        finite = C[np.isfinite(C)]
        assert (seen.allowed[k], seen.lowest[k]) == (finite.size, finite.min())
        assert seen.mean[k] == pytest.approx(np.abs(finite).mean())
        np.testing.assert_array_equal(seen.largest[k], [side.max() for side in both])


def test_lazy_problems_do_not_fit():
    points = np.random.default_rng(0).normal(size=(5, 2))
    assert batch_solver.fits(st.Problem.from_points(points, points, lazy=False))
    assert not batch_solver.fits(st.Problem.from_points(points, points, lazy=True))
