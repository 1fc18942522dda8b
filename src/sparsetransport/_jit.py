"""The one place that says how kernels are compiled.

Kernels release the GIL, so that threads over problems are plain Python threads, and are kept on disk.
``reassoc`` and ``contract`` let sums and products vectorise; the flags that would drop ``inf`` and NaN stay
off, because ``+inf`` marks a forbidden pair.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numba.extending
from numba.core import event, types
from numba.np.arrayobj import make_array

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")
_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract"},
}


class _Notice(event.Listener):
    """One line in the log when the first kernel of ours compiles: nobody should wonder for a minute what goes on."""

    told = False

    def on_start(self, started: Any) -> None:
        """Say so, once a process; loading from disk is no such event."""
        module = started.data["dispatcher"].py_func.__module__ or ""  # what exec makes has none
        if not self.told and module.startswith("sparsetransport."):
            self.told = True
            logging.getLogger("sparsetransport").warning(
                "sparsetransport compiles, which takes up to a minute; the machine code is kept for the next time"
            )

    def on_end(self, _: Any) -> None:
        """Nothing to say."""


event.register("numba:compile", _Notice())  # type: ignore[no-untyped-call]


def kernel(function: _F) -> _F:
    """Compile a function that Python calls, on first use.

    It returns nothing, numbers or one array; what else comes out it writes into arrays that Python made. A signal that
    arrived meanwhile is handled while Numba makes Python objects of arrays and named tuples, and Numba looks for the
    exception only after a single array: with several, Ctrl-C would end in a SystemError, or crash.
    """
    compiled: _F = numba.njit(**_OPTIONS)(function)
    return compiled


def part(function: _F) -> _F:
    """Compile a function that kernels call; for Python it stays what it is.

    Most functions are parts: what lets Python call one, code that takes apart and counts its arguments, can take
    longer to compile than the function.
    """
    registered: _F = numba.extending.register_jitable(no_cfunc_wrapper=True, **_OPTIONS)(function)
    return registered


def small_part(function: _F) -> _F:
    """The same for a function of a few operations: it becomes part of its callers."""
    registered: _F = numba.extending.register_jitable(no_cfunc_wrapper=True, forceinline=True, **_OPTIONS)(function)
    return registered


def borrowed(value: _T) -> _T:
    """The same array, or nested tuples of arrays, without ownership: for a kernel to take of its own arguments.

    Every function that takes a tuple of arrays and calls another counts references to each of them, atomically, which
    takes longer than a small step does. The caller of a kernel holds its arguments while it runs, so there is nothing
    to count. What is borrowed must not outlive the call.
    """
    return value


@numba.extending.intrinsic
def _borrowed(_: Any, kind: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _disowned(context, builder, signature.args[0], arguments[0])

    return kind(kind), generate


@numba.extending.overload(borrowed)
def _borrow(value: Any) -> Any:
    def compiled(value: Any) -> Any:
        return _borrowed(value)  # type: ignore[call-arg]

    return compiled


def _disowned(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The value of this type with the owners of its arrays blanked out."""
    if isinstance(kind, types.BaseTuple):
        fields: Any = enumerate(kind)  # type: ignore[arg-type]
        parts = [_disowned(context, builder, each, builder.extract_value(value, k)) for k, each in fields]
        return context.make_tuple(builder, kind, parts)
    if not isinstance(kind, types.Array):
        return value
    array = make_array(kind)(context, builder, value)  # type: ignore[no-untyped-call]
    array.meminfo = array.meminfo.type(None)
    array.parent = array.parent.type(None)
    return array._getvalue()
