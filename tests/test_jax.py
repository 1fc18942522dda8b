"""Gradients in JAX: against finite differences, against PyTorch's, and under its transformations."""

import numpy as np
import pytest

import sparsetransport as st

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from sparsetransport.jax import sparse_transport  # noqa: E402

M, N = 7, 5
HOW = {"unbalanced": (5.0, 7.0), "reg": 0.1, "budget": 6}


@pytest.fixture(autouse=True)
def _double():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def _inputs(seed=0):
    rng = np.random.default_rng(seed)
    root_a, root_b = rng.normal(size=(M, M)), rng.normal(size=(N, N))
    return tuple(
        jnp.asarray(x)
        for x in (
            rng.random((M, N)),
            rng.random(M) + 0.5,
            rng.random(N) + 0.5,
            root_a @ root_a.T / M + np.eye(M),
            root_b @ root_b.T / N + np.eye(N),
        )
    )


def _symmetric(gram):
    return 0.5 * (gram + gram.T)


def _transport(C, a, b, gram_a, gram_b, **how):
    return sparse_transport(C, a, b, kernels=(_symmetric(gram_a), _symmetric(gram_b)), **(how or HOW))


def test_the_plan_is_that_of_solve():
    C, a, b, *grams = (np.asarray(x) for x in _inputs())
    expected = st.solve(C, a, b, kernels=grams, **HOW)
    plan, value = sparse_transport(C, a, b, kernels=grams, **HOW)
    assert isinstance(plan, jax.Array)
    assert plan.dtype == jnp.float64
    np.testing.assert_allclose(plan, expected.plan, atol=1e-14)
    assert float(value) == pytest.approx(expected.value, rel=1e-14)


def test_gradients_of_the_value_to_the_second_order():
    check_grads(lambda *x: _transport(*x).value, _inputs(), order=2, modes=["rev"], eps=1e-5)


def test_gradients_of_the_plan_to_the_second_order():
    weights = jnp.asarray(np.random.default_rng(1).random((M, N)))
    check_grads(lambda *x: (weights * _transport(*x).plan ** 2).sum(), _inputs(), order=2, modes=["rev"], eps=1e-5)


def test_gradients_with_delta_kernels_and_uniform_masses():
    def value(C):
        plan, value = sparse_transport(C, **HOW)
        return value**2 + (plan**2).sum()

    check_grads(value, (_inputs()[0],), order=1, modes=["rev"], eps=1e-6)


def test_gradients_are_those_of_torch():
    torch = pytest.importorskip("torch")
    from sparsetransport import nn

    arrays = _inputs(3)
    tensors = [torch.tensor(np.asarray(x), requires_grad=True) for x in arrays]
    plan, value = nn.sparse_transport(*tensors[:3], kernels=tensors[3:], **HOW)
    (value + (plan**2).sum()).backward()

    def loss(*x):
        plan, value = sparse_transport(*x[:3], kernels=x[3:], **HOW)
        return value + (plan**2).sum()

    for ours, theirs in zip(jax.grad(loss, argnums=tuple(range(5)))(*arrays), tensors, strict=True):
        np.testing.assert_allclose(ours, theirs.grad, rtol=1e-9, atol=1e-12)


def test_jit_and_vmap_give_what_single_calls_give():
    costs = jnp.asarray(np.random.default_rng(0).random((3, 4, M, N)))
    _, a, _, gram_a, _ = _inputs()

    def loss(C):
        plan, value = sparse_transport(C, a, kernels=(gram_a, st.Delta()), **HOW)
        return value + (plan**2).sum()

    together = jax.jit(jax.vmap(jax.vmap(jax.value_and_grad(loss))))(costs)
    for at in np.ndindex(3, 4):
        value, gradient = jax.value_and_grad(loss)(costs[at])
        np.testing.assert_allclose(together[0][at], value, rtol=1e-12)
        np.testing.assert_allclose(together[1][at], gradient, rtol=1e-9, atol=1e-12)


def test_equal_points_have_a_gradient():
    """Two rows of the Gram matrix are the same and reg is zero, so H may be singular."""
    C, a, b, gram_a, gram_b = _inputs()
    same = jnp.array([0, 0, *range(2, M)])
    gram_a = gram_a[same][:, same]
    gradient = jax.grad(lambda C: (sparse_transport(C, a, b, kernels=(gram_a, gram_b), unbalanced=5.0).plan ** 2).sum())
    assert bool(jnp.isfinite(gradient(C)).all())


def test_forbidden_pairs_get_no_gradient():
    C = _inputs()[0].at[0, 0].set(jnp.inf)
    gradient = jax.grad(lambda C: sparse_transport(C, **HOW).value)(C)
    assert gradient[0, 0] == 0.0
    assert bool(jnp.isfinite(gradient).all())


def test_automatic_weights_are_held_fixed():
    C = _inputs()[0]
    weights = st.solve(np.asarray(C), budget=5, reg=0.1).log["unbalanced"]
    automatic = jax.grad(lambda C: (sparse_transport(C, budget=5, reg=0.1).plan ** 2).sum())(C)
    fixed = jax.grad(lambda C: (sparse_transport(C, budget=5, reg=0.1, unbalanced=weights).plan ** 2).sum())(C)
    np.testing.assert_allclose(automatic, fixed, rtol=1e-12)


@pytest.mark.parametrize(("given", "got"), [("float32", "float32"), ("bfloat16", "float32"), ("int32", "float32")])
def test_precision(given, got):
    jax.config.update("jax_enable_x64", False)
    costs = jnp.asarray(np.arange(12).reshape(4, 3), dtype=given)
    plan, value = sparse_transport(costs, budget=3, unbalanced=100.0)
    assert plan.dtype == value.dtype == got
    assert int((plan > 0).sum()) == 3


def test_a_second_call_is_not_compiled_again():
    def count():
        return jax.jit(lambda C: sparse_transport(C, budget=st.PerColumn(2), unbalanced=5.0).value)

    from sparsetransport.jax import _solver

    C = _inputs()[0]
    _solver.cache_clear()
    count()(C)
    count()(C + 1.0)
    assert _solver.cache_info().misses == 1


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (
            ((2, 3, 4),),
            {},
            ValueError,
            r"C must have 2 dimensions, got shape \(2, 3, 4\): use jax.vmap for a batch",
        ),
        (((0, 4),), {}, ValueError, r"C must not be empty, got shape \(0, 4\)"),
        (((3, 4), (4,)), {}, ValueError, r"a must have shape \(3,\), got \(4,\)"),
        (((3, 4), (3,), (3,)), {}, ValueError, r"b must have shape \(4,\), got \(3,\)"),
        (((3, 4),), {"kernels": st.RBF(1.0)}, TypeError, r"kernels\[0\] must be an array, got RBF"),
        (((3, 4),), {"start": [(0, 0)]}, TypeError, "start must not be given"),
        (((3, 4),), {"budget": 0}, ValueError, "budget"),
        (((3, 4),), {"reg": -1.0}, ValueError, "reg"),
        (((3, 4),), {"rng": np.random.default_rng(0)}, TypeError, "rng must be a seed"),
    ],
)
def test_bad_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        sparse_transport(*(jnp.ones(shape) for shape in arguments), **options)


def test_complex_costs_are_refused():
    with pytest.raises(TypeError, match="C must hold real numbers, got dtype complex"):
        sparse_transport(jnp.ones((2, 2)) * 1j)
    with pytest.raises(TypeError, match="a must hold real numbers, got dtype bool"):
        sparse_transport(jnp.ones((2, 2)), jnp.array([True, False]))


def test_bool_costs_and_options_that_cannot_be_compared_are_refused():
    with pytest.raises(TypeError, match="C must hold real numbers, got dtype bool"):
        sparse_transport(jnp.ones((2, 2), bool))
    with pytest.raises(TypeError, match="budget and options must be hashable"):
        sparse_transport(jnp.ones((2, 2)), rng=[1, 2])


def test_single_precision_loses_nothing_of_what_the_marginals_miss():
    """At a large weight the plan in single precision does not tell what is missing."""
    rounded = [np.random.default_rng(0).random((30, 20)), np.full(30, 1.0 / 30), np.full(20, 1.0 / 20)]
    costs, a, b = (array.astype(np.float32) for array in rounded)
    weight = 1000.0 * st.Problem.from_matrices(costs).unbalanced[0]

    def gradient(dtype):
        cost, first, second = (jnp.asarray(array, dtype) for array in (costs, a, b))
        return jax.grad(lambda a: sparse_transport(cost, a, second, unbalanced=weight, budget=60).value)(first)

    np.testing.assert_allclose(gradient(jnp.float32), gradient(jnp.float64), rtol=1e-5)


def test_a_gradient_that_is_no_number_stays_one():
    gradient = jax.grad(lambda C: (sparse_transport(C, **HOW).plan * jnp.nan).sum())(_inputs()[0])
    assert bool(jnp.isnan(gradient).any())


def test_random_methods_are_the_same_whenever_they_are_called():
    C = _inputs()[0]
    plans = [sparse_transport(C, method="stochastic", unbalanced=5.0, budget=4).plan for _ in range(2)]
    np.testing.assert_array_equal(*plans)


def test_an_error_inside_a_batch_names_the_problem():
    costs = jnp.ones((3, 2, 2)).at[1, 0, 1].set(jnp.nan)
    with pytest.raises(Exception, match=r"ValueError: C must be finite or \+inf, got nan at \(0, 1\)"):
        sparse_transport(costs[1], budget=1).value.block_until_ready()
    with pytest.raises(Exception, match=r"problem 1 of the batch: C must be finite or \+inf, got nan at \(0, 1\)"):
        jax.vmap(lambda C: sparse_transport(C, budget=1).value)(costs).block_until_ready()


@pytest.mark.parametrize("name", ["unbalanced", "reg"])
@pytest.mark.parametrize("transform", [jax.jit, jax.grad])
def test_weights_that_jax_traces_are_refused_by_name(name, transform):
    """They are part of what is compiled."""
    C = jnp.asarray(np.random.default_rng(0).random((3, 4)))
    with pytest.raises(TypeError, match=f"^{name} must be a number known when JAX traces the call"):
        transform(lambda weight: sparse_transport(C, **{name: weight}).value)(2.0)
    with pytest.raises(TypeError, match=r"^unbalanced must be a number known"):
        jax.jit(lambda weight: sparse_transport(C, unbalanced=(1.0, weight)).value)(2.0)
