"""How few links are enough: against brute force, and what is proved of it."""

import pickle
from collections import Counter

import numpy as np
import oracles
import pytest

import sparsetransport as st

KINDS = {  # how many a support needs of each kind
    st.Uniform: len,
    st.PerRow: lambda support: max(Counter(i for i, _ in support).values()),
    st.PerColumn: lambda support: max(Counter(j for _, j in support).values()),
}


def problem_of(seed, shape=(4, 3), **options):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(shape[0], 2)), rng.normal(size=(shape[1], 2))
    return st.Problem.from_points(X, Y, rng.random(shape[0]), rng.random(shape[1]), **options)


def least(problem, allowed):
    """The best objective under any support, by brute force."""
    (rows, cols), C = map(np.arange, problem.shape), problem.cost.rows(0, problem.shape[0])
    grams = problem.gram_a.block(rows, rows), problem.gram_b.block(cols, cols)
    hessian, slope, constant = oracles.quadratic(C, problem.a, problem.b, *grams, problem.unbalanced, problem.reg)
    return constant + oracles.brute_force(hessian, slope, problem.shape, allowed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("within", [0.0, 0.02, 0.3])
@pytest.mark.parametrize(
    "options", [{"reg": 0.5}, {"kernels": "delta", "reg": 0.5}, {"kernels": "delta"}], ids=["rbf", "delta", "reg=0"]
)
@pytest.mark.parametrize("seed", range(2))
def test_brute_force(kind, within, options, seed):
    problem = problem_of(seed, **options)
    found = st.solve_fewest(problem, within=within, budget=kind, gap_tol=1e-9)
    optimum = least(problem, lambda support: True)
    assert found.optimum.value == pytest.approx(optimum, rel=1e-9)
    assert found.target == pytest.approx((1.0 + within) * optimum, rel=1e-9)
    assert found.result.value <= found.target
    links = list(zip(found.result.rows.tolist(), found.result.cols.tolist(), strict=True))
    assert KINDS[kind](links) <= found.budget
    needed = KINDS[kind]
    reaches = [k for k in range(1, 13) if least(problem, lambda s, k=k: needed(s) <= k) <= found.target * (1 + 1e-9)]
    assert found.at_least <= min(reaches) <= found.budget
    assert found.budget == min(reaches)  # with a gap_tol, small problems are solved to the end


def test_fewer_links_than_proved_are_not_claimed():
    """With `reg` the proof is close, and with delta kernels it counts the points that links reach."""
    problem = problem_of(0, (30, 25), reg=1.0, kernels="delta")
    found = st.solve_fewest(problem, within=0.05)
    assert 20 < found.at_least <= found.budget < 55
    assert found.at_least is found.at_least  # not proved twice
    exact = st.solve_fewest(problem, within=0.0)
    assert exact.at_least == exact.budget == len(exact.optimum.mass)


def test_what_was_tried_is_kept_and_more_links_are_tried_only_where_needed():
    found = st.solve_fewest(problem_of(0, (30, 25), reg=0.1), within=0.05)
    assert list(found.tried) == sorted(found.tried)
    assert found.tried[found.budget] is found.result
    assert found.tried[found.budget - 1].value > found.target
    for number, result in found.tried.items():
        assert len(result.mass) <= number
        alone = st.solve(problem_of(0, (30, 25), reg=0.1), budget=number).value
        assert result.value <= alone * (1.0 + 1e-9)  # it may begin with a plan of fewer links
    assert repr(found) == (
        f"Fewest(budget={found.budget}, {found.budget} links, value={found.result.value:.4g}; unbudgeted optimum: "
        f"{len(found.optimum.mass)} links, value={found.optimum.value:.4g})"
    )


def test_a_budget_that_a_number_makes():
    problem = problem_of(0, (12, 10), kernels="delta")
    found = st.solve_fewest(problem, within=0.1, budget=lambda k: st.PerRow(2) & st.Uniform(k))
    assert np.bincount(found.result.rows).max() <= 2
    assert len(found.result.mass) <= found.budget
    plain = st.solve_fewest(problem, within=0.1)
    assert found.at_least >= plain.at_least
    with pytest.raises(ValueError, match="allows has 3 links and an objective of"):
        st.solve_fewest(problem, within=0.1, budget=lambda k: st.Uniform(min(k, 3)))


def test_numbers_may_stand_for_anything():
    """Half as many links as the number says: it takes twice the number."""
    problem = problem_of(0, (12, 10), kernels="delta")
    plain = st.solve_fewest(problem, within=0.1)
    halved = st.solve_fewest(problem, within=0.1, budget=lambda k: max(1, k // 2))
    assert halved.budget == 2 * plain.budget
    assert halved.result.value == pytest.approx(plain.result.value)
    steps = st.Problem.from_matrices(1.0 - np.eye(6), unbalanced=10.0)
    assert [st.solve_fewest(steps, within=0.05, budget=lambda k, s=s: max(1, k // s)).budget for s in (4, 5)] == [
        24,
        30,
    ]


@pytest.mark.filterwarnings("error")
def test_no_number_is_tried_that_is_far_too_large():
    """It would be clamped, with a warning that nobody asked for."""
    found = st.solve_fewest(
        problem_of(0, (30, 25), reg=0.1), within=0.05, budget=lambda k: st.PerRow(k) & st.PerColumn(k)
    )
    assert max(found.tried) <= 8


@pytest.mark.parametrize("seed", [1001, 1015])
def test_a_plan_that_does_with_less_is_taken_at_its_word(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(4, 25, 2)
    X, Y, a, b = rng.normal(size=(m, 2)), rng.normal(size=(n, 2)), rng.random(m), rng.random(n)
    problem = st.Problem.from_points(X, Y, a, b, kernels="delta", reg=1.0)
    found = st.solve_fewest(problem, within=0.01, budget=lambda k: st.Laminar(st.PerColumn(2), st.Uniform(k)))
    assert len(found.result.mass) == found.budget
    assert found.result.value <= found.target


def test_a_callback_ends_the_search():
    """With the best plan so far; proofs do not ask it again."""
    problem, calls = problem_of(0, (30, 25), kernels="delta"), []

    def stop(step):
        calls.append(step)
        return len(calls) == 100

    found = st.solve_fewest(problem, within=0.05, callback=stop)
    assert found.stopped
    assert len(calls) == 100
    assert found.result.value <= found.target
    assert found.at_least <= found.budget
    assert len(calls) == 100
    whole = st.solve_fewest(problem, within=0.05)
    assert not whole.stopped
    assert found.budget > whole.budget
    own = st.solve_fewest(
        problem, within=0.05, budget=lambda k: st.PerRow(3) & st.Uniform(k), callback=lambda step: True
    )
    assert own.stopped
    assert own.result.status is st.Status.STOPPED
    calls.clear()
    best = st.solve_fewest(problem, within=0.05, budget=lambda k: st.PerRow(3) & k, callback=stop)
    assert best.stopped
    assert best.result.value == min(result.value for result in best.tried.values())


def test_nothing_may_be_enough():
    problem = problem_of(0)
    found = st.solve_fewest(problem, within=1e9)
    assert found.budget == found.at_least == len(found.result.mass) == 0
    assert found.result.value == pytest.approx(problem.constant)
    assert found.result.status is st.Status.BUDGET_USED


def test_a_perfect_plan_is_reached_up_to_rounding():
    """Its objective is zero but for rounding, and shares of that mean nothing."""
    points = np.random.default_rng(0).normal(size=(6, 2))
    found = st.solve_fewest(st.Problem.from_points(points, points, unbalanced=10.0, kernels="delta"), within=0.0)
    assert found.budget == 6
    assert found.at_least == 6


def test_a_pickled_answer_still_proves():
    found = pickle.loads(pickle.dumps(st.solve_fewest(problem_of(1, reg=0.5), within=0.1)))
    assert 1 <= found.at_least <= found.budget


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((problem_of(0),), {}, TypeError, "within must be"),
        ((problem_of(0),), {"within": -0.1}, ValueError, "within must be"),
        ((problem_of(0),), {"within": "much"}, TypeError, "within must be"),
        ((problem_of(0),), {"within": float("nan")}, ValueError, "within must be"),
        (
            (problem_of(0),),
            {"within": 0.1, "budget": 5},
            TypeError,
            "budget must be Uniform, PerRow, PerColumn or a function",
        ),
        (
            (problem_of(0),),
            {"within": 0.1, "budget": st.PerRow(1)},
            TypeError,
            "budget must be Uniform, PerRow, PerColumn",
        ),
        ((problem_of(0),), {"within": 0.1, "method": "best"}, ValueError, "method"),
    ],
)
def test_bad_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        st.solve_fewest(*arguments, **options)


def test_the_proven_minimum_is_sharp_where_bounds_know_the_budget():
    """Without a kernel and ``reg``: by the best plan of every smaller budget."""
    rng = np.random.default_rng(4)
    a, b = rng.lognormal(size=5), rng.lognormal(size=5)
    problem = st.Problem.from_matrices(rng.random((5, 5)), a, b, unbalanced=5.0)
    found = st.solve_fewest(problem, within=0.2)
    assert found.at_least == found.budget
    assert st.solve(problem, budget=found.budget - 1, gap_tol=1e-9).lower_bound > found.target


def test_hard_marginals_that_no_plan_keeps():
    C, b = np.ones((2, 3)), np.ones(3)
    with pytest.raises(ValueError, match="no plan keeps the hard marginals, whatever the number of links"):
        st.solve_fewest(C, np.ones(2), b, within=0.1, unbalanced=np.inf, sense=("<=", "="))
