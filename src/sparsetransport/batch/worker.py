"""A worker's share of a batch: solves problems of the same kind in one compiled call."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import _checks
from .._numba.codes import BUDGET_USED, LOCAL, OPTIMAL, UNFINISHED
from ..api import solve_checked
from ..budgets import Limits, counts, limits_of
from ..build_result import SMALL_RESIDUAL, Backing
from ..certify.certifier import Certifier
from ..effort import QUICK, Grown, Matching, Mean
from ..engine import batch_solver
from ..engine.matching import is_one_to_one
from ..geometry.kernels import Delta
from ..given import costs_are_lost, senses_of, weights_of
from ..inner.solvers import EXACT
from ..options import Budget, Options
from ..path import Path
from ..problem import Problem, as_problem
from ..result import Parts, Result
from ..rounding import may_hide_a_gain
from ..status import Status
from .stack import Matrices, Stack, matrices

# Threads take turns at the Python code before and after the compiled call: it cannot run in parallel anyway, and
# without the lock threads would compete for the GIL at every NumPy call.
_TURN = threading.RLock()  # a budget may be a function that solves a batch itself


def _new_turn() -> None:
    """Replace the lock in a forked child, which has none of the threads that may hold it."""
    global _TURN
    _TURN = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_turn)

_STATUS = {BUDGET_USED: Status.BUDGET_USED, LOCAL: Status.LOCAL, OPTIMAL: Status.OPTIMAL}
Budgets = Budget | Callable[[int, int], Budget]
"""One for all problems, or a function of their shapes."""


class ProblemError(ValueError):
    """A problem of a batch could not be solved; ``index`` says which one, ``reason`` why."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(index, reason)
        self.index, self.reason = index, reason

    @classmethod
    def of(cls, index: int, error: Exception) -> "ProblemError":
        """From any error; the class name is prepended unless it is a ValueError or a TypeError."""
        known = isinstance(error, ValueError | TypeError)
        return cls(index, str(error) if known else f"{type(error).__name__}: {error}".removesuffix(": "))

    def __str__(self) -> str:
        return f"problems[{self.index}]: {self.reason}"


@dataclass
class Stop:
    """A flag that tells threads to stop; workers in other processes have copies and do not see it."""

    asked: bool = False


class Task(NamedTuple):
    """The settings that all problems of a batch share."""

    budget: Budgets
    geometry: dict[str, Any]
    options: dict[str, Any]
    stop: Stop


class Asked(NamedTuple):
    """A problem of a chunk, its position there, and how to solve it."""

    place: int
    source: Problem | Matrices  # matrices are checked together
    limits: Limits | None  # None: to be solved alone
    options: Options
    give: Any  # converts arrays to the user's library


def solve_chunk(task: Task, chunk: tuple[int, list[Any]]) -> list[Result | ProblemError]:
    """Results for some problems, the first of which has the given index."""
    first, items = chunk
    results: list[Any] = [None] * len(items)
    groups: tuple[list[Asked], list[Asked]] = ([], [])  # those given as matrices, and those given as problems
    alone: list[Asked] = []
    with _TURN:
        budgets, plain = _Budgets(task), _is_plain(task.geometry)
        for k, item in enumerate(items):
            try:
                ready = _ready(k, item, plain, task, budgets)
            except Exception as error:
                results[k] = ProblemError.of(first + k, error)
                continue
            (alone if ready.limits is None else groups[isinstance(ready.source, Problem)]).append(ready)
    for group in groups:
        if group:
            try:
                alone += _together(group, task, results)
            except Warning:  # turned into an error by the user: solved alone, the problem gets an error with its index
                alone += group
    for ready in alone:
        if task.stop.asked:
            break
        results[ready.place] = _alone(task, first, items[ready.place], ready)
    return results


def _ready(k: int, item: Any, plain: bool, task: Task, budgets: "_Budgets") -> Asked:
    """A problem as the user gave it, prepared for the compiled batch solver if that supports it."""
    arrays = matrices(item) if plain else None
    if arrays is not None:
        options, limits = budgets(arrays[0].shape)
        if limits is not None and options.effort.is_quick:
            return Asked(k, arrays, limits, options, _checks.as_numpy)
    problem, give = _problem(item, task.geometry)
    options, limits = budgets(problem.shape)
    together = problem.is_plain and batch_solver.fits(problem) and (options.effort.is_quick or not problem.has_deltas)
    return Asked(k, problem, limits if together else None, options, give)


def _is_plain(geometry: dict[str, Any]) -> bool:
    """True if costs and masses alone define the problems: `Delta` kernels, and valid weights shared by all."""
    kernels = geometry["kernels"]
    if geometry["link_cost"] is not None:
        return False
    try:
        if np.inf in weights_of(geometry["unbalanced"]).numbers or senses_of(geometry["sense"]) != ("=", "="):
            return False
        _checks.number("reg", geometry["reg"], positive=False)
    except (TypeError, ValueError):
        return False
    return kernels is None or isinstance(kernels, Delta)


def _problem(item: Any, geometry: dict[str, Any]) -> tuple[Problem, Any]:
    """The problem, and a function that converts arrays to the user's library."""
    if isinstance(item, Problem):
        return as_problem(item, **geometry), _checks.as_numpy
    if not isinstance(item, tuple):
        item = (item,)
    if not 1 <= len(item) <= 3:
        raise TypeError(f"a problem must be a Problem, a cost matrix or a tuple (C, a, b), got a tuple of {len(item)}")
    return as_problem(*item, **geometry), _checks.same_kind(*item)


class _Budgets:
    """Options and limits for each shape, cached; limits are None if the compiled batch solver does not support them."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.by_shape: dict[tuple[int, ...], tuple[Options, Limits | None]] = {}
        self.by_budget: dict[Any, tuple[Any, Options]] = {}  # holds the budget too, so that its id is not reused

    def __call__(self, shape: tuple[int, ...]) -> tuple[Options, Limits | None]:
        if shape not in self.by_shape:
            options = self._options(shape)
            self.by_shape[shape] = options, _limits(options, shape)
        return self.by_shape[shape]

    def _options(self, shape: tuple[int, ...]) -> Options:
        budget: Any = self.task.budget(*shape) if callable(self.task.budget) else self.task.budget
        if isinstance(budget, np.integer):
            budget = int(budget)
        key = (type(budget), budget) if isinstance(budget, int | None) else id(budget)
        if key not in self.by_budget:
            self.by_budget[key] = budget, batch_options(budget, self.task.options)
        return self.by_budget[key][1]


def batch_options(budget: Any, given: dict[str, Any]) -> Options:
    """The options of a batch; the effort is "quick" unless another one, or a gap, is asked for."""
    options = Options.checked(budget=budget, **given)
    asked = any(given.get(name) is not None for name in ("effort", "polish", "gap_tol"))
    return options if asked or not options.effort.improves else options._replace(effort=QUICK)


def _limits(options: Options, shape: Any) -> Limits | None:
    """The limits of the budget, or None if the compiled batch solver does not support the options."""
    how = options.effort
    is_timed = options.gap_tol is not None or options.time_limit is not None
    others = how.finish or any(not isinstance(start, Grown | Matching | Mean) for start in how.starts)
    unknown = not options.is_compiled or is_timed or not len(how.program) or others
    if unknown or shape[0] * shape[1] >= how.batch_pairs or not counts(options.matroid):
        return None
    limits = limits_of(options.matroid, shape)
    is_matched = any(isinstance(start, Matching) for start in how.starts) and (
        is_one_to_one(limits) or limits.total <= 1
    )
    return None if len(limits.labels) or is_matched else limits


def _together(group: list[Asked], task: Task, results: list[Any]) -> list[Asked]:
    """Solve problems of one kind in one compiled call; returns those that must be solved alone."""
    options, left = group[0].options, list[Asked]()
    with _TURN:
        stack = _stacked(group, task)
        if not stack.fine.all():  # rare: leave these out and try again
            left = [ready for ready, fine in zip(group, stack.fine.tolist(), strict=True) if not fine]
            group = [ready for ready, fine in zip(group, stack.fine.tolist(), strict=True) if fine]
            if not group:
                return left
            stack = _stacked(group, task)
        limits = [ready.limits for ready in group if ready.limits is not None]
        packed = stack.pack(limits, options.effort, options.tol)
    plans = batch_solver.solve(packed, options.effort.program, options.effort.tuning)
    with _TURN:
        scale = stack.scale
        kkt = np.divide(plans.number[:, 2], scale, out=np.zeros_like(scale), where=scale > 0.0)
        finished = (plans.code != UNFINISHED) & (kkt <= max(SMALL_RESIDUAL, options.tol))
        finished &= np.isfinite(plans.number).all(1)
        linear, value, _ = plans.number.T
        moved = np.bincount(np.repeat(np.arange(len(group)), plans.sizes[:, 0]), plans.mass, len(group))
        is_lost = costs_are_lost(scale, stack.common)
        is_lost |= (plans.code == OPTIMAL) & may_hide_a_gain(scale, moved, value - linear + np.abs(linear))
        finished &= ~is_lost  # they are solved alone, which gives a warning
        made = _results(stack, plans, kkt.tolist(), group)
        for ready, done, result in zip(group, finished.tolist(), made, strict=True):
            if done:
                results[ready.place] = result
            else:
                left.append(ready)
    return left


def _stacked(group: Sequence[Asked], task: Task) -> Stack:
    sources: Any = [ready.source for ready in group]
    if isinstance(sources[0], Problem):
        return Stack.of_problems(sources)
    return Stack.of_matrices(sources, weights_of(task.geometry["unbalanced"]), task.geometry["reg"])


def _results(
    stack: Stack, plans: batch_solver.Plans, kkt: list[float], group: Sequence[Asked]
) -> Iterator[Result | None]:
    """The plans of a compiled call as results, in order; None for a plan that is not finished."""
    points, pairs = stack.ends()
    sizes, numbers, weights, reg = (
        plans.sizes.tolist(),
        plans.number.tolist(),
        stack.weights.tolist(),
        stack.reg.tolist(),
    )
    codes, empty, shapes = plans.code.tolist(), stack.empty.tolist(), stack.shape.tolist()
    rows, cols, potential = plans.label[:, 0].copy(), plans.label[:, 1].copy(), -plans.field
    entry = step = gone = 0
    for k, ready in enumerate(group):
        if codes[k] == UNFINISHED:
            yield None
            continue
        (m, n), (entries, steps, departures) = shapes[k], sizes[k]
        at, first, middle, last = slice(entry, entry + entries), points[k], points[k] + m, points[k + 1]
        linear, value, _ = numbers[k]
        wanted = stack.mass[first:middle], stack.mass[middle:last]
        near, far = (stack.base[part] @ stack.mass[part] for part in (slice(first, middle), slice(middle, last)))
        constant = float(-0.5 * (near + far))
        parts = Parts(
            rows[at],
            cols[at],
            plans.mass[at],
            (m, n),
            value,
            linear,
            wanted,
            (plans.marginal[first:middle], plans.marginal[middle:last]),
            (potential[first:middle], potential[middle:last]),
            ready.source.points if isinstance(ready.source, Problem) else None,
            constant,
        )
        backing = Backing(partial(_certifier, stack, k, first, pairs[k], ready), ready.give)
        told = slice(step, step + steps)
        path = Path(
            plans.added[told],
            constant - plans.gain[told],
            plans.entries[told],
            plans.gone[gone : gone + departures],
            plans.gone_until[told],
            (),
            backing.restrict,
        )
        log = {
            "steps": steps,
            "unbalanced": (weights[k][0], weights[k][1]),
            "reg": reg[k],
            "sense": ("=", "="),
            "from_prices": False,
        }
        status = _STATUS[codes[k]].said_of(parts, not empty[k], ready.options.tol <= EXACT)
        yield Result(status, True, kkt[k], path, log, parts, backing)
        entry, step, gone = entry + entries, step + steps, gone + departures


def _certifier(stack: Stack, k: int, point: int, pair: int, ready: Asked) -> Certifier:
    """The certifier of a plan of a batch, made on first use."""
    assert ready.limits is not None  # problems that are solved together have limits
    return Certifier(stack.problem(k, point, pair), ready.limits, ready.options.tol, ready.options.effort)


def _alone(task: Task, first: int, item: Any, ready: Asked) -> Result | ProblemError:
    """One problem by `solve`, with its own random generator."""
    options = ready.options._replace(rng=np.random.default_rng(task.options.get("rng")))
    try:
        return solve_checked(_problem(item, task.geometry)[0], options, ready.give)
    except Exception as error:
        return ProblemError.of(first + ready.place, error)
