"""``sparsetransport demo``."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from .. import plotting
from ..apps import demo as ports_and_cities
from ..status import Status
from .console import Debug, duration, in_background, output_file, plain_errors

PICTURE = "sparsetransport-demo.png"


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the plot.")] = Path(),
    budget: Annotated[int, typer.Option(min=1, help="The number of links of the plan.")] = ports_and_cities.BUDGET,
    debug: Debug = False,
) -> None:
    """Solve a small example, container ports that serve cities over few links: a table and a plot, no download."""
    console = Console()
    picture = out / PICTURE
    with plain_errors(debug), output_file(picture) as unfinished:
        with console.status("Solving (the first time Numba compiles, which can take a minute)"):
            comparison = in_background(lambda: ports_and_cities.run(budget))
        _print_comparison(console, comparison)
        plotting.require_matplotlib()
        with console.status("Drawing"):
            ports_and_cities.draw(comparison).savefig(unfinished, format="png")
    console.print(f"\nPlot of the plan: {picture}", soft_wrap=True, highlight=False)


def _print_comparison(console: Console, comparison: ports_and_cities.Comparison) -> None:
    """Print the table and an explanation."""
    ports, cities = len(comparison.ports.names), len(comparison.cities.names)
    console.print(
        f"{ports} container ports, {cities} cities, {ports * cities:,} possible links. "
        "With only a few,\nwhich port should serve which city?\n",
        highlight=False,
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("plan", no_wrap=True)
    for heading in ("links", "objective", "bound", "gap", "error,\nports", "error,\ncities", "time"):
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
            "" if row.seconds is None else duration(row.seconds),
            style="bold" if row is best else None,
        )
    console.print(table)
    console.print(
        f"\nNo plan with {best.links} links is more than {100.0 * best.gap:.2f} % better: the bound proves it.\n"
        "Error: the marginal error, the share of containers sent from, or delivered to, the wrong place.",
        highlight=False,
    )
    console.print("\n" + _planned(comparison), highlight=False)
    if comparison.compile_seconds > 2.0:
        took = duration(comparison.compile_seconds)
        console.print(f"Compiling took {took} on top; compiled functions are kept for the next time.", highlight=False)


def _planned(comparison: ports_and_cities.Comparison) -> str:
    """What a planner would ask for: every city in full, and no port beyond its capacity."""
    result, names = comparison.planned, comparison.ports.names
    spare = f"{100.0 * (ports_and_cities.SPARE - 1.0):.0f} %"
    said = f"With {spare} more capacity than demand, hard limits for the ports and every city served in full"
    if result.status is Status.INFEASIBLE:
        missing = 100.0 * float(result.unserved[1].sum())
        return f"{said}, no plan with so few links was found: {missing:.1f} % of the demand stays unserved."
    idle = np.argsort(-result.idle[0], kind="stable")[:3]
    some = ", ".join(f"{names[k]} ({100.0 * result.idle[0][k]:.1f} %)" for k in idle.tolist())
    return f"{said}: {len(result.mass)} links, {1000.0 * result.value:,.0f} km on average; most is idle in {some}."
