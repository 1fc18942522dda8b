"""The inner solvers on supports of transport plans, against Clarabel; degenerate supports above all."""

import numpy as np
import oracles
import pytest
import strategies
from cases import KERNELS, Instance, instance
from hypothesis import assume, given

import sparsetransport as st

SIZE = (12, 10)


def _support(seed, shape, share=0.4):
    """A random list of pairs, in random order."""
    rng = np.random.default_rng(seed)
    picked = np.flatnonzero(rng.random(shape[0] * shape[1]) < share)
    return np.divmod(rng.permutation(picked), shape[1])


def _restricted(case, rows, cols):
    """The quadratic on a support, from the oracle."""
    hessian, slope, _ = oracles.quadratic(*case.arrays)
    flat = rows * case.shape[1] + cols
    return hessian[np.ix_(flat, flat)], slope[flat]


def _assert_solved(case, rows, cols, *, exact=True):
    """The active set's masses are feasible, satisfy the optimality conditions, and have Clarabel's objective."""
    solution = st.ActiveSet(case.problem()).solve(rows, cols, np.zeros(len(rows)))
    hessian, slope = _restricted(case, rows, cols)
    scale = max(np.abs(slope).max(), 1e-300)
    mass, value = solution.mass, float(slope @ solution.mass + 0.5 * solution.mass @ hessian @ solution.mass)
    assert solution.converged
    assert (mass >= 0.0).all()
    gradient = hessian @ mass + slope
    assert gradient.min(initial=0.0) >= -1e-10 * scale
    assert np.abs(gradient[mass > 0.0]).max(initial=0.0) <= 1e-10 * scale
    assert solution.change == pytest.approx(value, abs=1e-9 * max(case.constant(), abs(value)))
    if exact:
        assert value == pytest.approx(oracles.clarabel(hessian, slope), abs=1e-8 * max(abs(value), 1e-12))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("reg", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_random_supports_agree_with_clarabel(kernel, reg, seed):
    """On a random support the exact solve and Clarabel have the same objective, to 1e-8."""
    case = instance(seed, *SIZE, kernel, reg, (2.0, 5.0), negative=seed == 2 and reg > 0.0)
    _assert_solved(case, *_support(seed, SIZE))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("share", [0.6, 1.0])
def test_supports_full_of_cycles_agree_with_clarabel(kernel, share):
    """With λ₂ = 0 every cycle of the support makes the Hessian singular; the solve ends, at the right objective."""
    case = instance(7, *SIZE, kernel, 0.0)
    rows, cols = _support(7, SIZE, share)
    hessian, _ = _restricted(case, rows, cols)
    assert np.linalg.matrix_rank(hessian) < len(rows)
    _assert_solved(case, rows, cols)


@pytest.mark.parametrize("kernel", ["rbf", "imq", "imq-v2"])
@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_duplicate_points_agree_with_clarabel(kernel, reg):
    """Every point given three times: the Gram matrices have rank a third of their size."""
    case = instance(3, 4, 4, kernel, reg)
    twice = np.repeat(np.arange(4), 3)
    case = case.permuted(twice, twice)
    assert np.linalg.matrix_rank(case.Ga) == 4
    _assert_solved(case, *_support(3, (12, 12), 0.7))


@pytest.mark.parametrize("sigma2", [1e3, 1e4, 1e6])
@pytest.mark.parametrize("reg", [0.0, 1e-3])
def test_nearly_singular_gram_matrices_agree_with_clarabel(sigma2, reg):
    """A bandwidth far beyond the points makes all rows of a Gram matrix alike, up to rounding."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(10, 2)), rng.normal(size=(9, 2)) + 0.5
    C = ((x[:, None] - y) ** 2).sum(axis=2)
    kernel = st.RBF(sigma2)
    case = Instance(C / C.max(), np.ones(10), np.full(9, 0.8), kernel.gram(x), kernel.gram(y), (3.0, 3.0), reg)
    assert np.linalg.cond(case.Ga) > 1e12
    _assert_solved(case, *_support(5, (10, 9), 0.8))


@given(strategies.instances(regs=(0.0, 0.125)), strategies.seeds)
def test_any_support_ends_optimal(case, seed):
    """Ties, zero masses, coinciding points, cycles: masses are finite, feasible and satisfy the KKT conditions."""
    rows, cols = _support(seed, case.shape, 0.7)
    allowed = np.isfinite(case.C[rows, cols])
    assume(allowed.any())
    _assert_solved(case, rows[allowed], cols[allowed], exact=False)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("reg", [0.1, 1.0])
def test_apgd_agrees_with_clarabel(kernel, reg):
    """APGD, run long enough, has Clarabel's objective, and says that it converged."""
    case = instance(1, *SIZE, kernel, reg)
    rows, cols = _support(1, SIZE)
    solver = st.APGD(case.problem(), tol=1e-9, max_iter=200_000)
    solution = solver.solve(rows, cols, np.zeros(len(rows)))
    hessian, slope = _restricted(case, rows, cols)
    assert solution.converged
    assert (solution.mass >= 0.0).all()
    assert solution.change == pytest.approx(oracles.clarabel(hessian, slope), rel=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_apgd_on_degenerate_supports(kernel):
    """Cycles at λ₂ = 0 leave the masses ambiguous but not the objective."""
    case = instance(2, *SIZE, kernel, 0.0)
    rows, cols = _support(2, SIZE, 0.7)
    solution = st.APGD(case.problem(), tol=1e-9, max_iter=300_000).solve(rows, cols, np.zeros(len(rows)))
    hessian, slope = _restricted(case, rows, cols)
    assert np.isfinite(solution.mass).all()
    assert solution.change == pytest.approx(oracles.clarabel(hessian, slope), rel=1e-5)


def test_apgd_says_when_it_did_not_converge():
    """Two iterations are not enough, and the solver does not claim otherwise."""
    case = instance(0, *SIZE)
    rows, cols = _support(0, SIZE)
    assert not st.APGD(case.problem(), tol=1e-9, max_iter=2).solve(rows, cols, np.zeros(len(rows))).converged


def test_the_active_set_says_when_it_did_not_converge():
    """One pivot is not enough for ten entries, and the solver does not claim otherwise."""
    case = instance(0, *SIZE)
    rows, cols = _support(0, SIZE)
    limited = st.ActiveSet(case.problem(), max_iter=1).solve(rows, cols, np.zeros(len(rows)))
    assert not limited.converged
    assert (limited.mass > 0.0).sum() == 1


def test_no_pairs_no_mass():
    """On the empty support both solvers return nothing, converged."""
    problem, none = instance(0).problem(), np.zeros(0, np.int64)
    for solver in (st.ActiveSet(problem), st.APGD(problem)):
        solution = solver.solve(none, none, np.zeros(0))
        assert (solution.mass.size, solution.change, solution.converged) == (0, 0.0, True)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_factor_remembers_and_forgets(kernel):
    """A solver that was used on other supports before gives the answer of a fresh one."""
    problem = instance(4, *SIZE, kernel).problem()
    used = st.ActiveSet(problem)
    for seed in range(6):
        rows, cols = _support(seed, SIZE, 0.3)
        fresh = st.ActiveSet(problem).solve(rows, cols, np.zeros(len(rows)))
        again = used.solve(rows, cols, np.zeros(len(rows)))
        np.testing.assert_allclose(again.mass, fresh.mass, atol=1e-9)
        assert again.change == pytest.approx(fresh.change, rel=1e-10)


def test_a_plan_that_nothing_limits_is_an_error():
    """A Gram matrix that does not see [1, 1], negative costs, λ₂ = 0: both solvers' user is told, in words."""
    blind = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for options in ({}, {"method": "greedy"}, {"reclaim": False}):
        with pytest.raises(st.UnboundedError, match=r"without bound.*reg > 0"):
            st.solve(-np.ones((2, 2)), kernels=(blind, blind), unbalanced=1.0, **options)
    assert issubclass(st.UnboundedError, ValueError)
    assert st.solve(-np.ones((2, 2)), kernels=(blind, blind), unbalanced=1.0, reg=0.1).converged
    assert st.solve(np.ones((2, 2)), kernels=(blind, blind), unbalanced=1.0).converged
