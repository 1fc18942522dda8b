"""``sparsetransport design``."""

import csv
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple, TextIO

import typer
from rich.console import Console
from rich.table import Table

from .. import _checks, plotting
from .._checks import Floats
from ..apps.network_design import Design, draw
from ..apps.network_design import design as choose
from .console import Debug, duration, errors, in_background, plain_errors, whole_file
from .labelled import Labelled, in_order, read_labelled, read_pairs
from .reading import either
from .writing import PICTURES

INPUT, LINKS, OUTPUT = "Input", "Links", "Output"


class Inputs(NamedTuple):
    """What the files hold, plants and products in the order of the profits."""

    plants: list[str]
    products: list[str]
    profit: Floats
    supply: Floats
    demand: Floats
    held_out: Floats | None
    fixed: list[tuple[int, int]]
    forbidden: list[tuple[int, int]]


def design(
    profit: Annotated[
        Path,
        typer.Option(help="Profit of a unit: a CSV file, plants in rows, products in columns.", rich_help_panel=INPUT),
    ],
    supply: Annotated[
        Path, typer.Option(help="Capacity: a CSV file, a plant and a number in each row.", rich_help_panel=INPUT)
    ],
    demand: Annotated[
        Path, typer.Option(help="Demand: a CSV file, scenarios in rows, products in columns.", rich_help_panel=INPUT)
    ],
    links: Annotated[int, typer.Option(help="How many links there may be.", rich_help_panel=LINKS)],
    fixed: Annotated[
        Path | None,
        typer.Option(help="Links that are there: a CSV file with columns plant and product.", rich_help_panel=LINKS),
    ] = None,
    fixed_free: Annotated[
        bool, typer.Option("--fixed-free", help="Do not count them among --links.", rich_help_panel=LINKS)
    ] = False,
    forbidden: Annotated[
        Path | None, typer.Option(help="Links that cannot be built: a file as for --fixed.", rich_help_panel=LINKS)
    ] = None,
    max_per_plant: Annotated[int | None, typer.Option(help="Links of every plant.", rich_help_panel=LINKS)] = None,
    max_per_product: Annotated[int | None, typer.Option(help="Links of every product.", rich_help_panel=LINKS)] = None,
    held_out: Annotated[
        Path | None, typer.Option(help="Scenarios to judge by: a file as for --demand.", rich_help_panel=INPUT)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The links: a .csv file; - for the output.", rich_help_panel=OUTPUT)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="The network and its profit: .png, .pdf or .svg.", rich_help_panel=OUTPUT)
    ] = None,
    debug: Debug = False,
) -> None:
    """Which links to build between plants and products, for demand that is known only as scenarios."""
    with plain_errors(debug):
        given = [path for path in (profit, supply, demand, fixed, forbidden, held_out) if path is not None]
        _check_outputs(out, plot, given)
        for name, value in (
            ("--links", links),
            ("--max-per-plant", max_per_plant),
            ("--max-per-product", max_per_product),
        ):
            if value is not None:
                _checks.positive_int(name, value)
        inputs = _read(profit, supply, demand, held_out, fixed, forbidden)
        if not fixed_free and len(inputs.fixed) > links:
            raise ValueError(f"--links {links} is fewer than the {len(inputs.fixed)} links of {fixed}")
        with ExitStack() as files:
            unfinished, picture = (
                files.enter_context(whole_file(path)) if path is not None and str(path) != "-" else None
                for path in (out, plot)
            )
            started = time.perf_counter()
            with errors().status("Choosing links (the first time Numba compiles, which can take a minute)"):
                network = in_background(
                    lambda: choose(
                        inputs.profit,
                        inputs.supply,
                        inputs.demand,
                        links,
                        inputs.fixed,
                        inputs.forbidden,
                        max_per_plant,
                        max_per_product,
                        count_fixed=not fixed_free,
                        held_out=inputs.held_out,
                    )
                )
                seconds = time.perf_counter() - started
                _ = network.comparison
            if unfinished is not None:
                with unfinished.open("w", encoding="utf-8", newline="") as file:
                    _write(file, network, inputs)
            if picture is not None and plot is not None:
                with errors().status("Drawing"):
                    figure = draw(network, plants=inputs.plants, products=inputs.products)
                    figure.savefig(picture, format=plot.suffix.lower()[1:])
        if out is not None and str(out) == "-":
            _write(sys.stdout, network, inputs)
        else:
            _print(network, seconds)
            for what, path in (("links", out), ("picture", plot)):
                if path is not None:
                    Console().print(f"{what}: {path}", soft_wrap=True, highlight=False, markup=False)


def _read(
    profit: Path, supply: Path, demand: Path, held_out: Path | None, fixed: Path | None, forbidden: Path | None
) -> Inputs:
    """Read the files and see that their names go together."""
    profits = read_labelled(profit, negative=True, what="plants")
    plants, products = profits.rows, profits.columns
    capacity = read_labelled(supply, what="plants")
    if len(capacity.columns) != 1:
        raise ValueError(f"{supply} must have one column of numbers, it has {len(capacity.columns)}")
    there = {} if fixed is None else read_pairs(fixed, plants, products)
    banned = {} if forbidden is None else read_pairs(forbidden, plants, products)
    for (i, j), line in banned.items():
        if (i, j) in there:
            raise ValueError(
                f"{forbidden}, line {line}, columns 'plant' and 'product': the link of {plants[i]!r} and "
                f"{products[j]!r} cannot be forbidden, it is fixed by {fixed}, line {there[i, j]}"
            )
    return Inputs(
        plants,
        products,
        profits.values,
        in_order(capacity, plants, 0, profit)[:, 0],
        _scenarios(demand, profits),
        None if held_out is None else _scenarios(held_out, profits),
        list(there),
        list(banned),
    )


def _scenarios(path: Path, profits: Labelled) -> Floats:
    return in_order(read_labelled(path, what="scenarios"), profits.columns, 1, profits.path)


def _check_outputs(out: Path | None, plot: Path | None, given: list[Path]) -> None:
    """Endings that we can write, and no input among them, before any work."""
    for option, path, endings in (("--out", out, (".csv",)), ("--plot", plot, PICTURES)):
        if path is None or (option == "--out" and str(path) == "-"):
            continue
        if path.suffix.lower() not in endings:
            allowed = either(endings) if len(endings) > 1 else endings[0]
            raise ValueError(f"{option} {path} must end in {allowed}")
        if any(path.resolve() == other.resolve() for other in given):
            raise ValueError(f"{option} {path} would overwrite the input")
    if plot is not None:
        plotting.require_matplotlib()


def _write(file: TextIO, network: Design, inputs: Inputs) -> None:
    """A line for every link."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["order", "plant", "product", "expected_flow", "profit", "fixed"])
    flows = network.training.expected_flows
    for k, (i, j) in enumerate(network.links.tolist()):
        there = "yes" if k < network.fixed else "no"
        writer.writerow(
            [k + 1, inputs.plants[i], inputs.products[j], f"{flows[k]:.10g}", f"{inputs.profit[i, j]:.10g}", there]
        )


def _print(network: Design, seconds: float) -> None:
    """What the network earns, beside the classic ones."""
    train, test = network.training, network.held_out
    full, full_test = network.full
    table = Table(box=None, pad_edge=False)
    table.add_column("network", no_wrap=True)
    for heading in ("links", "expected profit", "of full", *(("held out", "of full") if test is not None else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = [("this design", len(network.links), train.expected, None if test is None else test.expected)]
    rows += [(one.name, one.links, one.expected, one.held_out) for one in network.comparison]
    for name, count, expected, held in rows:
        cells = [name, f"{count:,}", f"{expected:.6g}", _share(expected, full.expected)]
        if held is not None and full_test is not None:
            cells += [f"{held:.6g}", _share(held, full_test.expected)]
        table.add_row(*cells, style="bold" if name == "this design" else None)
    console = Console()
    console.print(table)
    moved = float(train.expected_flows.sum())
    worst = int(train.profits.argmin())
    lines = {
        "scenarios": f"{len(train.profits)}; profit from {train.profits[worst]:.6g} to {train.profits.max():.6g}",
        "capacity used": f"{100.0 * float(train.weights @ train.utilisation):.1f} % expected, "
        f"{100.0 * train.utilisation.min():.1f} % at the least",
        "demand unmet": _range(train.expected_unmet, train.unmet, moved),
        "capacity idle": _range(train.expected_idle, train.idle, moved),
        "time": duration(seconds),
    }
    for name, text in lines.items():
        console.print(f"{name}: {text}", highlight=False, soft_wrap=True)


def _range(expected: float, every: Floats, moved: float) -> str:
    """What is left over, expected and in the worst scenario; nothing, where it is the rounding of what is moved."""
    left = [0.0 if one <= 1e-9 * moved else one for one in (expected, float(every.sum(axis=1).max()))]
    return f"{left[0]:.6g} expected, {left[1]:.6g} at the most"


def _share(value: float, whole: float) -> str:
    return f"{100.0 * value / whole:.2f} %" if whole > 0.0 else ""
