"""``sparsetransport reproduce``."""

import functools
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status

from .. import experiments
from ..experiments.data_files import MissingDataError
from .console import Debug, duration, errors, explain, in_background, plain_errors, say, writable_folder

ALL = "all"


def reproduce(
    name: Annotated[str | None, typer.Argument(help=f"The experiment, or {ALL}.")] = None,
    names: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="The data folder, which some experiments need; default: $SPARSETRANSPORT_DATA.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Use the paper's sizes where the default is smaller.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The random seed.")] = 0,
    out: Annotated[Path, typer.Option(help="The folder for the results of all experiments.")] = Path("results"),
    debug: Debug = False,
) -> None:
    """Rerun an experiment of the paper: its table, with the paper's numbers beside ours, and its plots."""
    with plain_errors(debug):
        if names:
            _print_list()
            return
        known = f"{', '.join(experiments.EXPERIMENTS)} or {ALL}"
        if name is None:
            raise ValueError(f"give the name of an experiment: {known}")
        if name != ALL and name not in experiments.EXPERIMENTS:
            raise ValueError(f"the experiment must be {known}, got {name!r}")
        if data is not None and not data.is_dir():
            raise ValueError(f"--data {data} is not a folder")
        run = functools.partial(_run, data=data, full=full, seed=seed, out=out)
        with writable_folder(out):
            if name != ALL:
                run(name)
            elif failed := _run_all(run, debug):
                say(f"Error: {len(failed)} of {len(experiments.EXPERIMENTS)} failed: {', '.join(failed)}", "red")
                raise typer.Exit(1)


class _Spinner:
    """The progress of an experiment on a terminal; silent in a pipe."""

    def __init__(self, status: Status, name: str) -> None:
        self.status, self.name = status, name

    def step(self, text: str) -> None:
        """Report the step that begins."""
        self.status.update(f"{self.name}: {text}")


def _run(name: str, *, data: Path | None, full: bool, seed: int, out: Path) -> None:
    """Run one experiment, print its tables and write its folder."""
    started = time.perf_counter()
    with errors().status(name) as status:
        spinner = _Spinner(status, name)
        report = in_background(lambda: experiments.load(name)(data=data, full=full, seed=seed, progress=spinner))
        spinner.step("writing")
        report.write(out / name)
    console = Console()
    if console.is_terminal:
        console.print(report.rich())
    else:
        print(report.markdown())
    took = duration(time.perf_counter() - started)
    console.print(f"{name}: {took}, tables and plots in {out / name}", soft_wrap=True, highlight=False)


def _run_all(run: Callable[[str], None], debug: bool) -> list[str]:
    """Run every experiment, even if others fail; returns the names of those that failed."""
    failed = []
    for name in experiments.EXPERIMENTS:
        try:
            run(name)
        except MissingDataError as error:
            say(f"Skipped {name}: {error}", "yellow")
        except Exception as error:
            if debug:
                traceback.print_exc()
            say(f"Error: {name} failed: {explain(error)[0]}", "red")
            failed.append(name)
    return failed


def _print_list() -> None:
    """A line for every experiment."""
    width = max(map(len, experiments.EXPERIMENTS))
    for name in experiments.EXPERIMENTS:
        print(f"{name:{width}}  {experiments.SUMMARIES.get(name, '')}".rstrip())
