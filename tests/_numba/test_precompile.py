"""What ``sparsetransport compile`` compiles is all that users need."""

import subprocess
import sys

from typer.testing import CliRunner

from sparsetransport import cli

SCRIPT = '''
import sys

import numpy as np
from numba.core.dispatcher import Dispatcher

import sparsetransport as st
from sparsetransport.apps.network_design import design
from sparsetransport.apps.word_alignment import WordAligner
from sparsetransport.cli.compile import small_calls


def compiled():
    """How many versions of every function there are."""
    mine = [vars(module) for name, module in sys.modules.items() if name.startswith("sparsetransport.")]
    kernels = [value for names in mine for value in names.values() if isinstance(value, Dispatcher)]
    return {f"{kernel.py_func.__module__}.{kernel.py_func.__name__}": len(kernel.signatures) for kernel in kernels}


for call in small_calls().values():
    call()
before = compiled()
rng = np.random.default_rng(1)
X, Y = rng.normal(size=(12, 3)), rng.normal(size=(9, 3))
C, a, b = st.cost_matrix(X, Y), rng.random(12), rng.random(9)
C[0, 1] = np.inf
groups = st.Partition.between(a > 0.5, b > 0.5, 2)
for budget in 4, None, st.PerRow(1), st.PerColumn(2), st.PerRow(1) & st.PerColumn(1), groups:
    for reg in 0.0, 0.5:
        result = st.solve(C, a, b, budget=budget, reg=reg)
        result.certify(), result.path.plan_at(2), st.solve(C, a, b, budget=budget, start=result)
    st.solve_batch([(C, a, b)] * 3, budget=budget)
    st.solve_sample(X, Y, budget=budget, lazy=True, gap_tol=1e-3)
    shared = st.solve_shared([st.Problem.from_points(X, Y, a * k, b) for k in (1.0, 2.0)], budget=budget)
    shared.certify(), shared.plans[0].certify()
for method in "omp", "stochastic", "residual", "greedy", "residual-greedy":
    for inner in "active_set", "apgd":
        st.solve(C, a, b, budget=st.PerColumn(1), method=method, inner=inner, reclaim=False, tol=0.5)
st.solve_sample(X.astype(np.float32), Y.tolist(), budget=4, metric="cosine", kernels=st.IMQ())
many = rng.normal(size=(2, 320, 2))
st.solve_sample(*many, kernels="delta", budget=st.PerRow(3)), st.solve_sample(*many, kernels="delta")
st.solve_support(st.Problem.from_points(X, Y), [(0, 1), (2, 3)]).certify()
st.solve_fewest(st.Problem.from_points(X, Y), 0.1).at_least
design(rng.random((5, 6)), np.ones(5), rng.random((7, 6)), 8, fixed=[(0, 0)], max_per_plant=3)
WordAligner(lambda words: [[len(word), 2.0] for word in words]).align_many([("a bc", "d ef g"), ("a", "b")])
after = compiled()
print({name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)})
'''


def test_nothing_is_left_to_compile():
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert ran.stdout == "{}\n"


def test_the_command():
    done = CliRunner().invoke(cli.app, ["compile"])
    assert done.exit_code == 0
    assert done.stdout.startswith("All functions are compiled; it took ")
