"""Choose the links of a network for a sample of demand scenarios."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ... import _checks, _tables
from ..._checks import Floats, Ints
from ..._progress import shown
from ...budgets import Uniform
from ...plan import Callback, Step
from ...problem import Problem
from ...shared import SharedResult, solve_shared
from .classic import dedicated, long_chain
from .evaluation import Evaluation, best_use, names, pairs
from .exchange import exchange_links, in_order, is_small, worth_their_cost
from .task import Task, checked_task, held_out_demand

STRENGTHS = (1.0, 4.0, 16.0)  # weights of the marginals that are tried, in units of mean profit over mean mass
DEMANDS = "at-most", "exact"
UNMET = "demand='exact'"  # the option that promises to meet demand
STRETCH = 2.0  # spare links are chosen for the scenarios with their deviations multiplied by this


class Comparison(NamedTuple):
    """A network to compare with: its links, its profit, and the profit of a design with as many links."""

    name: str
    links: int
    expected: float
    held_out: float | None
    ours: float | None  # profit of a `design` with as many links; None if ours has fewer, or more fixed ones
    ours_held_out: float | None


@dataclass(frozen=True, repr=False, eq=False)
class Design:
    """A network for uncertain demand.

    Attributes
    ----------
    links : int array of shape (k, 2)
        Plant and product of every link: the fixed links first, then in each place the link that adds most expected
        profit to those before it. If links² times scenarios times (plants plus products) exceeds five million, this
        order is approximate and covers as many links as there are plants or products, whichever is more; the rest are
        sorted by the profit that they carry. A design with a smaller ``links`` can earn more than the first links here.
    fixed : int
        The number of fixed links.
    training : Evaluation
        The profits in the training scenarios: ``profits``, ``utilisation``, ``unmet`` and ``idle`` of each scenario,
        ``expected`` over all.
    held_out : Evaluation or None
        The same for the held-out scenarios, if given.
    shared : SharedResult
        The result of the transport problem: plans, path and certificate; its links are those before any were exchanged
        for profit.
    """

    links: Ints
    fixed: int
    training: Evaluation
    held_out: Evaluation | None
    shared: SharedResult
    _task: "Task"
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
        """Full flexibility, with every link that is not forbidden, on the training and the held-out scenarios."""
        return self.evaluate(np.argwhere(self._task.allowed))

    @cached_property
    def comparison(self) -> list[Comparison]:
        """Full flexibility, the dedicated network and the long chain, and the profits of designs with as many links.

        Computed on first use; the designs are solved again with the same arguments. They keep the fixed links and the
        limits of plants and products, which the classic networks need not: a name says so if one exceeds the limits.
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
        """The profits of any other links in the training and in the held-out scenarios."""
        chosen = pairs("links", links, self._task.rates.shape)
        task = self._task
        return task.told(task.score(chosen)), task.told(task.judge(chosen, self._held_out))

    @property
    def cost_of_links(self) -> float:
        """What the new links cost, by ``link_cost``."""
        new = self.links[self.fixed :]
        return 0.0 if self._task.link_cost is None else float(self._task.link_cost[new[:, 0], new[:, 1]].sum())

    @property
    def net_profit(self) -> float:
        """The expected profit on the training scenarios minus what the new links cost."""
        return self.expected_profit - self.cost_of_links

    def curve(self, points: int = 20) -> tuple[Ints, Floats, Floats | None]:
        """Expected profit against the number of links, for the first ones of ``links``, built one by one.

        A design with a smaller ``links`` can earn more.

        Parameters
        ----------
        points : int
            How many numbers of links to evaluate, from the first link to all; fewer if there are fewer links.

        Returns
        -------
        counts, training, held_out
            The numbers of links, and the expected profits with them.
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


def design(
    profit: Any,
    supply: Any,
    demand_scenarios: Any,
    links: int | None = None,
    fixed: Any = None,
    forbidden: Any = None,
    max_per_plant: Any = None,
    max_per_product: Any = None,
    *,
    link_cost: Any = None,
    demand: str = "at-most",
    count_fixed: bool = True,
    weights: Any = None,
    held_out: Any = None,
    polish: bool = True,
    n_jobs: int | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Design:
    """Choose the links to build for a large expected profit over demand scenarios.

    All scenarios share the links, which `solve_shared` chooses: profits are negative costs, and capacities and demands
    are the masses of soft marginals, so that demand may be unmet and capacity idle. The weight of the marginals is the
    one of `STRENGTHS` whose network has the largest profit in the training scenarios; with this weight the choice is
    also started from the dedicated network and from the long chain, if there are enough links. Links that the scenarios
    do not need are chosen for scenarios with twice the deviations from the mean. Finally single links are exchanged or
    added while that raises the expected profit in the training scenarios. Up to 20,000 plants times products times
    scenarios this continues, from each network that was tried, until no exchange of one link helps; for larger problems
    it ends after an amount of work proportional to links and scenarios. All profits are those of the linear program of
    `evaluate`.

    Parameters
    ----------
    profit : array of shape (m, n)
        The profit of a unit of each product (column) from each plant (row). Only links with positive profit are built.
    supply : array of shape (m,)
        The capacity of the plants.
    demand_scenarios : array of shape (z, n)
        The demand for each product, one row for each scenario.
    links : int
        The largest number of links. Links that would carry nothing are not built, even if scenarios varied twice as
        much. None where ``link_cost`` settles how many: up to three for each plant and product.
    fixed : list of pairs, optional
        Existing links, as pairs of plant and product; they are kept, whatever they earn.
    forbidden : list of pairs, or bool array of shape (m, n), optional
        Links that cannot be built; none of them may be fixed.
    max_per_plant, max_per_product : int or list of int, optional
        The most links of a plant or a product, fixed ones included; one number for all, or one for each.
    link_cost : float or array of shape (m, n), optional
        What a new link costs, whatever it carries, in the units of the expected profit. Links that raise it by less are
        not built.
    demand : {"at-most", "exact"}
        "at-most" leaves demand unmet where serving it does not pay; "exact" serves as much as the links can carry,
        whatever it earns, and warns if that is not all of it. Supply is at most the capacity either way.
    count_fixed : bool
        True if the fixed links count among ``links``; False if ``links`` is the number of additional links.
    weights : array of shape (z,), optional
        The weight of each scenario; equal by default.
    held_out : array of shape (z', n), optional
        Scenarios to evaluate the network on that it is not chosen for.
    polish : bool
        Improve the network at the end, by exchanges of links that raise the profit.
    n_jobs : int, optional
        The number of threads, as in `solve_shared`; all cores by default. The result does not depend on it.
    callback : callable, optional
        Called after each step of the choice; a true return value ends the design with the links so far.
    progress : bool
        Show links and objective so far on a terminal.

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
    _checks.choice("demand", demand, dict.fromkeys(DEMANDS))
    task = checked_task(
        profit,
        supply,
        demand_scenarios,
        links,
        fixed,
        forbidden,
        max_per_plant,
        max_per_product,
        link_cost,
        demand == "exact",
        count_fixed,
        weights,
    )
    products = names(profit, supply, demand_scenarios)[1]
    test = _tables.aligned("held_out", held_out, "columns", products, "columns of profit")
    test = None if test is None else held_out_demand(test, task.demand.shape[1])
    _checks.function("callback", callback)
    exchanges = _checks.flag("polish", polish)
    with shown(progress):
        made = _designed(task, test, exchanges, n_jobs, callback)
    lacking = unmet_demand(made, products, UNMET)
    if lacking is not None:
        _checks.warn(lacking)
    return made


def _designed(
    task: Task, held_out: Floats | None, polish: bool, n_jobs: int | None, callback: Callback | None
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
    if task.link_cost is not None:
        earned = _worth_it(task, earned, exchanges=exchanges)
    earned = in_order(_of_use(task, earned), task.choice)
    judged = task.told(task.judge(earned.links, held_out))
    earned = task.told(earned)
    return Design(earned.links, len(task.fixed), earned, judged, chosen, task, held_out, polish, n_jobs)


def _worth_it(task: Task, earned: Evaluation, *, exchanges: bool) -> Evaluation:
    """The network without links that earn less than they cost; then exchanged, and looked at once more."""
    cost, choice = task.link_cost, task.choice
    assert cost is not None

    def kept(found: Evaluation) -> Evaluation:
        links = worth_their_cost(found, choice, cost[tuple(found.links.T)])
        return found if len(links) == len(found.links) else task.score(links)

    def net(found: Evaluation) -> float:
        new = found.links[len(task.fixed) :]
        return found.expected - float(cost[tuple(new.T)].sum())

    best = kept(earned)
    if exchanges and len(best.links):
        limits = choice.limits._replace(total=len(best.links))
        other = kept(task.score(exchange_links(best, choice._replace(limits=limits))))
        best = max(best, other, key=net)
    return best


def unmet_demand(made: Design, products: Any, option: str) -> str | None:
    """A sentence on demand that was to be served in full and is not, which names the products; None if all is."""
    demand, unmet = made._task.demand, made.training.unmet.max(axis=0)
    lacking = np.flatnonzero(unmet > 1e-9 * demand.max(initial=0.0))
    if not (made._task.bonus and lacking.size):
        return None
    told = ", ".join(str(k if products is None else products[k]) for k in lacking[:5].tolist())
    more = f" and {lacking.size - 5} more" if lacking.size > 5 else ""
    return (
        f"{option} cannot be met in all scenarios: products {told}{more} lack up to {unmet.max():.3g}; allow "
        "more links or more capacity"
    )


class _Sticky:
    """A callback that stays true once it was: there are several searches, and a stop ends all of them."""

    def __init__(self, callback: Callback) -> None:
        self.callback, self.stopped = callback, False

    def __call__(self, step: Step) -> bool:
        self.stopped = self.stopped or bool(self.callback(step))
        return self.stopped


def _choose(
    task: Task, options: dict[str, Any]
) -> tuple[tuple[SharedResult, Evaluation, list[Problem]], list[Evaluation]]:
    """The most profitable links over all weights of the marginals and all classic networks, and all that were tried.

    Of two weights with the same profit the larger one wins; a start from a classic network wins only if it earns more.
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


def _exchange(task: Task, earned: Evaluation, tried: list[Evaluation]) -> Evaluation:
    """Links after exchanges that raise the profit in the training scenarios, as confirmed by the linear program.

    For small problems the exchanges also start from the other networks that were tried.
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


def _fill(task: Task, chosen: Ints, options: dict[str, Any]) -> Ints:
    """The links, and if the scenarios do not need all that may be built, more links for scenarios that vary more."""
    if len(chosen) >= task.links or not task.allowed.any():
        return chosen
    problems = task.problems(STRENGTHS[-1], scaled=task.lopsided, stretch=STRETCH)
    return solve_shared(problems, budget=task.budget, fixed=chosen, polish=False, **options).links


def _of_use(task: Task, earned: Evaluation) -> Evaluation:
    """The network without new links that carry nothing, in the scenarios and in those that vary more."""
    varied = best_use(earned.links, task.rates, task.capacity, task.stretched(STRETCH), task.weights)
    used = (earned.expected_flows > 0.0) | (varied.expected_flows > 0.0)
    used[: len(task.fixed)] = True
    return earned if used.all() else replace(earned, links=earned.links[used], flows=earned.flows[:, used])
