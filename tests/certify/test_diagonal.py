"""The diagonal of a Gram matrix: the rest stays positive semidefinite, and unreached points cost their share."""

import numpy as np
import pytest
from cases import instance
from oracles import brute_force, quadratic

import sparsetransport as st
from sparsetransport.certify.diagonal import largest
from sparsetransport.geometry.matrices import as_gram


def gram_of(points, kernel):
    return as_gram("kernels", kernel, len(points), points, lazy=False)


@pytest.mark.parametrize("sigma2", [0.01, 0.1, 1.0])
def test_what_is_left_is_positive_semidefinite(sigma2):
    points = np.random.default_rng(0).normal(size=(30, 3))
    gram = gram_of(points, st.RBF(sigma2))
    every = np.arange(30)
    matrix, own = gram.block(every, every), largest(gram)
    least = np.linalg.eigvalsh(matrix)[0]
    assert own is not None
    assert np.linalg.eigvalsh(matrix - np.diag(own))[0] >= -1e-12
    assert own.sum() >= 30 * least, "no less than the smallest eigenvalue everywhere"
    if sigma2 == 0.01:
        assert own.min() > 0.5


def test_wide_kernels_have_none():
    assert largest(gram_of(np.random.default_rng(0).random((30, 1)), st.RBF(10.0))) is None


def test_a_narrow_kernel_is_proved_by_it():
    """Points that the budget cannot reach are most of the objective, and the bound knows."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) + 1.0
    for reg in (0.0, 1.0):
        result = st.solve_sample(X, Y, budget=12, kernels=st.RBF(0.01), reg=reg, effort="quick")
        assert result.certify().relative_gap < 0.5


@pytest.mark.parametrize("reg", [0.0, 0.5])
def test_no_bound_is_above_the_best_plan(reg):
    """By brute force over all supports."""
    for seed in range(4):
        case = instance(seed, 4, 3, "rbf", reg, (10.0, 5.0))
        hessian, slope, constant = quadratic(*case.arrays)
        best = constant + brute_force(hessian, slope, (4, 3), Within(2))
        proof = st.solve(case.problem(), budget=2).certify()
        assert proof.lower_bound <= best + 1e-12 * constant


class Within:
    def __init__(self, most):
        self.most = most

    def __hash__(self):
        return self.most

    def __eq__(self, other):
        return self.most == other.most

    def __call__(self, support):
        return len(support) <= self.most
