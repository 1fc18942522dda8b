"""One problem with one budget, what was given to begin with, and how much to do: what `strategy` works on."""

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ._checks import Floats
from ._progress import tell
from .budgets import Pair, pairs_of
from .certificate import CHEAP, TIGHT, Certificate
from .certify.certifier import Certifier
from .effort import Effort
from .engine.omp_solver import OMPSolver
from .engine.room import Constraint, fits
from .forest.tree_solver import TreeSolver
from .inner.solvers import EXACT
from .optimum import is_listed, optimum_from
from .plan import Callback, Outcome, as_arrays
from .problem import Problem
from .status import Status

ENDED = Status.STOPPED, Status.OPTIMAL, Status.OPTIMAL_PROVEN
"""Nothing is left to do for a plan with one of these."""


class Links(NamedTuple):
    """Where to begin: pairs, and their masses if these are known."""

    pairs: list[Pair]
    mass: Floats | None = None

    @classmethod
    def of(cls, plan: Outcome) -> "Links":
        """The links of a plan."""
        return cls(pairs_of(plan.rows, plan.cols), plan.mass)


class GapTest:
    """True of a plan that is certified to be within a relative gap of the best one."""

    def __init__(self, certifier: Certifier, gap_tol: float) -> None:
        self.certifier, self.gap_tol = certifier, gap_tol
        self.proofs: dict[int, Certificate] = {}  # the cheap one, and the tight one

    def __call__(self, plan: Outcome) -> bool:
        """Compare with the cheap bound, and if that is not enough with the tight one, which is computed once."""
        value = self.certifier.problem.value(plan.rows, plan.cols, plan.mass)
        for tight in (CHEAP, TIGHT):
            if tight not in self.proofs:
                self.proofs[tight] = self.certifier(plan.rows, plan.cols, plan.mass, value, tight)
            gap = replace(self.proofs[tight], value=value).relative_gap
            tell(gap=f"gap {gap:.2%}")
            if gap <= self.gap_tol:
                return True
        return False


class Search:
    """One problem with one budget, what the user gave to begin with, and how much to do."""

    def __init__(
        self,
        problem: Problem,
        constraint: Constraint,
        how: Effort,
        *,
        given: Links,
        tol: float = EXACT,
        callback: Callback | None = None,
        gap_tol: float | None = None,
        deadline: float = np.inf,
        device: Any = None,
    ) -> None:
        self.problem, self.constraint, self.effort, self.given = problem, constraint, how, given
        self.device = device  # that finds the prices of a large problem
        self.found: Outcome | None = None  # in place of what a smaller effort would find
        self.tol, self.callback, self.tells_all = tol, callback, gap_tol is not None
        self.deadline = deadline  # of `time.monotonic`, after which the best plan so far must do
        self.on_trees = problem.has_trees and (problem.is_sided or problem.is_charged or not how.is_quick)
        self.operations = 0.0  # that the last plan took
        self.is_cut, self.seeks_optimum = False, True  # growing ended early; the unbudgeted optimum is a start on trees
        self.certifier = Certifier(problem, constraint.limits, tol, how, is_whole=constraint.oracle is None)
        self.gap_test = None if gap_tol is None else GapTest(self.certifier, gap_tol)

    def omp(self, links: Links | None = None, *, told: bool | None = None) -> OMPSolver:
        """A solver that begins with these links; the callback is told of its steps, or not."""
        solver = OMPSolver(
            self.problem,
            self.constraint,
            self.effort.tuning,
            listed=is_listed(self.problem, self.effort),
            tol=self.tol,
            callback=self.callback if (self.tells_all if told is None else told) else None,
        )
        solver.deadline = self.deadline
        if links is not None:
            solver.seed(*links)
        return solver

    def trees(self, plan: Outcome, links: Links) -> TreeSolver:
        """A solver on trees that begins with these links, and goes on with the record of a plan."""
        solver = TreeSolver(
            self.problem, self.constraint, plan, self.effort.tuning, tol=self.tol, callback=self.callback
        )
        solver.deadline = self.deadline
        mass = np.zeros(len(links.pairs)) if links.mass is None else links.mass
        solver.begin(*as_arrays(links.pairs), mass)
        return solver

    def is_enough(self, plan: Outcome) -> bool:
        """True if there is nothing left to do."""
        if plan.status in ENDED or time.monotonic() > self.deadline:
            return True
        return self.gap_test is not None and self.gap_test(plan)

    def is_within(self, plan: Outcome) -> bool:
        """True if a plan keeps within the budget."""
        matroid, pairs = self.constraint.oracle, pairs_of(plan.rows, plan.cols)
        within = bool(fits(self.constraint.room(), plan.rows, plan.cols))
        return within and (matroid is None or all(matroid.can_add(pairs[:k], p) for k, p in enumerate(pairs)))

    def optimum(self, plan: Outcome) -> Outcome | None:
        """The unbudgeted optimum, sought from a plan; None where there is none, or rounding is in the way."""
        if self.problem.has_trees:
            return optimum_from(self.problem, plan)
        return self.certifier.full if self.certifier.is_bounded else None

    def proof(self, plan: Outcome) -> Certificate:
        """The tight certificate of a plan, or of an earlier one: its dual point is as good."""
        if self.gap_test is not None and TIGHT in self.gap_test.proofs:
            return self.gap_test.proofs[TIGHT]
        value = self.problem.value(plan.rows, plan.cols, plan.mass)
        return self.certifier(plan.rows, plan.cols, plan.mass, value, TIGHT)
