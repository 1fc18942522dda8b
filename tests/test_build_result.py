"""What users see of a plan: the figures are those of the formulas, and it travels light."""

import pickle
from functools import partial

import numpy as np
import pytest
from cases import KERNELS, instance

import sparsetransport as st
from sparsetransport import _checks
from sparsetransport.budgets import limits_of
from sparsetransport.build_result import Backing, build_result, on_support
from sparsetransport.certify.certifier import Certifier
from sparsetransport.inner.solvers import EXACT
from sparsetransport.plan import Outcome, Record


def outcome_of(mass, *, converged=True, status=st.Status.LOCAL):
    return Outcome(np.array([0, 1, 2]), np.array([2, 0, 1]), np.array(mass), status, ((0, 2),), Record(), converged)


def certifier_of(problem, budget=4):
    return Certifier(problem, limits_of(st.Uniform(budget), problem.shape), EXACT)


@pytest.mark.parametrize("kernel", KERNELS)
def test_figures_are_those_of_the_dense_plan(kernel):
    """Value, linear part, marginals and potentials by the formulas; entries without mass are left out."""
    case = instance(0, 4, 3, kernel, 0.2, (3.0, 5.0))
    problem = case.problem()
    result = build_result(outcome_of([0.4, 0.0, 0.2], status=st.Status.BASELINE), certifier_of(problem), np.asarray)
    plan = np.zeros((4, 3))
    plan[0, 2], plan[2, 1] = 0.4, 0.2
    assert result.rows.tolist() == [0, 2]
    np.testing.assert_array_equal(result.plan, plan)
    assert result.value == pytest.approx(case.value(plan), rel=1e-12)
    assert result.value == pytest.approx(problem.value(result.rows, result.cols, result.mass), rel=1e-12)
    assert result.value_linear == pytest.approx((case.C * plan).sum())
    np.testing.assert_allclose(result.marginal_a, plan.sum(axis=1))
    np.testing.assert_allclose(result.potential_a, -6.0 * case.Ga @ (plan.sum(axis=1) - case.a), rtol=1e-10)
    np.testing.assert_allclose(result.potential_b, -10.0 * case.Gb @ (plan.sum(axis=0) - case.b), rtol=1e-10)
    assert result.path.start == ((0, 2),)


def test_masses_that_are_not_optimal_are_warned_of():
    """By their KKT residual, unless a baseline chose them; the exact ones of the same support are fine."""
    case = instance(0, 4, 3, "rbf", 0.2, (3.0, 5.0))
    make = partial(build_result, certifier=certifier_of(case.problem()), give=np.asarray)
    with pytest.warns(st.ConvergenceWarning, match="KKT residual"):
        wrong = make(outcome_of([9.0, 9.0, 9.0]))
    assert not wrong.converged
    assert wrong.kkt > 1e-3
    assert not make(outcome_of([9.0, 9.0, 9.0], status=st.Status.BASELINE)).converged
    exact = on_support(case.problem(), np.array([0, 1, 2]), np.array([2, 0, 1]), limits_of(st.Uniform(3), (4, 3)))
    assert exact.converged
    assert exact.kkt < 1e-12
    assert exact.status is st.Status.GIVEN


def test_a_plan_of_a_smaller_budget_is_measured_by_it():
    """`restrict` solves on the links, and compares with all plans of at most so many entries."""
    case = instance(1, 5, 4, "rbf", 2.0, (10.0, 10.0))
    backing = Backing(certifier_of(case.problem(), 6), _checks.as_numpy)
    rows, cols = np.array([0, 1]), np.array([0, 1])
    part = backing.restrict(rows, cols, 2)
    assert part._backing.certifier.limits.total == 2
    assert part.value == pytest.approx(st.solve_support(case.problem(), links=[(0, 0), (1, 1)]).value)
    assert backing.certifier.limits.total == 6
    assert backing.restrict(rows, cols, 9)._backing.certifier.limits.total == 6
    assert part.certify().lower_bound <= case.optimum(lambda support: len(support) <= 2) + 1e-9


def test_a_certifier_is_made_when_it_is_first_needed():
    """And once; pickling needs it, and what it was to be made from stays behind."""
    made = []
    problem = instance(1, 5, 4).problem()

    def make():
        made.append(certifier_of(problem))
        return made[-1]

    backing = Backing(make, _checks.as_numpy)
    assert not made
    assert backing.certifier is backing.certifier is made[0]
    fresh = Backing(make, _checks.as_numpy)
    sent = pickle.loads(pickle.dumps(fresh))
    assert len(made) == 2
    assert isinstance(sent._certifier, Certifier)


def test_a_result_of_a_batch_is_pickled_without_the_others():
    """As many bytes, but for a few, as the same result solved alone."""
    costs = np.random.default_rng(0).random((400, 6, 5))
    one = st.solve_batch(costs, budget=4, unbalanced=5.0)[17]
    alone = st.solve(costs[17], budget=4, unbalanced=5.0, effort="quick")
    sent, plain = pickle.dumps(one), pickle.dumps(alone)
    assert len(sent) < len(plain) + 2000 < costs.nbytes / 10
    again = pickle.loads(sent)
    np.testing.assert_array_equal(again.plan, alone.plan)
    assert again.certify().lower_bound == pytest.approx(alone.certify().lower_bound, rel=1e-9)
