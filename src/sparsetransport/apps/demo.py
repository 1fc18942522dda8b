"""The demo: container ports that serve cities, with a limited number of links.

Supply is a port's share of the containers handled, demand a city's share of the people, and cost the distance over
the globe. Marginal errors are measured with a Gaussian kernel: a delivery to a nearby city is nearly right.
"""

import csv
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from .._checks import Floats, Ints
from ..api import solve
from ..geometry.costs import cost_matrix
from ..geometry.kernels import RBF
from ..plotting import label_points, plot_edges, plot_path
from ..plotting._common import GREY
from ..problem import Problem
from ..result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EARTH = 6.371  # radius in thousands of kilometres
REACH = 0.25  # within so many thousand kilometres a delivery is nearly right
UNBALANCED = 300.0
REG = 3.0
BUDGET = 80
GAP_TOL = 1e-3
SPARE = 1.3  # capacity of the ports over demand, where ports send at most what they have

_T = TypeVar("_T")


class Places(NamedTuple):
    """Points on the globe with weights."""

    names: list[str]
    xyz: Floats  # (count, 3) on a sphere in thousands of kilometres
    weight: Floats  # (count,)

    @property
    def share(self) -> Floats:
        """The weights as shares of their total."""
        share: Floats = self.weight / self.weight.sum()
        return share


class Row(NamedTuple):
    """One plan of the comparison, as the table shows it."""

    name: str
    links: int
    objective: float
    lower_bound: float
    ports_off: float  # the marginal error of the ports, half the L1 distance
    cities_off: float  # and of the cities
    seconds: float | None = None

    @property
    def gap(self) -> float:
        """The optimality gap as a share of the objective."""
        return max(self.objective - self.lower_bound, 0.0) / self.objective


class Comparison(NamedTuple):
    """The plan with a budget, and the plans it is compared with."""

    ports: Places
    cities: Places
    result: Result
    rows: list[Row]  # the last one is the plan with the budget
    planned: Result  # supply at most, demand exactly, as many links
    compile_seconds: float  # the extra seconds of the first call


def run(budget: int = BUDGET) -> Comparison:
    """Solve the demo's problem with a budget, and compare with the unbudgeted optimum and its largest links.

    Examples
    --------
    >>> from sparsetransport.apps.demo import run
    >>> run(budget=80).result
    Result(80 of 21x60 entries, value=0.402..., ...the certified gap is within the tolerance asked for)
    """
    ports, cities = read("ports.csv", "teu_millions"), read("cities.csv", "population_millions")
    problem = transport(ports, cities)
    with_budget = partial(solve, problem, budget=budget, gap_tol=GAP_TOL)
    first_seconds, _ = _timed(with_budget)
    seconds, result = _timed(with_budget)
    bound = result.certify().lower_bound
    free_seconds, free = _timed(partial(solve, problem))

    heaviest = np.argsort(-free.mass, kind="stable")[:budget]
    cut = free.rows[heaviest], free.cols[heaviest]
    again = solve(transport(ports, cities, only=cut))
    row = partial(_row, problem)
    rows = [
        row("no budget", free.rows, free.cols, free.mass, free.certify().lower_bound, free_seconds),
        row(f"its {len(heaviest)} largest links", *cut, free.mass[heaviest], bound),
        row("same, re-optimised", again.rows, again.cols, again.mass, bound),
        row(f"budget of {budget} links", result.rows, result.cols, result.mass, bound, seconds),
    ]
    planned = solve(
        distances(ports.xyz, cities.xyz),
        SPARE * ports.share,
        cities.share,
        budget=budget,
        unbalanced=np.inf,
        sense=("<=", "="),
    )
    return Comparison(ports, cities, result, rows, planned, max(first_seconds - seconds, 0.0))


def transport(ports: Places, cities: Places, *, only: tuple[Ints, Ints] | None = None) -> Problem:
    """The problem, with every link allowed or only those between the rows and columns given."""
    cost, kernel = distances(ports.xyz, cities.xyz), RBF(REACH**2)
    if only is not None:
        allowed = np.zeros(cost.shape, bool)
        allowed[only] = True
        cost = np.where(allowed, cost, np.inf)
    kernels = kernel.gram(ports.xyz), kernel.gram(cities.xyz)
    return Problem.from_matrices(cost, ports.share, cities.share, kernels=kernels, unbalanced=UNBALANCED, reg=REG)


def _row(
    problem: Problem, name: str, rows: Ints, cols: Ints, mass: Floats, bound: float, seconds: float | None = None
) -> Row:
    sums = problem.marginals(rows, cols, mass)
    ports_off, cities_off = (
        0.5 * float(np.abs(s - w).sum()) for s, w in zip(sums, (problem.a, problem.b), strict=True)
    )
    return Row(name, len(mass), problem.value(rows, cols, mass), bound, ports_off, cities_off, seconds)


def read(name: str, weight: str) -> Places:
    """The places in one of the data files of the package."""
    table = list(_records(name))
    lat, lon = (np.array([float(line[key]) for line in table]) for key in ("lat", "lon"))
    return Places(
        [line["name"] for line in table], on_sphere(lat, lon), np.array([float(line[weight]) for line in table])
    )


def _records(name: str) -> Iterator[dict[str, str]]:
    source = resources.files("sparsetransport").joinpath("data", name)
    with source.open(encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def on_sphere(lat: Floats, lon: Floats) -> Floats:
    """Points in space from degrees north and east."""
    north, east = np.radians(lat), np.radians(lon)
    return EARTH * np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=1)


def distances(x: Floats, y: Floats) -> Floats:
    """Distances over the globe in thousands of kilometres."""
    chord = cost_matrix(x, y, "euclidean")
    return np.asarray(2.0 * EARTH * np.arcsin(chord / (2.0 * EARTH)))


def flat(xyz: Floats, *, lat: float = 49.0, lon: float = 9.0) -> Floats:
    """The globe projected as seen from above a point: east and north in thousands of kilometres."""
    up, right = np.radians(lat), np.radians(lon)
    east = np.array([-np.sin(right), np.cos(right), 0.0])
    north = np.array([-np.sin(up) * np.cos(right), -np.sin(up) * np.sin(right), np.cos(up)])
    seen: Floats = xyz @ np.stack([east, north], axis=1)
    return seen


def _timed(call: Callable[[], _T]) -> tuple[float, _T]:
    begin = time.perf_counter()
    answer = call()
    return time.perf_counter() - begin, answer


def draw(comparison: Comparison) -> "Figure":
    """The map of the plan, and beside it the objective and its bound along the path."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 6.6), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[2.1, 1.0])
    _draw_path(right, comparison.result)
    _draw_map(left, comparison)
    return figure


def _draw_map(ax: "Axes", comparison: Comparison) -> None:
    ports, cities, result = comparison.ports, comparison.cities, comparison.result
    x, y = flat(ports.xyz), flat(cities.xyz)
    _draw_land(ax)
    plot_edges(x, y, result, ax=ax, weights=(ports.weight, cities.weight), widest=6.0)
    everything = np.concatenate([x, y])
    low, high = everything.min(axis=0) - 0.22, everything.max(axis=0) + 0.22
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[], facecolor="#EEF3F7")
    ax.spines[:].set_color("0.72")
    m, n = len(ports.names), len(cities.names)
    title = f"{len(result.mass)} of {m * n:,} possible links from {m} container ports to {n} cities"
    ax.set_title(title, fontsize=11, loc="left")
    key = "squares: ports, by containers\ncircles: cities, by people\nlinks: by what they carry"
    ax.text(0.015, 0.98, key, transform=ax.transAxes, va="top", fontsize=8.5, color="0.25", linespacing=1.5)
    own_name = np.array([name not in ports.names for name in cities.names])
    for first, last, farthest in ((0, 5, 30.0), (5, None, 10.0)):  # the heaviest are always named
        for places, wanted in ((ports, np.ones(m, bool)), (cities, own_name)):
            which = [k for k in np.argsort(-places.weight, kind="stable") if wanted[k]][first:last]
            style = {"fontsize": 8.5, "weight": "bold"} if places is ports else {"fontsize": 7.5}
            label_points(flat(places.xyz)[which], [places.names[k] for k in which], ax=ax, farthest=farthest, **style)


def _draw_land(ax: "Axes") -> None:
    table = np.array([[float(line[key]) for key in ("ring", "lat", "lon")] for line in _records("land.csv")])
    for ring in np.unique(table[:, 0]):
        lat, lon = table[table[:, 0] == ring, 1:].T
        ax.fill(*flat(on_sphere(lat, lon)).T, facecolor="white", edgecolor="0.72", linewidth=0.7, zorder=1)


def _draw_path(ax: "Axes", result: Result) -> None:
    plot_path(result, ax=ax, bounds=8)
    ax.annotate(
        f"{len(result.mass)} links\ncertified gap {100.0 * result.relative_gap:.2f} %",
        (len(result.mass), result.value),
        (0.95, 0.25),
        textcoords="axes fraction",
        ha="right",
        arrowprops={"arrowstyle": "-", "color": GREY, "shrinkB": 6},
    )
    ax.set_xlabel("links")
    ax.set_title("The objective as links are added", fontsize=11, loc="left")
