"""Plans and values through which gradients flow."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import _checks
from ..api import solve_problem
from ..batch import solve_batch
from ..geometry.kernels import Delta
from ..geometry.matrices import gram_rounding
from ..matroids import Matroid
from ..problem import Problem, weights_of
from ..result import Result

_THREADS = 8
_LARGEST_RIDGE = 0.1  # of the diagonal; float32 gets there with a million points, bfloat16 with 13


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
    r"""Solve transport with a budget and let gradients flow through the plan and its value.

    The forward pass is ``sparsetransport.solve``: exact on its support, in double precision, on the CPU. The value

    .. math::
        U(\gamma) = \langle C, \gamma\rangle + \lambda_a \|\gamma 1 - a\|^2_{G_a}
        + \lambda_b \|\gamma^\top 1 - b\|^2_{G_b} + \tfrac{\lambda_2}{2}\|\gamma\|^2

    is differentiated by the envelope theorem: its gradient is that of the formula with γ held fixed. The plan is
    differentiated on its positive entries S, where the gradient of U vanishes: :math:`d\gamma_S =
    -H_{SS}^{-1}\, d(\nabla U)_S`, one solve with a Cholesky factor. Entries without mass have no derivative, the
    support being held fixed: it is a constant almost everywhere, and the plan jumps where it changes. Derivatives of
    any order are exact.

    Parameters
    ----------
    C : tensor of shape (..., m, n)
        Costs; ``+inf`` forbids a pair and gets no gradient. Leading dimensions are a batch of problems, solved
        together as by ``solve_batch``.
    a, b : tensors of shape (..., m) and (..., n), optional
        Masses; those without leading dimensions serve the whole batch. Uniform with total one by default.
    kernels : Gram matrix, `Delta`, or a pair of them, optional
        Tensors of shape (..., m, m) and (..., n, n); their gradient is symmetric. `Delta` by default. For the Gram
        matrix of points, through which gradients reach them, see `gram_matrix`. One below double precision is made
        symmetric and gets a ridge of the size of its rounding, which might have made it indefinite.
    unbalanced : float, pair of floats, or "auto"
        λ. The value that "auto" finds is held fixed, and tensors that need a gradient are refused.
    reg : float
        λ₂, likewise.
    budget : int, Matroid or None
        As in ``solve``.
    **options
        ``method``, ``gap_tol`` and everything else as in ``solve``.

    Returns
    -------
    Transport
        ``plan`` and ``value``, on the device of the input and in its precision, float32 at the least.

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
    weights_of(given["unbalanced"])
    _checks.number("reg", given["reg"], positive=False)
    if isinstance(options.get("rng"), np.random.Generator) and C.ndim > 2:
        raise TypeError("rng must be a seed: the threads of a batch cannot share a Generator")
    many = len(sides.cost)
    starts = start if isinstance(start, list) and len(start) == many and is_results(start) else [start] * many
    batch = _Batch(tuple(C.shape[:-2]), sides.each(), starts, given, options)
    step = -(-many // min(_THREADS, os.cpu_count() or 1))
    shares = [range(first, min(first + step, many)) for first in range(0, many, step)]
    if len(shares) == 1:
        solved = batch.solve(shares[0])
    else:
        with ThreadPoolExecutor(len(shares)) as pool:
            solved = [each for share in pool.map(batch.solve, shares) for each in share]
    with torch.autocast(C.device.type, enabled=False):
        pairs = [_attach(tensors, *each) for tensors, each in zip(batch.tensors, solved, strict=True)]
        outcome = Transport(
            torch.stack([plan for plan, _ in pairs]).reshape(C.shape).to(C.device, sides.dtype),
            torch.stack([value for _, value in pairs]).reshape(C.shape[:-2]).to(C.device, sides.dtype),
        )
    return outcome, [result for _, result in solved]


def is_results(start: list[Any]) -> bool:
    """Is this a start for every problem of a batch?"""
    return all(isinstance(each, Result) for each in start)


class _Batch(NamedTuple):
    """Problems to solve, and how."""

    lead: tuple[int, ...]  # the leading dimensions of the batch
    tensors: list[tuple[Tensor | None, ...]]  # the five of every problem
    starts: list[Any]
    given: dict[str, Any]
    options: dict[str, Any]

    def solve(self, some: range) -> list[tuple[Problem, Result]]:
        """A share of the problems: together where they may be, and one by one what is left or has gone wrong."""
        problems = [self._problem(which) for which in some]
        results: list[Any] = [None] * len(some)
        if len(some) > 1 and self.options.get("callback") is None and all(self.starts[k] is None for k in some):
            results = solve_batch(problems, on_error="record", **self.options)
        for k, which in enumerate(some):
            if not isinstance(results[k], Result):
                with self._named(which):
                    results[k] = solve_problem(problems[k], start=self.starts[which], **self.options)
        return list(zip(problems, results, strict=True))

    def _problem(self, which: int) -> Problem:
        cost, a, b, *grams = (None if part is None else part.detach().numpy() for part in self.tensors[which])
        kernels = [Delta() if gram is None else gram for gram in grams]
        with self._named(which):
            return Problem.from_matrices(cost, a, b, kernels=kernels, **self.given)

    @contextmanager
    def _named(self, which: int) -> Iterator[None]:
        """Say which problem of the batch an error is about."""
        try:
            yield
        except ValueError as error:
            if self.lead:
                place = ", ".join(str(int(k)) for k in np.unravel_index(which, self.lead))
                error.args = (f"problem {place} of the batch: {error}",)
            raise


class _Sides(NamedTuple):
    """The tensors of a batch, in double precision on the CPU, with one leading dimension or, if shared, none."""

    cost: Tensor
    a: Tensor | None
    b: Tensor | None
    gram_a: Tensor | None
    gram_b: Tensor | None
    dtype: torch.dtype

    @classmethod
    def of(cls, C: Tensor, a: Tensor | None, b: Tensor | None, kernels: Any) -> "_Sides":
        """Checked: shapes that fit each other, real numbers."""
        require_tensor("C", C)
        if C.ndim < 2:
            raise ValueError(f"C must have at least 2 dimensions, got shape {tuple(C.shape)}")
        if 0 in C.shape:
            raise ValueError(f"C must not be empty, got shape {tuple(C.shape)}")
        m, n = C.shape[-2:]
        first, second = kernels if isinstance(kernels, list | tuple) and len(kernels) == 2 else (kernels, kernels)
        parts = [
            ("a", a, (m,)),
            ("b", b, (n,)),
            ("kernels[0]", _gram(first), (m, m)),
            ("kernels[1]", _gram(second), (n, n)),
        ]
        dtype = torch.promote_types(C.dtype, torch.float32)
        ready: list[Tensor | None] = []
        for name, part, shape in parts:
            if part is None:
                ready.append(None)
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
        return cls(_ready(C, C.shape[-2:]), ready[0], ready[1], ready[2], ready[3], dtype)

    def each(self) -> list[tuple[Tensor | None, ...]]:
        """The five tensors of every problem; taken apart at once, so that their gradients come together at once too."""
        many, apart = len(self.cost), list[Any]()
        for part, single in zip((self.cost, self.a, self.b, self.gram_a, self.gram_b), (2, 1, 1, 2, 2), strict=True):
            apart.append(part.unbind() if part is not None and part.ndim > single else [part] * many)
        return list(zip(*apart, strict=True))


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
    """Each Gram matrix made symmetric, if it is so up to the rounding of the precision that it was given in."""
    if given == torch.float64 or not given.is_floating_point:
        return gram
    off = (gram - gram.mT).detach().abs().amax((-2, -1), keepdim=True)
    largest = gram.detach().abs().amax((-2, -1), keepdim=True)
    rounding = gram_rounding(gram.shape[-1], torch.finfo(given).eps) * largest
    return torch.where(off <= rounding, 0.5 * (gram + gram.mT), gram)


def _ridge(gram: Tensor) -> Tensor:
    """What makes up for rounding below double precision, for each matrix: zeros off the diagonal."""
    size = gram.shape[-1]
    rounding = 0.0 if gram.dtype == torch.float64 or not gram.is_floating_point() else torch.finfo(gram.dtype).eps
    if size * rounding > _LARGEST_RIDGE:
        name = str(gram.dtype).removeprefix("torch.")
        _checks.warn(
            f"a Gram matrix of {size} points in {name} gets a ridge of {size * rounding:.2g} times its diagonal for "
            "its rounding, which changes the problem: make it in float32 at least"
        )
    scale = gram.detach().diagonal(dim1=-2, dim2=-1).amax(-1).to("cpu", torch.float64)
    return size * rounding * scale[..., None, None] * torch.eye(size, dtype=torch.float64)


def require_fixed(**weights: Any) -> None:
    """See that no weight asks for a gradient, which it would not get."""
    for name, weight in weights.items():
        for each in weight if isinstance(weight, list | tuple) else [weight]:
            if isinstance(each, Tensor) and each.requires_grad:
                raise TypeError(f"{name} must not need a gradient: no gradient reaches the weights; call .detach()")


def require_tensor(name: str, value: Any) -> None:
    """See that an input is a tensor of real numbers."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    if value.is_complex() or value.dtype == torch.bool:
        raise TypeError(f"{name} must hold real numbers, got dtype {value.dtype}")


def _ready(tensor: Tensor, shape: torch.Size) -> Tensor:
    return tensor.to("cpu", torch.float64).reshape(-1, *shape)


class _Support(NamedTuple):
    """What is constant in the derivatives: the links with mass, and the weights."""

    rows: Tensor
    cols: Tensor
    mass: Tensor
    value: float
    unbalanced: tuple[float, float]
    reg: float


def _attach(tensors: tuple[Tensor | None, ...], problem: Problem, result: Result) -> tuple[Tensor, Tensor]:
    """The plan and the value of a result, as functions of the tensors that the problem was made from."""
    cost, a, b, *grams = tensors
    arrays = torch.as_tensor(result.rows), torch.as_tensor(result.cols), torch.as_tensor(result.mass)
    support = _Support(*arrays, result.value, problem.unbalanced, problem.reg)
    masses = [
        torch.full((size,), 1.0 / size, dtype=torch.float64) if side is None else side
        for side, size in zip((a, b), problem.shape, strict=True)
    ]
    inputs = cost, *masses, *grams
    plan: Tensor = _Plan.apply(support, *inputs)  # type: ignore[no-untyped-call]
    value: Tensor = _Value.apply(support, plan, *inputs)  # type: ignore[no-untyped-call]
    return plan, value


def _times(gram: Tensor | None, vector: Tensor) -> Tensor:
    return vector if gram is None else gram @ vector


def _symmetric(left: Tensor, right: Tensor) -> Tensor:
    product = torch.outer(left, right)
    return 0.5 * (product + product.mT)


class _Plan(torch.autograd.Function):
    """The plan, by implicit differentiation. The backward pass is itself made of differentiable operations."""

    @staticmethod
    def forward(
        ctx: Any, support: _Support, C: Tensor, a: Tensor, b: Tensor, gram_a: Tensor | None, gram_b: Tensor | None
    ) -> Tensor:
        plan = torch.zeros_like(C)
        plan[support.rows, support.cols] = support.mass
        ctx.support = support
        ctx.save_for_backward(C, a, b, gram_a, gram_b, plan)
        return plan

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        C, a, b, gram_a, gram_b, plan = ctx.saved_tensors
        rows, cols = ctx.support.rows, ctx.support.cols
        (weight_a, weight_b), wanted = ctx.support.unbalanced, ctx.needs_input_grad[1:]
        step = -_solve_hessian(ctx.support, gram_a, gram_b, grad[rows, cols])
        # d(gradient at s) = dC_s + 2 λ_a d(G_a p)_i + 2 λ_b d(G_b q)_j, weighted by the step
        spread = torch.zeros_like(C).index_put((rows, cols), step)
        out_a, out_b = spread.sum(1), spread.sum(0)
        p, q = plan.sum(1) - a, plan.sum(0) - b
        return (
            None,
            spread if wanted[0] else None,
            -2.0 * weight_a * _times(gram_a, out_a) if wanted[1] else None,
            -2.0 * weight_b * _times(gram_b, out_b) if wanted[2] else None,
            2.0 * weight_a * _symmetric(out_a, p) if wanted[3] else None,
            2.0 * weight_b * _symmetric(out_b, q) if wanted[4] else None,
        )


class _Value(torch.autograd.Function):
    """The objective at the optimum, by the envelope theorem: the plan's own derivative does not count."""

    @staticmethod
    def forward(
        ctx: Any,
        support: _Support,
        plan: Tensor,
        C: Tensor,
        a: Tensor,
        b: Tensor,
        gram_a: Tensor | None,
        gram_b: Tensor | None,
    ) -> Tensor:
        ctx.support = support
        ctx.save_for_backward(plan, a, b, gram_a, gram_b)
        return torch.tensor(support.value, dtype=torch.float64)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        plan, a, b, gram_a, gram_b = ctx.saved_tensors
        (weight_a, weight_b), wanted = ctx.support.unbalanced, ctx.needs_input_grad[2:]
        p, q = plan.sum(1) - a, plan.sum(0) - b
        return (
            None,
            None,
            grad * plan if wanted[0] else None,
            -2.0 * weight_a * grad * _times(gram_a, p) if wanted[1] else None,
            -2.0 * weight_b * grad * _times(gram_b, q) if wanted[2] else None,
            weight_a * grad * torch.outer(p, p) if wanted[3] else None,
            weight_b * grad * torch.outer(q, q) if wanted[4] else None,
        )


def _solve_hessian(support: _Support, gram_a: Tensor | None, gram_b: Tensor | None, right: Tensor) -> Tensor:
    """``H_SS⁻¹ right``; of least norm where links that depend on each other make H singular."""
    rows, cols, (weight_a, weight_b) = support.rows, support.cols, support.unbalanced
    block_a = (rows[:, None] == rows).double() if gram_a is None else gram_a[rows][:, rows]
    block_b = (cols[:, None] == cols).double() if gram_b is None else gram_b[cols][:, cols]
    hessian = 2.0 * weight_a * block_a + 2.0 * weight_b * block_b
    hessian = hessian + support.reg * torch.eye(len(rows), dtype=torch.float64)
    factor, failed = torch.linalg.cholesky_ex(hessian)
    if int(failed) == 0:
        return torch.cholesky_solve(right[:, None], factor)[:, 0]
    pseudo: Tensor = torch.linalg.pinv(hessian, hermitian=True)
    return pseudo @ right
