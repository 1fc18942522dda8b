"""Transport with a budget as a loss between clouds of points."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import _checks
from ..budgets import Matroid
from ..geometry.costs import METRICS
from ..geometry.kernels import as_kernel
from ..given import require_finite_weights, sides_of
from ..options import Options
from ..result import Result
from .autograd import is_results, require_fixed, solve_tensors
from .geometry import cost_matrix, directions, gram_matrix, require_finite, two_sides

Clouds = Tensor | Sequence[Tensor]
Masses = Tensor | Sequence[Tensor | None] | None


class SparseTransportLoss(torch.nn.Module):
    r"""The objective of the plan within a budget between two clouds of points, as a loss.

    Gradients reach the points, through the costs and the Gram matrices, and the masses.

    Parameters
    ----------
    budget : int, Matroid or None
        As in ``solve``; None for the unbudgeted optimum.
    kernels : kernel, name, rule, or a pair of them
        The kernels that measure marginal errors. A rule finds the bandwidth from the points of each problem alone, and
        the bandwidth gets no gradient.
    unbalanced : float, pair of floats, or "auto"
        λ, the weight of the marginal errors. "auto" depends on the costs of each problem in each call, so that the loss
        moves mass in any units; λ gets no gradient. Give a number if the loss must be the same function throughout
        training; ``Problem.from_points(x, y, kernels="median").unbalanced`` for typical points is a good one. If λ is
        so small that a plan is empty, the points get no gradient from the costs, and a warning is given once.
    reg : float
        λ₂.
    metric : {"sqeuclidean", "euclidean", "cosine"}
        The cost of moving a unit of mass.
    reduction : {"mean", "sum", "none"}
        How the values of a batch are combined.
    fixed_kernel : bool
        Treat the Gram matrices as constants in the gradient, for kernels narrower than the intended steps.
    warm_start : bool
        Start each solve from the support of the previous one, for points that move little between calls.
    **options
        ``method``, ``gap_tol`` and all other options of ``solve``.

    Attributes
    ----------
    results : list of Result
        The results of the last call, one for each problem. They hold the costs and kernels of that call until the next
        one; copies and saved modules have none.

    Examples
    --------
    >>> import torch
    >>> from sparsetransport import nn
    >>> x = torch.tensor([[0.0, 0.0], [1.0, 0.0]], requires_grad=True)
    >>> y = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
    >>> loss = nn.SparseTransportLoss(budget=2, unbalanced=50.0, fixed_kernel=True)(x, y)
    >>> loss.backward()
    >>> x.grad.round(decimals=1)
    tensor([[ 0., -1.],
            [ 0., -1.]])
    """

    def __init__(
        self,
        budget: int | Matroid | None = None,
        kernels: Any = "median",
        unbalanced: Any = "auto",
        reg: float = 0.0,
        *,
        metric: str = "sqeuclidean",
        reduction: str = "mean",
        fixed_kernel: bool = False,
        warm_start: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        _checks.choice("reduction", reduction, dict.fromkeys(("mean", "sum", "none")))
        _checks.choice("metric", metric, METRICS)
        for k, each in enumerate(sides_of(kernels, "median")):
            as_kernel(f"kernels[{k}]", each)
        require_fixed(unbalanced=unbalanced, reg=reg)
        require_finite_weights(unbalanced, "gradients")
        _checks.number("reg", reg, positive=False)
        start = options.get("start")
        many = isinstance(start, list) and is_results(start)  # one for every problem of a batch
        Options.checked(budget=budget, **options | ({"start": None} if many else {}))
        self.budget, self.kernels, self.unbalanced, self.reg = budget, kernels, unbalanced, reg
        self.metric, self.reduction, self.options = metric, reduction, options
        self.fixed_kernel = _checks.flag("fixed_kernel", fixed_kernel)
        self.warm_start = _checks.flag("warm_start", warm_start)
        self.results: list[Result] = []
        self._told = False  # whether a warning about empty plans was given

    def __getstate__(self) -> dict[str, Any]:
        """The state without the results, which may be large."""
        return self.__dict__ | {"results": []}

    def extra_repr(self) -> str:
        """The settings of the module."""
        return (
            f"budget={self.budget}, kernels={self.kernels!r}, unbalanced={self.unbalanced!r}, reg={self.reg}, "
            f"metric={self.metric!r}, reduction={self.reduction!r}"
        )

    def forward(self, x: Clouds, y: Clouds, a: Masses = None, b: Masses = None) -> Tensor:
        """The value for points of shape (..., m, d) and (..., n, d), with masses or uniform ones.

        Clouds of different sizes are lists of tensors, one for each problem, and so are their masses, if given.
        """
        if isinstance(x, list | tuple) or isinstance(y, list | tuple):
            value, self.results = self._one_by_one(x, y, a, b)
        else:
            x, y = two_sides(x, y)
            start = self.results if self.warm_start and self._fits([(x, y)]) else self.options.get("start")
            self.results = []  # so that memory never holds those of two calls
            value, self.results = self._values(x, y, a, b, start)
        if not self._told:
            self._told = _tell_of_empty_plans(self.results)
        if self.reduction == "none":
            return value
        return value.mean() if self.reduction == "mean" else value.sum()

    def _one_by_one(self, x: Clouds, y: Clouds, a: Masses, b: Masses) -> tuple[Tensor, list[Result]]:
        """The values of clouds of different sizes."""
        none = [None] * len(x)
        for name, side in {"x": x, "y": y, "a": none if a is None else a, "b": none if b is None else b}.items():
            if not isinstance(side, list | tuple) or len(side) != len(x) or not side:
                raise ValueError(f"{name} must be a list with one tensor for every problem, as x and y are")
        clouds = [two_sides(*pair) for pair in zip(x, y, strict=True)]
        given = self.options.get("start")
        starts = given if isinstance(given, list) and is_results(given) else [given] * len(x)
        starts = self.results if self.warm_start and self._fits(clouds) else starts
        sides = *zip(*clouds, strict=True), a or none, b or none
        found = [self._values(*one) for one in zip(*sides, starts, strict=True)]
        return torch.stack([value for value, _ in found]), [result for _, results in found for result in results]

    def _values(self, x: Tensor, y: Tensor, a: Any, b: Any, start: Any) -> tuple[Tensor, list[Result]]:
        dtype = torch.promote_types(x.dtype, torch.float32)
        with torch.autocast(x.device.type, enabled=False):
            x, y = x.double(), y.double()
            costs = cost_matrix(x, y, self.metric)
            kernels = self._grams(x, y)
        options = self.options | {"budget": self.budget, "unbalanced": self.unbalanced, "reg": self.reg, "start": start}
        try:
            outcome, results = solve_tensors(costs, a, b, kernels, **options)
        except ValueError:
            require_finite(x=x, y=y)  # bad points are reported rather than the bad costs they cause
            raise
        return outcome.value.to(dtype), results

    def _grams(self, x: Tensor, y: Tensor) -> Sequence[Tensor | None]:
        if self.metric == "cosine":  # which depends on directions alone, and so must the kernels
            x, y = directions("x", x), directions("y", y)
        sides = zip(sides_of(self.kernels, "median"), (x, y), strict=True)
        grams = [gram_matrix(kernel, points) for kernel, points in sides]
        return [None if gram is None else gram.detach() for gram in grams] if self.fixed_kernel else grams

    def _fits(self, clouds: list[tuple[Tensor, Tensor]]) -> bool:
        """True if the last problems had the same number and shapes."""
        shapes: list[tuple[int, ...]] = []
        for x, y in clouds:
            many = math.prod(np.broadcast_shapes(x.shape[:-2], y.shape[:-2]))
            shapes += [(x.shape[-2], y.shape[-2])] * many
        return shapes == [result.sparse_plan.shape for result in self.results]


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _tell_of_empty_plans(results: list[Result]) -> bool:
    """Warn of empty plans between clouds with mass: a loss without gradient looks as if it had converged."""
    empty = sum(not part.mass.size and all(side.any() for side in part.wanted) for part in (r._parts for r in results))
    if empty:
        which = "the plan is" if len(results) == 1 else f"{empty} of {len(results)} plans are"
        _checks.warn(
            f"{which} empty, so the costs give the points no gradient: moving mass costs more than the marginal errors "
            "it removes; raise unbalanced, or leave it at 'auto'"
        )
    return empty > 0
