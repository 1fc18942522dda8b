r"""Prices on a device, one GPU or several: what `levels` does, by PyTorch and Triton.

A level has a random eighth of the points of the next one, each with the masses of those nearest to it. Prices of the
rows of a level give those of the columns of the next, candidates are the pairs that are cheapest at the prices of
either side, and the bound comes from a pass over all pairs, less a margin for the rounding of single precision.

Several processes share the rows: each holds all points, lists the candidates of its rows, and a step of the ascent
adds up what columns get. Prices are the same everywhere.
"""

import time
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..effort import DevicePrices
from ..geometry.pricing import Pricing
from ..problem import Problem
from .device_ascent import Pairs, Shard, ascend
from .device_pricing import Cloud, along_a_curve, both_clouds, in_single_range, price, require_memory
from .levels import Tell


class Found(NamedTuple):
    """Prices without a pair below them, the bound that they prove, and a plan that nearly attains it."""

    alpha: Tensor
    beta: Tensor
    bound: float
    value: float  # of the plan
    rows: Tensor
    cols: Tensor
    mass: Tensor
    seconds: dict[str, float]


class Side(NamedTuple):
    """The points of a side at a level, their masses, and the weight of its marginal errors."""

    cloud: Cloud
    mass: Tensor
    weight: float

    def coarser(self, size: int, chosen: Tensor, shard: Shard) -> "Side":
        """So many random points in the middle of those nearest to them, with their masses."""
        cloud = self.cloud.part(chosen[:size])
        mine = slice(shard.first, shard.last)
        nearest = price(self.cloud.part(mine), cloud, torch.zeros_like(self.mass[:size])).cols[:, 0]
        mass, points = self.mass[mine], self.cloud.points[mine]
        total = shard.sum(torch.zeros_like(self.mass[:size]).index_add_(0, nearest, mass))
        moment = shard.sum(torch.zeros_like(cloud.points).index_add_(0, nearest, mass[:, None] * points))
        centre = torch.where(total[:, None] > 0.0, moment / total.clamp(min=1e-300)[:, None], cloud.points)
        return Side(Cloud.of(centre), total, self.weight * size / self.cloud.size)

    def capped(self, prices: Tensor) -> Tensor:
        """Prices no higher than what the marginal errors of the side are worth."""
        return torch.minimum(2.0 * self.weight * self.mass, prices)

    def dual(self, prices: Tensor, part: slice = slice(None)) -> Tensor:
        """What the side adds to the bound."""
        return (prices * (self.mass[part] - 0.25 / self.weight * prices)).sum()


class Level(NamedTuple):
    """The problem of some points with the masses of all, and the rows of this process."""

    left: Side
    right: Side
    shard: Shard

    @classmethod
    def of(cls, left: Side, right: Side, processes: "Processes") -> "Level":
        """A level whose rows are shared by the processes."""
        return cls(left, right, processes.shard(left.cloud.size))

    @property
    def mine(self) -> slice:
        """The rows of this process."""
        return slice(self.shard.first, self.shard.last)

    @property
    def a(self) -> Tensor:
        """Their masses."""
        return self.left.mass[self.mine]

    def alpha(self, beta: Tensor, *, proven: bool = False) -> Tensor:
        """The best prices of the rows of this process for those of the columns."""
        least = price(self.left.cloud.part(self.mine), self.right.cloud, beta, proven=proven).least
        return torch.minimum(2.0 * self.left.weight * self.a, least)

    def bound(self, alpha: Tensor, beta: Tensor) -> float:
        """The dual value of prices without a pair below them."""
        return float(self.shard.sum(self.left.dual(alpha, self.mine)) + self.right.dual(beta))

    def pairs(self, beta: Tensor, k: int, old: Tensor | None) -> tuple[Pairs, Tensor, Tensor]:
        """The candidates of the rows of this process, the best prices of its rows, and their least reduced costs."""
        left, right = self.left.cloud.part(self.mine), self.right.cloud
        by_row = price(left, right, beta, k)
        alpha = torch.minimum(2.0 * self.left.weight * self.a, by_row.least)
        by_col = price(right, left, alpha, k)
        rows, cols = by_col.cols, torch.arange(right.size, device=beta.device)[:, None]
        n = right.size
        wanted = torch.ones_like(rows, dtype=torch.bool)
        if self.shard.group is not None:
            wanted = by_col.values <= self._worst_of_all(by_col.values, k)[:, None]
        keys = [(torch.arange(left.size, device=beta.device)[:, None] * n + by_row.cols).flatten()]
        keys += [(rows * n + cols)[wanted]]
        keys += [] if old is None else [old]
        key = torch.unique(torch.cat(keys))
        return Pairs.of(key, lambda i, j: left.costs(i, right, j), left.size, n), alpha, by_row.least

    def _worst_of_all(self, values: Tensor, k: int) -> Tensor:
        """The ``k``-th least value of every column over all processes."""
        group = self.shard.group
        here = torch.full((values.shape[0], k), torch.inf, dtype=values.dtype, device=values.device)
        here[:, : values.shape[1]] = values
        everyone = [torch.empty_like(here) for _ in range(torch.distributed.get_world_size(group))]
        torch.distributed.all_gather(everyone, here, group=group)
        return torch.cat(everyone, 1).kthvalue(min(k, self.left.cloud.size), 1).values

    def value(self, pairs: Pairs, mass: Tensor) -> float:
        """The objective of a plan."""
        off = torch.zeros_like(self.a).index_add_(0, pairs.rows, mass) - self.a
        here = pairs.cost @ mass + self.left.weight * (off @ off)
        got = torch.zeros_like(self.right.mass).index_add_(0, pairs.cols.long(), mass)
        told = self.shard.sum(torch.cat([got, here[None]]))
        off = told[:-1] - self.right.mass
        return float(told[-1] + self.right.weight * (off @ off))


class Processes(NamedTuple):
    """The processes that share the rows; one alone without a group."""

    group: Any = None

    def shard(self, rows: int) -> Shard:
        """The rows of this process."""
        if self.group is None:
            return Shard(0, rows)
        rank, world = torch.distributed.get_rank(self.group), torch.distributed.get_world_size(self.group)
        return Shard(rows * rank // world, rows * (rank + 1) // world, self.group)


class Watch:
    """Seconds by name, and the time that is left; all processes go by the clock of the first."""

    def __init__(self, processes: Processes, time_limit: float | None, device: torch.device) -> None:
        self.start, self.last, self.limit = time.perf_counter(), time.perf_counter(), time_limit
        self.processes, self.device, self.seconds = processes, device, dict[str, float]()

    def note(self, name: str) -> None:
        """Count the time since the last note."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        now = time.perf_counter()
        self.seconds[name], self.last = self.seconds.get(name, 0.0) + now - self.last, now

    def is_over(self, is_told: bool) -> bool:
        """True if the first process was told to stop, or its time limit has passed."""
        over = is_told or (self.limit is not None and time.perf_counter() - self.start > self.limit)
        if self.processes.group is None:
            return over
        shared = torch.tensor([float(over)], device=self.device)
        torch.distributed.broadcast(shared, torch.distributed.get_global_rank(self.processes.group, 0))
        return bool(shared.item())


def prices(
    problem: Problem,
    how: DevicePrices,
    device: Any,
    *,
    gap_tol: float | None = None,
    time_limit: float | None = None,
    tell: Tell | None = None,
    group: Any = None,
) -> Found:
    """Prices of a problem with squared distances between points and `Delta` kernels, found on a device."""
    device = torch.device(device)
    if not (problem.cost.is_squared and problem.has_trees and problem.is_plain):
        raise ValueError("device must be None unless costs are squared distances, kernels Delta() and reg 0")
    sides, unit = in_single_range(*Pricing(problem.cost).points)
    require_memory(device, sum(problem.shape), sides[0].shape[1])
    scale = problem.cost.compiled.scale * unit * unit
    found = find_prices(
        tuple(torch.from_numpy(side).to(device) for side in sides),  # type: ignore[arg-type]
        tuple(torch.tensor(mass, device=device) for mass in (problem.a, problem.b)),  # type: ignore[arg-type]
        (problem.unbalanced[0] / scale, problem.unbalanced[1] / scale),
        how,
        gap_tol=gap_tol,
        time_limit=time_limit,
        tell=None if tell is None else lambda value, *link: tell(value * scale, *link),
        group=group,
    )
    return found._replace(
        alpha=found.alpha * scale, beta=found.beta * scale, bound=found.bound * scale, value=found.value * scale
    )


def find_prices(
    points: tuple[Tensor, Tensor],
    masses: tuple[Tensor, Tensor],
    weights: tuple[float, float],
    how: DevicePrices,
    *,
    gap_tol: float | None = None,
    time_limit: float | None = None,
    tell: Tell | None = None,
    group: Any = None,
) -> Found:
    """Prices for costs that are squared distances.

    All arguments are the same on all processes of the group; ``rows`` and ``mass`` of what is found are whole again.
    """
    processes, device = Processes(group), points[0].device
    watch = Watch(processes, time_limit, device)
    order = [along_a_curve(side) for side in points]  # neighbours side by side, since memory is slow
    x, y = (side[at] for side, at in zip(points, order, strict=True))
    wanted = (mass[at] for mass, at in zip(masses, order, strict=True))
    left, right = (Side(*side) for side in zip(both_clouds(x, y), wanted, weights, strict=True))
    levels, drawn = [Level.of(left, right, processes)], np.random.default_rng(how.seed)
    while (size := max(levels[-1].left.cloud.size, levels[-1].right.cloud.size)) > how.coarsest:
        coarse = []
        for side in (levels[-1].left, levels[-1].right):
            fewer = min(side.cloud.size, size // how.shrink)
            chosen = torch.from_numpy(np.sort(drawn.permutation(side.cloud.size)[:fewer])).to(device)
            is_whole = fewer == side.cloud.size
            coarse.append(side if is_whole else side.coarser(fewer, chosen, processes.shard(side.cloud.size)))
        levels.append(Level.of(coarse[0], coarse[1], processes))
    watch.note("coarser levels")
    level = levels.pop()
    stage = _first(level, how)
    watch.note("ascent")
    while levels:
        level, before = levels.pop(), level
        alpha = before.shard.gather(before.alpha(stage.beta), before.left.cloud.size)
        beta = level.right.capped(price(level.right.cloud, before.left.cloud, alpha).least)
        watch.note("pricing")
        is_last = not levels
        told = _in_order(tell, order) if is_last else None
        stage = _climb(level, beta, how, watch, gap_tol if is_last else None, told)
    alpha = level.alpha(stage.beta, proven=True)
    used = stage.mass > 0.0
    mine, size = stage.pairs.rows[used] + level.shard.first, int(used.sum())
    rows, cols, mass = _together((mine, stage.pairs.cols[used].long(), stage.mass[used]), size, processes)
    alphas, beta = torch.empty_like(level.left.mass), torch.empty_like(stage.beta)
    alphas[order[0]], beta[order[1]] = level.shard.gather(alpha, level.left.cloud.size), stage.beta
    bound, value = level.bound(alpha, stage.beta), level.value(stage.pairs, stage.mass)
    found = Found(alphas, beta, bound, value, order[0][rows], order[1][cols], mass, watch.seconds)
    watch.note("proof")
    return found


def _in_order(tell: Tell | None, order: list[Tensor]) -> Tell | None:
    """Tell of pairs in the order of the problem."""
    if tell is None:
        return None
    return lambda value, row, col, links: tell(value, int(order[0][row]), int(order[1][col]), links)


def _together(parts: tuple[Tensor, Tensor, Tensor], size: int, processes: Processes) -> tuple[Tensor, Tensor, Tensor]:
    """The links of all processes, one after the other."""
    group = processes.group
    if group is None:
        return parts
    world, rank = torch.distributed.get_world_size(group), torch.distributed.get_rank(group)
    sizes = torch.zeros(world, dtype=torch.int64, device=parts[0].device)
    sizes[rank] = size
    torch.distributed.all_reduce(sizes, group=group)
    first = int(sizes[:rank].sum())
    shard = Shard(first, first + size, group)
    return tuple(shard.gather(part, int(sizes.sum())) for part in parts)  # type: ignore[return-value]


# --- one level -------------------------------------------------------------------------------------------------------


class Stage(NamedTuple):
    """Where an ascent stands: prices of the columns, candidates and their masses."""

    beta: Tensor
    pairs: Pairs
    mass: Tensor


def _first(level: Level, how: DevicePrices) -> Stage:
    """The coarsest level, from nothing, on all pairs."""
    beta = torch.zeros_like(level.right.mass)
    most = max(level.left.cloud.size, level.right.cloud.size)
    pairs, _, _ = level.pairs(beta, most, None)
    size = _typical(level, pairs) * how.lists / most
    mass = torch.zeros_like(pairs.cost)
    for share in how.begin:
        beta, mass = _ascended(level, pairs, pairs.cost, beta, share * size, how.iterations, how)
    return Stage(beta, pairs, mass)


def _climb(
    level: Level, beta: Tensor, how: DevicePrices, watch: Watch, gap_tol: float | None, tell: Tell | None
) -> Stage:
    """From prices of a coarser level, on lists that follow the prices; the best prices found come back.

    A few pairs more than one expects mean that prices ran away: a column whose price is too high is on the lists of
    many rows. Such prices prove less, so the next stage begins a little above the best ones. In the first stage no
    price may rise by much.
    """
    size, width, old = 0.0, torch.zeros(()), None
    latest: tuple[Pairs, Tensor] | None = None
    highest, safest = -np.inf, beta
    for done in range(len(how.stages) + how.rounds):
        pairs, alpha, least = level.pairs(beta, how.lists, old)
        bound = level.bound(alpha, beta)
        if done == 0:
            size, width = _typical(level, pairs), _width(level, pairs, beta, least)
        elif bound < highest - how.fall * abs(highest):
            beta = torch.minimum(beta, safest + how.allowance * width)
            pairs, alpha, least = level.pairs(beta, how.lists, None)
            bound = level.bound(alpha, beta)
        watch.note("pricing")
        if bound > highest:
            highest, safest = bound, beta
        smoothing = how.stages[min(done, len(how.stages) - 1)] * size
        if done < len(how.stages):
            ceiling = beta + how.reach * width if done == 0 else None
            beta, mass = _ascended(level, pairs, pairs.cost, beta, smoothing, how.iterations, how, ceiling)
        else:
            mass = torch.zeros_like(pairs.cost)
            if latest is not None and done > len(how.stages):
                mass = pairs.matched(*latest)
            for _ in range(how.proximal):
                shifted = pairs.cost - smoothing * mass
                beta, mass = _ascended(level, pairs, shifted, beta, smoothing, how.refining, how)
        latest = pairs, mass
        old = pairs.key[mass > 0.0]
        watch.note("ascent")
        value = level.value(pairs, mass)
        is_over = watch.is_over(tell is not None and _is_stop(tell, value, level, pairs, mass))
        if is_over or done >= len(how.stages):
            bound = level.bound(level.alpha(beta), beta)
            if bound < highest:
                beta = safest
            watch.note("pricing")
            if is_over or gap_tol is None or value - max(bound, highest) <= gap_tol * abs(value):
                break
    assert latest is not None
    return Stage(beta, *latest)


def _is_stop(tell: Tell, value: float, level: Level, pairs: Pairs, mass: Tensor) -> bool:
    """Tell of a plan and its heaviest link: true stops the ascent."""
    if not mass.numel():
        return False
    heaviest = int(mass.argmax())
    row, col = level.shard.first + int(pairs.rows[heaviest]), int(pairs.cols[heaviest])
    return tell(value, row, col, int((mass > 0.0).sum()))


def _ascended(
    level: Level,
    pairs: Pairs,
    cost: Tensor,
    beta: Tensor,
    rho: float,
    iterations: int,
    how: DevicePrices,
    ceiling: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    masses, weights = (level.a, level.right.mass), (level.left.weight, level.right.weight)
    return ascend(pairs, cost, masses, weights, beta, rho, iterations, how, level.shard, ceiling)


def _typical(level: Level, pairs: Pairs) -> float:
    """The smoothing at which a row spreads over a quarter of its candidates or so."""
    rows = level.a.shape[0]
    low = torch.full((rows,), torch.inf, dtype=torch.float64, device=level.a.device)
    low = low.scatter_reduce_(0, pairs.rows, pairs.cost, "amin")
    high = torch.full_like(low, -torch.inf).scatter_reduce_(0, pairs.rows, pairs.cost, "amax")
    width = _middle(level, high - low)
    return 0.25 * (width or float(pairs.cost.abs().max()) or 1.0) / (float(level.left.mass.mean()) or 1.0)


def _width(level: Level, pairs: Pairs, beta: Tensor, least: Tensor) -> Tensor:
    """How far the candidates of a row are above its best one on average, in the middle."""
    reduced = pairs.cost - beta[pairs.cols.long()]
    number = torch.zeros_like(level.a).index_add_(0, pairs.rows, torch.ones_like(reduced))
    mean = torch.zeros_like(level.a).index_add_(0, pairs.rows, reduced) / number
    return torch.tensor(_middle(level, mean - least), dtype=beta.dtype, device=beta.device)


def _middle(level: Level, each: Tensor) -> float:
    """The median over all rows of all processes."""
    return float(level.shard.gather(each, level.left.cloud.size).median())
