"""The choice among known stars: every column has one, every row is in one at the most; see `stars`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .stars_pricing import Bools

_SCALE = 1e3  # of the gap in the integer programme, whose solver has absolute tolerances
_SURE = 1e-7  # of the gap: what these tolerances may leave out


class Stars:
    """Stars that are known: their columns, links and costs, without prices."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.columns: list[int] = []
        self.links: list[Ints] = []
        self.costs: list[float] = []
        self._known: set[tuple[int, bytes]] = set()

    def __len__(self) -> int:
        return len(self.columns)

    def only(self, which: Ints) -> "Stars":
        """Some of them."""
        left = Stars(self.rows)
        left.columns = [self.columns[k] for k in which]
        left.links, left.costs = [self.links[k] for k in which], [self.costs[k] for k in which]
        return left

    def is_new(self, column: int, links: Bools) -> bool:
        """True if a star is not among them."""
        return (column, np.packbits(links).tobytes()) not in self._known

    def add(self, column: int, links: Bools, cost: float) -> None:
        """Add a star."""
        self._known.add((column, np.packbits(links).tobytes()))
        self.columns.append(column)
        self.links.append(np.flatnonzero(links))
        self.costs.append(cost)

    @property
    def sizes(self) -> Ints:
        """How many links each has."""
        return np.array([each.size for each in self.links], np.int64)

    def priced(self, prices: Floats) -> Floats:
        """The costs of the stars with prices of their links."""
        found = np.add.reduceat(np.append(prices[np.concatenate(self.links)], 0.0), _starts(self.sizes))
        return np.array(self.costs) + np.where(self.sizes > 0, found, 0.0)

    def relaxed(self, columns: int, total: int) -> tuple[float, Floats]:
        """The least cost of shares of stars, with at most ``total`` links, and the prices of the rows."""
        from scipy.optimize import linprog
        from scipy.sparse import csc_array, vstack

        is_limited = total < self.rows
        links = _matrix(self.links, self.rows)
        solved = linprog(
            np.array(self.costs),
            A_ub=vstack([links, csc_array(self.sizes[None, :].astype(float))]) if is_limited else links,
            b_ub=np.append(np.ones(self.rows), [float(total)] if is_limited else []),
            A_eq=_matrix([np.array([each]) for each in self.columns], columns),
            b_eq=np.ones(columns),
            bounds=(0.0, None),
            method="highs-ds",
        )
        if solved.x is None:
            return -np.inf, np.zeros(self.rows)
        prices = np.maximum(-solved.ineqlin.marginals, 0.0)
        return float(solved.fun or 0.0), prices[: self.rows] + (prices[self.rows] if is_limited else 0.0)


class Choice(NamedTuple):
    """A lower bound in shares of the gap, at most one, and the stars of a choice that closes less, if there is one."""

    bound: float
    chosen: Ints | None


def choose(
    stars: Stars, reduced: Floats, prices: Floats, more: float, columns: int, total: int, seconds: float, branches: int
) -> Choice:
    """The least sum of reduced costs, all of them in shares of the gap, by an integer programme.

    A row in no star costs its price, a link below ``total`` costs ``more``.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import hstack, identity

    is_limited, left = total < stars.rows, np.flatnonzero(prices <= 1.0 + _SURE)  # a row that costs more is in a star
    links = hstack([_matrix(stars.links, stars.rows), identity(stars.rows, format="csc")[:, left]])
    own = hstack([_matrix([np.array([each]) for each in stars.columns], columns), _matrix([], columns, left.size)])
    cost = np.concatenate([np.maximum(reduced, 0.0), prices[left]])
    constraints = [LinearConstraint(links, 1.0, 1.0), LinearConstraint(own, 1.0, 1.0)]
    constant = 0.0
    if is_limited:
        sizes = np.concatenate([stars.sizes, np.zeros(left.size)])
        constraints.append(LinearConstraint(sizes[None, :], -np.inf, float(total)))
        cost, constant = cost - more * sizes, more * total
    solved = milp(
        _SCALE * cost,
        constraints=constraints,
        integrality=np.concatenate([np.ones(len(stars)), np.zeros(left.size)]),
        bounds=Bounds(0.0, 1.0),
        options={"time_limit": max(seconds, 1e-3), "mip_rel_gap": 0.0, "node_limit": branches},
    )
    if solved.status == 2:  # infeasible
        return Choice(1.0 - _SURE, None)
    bound = -np.inf if solved.mip_dual_bound is None else solved.mip_dual_bound / _SCALE + constant - _SURE
    if solved.x is None:
        return Choice(bound, None)
    chosen = np.flatnonzero(solved.x[: len(stars)] > 0.5)
    return Choice(min(bound, 1.0 - _SURE), chosen)


def _starts(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]])


def _matrix(lists: Sequence[Ints], rows: int, empty: int = 0) -> Any:
    """A sparse matrix with ones at these places of its columns, and empty columns after them."""
    from scipy.sparse import csc_array

    starts = np.cumsum([0, *(each.size for each in lists), *[0] * empty])
    places = np.concatenate([np.zeros(0, np.int64), *lists])
    return csc_array((np.ones(places.size), places, starts), shape=(rows, len(lists) + empty))
