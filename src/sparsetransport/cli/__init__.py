"""The command ``sparsetransport``: one module for each subcommand, and helpers that they share."""

import logging
import os
import sys
from typing import Annotated

import typer

from .. import __version__
from . import align, compile, demo, design, info, reproduce, solve
from .console import quiet_pipe

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(solve.solve)
app.command()(design.design)
app.command()(align.align)
app.command()(reproduce.reproduce)
app.command()(demo.demo)
app.command()(info.info)
app.command("compile")(compile.compile_all)


def main() -> None:
    """Run the command."""
    os.environ.setdefault("MPLBACKEND", "agg")  # plots go to files
    if sys.stderr is not None and sys.stderr.isatty():  # progress bars say there that Numba compiles
        logging.getLogger("sparsetransport").setLevel(logging.ERROR)
    with quiet_pipe():
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
    """Transport plans with a budget: at most K links, soft marginals, and a certified optimality gap."""
