"""Numbers of every size: units that change by powers of four, and weights from 1e-12 to 1e12 against fractions."""

import warnings
from collections import Counter

import numpy as np
import oracles
import pytest

import sparsetransport as st

KERNELS = {"delta": None, "rbf": st.RBF(0.3), "imq": st.IMQ(0.5)}
BUDGETS = [None, 4, st.PerRow(1), st.PerRow(1) & st.PerColumn(1)]


@pytest.fixture(autouse=True)
def quiet():
    """Costs that are lost in rounding are warned of, which is right, and not what is tested here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", st.SparseTransportWarning)
        yield


# --- a problem in other units ----------------------------------------------------------------------------------------


def scaled(seed, kernel, reg, k):
    """A problem whose costs and weights are multiplied by 4^k."""
    rng, unit = np.random.default_rng(seed), 4.0**k
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(7, 2)) + 0.5
    C = st.cost_matrix(X, Y) - 0.5 * (seed % 2)
    C[0, 1] = np.inf
    kernel = KERNELS[kernel]
    grams = None if kernel is None else (kernel.gram(X), kernel.gram(Y))
    a, b = rng.random(6), rng.random(7)
    return st.Problem.from_matrices(C * unit, a, b, kernels=grams, unbalanced=(2.0 * unit, 3.0 * unit), reg=reg * unit)


def figures(problem, budget):
    """The plan, and the numbers that are in the units of the objective, of one problem, a batch and shared links."""
    alone, shared = st.solve(problem, budget=budget), st.solve_shared([problem], budget=budget)
    (batch,) = st.solve_batch([problem], budget=budget)
    cheap = alone.lower_bound
    values = [alone.value, cheap, alone.certify().lower_bound, batch.value, batch.lower_bound, shared.value]
    return [alone.plan, batch.plan, shared.links, shared.mass], np.array([*values, *alone.path.objective])


@pytest.mark.parametrize("reg", [0.0, 0.5])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [-500, -240, -150, -7, 7, 150, 240, 500])
def test_other_units_give_the_same_plan(k, kernel, reg):
    """U is homogeneous in costs and weights: times 4^k, plans stay to the last bit and bounds are times 4^k."""
    for seed, budget in enumerate(BUDGETS):
        plans, values = figures(scaled(seed, kernel, reg, 0), budget)
        try:
            other_plans, other_values = figures(scaled(seed, kernel, reg, k), budget)
        except ValueError:
            if abs(k) > 150:
                continue
            raise  # within 1e±90 there is no reason to refuse
        for plan, other in zip(plans, other_plans, strict=True):
            np.testing.assert_array_equal(other, plan)
        np.testing.assert_array_equal(other_values, np.ldexp(values, 2 * k))


# --- weights against fractions ---------------------------------------------------------------------------------------


def at_most(k):
    return k, lambda support: len(support) <= k


def lines_once(axis):
    return lambda support: max(Counter(pair[axis] for pair in support).values()) <= 1


TINY = [
    (None, lambda support: True),
    at_most(1),
    at_most(2),
    (st.PerRow(1), lines_once(0)),
    (st.PerRow(1) & st.PerColumn(1), lambda support: lines_once(0)(support) and lines_once(1)(support)),
]
SHAPES = [(2, 2), (2, 3), (3, 2), (1, 4), (1, 1), (6, 1)]
EQUAL = [(weight, weight) for weight in (1e-12, 1e-6, 1.0, 1e3, 1e6, 1e9, 1e12)]
UNEQUAL = [(1e-3, 1e3), (1e6, 1e-6), (1e12, 1.0), (1e-12, 1e12)]


def tiny(seed, unbalanced):
    """The arrays of a problem with at most six pairs; some costs are negative, a pair is forbidden, points coincide."""
    rng = np.random.default_rng(seed)
    m, n = SHAPES[seed % len(SHAPES)]
    C = rng.random((m, n)) - 0.4 * (rng.random() < 0.3)
    if rng.random() < 0.2:
        C[0, 0] = np.inf
    where = [np.arange, lambda size: rng.integers(0, 3, size)][seed % 2]
    grams = [0.5 ** abs(x[:, None] - x) for x in (where(m), where(n))] if seed % 3 else [np.eye(m), np.eye(n)]
    reg = [0.0, 0.0, 0.5, 1e6][rng.integers(4)]
    return C, rng.random(m), rng.random(n), *grams, unbalanced, reg


def solved(seed, unbalanced, budget):
    """The result, with its cheap and its tight bound, and the problem in fractions."""
    C, a, b, *grams, _, reg = arrays = tiny(seed, unbalanced)
    kernels = tuple(grams) if seed % 3 else None
    result = st.solve(C, a, b, kernels=kernels, unbalanced=unbalanced, reg=reg, budget=budget)
    return result, (result.lower_bound, result.certify().lower_bound), oracles.Exact(*arrays)


@pytest.mark.parametrize("unbalanced", [*EQUAL, *UNEQUAL], ids=str)
def test_no_bound_is_above_the_optimum(unbalanced):
    """Of all plans within the budget, in fractions: bounds are below it, up to the rounding of their last digits."""
    for seed in range(30):
        budget, allowed = TINY[seed % len(TINY)]
        _, bounds, exact = solved(seed, unbalanced, budget)
        best = exact.optimum(allowed)
        for bound in bounds:
            assert bound - best <= 1e-13 * abs(best), (seed, bound, float(best))


@pytest.mark.parametrize("unbalanced", [*EQUAL, *UNEQUAL], ids=str)
def test_what_is_called_optimal_is(unbalanced):
    """A plan whose status is the unbudgeted optimum has its objective, to nine digits, in fractions.

    Where costs or a side are lost in rounding, which weights of 1e9 do, no plan has this status.
    """
    called = lost = 0
    for seed in range(30):
        budget, _ = TINY[seed % len(TINY)]
        result, _, exact = solved(seed, unbalanced, budget)
        lost += result.status is st.Status.ROUNDING
        if result.status in (st.Status.OPTIMAL, st.Status.EMPTY):
            called += 1
            best = exact.optimum()
            assert exact.value(result.rows, result.cols, result.mass) - best <= 1e-9 * abs(best), seed
    assert called >= 8 or lost >= 8


@pytest.mark.parametrize("unbalanced", [*EQUAL, *UNEQUAL], ids=str)
def test_the_value_is_that_of_the_plan(unbalanced):
    """In fractions, up to rounding."""
    for seed in range(30):
        result, _, exact = solved(seed, unbalanced, TINY[seed % len(TINY)][0])
        value = exact.value(result.rows, result.cols, result.mass)
        assert abs(result.value - value) <= 1e-12 * abs(value), seed


# --- costs of very different sizes ------------------------------------------------------------------------------------


def beside_huge_costs(seed, kernel, far):
    """A problem in which four costs are up to ``far`` times as large as the others, and its least cost of all."""
    rng = np.random.default_rng(seed)
    X, Y = rng.random((6, 2)), rng.random((7, 2))
    C, a, b = st.cost_matrix(X, Y), rng.random(6), rng.random(7)
    huge = rng.choice(C.size, 4, replace=False)
    C.flat[huge] *= far * 10.0 ** rng.uniform(-2.0, 0.0, 4)
    grams = None if KERNELS[kernel] is None else (KERNELS[kernel].gram(X), KERNELS[kernel].gram(Y))
    a, b = a / a.sum(), b / b.sum()
    best = oracles.emd(np.minimum(C, 1e3), a, b)  # no plan of that cost has one of the four
    return st.Problem.from_matrices(C, a, b, kernels=grams), best


def everywhere(problem):
    """The result of every function that solves one problem."""
    quick = st.solve(problem, effort="quick")
    return [st.solve(problem), quick, st.solve_batch([problem])[0], st.solve_shared([problem])]


@pytest.mark.parametrize("kernel", ["delta", "rbf"])
def test_what_is_called_optimal_beside_huge_costs_is(kernel):
    """The weight "auto" follows from the mean, so that marginal errors cost next to nothing: the optimum is POT's.

    Gradients that count as zero beside the weight are as large as most costs here, and some plans are 19 % worse.
    """
    said = Counter()
    for seed in range(15):
        problem, best = beside_huge_costs(seed, kernel, 1e12)
        for result in everywhere(problem):
            said[result.status] += 1
            assert result.status is st.Status.ROUNDING or result.value <= best * (1.0 + 1e-6), seed
    assert said[st.Status.ROUNDING] >= 10
    assert kernel != "delta" or said[st.Status.OPTIMAL] >= 10


def test_costs_that_are_lost_beside_others_are_told():
    problem, _ = beside_huge_costs(2, "delta", 1e12)
    for solve in (st.solve, lambda one: st.solve_batch([one, one]), lambda one: st.solve_shared([one, one])):
        with pytest.warns(st.SparseTransportWarning, match="costs in use are lost in rounding") as told:
            solve(problem)
        assert len(told) <= 2


@pytest.mark.parametrize("noise", [0.0, 1e-16, 1e-6])
def test_equal_points_are_no_reason_for_doubt(noise):
    """Their plan costs nothing, up to the noise of distances; half of the points come twice."""
    rng = np.random.default_rng(0)
    X = rng.random((8, 2))[[0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3]]
    C = st.cost_matrix(X, X)
    C += noise * rng.random(C.shape) * (C == 0.0)
    for costs in (C, 0.0 * C):
        assert all(result.status is st.Status.OPTIMAL for result in everywhere(st.Problem.from_matrices(costs)))
