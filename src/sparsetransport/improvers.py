"""What makes a plan better: the improvers of an `Effort`, carried out by a solver."""

from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from . import effort
from ._checks import Floats, Ints
from .effort import Effort
from .engine.omp_solver import OMPSolver
from .engine.shared_solver import SharedSolver


@singledispatch
def improve(how: Any, solver: OMPSolver | SharedSolver, built: float) -> None:
    """Make the plan of a solver better; growing it took so many operations."""
    raise TypeError(f"effort must hold improvers for these kernels, got {how!r}")


@improve.register
def _(how: effort.Grow, solver: OMPSolver | SharedSolver, built: float) -> None:
    solver.grow()


@improve.register
def _(how: effort.Swap, solver: OMPSolver | SharedSolver, built: float) -> None:
    solver.swap(how.free + how.share * max(built, 1.0), how.passes)


@improve.register
def _(how: effort.Eliminate, solver: OMPSolver | SharedSolver, built: float) -> None:
    extra = min(max(solver.size, how.least), how.most)
    solver.eliminate(extra, how.free + how.share * max(built, 1.0) if how.passes else 0.0, how.passes)


@improve.register
def _(how: effort.Repeat, solver: OMPSolver | SharedSolver, built: float) -> None:
    before = -np.inf
    while before < solver.gain and not solver.stopped:
        before = solver.gain * (1.0 + 1e-12)
        for improver in how.improvers:
            improve(improver, solver, built)


def improve_all(improvers: Sequence[Any], solver: OMPSolver | SharedSolver) -> None:
    """Carry out improvers, whose operations are limited by those of growing."""
    built = 0.0
    for improver in improvers:
        if not solver.stopped:
            improve(improver, solver, built)
        if isinstance(improver, effort.Grow):
            built = solver.effort[0]


def finish_of(how: Effort) -> Iterator[effort.Regrow]:
    """The improvers of the best plan."""
    for improver in how.finish:
        if not isinstance(improver, effort.Regrow):
            raise TypeError(f"effort must hold improvers of the best plan in finish, got {improver!r}")
        yield improver


def part_of(mass: Floats, cost: Floats, share: float, rng: np.random.Generator) -> Ints:
    """Which links to keep, if a share of them is dropped: one less at least, and one at least.

    Draws are made from the links in the order of their masses and costs, so that they are the same for a problem whose
    points come in another order.
    """
    order = np.lexsort((cost, np.round(mass / (mass.max() or 1.0), 9)))
    return order[rng.permutation(mass.size)[: max(mass.size - max(round(share * mass.size), 1), 1)]]
