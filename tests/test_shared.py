"""One set of links for many scenarios: exact plans on it, budgets kept, bounds that hold, the same from any thread."""

import itertools
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport import _checks
from sparsetransport.certificate import Gap
from sparsetransport.engine import shared_solver
from sparsetransport.engine.room import Constraint


def scenarios(m=9, n=8, z=4, *, seed=0, reg=0.0, kernels=None, unbalanced=20.0):
    """Problems that share their cost object and differ in the demand."""
    rng = np.random.default_rng(seed)
    C, a, demands = rng.normal(size=(m, n)), rng.random(m), rng.random((z, n))
    first = st.Problem.from_matrices(C, a, demands[0], kernels=kernels, unbalanced=unbalanced, reg=reg)
    return [replace(first, b=b) for b in demands]


def grams(m, n, seed=1):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(m, 2)), rng.normal(size=(n, 2))
    return tuple(np.exp(-0.5 * ((p[:, None] - p) ** 2).sum(2)) for p in (x, y))


def apart(problems):
    """The same problems, each with a cost matrix of its own, which the compiled loop does not take."""
    return [
        st.Problem.from_matrices(
            one.cost.rows(0, one.shape[0]).copy(), one.a, one.b, unbalanced=one.unbalanced, reg=one.reg
        )
        for one in problems
    ]


@pytest.mark.parametrize("reg", [0.0, 0.3])
def test_one_scenario_is_omp(reg):
    """With z = 1 the rule is that of OMP: the same links and the same value."""
    (problem,) = scenarios(z=1, reg=reg)
    shared = st.solve_shared([problem], budget=10, polish=False)
    plain = st.solve(problem, budget=10, polish=False)
    assert sorted(map(tuple, shared.links.tolist())) == sorted(
        zip(plain.rows.tolist(), plain.cols.tolist(), strict=True)
    )
    assert shared.value == pytest.approx(plain.value, rel=1e-12)


@pytest.mark.parametrize(("reg", "kernel"), [(0.0, False), (0.2, False), (0.0, True), (0.2, True)])
def test_every_plan_is_optimal_on_the_links(reg, kernel):
    """Each scenario's plan is the exact solution on the shared links, and its links are among them."""
    problems = scenarios(reg=reg, kernels=grams(9, 8) if kernel else None)
    shared = st.solve_shared(problems, budget=12)
    assert len(shared.links) <= 12
    for problem, plan, value in zip(problems, shared.plans, shared.values, strict=True):
        exact = st.solve_support(problem, links=shared.links)
        assert value == pytest.approx(exact.value, rel=1e-10)
        assert plan.converged
        held = set(map(tuple, shared.links.tolist()))
        assert set(zip(plan.rows.tolist(), plan.cols.tolist(), strict=True)) <= held
    assert shared.converged
    assert shared.value == pytest.approx(shared.weights @ shared.values)


def brute_force(problems, weights, k):
    """The best weighted sum over all supports of ``k`` links."""
    m, n = problems[0].shape
    pairs = list(itertools.product(range(m), range(n)))
    return min(
        sum(w * st.solve_support(p, links=list(s)).value for p, w in zip(problems, weights, strict=True))
        for s in itertools.combinations(pairs, k)
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("reg", [0.0, 0.5])
def test_the_certificate_bounds_the_best_links(seed, reg):
    """lower_bound <= the best of all supports <= value, for the cheap and for the tight bound."""
    problems = scenarios(3, 3, 3, seed=seed, reg=reg)
    weights = np.array([0.2, 0.5, 0.3])
    shared = st.solve_shared(problems, budget=3, weights=weights)
    best = brute_force(problems, weights, 3)
    assert shared.lower_bound <= best + 1e-10
    proof = shared.certify()
    assert shared.lower_bound == pytest.approx(proof.lower_bound)
    assert proof.lower_bound <= best + 1e-10 <= shared.value + 2e-10
    assert shared.gap == pytest.approx(proof.gap)
    assert shared.relative_gap == pytest.approx(proof.relative_gap)


@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_the_compiled_loop_and_the_general_one_agree(reg):
    """The same links, in the same order, and the same masses."""
    problems = scenarios(14, 11, 5, reg=reg)
    compiled, general = st.solve_shared(problems, budget=20), st.solve_shared(apart(problems), budget=20)
    assert compiled.links.tolist() == general.links.tolist()
    np.testing.assert_allclose(compiled.mass, general.mass, atol=1e-12)
    np.testing.assert_allclose(compiled.path.objective, general.path.objective, rtol=1e-12)


@pytest.mark.parametrize("own_costs", [False, True])
def test_the_number_of_threads_does_not_matter(own_costs):
    """Bit for bit."""
    effort = replace(st.DEFAULT, threads_above=0)
    problems = scenarios(90, 70, 7)
    problems = apart(problems) if own_costs else problems
    one, *others = (st.solve_shared(problems, budget=60, effort=effort, n_jobs=jobs) for jobs in (1, 2, 5))
    for other in others:
        assert one.links.tolist() == other.links.tolist()
        assert np.array_equal(one.mass, other.mass)


def test_the_list_changes_little(monkeypatch):
    """With a candidate list there are fewer scans, exact plans all the same, and hardly a worse value."""
    problems = scenarios(40, 30, 4)
    every = st.solve_shared(problems, budget=50, polish=False)
    scans = []
    top = shared_solver.SharedSolver._top
    counted = lambda self, *a, **k: scans.append(1) or top(self, *a, **k)  # noqa: E731
    monkeypatch.setattr(shared_solver.SharedSolver, "_top", counted)
    listed = st.solve_shared(problems, budget=50, effort=replace(st.BARE, shared_list_above=0))
    assert 0 < len(scans) < len(listed.path) / 2
    assert len(listed.links) == 50
    assert listed.value <= every.value + 0.01 * abs(every.value)
    assert listed.converged


def test_the_path_falls_and_gives_smaller_budgets():
    problems = scenarios(reg=0.1)
    improved = st.solve_shared(problems, budget=12)
    assert improved.path.objective[-1] == pytest.approx(improved.value)
    assert {tuple(pair) for pair in improved.links.tolist()} == set(improved.path.support_at(12))
    shared = st.solve_shared(
        problems, budget=12, effort=st.BARE
    )  # steps of a jump to a better plan share its objective
    assert (np.diff(shared.path.objective) < 0.0).all()
    assert shared.path.objective[-1] == pytest.approx(shared.value)
    small = shared.path.plan_at(5)
    assert len(small.links) <= 5
    assert small.value == pytest.approx(shared.path.objective[4])
    assert small.lower_bound <= small.value
    assert small.status is st.Status.GIVEN


def test_polish_never_makes_it_worse_and_mostly_better():
    better = 0
    for seed in range(6):
        problems = scenarios(12, 10, 4, seed=seed, reg=0.05)
        plain, polished = (st.solve_shared(problems, budget=14, polish=polish) for polish in (False, True))
        assert polished.value <= plain.value + 1e-12
        assert len(polished.links) <= 14
        assert polished.converged
        better += polished.value < plain.value - 1e-9
    assert better >= 4


@pytest.mark.parametrize(
    "budget", [st.PerColumn(2), st.PerRow(1) & st.PerColumn(2), st.Laminar(st.PerRow(2), st.Uniform(6))]
)
def test_counting_budgets_are_kept(budget):
    problems = scenarios()
    links = st.solve_shared(problems, budget=budget).links
    held = []
    for pair in map(tuple, links.tolist()):
        assert budget.can_add(held, pair)
        held.append(pair)
    assert len(held) > 3


class TwoAColumn(st.Matroid):
    """What `PerColumn(2)` is, asked one pair at a time."""

    def can_add(self, support, pair):
        return sum(j == pair[1] for _, j in support) < 2


def test_any_matroid_will_do():
    """A matroid of one's own gives what the counting budget of the same sets gives: growing alone, to the last link."""
    problems = scenarios()
    for effort, slack in ((st.BARE, 1e-9), (st.DEFAULT, 0.05)):
        asked, counted = (
            st.solve_shared(problems, budget=budget, effort=effort) for budget in (TwoAColumn(), st.PerColumn(2))
        )
        assert asked.value <= counted.value + slack * abs(counted.value)
        assert np.bincount(asked.links[:, 1]).max() <= 2


def test_without_a_budget_every_scenario_is_optimal():
    problems = scenarios()
    shared = st.solve_shared(problems)
    assert shared.status is st.Status.OPTIMAL
    for problem, value in zip(problems, shared.values, strict=True):
        assert value == pytest.approx(st.solve(problem).value, rel=1e-9)
    assert shared.gap == pytest.approx(0.0, abs=1e-8)


def test_a_link_stays_while_any_scenario_uses_it():
    """No link without mass everywhere; some without mass somewhere."""
    shared = st.solve_shared(scenarios(z=6), budget=14)
    assert (shared.mass > 0.0).any(axis=0).all()
    assert not (shared.mass > 0.0).all()


def test_fixed_links_stay_and_count():
    problems = scenarios()
    worst = np.unravel_index(problems[0].cost.rows(0, 9).argmax(), (9, 8))
    fixed = [tuple(map(int, worst)), (0, 0)]
    shared = st.solve_shared(problems, budget=6, fixed=fixed)
    assert [tuple(link) for link in shared.links[:2].tolist()] == fixed
    assert len(shared.links) == 6
    with pytest.raises(ValueError, match="fixed must be within the budget, got 2 links"):
        st.solve_shared(problems, budget=1, fixed=fixed)


def test_start_gives_what_is_used():
    problems = scenarios()
    first = st.solve_shared(problems, budget=8)
    again = st.solve_shared(problems, budget=8, start=first)
    assert again.value <= first.value + 1e-12
    assert len(again.path) <= len(first.path)


def test_weights_decide_who_is_served():
    """A scenario that hardly counts gets what the others leave."""
    problems = scenarios(z=2, seed=3)
    alone = [st.solve_shared([problem], budget=5).value for problem in problems]
    for k in range(2):
        weights = [1.0 if s == k else 1e-9 for s in range(2)]
        shared = st.solve_shared(problems, budget=5, weights=weights)
        assert shared.values[k] == pytest.approx(alone[k], rel=1e-6)


def test_scenarios_may_come_in_any_order():
    problems = scenarios(z=5)
    one, other = st.solve_shared(problems, budget=12), st.solve_shared(problems[::-1], budget=12)
    assert one.links.tolist() == other.links.tolist()
    np.testing.assert_allclose(one.mass, other.mass[::-1], atol=1e-12)


def test_lazy_and_dense_problems_agree():
    """Scenarios share the columns of a lazy Gram matrix, and there are more of them than there is room at first."""
    rng = np.random.default_rng(0)
    x, y, demands = rng.normal(size=(150, 2)), rng.normal(size=(140, 2)), rng.random((3, 140))
    supply = np.full(150, 1.0 / 150)
    results = []
    for lazy in (False, True):
        first = st.Problem.from_points(x, y, supply, demands[0], kernels=st.RBF(0.01), unbalanced=50.0, lazy=lazy)
        results.append(st.solve_shared([replace(first, b=b) for b in demands], budget=120, polish=False))
    dense, lazy = results
    assert dense.links.tolist() == lazy.links.tolist()
    assert len(set(dense.links[:, 0].tolist())) > 64
    np.testing.assert_allclose(dense.mass, lazy.mass, atol=1e-9)


def test_forbidden_pairs_are_never_chosen():
    C = np.full((4, 4), np.inf)
    C[np.arange(4), [1, 2, 3, 0]] = -1.0
    problems = [st.Problem.from_matrices(C, np.ones(4), b, unbalanced=1.0) for b in (np.ones(4), 2.0 * np.ones(4))]
    assert sorted(map(tuple, st.solve_shared(problems, budget=9).links.tolist())) == [(0, 1), (1, 2), (2, 3), (3, 0)]
    nothing = [st.Problem.from_matrices(np.full((2, 2), np.inf), unbalanced=1.0)]
    assert st.solve_shared(nothing, budget=2).status is st.Status.ALL_FORBIDDEN


@pytest.mark.parametrize("own_costs", [False, True])
def test_a_callback_hears_every_step_and_may_stop(own_costs):
    problems = apart(scenarios()) if own_costs else scenarios()
    steps = []
    shared = st.solve_shared(problems, budget=10, callback=lambda step: steps.append(step) or len(steps) == 4)
    assert shared.status is st.Status.STOPPED
    assert [step.number for step in steps] == [0, 1, 2, 3]
    assert len(shared.links) == steps[-1].entries == 4
    assert shared.value == pytest.approx(steps[-1].objective)


def test_the_memory_of_the_cost_is_shared():
    """z scenarios of one cost object are one group: the kernels see one matrix."""
    problems = scenarios(z=5)
    rest = np.full(5, 0.2), Constraint(st.Uniform(3), (9, 8)), st.DEFAULT.tuning
    solver = shared_solver.SharedSolver(problems, *rest)
    assert len(solver.groups) == 1
    assert solver.groups[0].cost.matrix is problems[0].cost.compiled.matrix
    assert len(shared_solver.SharedSolver(apart(problems), *rest).groups) == 5


def test_weights_that_drown_the_costs_are_warned_of():
    problems = [st.Problem.from_matrices(np.random.default_rng(0).random((4, 3)), unbalanced=w) for w in (1.0, 1e12)]
    with pytest.warns(st.SparseTransportWarning, match="costs are lost in rounding"):
        st.solve_shared(problems, budget=3)


def test_its_links_are_a_start_for_one_problem():
    problems = scenarios()
    shared = st.solve_shared(problems, budget=5)
    on_links = st.solve_support(problems[0], links=shared)
    assert on_links.value == pytest.approx(shared.values[0])
    assert st.solve(problems[0], budget=5, start=shared).value <= on_links.value + 1e-12


def test_an_objective_without_a_minimum_is_said_to_be_one():
    flat = np.zeros((2, 2))
    with pytest.raises(st.UnboundedError):
        st.solve_shared([st.Problem.from_matrices(-np.ones((2, 2)), kernels=(flat, flat), unbalanced=1.0)], budget=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problems": []}, "at least one scenario, got none"),
        ({"problems": 3}, "must be a list of problems, got int"),
        ({"problems": ["x"]}, r"problems\[0\]: "),
        ({"budget": 0}, "budget must be a positive int, got 0"),
        ({"weights": [1.0]}, "one number for each of the 4 scenarios, got 1"),
        ({"weights": [1.0, 1.0, 0.0, 1.0]}, "weights must be positive, got 0.0 at 2"),
        ({"weights": [1e308] * 4}, r"weights must have a total below 1e308, got 1e\+308 among them: rescale them"),
        ({"weights": [1e307] * 4}, r"weights must keep the sum of objectives below 1e308, got 1e\+307"),
        ({"fixed": [(0, 99)]}, r"fixed must hold pairs of a plan of shape \(9, 8\), got \(0, 99\)"),
        ({"start": [("a", "b")]}, "start must be a Result, a plan of floats or a list of pairs of ints"),
        ({"polish": "no"}, "polish must be True or False, got 'no'"),
        ({"n_jobs": 0}, "n_jobs must be a number of workers, -1 for all cores, or None, got 0"),
        ({"callback": 3}, "callback must be callable, got 3"),
        ({"tol": -1.0}, "tol must be a positive number, got -1.0"),
    ],
)
def test_errors_name_the_argument(change, message):
    arguments = {"problems": scenarios(), "budget": 3} | change
    with pytest.raises((ValueError, TypeError), match=message):
        st.solve_shared(**arguments)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"the same shape, got \(9, 8\) at 0 and \(9, 7\) at 1"):
        st.solve_shared([scenarios()[0], scenarios(n=7)[0]], budget=3)


def test_a_fixed_link_must_not_be_forbidden():
    C = np.array([[0.0, np.inf], [0.0, 0.0]])
    with pytest.raises(ValueError, match=r"forbidden pair, got \(0, 1\) with cost inf in scenario 0"):
        st.solve_shared([st.Problem.from_matrices(C, unbalanced=1.0)], budget=2, fixed=[(0, 1)])


def test_kernels_mean_the_same_without_the_compiler():
    """With NUMBA_DISABLE_JIT=1 the kernels are plain Python, and the links and masses are the same."""
    code = (
        "import numpy as np, sparsetransport as st; from dataclasses import replace; rng = np.random.default_rng(0);"
        "first = st.Problem.from_matrices(rng.normal(size=(5, 4)), rng.random(5), rng.random(4), unbalanced=9.0);"
        "shared = st.solve_shared([replace(first, b=rng.random(4)) for _ in range(3)], budget=5);"
        "print(shared.links.tolist(), *np.round(shared.mass.ravel(), 10))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **change}
        ).stdout
        for change in ({}, {"NUMBA_DISABLE_JIT": "1"})
    ]
    assert printed[0] == printed[1] != ""


def test_a_link_forbidden_in_one_scenario_serves_the_others():
    """Its mass is zero where it is forbidden, and counts for nothing there."""
    free, barred = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[np.inf, 1.0], [1.0, 0.0]])
    problems = [st.Problem.from_matrices(C, unbalanced=10.0) for C in (free, barred)]
    best = min(
        np.mean([st.solve_support(problem, links=list(links)).value for problem in problems])
        for links in itertools.combinations(itertools.product(range(2), range(2)), 3)
    )
    assert st.solve_shared(problems, budget=3).value == pytest.approx(best)
    shared = st.solve_shared(problems, budget=3, effort=st.BARE)
    assert [0, 0] in shared.links.tolist()
    for k in (0, 1):
        assert shared.values[k] == pytest.approx(st.solve_support(problems[k], links=shared.links).value)
    assert shared.path.plan_at(2).value >= shared.value
    closed = [st.Problem.from_matrices(np.full((2, 2), np.inf), unbalanced=10.0), problems[0]]
    assert st.solve_shared(closed, budget=3).status is not st.Status.ALL_FORBIDDEN


def test_where_nothing_is_worth_a_link_it_says_so():
    problems = [st.Problem.from_matrices(np.full((3, 2), 100.0), unbalanced=0.1) for _ in range(2)]
    shared = st.solve_shared(problems, budget=3)
    assert shared.status is st.Status.EMPTY
    assert {plan.status for plan in shared.plans} == {st.Status.EMPTY}


def test_a_perfect_plan_has_no_gap():
    """Nothing to move: the value is zero but for rounding, and so is the gap as a share of the empty plans' values."""
    rng = np.random.default_rng(0)
    points, masses = rng.normal(size=(8, 2)), rng.random((2, 8))
    problems = [st.Problem.from_points(points, points, a, a, kernels=st.RBF(1.0), unbalanced=10.0) for a in masses]
    shared = st.solve_shared(problems, budget=8)
    assert abs(shared.relative_gap) < 1e-6
    assert abs(shared.certify().relative_gap) < 1e-6
    with pytest.raises(TypeError, match="abstract"):
        type("Forgetful", (Gap,), {})()


def matchings(m, n):
    """All largest sets of links with one a row and column, for m <= n."""
    return [list(enumerate(order)) for order in itertools.permutations(range(n), m)]


def weighted_value(problems, weights, links):
    return sum(w * st.solve_support(p, links=links).value for p, w in zip(problems, weights, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_one_to_one_links_are_the_best_with_delta_kernels(seed):
    """Links of a matching do not touch each other's gain, so the assignment of gains is the optimum."""
    problems, weights = scenarios(3, 4, 3, seed=seed, reg=0.1), np.array([0.2, 0.5, 0.3])
    shared = st.solve_shared(problems, budget=st.PerRow(1) & st.PerColumn(1), weights=weights)
    best = min(weighted_value(problems, weights, links) for links in matchings(3, 4))
    assert shared.value == pytest.approx(best, rel=1e-9)
    assert shared.path.objective[-1] == pytest.approx(shared.value)
    assert shared.path.plan_at(3).value == pytest.approx(shared.value)


def test_one_to_one_links_are_mostly_good_with_other_kernels():
    """Of what lies between the empty plan and the best matching, half of them miss less than a hundredth."""
    budget, weights, shares = st.PerRow(1) & st.PerColumn(1), np.full(3, 1.0 / 3.0), []
    for seed in range(20):
        problems = scenarios(4, 4, 3, seed=seed, reg=0.1, kernels=grams(4, 4, seed))
        best = min(weighted_value(problems, weights, links) for links in matchings(4, 4))
        empty = weighted_value(problems, weights, [])
        plain, polished = (st.solve_shared(problems, budget=budget, polish=polish).value for polish in (False, True))
        assert best - 1e-9 <= polished <= plain + 1e-9
        shares.append((polished - best) / (empty - best))
    assert sum(share < 0.01 for share in shares) >= 10


def test_a_fixed_link_stays_where_others_are_assigned():
    problems = scenarios(3, 3, 2, seed=4)
    best = st.solve_shared(problems, budget=st.PerRow(1) & st.PerColumn(1)).links.tolist()
    fixed = next(pair for pair in itertools.product(range(3), range(3)) if list(pair) not in best)
    shared = st.solve_shared(problems, budget=st.PerRow(1) & st.PerColumn(1), fixed=[fixed])
    assert shared.links[0].tolist() == list(fixed)
    others = [links for links in matchings(3, 3) if fixed in links]
    assert shared.value == pytest.approx(min(weighted_value(problems, shared.weights, links) for links in others))


@pytest.mark.parametrize(("n_jobs", "threads"), [(None, 1), (-1, 6), (-2, 5), (-6, 1), (-9, 1), (1, 1), (8, 8)])
def test_jobs_are_counted_as_joblib_does(monkeypatch, n_jobs, threads):
    """One for None, all cores for -1, all but one for -2; one at the least."""
    monkeypatch.setattr(_checks, "cores", lambda: 6)
    assert _checks.threads(n_jobs) == threads


def test_none_means_the_default():
    problems = scenarios(12, 10, 4, reg=0.05)
    plain, told = st.solve_shared(problems, budget=14), st.solve_shared(problems, budget=14, tol=None, polish=None)
    assert plain.links.tolist() == told.links.tolist()
    assert told.value < st.solve_shared(problems, budget=14, polish=False).value


def test_a_start_may_be_all_that_solve_takes():
    """Pairs, a result or a plan: the same links to begin with."""
    problems = scenarios()
    one = st.solve(problems[0], budget=6)
    pairs = list(zip(one.rows.tolist(), one.cols.tolist(), strict=True))
    starts = [
        st.solve_shared(problems, budget=8, start=start).path.start for start in (pairs, one, one.plan, one.sparse_plan)
    ]
    assert len(starts[0]) > 3
    assert all(sorted(start) == sorted(starts[0]) for start in starts)
    with pytest.raises(ValueError, match=r"start must be a plan of shape \(9, 8\), got shape \(2, 2\)"):
        st.solve_shared(problems, budget=8, start=np.eye(2))


@pytest.mark.parametrize("order", [1, -1])
def test_one_scenario_whose_costs_are_lost_is_enough_for_a_warning(order):
    """A single large cost does not hide it."""
    C = np.random.default_rng(0).random((4, 3))
    outlier = C.copy()
    outlier[0, 0] = 1e6
    problems = [st.Problem.from_matrices(C, unbalanced=1e7), st.Problem.from_matrices(outlier, unbalanced=1e9)][::order]
    with pytest.warns(st.SparseTransportWarning, match=r"unbalanced = \(1000000000.0, 1000000000.0\)") as told:
        st.solve_shared(problems, budget=3)
    assert len(told) == 1


def test_what_was_found_cannot_be_changed_by_accident():
    """Values and bounds are computed from it when they are asked for."""
    problems = [st.Problem.from_matrices(np.eye(3), unbalanced=5.0), st.Problem.from_matrices(np.ones((3, 3)))]
    shared = st.solve_shared(problems, budget=3)
    for array in (shared.links, shared.mass, shared.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
