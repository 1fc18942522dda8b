r"""Ascent of the smoothed dual on a device; `ascent` is the same by Numba.

For given prices :math:`\beta` every row has the masses :math:`\gamma_{ij} = (\beta_j - C_{ij} - \theta_i)_+ / \rho`,
where :math:`\theta_i` is the root of :math:`\sum_j \gamma_{ij} = \theta / 2\lambda_a + a_i`, found by Newton's method
from the left. What columns get beside their masses is the gradient of the dual in :math:`\beta`, its diagonal a step
size. Masses of rows are summed over all processes that share the rows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..effort import DevicePrices
from .device_pricing import has_triton

_WIDTHS = 4, 16, 32, 64, 256, 2048, 8192  # candidates of a row, rounded up: rows of a width share a launch
_PAIRS = 1024  # of a launch's tile
_NONE = -1e300


class Shard(NamedTuple):
    """The rows of this process, and how to add up and put together what the processes have."""

    first: int
    last: int
    group: Any = None  # a `torch.distributed` group; None for a single process

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.group is not None:
            torch.distributed.all_reduce(tensor, group=self.group)
        return tensor

    def gather(self, tensor: Tensor, size: int) -> Tensor:
        """The rows of all processes: adding zeros to zero changes no bit."""
        if self.group is None:
            return tensor
        whole = torch.zeros((size, *tensor.shape[1:]), dtype=tensor.dtype, device=tensor.device)
        whole[self.first : self.last] = tensor
        return self.sum(whole)


class Pairs(NamedTuple):
    """Candidate pairs of some rows, sorted by row."""

    key: Tensor  # row times columns plus column, ascending
    rows: Tensor
    cols: Tensor  # int32
    cost: Tensor
    first: Tensor  # (rows + 1,) where a row begins
    launches: list[tuple[int, Tensor]]  # widths, and the rows that have them

    @classmethod
    def of(cls, key: Tensor, cost: Callable[[Tensor, Tensor], Tensor], m: int, n: int) -> "Pairs":
        """From their keys."""
        rows = torch.div(key, n, rounding_mode="floor")
        cols = key - rows * n
        size = torch.bincount(rows, minlength=m)
        first = torch.zeros(m + 1, dtype=torch.int64, device=key.device)
        torch.cumsum(size, 0, out=first[1:])
        launches, below = [], -1
        widest = int(size.max()) if m else 0
        for width in (*_WIDTHS, 1 << max(widest - 1, 1).bit_length()):
            at = ((size > below) & (size <= width)).nonzero()[:, 0].int()
            below = max(below, width)
            if at.numel():
                launches.append((width, at))
        return cls(key, rows, cols.int(), cost(rows, cols), first, launches)

    def matched(self, other: "Pairs", values: Tensor) -> Tensor:
        """Values of other pairs on these; zero where they are not among them."""
        found = torch.zeros_like(self.cost)
        at = torch.searchsorted(self.key, other.key).clamp_(max=self.key.numel() - 1)
        both = self.key[at] == other.key
        found[at[both]] = values[both]
        return found


class Filled(NamedTuple):
    """What rows do at given prices."""

    load: Tensor  # of columns
    used: Tensor  # pairs of columns that carry mass
    theta: Tensor  # minus the prices of the rows
    value: Tensor  # what rows add to the dual value
    mass: Tensor | None


def fill(
    pairs: Pairs, cost: Tensor, beta: Tensor, a: Tensor, weight: float, rho: float, how: DevicePrices, *, keep: bool
) -> Filled:
    """The best masses of all rows at the prices of the columns, smoothed."""
    if has_triton(beta.device):
        return _fill_by_triton(pairs, cost, beta, a, weight, rho, how, keep)
    rows, cols, m = pairs.rows, pairs.cols.long(), a.shape[0]
    gain = beta[cols] - cost
    best = torch.full((m,), _NONE, dtype=gain.dtype, device=gain.device).scatter_reduce_(0, rows, gain, "amax")
    slack = 0.5 / weight
    theta = (best - rho * a) / (1.0 + rho * slack)
    for _ in range(how.newton):
        above = gain - theta[rows]
        total = torch.zeros_like(a).index_add_(0, rows, above.clamp(min=0.0))
        number = torch.zeros_like(a).index_add_(0, rows, (above > 0.0).to(a.dtype))
        theta = theta + (total / rho - theta * slack - a) / (number / rho + slack)
    mass = (gain - theta[rows]).clamp(min=0.0) / rho
    off = torch.zeros_like(a).index_add_(0, rows, mass) - a
    value = torch.zeros_like(a).index_add_(0, rows, mass * (0.5 * rho * mass - gain)) + weight * off * off
    load = torch.zeros_like(beta).index_add_(0, cols, mass)
    count = torch.zeros_like(beta).index_add_(0, cols, (mass > 0.0).to(beta.dtype))
    return Filled(load, count, theta, value, mass if keep else None)


def _fill_by_triton(
    pairs: Pairs, cost: Tensor, beta: Tensor, a: Tensor, weight: float, rho: float, how: DevicePrices, keep: bool
) -> Filled:
    import triton

    from ._triton import fill_rows

    load, count = torch.zeros_like(beta), torch.zeros_like(beta)
    theta, value = torch.zeros_like(a), torch.zeros_like(a)
    mass = torch.empty_like(cost) if keep else theta
    numbers = torch.tensor([weight, rho], dtype=torch.float64, device=beta.device)
    for width, at in pairs.launches:
        tile = max(_PAIRS // width, 1)
        fill_rows[(triton.cdiv(at.numel(), tile),)](
            *(pairs.first, at, pairs.cols, cost, beta, a, numbers, load, count, theta, value, mass, at.numel()),
            BM=tile,
            WIDTH=width,
            STEPS=how.newton if width < _WIDTHS[3] else how.newton_long,
            KEEP=keep,
            num_warps=4,
        )
    return Filled(load, count, theta, value, mass if keep else None)


def ascend(
    pairs: Pairs,
    cost: Tensor,
    masses: tuple[Tensor, Tensor],
    weights: tuple[float, float],
    beta: Tensor,
    rho: float,
    iterations: int,
    how: DevicePrices,
    shard: Shard,
    ceiling: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Prices of the columns with the best smoothed dual value met on the way, and the masses of all pairs at them."""
    (a, b), slack = masses, 0.5 / weights[1]
    point, last, best = beta.clone(), beta.clone(), beta.clone()
    highest = torch.full((), -torch.inf, dtype=b.dtype, device=b.device)
    before, pace, count = highest.clone(), torch.ones_like(highest), torch.ones_like(b)
    for _ in range(iterations):
        now = fill(pairs, cost, point, a, weights[0], rho, how, keep=False)
        told = shard.sum(torch.cat([now.load, now.used, now.value.sum()[None]]))
        load, used = told[: b.shape[0]], told[b.shape[0] : -1]
        value = told[-1] + (b * point - 0.5 * slack * point * point).sum()
        best = torch.where(value > highest, point, best)
        highest = torch.maximum(value, highest)
        fell = value < before - 1e-13 * value.abs()
        before = value
        count = torch.maximum(torch.where(fell, how.steeper, how.gentler) * count, used).clamp_(min=1.0)
        gradient = b - slack * point - load
        new = point + gradient / (slack + count / rho)
        if ceiling is not None:
            new = torch.minimum(new, ceiling)
        step = new - last
        pace = torch.where(fell | ((step * gradient).sum() < 0.0), torch.ones_like(pace), pace)
        faster = 0.5 * (1.0 + (1.0 + 4.0 * pace * pace).sqrt())
        point, last, pace = new + (pace - 1.0) / faster * step, new, faster
    mass = fill(pairs, cost, best, a, weights[0], rho, how, keep=True).mass
    assert mass is not None
    return best, mass
