"""A Cholesky factor that grows and shrinks by one variable at a time.

``upper[j, i]`` (``i >= j``) holds ``L[i, j]``: the columns of ``L`` are rows of ``upper``, so that every inner loop
below runs over contiguous memory. ``target`` holds ``w = L^-1 (-f)`` and is rotated together with the factor, so the
unconstrained minimiser on the current variables is always one backward solve away.
"""

import math

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel

Floats = NDArray[np.float64]


@kernel
def forward(upper: Floats, size: int, rhs: Floats) -> None:
    """Overwrite ``rhs[:size]`` with ``L^-1 rhs``."""
    for j in range(size):
        row = upper[j]
        value = rhs[j] / row[j]
        rhs[j] = value
        if value != 0.0:
            for i in range(j + 1, size):
                rhs[i] -= value * row[i]


@kernel
def backward(upper: Floats, size: int, rhs: Floats, out: Floats) -> None:
    """Write ``L^-T rhs`` to ``out[:size]``, four variables at a time, so that the long sums share their loads."""
    j = size - 1
    while (j + 1) % 4 != 0:
        total = 0.0
        for i in range(j + 1, size):
            total += upper[j, i] * out[i]
        out[j] = (rhs[j] - total) / upper[j, j]
        j -= 1
    while j >= 3:
        u0, u1, u2, u3 = upper[j - 3], upper[j - 2], upper[j - 1], upper[j]
        t0 = t1 = t2 = t3 = 0.0
        for i in range(j + 1, size):
            value = out[i]
            t0 += u0[i] * value
            t1 += u1[i] * value
            t2 += u2[i] * value
            t3 += u3[i] * value
        x3 = (rhs[j] - t3) / u3[j]
        x2 = (rhs[j - 1] - t2 - u2[j] * x3) / u2[j - 1]
        x1 = (rhs[j - 2] - t1 - u1[j] * x3 - u1[j - 1] * x2) / u1[j - 2]
        out[j - 3] = (rhs[j - 3] - t0 - u0[j] * x3 - u0[j - 1] * x2 - u0[j - 2] * x1) / u0[j - 3]
        out[j], out[j - 1], out[j - 2] = x3, x2, x1
        j -= 4


@kernel
def append(upper: Floats, target: Floats, size: int, column: Floats, schur: float, slope: float) -> None:
    """Add a variable: ``column = L^-1 h``, ``schur`` its Schur complement, ``slope`` its linear term."""
    diagonal = math.sqrt(schur)
    projected = 0.0
    for j in range(size):
        upper[j, size] = column[j]
        projected += column[j] * target[j]
    upper[size, size] = diagonal
    target[size] = (-slope - projected) / diagonal


@kernel
def delete(upper: Floats, target: Floats, size: int, position: int, spill: Floats) -> None:
    """Take the variable at ``position`` out; ``spill`` is scratch of length ``size``."""
    for j in range(position):
        row = upper[j]
        for i in range(position, size - 1):
            row[i] = row[i + 1]
    for i in range(position + 1, size):
        spill[i] = upper[position, i]
    carry = target[position]
    # What is left of the deleted column is a rank-one update of the trailing block: rotate it in, column by column.
    for j in range(position + 1, size):
        row = upper[j]
        above = upper[j - 1]
        pivot = row[j]
        extra = spill[j]
        radius = math.hypot(pivot, extra)
        cosine = pivot / radius
        sine = extra / radius
        above[j - 1] = radius
        for i in range(j + 1, size):
            old = row[i]
            above[i - 1] = cosine * old + sine * spill[i]
            spill[i] = cosine * spill[i] - sine * old
        old = target[j]
        target[j - 1] = cosine * old + sine * carry
        carry = cosine * carry - sine * old
