"""Run benchmarks by name, and print their tables.

python -m benchmarks.run                   all of them
python -m benchmarks.run gap inner         some of them
python -m benchmarks.run gap inner --keep  and put their tables into the sections of these names in results/bench.md
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

KEPT = Path("results/bench.md")
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
    "hard_data",
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
    parser.add_argument("--keep", action="store_true", help=f"put the tables into {KEPT}, in place of earlier ones")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; known are {', '.join(NAMES)}")
    # the published algorithm runs a fixed number of iterations on purpose
    warnings.simplefilter("ignore", st.ConvergenceWarning)
    console = Console(stderr=True)
    for name in arguments.names or NAMES:
        with console.status(f"benchmark {name}"):
            measured = importlib.import_module(f"benchmarks.{name}").run()
        parts = []
        for table in [measured] if isinstance(measured, Table) else measured:
            parts.append(table.markdown())
            print(parts[-1], end="\n\n", flush=True)
        if arguments.keep:
            _keep(name, "\n\n".join(parts))


def _keep(name: str, tables: str) -> None:
    """Replace the section of a benchmark by these tables and what they were measured on; whole or not at all."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    versions += f", Numba {numba.__version__}, {platform.machine()}, {numba.config.NUMBA_NUM_THREADS} cores"
    start, *others = KEPT.read_text(encoding="utf-8").split("\n## ")
    sections = {text.partition("\n")[0]: text.strip() for text in others}
    sections[name] = f"{name}\n\n`make bench ARGS={name}` printed this ({versions}).\n\n{tables}".strip()
    known = [sections[each] for each in NAMES if each in sections]
    draft = KEPT.with_suffix(".tmp")
    draft.write_text("\n\n## ".join([start.strip(), *known]) + "\n", encoding="utf-8")
    draft.replace(KEPT)


if __name__ == "__main__":
    main()
