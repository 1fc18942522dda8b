"""Transport with a budget as a loss between clouds of points."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _checks
from ..geometry.costs import METRICS
from ..geometry.kernels import as_kernel
from ..matroids import Matroid
from ..options import Options
from ..problem import weights_of
from ..result import Result
from .autograd import is_results, require_fixed, solve_tensors
from .geometry import cost_matrix, directions, gram_matrix, two_sides


class SparseTransportLoss(torch.nn.Module):
    r"""The value of transport with a budget between two clouds of points, as a loss.

    Gradients reach the points through the costs and through the Gram matrices, and the masses.

    Parameters
    ----------
    budget : int, Matroid or None
        As in ``solve``; None: the exact optimum without a budget.
    kernel : kernel, name, rule, or a pair of them
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
        kernel: Any = "median",
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
        for each in _kernel_pair(kernel):
            as_kernel("kernel", each)
        require_fixed(unbalanced=unbalanced, reg=reg)
        weights_of(unbalanced)
        _checks.number("reg", reg, positive=False)
        if "kernels" in options:
            raise TypeError("there is no option kernels: here it is kernel, one for both sides or a pair")
        start = options.get("start")
        many = isinstance(start, list) and is_results(start)  # one for every problem of a batch
        Options.checked(budget=budget, **options | ({"start": None} if many else {}))
        self.budget, self.kernel, self.unbalanced, self.reg = budget, kernel, unbalanced, reg
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
            f"budget={self.budget}, kernel={self.kernel!r}, unbalanced={self.unbalanced!r}, reg={self.reg}, "
            f"metric={self.metric!r}, reduction={self.reduction!r}"
        )

    def forward(self, x: Tensor, y: Tensor, a: Tensor | None = None, b: Tensor | None = None) -> Tensor:
        """The value for points of shape (..., m, d) and (..., n, d), with masses or uniform ones."""
        x, y = two_sides(x, y)
        dtype = torch.promote_types(x.dtype, torch.float32)
        with torch.autocast(x.device.type, enabled=False):
            x, y = x.double(), y.double()
            costs = cost_matrix(x, y, self.metric)
            kernels = self._grams(x, y)
        start = self.results if self.warm_start and self._fits(costs) else self.options.get("start")
        self.results = []  # so that those of two calls do not meet in memory
        outcome, self.results = solve_tensors(
            costs,
            a,
            b,
            kernels,
            unbalanced=self.unbalanced,
            reg=self.reg,
            budget=self.budget,
            start=start,
            **{name: value for name, value in self.options.items() if name != "start"},
        )
        if not self._told:
            self._told = _tell_of_empty_plans(self.results)
        value: Tensor = outcome.value.to(dtype)
        if self.reduction == "none":
            return value
        return value.mean() if self.reduction == "mean" else value.sum()

    def _grams(self, x: Tensor, y: Tensor) -> Sequence[Tensor | None]:
        if self.metric == "cosine":  # which sees directions alone, and so do the kernels
            x, y = directions("x", x), directions("y", y)
        grams = [gram_matrix(kernel, points) for kernel, points in zip(_kernel_pair(self.kernel), (x, y), strict=True)]
        return [None if gram is None else gram.detach() for gram in grams] if self.fixed_kernel else grams

    def _fits(self, costs: Tensor) -> bool:
        """Were the last problems of this number and shape?"""
        many = costs[..., 0, 0].numel()
        return len(self.results) == many and all(
            result.sparse_plan.shape == tuple(costs.shape[-2:]) for result in self.results
        )


def _kernel_pair(kernel: Any) -> tuple[Any, Any]:
    """One kernel for both sides, or one each."""
    if not isinstance(kernel, list | tuple):
        return kernel, kernel
    if len(kernel) != 2:
        raise ValueError(f"kernel must be one for both sides or a pair, got {len(kernel)} of them")
    return kernel[0], kernel[1]


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
