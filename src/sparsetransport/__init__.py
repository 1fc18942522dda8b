"""Transport plans with a budget: at most K links, soft marginals, and a proof of how good the plan is."""

from ._checks import ConvergenceWarning, SparseTransportWarning
from .api import lower_bound, solve, solve_problem, solve_sample, solve_support
from .batch import ProblemError, solve_batch, solve_stream
from .budgets import Intersection, Laminar, Matroid, Partition, PerColumn, PerRow, Uniform
from .build_result import load
from .certificate import BoundRecord, Certificate
from .certify.bounds import guarantee
from .effort import BARE, DEFAULT, QUICK, THOROUGH, Effort
from .fewest import Fewest, solve_fewest
from .geometry.costs import cost_matrix
from .geometry.kernels import IMQ, RBF, Delta, IMQv2, Laplace
from .inner.solvers import APGD, ActiveSet, UnboundedError
from .path import Path
from .plan import Outcome, Step
from .problem import Problem, Quadratic
from .result import Result
from .select.generic_greedy import Rule, View, maximise
from .select.greedy import Greedy
from .select.omp import OMP
from .select.residual import Residual, ResidualGreedy
from .select.stochastic import StochasticOMP
from .shared import SharedCertificate, SharedResult, solve_shared
from .status import Status
from .sweep import solve_sweep

_ELSEWHERE = {
    "emd": "solve(C, a, b) without a budget, or baselines.exact_ot for hard marginals",
    "emd2": "solve(C, a, b).value, or baselines.exact_ot for hard marginals",
    "sinkhorn": "baselines.entropic_ot",
    "dist": "cost_matrix",
    "unif": "nothing: masses are uniform where none are given",
}


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> object:
    cure = f": there is {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{cure}")


__version__ = "0.1.0"
__all__ = [
    "APGD",
    "BARE",
    "DEFAULT",
    "IMQ",
    "OMP",
    "QUICK",
    "RBF",
    "THOROUGH",
    "ActiveSet",
    "BoundRecord",
    "Certificate",
    "ConvergenceWarning",
    "Delta",
    "Effort",
    "Fewest",
    "Greedy",
    "IMQv2",
    "Intersection",
    "Laminar",
    "Laplace",
    "Matroid",
    "Outcome",
    "Partition",
    "Path",
    "PerColumn",
    "PerRow",
    "Problem",
    "ProblemError",
    "Quadratic",
    "Residual",
    "ResidualGreedy",
    "Result",
    "Rule",
    "SharedCertificate",
    "SharedResult",
    "SparseTransportWarning",
    "Status",
    "Step",
    "StochasticOMP",
    "UnboundedError",
    "Uniform",
    "View",
    "cost_matrix",
    "guarantee",
    "load",
    "lower_bound",
    "maximise",
    "solve",
    "solve_batch",
    "solve_fewest",
    "solve_problem",
    "solve_sample",
    "solve_shared",
    "solve_stream",
    "solve_support",
    "solve_sweep",
]
