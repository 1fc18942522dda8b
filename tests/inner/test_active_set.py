"""The kernels of the exact inner solve: a factor with masses that are optimal after every change."""

import numpy as np
import pytest
from scipy.optimize import nnls

from sparsetransport._numba.codes import SOLVED, UNBOUNDED
from sparsetransport.inner import active_set


def _quadratic(seed, size, rank=None):
    """A strictly convex (or, below full rank, singular) quadratic whose minimiser over x >= 0 has zeros."""
    rng = np.random.default_rng(seed)
    basis = rng.random((size, size if rank is None else rank))
    return basis @ basis.T, -basis @ rng.normal(0.3, 1.0, basis.shape[1])


def _push(factor, hessian, slope, variable):
    size = int(factor.size[0])
    factor.coupling[:size] = hessian[variable, factor.label[1, :size]]
    factor.size[1] = 0
    return active_set.push(factor, 0, variable, hessian[variable, variable], slope[variable])


def _masses(factor, size):
    x = np.zeros(size)
    x[factor.label[1, : int(factor.size[0])]] = factor.mass[: int(factor.size[0])]
    return x


def _descend(hessian, slope):
    """Push the steepest variable until no gradient is negative: the whole non-negative quadratic program."""
    size = len(slope)
    factor = active_set.new_factor(size)
    for _ in range(20 * size):
        gradient = hessian @ _masses(factor, size) + slope
        gradient[factor.label[1, : int(factor.size[0])]] = 0.0
        if gradient.min() > -1e-11:
            break
        assert _push(factor, hessian, slope, int(gradient.argmin())) == SOLVED
    return factor


def _nnls(hessian, slope):
    """The same program as least squares: |L'x + L⁻¹f|²."""
    lower = np.linalg.cholesky(hessian)
    return nnls(lower.T, -np.linalg.solve(lower, slope))[0]


@pytest.mark.parametrize("seed", range(10))
def test_pushing_solves_the_non_negative_program(seed):
    """Pushing the steepest variable again and again ends at the solution of SciPy's NNLS."""
    hessian, slope = _quadratic(seed, 12)
    hessian += 0.01 * np.eye(12)
    factor = _descend(hessian, slope)
    x, expected = _masses(factor, 12), _nnls(hessian, slope)
    np.testing.assert_allclose(x, expected, atol=1e-8)
    assert 0 < (expected > 0).sum() < 12
    assert active_set.gain(factor) == pytest.approx(-(slope @ x + 0.5 * x @ hessian @ x), rel=1e-10)


def test_the_gain_follows_every_push():
    """½|w|² is by how much the entries lower the objective, after every single change."""
    hessian, slope = _quadratic(1, 10)
    slope = -np.abs(slope)
    factor = active_set.new_factor(10)
    for variable in range(10):
        gradient = hessian @ _masses(factor, 10) + slope
        if gradient[variable] < 0.0:
            _push(factor, hessian, slope, variable)
        x = _masses(factor, 10)
        assert active_set.gain(factor) == pytest.approx(-(slope @ x + 0.5 * x @ hessian @ x), rel=1e-9)
        assert (factor.mass[: int(factor.size[0])] > 0.0).all()


def test_who_leaves_is_logged():
    """Entries before a push, plus the new one, less the logged ones, are the entries after it."""
    departures = 0
    for seed in range(10):
        hessian, slope = _quadratic(seed, 15)
        factor = active_set.new_factor(15)
        for variable in range(15):
            if (hessian @ _masses(factor, 15) + slope)[variable] >= 0.0:
                continue
            before = set(factor.label[1, : int(factor.size[0])].tolist())
            _push(factor, hessian, slope, variable)
            gone = set(factor.gone[1, : int(factor.size[1])].tolist())
            departures += len(gone)
            assert set(factor.label[1, : int(factor.size[0])].tolist()) == (before | {variable}) - gone
    assert departures > 10


@pytest.mark.parametrize("position", range(4))
def test_dropping_solves_on_the_others(position):
    """After a drop the masses are optimal among the entries that are left."""
    hessian = np.eye(4) + 0.2
    slope = np.array([-3.0, -4.0, -5.0, -4.0])
    factor = active_set.new_factor(4)
    for variable in range(4):
        _push(factor, hessian, slope, variable)
    dropped = int(factor.label[1, position])
    active_set.drop(factor, position)
    kept = [k for k in range(4) if k != dropped]
    x = _masses(factor, 4)
    assert x[dropped] == 0.0
    np.testing.assert_allclose(x[kept], _nnls(hessian[np.ix_(kept, kept)], slope[kept]), atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_a_dependent_variable_takes_the_place_of_others(seed):
    """On a singular Hessian an entry that depends on the others enters, one leaves, and the end is optimal."""
    hessian, slope = _quadratic(seed, 12, rank=4)
    factor = _descend(hessian, slope)
    x = _masses(factor, 12)
    assert int(factor.size[0]) <= 4
    gradient = hessian @ x + slope
    assert gradient.min() > -1e-9
    assert abs(gradient @ x) < 1e-9


def test_a_direction_without_curvature_is_unbounded():
    """If mass costs less than nothing and nothing penalises it, there is no minimum."""
    factor = active_set.new_factor(2)
    assert active_set.push(factor, 0, 0, 0.0, -1.0) == UNBOUNDED
    hessian = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert _push(factor, hessian, np.array([-1.0, -1.0]), 0) == SOLVED
    assert _push(factor, hessian, np.array([-1.0, -1.0]), 1) == UNBOUNDED


@pytest.mark.parametrize("capacity", [3, 8, 64, 100])
def test_a_larger_copy_is_the_same(capacity):
    """Enlarging keeps the factor, the masses and the labels, and goes on where the old one was."""
    hessian, slope = np.eye(capacity + 1) + 0.1, -np.arange(1.0, capacity + 2)
    factor = active_set.new_factor(capacity)
    for variable in range(min(capacity, 8)):
        _push(factor, hessian, slope, variable)
    larger = active_set.enlarge(factor, 2 * capacity)
    np.testing.assert_array_equal(_masses(larger, capacity), _masses(factor, capacity))
    assert _push(larger, hessian, slope, capacity) == SOLVED
    members = [*range(min(capacity, 8)), capacity]
    expected = _nnls(hessian[np.ix_(members, members)], slope[members])
    np.testing.assert_allclose(_masses(larger, capacity + 1)[members], expected, atol=1e-10)


@pytest.mark.parametrize("rank", [None, 5])
def test_gains_are_what_solving_would_give(rank):
    """The marginal gain of each candidate is the fall of the objective when it alone is added and solved for."""
    found = np.concatenate([_compare_gains(*_quadratic(seed, 14, rank)) for seed in range(8)])
    assert found.max() > 0.0
    assert found.min() == 0.0


def _compare_gains(hessian, slope):
    factor = active_set.new_factor(14)
    for variable in range(4):
        if (hessian @ _masses(factor, 14) + slope)[variable] < 0.0:
            _push(factor, hessian, slope, variable)
    size = int(factor.size[0])
    held, candidates = factor.label[1, :size], np.arange(4, 14)
    gradient = (hessian @ _masses(factor, 14) + slope)[candidates]
    found = active_set.gains(
        factor,
        active_set.new_factor(size + 1),
        np.ascontiguousarray(hessian[np.ix_(candidates, held)]),
        hessian[candidates, candidates],
        slope[candidates],
        gradient,
    )
    for k, candidate in enumerate(candidates):
        after = active_set.enlarge(factor, 14)
        if gradient[k] < 0.0:
            _push(after, hessian, slope, int(candidate))
        assert found[k] == pytest.approx(active_set.gain(after) - active_set.gain(factor), abs=1e-9)
    return found


def test_a_gain_that_empties_an_entry_is_solved_for():
    """The formula without signs would promise forty times as much."""
    hessian, slope = np.array([[1.0, 0.99], [0.99, 1.0]]), np.array([-0.1, -1.0])
    factor = active_set.new_factor(2)
    _push(factor, hessian, slope, 0)
    spare, gradient = active_set.new_factor(2), np.array([0.99 * 0.1 - 1.0])
    found = active_set.gains(factor, spare, np.array([[0.99]]), np.ones(1), slope[1:], gradient)
    assert found[0] == pytest.approx(0.5 - 0.005)
