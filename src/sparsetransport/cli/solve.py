"""``sparsetransport solve``."""

import functools
import operator
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .. import _checks
from .._checks import Ints
from .._numba.timer import compile_timer
from ..api import solve as solve_transport
from ..budgets import Counting, Matroid, PerColumn, PerRow, Uniform
from ..fewest import Fewest, solve_fewest
from ..geometry.costs import METRICS
from ..geometry.kernels import NAMES as KERNELS
from ..geometry.kernels import Delta
from ..given import weights_of
from ..options import METHODS, SolveOptions
from ..plan import Callback, Step
from ..problem import Problem
from ..result import Result
from ..status import Status
from ..summary import summary_lines, without_link
from . import writing
from .cells import printable
from .console import Debug, duration, errors, in_background, plain_errors, say
from .inputs import SENSES, Inputs, build, number_or_file, read_inputs
from .outputs import Output, output, picture
from .picture import draw

BOUNDS = {"none": None, "cheap": False, "tight": True}
INPUT, BUDGET, PROBLEM, OUTPUT = "Input", "Budget", "Problem", "Output"
TWICE = "Once for both files, or twice: first, second."
_MUCH = 0.05  # a marginal error that gets a hint
_CLOSE = 1e-9  # totals that differ by a smaller share are equal
_NAMED = 5  # points that a warning names
_WORDS = (
    ("sources", "keep {:.6g} of {:.6g} in all", "send {:.6g} more than they have, {:.6g} in all"),
    ("targets", "lack {:.6g} of {:.6g} in all", "get {:.6g} more than they want, {:.6g} in all"),
)


class Settings(NamedTuple):
    """The options, apart from files."""

    budget: Matroid | None
    within: float | None
    kernels: Any
    metric: str | None
    normalize: bool
    unbalanced: Any
    sense: tuple[str, str]
    planned: tuple[bool, bool]  # sides whose sense was given
    link_cost: float | Path | None
    reg: float
    method: str
    gap_tol: float | None
    time_limit: float | None
    seed: int | None
    bound: bool | None  # True: tight, False: cheap, None: none


def solve(
    source: Annotated[
        Path | None,
        typer.Argument(help="Points of the first side: CSV, NPY, NPZ or Parquet. Or one NPZ with X and Y, or with C."),
    ] = None,
    target: Annotated[Path | None, typer.Argument(help="Points of the second side.")] = None,
    cost_matrix: Annotated[
        Path | None, typer.Option(help="A file of costs, one row for each source.", rich_help_panel=INPUT)
    ] = None,
    a: Annotated[Path | None, typer.Option("--a", help="A file of source masses.", rich_help_panel=INPUT)] = None,
    b: Annotated[Path | None, typer.Option("--b", help="A file of target masses.", rich_help_panel=INPUT)] = None,
    mass_column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"The column of masses. {TWICE}", rich_help_panel=INPUT),
    ] = None,
    label_column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"The column of names, also for costs. {TWICE}", rich_help_panel=INPUT),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help=f"The coordinate columns, such as x,y; default: all. {TWICE}",
            rich_help_panel=INPUT,
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Largest number of links in the whole plan.", rich_help_panel=BUDGET)
    ] = None,
    per_column: Annotated[
        int | None, typer.Option(help="Largest number of links of each target.", rich_help_panel=BUDGET)
    ] = None,
    per_row: Annotated[
        int | None, typer.Option(help="Largest number of links of each source.", rich_help_panel=BUDGET)
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Instead of --budget: the fewest links whose objective is within this share (0.05) of the optimum.",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(KERNELS)}; default: rbf for points, else delta.", rich_help_panel=PROBLEM),
    ] = None,
    bandwidth: Annotated[
        str | None,
        typer.Option(help="σ² of the kernel, or median, mean or a multiple: 0.1*median.", rich_help_panel=PROBLEM),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help=f"{', '.join(METRICS)}; the first by default.", rich_help_panel=PROBLEM)
    ] = None,
    normalize_cost: Annotated[
        bool, typer.Option("--normalize-cost", help="Divide costs by the largest.", rich_help_panel=PROBLEM)
    ] = False,
    unbalanced: Annotated[
        str | None,
        typer.Option(
            help="Weight of marginal errors: a number, two (3,5), auto (default) or 100xauto; inf: hard.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    supply: Annotated[
        str | None,
        typer.Option(help=f"How much of its mass a source sends: {', '.join(SENSES)}.", rich_help_panel=PROBLEM),
    ] = None,
    demand: Annotated[
        str | None,
        typer.Option(help=f"How much of its mass a target receives: {', '.join(SENSES)}.", rich_help_panel=PROBLEM),
    ] = None,
    link_cost: Annotated[
        str | None,
        typer.Option(
            help="A fixed cost for each link in use: a number, or a file like costs.", rich_help_panel=PROBLEM
        ),
    ] = None,
    reg: Annotated[float, typer.Option(help="Weight of the quadratic term.", rich_help_panel=PROBLEM)] = 0.0,
    method: Annotated[str, typer.Option(help=f"{', '.join(METHODS)}.", rich_help_panel=PROBLEM)] = "omp",
    gap_tol: Annotated[
        float | None,
        typer.Option(help="Continue until this relative gap is certified.", rich_help_panel=PROBLEM),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Stop after so many seconds, with the best plan and bound so far.", rich_help_panel=PROBLEM),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of the random methods.", rich_help_panel=PROBLEM)] = None,
    bound: Annotated[str, typer.Option(help=f"Lower bound: {', '.join(BOUNDS)}.", rich_help_panel=PROBLEM)] = "cheap",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the plan: .csv, .npz (SciPy) or .json; - for CSV on standard output.", rich_help_panel=OUTPUT
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot the plan: .png, .pdf or .svg.", rich_help_panel=OUTPUT)
    ] = None,
    debug: Debug = False,
) -> None:
    """Compute a transport plan within a budget of links, between the points of two files or for a cost matrix.

    Marginals are soft: row and column sums may differ from the masses. With --supply or --demand the marginals of that
    side are hard unless --unbalanced gives a weight, and the kernel is delta unless --kernel chooses another one (see
    docs/guide.md).
    """
    with plain_errors(debug):
        fee = None if link_cost is None else number_or_file("--link-cost", link_cost)
        files = source, target, cost_matrix, a, b, fee
        given = [path for path in files if isinstance(path, Path)]
        plan, drawing = output("plan", out, writing.ENDINGS, given), picture(plot, given)
        _checks.choice("--bound", bound, BOUNDS)
        planned = supply is not None, demand is not None
        plain = any(planned) or fee is not None
        settings = Settings(
            budget=_budget(budget, per_column, per_row),
            within=within,
            kernels=Delta() if plain and kernel is None and bandwidth is None else _kernel(kernel, bandwidth),
            metric=metric,
            normalize=normalize_cost,
            unbalanced=tuple(np.inf if hard else "auto" for hard in planned)
            if unbalanced is None
            else _weights(unbalanced),
            sense=(_sense("--supply", supply), _sense("--demand", demand)),
            planned=planned,
            link_cost=fee,
            reg=reg,
            method=method,
            gap_tol=gap_tol,
            time_limit=time_limit,
            seed=seed,
            bound=BOUNDS[bound],
        )
        if within is not None and budget is not None:
            raise ValueError("--within must not be given with --budget, since it finds the budget itself")
        if within is not None and fee is not None:
            raise ValueError("--within must not be given with --link-cost, which determines the number of links itself")
        _check(settings)
        inputs = read_inputs(
            source,
            target,
            cost_matrix,
            a,
            b,
            columns=[[name.strip() for name in names.split(",")] for names in columns or ()],
            mass_column=mass_column or (),
            label_column=label_column or (),
        )
        _run(settings, inputs, plan, drawing)


def _check(settings: Settings) -> None:
    """Raise errors for invalid options before any file is read."""
    _checks.choice("--method", settings.method, METHODS)
    if settings.metric is not None:
        _checks.choice("--metric", settings.metric, METRICS)
    _checks.number("--reg", settings.reg, positive=False)
    if settings.within is not None:
        _checks.number("--within", settings.within, positive=False)
    if settings.gap_tol is not None:
        _checks.number("--gap-tol", settings.gap_tol, positive=True)
    if settings.time_limit is not None:
        _checks.number("--time-limit", settings.time_limit, positive=True)
    if settings.seed is not None and settings.seed < 0:
        raise ValueError(f"--seed must not be negative, got {settings.seed}")


def _run(settings: Settings, inputs: Inputs, plan: Output, drawing: Output) -> None:
    """Solve, write the files and print the summary."""
    with plan.file() as unfinished, drawing.file() as unfinished_picture:
        with _progress(settings.budget, inputs.shape) as callback:
            problem, result, found, seconds = in_background(lambda: _solved(settings, inputs, callback))
        details = _details(result, inputs, settings, seconds) | _enough(found, settings)
        if unfinished is not None:
            writing.write_plan(unfinished, plan.ending, result, inputs.labels, details)
        if unfinished_picture is not None:
            draw(unfinished_picture, drawing.ending[1:], result, inputs)
    if plan.printed:
        writing.write_links(sys.stdout, result, inputs.labels)
    else:
        _print_summary(problem, result, details)
        plan.tell()
        drawing.tell()
    _warn_of_planning(problem, result, settings, inputs)


def _warn_of_planning(problem: Problem, result: Result, settings: Settings, inputs: Inputs) -> None:
    """Warn where masses are missed by much or points have no link, and name the options that keep to the masses."""
    if result.status is Status.INFEASIBLE:
        say(f"Warning: {result.status}: allow more links, or give --unbalanced a weight", "yellow")
    elif result.value == np.inf:
        say(
            f"Warning: {result.status}, and this plan violates the hard marginals: allow more time or more links, "
            "or give --unbalanced a weight",
            "yellow",
        )
    to_send, to_receive = (float(side.sum()) for side in inputs.masses)
    fits = to_receive <= to_send * (1.0 + _CLOSE)
    options = ("--supply at-most", "--demand exact") if fits else ("--supply exact", "--demand at-most")
    asked = " ".join(option for option, planned in zip(options, settings.planned, strict=True) if not planned)
    why = "" if problem.has_deltas else ", since under the default kernel a link stands for the points around it"
    for side in (0, 1):
        told = _missed(result, settings, inputs, side)
        if told:
            cure = f"{asked} keeps to the masses, or says that no plan within the budget does"
            say(f"Warning: {'; '.join(told)}{why}: {cure}", "yellow")


def _missed(result: Result, settings: Settings, inputs: Inputs, side: int) -> list[str]:
    """What is wrong with a side whose points count for themselves, or whose masses were given without a kernel."""
    given, asked = inputs.masses[side], settings.kernels
    counts = isinstance(asked, Delta) if asked is not None else (inputs.a, inputs.b)[side] is not None
    if settings.planned[side] or result._parts.weights[side] == np.inf or not (counts or result._facts.is_delta[side]):
        return []
    what, lack, beyond = _WORDS[side]
    total, told = float(given.sum()), []
    spare = max(total - float(inputs.masses[1 - side].sum()), 0.0)  # that the other side has no use for
    alone = without_link(result._parts, side)
    short, above = result.unserved[side], result.excess[side]
    if len(alone) and float(given[alone].sum()) > spare:
        told.append(f"{len(alone)} of {len(given)} {what} have no link{_first(alone, inputs.labels[side])}")
    for error, text in ((short, lack), (above, beyond)):
        much = float(error.sum()) - (spare if error is short else 0.0)
        if much >= _MUCH * total:
            places = np.argsort(-error, kind="stable")[: np.count_nonzero(error)]
            who = f"{len(places)} of {len(given)} {what}{_first(places, inputs.labels[side])}"
            told.append(f"{who} {text.format(error.sum(), total)}")
    return told


def _first(places: Ints, labels: list[str] | None) -> str:
    """The first of some points, by name if they have any."""
    told = ", ".join(str(k) if labels is None else labels[k] for k in sorted(places[:_NAMED].tolist()))
    return f" ({told}{f' and {len(places) - _NAMED} more' if len(places) > _NAMED else ''})"


class Seconds(NamedTuple):
    """The seconds spent on the plan, on its bound, and on compiling for both."""

    solve: float
    prove: float
    compile: float


def _solved(
    settings: Settings, inputs: Inputs, callback: Callback | None
) -> tuple[Problem, Result, Fewest | None, Seconds]:
    """The problem, and the plan with the requested bound."""
    first: list[float] = []
    second: list[float] = []
    started = time.perf_counter()
    with compile_timer(first.append):
        problem, result, found = _plan(settings, inputs, callback)
    solved = time.perf_counter()
    with compile_timer(second.append):
        if settings.bound is not None:
            _ = result.certify() if settings.bound else result.lower_bound
        if settings.bound and found is not None:
            _ = found.at_least
    proved = time.perf_counter()
    seconds = Seconds(solved - started - sum(first), proved - solved - sum(second), sum(first + second))
    return problem, result, found, seconds


def _plan(settings: Settings, inputs: Inputs, callback: Callback | None) -> tuple[Problem, Result, Fewest | None]:
    problem = build(
        inputs,
        kernels=settings.kernels,
        metric=settings.metric,
        normalize=settings.normalize,
        unbalanced=settings.unbalanced,
        reg=settings.reg,
        sense=settings.sense,
        link_cost=settings.link_cost,
    )
    options: SolveOptions = {
        "method": settings.method,
        "gap_tol": settings.gap_tol,
        "time_limit": settings.time_limit,
        "rng": settings.seed,
        "callback": callback if problem.is_plain else None,
    }
    if settings.within is None:
        return problem, solve_transport(problem, budget=settings.budget, **options), None
    others = settings.budget
    count = Uniform if others is None else lambda number: others & Uniform(number)
    found = solve_fewest(problem, within=settings.within, budget=count, **options)
    return problem, found.result, found


def _budget(budget: int | None, per_column: int | None, per_row: int | None) -> Matroid | None:
    """The budget that the options describe together."""
    parts: list[Matroid] = []
    for name, kind, value in (
        ("--budget", Uniform, budget),
        ("--per-column", PerColumn, per_column),
        ("--per-row", PerRow, per_row),
    ):
        if value is not None:
            parts.append(kind(_checks.positive_int(name, value)))
    return functools.reduce(operator.and_, parts) if parts else None


def _sense(option: str, name: str | None) -> str:
    """The sense of a side by its name; exact by default."""
    found: str = SENSES["exact"] if name is None else _checks.choice(option, name, SENSES)
    return found


def _kernel(name: str | None, bandwidth: str | None) -> Any:
    """The kernel asked for; None for the default."""
    if name is not None:
        _checks.choice("--kernel", name, dict(KERNELS))
    if bandwidth is None:
        return None if name is None else KERNELS[name]()
    if name == "delta":
        raise ValueError("--bandwidth must not be given with --kernel delta, which has none")
    sigma2: Any = bandwidth
    if not bandwidth.endswith(("median", "mean")):
        sigma2 = _checks.number("--bandwidth", _number("--bandwidth", bandwidth, "median or mean"), positive=True)
    kind: Any = KERNELS[name or "rbf"]
    return kind(sigma2)


def _weights(text: str) -> Any:
    """The number, a multiple of "auto", or two of either."""
    rule = "two numbers (3,5), auto or a multiple of it (100xauto)"
    parts = text.split(",")
    if len(parts) > 2:
        raise ValueError(f"--unbalanced must be a number, {rule}, got {text!r}")
    weights: list[Any] = []
    for part in parts:
        if part.strip().endswith("auto"):
            weights_of(part)
            weights.append(part)
        elif part.strip() == "inf":
            weights.append(np.inf)
        else:
            weights.append(_checks.number("--unbalanced", _number("--unbalanced", part, rule), positive=True))
    return weights[0], weights[-1]


def _number(option: str, text: str, otherwise: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} must be a number, {otherwise}, got {text!r}") from None


@contextmanager
def _progress(matroid: Matroid | None, shape: tuple[int, int]) -> Iterator[Callback | None]:
    """A progress bar of the links chosen so far, on a terminal; yields a callback."""
    console = errors()
    if not console.is_terminal:
        yield None
        return
    total = matroid.limits(shape).most if isinstance(matroid, Counting) else None
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("Preparing (the first time Numba compiles)", total=total)
    rest = bar.add_task("Improving the plan and computing bounds", total=None, visible=False)

    def tell(step: Step) -> None:
        done = total is not None and step.entries >= total
        bar.update(task, description="Choosing links", completed=step.entries, visible=not done)
        bar.update(rest, completed=step.entries, visible=done)

    with bar:
        yield tell


def _details(result: Result, inputs: Inputs, settings: Settings, seconds: Seconds) -> dict[str, Any]:
    """The figures of a result."""
    missed, bound = result.marginal_errors, settings.bound is not None
    return {
        "lower_bound": result.lower_bound if bound else None,
        "gap": result.gap if bound else None,
        "relative_gap": result.relative_gap if bound else None,
        "moved": float(result.mass.sum()),
        "to_send": float(inputs.masses[0].sum()),
        "to_receive": float(inputs.masses[1].sum()),
        "marginal_error_a": missed[0],
        "marginal_error_b": missed[1],
        "seconds": seconds.solve,
        "seconds_to_prove": seconds.prove,
        "seconds_to_compile": seconds.compile,
        "seed": settings.seed,
    }


def _enough(found: Fewest | None, settings: Settings) -> dict[str, Any]:
    """The figures of ``--within``, if it was given."""
    if found is None:
        return {}
    return {
        "within": settings.within,
        "target": found.target,
        "links_without_budget": len(found.optimum.mass),
        "value_without_budget": found.optimum.value,
        "links_at_least": found.at_least if settings.bound else None,
    }


def _print_summary(problem: Problem, result: Result, details: dict[str, Any]) -> None:
    """Print one line for each figure."""
    rest = summary_lines(result, bound=details["lower_bound"] is not None)
    first = "entries", "objective", "lower bound", "gap"
    lines: dict[str, str] = {name: rest.pop(name) for name in first if name in rest}
    if "within" in details:
        links, value = details["links_without_budget"], details["value_without_budget"]
        lines["unbudgeted optimum"] = f"{links} entries, {value:.6g}"
        lines["target"] = _target(details)
    lines |= rest | {"time": _took(details)}
    names = "marginal error, rows", "marginal error, columns"
    sides = names, result.marginal_errors, (problem.gram_a, problem.gram_b)
    for name, error, gram in zip(*sides, strict=True):
        if error >= _MUCH and not gram.is_delta:
            lines[name] += " (with --kernel delta every point counts individually)"
    console = Console()
    if not console.is_terminal:
        for name, text in lines.items():
            print(f"{name}: {printable(text)}")
        return
    table = Table(show_header=False, box=box.SIMPLE, pad_edge=False)
    for name, text in lines.items():
        table.add_row(name, escape(printable(text)), style="bold" if name == "objective" else None)
    console.print(table, highlight=False)


def _target(details: dict[str, Any]) -> str:
    """The target objective, and the proven minimum of entries for it if it was computed."""
    least = details["links_at_least"]
    known = "--bound tight computes the proven minimum" if least is None else f"proven minimum: {least} entries"
    return f"{details['target']:.6g} ({known})"


def _took(details: dict[str, Any]) -> str:
    """The times for the plan, for the bound and for compiling."""
    took = duration(details["seconds"])
    if details["lower_bound"] is not None:
        took += f", and {duration(details['seconds_to_prove'])} for the bound"
    if details["seconds_to_compile"] > 0.0:
        took += f", and {duration(details['seconds_to_compile'])} to compile, the first time only"
    return took
