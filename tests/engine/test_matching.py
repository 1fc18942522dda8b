"""One link a row and column: the start that SciPy's assignment gives."""

import numpy as np
import pytest
from cases import instance, support
from scipy.optimize import linear_sum_assignment

import sparsetransport as st
from sparsetransport.budgets import as_matroid, limits_of
from sparsetransport.engine import matching

ONE = st.PerRow(1) & st.PerColumn(1)


@pytest.mark.parametrize("weights", [(1e3, 1e3), (1.0, 1e4), (1e-3, 1e3)])
@pytest.mark.parametrize("shape", [(40, 40), (30, 45)])
def test_no_assignment_is_better(shape, weights):
    """With delta kernels the plan is at least as good as the cheapest assignment with optimal masses."""
    rng = np.random.default_rng(1)
    problem = st.Problem.from_points(
        rng.normal(size=(shape[0], 2)), rng.normal(size=(shape[1], 2)), kernels=st.Delta(), unbalanced=weights
    )
    rows, cols = linear_sum_assignment(problem.cost.rows(0, shape[0]))
    cheapest = st.solve_support(problem, links=list(zip(rows.tolist(), cols.tolist(), strict=True)))
    result = st.solve(problem, budget=ONE)
    assert result.value <= cheapest.value * (1.0 + 1e-12)
    assert set(result.path.support_at(100)) == set(support(result))


@pytest.mark.parametrize("seed", range(10))
def test_with_delta_kernels_it_is_the_best_matching(seed):
    """Brute force over all matchings finds none that is better."""
    case = instance(seed, 4, 4, "delta", 0.1, (3.0, 2.0))
    best = case.optimum(lambda pairs: len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs))
    assert case.solve(budget=ONE).value == pytest.approx(best)


def test_forbidden_pairs_are_in_no_matching():
    """However little they would cost otherwise."""
    C = np.array([[0.0, np.inf], [np.inf, np.inf]])
    assert matching.best_alone([st.Problem.from_matrices(C, unbalanced=5.0)], [1.0]) == [(0, 0)]


@pytest.mark.parametrize("budget", [3, st.PerRow(1), ONE & st.Uniform(2), ONE & st.Partition(np.zeros((3, 3), int), 2)])
def test_other_budgets_are_none(budget):
    """Only where every matching is allowed, and nothing else."""
    limits = limits_of(as_matroid(budget), (3, 3))
    assert not matching.is_one_to_one(limits)
    assert matching.is_one_to_one(ONE.limits((3, 3)))
