"""Run benchmarks by name, print their tables, and keep them in ``results/bench.md``.

python -m benchmarks.run            all of them
python -m benchmarks.run gap inner  some of them (nothing is written)
"""

import argparse
import importlib
import platform
import warnings
from pathlib import Path

import numba
import numpy as np
import scipy
from rich.console import Console

import sparsetransport as st

from .table import Table

NAMES = [
    "doors",
    "published",
    "gap",
    "bounds",
    "proofs",
    "step",
    "unbudgeted",
    "many",
    "trees",
    "spread",
    "inner",
    "large",
    "kernels",
    "batch",
    "shared",
    "labels",
    "bandwidth",
    "adaptation",
    "senses",
    "startup",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    names = parser.parse_args().names
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; known are {', '.join(NAMES)}")
    # the published algorithm runs a fixed number of iterations on purpose
    warnings.simplefilter("ignore", st.ConvergenceWarning)
    console = Console(stderr=True)
    parts = []
    for name in names or NAMES:
        with console.status(f"benchmark {name}"):
            measured = importlib.import_module(f"benchmarks.{name}").run()
        for table in [measured] if isinstance(measured, Table) else measured:
            parts.append(table.markdown())
            print(parts[-1], end="\n\n", flush=True)
    if not names:
        _keep("\n\n".join(parts))


def _keep(tables: str) -> None:
    """Write the tables with what they were measured on; whole or not at all."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    versions += f", Numba {numba.__version__}, {platform.machine()}, {numba.config.NUMBA_NUM_THREADS} cores"
    target = Path("results/bench.md")
    target.parent.mkdir(exist_ok=True)
    draft = target.with_suffix(".tmp")
    draft.write_text(f"# Benchmarks\n\n`make bench` printed this ({versions}).\n\n{tables}\n", encoding="utf-8")
    draft.replace(target)


if __name__ == "__main__":
    main()
