"""Orthogonal matching pursuit: the steepest free pair."""

import numpy as np
import oracles
import pytest
from cases import TINY_BUDGETS, Forest, instance, no_cycle

import sparsetransport as st


@pytest.mark.parametrize("budget", TINY_BUDGETS)
@pytest.mark.parametrize("reclaim", [True, False])
def test_each_step_takes_the_steepest_free_pair(budget, reclaim):
    """Step by step, no pair that the budget allowed had a more negative gradient."""
    case = instance(2, 4, 4, "imq", 0.1, (5.0, 5.0), forbidden=0.1)
    allowed = TINY_BUDGETS[budget].allowed
    path = case.solve(budget=TINY_BUDGETS[budget].matroid, reclaim=reclaim, polish=False).path
    assert len(path) >= 3
    support, mass = [], np.zeros((4, 4))
    for k, pair in enumerate(map(tuple, path.pairs.tolist())):
        gradient = oracles.gradient(*case.arrays, mass)
        free = [(i, j) for i in range(4) for j in range(4) if (i, j) not in support and allowed((*support, (i, j)))]
        assert pair in free
        assert gradient[pair] == pytest.approx(min(gradient[other] for other in free), abs=1e-9)
        support.append(pair)
        if reclaim:
            gone = path.gone[(path.gone_until[k - 1] if k else 0) : path.gone_until[k]].tolist()
            support = [kept for kept in support if list(kept) not in gone]
        mass = _solve(case, support)


def _solve(case, support):
    """The masses on a support, as a dense plan, by projected Newton from the oracle's quadratic."""
    from scipy.optimize import nnls

    hessian, slope, _ = oracles.quadratic(*case.arrays)
    flat = [i * 4 + j for i, j in support]
    lower = np.linalg.cholesky(hessian[np.ix_(flat, flat)])
    plan = np.zeros(16)
    plan[flat] = nnls(lower.T, -np.linalg.solve(lower, slope[flat]))[0]
    return plan.reshape(4, 4)


def test_omp_asks_a_matroid_of_the_users_own():
    """The steepest pair that closes no cycle, each time."""
    case = instance(5, 4, 4, "rbf", 0.1, (20.0, 20.0))
    path = case.solve(budget=Forest(), polish=False, reclaim=False).path
    support, mass = [], np.zeros((4, 4))
    for pair in map(tuple, path.pairs.tolist()):
        gradient = oracles.gradient(*case.arrays, mass)
        free = [(i, j) for i in range(4) for j in range(4) if (i, j) not in support and no_cycle((*support, (i, j)))]
        assert gradient[pair] == pytest.approx(min(gradient[other] for other in free), abs=1e-9)
        support.append(pair)
        mass = _solve(case, support)
    assert len(support) >= 5


def test_ties_go_to_the_first_column_wherever_its_row_is():
    """Rows are looked at in blocks; the compiled loop sees columns."""
    C = np.ones((300, 2))
    C[0, 1] = C[299, 0] = 0.0
    found = st.maximise(st.Problem.from_matrices(C), 1, st.OMP())
    assert (found.rows[0], found.cols[0]) == (299, 0)
    assert st.solve(C, budget=1, polish=False).rows[0] == 299
