"""From the files and options of ``sparsetransport solve`` to points, costs and masses, and to the problem."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .. import _checks
from .._checks import Floats
from ..geometry.kernels import Delta
from ..given import SAME_UNITS, masses_of
from ..problem import Problem
from . import reading, table
from .writing import Labels

Pair = tuple[Floats, Floats]
_T = TypeVar("_T")
SENSES = {"at-most": "<=", "exact": "=", "at-least": ">="}


class Inputs(NamedTuple):
    """The contents of the files: points, costs or both; masses and labels if given."""

    shape: tuple[int, int]
    points: Pair | None
    costs: Floats | None
    a: Floats | None
    b: Floats | None
    labels: Labels
    coordinates: list[str] | None = None  # their names

    @property
    def masses(self) -> Pair:
        """The masses of both sides; a side without any is uniform, with the total of the other one or with one."""
        return masses_of(self.a, self.b, self.shape)


class Sources(NamedTuple):
    """The role of each file; an NPZ file may hold several arrays, masses included (``bundle``)."""

    points: tuple[Path, Path] | None
    costs: Path | None
    bundle: Path | None


def read_inputs(
    source: Path | None,
    target: Path | None,
    cost_matrix: Path | None,
    a: Path | None,
    b: Path | None,
    *,
    columns: Sequence[Sequence[str]] = (),
    mass_column: Sequence[str] = (),
    label_column: Sequence[str] = (),
) -> Inputs:
    """Read the files and check that they match; errors name files and options.

    Options that name columns hold nothing, one name for both files of points, or one for each.
    """
    chosen, label = _each("columns", columns), _each("label-column", label_column)
    mass = _mass_columns(mass_column, a, b)
    files = _sources(source, target, cost_matrix)
    points, sides = None, None
    if files.points is not None:
        one, other = sides = (
            reading.read_points(files.points[0], "X", columns=chosen[0], mass=mass[0], label=label[0]),
            reading.read_points(files.points[1], "Y", columns=chosen[1], mass=mass[1], label=label[1]),
        )
        for k, file in enumerate((a, b)):
            if file is not None and mass_column and mass_column[0] in (sides[k].names or ()):
                raise ValueError(f"--{'ab'[k]} and --mass-column both give the masses of {files.points[k]}: choose one")
        points = _same_coordinates(one, other, files.points, by_name=len(columns) < 2)
    else:
        for name, value in (("columns", columns), ("mass-column", mass_column)):
            if value:
                raise ValueError(f"--{name} needs the files of two point sets")
        if len(label_column) > 1:
            raise ValueError("--label-column twice needs the files of two point sets")
    costs, labels = None, Labels(None, None)
    if files.costs is not None:
        costs, *names = reading.read_costs(files.costs, "C", label=label[0] if points is None else None)
        labels = Labels(*names)
    shape = _shape(points, costs, files.costs)
    if label_column and sides is not None:
        ours = Labels(sides[0].labels, sides[1].labels)
        for axis, what in enumerate(("row", "column")):
            order = _order(files.costs, labels[axis], ours[axis], "points", what)
            costs = costs if order is None or costs is None else costs.take(order, axis)
        labels = ours
    masses = []
    for k, path in enumerate((a, b)):
        column = None if sides is None else sides[k].mass
        what = "points" if sides else ("rows", "columns")[k]
        masses.append(_masses("ab"[k], path, column, files.bundle, shape[k], what, labels[k]))
    inputs = Inputs(shape, points, costs, masses[0], masses[1], labels, sides[0].names if sides else None)
    _require_masses(
        inputs, [path or (files.points[k] if files.points else files.bundle) for k, path in enumerate((a, b))]
    )
    return inputs


def _require_masses(inputs: Inputs, files: Sequence[Path | None]) -> None:
    """Raise an error if there is nothing to move, or if the masses of the two sides cannot be in the same units."""
    names = [f"{'ab'[k]} of {files[k]}" if (inputs.a, inputs.b)[k] is not None else "ab"[k] for k in (0, 1)]
    totals = [float(side.sum()) for side in inputs.masses]
    for name, total in zip(names, totals, strict=True):
        if not total:
            raise ValueError(f"the masses {name} are all zero: there is nothing to move")
    if max(totals) > SAME_UNITS * min(totals):
        raise ValueError(
            f"the masses {names[0]} have a total of {totals[0]:.3g} and the masses {names[1]} of {totals[1]:.3g}: "
            "give both sides in the same units"
        )


def _each(option: str, given: Sequence[_T]) -> tuple[_T | None, _T | None]:
    """The values for the first and for the second file; a single one is for both."""
    if len(given) > 2:
        raise ValueError(f"--{option} may be given once, for both files, or twice, got it {len(given)} times")
    return (given[0], given[-1]) if given else (None, None)


def _mass_columns(given: Sequence[str], a: Path | None, b: Path | None) -> tuple[str | None, str | None]:
    """The columns of masses, None for a side whose masses have their own file."""
    first, second = _each("mass-column", given)
    if len(given) + (a is not None) + (b is not None) > 2:
        raise ValueError(f"--{'b' if a is None else 'a'} and --mass-column both give the masses: choose one")
    return None if a is not None else first, None if b is not None else second


def _sources(source: Path | None, target: Path | None, cost_matrix: Path | None) -> Sources:
    """Find out the role of each file."""
    if source is not None and target is not None:
        return Sources((source, target), cost_matrix, None)
    if source is None:
        if cost_matrix is None:
            raise ValueError("give the files of two point sets, or --cost-matrix")
        return Sources(None, cost_matrix, cost_matrix)
    held = table.holds(source, "X", "Y", "C")
    costs = source if "C" in held and cost_matrix is None else cost_matrix
    if "X" in held and "Y" in held:
        return Sources((source, source), costs, source)
    if costs is source:
        return Sources(None, source, source)
    raise ValueError(f"give a second file of points: {source} is not an NPZ file with the arrays X and Y, or C")


def _same_coordinates(one: reading.Side, other: reading.Side, files: tuple[Path, Path], *, by_name: bool) -> Pair:
    """The points of both sides with their columns in the same order: ``by_name`` if the names are the same."""
    source, target = files
    width, other_width = one.points.shape[1], other.points.shape[1]
    if width != other_width:
        raise ValueError(f"{source} has {width} columns of coordinates and {target} has {other_width}")
    if not by_name or one.names is None or other.names is None or not set(one.names) & set(other.names):
        return one.points, other.points
    if sorted(one.names) != sorted(other.names):
        raise ValueError(
            f"{source} has the columns {', '.join(one.names)} and {target} has {', '.join(other.names)}: "
            "choose the columns of coordinates with --columns"
        )
    return one.points, other.points[:, [other.names.index(name) for name in one.names]]


def _shape(points: Pair | None, costs: Floats | None, file: Path | None) -> tuple[int, int]:
    """The shape of the plan, on which points and costs must agree."""
    if points is None:
        if costs is None:
            raise ValueError("give the files of two point sets, or --cost-matrix")
        return costs.shape[0], costs.shape[1]
    shape = len(points[0]), len(points[1])
    if costs is not None and costs.shape != shape:
        raise ValueError(f"{file} has the shape {costs.shape}, and there are {shape[0]} and {shape[1]} points")
    return shape


def _masses(
    key: str,
    path: Path | None,
    column: Floats | None,
    bundle: Path | None,
    size: int,
    what: str,
    labels: list[str] | None,
) -> Floats | None:
    """The masses of one side: from their own file, matched by names if it has any, a column, or the NPZ file."""
    if path is None and column is None and bundle is not None and table.holds(bundle, key):
        path = bundle
    if path is None:
        return column
    mass, names, titles = reading.read_masses(path, key)
    if len(mass) != size:
        raise ValueError(f"{path} has {len(mass)} masses {key}, and there are {size} {what}")
    if names is not None and labels is None:
        raise ValueError(f"{path} has names, and the {what} have none to match")
    order = _order(path, names or titles, labels, what, "mass", strict=names is not None)
    return mass if order is None else mass[order]


def _order(
    path: Path | None, names: list[str] | None, labels: list[str] | None, of: str, what: str, *, strict: bool = False
) -> list[int] | None:
    """The positions in a file that belong to each label; None to keep the order of the file.

    The order is kept if the file or the points have no names, or, unless ``strict``, no names in common.
    """
    if names is None or labels is None or names == labels or not (strict or set(names) & set(labels)):
        return None
    twice = next((name for name, times in Counter(labels).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"{path} has names, and {twice!r} is the name of several {of}")
    place = {name: k for k, name in enumerate(names)}
    for name in labels:
        if name not in place:
            raise ValueError(f"{path} has no {what} for {name!r}")
    return [place[name] for name in labels]


def build(
    inputs: Inputs,
    *,
    kernels: Any,
    metric: str | None,
    normalize: bool,
    unbalanced: Any,
    reg: float,
    sense: Any = "=",
    link_cost: float | Path | None = None,
) -> Problem:
    """The problem that files and options describe, with the names of its points."""
    problem = _unnamed(inputs, kernels, metric, normalize, unbalanced, reg, sense, link_cost)
    names = inputs.labels.rows, inputs.labels.cols
    return problem if names == (None, None) else replace(problem, labels=names)


def _unnamed(
    inputs: Inputs,
    kernels: Any,
    metric: str | None,
    normalize: bool,
    unbalanced: Any,
    reg: float,
    sense: Any,
    link_cost: float | Path | None,
) -> Problem:
    fees: Any = _matched_costs(link_cost, inputs) if isinstance(link_cost, Path) else link_cost
    if inputs.costs is None:
        x, y = inputs.points or (None, None)
        return Problem.from_points(
            x,
            y,
            inputs.a,
            inputs.b,
            metric=metric or "sqeuclidean",
            normalize_cost=normalize,
            kernels=kernels,
            unbalanced=unbalanced,
            reg=reg,
            sense=sense,
            link_cost=fees,
        )
    if metric is not None:
        raise ValueError("--metric must not be given with a matrix of costs")
    costs = inputs.costs
    if normalize:
        largest = float(np.max(costs, where=np.isfinite(costs), initial=0.0))
        costs = costs / largest if largest > 0.0 else costs
    if kernels is not None and not isinstance(kernels, Delta):
        if inputs.points is None:
            raise ValueError("--kernel other than delta, and --bandwidth, need the files of two point sets")
        kernels = tuple(kernels.gram(points) for points in inputs.points)
    return Problem.from_matrices(
        costs, inputs.a, inputs.b, kernels=kernels, unbalanced=unbalanced, reg=reg, sense=sense, link_cost=fees
    )


def number_or_file(option: str, text: str) -> float | Path:
    """A number that is not negative, or a file."""
    try:
        number = float(text)
    except ValueError:
        return Path(text)
    return _checks.number(option, number, positive=False)


def _matched_costs(path: Path, inputs: Inputs) -> Floats:
    """The costs of links in a file, matched by names if it has any."""
    fees, *names = reading.read_costs(path, "F")
    if fees.shape != inputs.shape:
        raise ValueError(f"{path} has the shape {fees.shape}, and the plan has {inputs.shape}")
    for axis, (held, labels, of) in enumerate(zip(names, inputs.labels, ("rows", "columns"), strict=True)):
        order = _order(path, held, labels, of, "cost of links", strict=held is not None and labels is not None)
        fees = fees if order is None else fees.take(order, axis)
    return fees
