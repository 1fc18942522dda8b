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
from ..options import Options
from ..problem import sides_of, weights_of
from ..result import Result
from .autograd import is_results, require_fixed, solve_tensors
from .geometry import cost_matrix, directions, gram_matrix, require_finite, two_sides

Clouds = Tensor | Sequence[Tensor]
Masses = Tensor | Sequence[Tensor | None] | None


class SparseTransportLoss(torch.nn.Module):
    r"""The value of transport with a budget between two clouds of points, as a loss.

    Gradients reach the points through the costs and through the Gram matrices, and the masses.

    Parameters
    ----------
    budget : int, Matroid or None
        As in ``solve``; None: the exact optimum without a budget.
    kernels : kernel, name, rule, or a pair of them
        What marginal errors are measured with. A bandwidth that a rule finds is that of the problem's own points,
        whatever else is in the batch, and is held fixed in the gradient.
    unbalanced : float, pair of floats, or "auto"
        λ: what missing the masses costs. "auto" looks at the costs of each problem in each call, so that a loss in any
        units moves mass, and λ is held fixed in the gradient. Give a number where the loss is to be one function
        throughout a training; what "auto" finds for typical points, ``Problem.from_points(x, y).unbalanced``, is a good
        one. Where λ is so small that a plan is empty, points have no reason to move, and a warning says so, once.
    reg : float
        λ₂.
    metric : {"sqeuclidean", "euclidean", "cosine"}
        The cost of moving a unit of mass.
    reduction : {"mean", "sum", "none"}
        What becomes of the values of a batch.
    fixed_kernel : bool
        No gradient through the Gram matrices, for kernels narrower than the steps that are to be taken.
    warm_start : bool
        Begin each solve with the support of the one before, for points that move little between calls.
    **options
        ``method``, ``gap_tol`` and everything else as in ``solve``.

    Attributes
    ----------
    results : list of Result
        Of the last call, one for each problem: links, status, gap. They hold the costs and kernels of that call, until
        the next one; copies and saved modules have none.

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
        weights_of(unbalanced)
        _checks.number("reg", reg, positive=False)
        start = options.get("start")
        many = isinstance(start, list) and is_results(start)  # one for every problem of a batch
        Options.checked(budget=budget, **options | ({"start": None} if many else {}))
        self.budget, self.kernels, self.unbalanced, self.reg = budget, kernels, unbalanced, reg
        self.metric, self.reduction, self.options = metric, reduction, options
        self.fixed_kernel = _checks.flag("fixed_kernel", fixed_kernel)
        self.warm_start = _checks.flag("warm_start", warm_start)
        self.results: list[Result] = []
        self._told = False  # that a plan was empty

    def __getstate__(self) -> dict[str, Any]:
        """Without the results, which may be large."""
        return self.__dict__ | {"results": []}

    def extra_repr(self) -> str:
        """What the module was made with."""
        return (
            f"budget={self.budget}, kernels={self.kernels!r}, unbalanced={self.unbalanced!r}, reg={self.reg}, "
            f"metric={self.metric!r}, reduction={self.reduction!r}"
        )

    def forward(self, x: Clouds, y: Clouds, a: Masses = None, b: Masses = None) -> Tensor:
        """The value for points of shape (..., m, d) and (..., n, d), with masses or uniform ones.

        Clouds of different sizes come as lists of tensors, one a problem, and their masses, if there are any, as well.
        """
        if isinstance(x, list | tuple) or isinstance(y, list | tuple):
            value, self.results = self._one_by_one(x, y, a, b)
        else:
            x, y = two_sides(x, y)
            start = self.results if self.warm_start and self._fits([(x, y)]) else self.options.get("start")
            self.results = []  # so that those of two calls do not meet in memory
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
                raise ValueError(f"{name} must be a list with a tensor for every problem, as x and y are")
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
            require_finite(x=x, y=y)  # what is wrong with the costs comes from there
            raise
        return outcome.value.to(dtype), results

    def _grams(self, x: Tensor, y: Tensor) -> Sequence[Tensor | None]:
        if self.metric == "cosine":  # which sees directions alone, and so do the kernels
            x, y = directions("x", x), directions("y", y)
        sides = zip(sides_of(self.kernels, "median"), (x, y), strict=True)
        grams = [gram_matrix(kernel, points) for kernel, points in sides]
        return [None if gram is None else gram.detach() for gram in grams] if self.fixed_kernel else grams

    def _fits(self, clouds: list[tuple[Tensor, Tensor]]) -> bool:
        """Were the last problems of this number and these shapes?"""
        shapes: list[tuple[int, ...]] = []
        for x, y in clouds:
            many = math.prod(np.broadcast_shapes(x.shape[:-2], y.shape[:-2]))
            shapes += [(x.shape[-2], y.shape[-2])] * many
        return shapes == [result.sparse_plan.shape for result in self.results]


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _tell_of_empty_plans(results: list[Result]) -> bool:
    """Warn if there are any where mass was wanted: a loss that is dead looks like one that has converged."""
    empty = sum(not part.mass.size and all(side.any() for side in part.wanted) for part in (r._parts for r in results))
    if empty:
        which = "the plan is" if len(results) == 1 else f"{empty} of {len(results)} plans are"
        _checks.warn(
            f"{which} empty, so nothing draws the points together: to move any mass costs more than to miss it all; "
            "raise unbalanced, or leave it at 'auto'"
        )
    return empty > 0
