"""How long Numba compiles, as far as it tells."""

import time

import pytest

from sparsetransport._numba import compiling, timer
from sparsetransport._numba.compiling import compiled


def test_a_compilation_is_timed_and_a_call_is_not(monkeypatch):
    """The time is one that has passed; what is compiled already takes none, nor what happens outside."""
    monkeypatch.setattr(compiling, "keep_on_disk", lambda dispatcher: None)  # what is read from disk takes none either
    took = []
    double = compiled(lambda x: 2 * x)
    started = time.perf_counter()
    with timer.compile_timer(took.append):
        assert double(2) == 4
    assert 0.0 < took[0] < time.perf_counter() - started
    first = len(took)
    with timer.compile_timer(took.append):
        assert double(3) == 6
    assert len(took) == first
    assert double(2.5) == 5.0, "for floats it is compiled again"
    assert len(took) == first


def test_without_numbas_timer_nothing_is_timed(monkeypatch):
    monkeypatch.setattr(timer, "install_timer", None)
    triple = compiled(lambda x: 3 * x)
    with timer.compile_timer(lambda seconds: pytest.fail("there is no timer")):
        assert triple(2) == 6
