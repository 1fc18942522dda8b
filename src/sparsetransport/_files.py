"""Files that are written completely or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` to write to, which replaces it if no error occurs."""
    unfinished = path.with_name(f".{os.getpid()}.{path.name}")  # with the same extension, which some writers look at
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        with suppress(OSError):
            unfinished.unlink()
