"""One support for many scenarios: the loop around the kernels, and threads over scenarios and rows.

``F(S) = sum_s w_s F_s(S)`` is maximised greedily: the next link is the one with the largest sum over scenarios of
``w_s max(0, -gradient_s)^2``, every scenario is solved exactly on the links so far, and a link that has mass in no
scenario is dropped again.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.codes import BUDGET_USED, LOCAL, NEEDS_LINKS, NEEDS_ROOM, UNBOUNDED
from ..budgets import Limits, Matroid, Pair, pairs_of
from ..inner.solvers import EXACT, UnboundedError
from ..plan import Callback, Outcome, Record, Trace, new_trace
from ..problem import Problem
from ..result import Status
from . import matching
from . import shared_plans as plans
from . import shared_scan as scan
from .capacity import count
from .shared_plans import Group, alike, new_group
from .state import stalls, with_more_columns

STEPS = 512  # steps of the compiled loop between two looks at the keyboard
POOL = 256  # pairs in the pool
POOL_ADDITIONS = 64  # additions between two scans
POOL_SLACK = 0.9  # how good a pooled pair must be against the best one left out; a square, as scores are
POOL_FROM = 20_000_000  # pairs times scenarios; smaller ones are scanned at every step
THREADS_FROM = 2_000_000  # pairs times scenarios; for less, handing work to threads takes longer than the work
WIDTH = 8  # pairs from outside that the polish tries to get in
POLISH_WORK = 1e9  # operations on the factors, at the most, that the polish may look for exchanges with


class SharedOutcome(NamedTuple):
    """Links in order of choice, their masses in every scenario, why the loop ended and how it got there."""

    rows: Ints  # (k,)
    cols: Ints  # (k,)
    mass: Floats  # (z, k)
    status: Status
    start: tuple[Pair, ...]
    record: Record


class SharedSupport:
    """Several problems over the same pairs, and the support they share.

    ``limits`` counts links; a ``matroid`` that does not count is asked for every link instead.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        weights: Floats,
        limits: Limits,
        *,
        matroid: Matroid | None = None,
        tol: float = EXACT,
        n_jobs: int = 1,
        callback: Callback | None = None,
    ) -> None:
        m, n = problems[0].shape
        work = m * n * len(problems)
        self.weights, self.limits, self.matroid, self.callback = weights, limits, matroid, callback
        self.left = limits.flat.copy()
        self.fixed = 0
        self.start: tuple[Pair, ...] = ()
        self.record = Record()
        self.stopped = False
        self.constant = float(weights @ np.array([problem.constant for problem in problems]))
        self.r = np.stack([problem.base[0] for problem in problems])
        self.c = np.stack([problem.base[1] for problem in problems])
        room = min(limits.most + 2, 1024)
        self.support = plans.new_support(room, m)
        self.mass = np.zeros((len(problems), room))
        self.gains = np.zeros(len(problems))
        self.progress = np.zeros(2)
        self.groups = [new_group([problems[s] for s in members], members, tol) for members in alike(problems)]
        self.pooled = matroid is None and work >= POOL_FROM
        self.pool: tuple[Ints, Ints] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self.pool_left, self.pool_bar = 0, 0.0
        self.n_jobs = n_jobs if work >= THREADS_FROM else 1
        self._threads: ThreadPoolExecutor | None = None

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Work in threads while this lasts, where there is enough of it."""
        if self.n_jobs == 1:
            yield
            return
        with ThreadPoolExecutor(self.n_jobs) as self._threads:
            try:
                yield
            finally:
                self._threads = None

    @property
    def size(self) -> int:
        """How many links there are."""
        return int(self.support.size[0])

    @property
    def objective(self) -> float:
        """The weighted sum of the scenarios' objectives."""
        return self.constant - float(self.weights @ self.gains)

    def links(self) -> list[Pair]:
        """The links in order of choice."""
        rows, cols = self.support.rows[: self.size], self.support.cols[: self.size]
        return pairs_of(rows, cols)

    def seed(self, fixed: Sequence[Pair], start: Sequence[Pair]) -> None:
        """Begin with links that stay whatever they are worth, and with those of others that fit and are used."""
        for pair in fixed:
            self._append(pair)
        self.fixed = len(fixed)
        for pair in start:
            if plans.place(self.support, *pair) < 0 and self._may_add(pair):
                self._append(pair)
        if self.size:
            self._solve_all()
            scan.reclaim(
                self.support, self.mass, self.left, self.limits.labels, self.fixed, new_trace(1, len(self.support.rows))
            )
        self.start = tuple(self.links())

    def grow(self) -> Status:
        """Add links until nothing helps or nothing is free."""
        self.progress[:] = float(self.weights @ self.gains), 0.0
        self.pool_left = 0
        if len(self.groups) == 1 and not self.pooled and self.matroid is None and self._threads is None:
            return self._grow_compiled()
        while not self.stopped:
            if self.left[0] <= 0:
                return Status.BUDGET_USED
            pair = self._next_pair()
            if pair is None:
                return Status.LOCAL
            self._append(pair)
            self._solve_all()
            if self._note():
                return Status.LOCAL
        return Status.STOPPED

    def _grow_compiled(self) -> Status:
        """The same in one piece of machine code, which comes back for room, for a callback and for Ctrl-C."""
        ends = {BUDGET_USED: Status.BUDGET_USED, LOCAL: Status.LOCAL}
        while not self.stopped:
            trace = new_trace(1 if self.callback is not None else STEPS, len(self.support.rows))
            state = (self.groups[0], self.support, self.r, self.c, self.mass, self.gains, self.weights)
            code = scan.grow(*state, self.left, self.limits.labels, self.fixed, trace, self.progress)
            self._extend(trace)
            if code in ends:
                return ends[code]
            if code == UNBOUNDED:
                raise UnboundedError
            if code == NEEDS_LINKS:
                self._make_room()
            elif code == NEEDS_ROOM:
                self._solve_all()
                if self._note():
                    return Status.LOCAL
        return Status.STOPPED

    def polish(self) -> None:
        """Let pairs from outside in for the least missed of the links, as long as that lowers the objective.

        A pair is added beyond the budget; of the links whose departure makes room for it the one goes whose loss, by
        ``sum_s w_s x^2 / (2 M_tt)`` with ``M = H^-1``, is least; if the objective is not lower then, both are undone.
        This needs no copies, since the optimum on a support does not depend on how it was reached.
        """
        tried = set[Pair]()
        trial = len(self.gains) * float(self.size) ** 3 / 6.0
        trials = min(float(self.size), POLISH_WORK / max(trial, 1.0))
        while trials >= 1.0 and not self.stopped:
            rows, cols, _ = self._top(WIDTH, counted=False)
            wish = next((pair for pair in pairs_of(rows, cols) if pair not in tried), None)
            if wish is None:
                return
            trials -= 1.0
            if self._exchange(wish):
                tried.clear()
            else:
                tried.add(wish)

    def outcome(self, status: Status) -> SharedOutcome:
        """The support as it stands."""
        if status in (Status.LOCAL, Status.BUDGET_USED) and not self._top(1, counted=False)[0].size:
            status = Status.OPTIMAL
        size = self.size
        rows, cols = self.support.rows[:size].copy(), self.support.cols[:size].copy()
        return SharedOutcome(rows, cols, self.mass[:, :size].copy(), status, self.start, self.record)

    def _exchange(self, wish: Pair) -> bool:
        """Try one pair; does it stay?"""
        before, links = self.objective, self.links()
        self._append(wish)
        self._solve_all()
        loss = np.zeros(self.size)
        for group in self.groups:
            plans.losses(group, self.support, self.weights, loss)
        loss[: self.fixed] = loss[-1] = np.inf
        for k in range(self.fixed, len(links)):
            if not self._relieves(links, k, wish):
                loss[k] = np.inf
        leaving = int(loss.argmin())
        if loss[leaving] < np.inf:
            self._remove(leaving)
            self._solve_all()
            if self.objective < before - 1e-13 * abs(before):
                self._note(links[leaving])
                return True
        self._undo(links)
        return False

    def _relieves(self, links: list[Pair], k: int, wish: Pair) -> bool:
        """Would the links without number ``k`` leave room for the wish, which has been counted already?"""
        if self.matroid is not None:
            return self.matroid.can_add(links[:k] + links[k + 1 :], wish)
        count(self.left, self.limits.labels, *links[k], 1)
        relieved = bool(self.left.min() >= 0)
        count(self.left, self.limits.labels, *links[k], -1)
        return relieved

    def _undo(self, links: list[Pair]) -> None:
        """Go back to these links, in this order, after an exchange that did not help."""
        self._remove(self.size - 1)
        for pair in set(links) - set(self.links()):
            count(self.left, self.limits.labels, *pair, -1)
        self.support.size[0] = 0
        self.support.head[:] = -1
        for pair in links:
            plans.append(self.support, *pair)
        self._solve_all()

    def _append(self, pair: Pair) -> None:
        """A link more, not solved for yet."""
        while self.size == len(self.support.rows) or not all(plans.prepare(group, *pair) for group in self.groups):
            self._make_room()
        plans.append(self.support, *pair)
        count(self.left, self.limits.labels, *pair, -1)

    def _remove(self, position: int) -> None:
        """A link less, out of all plans, which are not solved again yet."""
        pair = int(self.support.rows[position]), int(self.support.cols[position])
        for group in self.groups:
            plans.forget(group, *pair)
        plans.remove(self.support, position)
        count(self.left, self.limits.labels, *pair, 1)

    def _make_room(self) -> None:
        """Twice the room for links, and for the columns of lazy Gram matrices, where it has run out."""
        if self.size == len(self.support.rows):
            links = self.links()
            self.support = plans.new_support(2 * len(links), len(self.support.head))
            for pair in links:
                plans.append(self.support, *pair)
            self.mass = np.concatenate([self.mass, np.zeros_like(self.mass)], axis=1)
        self.groups = [
            group._replace(gram_a=with_more_columns(group.gram_a, 1), gram_b=with_more_columns(group.gram_b, 1))
            for group in self.groups
        ]

    def _solve_all(self) -> None:
        """The exact masses of every scenario on the present links."""
        for g in range(len(self.groups)):
            while NEEDS_ROOM in (codes := self._solve_group(self.groups[g])):
                self.groups[g] = plans.with_more_room(self.groups[g])
            if UNBOUNDED in codes:
                raise UnboundedError

    def _solve_group(self, group: Group) -> list[int]:
        size = len(group.members)
        share = size if self._threads is None else max(1, size // (4 * self.n_jobs))
        state = (group, self.support, self.r, self.c, self.mass, self.gains)
        return self._map(lambda k: plans.solve(*state, k, min(k + share, size)), range(0, size, share))

    def _map(self, work: Callable[[int], Any], tasks: Sequence[int]) -> list[Any]:
        """``work`` for every task, in threads if there are any; the answers are in the order of the tasks."""
        if self._threads is None:
            return [work(task) for task in tasks]
        return list(self._threads.map(work, tasks))

    def _note(self, *gone: Pair) -> bool:
        """Reclaim, and write down the step that added the last link; does it all stall?"""
        trace = new_trace(1, self.size + 1)
        scan.note(self.support, self.mass, self.gains, self.weights, self.left, self.limits.labels, self.fixed, trace)
        for pair in gone:
            trace.gone[:, trace.steps[1]] = pair
            trace.steps[1] += 1
        trace.gone_until[0] = trace.steps[1]
        self._extend(trace)
        return bool(stalls(self.progress, float(trace.gain[0])))

    def _extend(self, trace: Trace) -> None:
        """Move steps to the record, and tell the callback."""
        if self.record.follow(trace, self.constant, self.callback):
            self.stopped = True

    def _may_add(self, pair: Pair) -> bool:
        if self.matroid is not None:
            return self.matroid.can_add(self.links(), pair)
        rows, cols = np.array([pair[0]]), np.array([pair[1]])
        return bool(scan.available(rows, cols, self.support, self.left, self.limits.labels)[0])

    def _next_pair(self) -> Pair | None:
        """The free pair with the largest score, or one of the pool that is nearly as good."""
        if self.matroid is not None:
            return self._best_by_oracle(self.matroid)
        if not self.pooled:
            rows, cols, _ = self._top(1)
            return (int(rows[0]), int(cols[0])) if rows.size else None
        while True:
            rescanned = self.pool_left == 0
            if rescanned:
                rows, cols, self.pool_bar = self._top(POOL)
                self.pool, self.pool_left = (rows, cols), POOL_ADDITIONS
            pair, score = self._best_of_pool()
            if pair is not None and (rescanned or score >= POOL_SLACK * self.pool_bar):
                self.pool_left -= 1
                return pair
            self.pool_left = 0
            if rescanned:
                return None

    def _best_of_pool(self) -> tuple[Pair | None, float]:
        """The best pair of the pool as scores are now."""
        rows, cols = self.pool
        score = np.zeros(len(rows))
        for group in self.groups:
            scan.squares(group, self.weights, self.r, self.c, rows, cols, score)
        score[~scan.available(rows, cols, self.support, self.left, self.limits.labels)] = 0.0
        if not score.any():
            return None, 0.0
        best = int(score.argmax())
        return (int(rows[best]), int(cols[best])), float(score[best])

    def _best_by_oracle(self, matroid: Matroid) -> Pair | None:
        """The best pair that the matroid lets in."""
        scores = np.concatenate(self._map(self._scores, self._blocks()))
        rows, cols = np.nonzero(scores)
        links = self.links()
        for k in np.argsort(-scores[rows, cols], kind="stable"):
            pair = int(rows[k]), int(cols[k])
            if matroid.can_add(links, pair):
                return pair
        return None

    def _top(self, wanted: int, *, counted: bool = True) -> tuple[Ints, Ints, float]:
        """The pairs with the largest scores, in falling order, and a score that no pair left out exceeds.

        Only free ones, if ``counted``. Ties go to the first row, then to the first column, whoever scans what.
        """
        depth = 1 if wanted == 1 else scan.DEPTH

        def best(first: int) -> tuple[Floats, Ints]:
            score = self._scores(first, counted=counted)
            value, where = np.empty((len(score), depth)), np.empty((len(score), depth), np.int64)
            scan.best_of_rows(score, value, where)
            return value, where

        found = self._map(best, self._blocks())
        value, where = (np.concatenate(part) for part in zip(*found, strict=True))
        bar = float(value[:, -1].max())  # what a row has besides is no better than the last that it offers
        value, where = value.ravel(), where.ravel()
        order = np.argsort(-value, kind="stable")[:wanted]
        order = order[value[order] > 0.0]
        rows, cols = order // depth, where[order]
        value[order] = 0.0
        return rows, cols, max(bar, float(value.max()))

    def _blocks(self) -> range:
        return range(0, len(self.support.head), scan.BLOCK)

    def _scores(self, first: int, *, counted: bool = True) -> Floats:
        """The scores of a block of rows, zero on the support and, if ``counted``, where nothing is free."""
        m, n = len(self.limits.rows), len(self.limits.cols)
        score = np.zeros((min(scan.BLOCK, m - first), n))
        for group in self.groups:
            scan.accumulate(score, group, first, self.weights, self.r, self.c)
        left = self.left if counted else np.ones_like(self.left)
        scan.mask(score, first, self.support, left, self.limits.labels)
        return score


def run(
    problems: Sequence[Problem],
    weights: Floats,
    limits: Limits,
    fixed: Sequence[Pair],
    start: Sequence[Pair],
    *,
    polish: bool,
    callback: Callback | None = None,
    **options: Any,
) -> SharedOutcome:
    """Links from start to end; for one a row and column also from the best assignment."""

    def found(first: Sequence[Pair], told: Callback | None) -> tuple[SharedOutcome, float]:
        engine = SharedSupport(problems, weights, limits, callback=told, **options)
        with engine.threads():
            engine.seed(fixed, first)
            status = engine.grow()
            if polish and not engine.stopped:
                engine.polish()
            return engine.outcome(Status.STOPPED if engine.stopped else status), engine.objective

    outcome, reached = found(start, callback)
    one_to_one = options.get("matroid") is None and matching.is_one_to_one(limits)
    if not polish or outcome.status is Status.STOPPED or not one_to_one:
        return outcome
    other, objective = found(matching.best_alone(problems, weights), None)
    if not objective < reached - 1e-12 * abs(reached):
        return outcome
    before, after = (Outcome(*each, True) for each in (outcome, other))
    outcome.record.jump(before, after, objective)
    return other._replace(start=outcome.start, record=outcome.record)
