"""What `solve`, POT's solvers and OTT's do with input that makes no sense, as a table: python -m benchmarks.bad_input.

OTT's column is there if ott-jax is installed.
"""

import warnings
from importlib.metadata import version
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import ot

import sparsetransport as st

from .table import Table

SOLVERS = {
    "sparsetransport `solve`": lambda C, a, b: st.solve(C, a, b, budget=3),
    "`ot.emd`": lambda C, a, b: ot.emd(a, b, C, log=True),
    "`ot.solve`, ℓ2-unbalanced": lambda C, a, b: ot.solve(
        C, a, b, reg=1.0, reg_type="L2", unbalanced=1.0, unbalanced_type="L2"
    ),
    "`ot.sinkhorn`": lambda C, a, b: ot.sinkhorn(a, b, C, 1.0, log=True),
}


def _ott(C: np.ndarray, a: np.ndarray, b: np.ndarray) -> SimpleNamespace:
    from ott.geometry.geometry import Geometry
    from ott.problems.linear.linear_problem import LinearProblem
    from ott.solvers.linear.sinkhorn import Sinkhorn

    done = Sinkhorn()(LinearProblem(Geometry(C, epsilon=1.0), a, b))
    status = f"converged={bool(done.converged)}"
    return SimpleNamespace(plan=np.asarray(done.matrix), value=float(done.primal_cost), status=status)


if find_spec("ott") is not None:
    SOLVERS["OTT's `Sinkhorn`"] = _ott


def cases() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Costs and masses of 3 + 3 points, each wrong in one way."""
    C, a = np.arange(9.0).reshape(3, 3), np.full(3, 1.0 / 3.0)
    with_nan, with_minus_inf = C.copy(), C.copy()
    with_nan[0, 1], with_minus_inf[0, 1] = np.nan, -np.inf
    return {
        "NaN among the costs": (with_nan, a, a),
        "−inf among the costs": (with_minus_inf, a, a),
        "NaN among the masses": (C, np.array([np.nan, 0.5, 0.5]), a),
        "a negative mass": (C, np.array([-0.2, 0.6, 0.6]), a),
        "four masses for three rows": (C, np.full(4, 0.25), a),
        "every pair forbidden (costs inf)": (np.full((3, 3), np.inf), a, a),
    }


def said(solver, arguments) -> str:
    """What came back: an error, or a plan and whether there was a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = solver(*(each.copy() for each in arguments))
        except Exception as error:  # whatever it is, it goes into the table
            return f"{type(error).__name__}: {' '.join(str(error).split())[:70]}"
    plan, log = result if isinstance(result, tuple) else (result.plan, {})
    value = log.get("cost", getattr(result, "value", None))
    what = "a plan of zeros" if not plan.any() else f"a plan with {_kind(plan)}"
    status = "" if getattr(result, "status", None) is None else f", status “{result.status}”"
    is_warned = any(not issubclass(each.category, DeprecationWarning) for each in caught)
    told = ", a warning" if is_warned else ", no warning"
    return what + ("" if value is None else f", value {value:.3g}") + (status or told)


def _kind(plan: np.ndarray) -> str:
    if not np.isfinite(plan).all():
        return "NaN or inf"
    return "negative entries" if plan.min() < 0.0 else f"total {plan.sum():.3g}"


def run() -> Table:
    table = Table("Input that makes no sense", ["input", *SOLVERS], [])
    for name, arguments in cases().items():
        table.rows.append([name, *(said(solver, arguments) for solver in SOLVERS.values())])
    versions = [f"POT {ot.__version__}", *(f"OTT {version(name)}" for name in ["ott-jax"] if find_spec("ott"))]
    table.notes.append(f"{', '.join(versions)}, sparsetransport {st.__version__}.")
    return table


if __name__ == "__main__":
    print(run().markdown())
