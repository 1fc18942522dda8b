"""One support for many scenarios: the loop around the compiled functions, and threads over scenarios and rows.

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
from ..budgets import Pair, pairs_of
from ..effort import Tuning
from ..inner.solvers import EXACT, UnboundedError
from ..plan import Callback, Outcome, Record, new_trace
from ..problem import Problem
from ..status import Status
from . import elimination
from . import shared_plans as plans
from . import shared_scan as scan
from .room import Constraint, count, excess, forget_refusals, is_free, is_over
from .shared_plans import Group, alike, new_group
from .shell import Shell
from .state import stalls, with_more_columns

STEPS = 512  # steps of the compiled loop between two looks at the keyboard


class SharedOutcome(NamedTuple):
    """Links in order of choice, their masses in every scenario, why the search ended and how it got there."""

    rows: Ints  # (k,)
    cols: Ints  # (k,)
    mass: Floats  # (z, k)
    status: Status
    start: tuple[Pair, ...]
    record: Record

    def as_outcome(self) -> Outcome:
        """The same, for a record."""
        return Outcome(*self, True)


class SharedSolver(Shell):
    """Several problems over the same pairs, and the support they share."""

    def __init__(
        self,
        problems: Sequence[Problem],
        weights: Floats,
        constraint: Constraint,
        tuning: Tuning,
        *,
        work: float = np.inf,
        listed: bool = False,
        tol: float = EXACT,
        n_jobs: int = 1,
        callback: Callback | None = None,
    ) -> None:
        constant = float(weights @ np.array([problem.constant for problem in problems]))
        super().__init__(constraint, constant, callback)
        self.weights, self.tuning, self.listed, self.n_jobs = weights, tuning, listed, n_jobs
        self.fixed, self.work = 0, work
        self.status = Status.GIVEN  # why growing ended
        self.r = np.stack([problem.base[0] for problem in problems])
        self.c = np.stack([problem.base[1] for problem in problems])
        links = min(constraint.limits.most + 2, 1024)
        self.chosen = plans.new_support(links, problems[0].shape[0])
        self.mass = np.zeros((len(problems), links))
        self.gains = np.zeros(len(problems))
        self.progress = np.zeros(2)
        self.groups = [new_group([problems[s] for s in members], members, tol) for members in alike(problems)]
        self.list: tuple[Ints, Ints] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self.list_left, self.list_bar = 0, 0.0
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
        return int(self.chosen.size[0])

    @property
    def objective(self) -> float:
        """The weighted sum of the scenarios' objectives."""
        return self.constant - float(self.weights @ self.gains)

    def support(self) -> list[Pair]:
        """The links in order of choice."""
        rows, cols = self.chosen.rows[: self.size], self.chosen.cols[: self.size]
        return pairs_of(rows, cols)

    def seed(self, fixed: Sequence[Pair], start: Sequence[Pair]) -> None:
        """Begin with links that stay whatever they are worth, and with those of others that fit and are used."""
        for pair in fixed:
            self._append(pair)
        self.fixed = len(fixed)
        for pair in start:
            if plans.place(self.chosen, *pair) < 0 and self._may_add(pair):
                self._append(pair)
        if self.size:
            self._solve_all()
            scan.reclaim(self.chosen, self.mass, self.room, self.fixed, new_trace(1, len(self.chosen.rows)))
        self.start = tuple(self.support())

    def grow(self) -> None:
        """Add links until nothing helps or nothing is free."""
        self.status = self._grow()

    def _grow(self) -> Status:
        self.progress[:] = float(self.weights @ self.gains), 0.0
        self.list_left = 0
        if len(self.groups) == 1 and not self.listed and self._threads is None:
            return self._grow_compiled()
        while not self.stopped:
            if self.room.left[0] <= 0:
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
        """The same in one compiled function, which comes back for room, for a callback and for Ctrl-C."""
        ends = {BUDGET_USED: Status.BUDGET_USED, LOCAL: Status.LOCAL}
        while not self.stopped:
            trace = new_trace(1 if self.callback is not None else STEPS, len(self.chosen.rows))
            state = (self.groups[0], self.chosen, self.r, self.c, self.mass, self.gains, self.weights)
            code = scan.grow(*state, self.room, self.fixed, trace, self.progress, self.tuning.patience)
            self.note(trace)
            self._count(int(trace.steps[0]), pairs=True)
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

    def swap(self, allowed: float = np.inf, passes: float = np.inf) -> None:
        """Let pairs from outside in for the least missed of the links, as long as that lowers the objective.

        A pair is added beyond the budget; of the links whose departure makes room for it the one goes whose loss, by
        ``sum_s w_s x^2 / (2 M_tt)`` with ``M = H^-1``, is least; if the objective is not lower then, both are undone.
        This needs no copies, since the optimum on a support does not depend on how it was reached. Operations on
        factors are limited by the solver's ``work``, whatever is allowed, and a trial is a pass.
        """
        tried = set[Pair]()
        trial = len(self.gains) * float(self.size) ** 3 / 6.0
        trials = min(float(self.size), passes, self.work / max(trial, 1.0))
        while trials >= 1.0 and not self.stopped:
            rows, cols, _ = self._top(self.tuning.swap_width, counted=False)
            wish = next((pair for pair in pairs_of(rows, cols) if pair not in tried), None)
            if wish is None:
                return
            trials -= 1.0
            if self._exchange(wish):
                tried.clear()
            else:
                tried.add(wish)

    def eliminate(self, extra: int, allowed: float = 0.0, passes: float = np.inf) -> bool:
        """Grow beyond the budget, delete what is missed least, grow again: True if that lowered the objective.

        Only by as many links as there are, and as far as the solver's ``work`` lets it come back.
        """
        deletion = len(self.gains) * float(self.size) ** 3 / 3.0
        extra = int(min(extra, self.size, self.work / max(deletion, 1.0)))
        if self.stopped or extra < 1 or not self._wants_more():
            return False
        before, objective = self.outcome(), self.objective
        aside = self.record, self.callback
        self.record, self.callback = Record(), None  # the way out and back is nobody's concern
        forget_refusals(self.room)
        address, self.room.oracle[0] = int(self.room.oracle[0]), 0
        total = elimination.lift(self.room, extra)
        self.grow()
        elimination.lower(self.room, extra, total)
        self.room.oracle[0] = address
        while spare := self._excess():
            self._remove(spare[0])
            self._solve_all()
        self.grow()
        self.record, self.callback = aside
        if self.objective < objective - 1e-12 * abs(objective):
            after = self.outcome()
            self.stopped = self.record.jump(before.as_outcome(), after.as_outcome(), self.objective, self.callback)
            return True
        self._go_back(pairs_of(before.rows, before.cols))
        return False

    def _excess(self) -> list[int]:
        """Places of links beyond the budget, the least missed first; fixed ones stay."""
        loss, links = self._losses(), self.support()
        loss[: self.fixed] = np.inf
        if self.constraint.oracle is not None:
            return excess(self.constraint.oracle, links, loss)
        order = np.argsort(loss, kind="stable").tolist() if self.room.left.min() < 0 else []
        return [k for k in order if k >= self.fixed and is_over(self.room, *links[k])]

    def _wants_more(self) -> bool:
        """True if some pair, free or not, would help."""
        return bool(self._top(1, counted=False)[0].size)

    def _losses(self) -> Floats:
        """By how much the objective would rise without each link alone."""
        loss = np.zeros(self.size)
        for group in self.groups:
            plans.losses(group, self.chosen, self.weights, loss)
        return loss

    @property
    def gain(self) -> float:
        """By how much the plans lower the objective of empty ones."""
        return float(self.weights @ self.gains)

    def outcome(self) -> SharedOutcome:
        """The support as it stands."""
        status = self.status
        if self.stopped:
            status = Status.STOPPED
        elif status in (Status.LOCAL, Status.BUDGET_USED) and not self._wants_more():
            status = Status.OPTIMAL
        self.raise_errors()
        size = self.size
        rows, cols = self.chosen.rows[:size].copy(), self.chosen.cols[:size].copy()
        return SharedOutcome(rows, cols, self.mass[:, :size].copy(), status, self.start, self.record)

    def _exchange(self, wish: Pair) -> bool:
        """Try one pair: True if it stays."""
        before, links = self.objective, self.support()
        self._append(wish)
        self._solve_all()
        loss = self._losses()
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
        self._remove(self.size - 1)
        self._go_back(links)
        return False

    def _relieves(self, links: list[Pair], k: int, wish: Pair) -> bool:
        """True if the links without number ``k`` leave room for the wish, which has been counted already."""
        if self.constraint.oracle is not None:
            return self.constraint.oracle.can_add(links[:k] + links[k + 1 :], wish)
        count(self.room, *links[k], 1)
        relieved = bool(self.room.left.min() >= 0)
        count(self.room, *links[k], -1)
        return relieved

    def _go_back(self, links: list[Pair]) -> None:
        """Go back to these links, in this order, after something that did not help."""
        now = set(self.support())
        for pair in now - set(links):
            for group in self.groups:
                plans.forget(group, *pair)
            count(self.room, *pair, 1)
        for pair in set(links) - now:
            count(self.room, *pair, -1)
        self.chosen.size[0] = 0
        self.chosen.head[:] = -1
        for pair in links:
            plans.append(self.chosen, *pair)
        forget_refusals(self.room)
        self._solve_all()

    def _append(self, pair: Pair) -> None:
        """A link more, not solved for yet."""
        while self.size == len(self.chosen.rows) or not all(plans.prepare(group, *pair) for group in self.groups):
            self._make_room()
        plans.append(self.chosen, *pair)
        count(self.room, *pair, -1)

    def _remove(self, position: int) -> None:
        """A link less, out of all plans, which are not solved again yet."""
        pair = int(self.chosen.rows[position]), int(self.chosen.cols[position])
        for group in self.groups:
            plans.forget(group, *pair)
        plans.remove(self.chosen, position)
        count(self.room, *pair, 1)

    def _make_room(self) -> None:
        """Twice the room for links, and for the columns of lazy Gram matrices, where it has run out."""
        if self.size == len(self.chosen.rows):
            links = self.support()
            self.chosen = plans.new_support(2 * len(links), len(self.chosen.head))
            for pair in links:
                plans.append(self.chosen, *pair)
            self.mass = np.concatenate([self.mass, np.zeros_like(self.mass)], axis=1)
        self.groups = [
            group._replace(gram_a=with_more_columns(group.gram_a, 1), gram_b=with_more_columns(group.gram_b, 1))
            for group in self.groups
        ]

    def _solve_all(self) -> None:
        """The exact masses of every scenario on the present links."""
        self._count(1, pairs=False)
        for g in range(len(self.groups)):
            while NEEDS_ROOM in (codes := self._solve_group(self.groups[g])):
                self.groups[g] = plans.with_more_room(self.groups[g])
            if UNBOUNDED in codes:
                raise UnboundedError

    def _solve_group(self, group: Group) -> list[int]:
        size = len(group.members)
        share = size if self._threads is None else max(1, size // (4 * self.n_jobs))
        state = (group, self.chosen, self.r, self.c, self.mass, self.gains)
        return self._map(lambda k: plans.solve(*state, k, min(k + share, size)), range(0, size, share))

    def _map(self, work: Callable[[int], Any], tasks: Sequence[int]) -> list[Any]:
        """``work`` for every task, in threads if there are any; the answers are in the order of the tasks."""
        if self._threads is None:
            return [work(task) for task in tasks]
        return list(self._threads.map(work, tasks))

    def _note(self, *gone: Pair) -> bool:
        """Reclaim, and write down the step that added the last link: True if nothing is gained any more."""
        trace = new_trace(1, self.size + 1)
        scan.note(self.chosen, self.mass, self.gains, self.weights, self.room, self.fixed, trace)
        for pair in gone:
            trace.gone[:, trace.steps[1]] = pair
            trace.steps[1] += 1
        trace.gone_until[0] = trace.steps[1]
        self.note(trace)
        return bool(stalls(self.progress, float(trace.gain[0]), self.tuning.patience))

    def _may_add(self, pair: Pair) -> bool:
        rows, cols = np.array([pair[0]]), np.array([pair[1]])
        return bool(scan.available(rows, cols, self.chosen, self.room)[0])

    def _count(self, times: int, *, pairs: bool) -> None:
        """Count the operations of scans of all pairs, or of solves on the present links."""
        m, n = self.room.labels.shape[1:]
        self.effort[0] += float(times) * len(self.gains) * (m * n if pairs else self.size**2)

    def _next_pair(self) -> Pair | None:
        """The free pair with the largest score, or one of the candidate list that is nearly as good."""
        while True:
            pair = self._best_candidate()
            if pair is None or is_free(self.room, *pair):
                return pair  # one that is refused is remembered as such

    def _best_candidate(self) -> Pair | None:
        if not self.listed:
            rows, cols, _ = self._top(1)
            return (int(rows[0]), int(cols[0])) if rows.size else None
        while True:
            rescanned = self.list_left == 0
            if rescanned:
                rows, cols, self.list_bar = self._top(self.tuning.list_size)
                self.list, self.list_left = (rows, cols), int(self.tuning.list_refresh)
            pair, score = self._best_of_list()
            slack = self.tuning.list_slack**2  # scores are squares
            if pair is not None and (rescanned or score >= slack * self.list_bar):
                self.list_left -= 1
                return pair
            self.list_left = 0
            if rescanned:
                return None

    def _best_of_list(self) -> tuple[Pair | None, float]:
        """The best pair of the candidate list as scores are now."""
        rows, cols = self.list
        score = np.zeros(len(rows))
        for group in self.groups:
            scan.squares(group, self.weights, self.r, self.c, rows, cols, score)
        score[~scan.available(rows, cols, self.chosen, self.room)] = 0.0
        if not score.any():
            return None, 0.0
        best = int(score.argmax())
        return (int(rows[best]), int(cols[best])), float(score[best])

    def _top(self, wanted: int, *, counted: bool = True) -> tuple[Ints, Ints, float]:
        """The pairs with the largest scores, in falling order, and a score that no pair left out exceeds.

        Only free ones, if ``counted``. Ties go to the first row, then to the first column, whoever scans what.
        """
        depth = 1 if wanted == 1 else self.tuning.list_depth
        self._count(1, pairs=True)

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
        return range(0, len(self.chosen.head), scan.BLOCK)

    def _scores(self, first: int, *, counted: bool = True) -> Floats:
        """The scores of a block of rows, zero on the support and, if ``counted``, where nothing is free."""
        (m, n), room = self.room.labels.shape[1:], self.room
        score = np.zeros((min(scan.BLOCK, m - first), n))
        for group in self.groups:
            scan.accumulate(score, group, first, self.weights, self.r, self.c)
        scan.mask(score, first, self.chosen, room if counted else room._replace(left=np.ones_like(room.left)))
        return score
