"""How long Numba compiles, by its event API: documented, but for developers of Numba."""
# mypy: disable-error-code="no-untyped-call, assignment"

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

try:
    from numba.core.event import install_timer
except ImportError:
    install_timer = None


def compile_timer(record: Callable[[float], None]) -> AbstractContextManager[object]:
    """Within it, ``record`` gets the seconds of every compilation; loading from disk is none."""
    return nullcontext() if install_timer is None else install_timer("numba:compile", record)
