"""``sparsetransport info``."""

import platform
from importlib import metadata

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .. import __version__, _checks

REQUIRED = ("numpy", "scipy", "numba", "array-api-compat")
OPTIONAL = {
    "matplotlib": "plot",
    "POT": "pot",
    "torch": "torch",
    "jax": "jax",
    "scikit-learn": "sklearn",
    "pyarrow": "parquet",
    "pandas": "frames",
    "networkx": "frames",
    "joblib": "batch",
    "transformers": "align",
}
"""Optional packages, and the extras that install them."""


def info() -> None:
    """Show versions, threads and the optional packages that are installed."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("sparsetransport", __version__)
    table.add_row("Python", f"{platform.python_version()} ({platform.system()} {platform.machine()})")
    for name in REQUIRED:
        table.add_row(name, metadata.version(name))
    table.add_row("CPUs to use", str(_checks.cores()))
    for name, extra in OPTIONAL.items():
        table.add_row(name, _installed(name) or escape(f"absent (optional: pip install 'sparsetransport[{extra}]')"))
    Console().print(table)


def _installed(name: str) -> str | None:
    """The version of a package, None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
