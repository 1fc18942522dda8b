"""Helpers of all commands: one-sentence errors, files written completely or not at all, progress, interruption."""

import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from .. import _checks
from .._files import is_full, permissions, real, whole_file
from .cells import printable

_T = TypeVar("_T")
_BACKGROUND = "sparsetransport-work"

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def errors() -> Console:
    """The console for errors, warnings and progress: stderr."""
    return Console(stderr=True)


def say(message: str, style: str | None = None) -> None:
    """Print one line on stderr, without markup or control characters."""
    errors().print(printable(message, but="\n"), style=style, soft_wrap=True, highlight=False, markup=False)


@contextmanager
def plain_errors(debug: bool = False) -> Iterator[None]:
    """Ends the command with one sentence and an exit code on any error; prints warnings as one sentence.

    The exit code is 2 for bad input, 1 for a missing package or an internal error, 130 for Ctrl-C.
    """
    told = set()

    def tell(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in told:
            say(f"Warning: {message}", "yellow")
        told.add(str(message))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", _checks.SparseTransportWarning)
            warnings.showwarning = tell
            yield
    except (typer.Exit, BrokenPipeError):  # the second is no error: see quiet_pipe
        raise
    except KeyboardInterrupt:
        say("Interrupted: no unfinished file is left behind.", "red")
        leave(130)
    except Exception as error:
        if isinstance(error, OSError) and is_full(error) and error.filename is None:
            raise  # of standard output, as files have names: see quiet_pipe
        if debug:
            traceback.print_exc()
        message, code = explain(error)
        say(f"Error: {message}", "red")
        raise typer.Exit(code) from None


def explain(error: Exception) -> tuple[str, int]:
    """An error as a sentence, and its exit code."""
    if isinstance(error, OSError) and error.filename is not None:
        what = "write" if is_full(error) else "open"
        return f"cannot {what} {error.filename}: {error.strerror}", 2
    if isinstance(error, OSError | TypeError | ValueError):
        return str(error), 2
    if isinstance(error, ImportError):
        return str(error), 1
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}".removesuffix(": "), 1
    return f"{type(error).__name__}: {error} (--debug shows where)", 1


def leave(code: int) -> None:
    """Exit; immediately if a compiled function still runs in the background, which cannot be stopped."""
    if any(thread.name == _BACKGROUND for thread in threading.enumerate()):
        with suppress(BrokenPipeError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    raise typer.Exit(code)


@contextmanager
def quiet_pipe() -> Iterator[None]:
    """End with exit code 1 if standard output cannot be written; silently if its pipe is closed, as by ``| head``."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, since at exit Python would print an error
    except OSError as error:
        if not (isinstance(error, BrokenPipeError) or is_full(error)):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for output that is still buffered
        if is_full(error):
            say(f"Error: cannot write to standard output: {error.strerror}", "red")
        sys.exit(1)


def in_background(work: Callable[[], _T]) -> _T:
    """The result of ``work``, run in a thread so that Ctrl-C works at once, even inside a compiled function."""
    future: Future[_T] = Future()

    def target() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # raised in the waiting thread
            future.set_exception(error)

    thread = threading.Thread(target=target, name=_BACKGROUND, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)  # without a timeout Windows would not notice Ctrl-C
    return future.result()


@contextmanager
def output_file(path: Path) -> Iterator[Path]:
    """As `whole_file`, but a file that cannot be written raises an error before the work.

    Missing folders are created, and removed again if the work fails.
    """
    if path.is_dir():
        raise IsADirectoryError(None, "is a folder", str(real(path)))
    with _folder(real(path).parent), whole_file(path) as unfinished:
        try:
            unfinished.touch(permissions(path) or 0o666)  # so that nobody else reads what only the user may read
        except OSError as error:
            error.filename = str(real(path))  # the requested file, not the temporary one
            raise
        yield unfinished


@contextmanager
def writable_folder(folder: Path) -> Iterator[None]:
    """Check, before the work, that files can be written to a folder."""
    folder = folder.resolve()
    with _folder(folder):
        probe = folder / f".{os.getpid()}"
        probe.touch()
        probe.unlink()
        yield


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    """Make a folder; if the work fails, remove those that were made for it."""
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for place in new:
            with suppress(OSError):
                place.rmdir()
        raise


def duration(seconds: float) -> str:
    """A duration as text."""
    return f"{seconds:.1f} s" if seconds >= 1.0 else f"{1000.0 * seconds:.0f} ms"
