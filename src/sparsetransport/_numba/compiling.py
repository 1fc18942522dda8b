"""The one place that says how kernels are compiled.

Kernels release the GIL, so that threads over problems are plain Python threads, and are kept on disk.
``reassoc`` and ``contract`` let sums and products vectorise; the flags that would drop ``inf`` and NaN stay
off, because ``+inf`` marks a forbidden pair.
"""

import logging
import math
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numba.extending
from numba.core import caching, event

_PAUSE = 1.0  # seconds between kernels of one call, at most
_F = TypeVar("_F", bound=Callable[..., Any])
_ROOT = Path(__file__).parents[1]
_FILES = sorted((path.stat().st_mtime_ns, path.stat().st_size) for path in _ROOT.rglob("*.py"))
_STAMP = zlib.crc32(repr(_FILES).encode())
_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract"},
}


class _Notice(event.Listener):
    """A line in the log when kernels of ours are compiled: nobody should wonder for a minute what goes on."""

    ended = -math.inf

    def on_start(self, started: Any) -> None:
        """Say so, once for those that follow each other; loading from disk is no such event."""
        if _is_ours(started):
            if time.monotonic() > self.ended + _PAUSE:
                logging.getLogger("sparsetransport").warning(
                    "compiling what this call needs, which can take half a minute; it is kept on disk for next time"
                )
            self.ended = math.inf  # while this lasts

    def on_end(self, ended: Any) -> None:
        """What begins soon after belongs to it."""
        if _is_ours(ended):
            self.ended = time.monotonic()


def _is_ours(happened: Any) -> bool:
    module = happened.data["dispatcher"].py_func.__module__ or ""  # what exec makes has none
    return module.startswith("sparsetransport.")


event.register("numba:compile", _Notice())  # type: ignore[no-untyped-call]
_stamp_of_file: Any = caching._SourceFileBackedLocatorMixin.get_source_stamp


def _stamp(locator: Any) -> Any:
    """What compiled code on disk is valid for: all files of the package, since it is made of parts of other files."""
    return _STAMP if Path(locator._py_file).is_relative_to(_ROOT) else _stamp_of_file(locator)


caching._SourceFileBackedLocatorMixin.get_source_stamp = _stamp  # type: ignore[method-assign]


def compiled(function: _F) -> _F:
    """Compile a function that Python calls, on first use.

    It returns nothing, numbers or one array; what else comes out it writes into arrays that Python made. A signal that
    arrived meanwhile is handled while Numba makes Python objects of arrays and named tuples, and Numba looks for the
    exception only after a single array: with several, Ctrl-C would end in a SystemError, or crash.
    """
    return cast(_F, numba.njit(**_OPTIONS)(function))


def part(function: _F) -> _F:
    """Compile a function that kernels call; for Python it stays what it is.

    Most functions are parts: what lets Python call one, code that takes apart and counts its arguments, can take
    longer to compile than the function.
    """
    registered: _F = numba.extending.register_jitable(no_cfunc_wrapper=True, **_OPTIONS)(function)
    return registered


def inlined_part(function: _F) -> _F:
    """A part with one caller is compiled as a piece of it, and not on its own as well; Python does not call it."""
    compiled: _F = numba.njit(inline="always", **_OPTIONS)(function)
    return compiled


def small_part(function: _F) -> _F:
    """The same for a function of a few operations: it becomes part of its callers."""
    registered: _F = numba.extending.register_jitable(no_cfunc_wrapper=True, forceinline=True, **_OPTIONS)(function)
    return registered
