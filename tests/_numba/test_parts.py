"""Functions that compiled functions call: compiled once, and plain Python for Python."""

import numba
import numpy as np

from sparsetransport._numba import compiling, parts


@compiling.part
def _plus(x, y):
    return x + y


@compiling.small_part
def _plus_one(x):
    return _plus(x, 1)


def _call_twice(x):
    return _plus(x, 2) + _plus(x, 3) + _plus_one(0)


def test_parts_are_compiled_once_whatever_the_numbers_in_calls(monkeypatch):
    monkeypatch.setattr(compiling, "keep_on_disk", lambda dispatcher: None)  # what is read from disk compiles no parts
    total = compiling.compiled(_call_twice)
    assert total(1) == 1 + 2 + 1 + 3 + 1
    (dispatcher,) = (each for each in parts._held if each.py_func is _plus)
    assert len(dispatcher.signatures) == 1


def test_parts_work_without_private_names(monkeypatch):
    """With another Numba they are compiled the public way."""
    monkeypatch.setattr(parts, "_missing", True)
    public = compiling.part(lambda x: x + 1)
    assert compiling.compiled(lambda x: public(x))(1) == 2


def test_a_part_stays_a_python_function():
    """Python calls its source; a compiled function calls machine code, with the options of all compiled functions."""

    @compiling.part
    def halves(x):
        return x / np.float64(0.0)

    assert type(halves) is type(lambda: None)
    with np.errstate(divide="ignore"):
        assert halves(1.0) == np.inf
    assert compiling.compiled(lambda x: halves(x))(1.0) == np.inf, "no ZeroDivisionError: error_model is numpy"
    assert any(each.py_func is halves for each in parts._held)


def test_without_the_compiler_a_part_is_left_alone(monkeypatch):
    """With NUMBA_DISABLE_JIT Numba returns the function itself, which nothing has to be registered for."""
    monkeypatch.setattr(numba, "njit", lambda **_: lambda function: function)
    before = len(parts._held)
    assert compiling.part(lambda x: x + 1)(1) == 2
    assert len(parts._held) == before
