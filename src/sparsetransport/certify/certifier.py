"""Certificates for the plans of one problem and budget."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from operator import itemgetter

import numpy as np

from .. import charged, hard
from .._checks import Floats, Ints, to_numpy
from .._progress import tell
from ..budgets import Limits
from ..certificate import TIGHT, BoundRecord, Certificate
from ..effort import DEFAULT, Effort
from ..inner.solvers import UnboundedError
from ..large import known_prices
from ..optimum import potentials, prices, unbudgeted_optimum
from ..plan import Outcome
from ..problem import Problem
from . import bounds, sided
from .diagonal import largest
from .rounding import below
from .strongest import BOUNDS, Bound, Plan, Task

_EQUAL, _WEAK = 1e-12, 0.1  # relative gaps: one that counts as zero, and one above which the cheap bound is improved
_CLOSE = 1e-4  # a relative gap within which the cheap certificate is good enough
_PAIRS_UP_TO, _POINTS_UP_TO = 4_000_000, 2000  # beyond these the improvement takes long and waits for certify()
_ROUNDS, _ROUNDS_UP_TO = 5, 1000  # rounds of the relaxation, and points: unequal shares need dense matrices
_LEAST = 1e-3  # the smallest share, relative to an equal one


class Certifier:
    """Certificates for plans of one problem and budget."""

    def __init__(
        self, problem: Problem, limits: Limits, tol: float, effort: Effort = DEFAULT, *, is_whole: bool = True
    ) -> None:
        self.problem, self.limits, self.tol, self.effort = problem, limits, tol, effort
        self.is_whole = is_whole  # the limits are all of the budget

    @property
    def full(self) -> Outcome:
        """The unbudgeted optimum, which the problem keeps."""
        return unbudgeted_optimum(self.problem, self.effort)

    @cached_property
    def is_bounded(self) -> bool:
        """True if there is an unbudgeted optimum."""
        try:
            return self.problem.reg > 0.0 or self.full is not None
        except UnboundedError:
            return False

    def __call__(self, rows: Ints, cols: Ints, mass: Floats, value: float, level: int) -> Certificate:
        """The cheap or the tight bound for a plan with this objective."""
        problem, tight, began = self.problem, level >= TIGHT, time.monotonic()
        if problem.is_charged:
            return self._linear(rows, cols, mass, value, level)
        if not problem.is_plain:
            return self._sided(rows, cols, mass, value, tight)
        priced = known_prices(problem)
        if priced is not None:  # which are a pass over all pairs already, and take long to find anew
            bound, u, v = bounds.priced_bound(problem, self.limits, priced.alpha, priced.beta)
            bound = self._below(bound, u, v)
            log = (BoundRecord("prices", bound, time.monotonic() - began),)
            return Certificate(value, bound, priced.alpha, priced.beta, u, v, problem.constant, log)
        if tight:
            self._seek_diagonals()
        found = [self._bound_at((np.zeros_like(problem.a), np.zeros_like(problem.b)))]
        if problem.reg > 0.0:
            row_sum, col_sum = problem.marginals(rows, cols, mass)
            found.append(self._bound_at((problem.a - row_sum, problem.b - col_sum)))
        share = _WEAK if problem.reg > 0.0 and not tight else _EQUAL
        is_open = value - max(bound for bound, _, _ in found) > share * abs(value)
        if is_open and (tight or self._is_light):
            if problem.reg > 0.0:
                found.append(self._bound_at(self._full_dual))
            elif self.is_bounded:
                found.append((self._full_bound, *self._full_dual))
            found += map(self._bound_at, self._relaxed_duals)
        bound, u, v = max(found, key=itemgetter(0))
        if tight and problem.reg > 0.0 and value - bound > _EQUAL * abs(value):
            starts = [(u, v) for _, u, v in found]
            bound, u, v = bounds.tight_bound(problem, self.limits, starts, value)
        bound = self._below(bound, u, v)
        log = (BoundRecord("dual", bound, time.monotonic() - began),)
        dual = Certificate(value, bound, *problem.smooth(u, v, exact=True), u, v, problem.constant, log)
        if value - bound > (_EQUAL if tight else _CLOSE) * abs(value) and (tight or self._is_light):
            task = Task(problem, self.limits, (rows, cols, mass), value, np.inf, _EQUAL, self.effort)
            duals = tuple((u, v) for _, u, v in [(bound, u, v), *found])
            return self._followed(dual, [each for each in BOUNDS if each.level <= level], task._replace(duals=duals))[0]
        return dual

    def prove_further(
        self, plan: Plan, known: Certificate, how: Effort, gap_tol: float, deadline: float
    ) -> tuple[Certificate, Plan | None]:
        """The certificate after stronger and stronger bounds, and a better plan if one was found.

        They follow until the relative gap is within the tolerance, the time is up, or there are no more of them.
        """
        if self.problem.is_charged:
            return self._linear.prove_further(plan, known, how, gap_tol, deadline)
        duals = ((to_numpy(known.u), to_numpy(known.v)),)
        task = Task(self.problem, self.limits, plan, known.value, deadline, max(gap_tol, _EQUAL), how, duals)
        return self._followed(known, [each for each in BOUNDS if each.level > TIGHT], task)

    def _followed(self, known: Certificate, candidates: Sequence[Bound], task: Task) -> tuple[Certificate, Plan | None]:
        left = [each for each in candidates if self.problem.is_plain and each.applies(self.problem, self.limits)]
        best, better, log = known.lower_bound, None, list(known.log)
        while left and replace(known, value=task.value, lower_bound=best).relative_gap > task.gap_tol:
            began, bound = time.monotonic(), left.pop(0)
            if began > task.deadline:
                break
            tell(gap=f"gap {replace(known, value=task.value, lower_bound=best).relative_gap:.2%}", bound=bound.name)
            until = began + task.effort.bound_share * (task.deadline - began) if left else task.deadline
            proof = bound.run(task._replace(deadline=until, known=best))
            log.append(BoundRecord(bound.name, float(proof.bound), time.monotonic() - began))
            if self.is_whole and proof.plan is not None:
                value = self.problem.value(*proof.plan)
                if value < task.value - _EQUAL * abs(task.value):
                    better, task = proof.plan, task._replace(plan=proof.plan, value=value)
            best = max(best, proof.bound)
        return replace(known, lower_bound=best, log=tuple(log)), better

    @cached_property
    def _linear(self) -> "Certifier":
        """For the linear problem in place of one with costs of links; its plans are not the best ones with these."""
        return Certifier(charged.relaxed(self.problem), self.limits, self.tol, self.effort, is_whole=False)

    def _below(self, bound: float, u: Floats, v: Floats) -> float:
        """The bound minus a rounding margin, by the size of the terms that these potentials have."""
        problem, size, points = self.problem, abs(bound), sum(self.problem.shape)
        sides = ((u, problem.a, problem.gram_a), (v, problem.b, problem.gram_b))
        for (each, masses, gram), weight in zip(sides, problem.unbalanced, strict=True):
            near = np.abs(each)
            size += 2.0 * weight * float(gram.times(near) @ (masses + near)) * (1.0 if gram.is_delta else 8.0 / points)
        return below(bound, size, points)

    def _seek_diagonals(self) -> None:
        """Keep with the problem what points of its kernels count by themselves, where not all can be reached."""
        for side, gram in enumerate((self.problem.gram_a, self.problem.gram_b)):
            key = f"diagonal {side}"
            few = self.limits.most < gram.size <= self.effort.diagonal_points
            if few and not gram.is_delta and key not in self.problem.memo:
                self.problem.memo[key] = largest(gram)

    def _sided(self, rows: Ints, cols: Ints, mass: Floats, value: float, tight: bool) -> Certificate:
        """The same where marginals are one-sided or hard."""
        problem, limits = self.problem, self.limits
        duals = [hard.free(problem)]
        if problem.reg > 0.0 and value < np.inf:
            duals.append(self._dual_of(potentials(problem, self.effort, rows, cols, mass), rows, cols, mass))
        if self.is_bounded:
            full, priced = self._full_plan, prices(problem, self.effort)
            soft = potentials(problem.soft_part, self.effort, *full)
            duals.append(self._dual_of((soft[0] + priced[0], soft[1] + priced[1]), *full))
        found = [sided.bound_at(problem, limits, *each) for each in duals]
        best = max(found, key=itemgetter(0))
        if tight and problem.reg > 0.0 and value - best[0] > _EQUAL * abs(value):
            best = max(best, sided.tight_bound(problem, limits, best[1], best[2]), key=itemgetter(0))
        bound, alpha, beta = best
        if problem.cost.lowest >= 0.0 and value < np.inf:  # no term of the objective is negative
            bound = max(bound, 0.0)
        u, v = sided.residuals(problem, alpha, beta)
        return Certificate(value, bound, alpha, beta, u, v, problem.constant if problem.constant < np.inf else 0.0)

    def _dual_of(
        self, potentials: tuple[Floats, Floats], rows: Ints, cols: Ints, mass: Floats
    ) -> tuple[Floats, Floats]:
        """The potentials of a plan; of a side whose kernel is not `Delta` what they are ``2 λ G`` times of."""
        problem = self.problem
        sums = problem.marginals(rows, cols, mass)
        errors = problem.counted(sums[0] - problem.a, sums[1] - problem.b)
        first, second = (
            each if gram.is_delta else -error
            for each, gram, error in zip(potentials, (problem.gram_a, problem.gram_b), errors, strict=True)
        )
        return first, second

    @property
    def _is_light(self) -> bool:
        """True if the unbudgeted optimum is cheap enough to be solved for a bound that was not asked to be tight."""
        (m, n), is_delta = self.problem.shape, self.problem.gram_a.is_delta or self.problem.gram_b.is_delta
        if is_delta and m + n > max(_POINTS_UP_TO, 2 * self.limits.most):  # it has about as many entries as points
            return False
        return self.problem.reg == 0.0 or m * n <= _PAIRS_UP_TO

    def _bound_at(self, potentials: tuple[Floats, Floats]) -> tuple[float, Floats, Floats]:
        return bounds.bound_at(self.problem, self.limits, *potentials)

    @cached_property
    def _relaxed_duals(self) -> list[tuple[Floats, Floats]]:
        r"""Potentials that account for how many rows and columns the budget can reach: see `bounds`.

        Let each line be reached by a share :math:`z_i \le 1`; the shares add up to the number of lines that can be
        reached. The cost of its row sum ``x`` is then :math:`\lambda(x^2/z - 2ax + a^2)`, which is
        :math:`(\lambda/z)(x - az)^2` plus a constant: an unbudgeted problem with masses ``az``. Its potentials are
        optimal for these shares, and the shares in proportion to its row sums are the next to try.
        """
        problem = self.problem
        most, grams = self.limits.most, (problem.gram_a, problem.gram_b)
        reached = tuple(min(most, gram.size) if gram.is_delta else gram.size for gram in grams)
        if reached == problem.shape or not self.is_bounded:
            return []
        shares = [np.full(size, count / size) for size, count in zip(problem.shape, reached, strict=True)]
        rounds = _ROUNDS if max(problem.shape) <= _ROUNDS_UP_TO or problem.has_trees else 1
        found: list[tuple[Floats, Floats]] = []
        for _ in range(rounds):
            plan = unbudgeted_optimum(problem, self.effort, (shares[0], shares[1]))
            sums = problem.marginals(plan.rows, plan.cols, plan.mass)
            found.append((problem.a - sums[0] / shares[0], problem.b - sums[1] / shares[1]))
            shares = [_in_proportion(*each) for each in zip(sums, reached, strict=True)]
        return found

    @property
    def _full_plan(self) -> tuple[Ints, Ints, Floats]:
        return self.full.rows, self.full.cols, self.full.mass

    @cached_property
    def _full_bound(self) -> float:
        """What the potentials of the unbudgeted optimum prove, minus what negative reduced costs could still gain."""
        problem, (u, v) = self.problem, self._full_dual
        if problem.gram_a.is_delta or problem.gram_b.is_delta:
            return self._bound_at((u, v))[0]
        alpha, beta = problem.smooth(u, v, exact=True)
        steepest = problem.steepest((-alpha, -beta))
        # With negative costs a plan may move more mass than a and b hold.
        most = float(problem.a.sum() + problem.b.sum() + self.full.mass.sum())
        return bounds.linear(problem, bounds.reach(problem, self.limits), u, v, alpha, beta) + min(steepest, 0.0) * most

    @property
    def _full_dual(self) -> tuple[Floats, Floats]:
        row_sum, col_sum = self.problem.marginals(*self._full_plan)
        return self.problem.a - row_sum, self.problem.b - col_sum


def _in_proportion(sums: Floats, count: int) -> Floats:
    """Shares of at most one that add up to ``count``, otherwise in proportion to the sums; all are positive."""
    if count == len(sums) or not sums.any():
        return np.full(len(sums), count / len(sums))
    order = np.sort(sums)[::-1]
    rest = np.cumsum(order[::-1])[::-1]  # of the k-th and all smaller ones
    whole = np.arange(count)
    fits = rest[:count] >= order[:count] * (count - whole)  # the largest of the rest has a share of one at most
    unit = rest[fits.argmax()] / (count - fits.argmax()) if fits.any() else order[count - 1]
    return np.clip(sums / unit if unit > 0.0 else np.ones(len(sums)), _LEAST * count / len(sums), 1.0)
