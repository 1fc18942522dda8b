"""``sparsetransport design``."""

import csv
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated, NamedTuple, TextIO

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from .. import _checks
from .._checks import Floats, Ints
from .._numba.timer import compile_timer
from ..apps.network_design import Design, draw
from ..apps.network_design import design as choose
from ..apps.network_design.choose import DEMANDS, UNMET, unmet_demand
from ..given import SAME_UNITS
from .cells import label_cell, printable
from .console import Debug, duration, errors, in_background, plain_errors, say
from .inputs import SENSES, number_or_file
from .labelled import in_order, read_labelled, read_pairs
from .outputs import Output, output, picture

INPUT, LINKS, OUTPUT = "Input", "Links", "Output"


class Inputs(NamedTuple):
    """The contents of the files, plants and products in the order of the profits."""

    plants: list[str]
    products: list[str]
    profit: Floats
    supply: Floats
    demand: Floats
    held_out: Floats | None
    fixed: list[tuple[int, int]]
    forbidden: list[tuple[int, int]]
    weights: Floats | None


class Request(NamedTuple):
    """The limits on the number of links."""

    links: int | None
    max_per_plant: int | Ints | None
    max_per_product: int | Ints | None
    fixed_free: bool
    link_cost: float | Floats | None
    demand: str


def design(
    profit: Annotated[
        Path,
        typer.Option(help="Profit per unit: a CSV file, plants in rows, products in columns.", rich_help_panel=INPUT),
    ],
    supply: Annotated[
        Path, typer.Option(help="Capacity: a CSV file, a plant and a number in each row.", rich_help_panel=INPUT)
    ],
    demand: Annotated[
        Path, typer.Option(help="Demand: a CSV file, scenarios in rows, products in columns.", rich_help_panel=INPUT)
    ],
    links: Annotated[int | None, typer.Option(help="The largest number of links.", rich_help_panel=LINKS)] = None,
    link_cost: Annotated[
        str | None,
        typer.Option(help="The cost of a new link: a number, or a file as for --profit.", rich_help_panel=LINKS),
    ] = None,
    serve: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help=f"How much of the demand to serve: {', '.join(DEMANDS)} (all that the links can carry).",
            rich_help_panel=LINKS,
        ),
    ] = DEMANDS[0],
    fixed: Annotated[
        Path | None,
        typer.Option(help="Existing links: a CSV file with columns plant and product.", rich_help_panel=LINKS),
    ] = None,
    fixed_free: Annotated[
        bool, typer.Option("--fixed-free", help="Do not count the existing links in --links.", rich_help_panel=LINKS)
    ] = False,
    forbidden: Annotated[
        Path | None, typer.Option(help="Links that cannot be built: a file as for --fixed.", rich_help_panel=LINKS)
    ] = None,
    max_per_plant: Annotated[
        str | None,
        typer.Option(
            help="Largest number of links per plant: a number, or a file like --supply.", rich_help_panel=LINKS
        ),
    ] = None,
    max_per_product: Annotated[
        str | None,
        typer.Option(
            help="Largest number of links per product: a number, or a file like --supply.", rich_help_panel=LINKS
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(help="Weights of the scenarios: a CSV file with names and numbers.", rich_help_panel=INPUT),
    ] = None,
    held_out: Annotated[
        Path | None,
        typer.Option(help="Held-out scenarios to evaluate on: a file as for --demand.", rich_help_panel=INPUT),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the links: .csv, or - for standard output.", rich_help_panel=OUTPUT)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot the network and its profit: .png, .pdf or .svg.", rich_help_panel=OUTPUT)
    ] = None,
    debug: Debug = False,
) -> None:
    """Choose the links to build between plants and products, for demand given as scenarios."""
    with plain_errors(debug):
        if links is None and link_cost is None:
            raise ValueError("give --links, --link-cost or both")
        if links is not None:
            _checks.positive_int("--links", links)
        _checks.choice("--serve", serve, dict.fromkeys(DEMANDS))
        for option, path in (("--supply", supply), ("--demand", demand)):
            if str(path) in SENSES and not path.exists():
                raise ValueError(
                    f"{option} must be a file, got {path}: for how much of the demand to serve use --serve"
                )
        fee = None if link_cost is None else number_or_file("--link-cost", link_cost)
        if fixed_free and fixed is None:
            raise ValueError("--fixed-free needs --fixed, the file of existing links")
        limits = _limit("--max-per-plant", max_per_plant), _limit("--max-per-product", max_per_product)
        files = (profit, supply, demand, fixed, forbidden, held_out, weights, fee, *limits)
        given = [path for path in files if isinstance(path, Path)]
        network, drawing = output("links", out, (".csv",), given), picture(plot, given)
        inputs = _read(profit, supply, demand, held_out, fixed, forbidden, weights)
        most = _each(limits[0], inputs.plants, profit), _each(limits[1], inputs.products, profit)
        if links is not None and not fixed_free and len(inputs.fixed) > links:
            raise ValueError(f"--links {links} is fewer than the {len(inputs.fixed)} links of {fixed}")
        _run(inputs, Request(links, *most, fixed_free, _fees(fee, inputs, profit), serve), network, drawing)


def _run(inputs: Inputs, request: Request, out: Output, drawing: Output) -> None:
    """Choose the links, write the files and print the profits."""
    with drawing.file() as unfinished_picture:
        with out.file() as unfinished:  # closed before the plot begins: an error in the plot must not lose the links
            network, seconds = _design(inputs, request)
            lacking = unmet_demand(network, inputs.products, "--serve exact")
            if lacking is not None:
                say(f"Warning: {lacking}", "yellow")
            if unfinished is not None:
                with unfinished.open("w", encoding="utf-8", newline="") as file:
                    _write(file, network, inputs)
        if out.printed:
            _write(sys.stdout, network, inputs)
        else:
            _print(network, seconds, request)
            out.tell()
        if unfinished_picture is not None:
            _draw(unfinished_picture, drawing, network, inputs)
    if not out.printed:
        drawing.tell()


def _design(inputs: Inputs, request: Request) -> tuple[Design, tuple[float, float]]:
    """The design, and the seconds spent on it and on compiling."""
    started, compiled = time.perf_counter(), [0.0]
    with (
        warnings.catch_warnings(),
        errors().status("Choosing links (the first time Numba compiles, which can take a minute)"),
        compile_timer(compiled.append),
    ):
        warnings.filterwarnings("ignore", f"{re.escape(UNMET)} cannot be met")  # told with names, and our option
        network = in_background(
            lambda: choose(
                inputs.profit,
                inputs.supply,
                inputs.demand,
                request.links,
                inputs.fixed,
                inputs.forbidden,
                request.max_per_plant,
                request.max_per_product,
                link_cost=request.link_cost,
                demand=request.demand,
                count_fixed=not request.fixed_free or request.links is None,
                weights=inputs.weights,
                held_out=inputs.held_out,
            )
        )
        seconds = time.perf_counter() - started
        _ = network._classic
    return network, (seconds, compiled[-1])


def _draw(unfinished: Path, drawing: Output, network: Design, inputs: Inputs) -> None:
    """Draw the plot; errors name its file, and glyphs that a font lacks give one warning."""
    with errors().status("Drawing"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            figure = draw(
                network,
                plants=[printable(name) for name in inputs.plants],
                products=[printable(name) for name in inputs.products],
            )
            figure.savefig(unfinished, format=drawing.ending[1:])
        except Exception as error:
            raise RuntimeError(f"cannot draw {drawing.path}: {error}") from error
    lacking = [re.match(r"Glyph (\d+) .*missing from font\(s\) (.*)\.$", str(one.message)) for one in caught]
    signs = "".join(dict.fromkeys(chr(int(found[1])) for found in lacking if found))
    for found, one in zip(lacking, caught, strict=True):
        if found is None:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if signs:
        font = next(found[2] for found in lacking if found)
        say(
            f"Warning: the font {font} has no {signs}: {drawing.path} has boxes for them; "
            "a file matplotlibrc in this folder with the line font.family: NAME sets another font",
            "yellow",
        )


def _limit(option: str, text: str | None) -> int | Path | None:
    """One number for all, or a file with one for each."""
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        return Path(text)
    return _checks.positive_int(option, number)


def _each(limit: int | Path | None, names: list[str], profit: Path) -> int | Ints | None:
    """The numbers of such a file, in the order of the names."""
    if not isinstance(limit, Path):
        return limit
    numbers = _column(limit, names, profit)
    for name, number in zip(names, numbers.tolist(), strict=True):
        if number != int(number):
            raise ValueError(f"{limit}, row {name!r}: must be a whole number, got {number:g}")
    return numbers.astype(np.int64)


def _fees(cost: float | Path | None, inputs: Inputs, profit: Path) -> float | Floats | None:
    """What links cost: one number, or a file in the order of the profits."""
    if not isinstance(cost, Path):
        return cost
    table = read_labelled(cost, what="plants")
    by_plant = table._replace(values=in_order(table, inputs.plants, 0, profit), rows=inputs.plants)
    return in_order(by_plant, inputs.products, 1, profit)


def _column(path: Path, names: list[str], of: Path, what: str = "rows") -> Floats:
    """A number for each of the names."""
    table = read_labelled(path, what=what, expected=names)
    if len(table.columns) != 1:
        raise ValueError(f"{path} must have one column of numbers, it has {len(table.columns)}")
    return in_order(table, names, 0, of)[:, 0]


def _read(
    profit: Path,
    supply: Path,
    demand: Path,
    held_out: Path | None,
    fixed: Path | None,
    forbidden: Path | None,
    weights: Path | None,
) -> Inputs:
    """Read the files and check that their names match."""
    profits = read_labelled(profit, negative=True, what="plants")
    plants, products = profits.rows, profits.columns
    capacity = _column(supply, plants, profit, "plants")
    scenarios = read_labelled(demand, what="scenarios")
    totals = float(capacity.sum()), float(scenarios.values.sum(axis=1).max())
    for path, total, what in ((supply, totals[0], "capacity"), (demand, totals[1], "demand")):
        if not total:
            raise ValueError(f"{path} must have a {what} above zero, got zeros only")
    if max(totals) > SAME_UNITS * min(totals):
        raise ValueError(
            f"{supply} has a capacity of {totals[0]:.3g} in all and {demand} a demand of {totals[1]:.3g} at the most: "
            "give both in the same units"
        )
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
        capacity,
        in_order(scenarios, products, 1, profit),
        None if held_out is None else in_order(read_labelled(held_out, what="scenarios"), products, 1, profit),
        list(there),
        list(banned),
        None if weights is None else _column(weights, scenarios.rows, demand, "scenarios"),
    )


def _write(file: TextIO, network: Design, inputs: Inputs) -> None:
    """A line for every link."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["order", "plant", "product", "expected_flow", "profit", "fixed"])
    flows = network.training.expected_flows
    for k, (i, j) in enumerate(network.links.tolist()):
        there = "yes" if k < network.fixed else "no"
        ends = label_cell(inputs.plants[i]), label_cell(inputs.products[j])
        writer.writerow([k + 1, *ends, f"{flows[k]:.10g}", f"{inputs.profit[i, j]:.10g}", there])


def _print(network: Design, seconds: tuple[float, float], request: Request) -> None:
    """Print the profit of the network beside those of the classic networks."""
    train, test = network.training, network.held_out
    full, full_test = network.full
    table = Table(box=None, pad_edge=False)
    table.add_column("network", no_wrap=True)
    for heading in ("links", "expected profit", "of full", *(("held out", "of full") if test is not None else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = [("this design", len(network.links), train.expected, None if test is None else test.expected)]
    for name, one, other in network._classic:
        rows.append((name, len(one.links), one.expected, None if other is None else other.expected))
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
        "time": duration(seconds[0] - seconds[1])
        + (f", and {duration(seconds[1])} to compile, the first time only" if seconds[1] > 0.0 else ""),
    }
    if request.link_cost is not None:
        told = f"{network.cost_of_links:.6g}, which leaves a profit of {network.net_profit:.6g}"
        lines = {"cost of links": told} | lines
    asked = 0 if request.links is None else request.links + request.fixed_free * network.fixed
    if len(network.links) < asked and request.link_cost is None:
        lines = {"fewer links": f"{len(network.links):,} of {asked:,}, since {_why(network, request)}"} | lines
    for name, text in lines.items():
        console.print(f"{name}: {text}", highlight=False, soft_wrap=True)


def _why(network: Design, request: Request) -> str:
    """The reason why a network has fewer links than asked for."""
    others = np.zeros((len(network.training.idle[0]), len(network.training.unmet[0])), dtype=bool)
    others[tuple(network.full[0].links.T)] = True
    others[tuple(network.links.T)] = False
    if not others.any():
        return "no others may be built"
    limits = []
    for axis, name in enumerate(("plant", "product")):
        most = (request.max_per_plant, request.max_per_product)[axis]
        if most is not None:
            limits.append(f"--max-per-{name}")
            full = np.bincount(network.links[:, axis], minlength=others.shape[axis]) >= most
            others[(slice(None),) * axis + (full,)] = False
    within = " and ".join(limits)
    if not others.any():
        return f"no others are within {within}"
    return f"no other one {f'within {within}' if limits else 'that may be built'} is of use"


def _range(expected: float, every: Floats, moved: float) -> str:
    """The unused amount, expected and in the worst scenario; zero if it is within the rounding of what is moved."""
    left = [0.0 if one <= 1e-9 * moved else one for one in (expected, float(every.sum(axis=1).max()))]
    return f"{left[0]:.6g} expected, {left[1]:.6g} at the most"


def _share(value: float, whole: float) -> str:
    return f"{100.0 * value / whole:.2f} %" if whole > 0.0 else ""
