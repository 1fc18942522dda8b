"""``sparsetransport solve``."""

import functools
import operator
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .. import _checks, plotting
from ..api import solve_problem
from ..geometry.costs import METRICS
from ..geometry.kernels import NAMES as KERNELS
from ..matroids import Counting, Matroid, PerColumn, PerRow, Uniform
from ..options import METHODS
from ..outer.loop import Callback, Step
from ..result import Result
from . import table, writing
from .console import Debug, duration, errors, figure, in_background, output_file, plain_errors, share
from .inputs import Inputs, build, read_inputs
from .picture import draw

BOUNDS = {"none": None, "cheap": False, "tight": True}
INPUT, BUDGET, PROBLEM, OUTPUT = "Input", "Budget", "Problem", "Output"


def solve(
    source: Annotated[
        Path | None,
        typer.Argument(help="Points of the first side: CSV, NPY, NPZ or Parquet. Or one NPZ with X and Y, or with C."),
    ] = None,
    target: Annotated[Path | None, typer.Argument(help="Points of the second side.")] = None,
    cost_matrix: Annotated[
        Path | None, typer.Option(help="A file of costs, one row a source.", rich_help_panel=INPUT)
    ] = None,
    a: Annotated[Path | None, typer.Option("--a", help="A file of source masses.", rich_help_panel=INPUT)] = None,
    b: Annotated[Path | None, typer.Option("--b", help="A file of target masses.", rich_help_panel=INPUT)] = None,
    mass_column: Annotated[
        str | None, typer.Option(help="The column of both files that holds masses.", rich_help_panel=INPUT)
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(help="The column of both files, or of the costs, that holds names.", rich_help_panel=INPUT),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="The columns of coordinates, such as x,y; else all.", rich_help_panel=INPUT)
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Links in the whole plan.", rich_help_panel=BUDGET)] = None,
    per_column: Annotated[int | None, typer.Option(help="Links of every target.", rich_help_panel=BUDGET)] = None,
    per_row: Annotated[int | None, typer.Option(help="Links of every source.", rich_help_panel=BUDGET)] = None,
    kernel: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(KERNELS)}; rbf for points, else delta.", rich_help_panel=PROBLEM),
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option(help="σ² of the kernel, or median (default) or mean.", rich_help_panel=PROBLEM)
    ] = None,
    cost: Annotated[
        str | None, typer.Option(help=f"{', '.join(METRICS)}; the first by default.", rich_help_panel=PROBLEM)
    ] = None,
    normalize_cost: Annotated[
        bool, typer.Option("--normalize-cost", help="Divide costs by the largest.", rich_help_panel=PROBLEM)
    ] = False,
    unbalanced: Annotated[
        str, typer.Option(help="Weight of the marginals: a number, two (3,5), or auto.", rich_help_panel=PROBLEM)
    ] = "auto",
    reg: Annotated[float, typer.Option(help="Weight of the quadratic term.", rich_help_panel=PROBLEM)] = 0.0,
    method: Annotated[str, typer.Option(help=f"{', '.join(METHODS)}.", rich_help_panel=PROBLEM)] = "omp",
    gap_tol: Annotated[
        float | None, typer.Option(help="Go on until this relative gap is proved.", rich_help_panel=PROBLEM)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="For the random methods.", rich_help_panel=PROBLEM)] = None,
    bound: Annotated[str, typer.Option(help=f"{', '.join(BOUNDS)}.", rich_help_panel=PROBLEM)] = "cheap",
    out: Annotated[
        Path | None,
        typer.Option(help="The plan: .csv, .npz (SciPy) or .json; - for CSV to the output.", rich_help_panel=OUTPUT),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="A picture: .png, .pdf or .svg.", rich_help_panel=OUTPUT)] = None,
    debug: Debug = False,
) -> None:
    """A plan between the points of two files, or for a matrix of costs, within a budget of links.

    Masses are soft: a plan may miss them. A large --unbalanced makes them hold (docs/guide.md has more on that).
    """
    with plain_errors(debug):
        given = [path for path in (source, target, cost_matrix, a, b) if path is not None]
        _check_outputs(out, plot, given)
        matroid = _budget(budget, per_column, per_row)
        kernels = _kernel(kernel, bandwidth)
        weights = _weights(unbalanced)
        _checks.choice("--method", method, METHODS)
        _checks.choice("--bound", bound, BOUNDS)
        if cost is not None:
            _checks.choice("--cost", cost, METRICS)
        _checks.number("--reg", reg, positive=False)
        if gap_tol is not None:
            _checks.number("--gap-tol", gap_tol, positive=True)
        if seed is not None and seed < 0:
            raise ValueError(f"--seed must not be negative, got {seed}")
        inputs = read_inputs(
            source,
            target,
            cost_matrix,
            a,
            b,
            columns=None if columns is None else [name.strip() for name in columns.split(",")],
            mass_column=mass_column,
            label_column=label_column,
        )

        def work(callback: Callback | None) -> tuple[Result, float]:
            started = time.perf_counter()
            problem = build(inputs, kernels=kernels, cost=cost, normalize=normalize_cost, unbalanced=weights, reg=reg)
            result = solve_problem(problem, budget=matroid, method=method, gap_tol=gap_tol, rng=seed, callback=callback)
            seconds = time.perf_counter() - started
            if BOUNDS[bound] is not None:
                _ = result.certify() if BOUNDS[bound] else result.lower_bound
            return result, seconds

        with ExitStack() as files:
            unfinished, picture = (
                files.enter_context(output_file(path)) if path is not None and str(path) != "-" else None
                for path in (out, plot)
            )
            with _progress(matroid, inputs.shape) as callback:
                result, seconds = in_background(lambda: work(callback))
            details = _details(result, inputs, bound=BOUNDS[bound] is not None, seconds=seconds, seed=seed)
            if unfinished is not None and out is not None:
                writing.write_plan(unfinished, out.suffix.lower(), result, inputs.labels, details)
            if picture is not None and plot is not None:
                draw(picture, plot.suffix.lower()[1:], result, inputs)
        if out is not None and str(out) == "-":
            writing.write_links(sys.stdout, result, inputs.labels)
        else:
            _print_summary(result, details)
            for what, path in (("plan", out), ("picture", plot)):
                if path is not None:
                    Console().print(f"{what}: {path}", soft_wrap=True, highlight=False, markup=False)


def _check_outputs(out: Path | None, plot: Path | None, given: list[Path]) -> None:
    """Endings that we can write, and no input among them, before any work."""
    for option, path, endings in (("--out", out, writing.ENDINGS), ("--plot", plot, writing.PICTURES)):
        if path is None or (option == "--out" and str(path) == "-"):
            continue
        if path.suffix.lower() not in endings:
            raise ValueError(f"{option} {path} must end in {table.either(endings)}")
        if any(path.resolve() == other.resolve() for other in given):
            raise ValueError(f"{option} {path} would overwrite the input")
    if plot is not None:
        plotting.require_matplotlib()


def _budget(budget: int | None, per_column: int | None, per_row: int | None) -> Matroid | None:
    """What the options allow together."""
    parts: list[Matroid] = []
    for name, kind, value in (
        ("--budget", Uniform, budget),
        ("--per-column", PerColumn, per_column),
        ("--per-row", PerRow, per_row),
    ):
        if value is not None:
            parts.append(kind(_checks.positive_int(name, value)))
    return functools.reduce(operator.and_, parts) if parts else None


def _kernel(name: str | None, bandwidth: str | None) -> Any:
    """The kernel asked for; None for the default."""
    if name is not None:
        _checks.choice("--kernel", name, dict(KERNELS))
    if bandwidth is None:
        return None if name is None else KERNELS[name]()
    if name == "delta":
        raise ValueError("--bandwidth: the kernel delta has none")
    sigma2: Any = bandwidth
    if bandwidth not in ("median", "mean"):
        sigma2 = _checks.number("--bandwidth", _number("--bandwidth", bandwidth, "median or mean"), positive=True)
    kind: Any = KERNELS[name or "rbf"]
    return kind(sigma2)


def _weights(text: str) -> Any:
    """The number, the two, or "auto"."""
    if text == "auto":
        return text
    numbers = [_number("--unbalanced", part, "two of them (3,5), or auto") for part in text.split(",")]
    if len(numbers) > 2:
        raise ValueError(f"--unbalanced must be a number, two of them (3,5), or auto, got {text!r}")
    for weight in numbers:
        _checks.number("--unbalanced", weight, positive=True)
    return (numbers[0], numbers[-1])


def _number(option: str, text: str, otherwise: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} must be a number, {otherwise}, got {text!r}") from None


@contextmanager
def _progress(matroid: Matroid | None, shape: tuple[int, int]) -> Iterator[Callback | None]:
    """A bar of the links chosen so far, on a terminal; what it yields is told of every step."""
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
    rest = bar.add_task("Exchanging links and proving", total=None, visible=False)

    def tell(step: Step) -> None:
        done = total is not None and step.entries >= total
        bar.update(task, description="Choosing links", completed=step.entries, visible=not done)
        bar.update(rest, completed=step.entries, visible=done)

    with bar:
        yield tell


def _details(result: Result, inputs: Inputs, *, bound: bool, seconds: float, seed: int | None) -> dict[str, Any]:
    """What a result is worth, in numbers."""
    missed = result.marginal_errors
    return {
        "lower_bound": result.lower_bound if bound else None,
        "gap": result.gap if bound else None,
        "relative_gap": result.relative_gap if bound else None,
        "moved": float(result.mass.sum()),
        "to_send": float(inputs.masses[0].sum()),
        "to_receive": float(inputs.masses[1].sum()),
        "marginal_error_a": missed[0],
        "marginal_error_b": missed[1],
        "seconds": seconds,
        "seed": seed,
    }


def _print_summary(result: Result, details: dict[str, Any]) -> None:
    """A line for every number."""
    m, n = result.sparse_plan.shape
    weights = " and ".join(f"{weight:.6g}" for weight in dict.fromkeys(result.log["unbalanced"]))
    lines = {"entries": f"{len(result.mass)} of {m} x {n}", "objective": f"{result.value:.6g}"}
    if details["lower_bound"] is not None:
        lines["lower bound"] = f"{details['lower_bound']:.6g}"
        lines["gap"] = f"{figure(details['gap'])} ({share(details['relative_gap'])} of the objective)"
    lines |= {
        "mass moved": f"{details['moved']:.6g} of {details['to_send']:.6g}"
        + (
            f" to send and {details['to_receive']:.6g} to receive"
            if details["to_send"] != details["to_receive"]
            else ""
        ),
        "cost of transport": f"{result.value_linear:.6g}",
        "weight of marginals": weights,
        "sent off the mark": f"{100.0 * details['marginal_error_a']:.1f} % of the mass",
        "received off the mark": f"{100.0 * details['marginal_error_b']:.1f} % of the mass",
        "status": str(result.status),
        "time": duration(details["seconds"]),
    }
    console = Console()
    if not console.is_terminal:
        for name, text in lines.items():
            print(f"{name}: {text}")
        return
    table = Table(show_header=False, box=box.SIMPLE, pad_edge=False)
    for name, text in lines.items():
        table.add_row(name, text, style="bold" if name == "objective" else None)
    console.print(table, highlight=False)
