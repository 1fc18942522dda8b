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
from ..given import LinkCostLike, SenseLike, senses_of, weights_of
from ..options import CommonOptions
from ..problem import Problem
from ..result import Result
from .worker import Budgets, ProblemError, Stop, Task, batch_options, solve_chunk

__all__ = ["ProblemError", "solve_batch", "solve_stream", "workers"]

CHUNK = 128  # problems that go to a worker together;
CHUNK_PAIRS = 500_000  # fewer problems if they have more pairs than this together
AHEAD = 4  # chunks for each worker that are read ahead of the results
THREADS = 4  # the most threads for each core, however many are asked for
Run = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Maps a function over chunks: results in order, each as soon as it is ready, with a few chunks read ahead."""


class BatchOptions(CommonOptions, total=False):
    """What `solve_batch` and `solve_stream` take, for type checkers."""

    budget: Budgets
    kernels: Any
    unbalanced: Any
    reg: float
    sense: SenseLike
    link_cost: LinkCostLike
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
    """Solve many problems, of equal or different sizes, and return the results in order.

    The results are those of ``solve(..., effort="quick")`` for each problem. With delta kernels on both sides,
    ``effort="default"`` finds better plans, in some milliseconds a problem instead of tenths of a millisecond.

    Parameters
    ----------
    problems : iterable
        Each a `Problem`, a cost matrix, or a tuple or list ``(C, a)`` or ``(C, a, b)``. Stacked arrays are such
        iterables: ``C`` of shape (N, m, n) alone, or ``zip(C, a, b)``.
    budget : int, Matroid, None or a function, optional
        One budget for all problems; or a function of the shape, such as ``min`` for as many entries as the shorter side
        has points. The function may be called more than once for a shape; an error in it counts as an error of the
        problem.
    kernels, unbalanced, reg, sense, link_cost
        As in `solve`, for costs and masses. A `Problem` has its own and is refused if these are given too.
    n_jobs : int, optional
        The number of threads, up to four for each core; -1 for all cores. None for one thread, or for the backend of
        ``joblib.parallel_config``, which may be a cluster.
    progress : bool
        Show a progress bar if the output is a terminal.
    on_error : {"raise", "record"}
        What to do with a problem that cannot be solved: raise a `ProblemError` with its index, or put the error in the
        place of its result and continue.
    **options
        ``method``, ``gap_tol`` and all other options of `solve` except ``start`` and ``callback``; ``rng`` must be a
        seed, and every problem is solved with that seed.

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
    sense: SenseLike = "=",
    link_cost: LinkCostLike = None,
    n_jobs: int | None = None,
    progress: bool = False,
    on_error: str = "raise",
    **options: Unpack[CommonOptions],
) -> Iterator[Any]:
    """Solve a stream of problems; yields the results in order, each as soon as it is ready.

    For more problems than fit in memory: each worker reads ``problems`` a few chunks ahead, of at most 128 problems
    each. If ``problems`` raises an error, the results of the problems before it are yielded first. The arguments are
    those of `solve_batch`.

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
        raise TypeError(f"{name} must not be given for a batch: it belongs to one problem")
    for name in sorted({"a", "b"} & options.keys()):
        raise TypeError(
            f"{name} must be given with the costs: a problem is a tuple (C, a, b), and zip(C, a, b) makes them"
        )
    _checks.flag("progress", progress)
    if isinstance(options.get("rng"), np.random.Generator):
        raise TypeError("rng must be a seed, got a Generator, which workers cannot share")
    _checks.jobs(n_jobs)
    weights_of(unbalanced)
    senses_of(sense)
    _checks.number("reg", reg, positive=False)
    batch_options(None if callable(budget) else budget, {**options})
    geometry = {"kernels": kernels, "unbalanced": unbalanced, "reg": reg, "sense": sense, "link_cost": link_cost}
    task = Task(budget, geometry, {**options}, Stop())
    return _stream(problems, task, n_jobs, progress, on_error == "raise")


def _stream(problems: Iterable[Any], task: Task, n_jobs: int | None, progress: bool, strict: bool) -> Iterator[Any]:
    """Sends chunks to the workers and yields their results one by one."""
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
    """Lists of problems of similar work, each with the index of its first one; an error of the source ends them."""
    first, chunk, pairs = 0, [], 0
    source = iter(problems)
    while True:
        try:
            item = next(source)
        except StopIteration:
            break
        except Exception as error:  # it is raised after the problems before it are solved
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
    """An estimate of the number of pairs of a problem."""
    if type(item) is np.ndarray:
        return item.size
    cost = item.cost if isinstance(item, Problem) else item[0] if isinstance(item, tuple) and item else item
    try:
        return int(np.prod(np.shape(cost) if not hasattr(cost, "shape") else tuple(cost.shape)))
    except Exception:  # the error is raised, with the index, when the problem is solved
        return 1


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Run]:
    """A function that maps over chunks, in threads or with the backend that joblib is configured for."""
    try:
        import joblib
        from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend
    except ImportError:  # only a cluster needs it
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
    """Results from threads, in order, with at most ``ahead`` chunks in flight."""
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
    """Results from joblib in rounds, since joblib alone would read all chunks however slowly results are consumed."""
    source = iter(chunks)
    while group := list(islice(source, ahead)):
        yield from parallel(delayed(function)(chunk) for chunk in group)


@contextmanager
def _bar(total: int | None) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal; yields a function that advances it by one problem."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)
