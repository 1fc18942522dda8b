"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside ``path`` to write to, which takes its place when all went well."""
    unfinished = path.with_name(f".{os.getpid()}.{path.name}")  # with the same ending, which some writers go by
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        with suppress(OSError):
            unfinished.unlink()
