r"""Pricing on a device: the least :math:`|x_i - y_j|^2 - \beta_j` of every row, by PyTorch and, on a GPU, Triton.

No array of all pairs exists. A Triton kernel keeps a tile of rows in registers while the columns stream by, and the
best column of every residue class: their least is the minimum of the row, and the best of them are its candidates.
Without Triton, blocks of rows are priced in double precision.

A bound is a proof only if minima are not too large. With the unit :math:`u` of single precision, and points that were
rounded to it, the error of a reduced cost is at most

.. math::
    (2d + 5) u |\beta_j| + (d + 4) u |m_i| + 4u (|x_i|^2 + |y_j|^2)

in up to three dimensions, where differences are squared (:math:`m_i` is the minimum, and the last term is missing if
nothing was rounded), and :math:`(d + 8) u (|x_i|^2 + |y_j|^2) + 4u (|\beta_j| + |m_i|)` for matrix products, whatever
the order of their sums. The parts of columns are added to the prices, those of rows are subtracted from the minima.
"""

import importlib.util
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._checks import Floats, Ints
from ..geometry.matrices import Cost
from ..geometry.pricing import Pricing

SINGLE = 2.0**-24  # the unit of rounding
_DOUBLE = 2.0**-53
_BY_DIFFERENCES = 3  # dimensions up to which differences are squared
_MOST_DIMENSIONS = 256  # that a tile of points may have in the Triton kernel
_BLOCK = 1 << 24  # entries that are in memory at a time
_ROWS = 1 << 18  # rows of a launch
_BASE, _A_POINT, _A_COORDINATE = 3 << 28, 1600, 20  # bytes that prices take, seen at 100,000 and a million points
_CURVE = 20  # bits of a coordinate
_LANES_FROM = 20_000  # columns; fewer are compared directly


class Cloud(NamedTuple):
    """Points on a device, in double and in single precision; ``padding`` fills dimensions up to a power of two."""

    points: Tensor  # (m, d) float64
    single: Tensor  # (m, D) float32
    is_exact: bool  # nothing was rounded

    @classmethod
    def of(cls, points: Tensor) -> "Cloud":
        """From points in double precision."""
        m, d = points.shape
        width = d if d <= _BY_DIFFERENCES else max(16, 1 << (d - 1).bit_length())
        single = torch.zeros(m, width, dtype=torch.float32, device=points.device)
        single[:, :d] = points
        return cls(points, single, bool((single[:, :d].double() == points).all()))

    def part(self, chosen: Tensor | slice) -> "Cloud":
        """Some of the points."""
        return Cloud(self.points[chosen], self.single[chosen], self.is_exact)

    @property
    def size(self) -> int:
        """How many points there are."""
        return self.points.shape[0]

    @property
    def dimensions(self) -> int:
        """The number of dimensions."""
        return self.points.shape[1]

    @property
    def squares(self) -> Tensor:
        """Squared norms."""
        return (self.points * self.points).sum(1)

    def costs(self, rows: Tensor, other: "Cloud", cols: Tensor) -> Tensor:
        """Squared distances of pairs, in double precision."""
        out = torch.empty(rows.shape[0], dtype=torch.float64, device=rows.device)
        step = max(_BLOCK // self.dimensions, 1)
        for first in range(0, rows.shape[0], step):
            part = slice(first, first + step)
            apart = self.points[rows[part]] - other.points[cols[part]]
            out[part] = (apart * apart).sum(1)
        return out


class DevicePricing(Pricing):
    """Rows and columns of squared distances, priced on a device.

    Of each row come the columns that are about the cheapest. The first value is proven: no pair is below it, and its
    own pair may be above it by what rounding may hide.
    """

    def __init__(self, cost: Cost, device: Any) -> None:
        super().__init__(cost)
        require_memory(torch.device(device), sum(cost.shape), self.points[0].shape[1])
        (x, y), self._unit = in_single_range(*self.points)
        self._clouds = both_clouds(torch.from_numpy(x).to(device), torch.from_numpy(y).to(device))

    def _least(self, prices: Floats, k: int, axis: int, below: Floats | None) -> tuple[Floats, Ints]:
        near, far = self._clouds[axis], self._clouds[1 - axis]
        scale = self.cost.compiled.scale * self._unit**2
        reduced = torch.from_numpy(prices / scale).to(near.points.device)
        found = price(near, far, reduced, k, proven=True)
        k = found.cols.shape[1]
        rows = torch.arange(near.size, device=reduced.device).repeat_interleave(k)
        values = near.costs(rows, far, found.cols.flatten()).reshape(-1, k) - reduced[found.cols]
        values, order = values.sort(1)
        values[:, 0] = torch.minimum(values[:, 0], found.least)
        value, index = (values * scale).cpu().numpy(), found.cols.gather(1, order).cpu().numpy()
        if below is not None:
            index[value >= below[:, None]] = -1
            value[index < 0] = np.inf
        return value, index


def require_memory(device: torch.device, points: int, dimensions: int) -> None:
    """Raise an error, before any work, if a GPU has too little memory for so many points of both sides."""
    if device.type != "cuda":
        return
    free, _ = torch.cuda.mem_get_info(device)
    needed = _BASE + points * (_A_POINT + _A_COORDINATE * dimensions)
    if needed > free:
        raise MemoryError(
            f"device={str(device)!r} has {free / 2**30:.1f} GiB free, and {points:,} points in {dimensions} dimensions "
            f"take about {needed / 2**30:.1f} GiB: share the rows among several GPUs, or leave device out"
        )


def in_single_range(x: Floats, y: Floats) -> tuple[tuple[Floats, Floats], float]:
    """Points divided by a power of two, so that no square leaves the range of single precision; and that power."""
    largest = max(float(np.abs(side).max(initial=0.0)) for side in (x, y))
    unit = float(2.0 ** np.frexp(largest)[1]) if largest else 1.0
    return (x / unit, y / unit), unit


def both_clouds(x: Tensor, y: Tensor) -> tuple[Cloud, Cloud]:
    """The points of both sides; around zero where matrix products would round more elsewhere."""
    middle = y.mean(0, keepdim=True) if y.shape[1] > _BY_DIFFERENCES else torch.zeros_like(y[:1])
    return Cloud.of(x - middle), Cloud.of(y - middle)


def along_a_curve(points: Tensor) -> Tensor:
    """An order in which points near each other follow one another: along the Z-curve of their widest coordinates."""
    widest = points.var(0, correction=0).topk(min(points.shape[1], _BY_DIFFERENCES)).indices
    low, high = points[:, widest].amin(0), points[:, widest].amax(0)
    cells = ((points[:, widest] - low) / (high - low).clamp(min=1e-300) * (2**_CURVE - 1)).long()
    code = torch.zeros_like(cells[:, 0])
    for bit in range(_CURVE):
        for axis in range(len(widest)):
            code |= ((cells[:, axis] >> bit) & 1) << (bit * len(widest) + axis)
    return code.argsort(stable=True)


class Priced(NamedTuple):
    """The least reduced cost of every row, and its candidates: about the ``k`` columns of least reduced cost."""

    least: Tensor  # (m,) float64
    cols: Tensor  # (m, k)
    values: Tensor  # (m, k), in the precision they were found with


def price(x: Cloud, y: Cloud, beta: Tensor, k: int = 1, *, proven: bool = False) -> Priced:
    """The least ``|x_i - y_j|² - beta_j`` of every row; never above the true one if ``proven``."""
    k = min(k, y.size)
    middle = 0.5 * (beta.max() + beta.min())  # prices near zero lose less in rounding
    beta = beta - middle
    by_kernel = y.size >= _LANES_FROM and y.dimensions <= _MOST_DIMENSIONS and has_triton(beta.device)
    if not by_kernel:
        priced = _by_blocks(x, y, beta, k, proven)
    elif y.dimensions <= _BY_DIFFERENCES:
        priced = _by_differences(x, y, beta, k, proven)
    else:
        priced = _by_products(x, y, beta, k, proven)
    return Priced(priced.least - middle, priced.cols, priced.values - middle)


def has_triton(device: torch.device) -> bool:
    """True if the device is a GPU that Triton compiles for."""
    return device.type == "cuda" and importlib.util.find_spec("triton") is not None


def _by_blocks(x: Cloud, y: Cloud, beta: Tensor, k: int, proven: bool) -> Priced:
    """By matrix products, or differences, in double precision."""
    parts = []
    few = x.dimensions <= _BY_DIFFERENCES
    offset = -beta if few else y.squares - beta
    for first in range(0, x.size, max(_BLOCK // y.size, 1)):
        rows = x.points[first : first + max(_BLOCK // y.size, 1)]
        if few:
            reduced = offset.expand(len(rows), -1).clone()
            for d in range(x.dimensions):
                reduced += (rows[:, d, None] - y.points[None, :, d]) ** 2
        else:
            reduced = torch.addmm(offset[None], rows, y.points.T, alpha=-2.0)
            reduced += (rows * rows).sum(1)[:, None]
        values, cols = reduced.topk(k, 1, largest=False, sorted=False)
        parts.append((values.min(1).values, cols, values))
    least, cols, values = (torch.cat(part) for part in zip(*parts, strict=True))
    if proven:
        size = float(beta.abs().max()) + least.abs() + (0.0 if few else x.squares + y.squares.max())
        least = least - (x.dimensions + 12) * _DOUBLE * size
    return Priced(least, cols, values)


def _by_differences(x: Cloud, y: Cloud, beta: Tensor, k: int, proven: bool) -> Priced:
    """By the Triton kernel of squared differences."""
    from ._triton import lanes_of_differences

    d, offset, lower = x.dimensions, -beta, torch.zeros_like(beta[:1])
    if proven:
        offset = offset - (2 * d + 5) * SINGLE * beta.abs()
        if not (x.is_exact and y.is_exact):
            offset, lower = offset - 4.0 * SINGLE * y.squares, 4.0 * SINGLE * x.squares
    settings = {"D": d, "BM": 32, "BN": 256, "num_warps": 8}
    least, cols, values = _launch(lanes_of_differences, settings, x, y, offset, k)
    if proven:
        least = least - (d + 4) * SINGLE * least.abs() - lower
    return Priced(least, cols, values)


def _by_products(x: Cloud, y: Cloud, beta: Tensor, k: int, proven: bool) -> Priced:
    """By the Triton kernel of matrix products; in true single precision if proven."""
    from ._triton import lanes_of_products

    d, squares, offset = x.dimensions, x.squares, y.squares - beta
    if proven:
        offset = offset - (d + 8) * SINGLE * y.squares - 4.0 * SINGLE * beta.abs()
        settings = {"PRECISION": "ieee", "BM": 64, "BN": 128, "num_warps": 8}
    else:
        settings = {"PRECISION": "tf32x3", "BM": 128, "BN": 128, "num_warps": 8, "num_stages": 3}
    least, cols, values = _launch(lanes_of_products, {"D": x.single.shape[1]} | settings, x, y, offset, k)
    least, values = least + squares, values + squares[:, None].float()
    if proven:
        least = least - (d + 8) * SINGLE * squares - 4.0 * SINGLE * least.abs()
    return Priced(least, cols, values)


def _launch(kernel: Any, settings: dict[str, Any], x: Cloud, y: Cloud, offset: Tensor, k: int) -> Priced:
    """Run a kernel over chunks of rows, and choose the best lanes."""
    import triton

    lanes, tile, parts = settings["BN"], settings["BM"], []
    offset = offset.float()
    for first in range(0, x.size, _ROWS):
        rows = x.single[first : first + _ROWS]
        m = rows.shape[0]
        least = torch.empty(m, lanes, dtype=torch.float32, device=rows.device)
        column = torch.empty(m, lanes, dtype=torch.int32, device=rows.device)
        kernel[(triton.cdiv(m, tile),)](rows, y.single, offset, least, column, m, y.size, **settings)
        values, best = least.topk(k, 1, largest=False, sorted=False)
        parts.append((values.min(1).values.double(), column.gather(1, best).long(), values))
    return Priced(*(torch.cat(part) for part in zip(*parts, strict=True)))
