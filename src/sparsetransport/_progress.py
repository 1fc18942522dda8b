"""What long calls tell while they go on: one line on a terminal, with the objective and the gap so far."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from . import _checks

_LINE: ContextVar[Any] = ContextVar("line", default=None)


@contextmanager
def shown(wanted: bool) -> Iterator[None]:
    """While in here, `tell` writes to stderr if that is a terminal; within another such call, to the line of that."""
    if not _checks.flag("progress", wanted) or _LINE.get() is not None:
        yield
        return
    from rich.console import Console

    known: dict[str, str] = {}
    with Console(stderr=True).status("solving") as status:

        def write(told: dict[str, str]) -> None:
            known.update(told)
            status.update(", ".join(known.values()))

        token = _LINE.set(write)
        try:
            yield
        finally:
            _LINE.reset(token)


def tell(**told: str) -> None:
    """Show these texts, each in place of what had its name before; nothing if nobody asked for progress."""
    write = _LINE.get()
    if write is not None:
        write(told)
