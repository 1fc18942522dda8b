"""Many problems at once: in threads on this machine, or on a cluster through joblib."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from . import _checks
from .api import _SMALL_RESIDUAL, _Options, _proof, _Prover, _restricted, _solve
from .inner.solvers import ActiveSet
from .matroids import Counting, Limits, Matroid, no_limits
from .outer import batch
from .outer.compiled import FULL
from .outer.omp import OMP
from .problem import Problem
from .result import Parts, Path, Result, Status

CHUNK = 256  # problems that go to a worker together,
CHUNK_PAIRS = 500_000  # or fewer, where they have more pairs than this together
AHEAD = 16  # chunks a worker that are read ahead of the results

# Threads take turns at what Python does before and after the kernel. They could not do it at the same time anyway, and
# without turns they fight over the GIL at every call of NumPy.
_TURN = threading.Lock()


def _new_turn() -> None:
    """A forked child has none of the threads that may hold the lock."""
    global _TURN
    _TURN = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_turn)

Budget = int | Matroid | None | Callable[[int, int], int | Matroid | None]


class ProblemError(ValueError):
    """A problem of a batch could not be solved; ``index`` says which one, ``reason`` why."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(index, reason)
        self.index, self.reason = index, reason

    def __str__(self) -> str:
        return f"problems[{self.index}]: {self.reason}"


def solve_batch(problems: Iterable[Any], **options: Any) -> list[Any]:
    """Solve many problems, of one size or of many: a list of the same results, in order, as `solve` gives one by one.

    Parameters
    ----------
    problems : iterable
        Each a `Problem`, a cost matrix, or a tuple ``(C, a)`` or ``(C, a, b)``. Stacked arrays are such iterables:
        ``C`` of shape (N, m, n) alone, or ``zip(C, a, b)``.
    budget : int, Matroid, None or a function, optional
        One for all problems; or a function of the shape, such as ``min`` for as many entries as the shorter side has
        points.
    kernels, unbalanced, reg
        As in `solve`, for those that are no `Problem` yet.
    n_jobs : int, optional
        Threads; -1 for all cores. None: one, or what ``joblib.parallel_config`` says, which may be a cluster.
    progress : bool
        Show a bar, if there is a terminal to show it on.
    on_error : {"raise", "record"}
        What to do with a problem that cannot be solved: raise a `ProblemError` with its index, or put that in its
        place and go on with the others.
    **options
        ``method``, ``gap_tol`` and everything else as in `solve`, but for ``start`` and ``callback``; ``rng`` must be
        a seed, and every problem is solved with that seed.

    Returns
    -------
    list of Result

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> C = np.random.default_rng(0).random((1000, 12, 9))
    >>> results = st.solve_batch(C, budget=9, unbalanced=10.0)
    >>> len(results), results[0].rows.size
    (1000, 9)
    """
    return list(solve_stream(problems, **options))


def solve_stream(
    problems: Iterable[Any],
    *,
    budget: Budget = None,
    kernels: Any = None,
    unbalanced: Any = "auto",
    reg: float = 0.0,
    n_jobs: int | None = None,
    progress: bool = False,
    on_error: str = "raise",
    **options: Any,
) -> Iterator[Any]:
    """Solve problems as they come, and give the results in order as they are ready.

    For more problems than fit in memory: ``problems`` is read only as far ahead as keeps the workers busy. The
    arguments are those of `solve_batch`.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> rng = np.random.default_rng(0)
    >>> costs = (rng.random((m, 8)) for m in range(2, 500))
    >>> results = st.solve_stream(costs, budget=min)
    >>> next(results).rows.size
    2
    """
    _checks.choice("on_error", on_error, {"raise": None, "record": None})
    for name in {"start", "callback"} & options.keys():
        raise TypeError(f"{name} belongs to one problem, not to a batch")
    if isinstance(options.get("rng"), np.random.Generator):
        raise TypeError("rng must be a seed: workers cannot share a Generator")
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a number of workers, -1 for all cores, or None, got {n_jobs!r}")
    _Options.checked(budget=None if callable(budget) else budget, **options)
    task = _Task(budget, {"kernels": kernels, "unbalanced": unbalanced, "reg": reg}, options)
    return _stream(problems, task, n_jobs, progress, on_error == "raise")


def _stream(problems: Iterable[Any], task: "_Task", n_jobs: int | None, progress: bool, strict: bool) -> Iterator[Any]:
    """Rounds of chunks: the next one is read when the results of the last have been taken."""
    total = len(problems) if isinstance(problems, Sized) else None
    chunks = _chunks(problems)
    with _workers(n_jobs) as (count, run), _bar(total) if progress else nullcontext(lambda: None) as step:
        while group := list(islice(chunks, 1 if count == 1 else AHEAD * count)):
            for part in run(partial(_solve_chunk, task), group):
                for result in part:
                    if strict and isinstance(result, ProblemError):
                        raise result
                    step()
                    yield result


def _chunks(problems: Iterable[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Problems in lists of similar work, each with the index of its first."""
    first, chunk, pairs = 0, [], 0
    for item in problems:
        chunk.append(item)
        pairs += _pairs(item)
        if len(chunk) == CHUNK or pairs >= CHUNK_PAIRS:
            yield first, chunk
            first, chunk, pairs = first + len(chunk), [], 0
    if chunk:
        yield first, chunk


def _pairs(item: Any) -> int:
    """About how many pairs a problem has; whatever is wrong with it comes out later."""
    cost = item.cost if isinstance(item, Problem) else item[0] if isinstance(item, tuple) and item else item
    try:
        return int(np.prod(np.shape(cost) if not hasattr(cost, "shape") else tuple(cost.shape)))
    except ValueError:  # ragged
        return 1


@contextmanager
def _workers(n_jobs: int | None) -> Iterator[tuple[int, Callable[[Any, list[Any]], Iterable[Any]]]]:
    """How many workers there are, and what maps a function over chunks with them."""
    try:
        import joblib
    except ImportError:
        if n_jobs not in (None, 1):
            raise ImportError("n_jobs needs joblib: pip install 'sparsetransport[batch]'") from None
        yield 1, map
        return
    with joblib.Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        yield (
            joblib.effective_n_jobs(n_jobs),
            lambda function, chunks: parallel(joblib.delayed(function)(chunk) for chunk in chunks),
        )


@contextmanager
def _bar(total: int | None) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal, and what moves it on by one problem."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)


class _Task(NamedTuple):
    """What is the same for all problems of a batch."""

    budget: Budget
    geometry: dict[str, Any]
    options: dict[str, Any]


def _solve_chunk(task: _Task, chunk: tuple[int, list[Any]]) -> list[Result | ProblemError]:
    """Results for some problems, the first of which has the given index."""
    first, items = chunk
    budgets = _Budgets(task)
    results: list[Any] = [None] * len(items)
    together: list[_Ready] = []
    alone: list[_Ready] = []
    with _TURN:
        for k, item in enumerate(items):
            try:
                problem, give = _problem(item, task.geometry)
                options = budgets(problem.shape)
                limits = _limits(options, problem)
            except (TypeError, ValueError) as error:
                results[k] = ProblemError(first + k, str(error))
                continue
            ready = _Ready(k, problem, limits, options, give)
            (together if limits is not None and batch.fits(problem, limits) else alone).append(ready)
    if together:
        for ready, result in zip(together, _together(together), strict=True):
            if result is None:
                alone.append(ready)
            results[ready.place] = result
    for ready in alone:
        results[ready.place] = _alone(task, first, ready)
    return results


class _Ready(NamedTuple):
    """A checked problem, its place in the chunk, and how to solve it."""

    place: int
    problem: Problem
    limits: Limits | None  # None: not for the compiled batch
    options: _Options
    give: Any


class _Budgets:
    """The options for a shape of plan; the same object for the same budget, so that limits are made once."""

    def __init__(self, task: _Task) -> None:
        self.task = task
        self.known: dict[Any, tuple[Any, _Options]] = {}  # holds the budget too, so that no id is used again

    def __call__(self, shape: tuple[int, int]) -> _Options:
        budget: Any = self.task.budget(*shape) if callable(self.task.budget) else self.task.budget
        if isinstance(budget, np.integer):
            budget = int(budget)
        key = budget if isinstance(budget, int | None) else id(budget)
        if key not in self.known:
            self.known[key] = budget, _Options.checked(budget=budget, **self.task.options)
        return self.known[key][1]


def _problem(item: Any, geometry: dict[str, Any]) -> tuple[Problem, Any]:
    """A problem as the user gave it, and what turns arrays into the user's kind."""
    if isinstance(item, Problem):
        return item, _checks.as_numpy
    if not isinstance(item, tuple):
        item = (item,)
    if not 1 <= len(item) <= 3:
        raise TypeError(f"a problem must be a Problem, a cost matrix or a tuple (C, a, b), got a tuple of {len(item)}")
    return Problem.from_matrices(*item, **geometry), _checks.same_kind(*item)


def _limits(options: _Options, problem: Problem) -> Limits | None:
    """The limits of the budget, if the options are those that the compiled batch knows."""
    usual = isinstance(options.rule, OMP) and options.reclaim and options.solver is ActiveSet
    if not usual or not options.counting or options.gap_tol is not None:
        return None
    if isinstance(options.matroid, Counting):
        return options.matroid.limits(problem.shape)
    return no_limits(problem.shape)


def _alone(task: _Task, first: int, ready: _Ready) -> Result | ProblemError:
    """One problem by the ordinary way, with random numbers of its own."""
    options = ready.options._replace(rng=np.random.default_rng(task.options.get("rng")))
    try:
        return _solve(ready.problem, options, ready.give)
    except (TypeError, ValueError) as error:
        return ProblemError(first + ready.place, str(error))


def _together(chunk: Sequence[_Ready]) -> list[Result | None]:
    """Many problems in one call of machine code; None for one that must be solved alone."""
    options = chunk[0].options
    limits = [ready.limits for ready in chunk if ready.limits is not None]
    with _TURN:
        packed = batch.pack([ready.problem for ready in chunk], limits, options.tol)
    plans = batch.solve(packed, options.polish)
    with _TURN:
        ends = np.zeros((len(chunk) + 1, 4), np.int64)
        np.cumsum(plans.sizes, axis=0, out=ends[1:, :3])
        np.cumsum([sum(ready.problem.shape) for ready in chunk], out=ends[1:, 3])
        return [
            _one(ready, plans, k, *(slice(*span) for span in zip(ends[k].tolist(), ends[k + 1].tolist(), strict=True)))
            for k, ready in enumerate(chunk)
        ]


def _one(
    ready: _Ready, plans: batch.Plans, k: int, entries: slice, steps: slice, departures: slice, points: slice
) -> Result | None:
    """One of the plans as a result, of the given slices; None if it was left unfinished."""
    problem, give, tol = ready.problem, ready.give, ready.options.tol
    code, scale = int(plans.code[k]), problem.scale
    linear, value, residual = plans.number[k].tolist()
    residual = residual / scale if scale else 0.0
    if code == batch.UNFINISHED or residual > max(_SMALL_RESIDUAL, tol) or ready.limits is None:
        return None
    m = problem.shape[0]
    label, marginal, potential = plans.label[entries], plans.marginal[points], -plans.field[points]
    parts = Parts(
        label[:, 0],
        label[:, 1],
        plans.mass[entries],
        problem.shape,
        value,
        linear,
        (marginal[:m], marginal[m:]),
        (potential[:m], potential[m:]),
        problem.points,
    )
    prover = _Prover(problem, ready.limits, tol)
    path = Path(
        plans.added[steps],
        problem.constant - plans.gain[steps],
        plans.entries[steps],
        plans.gone[departures],
        plans.gone_until[steps],
        (),
        partial(_restricted, prover, give),
    )
    status = Status.OPTIMAL if code == batch.CERTAIN else Status.BUDGET_USED if code == FULL else Status.LOCAL
    return Result(
        status if problem.cost.has_pairs else Status.ALL_FORBIDDEN,
        True,
        residual,
        path,
        {"steps": len(path), "unbalanced": problem.unbalanced, "reg": problem.reg},
        parts,
        give,
        partial(_proof, prover, parts, give),
    )
