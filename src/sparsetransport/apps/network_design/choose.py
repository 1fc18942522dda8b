"""Choose the links of a network for a sample of demand scenarios."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ..._checks import Floats, Ints
from ...budgets import Counting, PerColumn, PerRow, Uniform
from ...plan import Callback, Step
from ...problem import Problem
from ...shared import SharedResult, solve_shared
from .classic import dedicated, long_chain
from .evaluation import Evaluation, best_use, market, pairs, scenario_weights
from .exchange import Choice, exchange_links, in_order, is_small

STRENGTHS = (1.0, 4.0, 16.0)  # weights of the marginals that are tried, in units of mean profit over mean mass
STRETCH = 2.0  # links that the scenarios have no use for serve the same ones with their deviations so much larger


class Comparison(NamedTuple):
    """A network beside ours: its links, what it earns, and what a design with as many links earns."""

    name: str
    links: int
    expected: float
    held_out: float | None
    ours: float | None  # `design` with so many links; None: there are fewer in ours, or more that are there already
    ours_held_out: float | None


@dataclass(frozen=True, repr=False, eq=False)
class Design:
    """A network for demand that is not known yet.

    Attributes
    ----------
    links : int array of shape (k, 2)
        Plant and product of every link, in order of choice: those that were there already come first, then each time
        the one that adds most expected profit to those before it. Where links times links times scenarios times plants
        and products exceed five millions, that is so, nearly, for as many as there are plants or products, whatever is
        more; the rest follow in order of the profit that they carry. The first so many links earn much, but a design
        of its own for so many can earn more.
    fixed : int
        How many were there already.
    training : Evaluation
        What the network earns in the scenarios it was chosen for: ``profits``, ``utilisation``, ``unmet`` and ``idle``
        of each, ``expected`` over all.
    held_out : Evaluation or None
        The same for scenarios that it was not chosen for, if some were given.
    shared : SharedResult
        The transport problem behind it: plans, path and certificate; its links are those before any were exchanged
        for profit.
    """

    links: Ints
    fixed: int
    training: Evaluation
    held_out: Evaluation | None
    shared: SharedResult
    _task: "_Task"
    _held_out: Floats | None
    _polish: bool
    _n_jobs: int | None

    def __repr__(self) -> str:
        m, n = self._task.rates.shape
        other = "" if self.held_out is None else f", {self.held_out.expected:.4g} held out"
        return f"Design({len(self.links)} of {m}x{n} links, expected profit {self.expected_profit:.4g}{other})"

    @property
    def expected_profit(self) -> float:
        """The expected profit on the training scenarios."""
        return self.training.expected

    @cached_property
    def full(self) -> tuple[Evaluation, Evaluation | None]:
        """Full flexibility, every link that is not forbidden: on the training and on the held-out scenarios."""
        return self.evaluate(np.argwhere(self._task.allowed))

    @cached_property
    def comparison(self) -> list[Comparison]:
        """Full flexibility, the dedicated network and the long chain, and what designs with as many links earn.

        Computed when it is first asked for, the designs anew, with the same arguments. They keep the links that are
        there already and the limits of plants and products, which the classic networks need not: the names of those
        that do not keep the limits say so.
        """
        return [self._compare(*row) for row in self._classic]

    @cached_property
    def _classic(self) -> list[tuple[str, Evaluation, Evaluation | None]]:
        """Full flexibility, the dedicated network and the long chain."""
        rates, capacity, demand, weights, allowed = self._task[:5]
        rows = [("full flexibility", *self.full)]
        limits = self._task.budget.limits(rates.shape)
        for name, classic in (("dedicated", dedicated), ("long chain", long_chain)):
            links = classic(rates, capacity, demand, weights=weights, allowed=allowed)
            counts = [np.bincount(ends, minlength=size) for ends, size in zip(links.T, rates.shape, strict=True)]
            beyond = (counts[0] > limits.rows).any() or (counts[1] > limits.cols).any()
            rows.append((f"{name}, beyond the limits" if beyond else name, *self.evaluate(links)))
        return rows

    def evaluate(self, links: Any) -> tuple[Evaluation, Evaluation | None]:
        """What any other links earn in the training and in the held-out scenarios."""
        chosen = pairs("links", links, self._task.rates.shape)
        return self._task.score(chosen), self._task.judge(chosen, self._held_out)

    def curve(self, points: int = 20) -> tuple[Ints, Floats, Floats | None]:
        """Expected profit against the number of links: the first so many of ``links``, as they are built one by one.

        A design of its own for so many links can earn more.

        Parameters
        ----------
        points : int
            At so many numbers of links, from the first that is built to all; fewer where there are not so many links.

        Returns
        -------
        counts, training, held_out
            Numbers of links, and the expected profits of so many.
        """
        first = min(max(self.fixed, 1), len(self.links))
        steps = np.linspace(first, len(self.links), _checks.positive_int("points", points))
        counts = np.unique(steps.astype(np.int64))
        pieces = [self.evaluate(self.links[:count]) for count in counts.tolist()]
        train = np.array([one.expected for one, _ in pieces])
        if self._held_out is None:
            return counts, train, None
        return counts, train, np.array([other.expected for _, other in pieces if other is not None])

    def _compare(self, name: str, train: Evaluation, test: Evaluation | None) -> Comparison:
        count = len(train.links)
        ours: Design | None = self
        if count > len(self.links) or count < max(self.fixed, 1):
            ours = None
        elif count < len(self.links):
            budget: Any = Uniform(count) & self._task.budget
            fewer = self._task._replace(budget=budget, links=count)
            ours = _designed(fewer, self._held_out, self._polish, self._n_jobs, None)
        return Comparison(
            name,
            count,
            train.expected,
            None if test is None else test.expected,
            None if ours is None else ours.training.expected,
            None if ours is None or ours.held_out is None else ours.held_out.expected,
        )


class _Task(NamedTuple):
    """What `design` was asked for, checked."""

    rates: Floats
    capacity: Floats
    demand: Floats
    weights: Floats
    allowed: NDArray[np.bool_]
    fixed: Ints
    budget: Counting
    links: int

    def problems(self, strength: float, *, scaled: bool, stretch: float = 1.0) -> list[Problem]:
        """The scenarios as transport problems: profits are negative costs, capacities and demands the masses."""
        mean = self.weights @ self.demand
        demands = np.maximum(mean + stretch * (self.demand - mean), 0.0)
        mass = float(self.capacity.mean() + mean.mean())
        earning = self.allowed & (self.rates > 0.0)  # a fixed link may earn nothing
        rate = float(self.rates[earning].mean()) if earning.any() else 1.0
        costs = np.where(self.allowed, -self.rates, np.inf)
        weight = strength * rate / mass if mass > 0.0 else 1.0
        first = Problem.from_matrices(costs, self.capacity, demands[0], unbalanced=weight)
        return [replace(first, a=a, b=b) for a, b in self._masses(demands, scaled)]

    def _masses(self, demands: Floats, scaled: bool) -> Iterator[tuple[Floats, Floats]]:
        total = float(self.capacity.sum())
        for demand in demands:
            wanted = float(demand.sum())
            less = min(total, wanted)
            if scaled and less > 0.0:
                yield self.capacity * (less / total), demand * (less / wanted)
            else:
                yield self.capacity, demand

    @property
    def lopsided(self) -> bool:
        """Do capacity and demand differ enough that aiming at both misses both?"""
        total, wanted = float(self.capacity.sum()), self.demand.sum(axis=1)
        return bool(np.abs(wanted - total).max() > 0.01 * total)

    @property
    def choice(self) -> Choice:
        """What links may be exchanged for, and what for."""
        limits = self.budget.limits(self.rates.shape)
        return Choice(self.rates, self.capacity, self.demand, self.allowed, limits, len(self.fixed))

    def score(self, links: Ints) -> Evaluation:
        """What links earn in the training scenarios."""
        return best_use(links, self.rates, self.capacity, self.demand, self.weights)

    def judge(self, links: Ints, held_out: Floats | None) -> Evaluation | None:
        """What links earn in other scenarios, if there are any."""
        if held_out is None:
            return None
        return best_use(links, self.rates, self.capacity, held_out, scenario_weights(None, len(held_out)))


def design(
    profit: Any,
    supply: Any,
    demand_scenarios: Any,
    links: int,
    fixed: Any = None,
    forbidden: Any = None,
    max_per_plant: Any = None,
    max_per_product: Any = None,
    *,
    count_fixed: bool = True,
    weights: Any = None,
    held_out: Any = None,
    polish: bool = True,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> Design:
    """Choose which links to build so that the expected profit over demand scenarios is large.

    All scenarios share the links, as `solve_shared` chooses them: profits are negative costs, capacities and demands
    the masses of soft marginals, so that demand may go unmet and capacity idle. The weight of the marginals is the one
    of `STRENGTHS` whose network earns most in the training scenarios; with it the choice also begins once with the
    dedicated network and once with the long chain, where there are links enough. Links that the scenarios have no use
    for are chosen for the same ones with twice their deviations from the mean. At last single links are exchanged for
    others, or added, while that raises the expected profit of the training scenarios. Up to 20,000 plants times
    products times scenarios this goes on, from each network that was tried, until no exchange of one link earns more;
    beyond that it ends after work in proportion to links and scenarios. Whatever is compared, a network earns what the
    linear program of `evaluate` says.

    Parameters
    ----------
    profit : array of shape (m, n)
        The profit of a unit of each product (column) from each plant (row). Where it is not positive no link is built.
    supply : array of shape (m,)
        The capacity of the plants.
    demand_scenarios : array of shape (z, n)
        The demand for each product, one row a scenario.
    links : int
        How many links there may be.
    fixed : list of pairs, optional
        Links that are there already, as plant and product; they stay, whatever they earn.
    forbidden : list of pairs, or bool array of shape (m, n), optional
        Links that cannot be built; none of them may be fixed.
    max_per_plant, max_per_product : int or list of int, optional
        How many links a plant or a product may have, those that are there included; one number for all or one each.
    count_fixed : bool
        Do the fixed links count among ``links``? False: they are free, and so many are built on top.
    weights : array of shape (z,), optional
        How much each scenario counts; equal by default.
    held_out : array of shape (z', n), optional
        Scenarios to judge the network by that it is not chosen for.
    polish : bool
        Exchange links for better ones at the end, where that raises the profit.
    n_jobs : int, optional
        Threads, as in `solve_shared`: all cores by default. The result does not depend on it.
    callback : callable, optional
        Called after each step of choosing; a true answer ends the design with what there is.

    Returns
    -------
    Design

    Examples
    --------
    >>> import numpy as np
    >>> from sparsetransport.apps.network_design import design
    >>> rng = np.random.default_rng(0)
    >>> demand = rng.uniform(0.5, 1.5, size=(20, 5))
    >>> network = design(np.ones((5, 5)), np.ones(5), demand, links=10, held_out=rng.uniform(0.5, 1.5, size=(50, 5)))
    >>> network.links.shape
    (10, 2)
    >>> full = network.full[1]
    >>> bool(network.held_out.expected > 0.97 * full.expected)
    True
    """
    task = _task(
        profit, supply, demand_scenarios, links, fixed, forbidden, max_per_plant, max_per_product, count_fixed, weights
    )
    test = None if held_out is None else _held_out(held_out, task.demand.shape[1])
    _checks.function("callback", callback)
    return _designed(task, test, _checks.flag("polish", polish), n_jobs, callback)


def _designed(
    task: _Task, held_out: Floats | None, polish: bool, n_jobs: int | None, callback: Callback | None
) -> Design:
    """The design for a task that has been checked."""
    told = None if callback is None else _Sticky(callback)
    options: dict[str, Any] = {"weights": task.weights, "n_jobs": n_jobs, "callback": told}
    (chosen, earned, problems), tried = _choose(task, options)
    exchanges = polish and not (told and told.stopped)
    if exchanges:
        exchanged = solve_shared(
            problems, budget=task.budget, fixed=task.fixed, start=chosen.links, polish=True, **options
        )
        score = task.score(exchanged.links)
        if score.expected > earned.expected:
            chosen, earned = exchanged, score
        earned = _exchange(task, earned, tried)
    every = _fill(task, earned.links, options)
    if len(every) > len(earned.links):
        earned = task.score(every)
        if exchanges:
            earned = _exchange(task, earned, [])
    earned = in_order(earned, task.choice)
    judged = task.judge(earned.links, held_out)
    return Design(earned.links, len(task.fixed), earned, judged, chosen, task, held_out, polish, n_jobs)


class _Sticky:
    """A callback that stays with its true answer: there are many searches, and whoever stops one means all."""

    def __init__(self, callback: Callback) -> None:
        self.callback, self.stopped = callback, False

    def __call__(self, step: Step) -> bool:
        self.stopped = self.stopped or bool(self.callback(step))
        return self.stopped


def _choose(
    task: _Task, options: dict[str, Any]
) -> tuple[tuple[SharedResult, Evaluation, list[Problem]], list[Evaluation]]:
    """The links that earn most of those found with each weight of the marginals, and from each classic network; all.

    Of two weights with which links earn the same, the larger; a classic network to begin with only if it earns more.
    """
    found: list[tuple[SharedResult, Evaluation, list[Problem]]] = []
    for scaled in (False, True) if task.lopsided else (False,):
        for strength in STRENGTHS:
            problems = task.problems(strength, scaled=scaled)
            links = solve_shared(problems, budget=task.budget, fixed=task.fixed, polish=False, **options)
            found.append((links, task.score(links.links), problems))
    tried = [earned for _, earned, _ in found]
    best = max(reversed(found), key=lambda one: float(f"{one[1].expected:.9e}"))
    for classic in (dedicated, long_chain):
        start = classic(task.rates, task.capacity, task.demand, weights=task.weights, allowed=task.allowed)
        if len(start) + len(task.fixed) <= task.links:
            links = solve_shared(best[2], budget=task.budget, fixed=task.fixed, start=start, polish=False, **options)
            earned = task.score(links.links)
            tried.append(earned)
            if earned.expected > best[1].expected * (1.0 + 1e-9):
                best = links, earned, best[2]
    return best, tried


def _exchange(task: _Task, earned: Evaluation, tried: list[Evaluation]) -> Evaluation:
    """Links exchanged for others that earn more in the training scenarios, if the linear program agrees.

    Where that takes no time the exchanges also begin with the other networks that were tried.
    """
    choice = task.choice
    best, seen = earned, set[bytes]()
    for start in [earned, *(tried if is_small(task.rates, task.demand) else [])]:
        key = np.unique(start.links, axis=0).tobytes()
        if key in seen:
            continue
        seen.add(key)
        links = exchange_links(start, choice)
        score = start if np.array_equal(links, start.links) else task.score(links)
        if score.expected > best.expected * (1.0 + 1e-9 * (start is not earned)):
            best = score
    return best


def _fill(task: _Task, chosen: Ints, options: dict[str, Any]) -> Ints:
    """The links, and if the scenarios have no use for all that may be built, more for scenarios that vary more."""
    if len(chosen) >= task.links or not task.allowed.any():
        return chosen
    problems = task.problems(STRENGTHS[-1], scaled=task.lopsided, stretch=STRETCH)
    return solve_shared(problems, budget=task.budget, fixed=chosen, polish=False, **options).links


def _task(
    profit: Any,
    supply: Any,
    demand_scenarios: Any,
    links: int,
    fixed: Any,
    forbidden: Any,
    max_per_plant: Any,
    max_per_product: Any,
    count_fixed: bool,
    weights: Any,
) -> _Task:
    """Check everything before any work."""
    rates, capacity, demand = market(profit, supply, demand_scenarios)
    shape = rates.shape
    there = pairs("fixed", [] if fixed is None else fixed, shape)
    banned = _checks.mask("forbidden", [] if forbidden is None else forbidden, shape)
    for i, j in there.tolist():
        if banned[i, j]:
            raise ValueError(f"fixed and forbidden must not share a link, got {(i, j)} in both")
    allowed = (rates > 0.0) & ~banned
    allowed[there[:, 0], there[:, 1]] = True
    wanted = _checks.positive_int("links", links)
    if _checks.flag("count_fixed", count_fixed) and wanted < len(there):
        raise ValueError(f"links must be at least the number of fixed links, {len(there)}, got {wanted}")
    total = min(wanted + (0 if count_fixed else len(there)), max(int(allowed.sum()), 1))
    budget: Counting = Uniform(total)
    for name, limit, kind, axis in (
        ("max_per_plant", max_per_plant, PerRow, 0),
        ("max_per_product", max_per_product, PerColumn, 1),
    ):
        if limit is not None:
            budget = budget & kind(_limit(name, limit, shape[axis], shape[1 - axis], there[:, axis]))  # type: ignore[assignment]
    return _Task(rates, capacity, demand, scenario_weights(weights, len(demand)), allowed, there, budget, total)


def _limit(name: str, limit: Any, count: int, most: int, ends: Ints) -> Ints:
    """How many links each plant or product may have, which those that are there must not exceed."""
    if np.ndim(limit) == 0:
        limits = np.full(count, _checks.positive_int(name, limit), np.int64)
    else:
        limits = np.asarray(limit)
        if limits.dtype.kind not in "iu" or limits.shape != (count,):
            raise TypeError(f"{name} must be a positive int or a list of {count} ints, got {limit!r}")
        if limits.min() < 0:
            raise ValueError(f"{name} must not be negative, got {limits.min()} for number {limits.argmin()}")
    over = np.flatnonzero(np.bincount(ends, minlength=count) > limits)
    if over.size:
        raise ValueError(
            f"{name} must allow the fixed links, got {limits[over[0]]} for number {over[0]}, which has more"
        )
    return np.minimum(limits, most)


def _held_out(held_out: Any, products: int) -> Floats:
    """Scenarios to judge by."""
    demand = _checks.real_array("held_out", held_out, ndim=2)
    if demand.shape[1] != products:
        raise ValueError(f"held_out must have one column for each of the {products} products, got {demand.shape[1]}")
    if demand.min() < 0.0:
        place = tuple(int(k) for k in np.unravel_index(demand.argmin(), demand.shape))
        raise ValueError(f"held_out must not be negative, got {demand.min()} at {place}")
    return demand
