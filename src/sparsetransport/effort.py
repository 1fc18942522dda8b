"""How much a solve does, as data: starts, improvers and their limits. `strategy` carries it out.

Every threshold that steers a search is a field here. "Operations" are multiplications and comparisons, counted by the
solvers themselves, so that results depend neither on the machine nor on its load; a core does about 1e9 a second.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np

from . import _checks
from ._checks import Floats

# --- improvers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grow:
    """Add the pair with the steepest gradient, solve for all masses, reclaim empty entries; until nothing helps."""


@dataclass(frozen=True)
class Swap:
    """Exchange one or two entries for better pairs."""

    passes: float = inf  # over all promising exchanges, at the most
    share: float = 4.0  # operations for each one of growing, at the most,
    free: float = 1e7  # and so many operations on top


@dataclass(frozen=True)
class Eliminate:
    """Grow beyond the budget, delete what is missed least, grow again: backward elimination."""

    least: int = 128  # entries beyond the budget: as many as the plan has, but so many at least,
    most: int = 500  # and so many at the most
    passes: float = 2.0  # of swaps before the new plan is compared with the old one,
    share: float = 4.0  # with so many operations for each one of growing,
    free: float = 1e7  # and so many on top


@dataclass(frozen=True)
class Repeat:
    """Improvers one after the other, again for as long as they lower the objective."""

    improvers: tuple[Any, ...]  # in this order


@dataclass(frozen=True)
class TreeSearch:
    """Local search on trees of links, for `Delta` kernels without ``reg``."""

    near: int = 16  # points of a tree around a link that are offered other links in its place
    gain: float = 1e-5  # of the objective: what a round over all points must bring, if there is to be another one
    operations: float = 2e10  # of a round, beyond which only rounding goes on


@dataclass(frozen=True)
class Perturb:
    """Force links into the trees, search on, and go back if the plan is no better."""

    # operations for each one of the tree search before, and so many on top, of the pair that allows least: the first
    # is for plans that take milliseconds, the second for seconds, the third for longer
    limits: tuple[tuple[float, float], ...] = ((48.0, 3e6), (12.0, 3.6e7), (0.0, 1.7e8))  # pairs of operations
    close: float = 1e-3  # of the unbudgeted optimum: a plan within this is good enough
    looks: int = 1  # how often the gap is looked at on the way
    targets: int = 16  # one of so many points may be the other end of a link that is forced in
    reach: int = 1  # points around a changed one that are looked at again
    each: float = 1e8  # operations at the most that follow one link
    worse: float = 0.0  # of the objective, by which a plan may be worse than the best one and still lead on
    seed: int = 0  # of the random draws


@dataclass(frozen=True)
class Regrow:
    """Drop random links of the best plan, grow and improve the rest, and go back if the plan is no better."""

    rounds: int = 8  # at the most
    share: float = 0.3  # of the links that are dropped
    operations: float = 2e7  # of all rounds together; none begins that would take more, as long as the last did
    asking: float = 1e8  # the same with a budget of the user's own, whose questions count as operations
    seed: int = 0  # of the random draws


# --- starts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grown:
    """What the user gave to begin with, or nothing, grown."""


@dataclass(frozen=True)
class Matching:
    """For budgets of one link a row and column: the assignment that gains most if every link stood alone.

    On trees it is the optimum, and the only start.
    """

    pairs: int = 4_000_000  # of the problem, at the most


@dataclass(frozen=True)
class Mean:
    """For scenarios that share links: the plan of the mean scenario."""

    operations: float = 2e9  # to solve all scenarios on its links, at the most


@dataclass(frozen=True)
class Unregularised:
    """For `Delta` kernels with ``reg``: the plan without it."""


@dataclass(frozen=True)
class Found:
    """The plan that a smaller effort finds."""

    effort: "Effort"  # that finds it


@dataclass(frozen=True)
class DualWish:
    """With ``reg``: the entries that the dual point of the proof asks for."""

    pairs: int = 5_000_000  # of the problem, at the most


@dataclass(frozen=True)
class Regularised:
    """Without ``reg``: the plan with a little of it."""

    share: float = 0.01  # of the objective is the quadratic term


@dataclass(frozen=True)
class Optimum:
    """What the budget leaves of the unbudgeted optimum."""

    links: int = 4000  # of the optimum, at the most
    eliminate: bool = False  # by backward elimination; else grown from its links, the largest first


@dataclass(frozen=True)
class Random:
    """Plans grown from random pairs."""

    count: int = 24  # starts, at the most
    looks: int = 50_000_000  # pairs that all starts together may have
    share: float = 0.25  # of all pairs that a start is grown from,
    pairs: int = 25_000  # or so many pairs at the most
    operations: float = 1e8  # after which no new start is made


# --- large problems --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DevicePrices:
    """On a GPU: dual prices, and a plan that follows from them."""

    coarsest: int = 1000  # points a side of the problem that is solved first, with all pairs
    shrink: int = 8  # times fewer points from one level to the next
    lists: int = 16  # pairs of every row and column on the lists
    begin: tuple[float, ...] = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)  # smoothing, of the typical size, at first,
    stages: tuple[float, ...] = (1.0, 0.3, 0.1)  # and at every other level
    iterations: int = 100  # of a stage
    proximal: int = 4  # stages that take the smoothing off again,
    refining: int = 60  # iterations of each,
    rounds: int = 10  # with new lists, at the most: more than once where the gap asked for is not reached
    newton: int = 7  # steps of Newton's method for the price of a row,
    newton_long: int = 12  # and where it has many candidates
    steeper: float = 1.3  # times the curvature of a column where the dual value falls,
    gentler: float = 0.98  # and at every other step
    reach: float = 4.0  # how far prices may rise in the first stage of a level, in widths of a list
    fall: float = 0.05  # of the objective: prices whose bound falls by more ran away,
    allowance: float = 0.25  # and go back to the best ones and so many widths of a list
    seed: int = 0  # of the points of coarser levels


@dataclass(frozen=True)
class Listed:
    """For large problems with a budget that forbids the plan from dual prices: tree search on short lists of pairs."""

    above: float = 5e9  # links of the budget times pairs; with fewer, a plan grows faster by scans of all pairs
    pivots: int = 2  # rounds of pivots towards the unbudgeted optimum before,
    lists: int = 6  # pairs of every row and column at the potentials of the plan, and so many at those after a cut
    rounds: int = 40  # of new lists, at the most,
    gain: float = 1e-4  # of the objective: what a round must bring, if there is to be another one
    close: float = 2e-3  # or until the certified relative gap is below this, unless another one is asked for
    grown: float = 0.5  # of the most that a pair gains: what others must gain to be linked with it,
    anew: float = 0.01  # links a point: after so many new ones there are new lists, and more of them, before the search
    search: TreeSearch = TreeSearch(near=4)  # with each of the lists
    matching: int = 16  # pairs of every row and column that a matching to begin with may have,
    width: float = 2.0  # unless one side has so many times more points,
    few: float = 1.5  # or the budget allows more links for each point of the larger side, and masses differ


@dataclass(frozen=True)
class Prices:
    """For large problems with `Delta` kernels and no ``reg``: dual prices, and a plan that follows from them.

    Prices are raised from a few points to all of them, on lists of the pairs that are cheapest at the prices so far.
    """

    above: int = 20_000_000  # pairs: what is not larger is solved without prices
    coarsest: int = 400  # points a side of the problem that is solved first, with all pairs
    shrink: int = 8  # times fewer points from one level to the next
    lists: int = 16  # pairs of every row and column on the lists
    longest: int = 64  # the same where prices ran away, and lists were made longer
    begin: tuple[float, ...] = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)  # smoothing, of the typical size, at first,
    stages: tuple[float, ...] = (3.0, 0.3, 0.06)  # and at every other level
    proximal: int = 2  # more stages with all points, which take the smoothing off again
    iterations: int = 150  # of a stage, at the most
    error: float = 3e-4  # marginal error, of all masses, that ends a stage
    rough: float = 2e-3  # the same before the last stage of a level
    exact: float = 1e-4  # the same with all pairs
    fall: float = 2e-3  # of the objective: prices whose dual value falls by more ran away
    reach: float = 4.0  # how far prices may move then, in widths of a list
    seed: int = 0  # of the points of coarser levels
    pivots: int = 8  # pairs of every row and column that may replace links of the plan, in a round,
    kept: int = 16  # and so many a point, of either side, that stay from earlier rounds
    operations: float = 1e9  # of the network simplex in a round, at the most
    rounds: int = 60  # of these, at the most,
    close: float = 1e-4  # or until the certified relative gap is below this
    budgets: Listed | None = Listed()  # for budgets of fewer links; None: those are solved without prices
    on_device: DevicePrices = DevicePrices()  # what a GPU does in place of the above


# --- bounds ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ByParts:
    """The bound by the cheapest partition of few points into parts: see `certify.components`."""

    points: int = 20  # of both sides, at the most
    columns: int = 60  # parts that enter the linear programme at a time
    rounds: int = 400  # of the linear programme
    programme: int = 100_000  # parts that the integer programme at the end may have


@dataclass(frozen=True)
class Branching:
    """Branch and bound over the links of small problems: see `certify.branching`."""

    pairs: int = 400  # of the problem, at the most
    nodes: int = 200  # at the most, unless there is a time limit


PROOFS = "cheap", "tight", "all"  # bounds, by what they cost

# --- all of it -------------------------------------------------------------------------------------------------------


class Tuning(NamedTuple):
    """The fields of `Effort` that compiled functions read."""

    list_size: int
    list_depth: int
    list_refresh: float
    list_slack: float
    priced_above: int
    swap_width: int
    swap_few: int
    swap_pairs: int
    patience: float
    placed: int
    given_up: int


@dataclass(frozen=True)
class Effort:
    """What a solve does: every start goes through the improvers, and the best plan through those at the end.

    Change one with ``dataclasses.replace``. On `Delta` kernels without ``reg``, where links without a cycle are enough,
    ``tree_starts``, ``tree_improvers`` and ``tree_finish`` take the place of ``starts``, ``improvers`` and ``finish``,
    if there are any.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np, sparsetransport as st
    >>> short = replace(st.DEFAULT, tree_finish=())  # no perturbation
    >>> C = np.random.default_rng(0).random((20, 20))
    >>> st.solve(C, budget=20, effort=short).value >= st.solve(C, budget=20).value
    True
    """

    starts: tuple[Any, ...] = (Grown(), Matching(), Mean())  # in this order
    improvers: tuple[Any, ...] = (Grow(), Swap(passes=2.0), Eliminate(), Swap())  # of every start, in this order
    finish: tuple[Any, ...] = ()  # improvers of the best plan
    prices: Prices | None = None  # that take the place of everything below for large problems without ``reg``
    tree_starts: tuple[Any, ...] = ()  # in this order
    tree_improvers: tuple[Any, ...] = ()  # of every start on trees
    tree_finish: tuple[Any, ...] = ()  # improvers of the best plan on trees

    # growing, and when to look for the unbudgeted optimum at once
    grown_links: int = 1000  # that a plan has before the optimum is sought at once, and its budget allows more,
    grown_links_per_point: float = 1.0  # or so many links a point, if that is more
    grown_tree_links: int = 500  # the same on trees,
    free_tree_links: int = 10  # or so many where no budget limits them, and there are more
    free_tree_points: int = 150  # than so many points of both sides together
    newton_points: int = 4000  # of both sides together up to which Newton's method seeks the optimum
    towards_links: int = 2000  # of a plan on the way to it, where the optimum takes too long

    # the candidate list that stands for all pairs while it is nearly as good
    list_above: int = 250_000  # pairs; smaller problems are scanned at every step
    shared_list_above: int = 20_000_000  # pairs times scenarios
    list_size: int = 256  # pairs
    list_depth: int = 4  # pairs a column, or a row, that are offered to the list
    list_refresh: float = 64.0  # additions between two scans
    list_slack: float = 0.95  # of the best gradient left out is what a listed pair must have
    priced_above: int = 4_000_000  # pairs of lazy costs; those of smaller problems are all computed in every scan

    # swaps
    swap_width: int = 8  # pairs from outside that compete for the capacity of the whole plan,
    swap_few: int = 8  # unless the plan has so few entries
    swap_pairs: int = 2500  # and the problem so few pairs that all compete
    shared_work: float = 1e9  # operations on factors, at the most, for swaps and elimination of shared links

    # hard marginals
    hard_weights: tuple[float, ...] = (1e4, 1e3, 1e6, 1e8)  # of their errors, a round each: mean costs over mean masses

    hard_least: float = 1e-2  # of the mean mass of a side: points that must have less are sought as if they wanted this

    hard_in_use: float = 1e-3  # of the mean cost: where those in use are below, the weight follows from them, once more

    hard_searches: int = 3  # of the first so many weights are whole ones; later ones improve the best plan

    # fixed costs of links
    slope_rounds: int = 10  # of linear costs in their place, at the most, that make the first plan
    charged_weights: tuple[float, ...] = (1e7, 1e8)  # of hard marginals in place of ``hard_weights``
    charged_finish: tuple[Any, ...] = ()  # improvers of the best plan on trees in place of ``tree_finish``

    patience: float = 64.0  # steps that gain nothing; degenerate ones may lead to others that do
    placed: int = 8192  # links of a start that are factorised at once, at the most
    given_up: int = 64  # one in so many of the links that a matroid of the user's own refuses is given up at a time
    threads_above: int = (
        2_000_000  # pairs times scenarios; for less, handing work to threads takes longer than the work
    )
    batch_pairs: int = 250_000  # of a problem that is solved together with others, at the most

    # proofs
    parts: ByParts = ByParts()  # the bound by parts
    branching: Branching = Branching()  # branch and bound
    diagonal_points: int = 400  # of a side, at the most, for a search for what points of its kernel count by themselves
    degree_links: int = 4  # of a point that the bound by degrees tells apart
    degree_pairs: int = 1_000_000  # of the problem, at the most, for the bound by degrees
    proofs: str = "cheap"  # bounds that `Result.certify` computes with this effort: one of `PROOFS`
    search_share: float = 0.3  # of a time limit that the search may take if stronger bounds are to follow
    bound_share: float = 0.5  # of the time left that a bound may take if there is another one to follow
    star_pairs: int = 250_000  # of a problem whose stars are priced, at the most
    star_rounds: int = 1000  # of pricing, at the most
    star_mix: float = 0.3  # of the way from the best prices so far to those of the linear programme, for the next ones
    star_share: float = 0.1  # of the gap that the linear programme may leave before the integer programme is tried
    star_nodes: float = 2000.0  # of the search for the cheapest star of a column, at first
    star_list: int = 100_000  # stars of the integer programme, at the most,
    star_list_nodes: float = 1e6  # found by so many nodes a column
    star_branches: int = 10_000  # nodes of an integer programme,
    star_seconds: float = 60.0  # and how long it may take
    split_pairs: int = 40_000  # of a problem whose rows may be split between stars, at the most
    split_rounds: int = 200  # of pricing, at the most
    split_nodes: float = 2000.0  # of the search for the cheapest star of a column
    split_width: float = 0.4  # of the box around the best prices, in natural units, at first,
    split_least: float = 1e-4  # and at the least
    split_close: float = 1e-6  # of the objective, by which the bound may fall short of the linear programme

    @cached_property
    def tuning(self) -> Tuning:
        """The fields that compiled functions read."""
        return Tuning(*(getattr(self, name) for name in Tuning._fields))

    @cached_property
    def program(self) -> Floats:
        """The improvers as numbers, one row each, for the compiled batch; no rows if that does not know them all.

        Columns: what to do (see `engine.batch_solver`), passes, share, free, and entries beyond the budget.
        """
        rows = []
        for each in self.improvers:
            if isinstance(each, Grow):
                rows.append((0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
            elif isinstance(each, Swap):
                rows.append((1.0, each.passes, each.share, each.free, 0.0, 0.0))
            elif isinstance(each, Eliminate):
                rows.append((2.0, each.passes, each.share, each.free, each.least, each.most))
            else:
                return np.zeros((0, 6))
        return np.array(rows).reshape(-1, 6)

    def beyond(self, entries: int) -> int:
        """How many entries a plan of so many may have beyond its budget on the way."""
        return max(
            (min(max(entries, each.least), each.most) for each in self.improvers if isinstance(each, Eliminate)),
            default=0,
        )

    @property
    def improves(self) -> bool:
        """True if it does more than growing."""
        return any(not isinstance(each, Grow) for each in self.improvers)

    @property
    def is_quick(self) -> bool:
        """True if trees get no treatment of their own."""
        return not self.tree_improvers


BARE = Effort(starts=(Grown(),), improvers=(Grow(),))
"""Nothing but growing, or what a rule of the paper does."""

QUICK = Effort()
"""Grow, swap, eliminate, swap: what batches do."""

DEFAULT = replace(
    QUICK,
    proofs="tight",
    starts=(Grown(), Matching(), Mean(), Unregularised()),
    tree_starts=(Matching(), Grown(), Optimum(links=10**9)),
    tree_improvers=(TreeSearch(),),
    prices=Prices(),
    finish=(Regrow(),),
    tree_finish=(Perturb(),),
    charged_finish=(
        Perturb(limits=((1000.0, 1e6), (0.0, 6e7)), worse=2e-3, targets=3, seed=1),
        Perturb(limits=((1.0, 1e6), (0.0, 6e7)), worse=5e-3),  # as long as the one before, and the next one too
        Perturb(limits=((0.5, 1e6), (0.0, 6e7)), worse=1e-3, targets=3, seed=2),
    ),
)
"""The same from a few starts, and again from parts of the best plan; on trees, local search and perturbation."""

THOROUGH = replace(
    DEFAULT,
    proofs="all",
    starts=(
        Found(DEFAULT),
        DualWish(),
        Regularised(),
        Optimum(),
        Optimum(eliminate=True),
        Random(),
    ),
    improvers=(
        Grow(),
        Swap(passes=2.0),
        Eliminate(passes=0.0),
        Swap(share=inf),
        Repeat((Eliminate(passes=0.0), Swap(share=inf))),
    ),
    tree_starts=(Found(DEFAULT), Optimum(links=10**9)),
    tree_improvers=(TreeSearch(), Perturb(limits=((20.0, 2e7),), close=0.0, looks=10, seed=1)),
    finish=(Regrow(rounds=32, operations=2e8, seed=1),),
    tree_finish=(),
    charged_finish=(Perturb(limits=((2000.0, 1e8), (0.0, 1e9)), worse=3e-3, seed=1),),
)
"""Many starts, improved for as long as it helps: what ``gap_tol`` does until its gap is reached."""

EFFORTS: dict[str, Effort] = {"quick": QUICK, "default": DEFAULT, "thorough": THOROUGH}


def as_effort(name: str, value: Any) -> Effort:
    """An effort from one or from its name."""
    if isinstance(value, Effort):
        return value
    found: Effort = _checks.choice(name, value, EFFORTS)
    return found
