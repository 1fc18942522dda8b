"""JAX: plans and values through which gradients flow, inside ``jit``, ``grad`` and ``vmap``.

Needs JAX (``pip install 'sparsetransport[jax]'``); nothing else in the package imports it.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from . import _checks

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    raise _checks.missing("sparsetransport.jax needs JAX", "jax") from None

from .api import solve
from .batch import solve_batch
from .budgets import Matroid
from .geometry.kernels import Delta
from .given import require_finite_weights, weights_of
from .gradients import aligned, named, newton_step, step_backward, transport_backward
from .options import Options
from .problem import Problem

__all__ = ["Transport", "sparse_transport"]


class Transport(NamedTuple):
    """A plan and its objective, both differentiable."""

    plan: jax.Array
    """Of shape (m, n)."""
    value: jax.Array
    """A number."""


class _How(NamedTuple):
    """The settings of all problems that a traced call may see; hashable, so that JAX compiles a call once."""

    budget: int | Matroid | None
    unbalanced: tuple[float | str, ...]
    reg: float
    options: tuple[tuple[str, Any], ...]


def sparse_transport(
    C: Any,
    a: Any = None,
    b: Any = None,
    *,
    kernels: Any = None,
    unbalanced: Any = "auto",
    reg: float = 0.0,
    budget: int | Matroid | None = None,
    **options: Any,
) -> Transport:
    """A plan within a budget and its value, both differentiable.

    The plan is that of ``sparsetransport.solve``: exact on its support, in double precision, on the CPU, whatever the
    device and the precision of the arrays. The value is differentiated by the envelope theorem, the plan by implicit
    differentiation on its positive entries with the support held fixed. Derivatives of any order are exact, in reverse
    mode. ``jit``, ``grad`` and ``vmap`` work; under ``vmap`` the problems are solved together, as by ``solve_batch``.

    Parameters
    ----------
    C : array of shape (m, n)
        Costs; ``+inf`` forbids a pair and gets no gradient.
    a, b : arrays of shape (m,) and (n,), optional
        Masses. Uniform with total one by default, whatever the other side has.
    kernels : Gram matrix, `Delta`, or a pair of them, optional
        Of shape (m, m) and (n, n); their gradient is symmetric. `Delta` by default.
    unbalanced : float, pair of floats, or "auto"
        λ. What "auto" finds is held fixed.
    reg : float
        λ₂.
    budget : int, Matroid or None
        As in ``solve``.
    **options
        ``method``, ``gap_tol`` and all other options of ``solve`` except ``start`` and ``callback``. They must be
        hashable; ``rng`` is a seed, 0 by default.

    Returns
    -------
    Transport
        ``plan`` and ``value``, in the precision of the costs, float32 at the least.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import sparsetransport as st
    >>> from sparsetransport.jax import sparse_transport
    >>> C = jnp.array([[0.0, 1.0], [1.0, 0.0]])
    >>> def value(C):
    ...     return sparse_transport(C, unbalanced=10.0, reg=0.1, budget=st.PerColumn(1)).value
    >>> gradient = jax.jit(jax.grad(value))(C)
    >>> bool((gradient == sparse_transport(C, unbalanced=10.0, reg=0.1, budget=st.PerColumn(1)).plan).all())
    True
    """
    for name in sorted({"start", "callback"} & options.keys()):
        raise TypeError(f"{name} must not be given in sparsetransport.jax: a compiled call keeps no state")
    if isinstance(options.get("rng"), np.random.Generator):
        raise TypeError("rng must be a seed, got a Generator: a compiled call gives the same plan for the same costs")
    Options.checked(budget=budget, **options)
    options.setdefault("rng", 0)
    for name, value in (("unbalanced", unbalanced), ("reg", reg)):
        if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value)):
            raise TypeError(f"{name} must be a number known when JAX traces the call, not an argument of jit or grad")
    require_finite_weights(unbalanced, "gradients")
    weights = tuple(f"{x}*auto" if of_auto else x for x, of_auto in zip(*weights_of(unbalanced), strict=True))
    _checks.number("reg", reg, positive=False)
    if jnp.ndim(C) != 2:
        raise ValueError(f"C must have 2 dimensions, got shape {jnp.shape(C)}: use jax.vmap for a batch")
    m, n = jnp.shape(C)
    if m * n == 0:
        raise ValueError(f"C must not be empty, got shape {(m, n)}")
    dtype = jnp.promote_types(jnp.asarray(C).dtype, jnp.float32)
    how = _How(budget, weights, float(reg), tuple(sorted(options.items())))
    try:
        hash(how)
    except TypeError as error:
        raise TypeError(f"budget and options must be hashable, so that JAX compiles a call once: {error}") from None
    first, second = kernels if isinstance(kernels, list | tuple) and len(kernels) == 2 else (kernels, kernels)
    plan, value, *_ = _transport(
        how,
        _array("C", C, (m, n), dtype),
        jnp.full(m, 1.0 / m, dtype) if a is None else _array("a", a, (m,), dtype),
        jnp.full(n, 1.0 / n, dtype) if b is None else _array("b", b, (n,), dtype),
        None if first is None or isinstance(first, Delta) else _array("kernels[0]", first, (m, m), dtype),
        None if second is None or isinstance(second, Delta) else _array("kernels[1]", second, (n, n), dtype),
    )
    return Transport(plan, value)


def _array(name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    """A part of the problem, checked to be an array of this shape."""
    try:
        array = jnp.asarray(value)
    except TypeError:
        raise TypeError(f"{name} must be an array, got {value!r}") from None
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}: use jax.vmap for a batch")
    if not (jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer)):
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return array.astype(dtype)


def _like(shape: tuple[int, ...], array: jax.Array) -> Any:
    return jax.ShapeDtypeStruct(shape, array.dtype)  # type: ignore[no-untyped-call]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _transport(
    how: _How, C: jax.Array, a: jax.Array, b: jax.Array, gram_a: jax.Array | None, gram_b: jax.Array | None
) -> tuple[jax.Array, ...]:
    """The plan, its value, the two λ, and the marginal errors, which a plan in single precision is too coarse for."""
    shapes = [_like(shape, C) for shape in (C.shape, (), (2,), a.shape, b.shape)]
    inputs = C, a, b, gram_a, gram_b
    return tuple(jax.pure_callback(_solver(how), shapes, *inputs, vmap_method="expand_dims"))


def _forward(how: _How, *inputs: Any) -> Any:
    """Calls the differentiable function itself, so that the plan used by the backward pass has a derivative."""
    outputs = _transport(how, *inputs)
    plan, _, *rest = outputs
    return outputs, (inputs, plan, *rest)


def _backward(how: _How, saved: Any, gradients: Any) -> Any:
    """The gradient of the plan, by a step on its entries, and of the value, with the plan held fixed."""
    (_, _, _, *grams), plan, weights, missed_a, missed_b = saved
    to_plan, to_value, _, to_missed_a, to_missed_b = gradients
    to_plan = to_plan + to_missed_a[:, None] + to_missed_b
    step = _step(how.reg, plan, weights, to_plan, *grams)
    to_costs, to_a, to_b, *to_grams = transport_backward(
        jnp, weights, grams, plan, (missed_a, missed_b), step, to_value
    )
    return to_costs, to_a - to_missed_a, to_b - to_missed_b, *to_grams


_transport.defvjp(_forward, _backward)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _step(
    reg: float,
    plan: jax.Array,
    weights: jax.Array,
    gradient: jax.Array,
    gram_a: jax.Array | None,
    gram_b: jax.Array | None,
) -> jax.Array:
    """``-H_SS⁻¹`` times the gradient on the positive entries S of the plan, and zero elsewhere."""
    inputs = plan, weights, gradient, gram_a, gram_b
    step: jax.Array = jax.pure_callback(_stepper(reg), _like(plan.shape, plan), *inputs, vmap_method="expand_dims")
    return step


def _step_forward(reg: float, plan: Any, weights: Any, gradient: Any, gram_a: Any, gram_b: Any) -> Any:
    step = _step(reg, plan, weights, gradient, gram_a, gram_b)
    return step, (plan, weights, gram_a, gram_b, step)


def _step_backward(reg: float, saved: Any, to_step: jax.Array) -> Any:
    """The gradients with respect to the gradient and the Gram matrices, with the support held fixed."""
    plan, weights, gram_a, gram_b, step = saved
    back = _step(reg, plan, weights, to_step, gram_a, gram_b)
    to_grams = step_backward(jnp, weights, (gram_a, gram_b), step, back)
    return jnp.zeros_like(plan), jnp.zeros_like(weights), back, *to_grams


_step.defvjp(_step_forward, _step_backward)


# --- on the host: NumPy alone, since a callback must not call JAX ----------------------------------------------------


@lru_cache(maxsize=256)
def _solver(how: _How) -> Callable[..., Any]:
    """One function for each ``how``, since JAX compiles a call again for every new callback."""
    return partial(_solve, how)


@lru_cache(maxsize=256)
def _stepper(reg: float) -> Callable[..., Any]:
    return partial(newton_step, reg)


def _solve(how: _How, *inputs: Any) -> Any:
    """Plans, values and weights of problems with any leading dimensions."""
    lead, (costs, a, b, gram_a, gram_b) = aligned(inputs, (2, 1, 1, 2, 2))
    places = list(np.ndindex(lead))
    problems = []
    for at in places:
        given: Any = {"unbalanced": how.unbalanced, "reg": how.reg}
        given["kernels"] = [Delta() if gram is None else gram[at] for gram in (gram_a, gram_b)]
        with named(at):
            problems.append(Problem.from_matrices(costs[at], a[at], b[at], **given))
    options: Any = dict(how.options)
    results = (
        solve_batch(problems, budget=how.budget, **options)
        if lead
        else [solve(problems[0], budget=how.budget, **options)]
    )
    plan, value, weights, missed_a, missed_b = (
        np.zeros(lead + shape, costs.dtype) for shape in (costs.shape[-2:], (), (2,), a.shape[-1:], b.shape[-1:])
    )
    for at, problem, result in zip(places, problems, results, strict=True):
        plan[at][result.rows, result.cols] = result.mass
        value[at], weights[at] = result.value, problem.unbalanced
        missed_a[at], missed_b[at] = result.marginal_a - problem.a, result.marginal_b - problem.b
    return plan, value, weights, missed_a, missed_b
