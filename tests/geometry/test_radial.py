"""The table of radial kernels against their closed forms."""

import math

import numpy as np
import pytest

from sparsetransport._numba.compiling import compiled
from sparsetransport.geometry.radial import TABLE, formulas, kernel_value

AT_ZERO = {
    "rbf": lambda sigma2: 1.0,
    "imq": lambda sigma2: sigma2**-0.5,
    "imq-v2": lambda sigma2: sigma2**0.5,
    "laplace": lambda sigma2: 1.0,
}
CLOSED = {
    "rbf": lambda d, sigma2: math.e ** (-(d**2) / (2.0 * sigma2)),
    "imq": lambda d, sigma2: (sigma2 + d**2) ** -0.5,
    "imq-v2": lambda d, sigma2: ((1.0 + d**2) / sigma2) ** -0.5,
    "laplace": lambda d, sigma2: math.e ** (-d / sigma2**0.5),
}


def compiled_value(number: int, square: float, sigma2: float) -> float:
    return kernel_value(number, square, sigma2)


compiled_value = compiled(compiled_value)


@pytest.mark.parametrize("sigma2", [0.25, 1.0, 9.0])
@pytest.mark.parametrize("name", TABLE)
def test_the_value_at_distance_zero(name, sigma2):
    """It is the diagonal of every Gram matrix, and the largest value."""
    assert TABLE[name](0.0, sigma2) == pytest.approx(AT_ZERO[name](sigma2), rel=1e-15)
    squares = np.linspace(0.0, 20.0, 50)
    values = [TABLE[name](square, sigma2) for square in squares]
    assert (np.diff(values) < 0.0).all()
    assert min(values) > 0.0


@pytest.mark.parametrize("sigma2", [0.25, 1.0, 9.0])
@pytest.mark.parametrize("name", TABLE)
def test_values_are_those_of_the_closed_form(name, sigma2):
    """As a Python function, compiled by its number in the table, and on the arrays of another library."""
    number, squares = list(TABLE).index(name), np.array([0.0, 1e-12, 0.3, 1.0, 7.0, 40.0])
    expected = [CLOSED[name](math.sqrt(square), sigma2) for square in squares]
    np.testing.assert_allclose([TABLE[name](square, sigma2) for square in squares], expected, rtol=1e-13)
    np.testing.assert_allclose([compiled_value(number, square, sigma2) for square in squares], expected, rtol=1e-13)
    np.testing.assert_allclose(formulas(np.exp, np.sqrt, np.sqrt)[name](squares, sigma2), expected, rtol=1e-13)


def test_there_is_a_closed_form_for_every_kernel():
    assert TABLE.keys() == CLOSED.keys() == AT_ZERO.keys()
