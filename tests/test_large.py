"""Large problems: what the road by dual prices gives at sizes that other solvers can check, and bad input on it."""

from dataclasses import replace

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport import effort
from sparsetransport.large import is_large
from sparsetransport.status import Status

PRICED = replace(st.DEFAULT, prices=replace(effort.Prices(), above=0, coarsest=60, budgets=effort.Listed(above=0)))
"""The default, with prices for problems of any size."""


def points(m, n, d=2, seed=0, *, equal=False):
    rng = np.random.default_rng(seed)
    x, y = rng.random((m, d)), rng.random((n, d)) ** 2
    a, b = (np.ones(k) if equal else np.exp(0.7 * rng.normal(size=k)) for k in (m, n))
    return x, y, a / a.sum(), b / b.sum()


def by_prices(*args, how=PRICED, **options):
    return st.solve_sample(*args, kernels=st.Delta(), effort=how, **options)


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize(("m", "n"), [(300, 300), (400, 50)])
def test_near_the_optimum_of_the_network_simplex_and_certified(m, n, equal, lazy):
    problem = points(m, n, equal=equal)
    result = by_prices(*problem, lazy=lazy)
    best = st.solve_sample(*problem, kernels=st.Delta()).value
    assert result.log["from_prices"]
    assert result.status in (Status.PRICED, Status.OPTIMAL)
    assert result.lower_bound <= best * (1 + 1e-12)
    assert best * (1 - 1e-12) <= result.value <= best * (1 + 1e-3)
    assert result.mass.size <= m + n - 1
    assert result.relative_gap < 2e-3
    assert result.certify().lower_bound == result.lower_bound


def test_the_certificate_can_be_checked_by_anybody():
    x, y, a, b = points(200, 150)
    result = by_prices(x, y, a, b, lazy=True)
    proof = result.certify()
    cost = ((x[:, None] - y[None]) ** 2).sum(2)
    assert (proof.potential_a[:, None] + proof.potential_b - cost).max() < 1e-12
    weight_a, weight_b = result.log["unbalanced"]
    bound = a @ proof.potential_a - proof.potential_a @ proof.potential_a / (4 * weight_a)
    bound += b @ proof.potential_b - proof.potential_b @ proof.potential_b / (4 * weight_b)
    np.testing.assert_allclose(bound, result.lower_bound, rtol=1e-10)


def test_a_gap_that_is_asked_for_is_reached():
    problem = points(250, 250)
    result = by_prices(*problem, gap_tol=1e-7)
    assert result.relative_gap <= 1e-7
    assert result.status in (Status.GAP_REACHED, Status.OPTIMAL, Status.OPTIMAL_PROVEN)
    np.testing.assert_allclose(result.value, st.solve_sample(*problem, kernels=st.Delta()).value, rtol=2e-7)


HARD = {
    "far clusters": lambda rng: rng.integers(0, 5, (600, 1)) * 100.0 + rng.normal(size=(600, 2)),
    "heavy tails": lambda rng: rng.standard_t(1.5, size=(600, 2)),
    "a line": lambda rng: rng.normal(size=(600, 1)),
    "equal points": lambda rng: rng.normal(size=(60, 2))[rng.integers(0, 60, 600)],
}


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("share", [1.0, 3.0])
@pytest.mark.parametrize("kind", HARD)
def test_hard_data_is_certified(kind, share, lazy):
    rng = np.random.default_rng(7)
    x, y = HARD[kind](rng), HARD[kind](rng) + 0.3
    result = by_prices(x, y, np.ones(600), np.full(600, share), lazy=lazy)
    assert result.relative_gap <= 1e-4
    assert result.status in (Status.PRICED, Status.OPTIMAL)
    if share == 1.0:
        closer = by_prices(x, y, np.ones(600), np.ones(600), lazy=lazy, gap_tol=1e-8)
        assert closer.relative_gap <= 1e-8
        best = st.solve_sample(x, y, np.ones(600), np.ones(600), kernels=st.Delta()).value
        np.testing.assert_allclose(closer.value, best, rtol=1e-7)


def test_forbidden_pairs_and_a_single_point():
    x, y, a, b = points(200, 150)
    cost = ((x[:, None] - y[None]) ** 2).sum(2)
    cost[np.random.default_rng(1).random(cost.shape) < 0.5] = np.inf
    result = st.solve(cost, a, b, effort=PRICED, gap_tol=1e-8)
    np.testing.assert_allclose(result.value, st.solve(cost, a, b).value, rtol=1e-7)
    assert np.isfinite(cost[result.rows, result.cols]).all()
    assert by_prices(*points(300, 1), gap_tol=1e-8).relative_gap <= 1e-8


def test_rounds_of_the_simplex_end_with_the_callback_and_the_time():
    rng = np.random.default_rng(7)
    x, y = (HARD["far clusters"](rng) for _ in range(2))
    told = []
    by_prices(x, y, callback=told.append)
    stages = len(effort.Prices().stages) + effort.Prices().proximal
    assert len(told) > stages, "rounds are told of, too"
    stopped = by_prices(x, y, callback=lambda step: step.number == len(told) - 2)
    assert stopped.status is Status.STOPPED


def test_who_goes_by_prices():
    small = st.Problem.from_points(*points(20, 20), kernels=st.Delta())
    assert not is_large(small, st.DEFAULT)
    assert is_large(small, PRICED)
    assert not is_large(small, st.QUICK)
    assert not is_large(replace(small, reg=1.0), PRICED)
    assert not is_large(st.Problem.from_points(*points(20, 20), kernels=st.RBF(0.1)), PRICED)
    assert not is_large(st.Problem.from_matrices(np.full((3, 3), np.inf), unbalanced=1.0), PRICED)
    assert st.DEFAULT.prices is not None
    assert st.DEFAULT.prices.above >= 9_000_000, "what is small gives what it gave"


def test_the_same_plan_twice_and_nothing_is_solved_twice(monkeypatch):
    problem = st.Problem.from_points(*points(200, 200), kernels=st.Delta())
    first = st.solve(problem, effort=PRICED)
    monkeypatch.setattr("sparsetransport.large.prices_on", None)
    again = st.solve(problem, effort=PRICED)
    assert (first.rows == again.rows).all()
    assert (first.mass == again.mass).all()


def test_the_callback_follows_the_ascent_and_may_stop_it():
    told = []
    result = by_prices(*points(200, 200), callback=lambda step: told.append(step) or len(told) == 3)
    assert result.status is Status.STOPPED
    assert [step.number for step in told] == [0, 1, 2]
    assert all(step.entries > 0 for step in told)
    assert result.relative_gap < 0.5


def test_the_time_is_limited():
    result = by_prices(*points(200, 200), gap_tol=1e-12, time_limit=1e-6)
    assert result.status is Status.TIME_LIMIT
    assert 0.0 < result.lower_bound <= result.value


def test_hard_and_one_sided_marginals_go_the_usual_way():
    x, y, a, b = points(30, 30)
    for options in ({"unbalanced": np.inf}, {"sense": "<="}):
        assert not by_prices(x, y, a, b, **options).log["from_prices"]


def test_squared_distances_have_their_mean_in_closed_form():
    x, y, a, b = points(70, 50, d=3)
    for metric in ("sqeuclidean", "cosine"):
        lazy, dense = (
            st.Problem.from_points(x, y, a, b, metric=metric, kernels=st.Delta(), lazy=each) for each in (True, False)
        )
        np.testing.assert_allclose(lazy.cost.mean, dense.cost.mean, rtol=1e-12)
        np.testing.assert_allclose(lazy.unbalanced, dense.unbalanced, rtol=1e-12)
        assert lazy.cost.has_pairs
        assert lazy.cost.lowest <= dense.cost.lowest


# --- budgets of fewer links ------------------------------------------------------------------------------------------

LABELS = (np.arange(300)[:, None] + np.arange(280)) % 5
BUDGETS = [
    st.PerRow(1),
    st.PerRow(2),
    st.PerColumn(1),
    st.PerRow(1) & st.PerColumn(1),
    st.Partition(LABELS, [20, 0, 300, 40, 60]),
    280,
    30,
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_budgets_are_kept_and_plans_are_as_good_as_without_prices(budget):
    problem = points(300, 280, equal=budget == 280)
    result = by_prices(*problem, budget=budget)
    quick = st.solve_sample(*problem, kernels=st.Delta(), budget=budget, effort="quick")
    assert result.log["from_prices"]
    assert result.status is Status.PRICED
    assert 0.0 < result.lower_bound <= result.value <= 1.02 * quick.value
    counts = result.rows.size, np.bincount(result.rows).max(), np.bincount(result.cols).max()
    whole, row, col = {
        st.PerRow(1): (300, 1, 300),
        st.PerRow(2): (600, 2, 300),
        st.PerColumn(1): (280, 300, 1),
        st.PerRow(1) & st.PerColumn(1): (280, 1, 1),
        BUDGETS[4]: (420, 300, 300),
        280: (280, 300, 300),
        30: (30, 300, 300),
    }[budget]
    assert counts <= (whole, counts[1], counts[2])
    assert counts[1] <= row
    assert counts[2] <= col
    np.testing.assert_array_less(
        np.bincount(LABELS[result.rows, result.cols], minlength=5) * (budget == BUDGETS[4]), [21, 1, 301, 41, 61]
    )


def test_many_rows_and_few_columns_with_one_link_a_row():
    problem = points(400, 8, equal=True)
    result = by_prices(*problem, budget=st.PerRow(1))
    best = st.solve_sample(*problem, kernels=st.Delta(), budget=st.PerRow(1)).value
    assert result.lower_bound <= best * (1 + 1e-12)
    assert result.value <= 1.001 * best


def test_budgets_without_prices_and_a_gap_that_is_asked_for():
    problem = points(120, 110, equal=True)
    without = replace(PRICED, prices=replace(PRICED.prices, budgets=None))
    assert not by_prices(*problem, budget=st.PerRow(1), how=without).log["from_prices"]
    assert by_prices(*problem, budget=1000, how=without).log["from_prices"]
    assert by_prices(*problem, budget=st.PerRow(1), gap_tol=0.99).status is Status.GAP_REACHED
    near = by_prices(*problem, budget=st.PerRow(1), gap_tol=1e-9, time_limit=5.0)
    assert near.status in (Status.GAP_OPEN, Status.TIME_LIMIT)


def test_the_callback_may_stop_the_ascent_or_the_search_within_the_budget():
    for stop in (2, 6):
        told = []
        result = by_prices(
            *points(200, 190),
            budget=st.PerRow(1),
            callback=lambda step, told=told, stop=stop: told.append(step.entries) or len(told) == stop,
        )
        assert result.status is Status.STOPPED
        assert len(told) == stop
        assert np.bincount(result.rows).max() == 1


# --- bad input, and points that are nearly that ----------------------------------------------------------------------


def test_points_that_are_not_numbers():
    x, y, a, b = points(30, 30)
    x[4, 1] = np.nan
    with pytest.raises(ValueError, match="X"):
        by_prices(x, y, a, b)


@pytest.mark.parametrize("d", [2, 10])
def test_duplicates_and_points_that_are_all_equal(d):
    x, y, a, b = points(120, 100, d)
    twice = by_prices(np.repeat(x[:60], 2, axis=0), np.repeat(y[:50], 2, axis=0), a, b, lazy=True)
    assert twice.relative_gap < 5e-3
    same = by_prices(np.ones((120, d)), np.ones((100, d)), a, b, lazy=True, unbalanced=1.0)
    assert same.value < 1e-9
    np.testing.assert_allclose(same.marginal_a, a, atol=1e-6)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 90), (90, 1)])
@pytest.mark.parametrize("lazy", [True, False])
def test_one_point(m, n, lazy):
    problem = points(m, n)
    result = by_prices(*problem, lazy=lazy)
    np.testing.assert_allclose(result.value, st.solve_sample(*problem, kernels=st.Delta()).value, rtol=1e-3)


def test_forbidden_pairs_and_points_without_mass():
    x, y, a, b = points(150, 140)
    forbidden = np.random.default_rng(0).random((150, 140)) < 0.7
    forbidden[5], forbidden[:, 7] = True, True
    a[:20], b[100:] = 0.0, 0.0
    result = by_prices(x, y, a, b, forbidden=forbidden)
    best = st.solve_sample(x, y, a, b, kernels=st.Delta(), forbidden=forbidden).value
    assert not forbidden[result.rows, result.cols].any()
    assert result.lower_bound <= best * (1 + 1e-12)
    assert best * (1 - 1e-12) <= result.value <= best * (1 + 5e-3)
    assert by_prices(x, y, np.zeros(150), np.zeros(140)).mass.size == 0


def test_everything_forbidden():
    x, y, a, b = points(40, 40)
    result = by_prices(x, y, a, b, forbidden=np.ones((40, 40), bool), unbalanced=1.0)
    assert result.status is Status.ALL_FORBIDDEN
    assert result.mass.size == 0


def test_negative_costs():
    rng = np.random.default_rng(0)
    cost = rng.normal(size=(90, 80))
    result = st.solve(cost, unbalanced=30.0, effort=PRICED)
    best = st.solve(cost, unbalanced=30.0).value
    assert result.lower_bound <= best + 1e-9 * abs(best)
    assert best - 1e-9 * abs(best) <= result.value <= best + 1e-2 * abs(best)


# --- devices ---------------------------------------------------------------------------------------------------------

ON_DEVICE = replace(PRICED, prices=replace(PRICED.prices, on_device=effort.DevicePrices(coarsest=30, iterations=60)))


def test_a_device_gives_a_forest_that_its_bound_certifies():
    """PyTorch's CPU stands for a GPU."""
    pytest.importorskip("torch")
    problem = points(120, 100)
    result = by_prices(*problem, device="cpu", how=ON_DEVICE)
    best = st.solve_sample(*problem, kernels=st.Delta()).value
    assert result.log["from_prices"]
    assert result.lower_bound <= best * (1 + 1e-12) <= result.value * (1 + 1e-9) <= 1.02 * best
    assert result.mass.size <= 219
    small = st.solve_sample(*problem, kernels=st.Delta(), device="cpu")
    assert small.value == pytest.approx(best, rel=1e-9), "small problems are solved on the CPU, exactly"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cpu", "reg": 1.0}, "device must be None unless"),
        ({"device": "cpu", "metric": "euclidean"}, "device must be None unless"),
        ({"device": "cpu", "sense": "<="}, "device must be None unless"),
        ({"device": "gpu"}, "device must be a device of PyTorch such as 'cuda', got 'gpu'"),
        ({"device": "cuda"}, "device must be an available device, got 'cuda': PyTorch finds no GPU"),
    ],
    ids=str,
)
def test_devices_that_cannot_be_used(options, message):
    torch = pytest.importorskip("torch")
    if options["device"] == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ValueError, match=message):
        by_prices(*points(30, 20), **options)


@pytest.mark.gpu
def test_tensors_on_a_gpu_stay_there():
    import torch

    given = [torch.tensor(each, device="cuda") for each in points(5000, 5000)]
    result = st.solve_sample(*given, kernels=st.Delta())
    assert result.mass.is_cuda
    assert result.log["from_prices"]
    assert result.relative_gap < 1e-3
