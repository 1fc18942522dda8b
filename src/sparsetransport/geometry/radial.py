"""The table of the formulas of radial kernels.

A formula is written once, as a function of the squared distance and σ², and used with several array libraries: compiled
here, for dense matrices, lazy columns and diagonals alike, and on tensors with gradients in `nn.geometry`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._numba.compiling import small_part

Function = Callable[[Any], Any]
Formula = Callable[[Any, Any], Any]


def formulas(exp: Function, sqrt: Function, distance: Function) -> dict[str, Formula]:
    """The formula of every kernel by name; ``distance`` is a square root whose derivative at zero counts as zero."""
    return {
        "rbf": lambda square, sigma2: exp(square * (-0.5 / sigma2)),
        "imq": lambda square, sigma2: 1.0 / sqrt(sigma2 + square),
        "imq-v2": lambda square, sigma2: sqrt(sigma2 / (1.0 + square)),
        "laplace": lambda square, sigma2: exp(-distance(square / sigma2)),
    }


TABLE = formulas(math.exp, math.sqrt, math.sqrt)
ON_ARRAYS = formulas(np.exp, np.sqrt, np.sqrt)


def _from(number: int) -> Callable[[int, float, float], float]:
    """A compiled function for the formulas of the table from this number on."""
    formula = small_part(list(TABLE.values())[number])
    if number + 1 == len(TABLE):
        return small_part(lambda kind, square, sigma2: formula(square, sigma2))
    others = _from(number + 1)
    return small_part(
        lambda kind, square, sigma2: formula(square, sigma2) if kind == number else others(kind, square, sigma2)
    )


kernel_value = _from(0)  # a function of the number of a kernel in the table, d² and σ²
