"""The bound by parts: the unbudgeted optimum of every part, and the cheapest partition."""

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.budgets import limits_of
from sparsetransport.certify import components
from sparsetransport.certify.strongest import Task, _feasible, _has_parts, _parts
from sparsetransport.effort import ByParts


def problem_of(seed, m, n, reg=0.0):
    rng = np.random.default_rng(seed)
    return st.Problem.from_matrices(
        rng.random((m, n)), rng.lognormal(size=m), rng.lognormal(size=n), unbalanced=(3.0, 8.0), reg=reg
    )


def parts_of(problem):
    plan = st.solve(problem)
    task = Task(problem, limits_of(None, problem.shape), (plan.rows, plan.cols, plan.mass), plan.value)
    return components.all_parts(problem, *problem.smooth(*next(_feasible(task))))


@pytest.mark.parametrize("reg", [0.0, 0.5])
def test_a_part_costs_its_unbudgeted_optimum(reg):
    """Or a lower bound, where it was not computed; the links of the part have that objective."""
    problem = problem_of(0, 3, 3, reg)
    parts = parts_of(problem)
    components._make_exact(parts, np.arange(1, 64))
    cheap = parts_of(problem).value
    for k in range(1, 64):
        rows, cols = [i for i in range(3) if k >> i & 1], [j for j in range(3) if k >> (3 + j) & 1]
        if rows and cols:
            C = problem.cost.rows(0, 3)[np.ix_(rows, cols)]
            truth = st.solve(C, problem.a[rows], problem.b[cols], unbalanced=problem.unbalanced, reg=reg).value
        else:
            truth = 3.0 * (problem.a[rows] ** 2).sum() + 8.0 * (problem.b[cols] ** 2).sum()
        assert parts.value[k] <= truth * (1.0 + 1e-15)
        assert parts.value[k] == pytest.approx(truth, rel=1e-9)
        assert cheap[k] <= truth


@pytest.mark.parametrize("links", [3, 6, 9])
def test_a_plan_of_a_whole_budget_is_proven_optimal(links):
    problem = problem_of(1, 6, 6)
    result = st.solve(problem, budget=links, gap_tol=1e-7)
    assert result.relative_gap < 1e-9
    assert result.status is st.Status.OPTIMAL_PROVEN
    assert len(result.mass) <= links


def test_a_poor_plan_gets_the_optimum_beside_its_proof():
    problem = problem_of(2, 6, 6)
    poor = st.solve_support(problem, links=[(k, k) for k in range(6)])
    proof = poor.certify(effort="thorough")
    assert proof.better is not None
    assert proof.better.value < poor.value
    assert len(proof.better.mass) <= 6
    assert proof.lower_bound == pytest.approx(proof.better.value, rel=1e-9)


def test_without_the_integer_programme_it_is_a_bound():
    problem = problem_of(3, 5, 5)
    value = st.solve(problem, budget=5, gap_tol=1e-9).value
    for how in (ByParts(rounds=1), ByParts(rounds=5, columns=4), ByParts(programme=0)):
        bound, chosen = components.partition(parts_of(problem), 5, 1.5 * value, 0.0, how)
        assert bound <= value
        assert not chosen or how.programme
    bound, chosen = components.partition(parts_of(problem), 5, 1.5 * value, 0.0, ByParts())
    assert bound == pytest.approx(value, rel=1e-9)
    assert sum(chosen) == 2**10 - 1


def test_budgets_that_it_does_not_know_get_a_bound_and_no_plan():
    problem = problem_of(4, 5, 5)
    limits = limits_of(st.PerRow(1), (5, 5))
    plan = st.solve(problem, budget=st.PerRow(1))
    assert _has_parts(problem, limits)
    proof = _parts(Task(problem, limits, (plan.rows, plan.cols, plan.mass), plan.value))
    assert -np.inf < proof.bound <= plan.value
    if proof.plan is not None:
        assert (np.bincount(proof.plan[0]) <= 1).all()
    assert not _has_parts(problem, limits_of(None, (5, 5)))
    wide = st.Problem.from_points(np.eye(3), np.eye(3), kernels=st.RBF(1.0))
    assert not _has_parts(wide, limits_of(st.Uniform(2), (3, 3)))
