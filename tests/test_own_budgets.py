"""Budgets that only the user can tell about go through the same compiled search, by a callback."""

from dataclasses import replace

import numpy as np
import pytest
from cases import Forest, clouds, instance, no_cycle, problem_of, support

import sparsetransport as st


class SoMany(st.Matroid):
    """As `Uniform`, by one method."""

    def __init__(self, k):
        self.k = k

    def can_add(self, support, pair):
        return len(support) < self.k


class InRows(st.Matroid):
    """As `PerRow`, by one method."""

    def __init__(self, k):
        self.k = k

    def can_add(self, support, pair):
        return sum(held[0] == pair[0] for held in support) < self.k


class OnceAColumn(st.Matroid):
    """As `PerColumn(1)`, by one method."""

    def can_add(self, support, pair):
        return all(held[1] != pair[1] for held in support)


class Everything(st.Matroid):
    """Forbids nothing."""

    def can_add(self, support, pair):
        return True


class Nothing(st.Matroid):
    """Allows nothing."""

    def can_add(self, support, pair):
        return False


class Fails(st.Matroid):
    """Allows so many questions, and then raises an error."""

    def __init__(self, error, after):
        self.error, self.after, self.asked = error, after, 0

    def can_add(self, support, pair):
        self.asked += 1
        if self.asked > self.after:
            raise self.error
        return len(support) < 8


PAIRS = {
    "uniform": (SoMany(12), st.Uniform(12)),
    "rows": (InRows(1), st.PerRow(1)),
    "rows of two": (InRows(2), st.PerRow(2)),
    "column": (OnceAColumn(), st.PerColumn(1)),
}


@pytest.mark.parametrize("effort", ["quick", "default"])
@pytest.mark.parametrize("reg", [0.0, 0.1])
@pytest.mark.parametrize("kernel", ["delta", "rbf"])
@pytest.mark.parametrize(("own", "known"), PAIRS.values(), ids=PAIRS)
def test_the_same_sets_give_a_plan_as_good(own, known, kernel, reg, effort):
    """On average at most 8 per cent worse than with the budget that counts; a single one may be luckier."""
    ratios = []
    for seed in range(12):
        problem = problem_of(seed, 14, 12, kernel, reg, (10.0, 10.0))
        mine, theirs = (st.solve(replace(problem), budget=budget, effort=effort) for budget in (own, known))
        ratios.append(mine.value / theirs.value)
        pairs = support(mine)
        assert all(own.can_add(pairs[:k], pair) for k, pair in enumerate(pairs))
    assert np.mean(ratios) <= 1.08


@pytest.mark.parametrize(("own", "known"), PAIRS.values(), ids=PAIRS)
def test_growing_alone_is_the_same_step_by_step(own, known):
    """Both ask for the steepest pair that is allowed."""
    for seed, kernel in enumerate(["delta", "rbf", "imq"]):
        problem = problem_of(seed, 14, 12, kernel, 0.1, (10.0, 10.0))
        mine, theirs = (st.solve(problem, budget=budget, effort=st.BARE) for budget in (own, known))
        np.testing.assert_array_equal(mine.path.pairs, theirs.path.pairs)
        np.testing.assert_allclose(mine.plan, theirs.plan, atol=1e-12)


@pytest.mark.parametrize(("own", "known"), [(SoMany(20), 20), (OnceAColumn(), st.PerColumn(1))])
@pytest.mark.parametrize("seed", range(3))
def test_a_larger_one_too(own, known, seed):
    C = np.random.default_rng(seed).random((20, 20))
    assert st.solve(C, budget=own).value <= 1.01 * st.solve(C, budget=known).value


@pytest.mark.parametrize("seed", range(12))
def test_nothing_that_helps_is_left_out(seed):
    """An exchange may empty other entries: the room is used."""
    case = instance(seed, 6, 5, "delta", 0.0, (10.0, 10.0))
    result = case.solve(budget=SoMany(7), effort="quick")
    again = case.solve(budget=SoMany(7), effort="quick", start=result)
    assert again.value >= result.value * (1.0 - 1e-9)


@pytest.mark.parametrize("reg", [0.0, 0.1])
@pytest.mark.parametrize("kernel", ["delta", "rbf", "imq-v2"])
@pytest.mark.parametrize("options", [{}, {"gap_tol": 1e-9}, {"effort": "quick"}], ids=str)
def test_links_without_a_cycle_never_have_one(kernel, reg, options):
    """A budget that no count describes; tiny ones are compared with all that are allowed."""
    for seed in range(3):
        result = st.solve(problem_of(seed, 6, 5, kernel, reg, (10.0, 10.0)), budget=Forest(), **options)
        assert no_cycle(support(result))
        assert result.lower_bound <= result.value * (1.0 + 1e-12)
        tiny = problem_of(seed, 3, 3, kernel, reg, (10.0, 10.0))
        best = instance(seed, 3, 3, kernel, reg, (10.0, 10.0)).optimum(no_cycle)
        found = st.solve(tiny, budget=Forest(), **options).value
        assert best - 1e-9 <= found <= 1.01 * best + 1e-9


def test_with_delta_kernels_a_forest_is_no_restriction():
    """Without reg the unbudgeted optimum has no cycle, so it is found and known to be optimal."""
    problem = clouds(0)
    result = st.solve(problem, budget=Forest())
    assert result.value == pytest.approx(st.solve(clouds(0)).value, rel=1e-9)


def test_the_path_leads_to_the_plan():
    """Also where that came from another start."""
    result = st.solve(np.random.default_rng(0).random((20, 20)), budget=SoMany(20))
    assert set(result.path.support_at(20)) == set(support(result))


@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_what_refuses_nothing_is_no_budget(reg):
    problem = problem_of(0, 9, 8, "delta", reg, (10.0, 10.0))
    free, own = st.solve(replace(problem)), st.solve(problem, budget=Everything())
    assert own.value == pytest.approx(free.value, rel=1e-9)
    assert own.status is st.Status.OPTIMAL


@pytest.mark.parametrize("kernel", ["delta", "rbf"])
def test_what_refuses_all_has_the_empty_plan(kernel):
    result = st.solve(problem_of(0, 9, 8, kernel, 0.0, (10.0, 10.0)), budget=Nothing())
    assert result.rows.size == 0
    assert result.status is st.Status.BUDGET_USED


@pytest.mark.parametrize("start", [[(i, j) for i in range(6) for j in range(3)], None], ids=["pairs", "plan"])
@pytest.mark.parametrize("kernel", ["delta", "rbf"])
def test_a_start_beyond_the_budget_is_cut_to_it(kernel, start):
    problem = problem_of(0, 9, 8, kernel, 0.0, (10.0, 10.0))
    start = st.solve(replace(problem)) if start is None else start
    result = st.solve(problem, budget=SoMany(5), start=start)
    assert result.rows.size <= 5
    assert result.value <= 1.3 * st.solve(replace(problem), budget=5).value


@pytest.mark.parametrize("method", ["greedy", "stochastic", "residual", "residual-greedy"])
def test_rules_ask_it_too_and_their_plans_are_improved(method):
    """Never worse than without improvers, and within the budget."""
    for seed in range(3):
        case = instance(seed, 9, 8, "rbf", 0.1, (10.0, 10.0))
        rough, better = (
            case.solve(budget=SoMany(6), method=method, effort=effort, rng=seed) for effort in (st.BARE, st.DEFAULT)
        )
        assert better.value <= rough.value + 1e-12
        assert better.rows.size <= 6


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("share", [0.0, 0.2, 0.4, 0.6, 0.8, 0.99])
@pytest.mark.parametrize("kernel", ["delta", "rbf"])
@pytest.mark.parametrize("many", [False, True])
def test_what_it_raises_comes_out_of_the_solve(error, share, kernel, many):
    """At whichever question of the solve: while growing, in swaps, beyond the budget or on trees."""
    problem = problem_of(0, 10, 8, kernel, 0.0, (10.0, 10.0))

    def solve(budget):
        return st.solve_shared([replace(problem)], budget=budget) if many else st.solve(replace(problem), budget=budget)

    solve(counting := Fails(error, np.inf))
    assert counting.asked > 20
    with pytest.raises(type(error)) as caught:
        solve(Fails(error, int(share * counting.asked)))
    assert caught.value is error


def test_an_answer_that_is_no_truth_value_is_an_error():
    """Not taken for a yes or a no."""

    class Odd(st.Matroid):
        def can_add(self, support, pair):
            return np.array([True, False])

    with pytest.raises((TypeError, ValueError)):
        instance(0).solve(budget=Odd())


def test_it_is_asked_about_pairs_of_plain_numbers():
    """Of ints, for a support without the pair, in which no pair is twice."""
    asked = []

    class Watch(SoMany):
        def can_add(self, support, pair):
            asked.append(pair)
            assert {type(k) for held in (*support, pair) for k in held} == {int}
            assert pair not in support
            assert len(set(support)) == len(support)
            return super().can_add(support, pair)

    for kernel in ("delta", "rbf"):
        for reg in (0.0, 0.1):
            st.solve(problem_of(0, 9, 8, kernel, reg, (10.0, 10.0)), budget=Watch(6), effort="default")
    assert len(asked) > 20


def test_a_budget_that_counts_is_not_forgotten_beside_one_that_does_not():
    """Its limits hold for both together, so the bound knows them."""
    problem = st.Problem.from_matrices(np.random.default_rng(0).random((15, 15)), unbalanced=10.0, reg=5.0)
    alone = st.solve(problem, budget=st.PerColumn(1)).certify()
    both = st.solve(problem, budget=st.PerColumn(1) & Everything()).certify()
    assert both.lower_bound == pytest.approx(alone.lower_bound, rel=1e-3)
    assert both.lower_bound > st.solve(problem, budget=Everything()).certify().lower_bound * 1.001


def test_in_a_batch_it_is_that_of_solve():
    problems = [instance(seed, 6, 5, "rbf", 0.1, (10.0, 10.0)).problem() for seed in range(4)]
    for problem, result in zip(problems, st.solve_batch(problems, budget=SoMany(4)), strict=True):
        np.testing.assert_array_equal(result.plan, st.solve(problem, budget=SoMany(4), effort="quick").plan)


@pytest.mark.parametrize("answer", [None, 1, "yes"])
@pytest.mark.parametrize("method", ["omp", "stochastic", "residual"])
def test_an_answer_that_is_not_a_bool_is_refused(answer, method):
    """A method without a return statement must not be taken for one that refuses every pair."""

    class Silent(st.Matroid):
        def can_add(self, support, pair):
            return answer

    with pytest.raises(TypeError, match=rf"can_add of Silent must return True or False, got {answer!r} for \("):
        st.solve(np.ones((3, 3)), budget=Silent(), method=method, rng=0)
    with pytest.raises(TypeError, match="can_add of Silent must return True or False"):
        st.solve_shared([np.ones((3, 3))], budget=Silent() & 2)
