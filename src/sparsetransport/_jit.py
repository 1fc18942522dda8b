"""The one place that says how kernels are compiled.

Kernels release the GIL, so that threads over problems are plain Python threads, and are kept on disk.
``reassoc`` and ``contract`` let sums and products vectorise; the flags that would drop ``inf`` and NaN stay
off, because ``+inf`` marks a forbidden pair.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numba.extending

_F = TypeVar("_F", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract"},
}


def kernel(function: _F) -> _F:
    """Compile ``function`` on first use and keep the machine code on disk."""
    compiled: _F = numba.njit(**_OPTIONS)(function)
    return compiled


def small_kernel(function: _F) -> _F:
    """The same for a function of a few operations: it becomes part of its callers."""
    compiled: _F = numba.njit(forceinline=True, **_OPTIONS)(function)
    return compiled


def shared(function: _F) -> _F:
    """Plain Python when Python calls it, part of the caller when a kernel does."""
    registered: _F = numba.extending.register_jitable(function)
    return registered
