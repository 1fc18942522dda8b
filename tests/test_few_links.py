"""Budgets of a few links on small problems: what one could still find by hand is found."""

import itertools

import numpy as np
import pytest
from cases import least

import sparsetransport as st


def points(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(5, 2)), rng.normal(size=(4, 2))
    return st.Problem.from_points(X, Y, rng.random(5), rng.random(4), reg=0.1)


@pytest.mark.parametrize("seed", range(16))
def test_with_a_gap_the_best_plan_is_found(seed):
    problem, budget = points(seed), 2 + seed % 2
    best = least(problem, lambda support: len(support) <= budget)
    assert st.solve(problem, budget=budget, gap_tol=1e-9).value == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", range(16))
def test_with_a_gap_the_best_plan_is_found_in_scattered_groups(seed):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(9).reshape(3, 3) // 3
    problem = st.Problem.from_matrices(rng.random((3, 3)), kernels="delta", unbalanced=10.0, reg=0.3)
    best = least(problem, lambda support: len({labels[pair] for pair in support}) == len(support))
    found = st.solve(problem, budget=st.Partition(labels, 1), gap_tol=1e-9)
    assert found.value == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", [1, 7, 38, 132])
@pytest.mark.parametrize("budget", [2, 3])
def test_no_exchange_of_one_link_is_better(seed, budget):
    problem = points(seed)
    result = st.solve(problem, budget=budget)
    support = list(zip(result.rows.tolist(), result.cols.tolist(), strict=True))
    for leaving, entering in itertools.product(support, itertools.product(range(5), range(4))):
        exchanged = [*(pair for pair in support if pair != leaving), entering]
        assert st.solve_support(problem, links=exchanged).value >= result.value * (1.0 - 1e-9)


def test_a_plan_found_by_a_new_start_has_a_path_that_leads_to_it():
    """The steps of the first way, then a jump; the last objective is the plan's."""
    for seed in range(16):
        problem = points(seed)
        plain, far = (st.solve(problem, budget=2, gap_tol=gap) for gap in (None, 1e-9))
        assert far.value <= plain.value * (1.0 + 1e-12)
        np.testing.assert_array_equal(far.path.pairs[:2], plain.path.pairs[:2])
        assert far.path.objective[-1] == pytest.approx(far.value)
        assert far.path.plan_at(len(far.mass)).value == pytest.approx(far.value)
        assert far.lower_bound <= far.value * (1.0 + 1e-12)


class TestArraysThatChange:
    """Proofs come later; by then the caller's arrays may hold something else."""

    @staticmethod
    def assert_proofs_hold(results, values):
        for result, value in zip(results, values, strict=True):
            assert result.certify().lower_bound <= value * (1.0 + 1e-9)
            assert result.certify().relative_gap < 0.2
            assert result.path.plan_at(len(result.path)).value == pytest.approx(value)

    def test_one_by_one(self):
        rng, buffer = np.random.default_rng(0), np.empty((6, 6))
        results = []
        for scale in (1.0, 20.0):
            buffer[:] = scale * rng.random((6, 6))
            results.append(st.solve(buffer, budget=8, reg=0.1))
        self.assert_proofs_hold(results, [result.value for result in results])

    def test_in_a_batch(self):
        C = np.random.default_rng(1).random((4, 6, 6))
        results = st.solve_batch(C, budget=8, reg=0.1)
        values = [result.value for result in results]
        C *= 20.0
        self.assert_proofs_hold(results, values)

    @pytest.mark.parametrize("lazy", [False, True])
    def test_points(self, lazy):
        rng = np.random.default_rng(2)
        X, Y = rng.random((9, 2)), rng.random((8, 2))
        result = st.solve_sample(X, Y, budget=12, reg=1.0, lazy=lazy)
        value = result.value
        X *= 20.0
        self.assert_proofs_hold([result], [value])

    def test_gram_matrices(self):
        rng = np.random.default_rng(3)
        gram = np.eye(6) + 0.5
        result = st.solve(rng.random((6, 6)), kernels=gram, budget=8, reg=0.1)
        value = result.value
        gram *= 20.0
        self.assert_proofs_hold([result], [value])
