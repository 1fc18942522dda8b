"""The one place that says how functions are compiled.

Compiled functions release the GIL, so that threads over problems are plain Python threads, and are kept on disk.
``reassoc`` and ``contract`` let sums and products vectorise; the flags that would drop ``inf`` and NaN stay
off, because ``+inf`` marks a forbidden pair.
"""

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numba

from .disk_cache import keep_on_disk
from .parts import register_part

_F = TypeVar("_F", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract"},
}


def compiled(function: _F) -> _F:
    """Compile a function that Python calls, on first use.

    It returns nothing, numbers or one array; what else comes out it writes into arrays that Python made. A signal that
    arrived meanwhile is handled while Numba makes Python objects of arrays and named tuples, and Numba looks for the
    exception only after a single array: with several, Ctrl-C would end in a SystemError, or crash.
    """
    dispatcher = numba.njit(**_OPTIONS)(function)
    if hasattr(dispatcher, "compile"):  # not so with NUMBA_DISABLE_JIT
        compile_or_load = dispatcher.compile

        @functools.wraps(compile_or_load)
        def compile_whole(*arguments: Any) -> Any:
            keep_on_disk(dispatcher)  # here, since it reads and writes files, which an import should not
            with _interrupts_deferred():
                return compile_or_load(*arguments)

        dispatcher.compile = compile_whole
    return cast(_F, dispatcher)


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Deliver Ctrl-C at the end of the block: Numba swallows it, or cannot compile any more after it."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    arrived: list[Any] = []
    signal.signal(signal.SIGINT, lambda *arguments: arrived.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if arrived:
            handler(*arrived[0])


def part(function: _F, **options: Any) -> _F:
    """Compile a function that compiled functions call; for Python it stays what it is.

    Most functions are parts: what lets Python call one, code that takes apart and counts its arguments, can take
    longer to compile than the function. On disk they are pieces of the functions that call them.
    """
    register_part(function, {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options, **_OPTIONS})
    return function


def small_part(function: _F) -> _F:
    """The same for a function of a few operations: it becomes part of its callers."""
    return part(function, forceinline=True)


inlined_part = part  # to inline before types are known takes longer to compile, and what comes out is no faster
