"""Files that are written completely or not at all."""

import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # errors of writing, which have no file name


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` to write to, which replaces it if no error occurs.

    An existing file keeps its permissions, and a symbolic link stays: its target is replaced. A pipe or a device gets
    the content at the end. Errors name ``path``. Threads and processes may write the same file: the last one stays.
    """
    path = Path(path)
    with naming(path):
        if path.exists() and not path.is_file():
            with tempfile.TemporaryDirectory() as folder:
                unfinished = Path(folder, f"unfinished{path.suffix}")
                yield unfinished
                with unfinished.open("rb") as file, path.open("wb") as pipe:
                    shutil.copyfileobj(file, pipe)
            return
        path = real(path)
        unfinished = path.with_name(f".{secrets.token_hex(8)}{path.suffix}")  # some writers look at the extension
        try:
            yield unfinished
            mode = permissions(path)
            if mode is not None:
                unfinished.chmod(mode)
            os.replace(unfinished, path)
        except OSError as error:
            if error.filename == str(unfinished):
                error.filename = str(path)
            raise
        finally:
            with suppress(OSError):
                unfinished.unlink()


def real(path: Path) -> Path:
    """The absolute path without symbolic links; an error of the system where these lead in a circle."""
    found = Path(os.path.realpath(path))
    if found.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return found


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of a full disk name the file."""
    try:
        yield
    except OSError as error:
        if is_full(error) and error.filename is None:
            error.filename = str(path)
        raise


def is_full(error: OSError) -> bool:
    """True for an error of writing to a file that could be opened, such as that of a full disk."""
    return error.errno in _FULL


def permissions(path: Path) -> int | None:
    """The permissions of a file; None if there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None
