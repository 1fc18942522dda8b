"""Differentiable plans and values."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import _checks
from ..api import solve
from ..batch import solve_batch
from ..budgets import Matroid
from ..geometry.kernels import Delta
from ..geometry.matrices import Gram, gram_rounding
from ..given import require_finite_weights
from ..gradients import named, newton_step, step_backward, transport_backward
from ..options import Options
from ..problem import Problem
from ..result import Result
from .geometry import require_tensor

_THREADS = 8
_PARTS = "C", "a", "b", "kernels[0]", "kernels[1]"
_LARGEST_RIDGE = 0.1  # of the diagonal; reached by a million points in float32, by 13 in bfloat16


class Transport(NamedTuple):
    """A plan and its objective, both differentiable."""

    plan: Tensor
    """Of shape (..., m, n)."""
    value: Tensor
    """Of shape (...)."""


def sparse_transport(
    C: Tensor,
    a: Tensor | None = None,
    b: Tensor | None = None,
    *,
    kernels: Any = None,
    unbalanced: Any = "auto",
    reg: float = 0.0,
    budget: int | Matroid | None = None,
    **options: Any,
) -> Transport:
    r"""A plan within a budget and its value, both differentiable.

    The forward pass is ``sparsetransport.solve``: exact on its support, in double precision, on the CPU. The value

    .. math::
        U(\gamma) = \langle C, \gamma\rangle + \lambda_a \|\gamma 1 - a\|^2_{G_a}
        + \lambda_b \|\gamma^\top 1 - b\|^2_{G_b} + \tfrac{\lambda_2}{2}\|\gamma\|^2

    is differentiated by the envelope theorem: its gradient is that of the formula with γ held fixed. The plan is
    differentiated on its positive entries S, where the gradient of U vanishes: :math:`d\gamma_S =
    -H_{SS}^{-1}\, d(\nabla U)_S`, one solve with a Cholesky factor. Entries without mass have derivative
    zero, since the support is held fixed: it is constant almost everywhere, and the plan is discontinuous where it
    changes. Derivatives of any order are exact.

    Parameters
    ----------
    C : tensor of shape (..., m, n)
        Costs; ``+inf`` forbids a pair and gets no gradient. Leading dimensions are a batch of problems, solved
        together as by ``solve_batch``.
    a, b : tensors of shape (..., m) and (..., n), optional
        Masses; those without leading dimensions are shared by the batch. Uniform with total one by default, whatever
        the other side has.
    kernels : Gram matrix, `Delta`, or a pair of them, optional
        Tensors of shape (..., m, m) and (..., n, n); their gradient is symmetric. `Delta` by default. See
        `gram_matrix` for a differentiable Gram matrix of points. A Gram matrix below double precision is made symmetric
        and gets a ridge of the size of its rounding error, which might have made it indefinite.
    unbalanced : float, pair of floats, or "auto"
        λ. The value that "auto" finds is held fixed; tensors that require a gradient are refused.
    reg : float
        λ₂; tensors that require a gradient are refused.
    budget : int, Matroid or None
        As in ``solve``.
    **options
        ``method``, ``gap_tol`` and all other options of ``solve``.

    Returns
    -------
    Transport
        ``plan`` and ``value``, on the device of the input and in its precision, at least float32.

    Examples
    --------
    >>> import torch
    >>> import sparsetransport as st
    >>> from sparsetransport import nn
    >>> C = torch.tensor([[0.0, 1.0], [1.0, 0.0]], requires_grad=True)
    >>> plan, value = nn.sparse_transport(C, unbalanced=10.0, reg=0.1, budget=st.PerColumn(1))
    >>> value.backward()
    >>> bool(torch.allclose(C.grad, plan))
    True
    """
    outcome: Transport = solve_tensors(C, a, b, kernels, unbalanced=unbalanced, reg=reg, budget=budget, **options)[0]
    return outcome


@torch.compiler.disable  # type: ignore[untyped-decorator]
def solve_tensors(
    C: Tensor,
    a: Tensor | None,
    b: Tensor | None,
    kernels: Any,
    *,
    start: Any = None,
    **options: Any,
) -> tuple[Transport, list[Result]]:
    """As `sparse_transport`, and the results behind it; ``start`` may be a list with one start for every problem."""
    require_fixed(unbalanced=options["unbalanced"], reg=options["reg"])
    sides = _Sides.of(C, a, b, kernels)
    given = {"unbalanced": options.pop("unbalanced"), "reg": options.pop("reg")}
    Options.checked(**options | {"start": None if isinstance(start, list) and is_results(start) else start})
    require_finite_weights(given["unbalanced"], "gradients")
    _checks.number("reg", given["reg"], positive=False)
    if isinstance(options.get("rng"), np.random.Generator) and C.ndim > 2:
        raise TypeError("rng must be a seed, got a Generator, which the threads of a batch cannot share")
    parts = sides.apart()
    many = len(parts)
    starts = start if isinstance(start, list) and len(start) == many and is_results(start) else [start] * many
    batch = _Batch(tuple(C.shape[:-2]), parts, starts, given, options)
    step = -(-many // min(_THREADS, _checks.cores()))
    shares = [range(first, min(first + step, many)) for first in range(0, many, step)]
    if len(shares) == 1:
        solved = batch.solve(shares[0])
    else:
        with ThreadPoolExecutor(len(shares)) as pool:
            solved = [each for share in pool.map(batch.solve, shares) for each in share]
    with torch.autocast(C.device.type, enabled=False):
        costs, a, b, *grams = sides.tensors
        masses = a.expand(many, -1), b.expand(many, -1)
        plan, value = _Solution.apply(solved, costs, *masses, *grams)  # type: ignore[no-untyped-call]
        outcome = Transport(
            plan.reshape(C.shape).to(C.device, sides.dtype), value.reshape(C.shape[:-2]).to(C.device, sides.dtype)
        )
    return outcome, [result for _, result in solved]


def is_results(start: list[Any]) -> bool:
    """True if this is a list with one start for every problem of a batch."""
    return all(isinstance(each, Result) for each in start)


class _Batch(NamedTuple):
    """Problems to solve, and how."""

    lead: tuple[int, ...]  # the leading dimensions of the batch
    parts: list[tuple[Any, ...]]  # costs, masses and kernels of every problem
    starts: list[Any]
    given: dict[str, Any]
    options: dict[str, Any]

    def solve(self, some: range) -> list[tuple[Problem, Result]]:
        """Solve a share of the problems: together where possible, and the rest, or those with errors, one by one."""
        problems = [self._problem(which) for which in some]
        results: list[Any] = [None] * len(some)
        if len(some) > 1 and self.options.get("callback") is None and all(self.starts[k] is None for k in some):
            alike = {name: value for name, value in self.options.items() if name != "callback"}
            results = solve_batch(problems, on_error="record", **alike)
        for k, which in enumerate(some):
            if not isinstance(results[k], Result):
                with self._named(which):
                    results[k] = solve(problems[k], start=self.starts[which], **self.options)
        return list(zip(problems, results, strict=True))

    def _problem(self, which: int) -> Problem:
        cost, a, b, *kernels = self.parts[which]
        with self._named(which):
            return Problem.from_matrices(cost, a, b, kernels=kernels, **self.given)

    def _named(self, which: int) -> AbstractContextManager[None]:
        return named(tuple(map(int, np.unravel_index(which, self.lead))) if self.lead else ())


class _Sides(NamedTuple):
    """The tensors of a batch, in double precision on the CPU, with one leading dimension or, if shared, none."""

    tensors: tuple[Any, ...]  # costs, masses and Gram matrices, None for `Delta`
    dtype: torch.dtype

    @classmethod
    def of(cls, C: Tensor, a: Tensor | None, b: Tensor | None, kernels: Any) -> "_Sides":
        """The tensors, checked to hold real numbers and to have matching shapes."""
        require_tensor("C", C)
        if C.ndim < 2:
            raise ValueError(f"C must have at least 2 dimensions, got shape {tuple(C.shape)}")
        if 0 in C.shape:
            raise ValueError(f"C must not be empty, got shape {tuple(C.shape)}")
        m, n = C.shape[-2:]
        first, second = kernels if isinstance(kernels, list | tuple) and len(kernels) == 2 else (kernels, kernels)
        parts = zip(_PARTS[1:], (a, b, _gram(first), _gram(second)), ((m,), (n,), (m, m), (n, n)), strict=True)
        dtype = torch.promote_types(C.dtype, torch.float32)
        ready: list[Tensor | None] = [C.to("cpu", torch.float64).reshape(-1, m, n)]
        for name, part, shape in parts:
            if part is None:  # uniform masses, or `Delta`
                ready.append(torch.full(shape, 1.0 / shape[0], dtype=torch.float64) if len(shape) == 1 else None)
                continue
            require_tensor(name, part)
            lead = tuple(part.shape[: part.ndim - len(shape)])
            if tuple(part.shape[part.ndim - len(shape) :]) != shape or lead not in ((), tuple(C.shape[:-2])):
                shown = ", ".join(map(str, [*C.shape[:-2], *shape]))
                raise ValueError(f"{name} must have shape ({shown}), got {tuple(part.shape)}")
            dtype = torch.promote_types(dtype, part.dtype)
            double = part.to("cpu", torch.float64)
            if len(shape) == 2:
                double = _mirrored(double, part.dtype) + _ridge(part)
            ready.append(double.reshape(-1, *shape) if lead else double)
        return cls(tuple(ready), dtype)

    def apart(self) -> list[tuple[Any, ...]]:
        """The costs, masses and kernels of every problem; a shared Gram matrix is checked once."""
        many, sides = len(self.tensors[0]), list[Any]()
        for name, part, single in zip(_PARTS, self.tensors, (2, 1, 1, 2, 2), strict=True):
            if part is None:
                sides.append([Delta()] * many)
                continue
            array = part.detach().numpy()
            shared = Gram.dense(name, array, len(array)) if single == 2 and array.ndim == 2 else array
            sides.append(array if array.ndim > single else [shared] * many)
        return list(zip(*sides, strict=True))


def _gram(kernel: Any) -> Tensor | None:
    if kernel is None or isinstance(kernel, Delta):
        return None
    if not isinstance(kernel, Tensor):
        raise TypeError(
            f"kernels must be tensors or Delta(), got {kernel!r}: gram_matrix makes a tensor from points, and "
            "SparseTransportLoss takes points"
        )
    return kernel


def _mirrored(gram: Tensor, given: torch.dtype) -> Tensor:
    """Each Gram matrix made symmetric, if it is symmetric up to the rounding of its precision."""
    if given == torch.float64 or not given.is_floating_point:
        return gram
    off = (gram - gram.mT).detach().abs().amax((-2, -1), keepdim=True)
    largest = gram.detach().abs().amax((-2, -1), keepdim=True)
    rounding = gram_rounding(gram.shape[-1], torch.finfo(given).eps) * largest
    return torch.where(off <= rounding, 0.5 * (gram + gram.mT), gram)


def _ridge(gram: Tensor) -> Tensor:
    """A diagonal for each matrix that makes up for rounding below double precision."""
    size = gram.shape[-1]
    rounding = 0.0 if gram.dtype == torch.float64 or not gram.is_floating_point() else torch.finfo(gram.dtype).eps
    if size * rounding > _LARGEST_RIDGE:
        name = str(gram.dtype).removeprefix("torch.")
        _checks.warn(
            f"a Gram matrix of {size} points in {name} gets a ridge of {size * rounding:.2g} times its diagonal to "
            "make up for rounding, which changes the problem: compute it in float32 at least"
        )
    scale = gram.detach().diagonal(dim1=-2, dim2=-1).amax(-1).to("cpu", torch.float64)
    return size * rounding * scale[..., None, None] * torch.eye(size, dtype=torch.float64)


def require_fixed(**weights: Any) -> None:
    """Raise an error if a weight requires a gradient, which it would not get."""
    for name, weight in weights.items():
        for each in weight if isinstance(weight, list | tuple) else [weight]:
            if isinstance(each, Tensor) and each.requires_grad:
                raise TypeError(f"{name} must not require a gradient, since weights get none: call .detach()")


class _Solution(torch.autograd.Function):
    """Plans and values of a batch of solved problems, as functions of the inputs of the problems.

    The backward pass consists of differentiable operations on the plan of the forward pass, which is differentiable
    itself, so that derivatives of any order are exact.
    """

    @staticmethod
    def forward(
        ctx: Any, solved: Any, C: Tensor, a: Tensor, b: Tensor, gram_a: Tensor | None, gram_b: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        plan = torch.zeros_like(C)
        for filled, (_, result) in zip(plan.numpy(), solved, strict=True):
            parts = result._parts
            filled[parts.rows, parts.cols] = parts.mass
        weights = torch.tensor([problem.unbalanced for problem, _ in solved], dtype=torch.float64)
        ctx.reg = solved[0][0].reg
        ctx.set_materialize_grads(False)  # no step is needed if only the value is used
        ctx.save_for_backward(plan, weights, a, b, gram_a, gram_b)
        return plan, torch.tensor([result.value for _, result in solved], dtype=torch.float64)

    @staticmethod
    def backward(ctx: Any, to_plan: Tensor | None, to_value: Tensor | None) -> Any:
        plan, weights, a, b, *grams = ctx.saved_tensors
        step, to_value = torch.zeros_like(plan), plan.new_zeros(len(plan)) if to_value is None else to_value
        if to_plan is not None:
            step = _Step.apply(ctx.reg, plan, weights, to_plan, *grams)  # type: ignore[no-untyped-call]
        errors = plan.sum(2) - a, plan.sum(1) - b
        return None, *transport_backward(torch, weights, grams, plan, errors, step, to_value)


class _Step(torch.autograd.Function):
    """`newton_step`, differentiable with respect to the gradient and the Gram matrices."""

    @staticmethod
    def forward(ctx: Any, reg: float, *inputs: Tensor | None) -> Tensor:
        step = torch.from_numpy(newton_step(reg, *(None if each is None else each.detach() for each in inputs)))
        plan, weights, _, *grams = inputs
        ctx.reg = reg
        ctx.save_for_backward(plan, weights, step, *grams)
        return step

    @staticmethod
    def backward(ctx: Any, to_step: Tensor) -> Any:
        plan, weights, step, *grams = ctx.saved_tensors
        back = _Step.apply(ctx.reg, plan, weights, to_step, *grams)  # type: ignore[no-untyped-call]
        return None, None, None, back, *step_backward(torch, weights, grams, step, back)
