"""The factor that grows and shrinks by one variable, against NumPy's factor of the whole matrix."""

import numba
import numpy as np
import pytest

from sparsetransport.inner import _cholesky

ROOM = 24
forward, backward = numba.njit(_cholesky.forward), numba.njit(_cholesky.backward)
append, delete = numba.njit(_cholesky.append), numba.njit(_cholesky.delete)


class Grown:
    """A factor built by the kernels, with the matrix it should belong to."""

    def __init__(self, seed, size):
        rng = np.random.default_rng(seed)
        basis = rng.normal(size=(ROOM, ROOM + 4))
        self.matrix, self.slope = basis @ basis.T, rng.normal(size=ROOM)
        self.upper, self.target, self.kept = np.zeros((ROOM, ROOM)), np.zeros(ROOM), []
        for variable in range(size):
            self.append(variable)

    def append(self, variable):
        size, column = len(self.kept), np.zeros(ROOM)
        column[:size] = self.matrix[variable, self.kept]
        forward(self.upper, size, column)
        schur = self.matrix[variable, variable] - column[:size] @ column[:size]
        append(self.upper, self.target, size, column, schur, self.slope[variable])
        self.kept.append(variable)

    def delete(self, position):
        delete(self.upper, self.target, len(self.kept), position, np.zeros(ROOM))
        del self.kept[position]

    def assert_is_the_factor(self):
        """L is the Cholesky factor of the kept variables, and the target is L⁻¹(-f)."""
        size = len(self.kept)
        expected = np.linalg.cholesky(self.matrix[np.ix_(self.kept, self.kept)])
        np.testing.assert_allclose(np.triu(self.upper[:size, :size]).T, expected, atol=1e-10)
        np.testing.assert_allclose(self.target[:size], np.linalg.solve(expected, -self.slope[self.kept]), atol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 5, 16, 24])
def test_appending_builds_the_factor(size):
    """Appending variables one by one gives numpy.linalg.cholesky of their matrix."""
    Grown(size, size).assert_is_the_factor()


@pytest.mark.parametrize("position", range(9))
def test_deleting_downdates_the_factor(position):
    """Deleting any variable gives the factor of the others."""
    grown = Grown(3, 9)
    grown.delete(position)
    grown.assert_is_the_factor()


@pytest.mark.parametrize("seed", range(5))
def test_any_sequence_of_changes_keeps_the_factor(seed):
    """After 60 random additions and deletions the factor is still that of the variables it holds."""
    rng = np.random.default_rng(seed)
    grown = Grown(seed, 6)
    for _ in range(60):
        outside = sorted(set(range(ROOM)) - set(grown.kept))
        if outside and (len(grown.kept) < 2 or rng.random() < 0.55):
            grown.append(int(rng.choice(outside)))
        else:
            grown.delete(int(rng.integers(len(grown.kept))))
        grown.assert_is_the_factor()


@pytest.mark.parametrize("size", range(1, 12))
def test_triangular_solves(size):
    """``forward`` is L⁻¹ and ``backward`` is L⁻ᵀ, for every remainder of the unrolled loop."""
    grown = Grown(size, size)
    lower = np.linalg.cholesky(grown.matrix[:size, :size])
    rhs = np.random.default_rng(0).normal(size=size)
    ahead, back = rhs.copy(), np.zeros(size)
    forward(grown.upper, size, ahead)
    backward(grown.upper, size, rhs, back)
    np.testing.assert_allclose(lower @ ahead, rhs, atol=1e-9)
    np.testing.assert_allclose(lower.T @ back, rhs, atol=1e-9)
