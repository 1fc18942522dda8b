"""The folder of data that is not part of the package."""

import os
from pathlib import Path

VARIABLE = "SPARSETRANSPORT_DATA"


class MissingDataError(ValueError):
    """The data of an experiment is missing; the message says how to get it."""


def folder_of(data: str | Path | None, what: str, advice: str) -> Path:
    """The given folder, or that of ``$SPARSETRANSPORT_DATA``."""
    place = data if data is not None else os.environ.get(VARIABLE)
    if not place:
        raise MissingDataError(f"this needs {what}: {advice}")
    if not Path(place).is_dir():
        raise MissingDataError(f"{place} is not a folder with {what}: {advice}")
    return Path(place)


def find_file(folder: Path, name: str) -> Path | None:
    """The first file of this name under the folder, at any depth and behind links; None if there is none."""
    seen = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        if os.path.realpath(place) in seen:  # a link to a folder above it
            folders.clear()
            continue
        seen.add(os.path.realpath(place))
        folders.sort()
        if name in files:
            return Path(place, name)
    return None
