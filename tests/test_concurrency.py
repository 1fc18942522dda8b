"""Threads, forks and Ctrl-C: the same plan everywhere, and a prompt that comes back."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import sparsetransport as st

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), RNG.normal(size=(50, 3)) + 0.5
JOBS = [
    {"budget": 40},
    {"budget": st.PerColumn(1), "reg": 0.1},
    {"budget": st.PerRow(1) & st.PerColumn(1), "kernels": "imq"},
    {"budget": 30, "lazy": True, "reg": 0.1},
    {"budget": 12, "method": "greedy", "kernels": "delta", "reg": 0.1},
    {"budget": st.PerColumn(1), "method": "residual", "rng": 3},
    {"budget": 20, "method": "stochastic", "rng": 4, "inner": "apgd", "tol": 1e-3},
    {"reg": 0.1, "kernels": "imq-v2"},
]


def _solve(options):
    return st.solve_sample(X, Y, unbalanced=5.0, normalize_cost=True, **options).plan


def test_eight_threads_find_the_plans_of_one():
    """Eight Python threads at once, every job several times over: to the last bit the plans of a single thread."""
    alone = [_solve(options) for options in JOBS]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(_solve, JOBS * 4))
    for k, plan in enumerate(together):
        np.testing.assert_array_equal(plan, alone[k % len(JOBS)])


def test_one_problem_may_be_shared_by_threads():
    """Eight threads on the same Problem object, whose caches are filled on the way, disturb nobody."""
    problem = st.Problem.from_points(X, Y, unbalanced=5.0, reg=0.1, lazy=True)
    with ThreadPoolExecutor(8) as pool:
        plans = list(pool.map(lambda k: st.solve(problem, budget=20).plan, range(8)))
    expected = st.solve_sample(X, Y, unbalanced=5.0, reg=0.1, lazy=True, budget=20).plan
    for plan in plans:
        np.testing.assert_array_equal(plan, expected)


# In a process of its own: pytest's may have threads of other libraries, which do not survive a fork.
FORK = """
import os, sys
import numpy as np, sparsetransport as st

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(60, 3)), rng.normal(size=(50, 3)) + 0.5

def plans():
    jobs = {"budget": 40}, {"budget": 30, "lazy": True}, {"budget": st.PerColumn(1), "reg": 0.1}
    return b"".join(st.solve_sample(X, Y, unbalanced=5.0, **job).plan.tobytes() for job in jobs)

here = plans()
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, b"same" if plans() == here else b"other")
    os._exit(0)
os.close(write)
answer = os.read(read, 10).decode()
print(answer, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(here))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
def test_a_forked_child_finds_the_plans_of_its_parent():
    """After a fork the child solves on, to the last bit as its parent did."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["same", "0", str(3 * 60 * 50 * 8)], done.stderr


LONG = """
import sys
import numpy as np, sparsetransport as st

rng = np.random.default_rng(0)
small = rng.random((20, 20))
st.solve(small, unbalanced=50.0{options})  # compiled from here on
C = rng.random((3000, 3000))
a, b = rng.random(3000), rng.random(3000)
print("began", flush=True)
try:
    st.solve(C, a, b, unbalanced=50.0{options})
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(st.solve(small, budget=5).rows.size, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child there")
@pytest.mark.parametrize(
    "options", ["", ", budget=8000", ", budget=3000, method='greedy'"], ids=["optimum", "omp", "greedy"]
)
def test_ctrl_c_brings_the_prompt_back(options):
    """An interrupt during a long solve raises KeyboardInterrupt, and the next solve works as if nothing had been."""
    out, err = interrupted(LONG.format(options=options))
    assert out.split() == ["interrupted", "5"], err


def interrupted(code):
    """What a program says that gets Ctrl-C a second after it has said that it began."""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "began\n"
        time.sleep(1.0)  # into the solve, past the checks of its input
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    return out, err


MANY = """
import numpy as np, sparsetransport as st
from sparsetransport.apps.word_alignment import align_costs

C = np.random.default_rng(0).random((25, 25))
run = {run}
run([C])  # compiled from here on
print("began", flush=True)
try:
    while True:
        run([C] * 2000)
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(st.solve(C, budget=5).rows.size, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child there")
@pytest.mark.parametrize(
    "run",
    [
        "lambda costs: st.solve_batch(costs, budget=25)",
        "lambda costs: st.solve_batch(costs, budget=25, n_jobs=2)",
        "align_costs",
        "lambda costs: [st.solve(C, budget=9).certify() for C in costs]",
        "lambda costs: [st.solve(C, budget=9, inner='apgd', max_iter=9) for C in costs]",
    ],
    ids=["batch", "threads", "words", "proof", "apgd"],
)
def test_ctrl_c_ends_what_is_many_calls_of_machine_code(run):
    """The interrupt arrives during a kernel, mostly; it is neither lost nor turned into another error or a crash."""
    if "n_jobs" in run:
        pytest.importorskip("joblib")
    out, err = interrupted(MANY.format(run=run))
    assert out.split() == ["interrupted", "5"], err
