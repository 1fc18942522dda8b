"""The search for shared links: every part of it lowers the objective, keeps fixed links, and keeps to the budget."""

from dataclasses import replace

import numpy as np
import pytest
from cases import instance

import sparsetransport as st
from sparsetransport.budgets import as_matroid
from sparsetransport.engine.room import Constraint
from sparsetransport.engine.shared_solver import SharedSolver

WEIGHTS = np.array([1.0, 0.5, 2.0])


def scenarios(seed=0, m=9, n=8, kernel="rbf", reg=0.1):
    first, rng = instance(seed, m, n, kernel, reg, (20.0, 20.0)).problem(), np.random.default_rng(seed)
    return [replace(first, b=rng.random(n) + 0.1) for _ in WEIGHTS]


def solver_of(problems, budget, **options):
    constraint = Constraint(as_matroid(budget), problems[0].shape)
    return SharedSolver(problems, WEIGHTS, constraint, st.DEFAULT.tuning, **options)


def value_on(problems, links):
    """The weighted objective of exact plans on the links."""
    return WEIGHTS @ [st.solve_support(problem, links=links).value for problem in problems]


def check(solver, problems, matroid, fixed=()):
    """The budget is kept, fixed links come first, and the objective is that of exact plans on the links."""
    links = solver.support()
    assert links[: len(fixed)] == list(fixed)
    assert all(matroid.can_add(links[:k], pair) for k, pair in enumerate(links))
    assert solver.objective == pytest.approx(value_on(problems, links), rel=1e-10)
    assert solver.room.left.min() >= 0


@pytest.mark.parametrize("budget", [10, st.PerRow(1), st.PerColumn(2)], ids=repr)
def test_swaps_and_elimination_never_raise_the_objective(budget):
    """And elimination lowers it where it says so; fixed links stay where they are, however little they help."""
    matroid, fixed, better = as_matroid(budget), [(8, 0), (0, 7)], 0
    for seed in range(6):
        problems = scenarios(seed)
        solver = solver_of(problems, matroid)
        solver.seed(fixed, [])
        solver.grow()
        check(solver, problems, matroid, fixed)
        grown = solver.objective
        solver.swap()
        check(solver, problems, matroid, fixed)
        swapped = solver.objective
        assert swapped <= grown * (1.0 + 1e-12)
        lower = solver.eliminate(128)
        check(solver, problems, matroid, fixed)
        assert (solver.objective < swapped) if lower else solver.objective == pytest.approx(swapped, rel=1e-12)
        better += lower + (swapped < grown * (1.0 - 1e-9))
    assert better > 0


def test_an_elimination_that_does_not_help_leaves_no_trace():
    """Links, their order, masses and capacities are what they were."""
    undone = 0
    for seed in range(8):
        solver = solver_of(scenarios(seed), 10)
        solver.grow()
        while solver.eliminate(128):
            pass
        before, steps, left = solver.outcome(), len(solver.record), solver.room.left.copy()
        assert not solver.eliminate(128)
        after = solver.outcome()
        undone += solver._wants_more()
        np.testing.assert_array_equal(np.column_stack(after[:2]), np.column_stack(before[:2]))
        np.testing.assert_allclose(after.mass, before.mass, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(solver.room.left, left)
        assert len(solver.record) == steps
    assert undone > 0


def test_a_start_gives_what_fits_and_is_used():
    """Links beyond the budget and links without mass are left out."""
    problems = scenarios()
    solver = solver_of(problems, st.PerRow(1))
    solver.seed([], [(0, 0), (0, 1), (1, 1), (2, 2)])
    assert set(solver.start) <= {(0, 0), (1, 1), (2, 2)}
    assert list(solver.start) == solver.support()
    assert solver.outcome().mass.any(axis=0).all()
    assert solver.objective == pytest.approx(value_on(problems, [(0, 0), (1, 1), (2, 2)]), rel=1e-10)


@pytest.mark.parametrize("kernel", ["delta", "rbf"])
def test_every_way_through_the_loop_finds_the_same_links(kernel):
    """In one compiled function, in Python with scenarios in several groups, in threads, or from a list that is new."""
    problems = scenarios(3, kernel=kernel)
    apart = [
        replace(problem, cost=type(problem.cost).dense(problem.cost.rows(0, problem.shape[0]))) for problem in problems
    ]
    found = []
    tuning = replace(st.DEFAULT, list_refresh=1.0).tuning
    for given, options in ((problems, {}), (apart, {}), (problems, {"n_jobs": 3}), (problems, {"listed": True})):
        solver = solver_of(given, 9, **options)
        solver.tuning = tuning
        with solver.threads():
            solver.grow()
        found.append((solver.support(), len(solver.groups)))
    assert [groups for _, groups in found] == [1, 3, 1, 1]
    assert found[0][0] == found[1][0] == found[2][0] == found[3][0]
    assert len(found[0][0]) == 9


def test_a_callback_that_answers_true_stops():
    solver = solver_of(scenarios(), 12, callback=lambda step: step.entries == 3)
    solver.grow()
    solver.swap()
    assert not solver.eliminate(128)
    assert len(solver.support()) == 3
    assert solver.outcome().status is st.Status.STOPPED
