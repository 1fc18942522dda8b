"""Conversion of a problem to the arrays of other solvers, and of their plans to our result."""

from dataclasses import replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .. import _checks
from .._checks import Floats, Ints
from ..budgets import Matroid, as_matroid, limits_of
from ..build_result import build_result
from ..certify.certifier import Certifier
from ..inner.solvers import EXACT
from ..plan import Outcome, Record
from ..problem import Problem, require_plain
from ..result import Result
from ..status import Status


def require_pot() -> ModuleType:
    """The module POT, or an error that says how to install it."""
    try:
        import ot
    except ImportError:
        raise _checks.missing("this baseline needs POT", "pot") from None
    module: ModuleType = ot
    return module


class Dense(NamedTuple):
    """The arguments of POT: the points with mass, their masses and the costs between them."""

    rows: Ints
    cols: Ints
    a: Floats
    b: Floats
    cost: Floats
    shape: tuple[int, int]

    def whole(self, plan: Any) -> Floats:
        """The plan between all points, from a plan between the points with mass."""
        full = np.zeros(self.shape)
        full[np.ix_(self.rows, self.cols)] = np.asarray(plan, np.float64)
        return full


def dense(problem: Problem, method: str, *, balanced: bool) -> Dense:
    """The arrays of a problem; with ``balanced``, ``b`` is scaled to the total of ``a``."""
    require_plain(problem, method)
    cost = cost_of(problem)
    if not np.isfinite(cost).all():
        raise ValueError(f"C must be finite for {method}, which cannot forbid pairs, got +inf")
    rows, cols = np.flatnonzero(problem.a), np.flatnonzero(problem.b)
    if not rows.size or not cols.size:
        raise ValueError(f"a and b must have positive totals for {method}, got {problem.a.sum()} and {problem.b.sum()}")
    a, b = problem.a[rows], problem.b[cols]
    if balanced:
        b = b * (a.sum() / b.sum())
    return Dense(rows, cols, a, b, np.ascontiguousarray(cost[np.ix_(rows, cols)]), problem.shape)


def cost_of(problem: Problem) -> Floats:
    """The costs as one matrix."""
    require_plain(problem, "a baseline")
    return np.concatenate([block for _, block in problem.cost.blocks()])


def as_result(
    problem: Problem,
    plan: Floats | tuple[Ints, Ints, Floats],
    *,
    budget: int | Matroid | None = None,
    converged: bool = True,
    record: Record | None = None,
    **log: Any,
) -> Result:
    """The `Result` for a plan of another method, dense or as rows, columns and masses."""
    if isinstance(plan, tuple):
        rows, cols, mass = plan
    else:
        rows, cols = np.nonzero(plan > 0.0)
        mass = plan[rows, cols]
    certifier = Certifier(problem, limits_of(as_matroid(budget), problem.shape), EXACT)
    record = Record() if record is None else record
    result = build_result(Outcome(rows, cols, mass, Status.BASELINE, (), record, True), certifier, _checks.as_numpy)
    return replace(result, converged=bool(converged), log={**result.log, **log, "problem": problem})
