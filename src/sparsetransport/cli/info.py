"""``sparsetransport info``."""

import os
import platform
from importlib import metadata

from rich.console import Console
from rich.table import Table

from .. import __version__

REQUIRED = ("numpy", "scipy", "numba", "array-api-compat")
OPTIONAL = ("matplotlib", "POT", "torch", "jax", "scikit-learn", "pyarrow", "joblib", "transformers")


def info() -> None:
    """Versions, threads, and which optional parts are present."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("sparsetransport", __version__)
    table.add_row("Python", f"{platform.python_version()} ({platform.system()} {platform.machine()})")
    for name in REQUIRED:
        table.add_row(name, metadata.version(name))
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    table.add_row("CPUs to use", str(cpus))
    for name in OPTIONAL:
        table.add_row(name, _installed(name) or f"absent (optional: pip install {name})")
    Console().print(table)


def _installed(name: str) -> str | None:
    """The version of a package, None if it is not there."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
