"""Many problems at once: in threads on this machine, or on a cluster through joblib."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from typing import Any, Literal, Unpack, overload

import numpy as np

from .. import _checks
from ..options import CommonOptions
from ..problem import Problem, weights_of
from ..result import Result
from .worker import Budgets, ProblemError, Stop, Task, batch_options, solve_chunk

__all__ = ["ProblemError", "solve_batch", "solve_stream", "workers"]

CHUNK = 128  # problems that go to a worker together,
CHUNK_PAIRS = 500_000  # or fewer, where they have more pairs than this together
AHEAD = 4  # chunks a worker that are read ahead of the results
THREADS = 4  # a core at the most, however many are asked for
Run = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Maps a function over chunks: results in order, each as soon as it is ready, with a few chunks read ahead."""


class BatchOptions(CommonOptions, total=False):
    """What `solve_batch` and `solve_stream` take, for type checkers."""

    budget: Budgets
    kernels: Any
    unbalanced: Any
    reg: float
    n_jobs: int | None
    progress: bool


@overload
def solve_batch(
    problems: Iterable[Any], *, on_error: Literal["raise"] = "raise", **options: Unpack[BatchOptions]
) -> list[Result]: ...
@overload
def solve_batch(
    problems: Iterable[Any], *, on_error: str, **options: Unpack[BatchOptions]
) -> list[Result | ProblemError]: ...
def solve_batch(problems: Iterable[Any], *, on_error: str = "raise", **options: Unpack[BatchOptions]) -> list[Any]:
    """Solve many problems, of one size or of many: a list of results, in order.

    They are what ``solve(..., effort="quick")`` gives one by one. With delta kernels on both sides,
    ``effort="default"`` finds better plans, in milliseconds a problem in place of tenths of one.

    Parameters
    ----------
    problems : iterable
        Each a `Problem`, a cost matrix, or a tuple or list ``(C, a)`` or ``(C, a, b)``. Stacked arrays are such
        iterables: ``C`` of shape (N, m, n) alone, or ``zip(C, a, b)``.
    budget : int, Matroid, None or a function, optional
        One for all problems; or a function of the shape, such as ``min`` for as many entries as the shorter side has
        points. It is called once or more for a shape; an error of it is one of the problem.
    kernels, unbalanced, reg
        As in `solve`, for costs and masses; a `Problem` has its own, and is refused where these are given too.
    n_jobs : int, optional
        Threads, up to four a core; -1 for all cores. None: one, or what ``joblib.parallel_config`` says, which may be
        a cluster.
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
    return list(solve_stream(problems, on_error=on_error, **options))


@overload
def solve_stream(
    problems: Iterable[Any], *, on_error: Literal["raise"] = "raise", **options: Unpack[BatchOptions]
) -> Iterator[Result]: ...
@overload
def solve_stream(
    problems: Iterable[Any], *, on_error: str, **options: Unpack[BatchOptions]
) -> Iterator[Result | ProblemError]: ...
def solve_stream(
    problems: Iterable[Any],
    *,
    budget: Budgets = None,
    kernels: Any = None,
    unbalanced: Any = "auto",
    reg: float = 0.0,
    n_jobs: int | None = None,
    progress: bool = False,
    on_error: str = "raise",
    **options: Unpack[CommonOptions],
) -> Iterator[Any]:
    """Solve problems as they come, and give the results in order as they are ready.

    For more problems than fit in memory: ``problems`` is read a few chunks, of 128 problems or fewer, a worker ahead.
    If it fails, the results of what came before are given first. The arguments are those of `solve_batch`.

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
    for name in sorted({"start", "callback"} & options.keys()):
        raise TypeError(f"{name} belongs to one problem, not to a batch")
    for name in sorted({"a", "b"} & options.keys()):
        raise TypeError(f"{name} goes with its costs: a problem is a tuple (C, a, b), and zip(C, a, b) makes them")
    _checks.flag("progress", progress)
    if isinstance(options.get("rng"), np.random.Generator):
        raise TypeError("rng must be a seed: workers cannot share a Generator")
    _checks.jobs(n_jobs)
    weights_of(unbalanced)
    _checks.number("reg", reg, positive=False)
    batch_options(None if callable(budget) else budget, {**options})
    task = Task(budget, {"kernels": kernels, "unbalanced": unbalanced, "reg": reg}, {**options}, Stop())
    return _stream(problems, task, n_jobs, progress, on_error == "raise")


def _stream(problems: Iterable[Any], task: Task, n_jobs: int | None, progress: bool, strict: bool) -> Iterator[Any]:
    """Chunks to the workers, and their results one by one."""
    total = len(problems) if isinstance(problems, Sized) else None
    failed: list[Exception] = []
    with workers(n_jobs) as run, _bar(total) if progress else nullcontext(lambda: None) as step:
        try:
            for part in run(partial(solve_chunk, task), _chunks(problems, failed)):
                for result in part:
                    if strict and isinstance(result, ProblemError):
                        raise result
                    step()
                    yield result
        finally:
            task.stop.asked = True
    if failed:
        raise failed[0]


def _chunks(problems: Iterable[Any], failed: list[Exception]) -> Iterator[tuple[int, list[Any]]]:
    """Problems in lists of similar work, each with the index of its first; an error of the source ends them."""
    first, chunk, pairs = 0, [], 0
    source = iter(problems)
    while True:
        try:
            item = next(source)
        except StopIteration:
            break
        except Exception as error:  # what came before it is solved before it is raised
            failed.append(error)
            break
        if isinstance(item, list) and item and getattr(item[0], "ndim", 1) == 2:
            item = tuple(item)  # costs and masses, not the rows of a matrix
        chunk.append(item)
        pairs += _pairs(item)
        if len(chunk) == CHUNK or pairs >= CHUNK_PAIRS:
            yield first, chunk
            first, chunk, pairs = first + len(chunk), [], 0
    if chunk:
        yield first, chunk


def _pairs(item: Any) -> int:
    """About how many pairs a problem has."""
    if type(item) is np.ndarray:
        return item.size
    cost = item.cost if isinstance(item, Problem) else item[0] if isinstance(item, tuple) and item else item
    try:
        return int(np.prod(np.shape(cost) if not hasattr(cost, "shape") else tuple(cost.shape)))
    except Exception:  # whatever is wrong with it comes out, with its index, when it is to be solved
        return 1


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Run]:
    """What maps a function over chunks, in threads or on the cluster that joblib was told of."""
    try:
        import joblib
        from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend
    except ImportError:  # which only a cluster needs
        backend, count = None, 1 if n_jobs is None else _checks.threads(n_jobs)
    else:
        backend, usual = get_active_backend(prefer="threads")
        count = backend.effective_n_jobs(usual if n_jobs is None else n_jobs)
    if backend is None or isinstance(backend, SequentialBackend | ThreadingBackend):
        count = min(count, THREADS * _checks.cores())
        if count == 1:
            yield map
            return
        pool = ThreadPoolExecutor(count, "sparsetransport")
        try:
            yield partial(_in_threads, pool, AHEAD * count)
        finally:  # without waiting: Ctrl-C should bring the prompt back at once
            pool.shutdown(wait=False, cancel_futures=True)
    else:
        how = "generator" if backend.supports_return_generator else "list"
        settings: dict[str, Any] = {"return_as": how, "batch_size": 1, "pre_dispatch": "all"}
        with joblib.Parallel(n_jobs=n_jobs, prefer="threads", **settings) as parallel:
            yield partial(_in_rounds, parallel, joblib.delayed, AHEAD * count)


def _in_threads(
    pool: ThreadPoolExecutor, ahead: int, function: Callable[[Any], Any], chunks: Iterable[Any]
) -> Iterator[Any]:
    """Results by threads: for every chunk that is read, the first of those not given yet, if it is ready."""
    waiting: deque[Future[Any]] = deque()
    for chunk in chunks:
        waiting.append(pool.submit(function, chunk))
        if len(waiting) >= ahead or waiting[0].done():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _in_rounds(
    parallel: Any, delayed: Any, ahead: int, function: Callable[[Any], Any], chunks: Iterable[Any]
) -> Iterator[Any]:
    """Results by joblib, which would read all chunks as fast as workers are done, whether results are taken or not."""
    source = iter(chunks)
    while group := list(islice(source, ahead)):
        yield from parallel(delayed(function)(chunk) for chunk in group)


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
