"""One worker's share of a batch: problems in, results out, with one call of machine code for those that are alike."""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from .._checks import Floats, Ints
from .._numba.codes import UNFINISHED
from ..budgets import Limits, limits_of
from ..build_result import SMALL_RESIDUAL
from ..engine import batch_solver
from ..engine.matching import is_one_to_one
from ..forest.trees import has_deltas
from ..geometry.kernels import Delta
from ..geometry.matrices import Cost
from ..options import Budget, Options
from ..problem import Problem, auto_weight, costs_are_lost, is_usual, weights_of
from ..result import Result
from ..search import solve_checked
from .lazy_result import Asked, Later, Matrices, Solved

# Threads take turns at what Python does before and after the kernel. They could not do it at the same time anyway, and
# without turns they fight over the GIL at every call of NumPy.
_TURN = threading.RLock()  # a budget may be a function that solves a batch itself


def _new_turn() -> None:
    """A forked child has none of the threads that may hold the lock."""
    global _TURN
    _TURN = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_turn)

_DEFAULTS = {"kernels": None, "unbalanced": "auto", "reg": 0.0}
Budgets = Budget | Callable[[int, int], Budget]
"""One for all problems, or a function of their shapes."""


class ProblemError(ValueError):
    """A problem of a batch could not be solved; ``index`` says which one, ``reason`` why."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(index, reason)
        self.index, self.reason = index, reason

    @classmethod
    def of(cls, index: int, error: Exception) -> "ProblemError":
        """From what went wrong; the sentences of a ValueError or TypeError need no name before them."""
        known = isinstance(error, ValueError | TypeError)
        return cls(index, str(error) if known else f"{type(error).__name__}: {error}".removesuffix(": "))

    def __str__(self) -> str:
        return f"problems[{self.index}]: {self.reason}"


@dataclass
class Stop:
    """Nobody wants the results any more: for threads, since a worker elsewhere has a copy."""

    asked: bool = False


class Task(NamedTuple):
    """What is the same for all problems of a batch."""

    budget: Budgets
    geometry: dict[str, Any]
    options: dict[str, Any]
    stop: Stop


def solve_chunk(task: Task, chunk: tuple[int, list[Any]]) -> list[Result | ProblemError]:
    """Results for some problems, the first of which has the given index."""
    first, items = chunk
    results: list[Any] = [None] * len(items)
    matrices: list[Asked] = []
    problems: list[Asked] = []
    alone: list[Asked] = []
    with _TURN:
        budgets, plain = _Budgets(task), _is_plain(task.geometry)
        for k, item in enumerate(items):
            try:
                ready = _ready(k, item, plain, task, budgets)
            except Exception as error:
                results[k] = ProblemError.of(first + k, error)
                continue
            if ready.limits is None:
                alone.append(ready)
            else:
                (problems if isinstance(ready.source, Problem) else matrices).append(ready)
    for group in (matrices, problems):
        if group:
            try:
                alone += _together(group, task, results)
            except Warning:  # turned into an error by the user: alone, the problem that it is of has an index
                alone += group
    for ready in alone:
        if task.stop.asked:
            break
        results[ready.place] = _alone(task, first, items[ready.place], ready)
    return results


def _ready(k: int, item: Any, plain: bool, task: Task, budgets: "_Budgets") -> Asked:
    """A problem as the user gave it, made ready for the compiled batch if that knows its kind."""
    arrays = _matrices(item) if plain else None
    if arrays is not None:
        options, limits = budgets(arrays[0].shape)
        if limits is not None and arrays[0].size < batch_solver.LARGE and not options.grafts:
            return Asked(k, arrays, limits, options, _checks.as_numpy)
    problem, give = _problem(item, task.geometry)
    options, limits = budgets(problem.shape)
    together = limits is not None and batch_solver.fits(problem) and not (options.grafts and has_deltas(problem))
    return Asked(k, problem, limits if together else None, options, give)


def _is_plain(geometry: dict[str, Any]) -> bool:
    """Do costs and masses say all, the weights being sound and the same for all problems?"""
    kernels = geometry["kernels"]
    try:
        weights_of(geometry["unbalanced"])
        _checks.number("reg", geometry["reg"], positive=False)
    except (TypeError, ValueError):
        return False
    return kernels is None or isinstance(kernels, Delta)


def _matrices(item: Any) -> Matrices | None:
    """Costs and masses, if they are arrays of NumPy that fit each other; their entries are not looked at yet."""
    if type(item) is np.ndarray:
        cost, a, b = item, None, None
    elif type(item) is tuple and 1 <= len(item) <= 3:
        cost, a, b = (*item, None, None)[:3]
    else:
        return None
    if type(cost) is not np.ndarray or cost.ndim != 2 or cost.dtype.kind not in "fiu" or not cost.size:
        return None
    if not (_fits(a, cost.shape[0]) and _fits(b, cost.shape[1])):
        return None
    return np.ascontiguousarray(cost, np.float64), a, b


def _fits(mass: Any, size: int) -> bool:
    """Is this an array of NumPy with one mass for every point, or None for uniform ones?"""
    return mass is None or (type(mass) is np.ndarray and mass.shape == (size,) and mass.dtype.kind in "fiu")


def _problem(item: Any, geometry: dict[str, Any]) -> tuple[Problem, Any]:
    """A problem as the user gave it, and what turns arrays into the user's kind."""
    if isinstance(item, Problem):
        _refuse_geometry(geometry)
        return item, _checks.as_numpy
    if not isinstance(item, tuple):
        item = (item,)
    if not 1 <= len(item) <= 3:
        raise TypeError(f"a problem must be a Problem, a cost matrix or a tuple (C, a, b), got a tuple of {len(item)}")
    return Problem.from_matrices(*item, **geometry), _checks.same_kind(*item)


def _refuse_geometry(geometry: dict[str, Any]) -> None:
    """See that nothing was asked for that a `Problem` has settled already."""
    for name, value in geometry.items():
        if not isinstance(value, str | float | int | None) or value != _DEFAULTS[name]:
            raise TypeError(
                f"{name} is settled in a Problem: build it with what it should be, got {name}={value!r} too"
            )


class _Budgets:
    """Options and limits for a shape of plan, made once; no limits where the compiled batch does not know them."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.by_shape: dict[tuple[int, ...], tuple[Options, Limits | None]] = {}
        self.by_budget: dict[Any, tuple[Any, Options]] = {}  # holds the budget too, so that no id is used again

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
            options = Options.checked(budget=budget, **self.task.options)
            asked = options.gap_tol is not None or self.task.options.get("polish") is True  # else they take too long
            self.by_budget[key] = budget, options._replace(grafts=options.grafts and asked)
        return self.by_budget[key][1]


def _limits(options: Options, shape: Any) -> Limits | None:
    """The limits of the budget, if the options are those that the compiled batch knows."""
    if not options.compiled or options.gap_tol is not None:
        return None
    limits = limits_of(options.matroid, shape)
    return None if len(limits.labels) or (options.polish and is_one_to_one(limits)) else limits


def _together(group: list[Asked], task: Task, results: list[Any]) -> list[Asked]:
    """Solve many problems, all of one kind, in one call of machine code; those that must be solved alone come back."""
    options, left = group[0].options, []
    with _TURN:
        if isinstance(group[0].source, Problem):
            packed, scale = _pack_problems(group, options.tol)
            problems: list[Any] = [ready.source for ready in group]
            empty = np.array([not problem.cost.has_pairs for problem in problems])
            common = np.array([problem.cost.common for problem in problems])
        else:
            flat = _Flat.of(group)
            fine = flat.seen.sound & flat.usual
            if weights_of(task.geometry["unbalanced"]).need_auto:  # alone there will be a warning
                fine &= ~flat.apart
            if not fine.all():  # rare: leave these out, and look again
                left = [ready for ready, good in zip(group, fine.tolist(), strict=True) if not good]
                group = [ready for ready, good in zip(group, fine.tolist(), strict=True) if good]
                if not group:
                    return left
                flat = _Flat.of(group)
            packed, scale = _pack_matrices(group, flat, task.geometry, options.tol)
            empty, common = flat.seen.allowed == 0, flat.common
    plans = batch_solver.solve(packed, options.polish)
    with _TURN:
        solved = Solved.of(plans, packed, scale, empty)
        finished = (plans.code != UNFINISHED) & (solved.kkt <= max(SMALL_RESIDUAL, options.tol))
        finished &= np.isfinite(plans.number).all(1)
        finished &= ~costs_are_lost(scale, common)  # solved alone there will be a warning
        for k, (ready, done) in enumerate(zip(group, finished.tolist(), strict=True)):
            if done:
                results[ready.place] = Later.of(solved, k, ready)
            else:
                left.append(ready)
    return left


def _limits_of(group: Sequence[Asked]) -> list[Limits]:
    limits: Any = [ready.limits for ready in group]  # what is solved together has some
    return limits  # type: ignore[no-any-return]


def _pack_problems(group: Sequence[Asked], tol: float) -> tuple[batch_solver.Pack, Floats]:
    """Problems side by side, and their scales."""
    problems: Any = [ready.source for ready in group]
    scale = np.array([problem.scale for problem in problems])
    grams = [(problem.gram_a.matrix, problem.gram_b.matrix) for problem in problems]
    numbers = [(2.0 * problem.unbalanced[0], 2.0 * problem.unbalanced[1], problem.reg) for problem in problems]
    packed = batch_solver.Pack.of(
        [(*problem.shape, len(a), len(b)) for problem, (a, b) in zip(problems, grams, strict=True)],
        _limits_of(group),
        np.column_stack([np.array(numbers), tol * scale]),
        np.concatenate([problem.cost.compiled.matrix.ravel() for problem in problems]),
        np.concatenate([gram.ravel() for both in grams for gram in both]),
        np.concatenate([side for problem in problems for side in (problem.a, problem.b)]),
        np.concatenate([side for problem in problems for side in problem.base]),
    )
    return packed, scale


class _Flat(NamedTuple):
    """Costs and masses side by side, and what a look at them shows."""

    shape: Ints
    cost: Floats
    sides: list[Floats]
    mass: Floats
    seen: batch_solver.Look
    common: Floats
    apart: NDArray[np.bool_]  # is the largest cost far above all others?
    usual: NDArray[np.bool_]  # alone there will be a warning where the total of a side is not

    @classmethod
    def of(cls, group: Sequence[Asked]) -> "_Flat":
        """From matrices."""
        sources: Any = [ready.source for ready in group]
        shape = np.array([source[0].shape for source in sources])
        cost = np.concatenate([source[0] for source in sources], axis=None)
        sides = []
        for matrix, a, b in sources:
            m, n = matrix.shape
            sides.append(_uniform(m) if a is None else np.asarray(a, np.float64))
            sides.append(_uniform(n) if b is None else np.asarray(b, np.float64))
        mass = np.concatenate(sides)
        seen = batch_solver.look(shape, cost, mass)
        common, apart = seen.mean.copy(), np.zeros(len(sources), bool)
        for k in np.flatnonzero(seen.sound & seen.apart).tolist():
            costs = Cost.of_matrix(sources[k][0])
            common[k], apart[k] = costs.common, costs.common < costs.mean
        usual = [
            (a is None) == (b is None) or bool(is_usual(sides[2 * k + (a is None)].sum()))
            for k, (_, a, b) in enumerate(sources)
        ]
        return cls(shape, cost, sides, mass, seen, common, apart, np.array(usual))


def _pack_matrices(
    group: Sequence[Asked], flat: _Flat, geometry: dict[str, Any], tol: float
) -> tuple[batch_solver.Pack, Floats]:
    """Costs and masses as `Problem` would have them, and the scales it would have."""
    weights = weights_of(geometry["unbalanced"])
    auto = _auto_weights(flat) if weights.need_auto else np.full(len(group), np.nan)
    twice = 2.0 * np.column_stack([np.broadcast_to(weight, len(group)) for weight in weights.given(auto)])
    scale = np.maximum((twice * flat.seen.largest).max(1), -np.minimum(flat.seen.lowest, 0.0))
    packed = batch_solver.Pack.of(
        np.column_stack([flat.shape, np.zeros_like(flat.shape)]),
        _limits_of(group),
        np.column_stack([twice, np.full(len(group), float(geometry["reg"])), tol * scale]),
        flat.cost,
        np.zeros(0),
        flat.mass,
        -np.repeat(twice.ravel(), flat.shape.ravel()) * flat.mass,
    )
    return packed, scale


def _auto_weights(flat: _Flat) -> Floats:
    """What "auto" means, for every problem."""
    pairs = zip(flat.seen.mean.tolist(), flat.sides[::2], flat.sides[1::2], strict=True)
    return np.array([auto_weight(mean, a, b, float(a @ a + b @ b)) for mean, a, b in pairs])


@lru_cache(maxsize=1024)
def _uniform(size: int) -> Floats:
    """The masses of points that nothing is known of; not to be written to."""
    return _checks.masses("a", None, size)


def _alone(task: Task, first: int, item: Any, ready: Asked) -> Result | ProblemError:
    """One problem by the ordinary way, with random numbers of its own."""
    options = ready.options._replace(rng=np.random.default_rng(task.options.get("rng")))
    try:
        return solve_checked(_problem(item, task.geometry)[0], options, ready.give)
    except Exception as error:
        return ProblemError.of(first + ready.place, error)
