"""The functions that users call: optima of other solvers, invariances, kinds of arrays, odd shapes."""

import copy
import pickle
import warnings
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise

import numpy as np
import oracles
import pytest
from cases import KERNELS, Forest, Instance, instance, support
from hypothesis import given
from hypothesis import strategies as some
from strategies import instances, seeds

import sparsetransport as st
from sparsetransport.engine.omp_solver import OMPSolver
from sparsetransport.forest import simplex

METHODS = ["omp", "stochastic", "residual", "greedy", "residual-greedy"]
BUDGETS = [None, 6, st.PerColumn(1), st.PerRow(2), st.PerRow(1) & st.PerColumn(2)]

# --- without a budget: the exact optimum -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["mm", "lbfgsb"])
@pytest.mark.parametrize("reg", [0.0, 0.2])
@pytest.mark.parametrize("unbalanced", [(0.5, 0.5), (3.0, 1.0)])
def test_pot_finds_no_better_plan_for_squared_marginal_errors(method, reg, unbalanced):
    """``budget=None`` with ``Delta`` is POT's L2-UOT: its solvers come as close as they can and never below."""
    pytest.importorskip("ot")
    for seed in range(2):
        case = instance(seed, 8, 7, "delta", reg, unbalanced)
        result = st.solve(case.C, case.a, case.b, unbalanced=unbalanced, reg=reg)
        theirs = case.value(oracles.pot_l2(case.C, case.a, case.b, unbalanced, reg, method))
        assert result.value <= theirs + 1e-10
        assert result.value == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_clarabel_finds_no_better_plan(kernel, reg):
    """``budget=None`` is the least objective over all plans, to 1e-8."""
    case = instance(4, 9, 8, kernel, reg, (5.0, 2.0), forbidden=0.2)
    hessian, slope, constant = oracles.quadratic(*case.arrays)
    kept = np.isfinite(slope)
    expected = constant + oracles.clarabel(hessian[np.ix_(kept, kept)], slope[kept])
    result = case.solve()
    assert result.value == pytest.approx(expected, rel=1e-8)
    assert result.status is st.Status.OPTIMAL


def test_the_value_tends_to_balanced_transport_as_lambda_grows():
    """With equal totals and λ → ∞ the objective rises to that of optimal transport, and the marginal errors vanish."""
    pytest.importorskip("ot")
    rng = np.random.default_rng(0)
    C = rng.random((8, 10))
    a, b = rng.random(8) + 0.1, rng.random(10) + 0.1
    a, b = a / a.sum(), b / b.sum()
    balanced = oracles.emd(C, a, b)
    values = [st.solve(C, a, b, unbalanced=weight) for weight in (1e1, 1e2, 1e3, 1e4, 1e5)]
    errors = [balanced - result.value for result in values]
    assert all(0.0 < later < earlier for earlier, later in pairwise(errors))
    assert errors[-1] < 1e-4
    assert np.abs(values[-1].marginal_a - a).max() < 1e-4
    # U(λ) = EMD - O(1/λ): ten times the weight, a tenth of the error.
    assert errors[-2] / errors[-1] == pytest.approx(10.0, rel=0.1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("inner", ["active_set", "apgd"])
def test_every_method_ends_at_the_optimum_without_a_budget(method, inner):
    """The rule decides the way, not the end."""
    case = instance(2, 5, 6, "rbf", 0.5, (2.0, 2.0))
    options = {"tol": 1e-8, "max_iter": 100_000} if inner == "apgd" else {}
    assert case.solve(method=method, inner=inner, rng=0, **options).value == pytest.approx(case.solve().value, rel=1e-6)


@given(instances(lowest=-1, regs=(0.125, 1.0)))
def test_the_optimum_satisfies_the_optimality_conditions(case):
    """At the optimum without a budget the gradient is zero where there is mass and not negative elsewhere."""
    result = case.solve()
    gradient = oracles.gradient(*case.arrays, result.plan)
    scale = max(np.abs(gradient[np.isfinite(gradient)]).max(initial=0.0), case.problem().scale, 1e-300)
    assert gradient.min() >= -1e-10 * scale
    assert np.abs(gradient[result.rows, result.cols]).max(initial=0.0) <= 1e-10 * scale


# --- invariances -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("polish", [True, False])
@given(seed=seeds, kernel=some.sampled_from(sorted(KERNELS)), k=some.integers(0, 4))
def test_permuting_the_points_permutes_the_plan(polish, seed, kernel, k):
    """Names of points do not matter: rows and columns in another order give the plan in that order."""
    case = instance(seed, 6, 5, kernel, 0.1, (5.0, 2.0))
    rng = np.random.default_rng(seed)
    rows, cols = rng.permutation(6), rng.permutation(5)
    budget = [4, st.PerColumn(1), st.PerRow(2), st.PerRow(1) & st.PerColumn(1), None][k]
    plain, permuted = (
        case.solve(budget=budget, polish=polish),
        case.permuted(rows, cols).solve(budget=budget, polish=polish),
    )
    np.testing.assert_allclose(permuted.plan, plain.plan[np.ix_(rows, cols)], atol=1e-8)


@given(seed=seeds, kernel=some.sampled_from(sorted(KERNELS)), k=some.integers(0, 4))
def test_transposing_swaps_the_sides(seed, kernel, k):
    """Rows and columns play the same part: the transposed problem has the transposed plan, before any polish."""
    case = instance(seed, 6, 5, kernel, 0.1, (5.0, 2.0))
    budget, other = [
        (4, 4),
        (st.PerColumn(1), st.PerRow(1)),
        (st.PerRow(2), st.PerColumn(2)),
        (st.PerRow(1) & st.PerColumn(2), st.PerRow(2) & st.PerColumn(1)),
        (None, None),
    ][k]
    plain, turned = case.solve(budget=budget, polish=False), case.transposed().solve(budget=other, polish=False)
    np.testing.assert_allclose(turned.plan, plain.plan.T, atol=1e-8)
    assert turned.value == pytest.approx(plain.value, rel=1e-9)
    assert turned.lower_bound == pytest.approx(plain.lower_bound, rel=1e-6, abs=1e-9)


@given(seed=seeds, kernel=some.sampled_from(sorted(KERNELS)), power=some.integers(-10, 10), k=some.integers(0, 4))
def test_scaling_costs_and_weights_scales_the_value(seed, kernel, power, k):
    """U is linear in (C, λ₁, λ₂): scaled together they leave the plan alone and scale value, bound and potentials."""
    case, scale = instance(seed, 6, 5, kernel, 0.1, (5.0, 2.0)), 4.0**power
    scaled = replace(
        case, C=scale * case.C, unbalanced=(5.0 * scale, 2.0 * scale), reg=0.1 * scale
    )  # powers of four: neither products nor roots are rounded
    plain, other = case.solve(budget=BUDGETS[k]), scaled.solve(budget=BUDGETS[k])
    np.testing.assert_array_equal(other.plan, plain.plan)
    assert other.value == scale * plain.value
    assert other.lower_bound == pytest.approx(scale * plain.lower_bound, rel=1e-9)
    np.testing.assert_array_equal(other.potential_a, scale * plain.potential_a)


@given(seed=seeds, kernel=some.sampled_from(sorted(KERNELS)), power=some.integers(-10, 10), k=some.integers(0, 4))
def test_scaling_masses_and_costs_scales_the_plan(seed, kernel, power, k):
    """U(tγ; tC, ta, tb) = t² U(γ; C, a, b): masses and costs scaled together scale the plan."""
    case, scale = instance(seed, 6, 5, kernel, 0.1, (5.0, 2.0)), 4.0**power
    scaled = replace(case, C=scale * case.C, a=scale * case.a, b=scale * case.b)
    plain, other = case.solve(budget=BUDGETS[k]), scaled.solve(budget=BUDGETS[k])
    np.testing.assert_array_equal(other.plan, scale * plain.plan)
    assert other.value == scale**2 * plain.value


@pytest.mark.parametrize("scale", [2.0**-10, 2.0**10])
def test_automatic_weights_follow_the_scale_of_costs_and_of_masses(scale):
    """λ = "auto" knows the units: costs in pennies or in pounds, masses in grams or in tons, one plan."""
    case = instance(1, 6, 5)
    plain = st.solve(case.C, case.a, case.b, budget=5)
    np.testing.assert_array_equal(st.solve(scale * case.C, case.a, case.b, budget=5).plan, plain.plan)
    heavy = st.solve(case.C, scale * case.a, scale * case.b, budget=5)
    np.testing.assert_array_equal(heavy.plan, scale * plain.plan)


def test_moving_or_rescaling_all_points_changes_nothing():
    """Distances and the median rule know no origin and no unit: λ = "auto" neither."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(10, 2)) + 1.0
    plain = st.solve_sample(X, Y, budget=6)
    for moved in (st.solve_sample(X + 3.0, Y + 3.0, budget=6), st.solve_sample(4.0 * X, 4.0 * Y, budget=6)):
        np.testing.assert_allclose(moved.plan, plain.plan, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", BUDGETS[1:], ids=repr)
def test_the_same_seed_gives_the_same_plan(method, budget):
    """Randomness comes from the seed or the Generator handed in, and from nowhere else."""
    case = instance(3, 9, 8, "rbf", 0.1, (5.0, 5.0))
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    plans = [case.solve(budget=budget, method=method, rng=rng).plan for rng in (7, 7, np.random.default_rng(7))]
    np.testing.assert_array_equal(plans[0], plans[1])
    np.testing.assert_array_equal(plans[0], plans[2])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("method", ["stochastic", "residual", "residual-greedy"])
def test_another_seed_gives_another_plan(method):
    """The random methods do draw at random."""
    case = instance(3, 9, 8, "rbf", 0.1, (5.0, 5.0))
    plans = {support(case.solve(budget=st.PerColumn(1), method=method, rng=seed, reclaim=False)) for seed in range(8)}
    assert len(plans) > 1


def test_inputs_are_left_alone():
    """No array of the caller is written to, whatever is switched on."""
    case = instance(0, 6, 5, "rbf", 0.1, (5.0, 5.0), forbidden=0.2)
    arrays = (case.C, case.a, case.b, case.Ga, case.Gb)
    copies = [array.copy() for array in arrays]
    for method in METHODS:
        case.solve(budget=5, method=method, rng=0).certify()
    case.solve(budget=st.PerColumn(1), gap_tol=1e-9)
    for array, before in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, before)


# --- kinds of arrays -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint8])
def test_any_real_dtype_means_its_values(dtype):
    """float32 and integers are taken for the numbers they hold; the work is done in double precision."""
    rng = np.random.default_rng(0)
    C = rng.integers(0, 9, (5, 4)).astype(dtype)
    a, b = rng.integers(1, 5, 5).astype(dtype), rng.integers(1, 5, 4).astype(dtype)
    result = st.solve(C, a, b, budget=4, unbalanced=3.0, reg=0.5)
    same = st.solve(C.astype(float), a.astype(float), b.astype(float), budget=4, unbalanced=3.0, reg=0.5)
    np.testing.assert_array_equal(result.plan, same.plan)
    assert result.plan.dtype == np.float64


def test_float32_points_and_gram_matrices():
    """Point sets and Gram matrices in single precision: rounding of the input does not make a Gram matrix invalid."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2)).astype(np.float32)
    Y = rng.normal(size=(15, 2)).astype(np.float32)
    assert st.solve_sample(X, Y, budget=8).value == st.solve_sample(X.astype(float), Y.astype(float), budget=8).value
    Ga, Gb = st.RBF(1.0).gram(X).astype(np.float32), st.RBF(1.0).gram(Y).astype(np.float32)
    C = st.cost_matrix(X, Y).astype(np.float32)
    exact = st.solve(C, kernels=(Ga.astype(float), Gb.astype(float)), budget=8)
    assert st.solve(C, kernels=(Ga, Gb), budget=8).value == exact.value


def test_lists_and_views_are_arrays():
    """Lists, tuples, Fortran order, strides and read-only memory all mean the same numbers."""
    case = instance(2, 5, 4)
    plain = st.solve(case.C, case.a, case.b, budget=4).plan
    frozen = case.C.copy()
    frozen.flags.writeable = False
    strided = np.repeat(np.repeat(case.C, 2, axis=0), 3, axis=1)[::2, ::3]
    for C in (case.C.tolist(), tuple(map(tuple, case.C)), np.asfortranarray(case.C), strided, frozen):
        np.testing.assert_array_equal(st.solve(C, case.a.tolist(), tuple(case.b), budget=4).plan, plain)


@pytest.mark.parametrize("position", ["C", "a", "b", "all"])
def test_torch_in_torch_out(position):
    """A torch tensor anywhere, with or without a gradient, and the result is torch; the numbers are NumPy's."""
    torch = pytest.importorskip("torch")
    case = instance(2, 5, 4, "delta")
    given = {"C": case.C, "a": case.a, "b": case.b}
    for name in given:
        if position in (name, "all"):
            given[name] = torch.tensor(given[name], requires_grad=name != "b")
    told = nullcontext() if position == "b" else pytest.warns(st.SparseTransportWarning, match="requires a gradient")
    with told:
        result = st.solve(**given, budget=4, reg=0.1)
    plain = st.solve(case.C, case.a, case.b, budget=4, reg=0.1)
    for name in ("plan", "rows", "cols", "mass", "marginal_a", "marginal_b", "potential_a", "potential_b"):
        assert isinstance(getattr(result, name), torch.Tensor), name
        np.testing.assert_allclose(getattr(result, name).numpy(), getattr(plain, name), err_msg=name)
    assert not result.plan.requires_grad
    assert isinstance(result.certify().potential_a, torch.Tensor)
    assert isinstance(result.value, float)
    assert result.path.plan_at(2).plan.shape == (5, 4)
    assert isinstance(result.path.plan_at(2).plan, torch.Tensor)


def test_torch_points_in_torch_barycentres_out():
    """Point sets and Gram matrices may be torch too."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(5, 2))
    result = st.solve_sample(torch.tensor(X, dtype=torch.float32), torch.tensor(Y, dtype=torch.float32), budget=4)
    assert isinstance(result.a_to_b, torch.Tensor)
    plain = st.solve_sample(X.astype(np.float32), Y.astype(np.float32), budget=4)
    np.testing.assert_allclose(result.a_to_b.numpy(), plain.a_to_b, rtol=1e-6)
    grams = tuple(torch.tensor(st.RBF(1.0).gram(points)) for points in (X, Y))
    C = st.cost_matrix(X, Y)
    same = st.solve(C, kernels=tuple(gram.numpy() for gram in grams), budget=4)
    assert st.solve(C, kernels=grams, budget=4).value == same.value


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "int64"])
def test_torch_results_have_the_precision_of_the_inputs(name):
    """So that they can be multiplied with them; float64 for integers. Indices stay integers."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X, Y = (torch.tensor(8.0 * rng.random((size, 2))).to(getattr(torch, name)) for size in (20, 15))
    result = st.solve_sample(X, Y, budget=10, reg=0.1)
    plain = st.solve_sample(*(points.double().numpy() for points in (X, Y)), budget=10, reg=0.1)
    assert result.value == plain.value
    proof = result.certify()
    floats = (result.plan, result.mass, *result.marginals, *result.potentials, result.a_to_b, result.b_to_a)
    for array in (*floats, proof.u, proof.v, proof.potential_a, proof.potential_b):
        assert array.dtype == (torch.float64 if name == "int64" else X.dtype)
    torch.testing.assert_close(result.plan, torch.tensor(plain.plan).to(result.plan.dtype))
    if name != "int64":
        assert (result.plan @ Y).shape == (20, 2)
    assert result.rows.dtype == result.cols.dtype == torch.int64
    again = pickle.loads(pickle.dumps(result))
    assert again.plan.dtype == result.plan.dtype


def test_torch_results_have_the_highest_precision_given():
    torch = pytest.importorskip("torch")
    C = torch.rand(4, 3, dtype=torch.float32)
    assert st.solve(C, torch.ones(4, dtype=torch.float64), budget=3).mass.dtype == torch.float64
    assert st.solve(C, torch.ones(4, dtype=torch.int64), budget=3).mass.dtype == torch.float32
    assert st.solve_batch(C[None].bfloat16(), budget=3)[0].mass.dtype == torch.bfloat16


def test_jax_in_jax_out():
    """JAX arrays come in, JAX arrays go out."""
    jax = pytest.importorskip("jax")
    case = instance(2, 5, 4, "delta")
    result = st.solve(jax.numpy.asarray(case.C), jax.numpy.asarray(case.a), case.b, budget=4, reg=0.1)
    single = [np.asarray(jax.numpy.asarray(array), float) for array in (case.C, case.a)]
    plain = st.solve(*single, case.b, budget=4, reg=0.1)
    for name in ("plan", "rows", "cols", "mass", "marginal_a", "potential_b"):
        assert isinstance(getattr(result, name), jax.Array), name
        np.testing.assert_allclose(np.asarray(getattr(result, name)), getattr(plain, name), rtol=1e-6, err_msg=name)


def test_results_of_jax_arrays_are_copied_and_pickled():
    jax = pytest.importorskip("jax")
    costs = jax.numpy.asarray(np.random.default_rng(0).random((4, 3)), dtype=jax.numpy.bfloat16)
    result = st.solve(costs, budget=3, unbalanced=10.0)
    assert result.mass.dtype == jax.numpy.bfloat16
    for other in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        np.testing.assert_array_equal(np.asarray(other.mass), np.asarray(result.mass))
        assert other.lower_bound == result.lower_bound


def test_numpy_in_numpy_out():
    """NumPy and lists give NumPy."""
    for C in (np.ones((3, 2)), [[1.0, 1.0]] * 3):
        result = st.solve(C, budget=2)
        assert type(result.plan) is np.ndarray
        assert type(result.mass) is np.ndarray


# --- odd shapes and masses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1)])
@pytest.mark.parametrize("budget", [None, 1, st.PerRow(1), st.PerColumn(1)], ids=repr)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", ["delta", "rbf"])
def test_one_row_or_one_column(shape, budget, method, kernel):
    """A single point on a side, or on both, is a problem like any other."""
    for reg in (0.0, 0.5):
        case = instance(1, *shape, kernel, reg, (5.0, 2.0))
        result = case.solve(budget=budget, method=method, rng=0)
        assert result.plan.shape == shape
        assert result.value == pytest.approx(case.value(result.plan))
        assert result.certify().gap >= -1e-9 * case.constant()
        if budget == 1:
            assert result.rows.size == 1


@pytest.mark.filterwarnings("ignore:the plan is empty")
def test_one_pair_has_a_formula():
    """1×1: γ = max(0, (2λa a + 2λb b - C) / (2λa + 2λb + λ₂))."""
    for C, expected in ((0.5, (2 * 3 * 2 + 2 * 1 * 1 - 0.5) / (6 + 2 + 0.5)), (100.0, 0.0)):
        result = st.solve([[C]], [2.0], [1.0], unbalanced=(3.0, 1.0), reg=0.5)
        assert result.plan[0, 0] == pytest.approx(expected)


def test_points_of_one_sample():
    """One point against many, by points: the median rule has nothing to go by, and the plan is there all the same."""
    result = st.solve_sample([[0.0, 0.0]], np.eye(2) + 1.0, budget=2)
    assert result.rows.size == 2
    np.testing.assert_allclose(result.a_to_b, [[1.5, 1.5]], rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_points_without_mass_get_none(method):
    """a_i = 0 with ``Delta``: any mass there would only cost, as long as costs are not negative."""
    C = np.random.default_rng(0).random((5, 4))
    a, b = np.array([0.0, 1.0, 0.0, 1.0, 1.0]), np.array([1.0, 0.0, 1.0, 1.0])
    plan = st.solve(C + 5.0, a, b, budget=5, unbalanced=5.0, method=method, rng=0).plan
    assert plan[[0, 2]].sum() < 0.5
    assert st.solve(C, a, np.zeros(4), unbalanced=0.01, method=method, rng=0).plan.sum() == 0.0


@pytest.mark.parametrize("C", [np.zeros((3, 2)), np.ones((3, 2))])
@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_no_mass_at_all_is_the_empty_plan(C, reg):
    """a = b = 0 and costs that are not negative: nothing moves, the value is zero, so is the gap."""
    result = st.solve(C, np.zeros(3), np.zeros(2), budget=3, reg=reg)
    assert (result.rows.size, result.value, result.lower_bound, result.gap, result.relative_gap) == (
        0,
        0.0,
        0.0,
        0.0,
        0.0,
    )
    assert result.status is st.Status.OPTIMAL


def test_different_totals_meet_in_the_middle():
    """One pair, totals 1 and 3, nothing to pay: the mass settles between them as the weights say."""
    for weights, mass in (((1.0, 1.0), 2.0), ((3.0, 1.0), 1.5), ((1.0, 3.0), 2.5)):
        assert st.solve([[0.0]], [1.0], [3.0], unbalanced=weights).mass[0] == pytest.approx(mass)


@pytest.mark.parametrize("side", [0, 1])
def test_a_heavier_weight_keeps_its_side(side):
    """Separate λ: the side with the larger one has the smaller marginal error."""
    case = instance(0, 6, 6, "delta", 0.0, (100.0, 1.0) if side == 0 else (1.0, 100.0))
    result = case.solve()
    errors = np.abs(result.marginal_a - case.a).max(), np.abs(result.marginal_b - case.b).max()
    assert errors[side] < 0.1 * errors[1 - side]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_negative_costs_are_fine(method, kernel):
    """Costs below zero pull mass in beyond the marginals; value and bound are in order."""
    case = instance(5, 5, 5, kernel, 0.1, (2.0, 2.0), negative=True)
    case = replace(case, C=case.C - 1.0)
    result = case.solve(budget=6, method=method, rng=0)
    assert result.value == pytest.approx(case.value(result.plan))
    assert result.marginal_a.sum() > 0.0
    assert result.gap >= -1e-9


# --- forbidden pairs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("reclaim", [True, False])
def test_forbidden_rows_and_columns_stay_empty(method, reclaim):
    """A row or a column with every pair forbidden is fine: it stays empty, the others are served."""
    case = instance(0, 5, 5, "rbf", 0.1, (5.0, 5.0))
    case.C[2], case.C[:, 3] = np.inf, np.inf
    for budget in (None, 8, st.PerRow(2), st.PerColumn(1)):
        result = case.solve(budget=budget, method=method, reclaim=reclaim, rng=0)
        assert result.rows.size > 0
        assert result.plan[2].sum() == 0.0
        assert result.plan[:, 3].sum() == 0.0
        assert np.isfinite(result.value)
        assert result.certify().gap >= -1e-9


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [None, 2, st.PerRow(1), st.PerRow(1) & st.PerColumn(1)], ids=repr)
@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_everything_forbidden_is_the_empty_plan(method, budget, reg):
    """No pair allowed: an empty plan, the value of transporting nothing, and a status that says why."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = st.solve(np.full((3, 2), np.inf), budget=budget, method=method, reg=reg, unbalanced=2.0)
    assert result.status is st.Status.ALL_FORBIDDEN
    assert "forbidden" in str(result.status)
    assert result.rows.size == 0
    assert result.value == pytest.approx(2.0 / 3.0 + 2.0 / 2.0)
    assert result.lower_bound == pytest.approx(result.value)


@pytest.mark.parametrize("reclaim", [True, False])
@pytest.mark.parametrize("inner", ["active_set", "apgd"])
def test_a_forbidden_pair_in_the_start_is_not_used(inner, reclaim):
    """Beginning with a forbidden pair is beginning without it."""
    case = instance(0, 5, 5, "rbf", 0.1, (5.0, 5.0))
    case.C[0, 0] = np.inf
    for method in METHODS:
        options = {"budget": 5, "inner": inner, "method": method, "reclaim": reclaim, "rng": 0}
        result = case.solve(start=[(0, 0), (1, 1)], **options)
        assert (0, 0) not in support(result)
        assert result.value == case.solve(start=[(1, 1)], **options).value


# --- warm starts and callbacks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [6, st.PerColumn(1), st.PerRow(1) & st.PerColumn(1)], ids=repr)
def test_a_start_from_an_earlier_result_is_never_worse_than_it(method, budget):
    """The support of the earlier plan is the start; masses are optimal on it, so the objective can only fall."""
    case = instance(1, 8, 7, "rbf", 0.1, (5.0, 5.0))
    earlier = case.solve(budget=budget, polish=False)
    again = case.solve(budget=budget, method=method, start=earlier, rng=0)
    assert again.value <= earlier.value + 1e-12


def test_a_start_helps_a_problem_that_changed_a_little():
    """From the plan of a nearby problem fewer new pairs are needed, and the optimum is the same."""
    case = instance(2, 15, 15, "rbf", 0.5, (5.0, 5.0))
    nearby = replace(case, a=case.a * 1.01)
    cold, warm = nearby.solve(), nearby.solve(start=case.solve())
    assert warm.value == pytest.approx(cold.value, rel=1e-9)
    assert support(warm) == support(cold)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("reclaim", [True, False])
@pytest.mark.parametrize("polish", [True, False])
def test_a_start_beyond_the_budget_is_cut_to_it(method, reclaim, polish):
    """More pairs to begin with than the budget allows: the plan keeps to the budget all the same."""
    case = instance(3, 6, 6, "rbf", 0.1, (5.0, 5.0))
    start = [(i, i) for i in range(6)]
    options = {"method": method, "start": start, "reclaim": reclaim, "polish": polish, "rng": 0}
    assert case.solve(budget=3, **options).rows.size <= 3
    columns = case.solve(budget=st.PerColumn([1, 0, 1, 0, 1, 0]), **options).cols
    assert set(columns.tolist()) <= {0, 2, 4}


@pytest.mark.parametrize("method", METHODS)
def test_a_pair_given_twice_counts_once(method):
    """A start with the same pair again is that pair once."""
    case = instance(3, 6, 6, "rbf", 0.1, (5.0, 5.0))
    once, twice = (case.solve(budget=4, method=method, start=start, rng=0) for start in ([(0, 0)], [(0, 0), (0, 0)]))
    assert support(once) == support(twice)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("polish", [True, False])
def test_the_callback_is_called_at_every_step(method, polish):
    """As many calls as the path has steps, in order, with what the path says."""
    steps = []
    case = instance(4, 8, 7, "rbf", 0.1, (5.0, 5.0))
    path = case.solve(budget=8, method=method, polish=polish, rng=0, callback=steps.append).path
    calls = len(steps)
    assert calls >= 8
    assert [step.number for step in steps] == list(range(calls))
    np.testing.assert_array_equal([step.pair for step in steps], path.pairs[:calls])
    np.testing.assert_array_equal([step.objective for step in steps], path.objective[:calls])
    np.testing.assert_array_equal([step.entries for step in steps], path.entries[:calls])
    assert calls == len(path)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("stop", [1, 3])
def test_the_callback_can_stop_the_solve(method, stop):
    """A true answer ends it: the plan so far, optimal on its support, and the status says so."""
    case = instance(4, 8, 7, "rbf", 0.1, (5.0, 5.0))
    result = case.solve(budget=8, method=method, rng=0, callback=lambda step: step.number == stop - 1)
    assert result.status is st.Status.STOPPED
    assert len(result.path) == stop
    assert 0 < result.rows.size <= stop
    assert result.value == pytest.approx(case.value(result.plan))
    assert result.kkt < 1e-10
    assert case.solve(budget=8, gap_tol=1e-9, callback=lambda step: True).status is st.Status.STOPPED


def test_an_error_in_a_callback_comes_through():
    """What the callback raises reaches the caller."""

    def fail(step):
        raise RuntimeError(f"step {step.number}")

    with pytest.raises(RuntimeError, match="step 0"):
        instance(0).solve(budget=3, callback=fail)


# --- inner solvers and tolerances ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_apgd_comes_close_to_the_exact_inner_solve(kernel):
    """The paper's inner solver, run long enough, gives the plan of the exact one."""
    case = instance(1, 7, 6, kernel, 0.2, (2.0, 2.0))
    exact = case.solve(budget=6, polish=False, reclaim=False)
    descent = case.solve(budget=6, reclaim=False, inner="apgd", tol=1e-9, max_iter=1_000_000)
    assert descent.value == pytest.approx(exact.value, rel=1e-7)
    assert descent.converged
    assert descent.kkt <= 1e-8


def test_an_inner_solve_that_stops_early_is_warned_about():
    """Too few iterations: our warning, with the residual, and a result that says it did not converge."""
    case = instance(1, 7, 6, "imq-v2", 0.0, (20.0, 20.0))
    with pytest.warns(st.ConvergenceWarning, match=r"KKT residual of .*max_iter"):
        result = case.solve(budget=6, inner="apgd", max_iter=2)
    assert not result.converged
    assert result.kkt > 1e-6
    assert result.value == pytest.approx(case.value(result.plan))


def test_exact_results_have_a_tiny_residual():
    """The exact inner solve leaves a KKT residual of rounding size, relative to the gradient's scale."""
    for kernel in KERNELS:
        for reg in (0.0, 0.1):
            result = instance(2, 20, 18, kernel, reg, (10.0, 10.0)).solve(budget=25)
            assert result.converged
            assert result.kkt <= 1e-10


@pytest.mark.parametrize("inner", ["active_set", "apgd"])
def test_polish_is_off_by_default_where_the_paper_is_followed(inner):
    """reclaim=False or inner="apgd" means no polish, unless one asks; otherwise it is on."""
    case = instance(6, 10, 8, "rbf", 0.1, (10.0, 10.0))
    off = case.solve(budget=8, reclaim=inner == "apgd", inner=inner)
    same = case.solve(budget=8, reclaim=inner == "apgd", inner=inner, polish=False)
    np.testing.assert_array_equal(off.plan, same.plan)
    np.testing.assert_array_equal(case.solve(budget=8).plan, case.solve(budget=8, polish=True).plan)


def test_solve_and_solve_problem_and_solve_sample_agree():
    """Three doors to one room."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 2)), rng.normal(size=(8, 2))
    options = {"unbalanced": 5.0, "reg": 0.1}
    grams = st.RBF("0.1*median").gram(X), st.RBF("0.1*median").gram(Y)
    by_points = st.solve_sample(X, Y, budget=7, **options)
    by_matrix = st.solve(st.cost_matrix(X, Y), kernels=grams, budget=7, **options)
    by_problem = st.solve(st.Problem.from_points(X, Y, **options), budget=7)
    np.testing.assert_array_equal(by_points.plan, by_matrix.plan)
    np.testing.assert_array_equal(by_points.plan, by_problem.plan)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_solve_support_is_the_exact_solve_on_given_links(kernel, reg):
    """The masses on given links are optimal there: Clarabel's objective; a Result or pairs in any order will do."""
    case = instance(2, 7, 6, kernel, reg, (5.0, 5.0))
    pairs = [(i, j) for i in range(7) for j in range(6) if (i + 2 * j) % 3 == 0]
    result = st.solve_support(case.problem(), links=pairs)
    hessian, slope, constant = oracles.quadratic(*case.arrays)
    flat = [i * 6 + j for i, j in pairs]
    expected = constant + oracles.clarabel(hessian[np.ix_(flat, flat)], slope[flat])
    assert result.value == pytest.approx(expected, rel=1e-8)
    assert set(support(result)) <= set(pairs)
    assert st.solve_support(case.problem(), links=pairs[::-1]).value == pytest.approx(result.value, rel=1e-10)
    assert st.solve_support(case.problem(), links=result).value == pytest.approx(result.value, rel=1e-10)
    assert result.gap >= -1e-9


def test_solve_support_on_no_links_and_on_one_twice():
    """No links, no mass; a link given twice is one link; a link outside the plan is an error."""
    case = instance(2, 4, 4)
    assert st.solve_support(case.problem(), links=[]).value == pytest.approx(case.constant())
    once = st.solve_support(case.problem(), links=[(1, 2)])
    assert st.solve_support(case.problem(), links=[(1, 2), (1, 2)]).value == once.value
    with pytest.raises(ValueError, match=r"links must hold pairs of a plan of shape \(4, 4\)"):
        st.solve_support(case.problem(), links=[(4, 0)])
    with pytest.raises(TypeError, match="links must be a Result or a list of pairs of ints, got dtype float64"):
        st.solve_support(case.problem(), links=[(0.5, 1.0)])


def test_a_rule_object_carries_its_parameters():
    """``method`` may be a rule with parameters, or one of the user's own."""

    class FirstFree:
        exhaustive = False

        def select(self, view):
            rows, cols, _ = view.candidates()
            free = np.flatnonzero(view.is_free(rows, cols))
            return (int(rows[free[0]]), int(cols[free[0]])) if free.size else None

    case = instance(0, 4, 4)
    mine = case.solve(budget=3, method=FirstFree(), reclaim=False)
    np.testing.assert_array_equal(mine.path.pairs, [[0, 0], [0, 1], [0, 2]])
    assert case.solve(budget=3, method=st.StochasticOMP(eps=0.5), rng=0).rows.size <= 3


@pytest.mark.parametrize("budget", [st.PerRow(1), st.Uniform(1), 3, Forest()])
@pytest.mark.parametrize("second", [(0, 0), (0, 1), (4, 0), (-1, 2)])
def test_a_rule_that_chooses_what_it_may_not_is_told_so(budget, second):
    """Twice the same, more than the budget has room for, or no pair of the plan."""

    class Stubborn:
        exhaustive = False

        def select(self, view):
            return (second if view.support else (0, 0)) if len(view.support) < 2 else None

    if second == (0, 1) and not isinstance(budget, st.PerRow | st.Uniform):
        assert instance(0, 4, 4).solve(budget=budget, method=Stubborn(), reclaim=False).rows.size == 2
        return
    with pytest.raises(ValueError, match=r"select must return a pair off the support that the budget allows, got \("):
        instance(0, 4, 4).solve(budget=budget, method=Stubborn(), reclaim=False)


@pytest.mark.parametrize("rng", ["abc", -1, 0.5])
def test_what_is_no_seed(rng):
    with pytest.raises((TypeError, ValueError), match=r"rng must be a seed or a numpy\.random\.Generator, got"):
        st.solve(np.eye(2), rng=rng)


def test_an_instance_is_what_it_says():
    """The shared test problems reach the package as they reach the oracles."""
    case = Instance(np.ones((2, 3)), np.ones(2), np.ones(3), np.eye(2), np.eye(3), (1.0, 2.0), 0.5)
    assert case.problem().value(np.array([0]), np.array([1]), np.array([2.0])) == case.value([[0, 2.0, 0], [0, 0, 0]])


@pytest.mark.parametrize("large", [1e12, 1e13, np.inf])
def test_one_large_cost_switches_nothing_off(large):
    """A pair too dear to be used is as good as a forbidden one, however dear it is."""
    C = np.random.default_rng(0).random((6, 6))
    C[0, 0] = large
    result = st.solve(C, unbalanced=10.0)
    C[0, 0] = np.inf
    assert result.value == pytest.approx(st.solve(C, unbalanced=10.0).value, rel=1e-9)


@pytest.mark.parametrize("seed", [1312, 1981])
def test_a_polish_that_needs_room_ends(seed):
    """A factor that is nearly full grows when an exchange needs a place, and the polish comes to an end."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(5, 11)), int(rng.integers(8, 25))
    k = int(rng.integers(3, m))
    x, y = rng.normal(size=(m, 2)), rng.normal(size=(n, 2)) + 0.5
    weight, reg = float(rng.choice([10.0, 100.0])), float(10 ** rng.uniform(-1.5, 1))
    problem = st.Problem.from_points(x, y, normalize_cost=True, unbalanced=weight, reg=reg, kernels=st.IMQv2("median"))
    result = st.solve(problem, budget=st.PerColumn(k), gap_tol=1e-12)
    assert np.bincount(result.cols, minlength=n).max() <= k
    assert result.gap >= -1e-12


def test_a_stop_in_the_polish_is_a_stop():
    """A callback that says stop among the exchanges ends the solve, and the status says so."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 1.0
    options = {"budget": st.PerColumn(2), "kernels": "imq-v2", "reg": 0.1}
    building = len(st.solve_sample(x, y, polish=False, **options).path)
    assert len(st.solve_sample(x, y, **options).path) > building
    calls = []
    result = st.solve_sample(x, y, callback=lambda step: calls.append(step) or len(calls) > building, **options)
    assert result.status is st.Status.STOPPED
    assert len(calls) == building + 1


def test_a_result_survives_pickling():
    """Sent to another process and back, a result has its plan, its path and its proof."""
    result = st.solve(np.random.default_rng(1).random((6, 5)), budget=5, reg=0.1)
    copy = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(copy.plan, result.plan)
    assert copy.gap == result.gap
    assert copy.path.plan_at(3).value == result.path.plan_at(3).value


@pytest.mark.filterwarnings("ignore:the inner solver stopped:sparsetransport.ConvergenceWarning")
@pytest.mark.parametrize("seed", [6186, 10641, 3406, 575, 596, 1396])
def test_polish_keeps_the_plan_where_an_exchange_meets_no_minimum(seed):
    """Singular Gram matrices and negative costs: the objective may fall without bound on some supports."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 8))
    C, A, B = rng.normal(size=(m, m)), rng.normal(size=(m, m // 2)), rng.normal(size=(m, m // 2))
    a, b = rng.random(m), rng.random(m)
    options = {"budget": st.PerRow(2) & st.PerColumn(2), "kernels": (A @ A.T, B @ B.T), "unbalanced": 10.0}
    rough, polished = (st.solve(C, a, b, polish=polish, **options) for polish in (False, True))
    assert polished.value <= rough.value + 1e-9 * abs(rough.value)


def test_costs_that_are_lost_in_rounding_are_warned_of():
    """Marginal errors that weigh a billion times the costs leave nothing of them."""
    C = np.random.default_rng(0).random((50, 50))
    with pytest.warns(st.SparseTransportWarning, match="lost in rounding"):
        st.solve(C, unbalanced=1e12)
    st.solve(C, unbalanced=1e8)  # tests fail where one of our warnings is heard


def test_the_optimum_is_not_solved_twice_for_its_proof(monkeypatch):
    result = st.solve(np.random.default_rng(0).random((20, 20)))
    monkeypatch.setattr(simplex, "optimum", None)
    monkeypatch.setattr(OMPSolver, "__init__", None)
    assert result.status is st.Status.OPTIMAL
    assert result.relative_gap < 1e-9


@pytest.mark.filterwarnings("ignore:.*lost in rounding")
def test_what_rounding_hides_is_not_called_optimal():
    """A weight far above the costs: a warning, and a plan within the budget that is worse than the one without."""
    rng = np.random.default_rng(0)
    C = rng.random((20, 20))
    C[rng.random((20, 20)) < 0.5] = 1e9
    with pytest.warns(UserWarning, match="lost in rounding"):
        free = st.solve(C, unbalanced=5e11)
    tight = st.solve(C, unbalanced=5e11, budget=15)
    assert tight.value > 1.05 * free.value
    assert tight.status is st.Status.BUDGET_USED
    closer = st.solve(C, unbalanced=5e11, budget=15, gap_tol=1e-3)
    assert closer.value <= tight.value
    assert (closer.status is st.Status.GAP_OPEN) == (closer.relative_gap > 1e-3)


def test_a_coarse_tolerance_does_not_close_a_gap():
    """Optimal to the tolerance asked for is not within the gap asked for."""
    result = st.solve(np.random.default_rng(0).random((6, 5)), tol=0.1, gap_tol=1e-6)
    assert result.status is st.Status.GAP_OPEN or result.relative_gap <= 1e-6


def test_a_cloud_against_itself_has_no_gap():
    """The objective is zero but for rounding, and so is what is left to gain."""
    x = np.random.default_rng(0).normal(size=(30, 2))
    result = st.solve_sample(x, x, budget=40)
    assert result.value < 1e-15
    assert abs(result.relative_gap) < 1e-8
    assert abs(result.certify().relative_gap) < 1e-8


def test_a_rule_derived_from_omp_is_asked():
    """The compiled loop knows only its own."""
    asked = []

    class Mine(st.OMP):
        def select(self, view):
            asked.append(len(view.support))
            return super().select(view)

    st.solve(np.random.default_rng(0).random((5, 5)), budget=3, method=Mine(), polish=False)
    assert asked == [0, 1, 2, 3]


@pytest.mark.parametrize("options", [{"method": "stochastic", "reclaim": False, "polish": True}, {"inner": "apgd"}])
@pytest.mark.parametrize("seed", range(6))
def test_the_path_ends_at_the_result(options, seed):
    """Entries that leave before the polish, or with a jump that adds none, leave the path too."""
    rng = np.random.default_rng(seed)
    result = st.solve(rng.random((4, 4)), budget=6, unbalanced=30.0, gap_tol=1e-6, rng=seed, **options)
    ending = result.path.support_at(16)
    assert set(zip(result.rows.tolist(), result.cols.tolist(), strict=True)) <= set(ending)
    assert result.path.plan_at(16).value == pytest.approx(result.value, rel=1e-6)
