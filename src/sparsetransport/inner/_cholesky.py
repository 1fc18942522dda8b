"""A Cholesky factor that grows and shrinks by one variable at a time.

``upper[j, i]`` (``i >= j``) holds ``L[i, j]``: the columns of ``L`` are rows of ``upper``, so that every inner loop
below runs over contiguous memory. ``target`` holds ``w = L^-1 (-f)`` and is rotated together with the factor, so the
unconstrained minimiser on the current variables is always one backward solve away.

Inner loops run over slices from zero: an index that the compiler cannot prove to be non-negative might count from the
end, and the loop would not vectorise.
"""

import math

from .._checks import Floats
from .._numba.compiling import part


@part
def forward(upper: Floats, size: int, rhs: Floats) -> None:
    """Overwrite ``rhs[:size]`` with ``L^-1 rhs``, four variables at a time, to read it a quarter as often."""
    j = 0
    while j + 4 <= size:
        u0, u1, u2, u3 = upper[j], upper[j + 1], upper[j + 2], upper[j + 3]
        x0 = rhs[j] / u0[j]
        x1 = (rhs[j + 1] - x0 * u0[j + 1]) / u1[j + 1]
        x2 = (rhs[j + 2] - x0 * u0[j + 2] - x1 * u1[j + 2]) / u2[j + 2]
        x3 = (rhs[j + 3] - x0 * u0[j + 3] - x1 * u1[j + 3] - x2 * u2[j + 3]) / u3[j + 3]
        rhs[j], rhs[j + 1], rhs[j + 2], rhs[j + 3] = x0, x1, x2, x3
        j += 4
        rest, r0, r1, r2, r3 = rhs[j:size], u0[j:size], u1[j:size], u2[j:size], u3[j:size]
        for i in range(rest.size):
            rest[i] -= x0 * r0[i] + x1 * r1[i] + x2 * r2[i] + x3 * r3[i]
    while j < size:
        rhs[j] /= upper[j, j]
        for i in range(j + 1, size):
            rhs[i] -= rhs[j] * upper[j, i]
        j += 1


@part
def backward(upper: Floats, size: int, rhs: Floats, out: Floats) -> None:
    """Write ``L^-T rhs`` to ``out[:size]``, four variables at a time, so that long sums share their loads."""
    j = size
    while j % 4 != 0:
        j -= 1
        total = 0.0
        for i in range(j + 1, size):
            total += upper[j, i] * out[i]
        out[j] = (rhs[j] - total) / upper[j, j]
    while j > 0:
        rest = out[j:size]
        j -= 4
        u0, u1, u2, u3 = upper[j], upper[j + 1], upper[j + 2], upper[j + 3]
        r0, r1, r2, r3 = u0[j + 4 : size], u1[j + 4 : size], u2[j + 4 : size], u3[j + 4 : size]
        t0 = t1 = t2 = t3 = 0.0
        for i in range(rest.size):
            value = rest[i]
            t0 += r0[i] * value
            t1 += r1[i] * value
            t2 += r2[i] * value
            t3 += r3[i] * value
        x3 = (rhs[j + 3] - t3) / u3[j + 3]
        x2 = (rhs[j + 2] - t2 - u2[j + 3] * x3) / u2[j + 2]
        x1 = (rhs[j + 1] - t1 - u1[j + 3] * x3 - u1[j + 2] * x2) / u1[j + 1]
        x0 = (rhs[j] - t0 - u0[j + 3] * x3 - u0[j + 2] * x2 - u0[j + 1] * x1) / u0[j]
        out[j], out[j + 1], out[j + 2], out[j + 3] = x0, x1, x2, x3


@part
def append(upper: Floats, target: Floats, size: int, column: Floats, schur: float, slope: float) -> None:
    """Add a variable: ``column = L^-1 h``, ``schur`` its Schur complement, ``slope`` its linear term."""
    diagonal = math.sqrt(schur)
    projected = 0.0
    for j in range(size):
        upper[j, size] = column[j]
        projected += column[j] * target[j]
    upper[size, size] = diagonal
    target[size] = (-slope - projected) / diagonal


@part
def delete(upper: Floats, target: Floats, size: int, position: int, spill: Floats) -> None:
    """Take the variable at ``position`` out; ``spill`` is scratch of length ``size``."""
    for j in range(position):
        old, new, held = upper[j, position + 1 : size], upper[j, position : size - 1], spill[position + 1 : size]
        for i in range(old.size):
            held[i] = old[i]
        for i in range(old.size):
            new[i] = held[i]
    for i in range(position + 1, size):
        spill[i] = upper[position, i]
    carry = target[position]
    # The rest of the deleted column is a rank-one update of the trailing block: rotate it in, column by column.
    for j in range(position + 1, size):
        pivot = upper[j, j]
        extra = spill[j]
        radius = math.hypot(pivot, extra)
        cosine = pivot / radius
        sine = extra / radius
        upper[j - 1, j - 1] = radius
        new, old, held = upper[j - 1, j : size - 1], upper[j, j + 1 : size], spill[j + 1 : size]
        for i in range(old.size):
            value = old[i]
            new[i] = cosine * value + sine * held[i]
            held[i] = cosine * held[i] - sine * value
        last = target[j]
        target[j - 1] = cosine * last + sine * carry
        carry = cosine * carry - sine * last


@part
def inverse_diagonal(upper: Floats, size: int, position: int, column: Floats) -> float:
    """``(H^-1)_tt``: the squared norm of ``L^-1 e_t``, which is left in ``column`` (zero before ``t``, and not set)."""
    for t in range(position, size):
        column[t] = 0.0
    column[position] = 1.0
    total = 0.0
    for j in range(position, size):
        value = column[j] / upper[j, j]
        column[j] = value
        total += value * value
        row, rest = upper[j, j + 1 : size], column[j + 1 : size]
        for i in range(rest.size):
            rest[i] -= value * row[i]
    return total
