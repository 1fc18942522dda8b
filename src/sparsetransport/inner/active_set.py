"""The exact inner solve: an active-set method for small non-negative quadratic programs.

On a support the problem is ``min 1/2 x'Hx + f'x`` over ``x >= 0``. The functions keep the Cholesky factor of ``H`` on
the positive entries. Adding a variable costs one triangular solve; entries that would turn negative are found by a
ratio test and leave the factor; the solution is exact up to rounding.
"""

from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.codes import DEPENDS, SOLVED, UNBOUNDED, UNSETTLED
from .._numba.compiling import compiled, part
from . import _cholesky

DEPENDENT = 1e-13  # an entry whose Schur complement is below this share of the diagonal depends on the others


@by_address
class Factor(NamedTuple):
    """The positive entries of the solution and the factor of the Hessian on them, in order of position.

    ``label[:, t]`` names the entry at position ``t`` (row and column of the plan); ``size[0]`` says how many there are.
    ``gone[:, :size[1]]`` logs the labels that left since the caller last set ``size[1]`` to zero.
    """

    upper: Floats  # (capacity, stride)
    target: Floats  # (capacity,) L^-1 (-f)
    mass: Floats  # (capacity,) the solution
    label: Ints  # (2, capacity)
    size: Ints  # (2,) entries, logged departures
    gone: Ints  # (2, capacity + 1)
    coupling: Floats  # (capacity,) set by the caller of ``push``: H between a new entry and the present ones
    scratch: Floats  # (3, capacity)


@part
def new_factor(capacity: int) -> Factor:
    """An empty factor with room for ``capacity`` entries."""
    stride = capacity + 8 if capacity % 64 == 0 else capacity  # a power-of-two stride would use few cache sets
    return Factor(
        np.empty((capacity, stride)),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros((2, capacity), np.int64),
        np.zeros(2, np.int64),
        np.zeros((2, capacity + 1), np.int64),
        np.zeros(capacity),
        np.zeros((3, capacity)),
    )


@compiled
def copy_factor(source: Factor, destination: Factor) -> None:
    """Copy ``source`` to ``destination``, which is at least as large, except scratch."""
    size = source.size[0]
    for j in range(size):
        old, new = source.upper[j, j:size], destination.upper[j, j:size]
        for i in range(old.size):
            new[i] = old[i]
        destination.target[j] = source.target[j]
        destination.mass[j] = source.mass[j]
        destination.label[0, j] = source.label[0, j]
        destination.label[1, j] = source.label[1, j]
    destination.size[0] = size
    destination.size[1] = 0


def enlarge(factor: Factor, capacity: int) -> Factor:
    """A copy of ``factor`` with more room."""
    larger = new_factor(capacity)
    copy_factor(factor, larger)
    return larger


@compiled
def gain(factor: Factor) -> float:
    """By how much the entries lower the objective: ``1/2 x'Hx = 1/2 |w|^2`` at the exact solution."""
    total = 0.0
    for t in range(factor.size[0]):
        total += factor.target[t] * factor.target[t]
    return 0.5 * total


@part
def remove(factor: Factor, position: int) -> None:
    """Delete one entry and log its label; the others keep their mass."""
    size, logged = factor.size[0], factor.size[1]
    factor.gone[0, logged] = factor.label[0, position]
    factor.gone[1, logged] = factor.label[1, position]
    factor.size[1] = logged + 1
    _cholesky.delete(factor.upper, factor.target, size, position, factor.scratch[2])
    for t in range(position, size - 1):
        factor.mass[t] = factor.mass[t + 1]
        factor.coupling[t] = factor.coupling[t + 1]
        factor.label[0, t] = factor.label[0, t + 1]
        factor.label[1, t] = factor.label[1, t + 1]
    factor.size[0] = size - 1


@part
def settle(factor: Factor) -> None:
    """Walk from the feasible ``mass`` to the exact optimum, deleting every entry that hits zero on the way."""
    mass, goal = factor.mass, factor.scratch[1]
    while True:
        size = factor.size[0]
        _cholesky.backward(factor.upper, size, factor.target, goal)
        share, blocking = 1.0, -1
        for t in range(size):
            if goal[t] <= 0.0:
                ratio = mass[t] / (mass[t] - goal[t]) if mass[t] > 0.0 else 0.0
                if blocking < 0 or ratio < share:
                    share, blocking = ratio, t
        if blocking < 0:
            for t in range(size):
                mass[t] = goal[t]
            return
        for t in range(size):
            mass[t] += share * (goal[t] - mass[t])
        mass[blocking] = 0.0
        for t in range(size - 1, -1, -1):
            if mass[t] <= 0.0 and goal[t] <= 0.0:
                remove(factor, t)


@compiled
def push(factor: Factor, row: int, column: int, diagonal: float, slope: float) -> int:
    """Add the entry ``(row, column)`` whose gradient is negative, and solve again.

    ``factor.coupling[:size]`` holds the Hessian between it and the present entries. An entry that depends on them (a
    cycle of the plan when ``reg`` is zero, duplicate points) moves along the direction that changes no marginal until
    another entry is empty; that entry leaves and the rest is independent.
    """
    projected, goal, mass = factor.scratch[0], factor.scratch[1], factor.mass
    start = 0.0
    while True:
        size = factor.size[0]
        for t in range(size):
            projected[t] = factor.coupling[t]
        _cholesky.forward(factor.upper, size, projected)
        schur = diagonal
        for t in range(size):
            schur -= projected[t] * projected[t]
        if schur > DEPENDENT * diagonal:
            break
        _cholesky.backward(factor.upper, size, projected, goal)
        largest = 0.0
        for t in range(size):
            largest = max(largest, abs(goal[t]))
        length, blocking = np.inf, -1
        for t in range(size):
            if goal[t] > 1e-9 * largest and mass[t] < length * goal[t]:
                length, blocking = mass[t] / goal[t], t
        if blocking < 0:
            return UNBOUNDED
        for t in range(size):
            mass[t] = max(mass[t] - length * goal[t], 0.0)
        start += length
        mass[blocking] = 0.0
        remove(factor, blocking)
    _cholesky.append(factor.upper, factor.target, size, projected, schur, slope)
    mass[size] = start
    factor.label[0, size] = row
    factor.label[1, size] = column
    factor.size[0] = size + 1
    settle(factor)
    return SOLVED


@compiled
def extend(
    upper: Floats, target: Floats, mass: Floats, coupling: Floats, scratch: Floats, diagonal: float, slope: float
) -> int:
    """The first part of `push`, for ``coupling.size`` entries, on separate arrays.

    ``DEPENDS``: the new entry depends on the others, and nothing is changed. ``SOLVED``: the masses are optimal, all
    of them positive. ``UNSETTLED``: the entry is in the factor without mass, and `settle` must follow.
    """
    size = coupling.size
    projected, goal = scratch[0], scratch[1]
    for t in range(size):
        projected[t] = coupling[t]
    _cholesky.forward(upper, size, projected)
    schur = diagonal
    for t in range(size):
        schur -= projected[t] * projected[t]
    state = DEPENDS
    if schur > DEPENDENT * diagonal:
        _cholesky.append(upper, target, size, projected, schur, slope)
        _cholesky.backward(upper, size + 1, target, goal)
        positive = True
        for t in range(size + 1):
            positive &= goal[t] > 0.0
        if positive:
            for t in range(size + 1):
                mass[t] = goal[t]
        else:
            mass[size] = 0.0
        state = SOLVED if positive else UNSETTLED
    return state


@compiled
def drop(factor: Factor, position: int) -> None:
    """Take one entry out and solve again."""
    remove(factor, position)
    settle(factor)


@compiled
def gains(factor: Factor, spare: Factor, coupling: Floats, diagonal: Floats, slope: Floats, gradient: Floats) -> Floats:
    """By how much each of several new entries alone would lower the objective; ``inf`` if it is unbounded.

    ``coupling`` has a row for each of them; ``spare`` has room for one entry more than ``factor``. If no present entry
    turns negative, the gain is ``g^2 / 2s`` with the Schur complement ``s``; otherwise the entry is added to a copy.
    """
    size = factor.size[0]
    result = np.zeros(diagonal.size)
    column, move = factor.scratch[0], factor.scratch[1]
    for e in range(diagonal.size):
        if gradient[e] >= 0.0:
            continue
        for t in range(size):
            column[t] = coupling[e, t]
        _cholesky.forward(factor.upper, size, column)
        schur = diagonal[e]
        for t in range(size):
            schur -= column[t] * column[t]
        feasible = schur > DEPENDENT * diagonal[e]
        if feasible:
            _cholesky.backward(factor.upper, size, column, move)
            step = -gradient[e] / schur
            for t in range(size):
                feasible = feasible and factor.mass[t] > step * move[t]
        if feasible:
            result[e] = gradient[e] * gradient[e] / (2.0 * schur)
            continue
        copy_factor(factor, spare)
        for t in range(size):
            spare.coupling[t] = coupling[e, t]
        if push(spare, 0, e, diagonal[e], slope[e]) == SOLVED:
            result[e] = gain(spare) - gain(factor)
        else:
            result[e] = np.inf
    return result
