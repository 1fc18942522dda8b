"""Python functions that compiled code calls: answers, errors, and that nothing is called after one."""

import gc
import os
import subprocess
import sys

import pytest

from sparsetransport._numba.callback import Callback, call_address
from sparsetransport._numba.compiling import compiled


@compiled
def _answers(address: int, count: int) -> int:
    """How many of the pairs (k, k + 1) are answered with yes."""
    found = 0
    for k in range(count):
        if call_address(address, k, k + 1) != 0:
            found += 1
    return found


def test_compiled_code_gets_the_answers():
    asked = []
    callback = Callback(lambda i, j: asked.append((i, j)) or i % 3 == 0)
    assert _answers(callback.address, 10) == 4
    assert asked == [(k, k + 1) for k in range(10)]
    callback.raise_error()


def test_python_gets_the_same_answer_by_the_address():
    callback = Callback(lambda i, j: i < j)
    assert (call_address(callback.address, 1, 2), call_address(callback.address, 2, 1)) == (1, 0)


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_an_error_waits_until_the_compiled_function_is_done(error):
    """It counts as no, so do later calls, which are not made; then it is raised, once."""
    asked = []

    def fails(i, j):
        asked.append(i)
        if i == 4:
            raise error
        return True

    callback = Callback(fails)
    assert _answers(callback.address, 100) == 4
    assert asked == [0, 1, 2, 3, 4]
    with pytest.raises(type(error)) as caught:
        callback.raise_error()
    assert caught.value is error
    callback.raise_error()
    assert _answers(callback.address, 3) == 3


def test_an_answer_that_is_no_truth_value_is_an_error():
    callback = Callback(lambda i, j: "maybe")
    assert _answers(callback.address, 5) == 0
    with pytest.raises(ValueError, match="invalid literal"):
        callback.raise_error()


def test_two_have_addresses_of_their_own():
    yes, no = Callback(lambda i, j: True), Callback(lambda i, j: False)
    assert yes.address != no.address
    gc.collect()
    assert (_answers(yes.address, 7), _answers(no.address, 7)) == (7, 0)


def test_large_numbers_are_not_cut():
    seen = []
    callback = Callback(lambda i, j: seen.append((i, j)) or True)
    call_address(callback.address, 2**40 + 1, -3)
    assert seen == [(2**40 + 1, -3)]


OWN = """
import numpy as np, sparsetransport as st
class Mine(st.Matroid):
    def can_add(self, support, pair):
        return len(support) < 4
rng = np.random.default_rng(0)
for options in {}, {"kernels": "delta", "reg": 0.0}:
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(5, 2))
    result = st.solve_sample(X, Y, budget=Mine(), **({"unbalanced": 5.0, "reg": 0.1} | options))
    print(result.rows.tolist(), result.cols.tolist(), *np.round(result.mass, 10))
"""


def test_it_means_the_same_without_the_compiler():
    """With NUMBA_DISABLE_JIT=1 the address is called by Python, and the plans are the same."""
    plain, fast = (
        subprocess.run(
            [sys.executable, "-c", OWN], capture_output=True, text=True, timeout=300, env={**os.environ, **more}
        )
        for more in ({"NUMBA_DISABLE_JIT": "1"}, {})
    )
    assert plain.returncode == fast.returncode == 0, plain.stderr + fast.stderr
    assert plain.stdout == fast.stdout
    assert len(plain.stdout.splitlines()) == 2
