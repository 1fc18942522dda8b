"""Compiled functions on disk: Numba's cache, with a key that sees all our source files, and without errors of its own.

It uses private names of Numba: ``dispatcher._cache``, ``FunctionCache`` and its ``_cache_file._source_stamp``. They are
the same in all versions that pyproject.toml allows; where one is missing, every process compiles for itself.
"""
# mypy: disable-error-code="no-untyped-call, misc, assignment"

import functools
import hashlib
import logging
import re
from pathlib import Path
from typing import Any

try:
    from numba.core.caching import FunctionCache
except ImportError:  # then no DiskCache can be made
    FunctionCache = object

_HERE = Path(__file__)
_USES_US = re.compile(rb"^from \.+_numba\.(borrowed|codes|compiling) import", re.MULTILINE)
_COMPILING = (
    "compiling the functions that this call needs, which can take half a minute; they are kept on disk for later runs "
    "('sparsetransport compile' precompiles all of them)"
)
_NOT_KEPT = (
    "compiled functions cannot be kept on disk, so every process compiles them again, which can take half a minute; "
    "set NUMBA_CACHE_DIR to a folder with room that can be written to (%s: %s)"
)
_told: set[str] = set()


@functools.cache
def stamp(package: Path = _HERE.parents[1]) -> str:
    """A hash of all modules that hold compiled functions, or named tuples and constants for them.

    Numba looks only at the file that a function is in, and it is compiled from parts in other files as well.
    """
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted({_HERE, *package.rglob("*.py")}):
        source = path.read_bytes()
        if path.parent.name == "_numba" or _USES_US.search(source):
            digest.update(path.name.encode() + source)
    return digest.hexdigest()


class DiskCache(FunctionCache):
    """Numba's cache of one function; what cannot be read is compiled, what cannot be written is told in the log."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        _require(self._cache_file, "_source_stamp")
        self._cache_file._source_stamp = stamp()

    def load_overload(self, *arguments: Any) -> Any:
        """The compiled function, None if it must be compiled."""
        try:
            found = super().load_overload(*arguments)
        except Exception:  # a damaged file, or one of another user
            found = None
        if found is None:
            _tell_once(_COMPILING)
        return found

    def save_overload(self, *arguments: Any) -> None:
        """Write it, if the disk lets us."""
        try:
            super().save_overload(*arguments)
        except Exception as error:
            _tell_once(_NOT_KEPT, type(error).__name__, error)


@functools.cache
def keep_on_disk(dispatcher: Any) -> None:
    """Have compiled versions of a function kept on disk, where that can be done."""
    try:
        _require(dispatcher, "_cache")
        dispatcher._cache = DiskCache(dispatcher.py_func)
    except Exception as error:
        _tell_once(_NOT_KEPT, type(error).__name__, error)


def _require(owner: object, name: str) -> None:
    """A name that Numba does not know must not be set without effect: compiled functions would be out of date."""
    if not hasattr(owner, name):
        raise AttributeError(f"this version of Numba has no {name}")


def _tell_once(message: str, *values: object) -> None:
    if message not in _told:
        _told.add(message)
        logging.getLogger("sparsetransport").warning(message, *values)
