"""The classical greedy: the largest marginal gain."""

import numpy as np
import oracles
import pytest
from cases import instance

import sparsetransport as st


def _reduction(case, pairs):
    """F(S) = U(0) - min of U on S, by Clarabel."""
    hessian, slope, _ = oracles.quadratic(*case.arrays)
    flat = [i * case.shape[1] + j for i, j in pairs]
    return -oracles.clarabel(hessian[np.ix_(flat, flat)], slope[flat]) if flat else 0.0


@pytest.mark.parametrize("reg", [0.0, 0.1])
@pytest.mark.parametrize("inner", ["active_set", "apgd"])
def test_each_step_takes_the_largest_marginal_gain(reg, inner):
    """Step by step, no other pair would have raised F by more."""
    case = instance(3, 4, 4, "rbf", reg, (5.0, 5.0))
    options = {"max_iter": 100_000, "tol": 1e-9} if inner == "apgd" else {}
    chosen = case.solve(budget=4, method="greedy", inner=inner, polish=False, reclaim=False, **options).path.pairs
    assert len(chosen) == 4
    for k in range(4):
        held = [tuple(pair) for pair in chosen[:k].tolist()]
        gains = {(i, j): _reduction(case, [*held, (i, j)]) for i in range(4) for j in range(4) if (i, j) not in held}
        assert gains[tuple(chosen[k].tolist())] == pytest.approx(max(gains.values()), rel=1e-5)


def test_greedy_differs_from_omp_where_gain_and_gradient_do():
    """The steepest pair need not be the one that gains most: where curvature differs, the rules part."""
    gram = np.diag([100.0, 1.0])  # the first row is steep and stiff
    problem = st.Problem.from_matrices(np.zeros((2, 1)), [0.02, 1.0], [0.0], kernels=(gram, np.eye(1)), unbalanced=1.0)
    slope, curvature = np.array([4.0, 2.0]), np.array([202.0, 4.0])
    assert slope.argmax() == 0
    assert (slope**2 / curvature).argmax() == 1
    for method, row in (("omp", 0), ("greedy", 1)):
        assert st.solve(problem, budget=1, method=method, polish=False).rows.tolist() == [row]
