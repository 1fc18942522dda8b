"""The command ``sparsetransport``."""

import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from . import __version__, _checks, plotting
from .apps import demo as ports_and_cities

PICTURE = "sparsetransport-demo.png"
REQUIRED = ("numpy", "scipy", "numba", "array-api-compat")
OPTIONAL = ("matplotlib", "POT", "torch", "jax", "scikit-learn")

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def main() -> None:
    """Run the command."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sparsetransport {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Transport plans with a budget: at most K links, soft marginals, and a proof of how good the plan is."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for the picture.")] = Path(),
    budget: Annotated[int, typer.Option(min=1, help="How many links the plan may use.")] = ports_and_cities.BUDGET,
) -> None:
    """Which container port serves which city, with so few links? A table and a picture, no download."""
    console = Console()
    picture = out / PICTURE
    with _plain_errors(), _whole_file(picture) as unfinished:
        with console.status("Solving (the first time Numba compiles, which can take a minute)"):
            comparison = ports_and_cities.run(budget)
        _print_comparison(console, comparison)
        plotting.require_matplotlib()
        with console.status("Drawing"):
            ports_and_cities.draw(comparison).savefig(unfinished, format="png")
    console.print(f"\nPicture of the plan: {picture}", soft_wrap=True, highlight=False)


@app.command()
def info() -> None:
    """Versions, threads, and which optional parts are present."""
    console = Console()
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("sparsetransport", __version__)
    table.add_row("Python", f"{platform.python_version()} ({platform.system()} {platform.machine()})")
    for name in REQUIRED:
        table.add_row(name, metadata.version(name))
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    table.add_row("CPUs to use", str(cpus))
    for name in OPTIONAL:
        table.add_row(name, _installed(name) or f"absent (optional: pip install {name})")
    console.print(table)


def _installed(name: str) -> str | None:
    """The version of a package, None if it is not there."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _print_comparison(console: Console, comparison: ports_and_cities.Comparison) -> None:
    """The table, and what it says in words."""
    ports, cities = len(comparison.ports.names), len(comparison.cities.names)
    console.print(
        f"{ports} container ports, {cities} cities, {ports * cities:,} possible links. "
        "With only a few,\nwhich port should serve which city?\n",
        highlight=False,
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("plan", no_wrap=True)
    for heading in ("links", "objective", "bound", "gap", "ports\noff", "cities\noff", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    best = comparison.rows[-1]
    for row in comparison.rows:
        table.add_row(
            row.name,
            str(row.links),
            f"{row.objective:.4f}",
            f"{row.lower_bound:.4f}",
            f"{100.0 * row.gap:.2f} %",
            f"{100.0 * row.ports_off:.1f} %",
            f"{100.0 * row.cities_off:.1f} %",
            "" if row.seconds is None else _duration(row.seconds),
            style="bold" if row is best else None,
        )
    console.print(table)
    console.print(
        f"\nNo plan with {best.links} links is more than {100.0 * best.gap:.2f} % better: the bound proves it.\n"
        "Off: the share of containers sent from, and delivered to, the wrong place.",
        highlight=False,
    )
    if comparison.compile_seconds > 2.0:
        took = _duration(comparison.compile_seconds)
        console.print(f"Compiling took {took} on top; the machine code is kept for the next time.", highlight=False)


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1.0 else f"{1000.0 * seconds:.0f} ms"


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Bad input and missing parts end the command with one sentence; warnings are one too."""
    errors = Console(stderr=True)
    told = set()

    def tell(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in told:
            errors.print(f"Warning: {message}", style="yellow", soft_wrap=True, highlight=False, markup=False)
        told.add(str(message))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", _checks.SparseTransportWarning)
            warnings.showwarning = tell
            yield
    except OSError as error:
        message, code = f"cannot write {error.filename}: {error.strerror}", 2
    except (TypeError, ValueError) as error:
        message, code = str(error), 2
    except ImportError as error:
        message, code = str(error), 1
    else:
        return
    errors.print(f"Error: {message}", style="red", soft_wrap=True, highlight=False, markup=False)
    raise typer.Exit(code)


@contextmanager
def _whole_file(path: Path) -> Iterator[Path]:
    """A file beside ``path`` to write to, which takes its place when all went well; its folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.touch()  # an error now, not after the work
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
