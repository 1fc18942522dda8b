"""The loop knows nothing of transport: sparse non-negative least squares by the same rules."""

from dataclasses import dataclass

import numpy as np
import oracles
import pytest
from scipy.optimize import nnls

import sparsetransport as st

RULES = [st.OMP(), st.Greedy(), st.StochasticOMP(0.1), st.Residual(), st.ResidualGreedy()]


@dataclass
class LeastSquares:
    """½ |Ax - y|² over x >= 0 with few entries, as the loop wants to see it."""

    A: np.ndarray
    y: np.ndarray

    def __post_init__(self):
        self.shape = 1, self.A.shape[1]
        self.constant = 0.5 * float(self.y @ self.y)
        self.scale = float(np.abs(self.A.T @ self.y).max())

    def slope(self, rows, cols):
        return -self.A[:, cols].T @ self.y

    def hessian(self, rows, cols, other_rows, other_cols):
        return self.A[:, cols].T @ self.A[:, other_cols]

    def fields(self, rows, cols, mass):
        return self.A[:, cols] @ mass - self.y

    def gradient(self, fields, rows, cols):
        return self.A[:, cols].T @ fields

    def gradient_rows(self, fields, first, last):
        return (self.A.T @ fields)[None, :][first:last]


def _least_squares(seed, size=12):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(20, size))
    sparse = np.where(np.arange(size) % 4 == 0, 1.0 + rng.random(size), 0.0)
    return LeastSquares(A, A @ sparse + 0.3 * rng.normal(size=20))


def _on(problem, columns):
    """The objective of SciPy's NNLS on some columns."""
    x, norm = nnls(problem.A[:, columns], problem.y)
    return x, 0.5 * norm**2


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("reclaim", [True, False])
def test_masses_are_those_of_nnls_on_the_chosen_support(rule, reclaim):
    """Whatever the rule chooses, the masses are SciPy's NNLS solution there; never below the best of all supports."""
    for seed in range(4):
        problem = _least_squares(seed)
        found = st.maximise(problem, st.Uniform(3), rule, reclaim=reclaim, rng=np.random.default_rng(seed))
        x, value = _on(problem, found.cols)
        np.testing.assert_allclose(found.mass, x, atol=1e-9)
        assert len(found.cols) <= 3
        hessian, slope = problem.A.T @ problem.A, -problem.A.T @ problem.y
        best = problem.constant + oracles.brute_force(hessian, slope, (1, 12), _at_most_three)
        assert value >= best - 1e-10
        path = found.record.path((), None)
        assert path.objective[-1] == pytest.approx(value, rel=1e-10)
        assert (np.diff(path.objective) <= 1e-10).all()


def _at_most_three(support):
    return len(support) <= 3


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_without_a_budget_the_end_is_the_optimum(rule):
    """No budget: any rule goes on until no gradient is negative, which is NNLS on all columns."""
    problem = _least_squares(1)
    found = st.maximise(problem, None, rule, rng=np.random.default_rng(0))
    x = np.zeros(12)
    x[found.cols] = found.mass
    np.testing.assert_allclose(x, _on(problem, np.arange(12))[0], atol=1e-8)
    assert found.status is st.Status.LOCAL


@pytest.mark.parametrize(
    "matroid",
    [st.Partition(np.arange(12)[None, :] % 3, 1), st.PerRow(3), st.Laminar(st.PerRow(3), st.Uniform(2))],
    ids=repr,
)
def test_budgets_of_the_grid_apply_to_any_objective(matroid):
    """A list of variables is a grid of one row, and every budget means what it says there."""
    problem = _least_squares(2)
    found = st.maximise(problem, matroid, st.OMP())
    support = list(zip(found.rows.tolist(), found.cols.tolist(), strict=True))
    assert 0 < len(support) <= 3
    for k, pair in enumerate(support):
        assert matroid.can_add(support[:k] + support[k + 1 :], pair)


def test_another_inner_solver_fits_in():
    """APGD in place of the active set: the same support, nearly the same masses."""
    problem = _least_squares(3)
    exact = st.maximise(problem, st.Uniform(3), st.OMP())
    descent = st.maximise(problem, st.Uniform(3), st.OMP(), inner=st.APGD(problem, 1e-10, 100_000))
    np.testing.assert_array_equal(exact.cols, descent.cols)
    np.testing.assert_allclose(exact.mass, descent.mass, atol=1e-6)


def test_the_callback_sees_each_step_and_may_stop():
    """The general loop hands every step to the callback and ends when it says so."""
    problem, seen = _least_squares(0), []

    def watch(step):
        seen.append(step)
        return len(seen) == 2

    found = st.maximise(problem, st.Uniform(5), st.OMP(), callback=watch)
    assert found.status is st.Status.STOPPED
    assert [(step.number, step.entries) for step in seen] == [(0, 1), (1, 2)]
    assert seen[1].objective < seen[0].objective < problem.constant
    np.testing.assert_array_equal([step.pair for step in seen], found.record.path((), None).pairs)


def test_a_budget_may_be_a_number_here_too():
    problem = _least_squares(0)
    assert (
        st.maximise(problem, 3, st.OMP()).cols.tolist() == st.maximise(problem, st.Uniform(3), st.OMP()).cols.tolist()
    )
    with pytest.raises(TypeError, match="budget must be a positive int"):
        st.maximise(problem, 2.5, st.OMP())


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_start_within_the_budget_is_kept_to_the_letter(rule):
    """Without reclaim the pairs to begin with stay, and the rest of the budget is filled around them."""
    problem = _least_squares(0)
    found = st.maximise(
        problem, st.Uniform(4), rule, reclaim=False, start=[(0, 5), (0, 2)], rng=np.random.default_rng(0)
    )
    assert {5, 2} <= set(found.cols.tolist())
    assert len(found.cols) == 4
