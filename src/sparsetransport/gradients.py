"""Derivatives of plans and values for any array library: the formulas behind `nn` and `jax`.

On the support S of a plan γ the gradient of the objective vanishes, so that

    dγ_S = -H_SS⁻¹ d(∇U)_S,    d(∇U) = dC + 2λ_a d(G_a p) + 2λ_b d(G_b q)

with the errors p = γ1 - a and q = γᵀ1 - b of the marginals. The value is differentiated with γ held fixed, by the
envelope theorem. A backward pass therefore needs one step ``s = -H_SS⁻¹ g_S``, with the gradient g with respect to the
plan; everything else is linear in its marginals.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import linalg

from ._checks import Floats


def transport_backward(
    xp: Any, weights: Any, grams: Any, plan: Any, errors: Any, step: Any, to_value: Any
) -> tuple[Any, ...]:
    """The gradients with respect to C, a, b and the Gram matrices, None for `Delta`.

    Made of differentiable operations of the array library ``xp``. All arrays may have leading dimensions, the same for
    all but Gram matrices, which a batch may share.

    Parameters
    ----------
    weights : (..., 2)
    grams : pair of (..., n, n) or None
    plan, step : (..., m, n)
    errors : pair of (..., n)
        Of the marginals.
    to_value : (...)
        The gradient with respect to the value.
    """
    share = to_value[..., None]
    to_masses, to_grams = [], []
    for side, (gram, error) in enumerate(zip(grams, errors, strict=True)):
        weight, moved = weights[..., side, None], step.sum(-1 - side)
        both = share * error + moved
        to_masses.append(-2.0 * weight * (both if gram is None else xp.einsum("...ij,...j->...i", gram, both)))
        to_grams.append(_of_gram(xp, gram, weight, (both, error), (error, moved)))
    return share[..., None] * plan + step, *to_masses, *to_grams


def step_backward(xp: Any, weights: Any, grams: Any, step: Any, back: Any) -> list[Any]:
    """The gradients of a step with respect to the Gram matrices in H; ``back`` is the step of the incoming gradient."""
    pairs = [(step.sum(-1 - side), back.sum(-1 - side)) for side in (0, 1)]
    return [
        _of_gram(xp, gram, weights[..., side, None], pairs[side], pairs[side][::-1]) for side, gram in enumerate(grams)
    ]


def _of_gram(xp: Any, gram: Any, weight: Any, left: Any, right: Any) -> Any:
    """``λ Σ_k left_k right_kᵀ``, summed over the batch where it shares the Gram matrix."""
    if gram is None:
        return None
    shape = "ij" if gram.ndim == 2 else "...ij"
    return xp.einsum(f"...ik,...jk->{shape}", weight[..., None] * xp.stack(left, -1), xp.stack(right, -1))


def newton_step(reg: float, *inputs: Any) -> Floats:
    """``-H_SS⁻¹`` times a gradient on the positive entries S of the plan, and zero elsewhere, on the host.

    ``inputs`` are the plan (m, n), the weights (2,), the gradient (m, n) and two Gram matrices or None, with leading
    dimensions that broadcast. H is symmetric, so the derivative of the step with respect to the gradient is the same
    step again.
    """
    lead, (plan, weights, gradient, *grams) = aligned(inputs, (2, 1, 2, 2, 2))
    step = np.zeros(plan.shape, plan.dtype)
    for at in np.ndindex(lead):
        lines = np.nonzero(plan[at])
        right = gradient[at][lines].astype(np.float64)
        if not right.any():
            continue
        hessian = np.diag(np.full(len(right), reg))
        for gram, line, weight in zip(grams, lines, weights[at].tolist(), strict=True):
            hessian += 2.0 * weight * (line[:, None] == line if gram is None else gram[at][line[:, None], line])
        step[at][lines] = -_solve_hessian(hessian, right)
    return step


def _solve_hessian(hessian: Floats, right: Floats) -> Any:
    """``H⁻¹ right``; the solution of least norm where dependent links make H singular."""
    factor, solution, failed = linalg.lapack.dposv(hessian, right)
    rounding = len(right) * np.finfo(np.float64).eps * hessian.diagonal().max()
    if failed or (factor.diagonal() ** 2).min() <= rounding:  # a diagonal entry that is rounding alone
        return linalg.pinvh(hessian) @ right
    return solution


def aligned(inputs: Any, ranks: tuple[int, ...]) -> tuple[tuple[int, ...], list[Any]]:
    """The leading dimensions of the inputs, whose own ranks are given, and the inputs broadcast to them."""
    arrays = [None if each is None else np.asarray(each) for each in inputs]
    leads = [x.shape[: x.ndim - rank] for x, rank in zip(arrays, ranks, strict=True) if x is not None]
    lead = np.broadcast_shapes(*leads)
    return lead, [
        None if x is None else np.broadcast_to(x, lead + x.shape[x.ndim - rank :])
        for x, rank in zip(arrays, ranks, strict=True)
    ]


@contextmanager
def named(at: tuple[int, ...]) -> Iterator[None]:
    """Put the position of the problem in the batch in front of an error message."""
    try:
        yield
    except ValueError as error:
        if at:
            error.args = (f"problem {', '.join(map(str, at))} of the batch: {error}",)
        raise
