"""Certificates for the plans of one problem and budget, and the plan without a budget that they are measured by."""

from functools import cached_property
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from . import certificate
from ._checks import Floats
from .inner.solvers import EXACT, UnboundedError
from .matroids import Limits, no_limits
from .outer import unbudgeted
from .outer.loop import Outcome
from .outer.run import run
from .problem import Problem
from .result import Certificate, Parts

Ints = NDArray[np.int64]
_FULL_UP_TO = 2000  # entries of it where there is no jump and a plan on the way will do


class Prover:
    """Certificates for plans of one problem and budget; the plan without a budget is solved when first needed."""

    def __init__(self, problem: Problem, limits: Limits, tol: float) -> None:
        self.problem, self.limits, self.tol = problem, limits, tol

    @cached_property
    def full(self) -> Outcome:
        """The optimum without a budget, or where ``reg`` is positive and it has too many entries, a plan towards it."""
        tol, limits = min(self.tol, EXACT), no_limits(self.problem.shape)  # what the user is content with is no proof
        if self.problem.reg > 0.0 and sum(self.problem.shape) > unbudgeted.POINTS_UP_TO:  # any dual point proves some
            limits = limits._replace(total=_FULL_UP_TO)
        return run(self.problem, limits, [], tol, polish=False, thorough=False)

    @cached_property
    def is_bounded(self) -> bool:
        """Is there an optimum without a budget?"""
        try:
            return self.problem.reg > 0.0 or self.full is not None
        except UnboundedError:
            return False

    def __call__(self, parts: Parts, tight: bool) -> Certificate:
        """The cheap or the tight bound for a plan."""
        problem = self.problem
        if problem.reg == 0.0:
            bound = max(self._full_bound, 0.0) if problem.cost.lowest >= 0.0 else self._full_bound
            u, v = self._full_dual if bound > -np.inf else (np.zeros_like(problem.a), np.zeros_like(problem.b))
        else:
            bound, u, v = certificate.cheap_bound(problem, self.limits, parts.rows, parts.cols, parts.mass)
            if bound < 0.0:
                bound, u, v = max((bound, u, v), certificate.least_bound(problem, self.limits), key=itemgetter(0))
            if tight and parts.value - bound > 1e-12 * abs(parts.value):
                bound, u, v = certificate.tight_bound(problem, self.limits, [(u, v), self._full_dual], parts.value)
        return Certificate(parts.value, bound, *problem.smooth(u, v), u, v, problem.constant)

    @property
    def _full_plan(self) -> tuple[Ints, Ints, Floats]:
        return self.full.rows, self.full.cols, self.full.mass

    @cached_property
    def _full_bound(self) -> float:
        """The optimum without a budget, less what the gradients that rounding left negative could still gain."""
        problem = self.problem
        if not self.is_bounded:
            return -np.inf
        fields, steepest = problem.fields(*self._full_plan), 0.0
        for first, block in problem.cost.blocks():
            rows = slice(first, first + len(block))
            steepest = min(steepest, float((block + fields[0][rows, None] + fields[1]).min()))
        most = float(problem.a.sum() + problem.b.sum() + self.full.mass.sum())  # negative costs may move more than all
        return problem.value(*self._full_plan) + steepest * most

    @property
    def _full_dual(self) -> tuple[Floats, Floats]:
        row_sum, col_sum = self.problem.marginals(*self._full_plan)
        return self.problem.a - row_sum, self.problem.b - col_sum
