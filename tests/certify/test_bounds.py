"""Bounds: never above the best plan within the budget, never above any plan's objective."""

from dataclasses import replace

import numpy as np
import pytest
from cases import KERNELS, TINY_BUDGETS, Forest, Instance, instance, no_cycle
from hypothesis import given, settings
from hypothesis import strategies as some
from strategies import instances, seeds, tiny_budgets, whole_budgets

import sparsetransport as st
from sparsetransport.budgets import as_matroid, limits_of
from sparsetransport.certify import bounds
from sparsetransport.engine.room import Constraint
from sparsetransport.search import Links, Search
from sparsetransport.strategy import find


def _slack(case, value):
    """Rounding: a small share of the numbers that were added up."""
    return 1e-9 * max(abs(case.constant()), abs(value), 1e-3)


# --- bound <= best plan <= value -------------------------------------------------------------------------------------


@given(instances((4, 4), lowest=-1, regs=(0.125, 1.0)), tiny_budgets)
def test_the_cheap_bound_is_below_the_best_plan(case, budget):
    """Weak duality (Lemma 3.4, Proposition 3.5): bound <= brute-force optimum <= value, for every kind of budget."""
    result = case.solve(budget=budget.matroid)
    best, slack = case.optimum(budget.allowed), _slack(case, result.value)
    assert result.lower_bound <= best + slack
    assert result.gap >= -slack


@settings(max_examples=25)
@given(instances((4, 4), lowest=-1, regs=(0.125, 1.0)), tiny_budgets)
def test_the_tight_bound_is_between_the_cheap_one_and_the_best_plan(case, budget):
    """Maximising the dual raises the bound, and it stays a bound."""
    result = case.solve(budget=budget.matroid)
    cheap = result.lower_bound
    proof = result.certify()
    best, slack = case.optimum(budget.allowed), _slack(case, result.value)
    assert proof.lower_bound >= cheap
    assert proof.lower_bound <= best + slack
    assert result.lower_bound == proof.lower_bound


@given(instances((4, 4), regs=(0.0,)), tiny_budgets)
def test_the_bound_without_reg_is_the_optimum_without_a_budget(case, budget):
    """λ₂ = 0: the bound, cheap or tight, is the least objective of all plans, below that of those within the budget."""
    result = case.solve(budget=budget.matroid)
    slack = _slack(case, result.value)
    free = case.solve().value
    assert result.lower_bound == pytest.approx(free, abs=slack)
    assert result.certify().lower_bound == pytest.approx(free, abs=slack)
    assert free <= case.optimum(budget.allowed) + slack


@given(instances(lowest=-1, regs=(0.125, 1.0)), some.data())
def test_no_gap_is_negative(case, data):
    """Plans of any shape with any whole-plan budget: the cheap and the tight bound are below the objective."""
    budget = data.draw(whole_budgets(case.shape))
    result = case.solve(budget=budget.matroid)
    slack = _slack(case, result.value)
    assert result.gap >= -slack
    assert result.certify().gap >= -slack


@settings(max_examples=25)
@given(instances((3, 4), regs=(0.125, 1.0)), seeds)
def test_every_dual_point_proves_a_bound(case, seed):
    """Lemma 3.4: D(u, v) is below the optimum for any u and v whatever, not only for good ones."""
    rng = np.random.default_rng(seed)
    problem = case.problem()
    for matroid, allowed in [
        (st.Uniform(2), lambda s: len(s) <= 2),
        (st.PerColumn(1), TINY_BUDGETS["column"].allowed),
        (st.PerRow(1), TINY_BUDGETS["row"].allowed),
    ]:
        best, u, v = case.optimum(allowed), rng.normal(size=3), rng.normal(size=4)
        assert bounds.bound_at(problem, matroid.limits(case.shape), u, v)[0] <= best + _slack(case, best)


@settings(max_examples=40)
@given(
    instances((4, 4), lowest=-1, regs=(0.0, 0.125)), tiny_budgets, seeds, some.sampled_from(["both", "rows", "cols"])
)
def test_every_dual_point_proves_a_bound_of_what_is_reached(case, budget, seed, side):
    """With Delta, rows and columns that the budget cannot reach count, whatever u and v are, and without reg too."""
    kernels = st.Delta() if side != "cols" else case.Ga, st.Delta() if side != "rows" else case.Gb
    problem = st.Problem.from_matrices(
        case.C, case.a, case.b, kernels=kernels, unbalanced=case.unbalanced, reg=case.reg
    )
    same = replace(case, Ga=np.eye(4) if side != "cols" else case.Ga, Gb=np.eye(4) if side != "rows" else case.Gb)
    best = same.optimum(budget.allowed)
    slack = _slack(same, best)
    rng = np.random.default_rng(seed)
    u, v = rng.normal(size=4), rng.normal(size=4)
    limits = limits_of(as_matroid(budget.matroid), problem.shape)
    assert bounds.bound_at(problem, limits, u, v)[0] <= best + slack
    result = st.solve(problem, budget=budget.matroid)
    assert result.lower_bound <= best + slack
    assert result.certify().lower_bound <= best + slack


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("budget", TINY_BUDGETS)
@pytest.mark.parametrize("reg", [0.0, 0.1, 2.0])
def test_every_kernel_and_budget_is_bounded(kernel, budget, reg):
    """Generic problems, all kernels, all budgets: cheap <= tight <= best <= value."""
    case = instance(11, 4, 4, kernel, reg, (5.0, 1.0))
    result = case.solve(budget=TINY_BUDGETS[budget].matroid)
    best = case.optimum(TINY_BUDGETS[budget].allowed)
    cheap, tight = result.lower_bound, result.certify().lower_bound
    slack = _slack(case, result.value)
    assert cheap <= tight <= best + slack
    assert best <= result.value + slack


# --- how good the bounds are -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("reg", [0.01, 0.1, 1.0])
def test_without_a_budget_there_is_no_gap(kernel, reg):
    """Strong duality: the plan without a budget is its own proof, already by the cheap bound."""
    for seed in range(3):
        result = instance(seed, 8, 7, kernel, reg, (5.0, 2.0), negative=seed == 1).solve()
        assert result.status is st.Status.OPTIMAL
        assert abs(result.relative_gap) < 1e-9


@pytest.mark.parametrize("budget", ["whole", "column", "row", "partition"])
def test_with_a_strong_quadratic_term_the_bound_is_nearly_tight(budget):
    """The more λ₂ weighs, the closer the dual comes to the best plan; at λ₂ = 50 within two per cent of it."""
    case = instance(3, 4, 4, "rbf", 50.0)
    best = case.optimum(TINY_BUDGETS[budget].allowed)
    bound = case.solve(budget=TINY_BUDGETS[budget].matroid).certify().lower_bound
    assert best - 0.02 * abs(best) <= bound <= best + 1e-9


def test_the_certificate_carries_its_proof():
    """From the potentials alone anybody can work out the bound: here for the whole-plan budget, by the formula."""
    case = instance(5, 4, 5, "imq", 0.3, (2.0, 3.0))
    proof = case.solve(budget=5).certify()
    alpha, beta = np.asarray(proof.potential_a), np.asarray(proof.potential_b)
    wish = np.maximum(alpha[:, None] + beta - case.C, 0.0)
    top = np.sort(wish.ravel())[-5:]
    quadratic = alpha @ np.linalg.solve(case.Ga, alpha) / 8.0 + beta @ np.linalg.solve(case.Gb, beta) / 12.0
    expected = alpha @ case.a + beta @ case.b - quadratic - (top @ top) / (2.0 * case.reg)
    assert proof.lower_bound == pytest.approx(expected, rel=1e-7)
    np.testing.assert_allclose(alpha, 2.0 * 2.0 * case.Ga @ proof.u, atol=1e-10)
    np.testing.assert_allclose(beta, 2.0 * 3.0 * case.Gb @ proof.v, atol=1e-10)
    assert proof.gap == pytest.approx(proof.value - proof.lower_bound)
    assert proof.relative_gap == pytest.approx(proof.gap / proof.value)


def test_the_conjugates_have_the_right_derivative():
    """The row and column sums that come with a conjugate are its gradient: a small step checks it, for every part."""
    case = instance(7, 5, 6, "rbf", 0.5)
    labels = np.arange(30).reshape(5, 6) % 4 - 1
    budget = st.Partition(labels, 2) & st.PerRow(2) & st.PerColumn(1) & st.Uniform(7)
    rng = np.random.default_rng(0)
    alpha, beta, step = rng.random(5), rng.random(6), 1e-6
    parts = bounds.conjugates(case.problem(), budget.limits((5, 6)))
    assert len(parts) == 4
    for part in parts:
        value, row_sum, col_sum = part(alpha, beta)
        for i in range(5):
            ahead = part(alpha + step * np.eye(5)[i], beta)[0]
            assert (ahead - value) / step == pytest.approx(row_sum[i], abs=1e-4)
        for j in range(6):
            ahead = part(alpha, beta + step * np.eye(6)[j])[0]
            assert (ahead - value) / step == pytest.approx(col_sum[j], abs=1e-4)


@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize("capacity", [1, 3, 16, 17, 39, 40])
def test_the_top_of_every_line_counts(columns, capacity):
    """½ Σ over lines of the squares of their largest wishes, for few places a line and for many; one more in some."""
    case = instance(9, 40, 40, "rbf", 0.5)
    each = np.minimum(capacity + np.arange(40) % 2, 40)
    budget = st.PerColumn(each) if columns else st.PerRow(each)
    rng = np.random.default_rng(0)
    alpha, beta = rng.random(40), rng.random(40)
    wish = np.maximum(alpha[:, None] + beta - case.C, 0.0)
    lines = np.sort(wish.T if columns else wish, axis=1)[:, ::-1]
    expected = 0.5 * sum(float(line[:k] @ line[:k]) for line, k in zip(lines, each, strict=True))
    limits = budget.limits((40, 40))
    value, row_sum, col_sum = bounds.conjugates(case.problem(), limits)[0](alpha, beta)
    assert value == pytest.approx(expected, rel=1e-12)
    assert row_sum.sum() == pytest.approx(col_sum.sum())


def test_an_intersection_is_bounded_by_its_best_part():
    """Each part alone bounds the plan; the bound of the intersection is the best of them."""
    case = instance(2, 4, 4, "rbf", 0.5, (5.0, 5.0))
    problem = case.problem()
    result = case.solve(budget=st.PerRow(1) & st.PerColumn(1))
    row_sum, col_sum = problem.marginals(result.rows, result.cols, result.mass)
    both, *alone = (
        bounds.bound_at(problem, part.limits((4, 4)), case.a - row_sum, case.b - col_sum)[0]
        for part in (st.PerRow(1) & st.PerColumn(1), st.PerRow(1), st.PerColumn(1))
    )
    assert both == max(alone)
    assert both <= result.lower_bound <= result.value


@pytest.mark.parametrize("reg", [0.0, 1e-6, 0.01])
@pytest.mark.parametrize("budget", [12, 30, st.PerColumn(1), st.PerRow(1) & st.PerColumn(1)])
def test_with_delta_the_bound_knows_how_many_rows_and_columns_are_reached(reg, budget):
    """As few links as points on a side or fewer: what stays empty is most of the objective, and of the bound."""
    C = np.random.default_rng(0).random((40, 30))
    result = st.solve(C, budget=budget, reg=reg)
    assert st.solve(C, reg=reg).value < 0.02 * result.value
    assert result.relative_gap < 0.02
    assert result.certify().relative_gap < 1e-3


def test_what_is_not_reached_has_the_right_slope():
    problem = st.Problem.from_matrices(np.ones((6, 5)), unbalanced=3.0)
    u, step = np.random.default_rng(1).normal(size=6), 1e-7
    value, slope = bounds.unreached(problem, 0, u, 2)
    ahead = [bounds.unreached(problem, 0, u + step * one, 2)[0] for one in np.eye(6)]
    np.testing.assert_allclose((np.array(ahead) - value) / step, slope, atol=1e-5)


@pytest.mark.parametrize("reg", [1e-6, 1e-3, 0.1])
def test_a_small_reg_proves_about_as_much_as_none(reg):
    """The potentials of the plan alone prove nothing here; those of the unbudgeted optimum do."""
    C = np.random.default_rng(0).random((40, 30))
    assert st.solve(C, budget=60, reg=reg).relative_gap < 0.03


def test_a_matroid_of_the_users_own_is_bounded_by_the_unbudgeted_optimum():
    """Of a matroid that only answers questions nothing is known but that it is a budget: the free optimum bounds it."""
    case = instance(1, 3, 4, "rbf", 0.1, (10.0, 10.0))
    result = case.solve(budget=Forest())
    best = case.optimum(no_cycle)
    assert result.certify().lower_bound <= best + 1e-9
    assert result.certify().lower_bound == pytest.approx(case.solve().value, rel=1e-6)


# --- traps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"tol": 0.1}, {"tol": 1e-3}, {"inner": "apgd"}])
def test_a_coarse_tolerance_makes_no_false_proofs(options):
    """λ₂ = 0: the bound is that of the true optimum, however coarsely the plan itself was solved for."""
    for seed in range(5):
        case = instance(seed, 6, 6, "delta", 0.0, (5.0, 5.0))
        optimum = case.solve().value
        assert case.solve(budget=10, **options).lower_bound <= optimum + 1e-12 * case.constant()


@pytest.mark.parametrize("tol", [0.1, 1e-2, 1e-3])
def test_nor_does_it_where_costs_are_negative(tol):
    """Masses and weights that are small beside the costs: a plan moves far more than there is, and so may others."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        cost, a, b = -rng.random((5, 4)), 0.01 * rng.random(5), 0.01 * rng.random(4)
        same = {"kernels": (np.eye(5), np.eye(4)), "unbalanced": 0.01}  # Delta would know of empty rows and columns
        optimum = st.solve(cost, a, b, **same).value
        for budget in (1, 3, None):
            result = st.solve(cost, a, b, **same, budget=budget, tol=tol)
            assert result.lower_bound <= optimum + 1e-9 * abs(optimum)
            if result.status is st.Status.OPTIMAL and budget is not None:
                assert result.kkt <= tol


def test_large_problems_have_true_bounds_too():
    """λ₂ = 0 on a problem for which the candidate list is used: the bound is not above the optimum."""
    for seed in range(3):
        case = instance(seed, 30, 30, "imq-v2", 0.0, (5.0, 5.0))
        optimum = case.solve().value
        listed = case.solve(budget=20, effort=replace(st.DEFAULT, list_above=0))
        assert listed.lower_bound <= optimum + 1e-12 * case.constant()


def test_where_there_is_no_optimum_there_is_no_bound():
    """A plan within the budget exists though without a budget the objective has no minimum: the bound is -inf."""
    blind = np.array([[1.0, -1.0], [-1.0, 1.0]])
    result = st.solve(-np.ones((2, 2)), kernels=(blind, blind), budget=1, unbalanced=1.0)
    assert result.rows.size == 1
    assert result.lower_bound == -np.inf
    assert result.gap == np.inf


def test_singular_gram_matrices_have_bounds():
    """Coinciding points and points of no weight: the change of variables behind the tight bound stands it."""
    gram = np.ones((3, 3))
    case = Instance(np.arange(9.0).reshape(3, 3) / 8.0, np.ones(3), np.ones(3), gram, np.zeros((3, 3)), (2.0, 1.0), 0.5)
    result = case.solve(budget=2)
    best = case.optimum(lambda support: len(support) <= 2)
    assert result.lower_bound <= result.certify().lower_bound <= best + 1e-9


# --- gap_tol ---------------------------------------------------------------------------------------------------------


def test_gap_tol_says_whether_the_gap_was_reached():
    """An easy tolerance is reached, an impossible one is not, and the status tells which; so does the gap."""
    case = instance(1, 8, 8, "imq-v2", 0.1, (10.0, 10.0))
    easy, hard = (case.solve(budget=st.PerColumn(1), gap_tol=tol) for tol in (0.9, 1e-12))
    assert easy.status is st.Status.GAP_REACHED
    assert easy.relative_gap <= 0.9
    assert hard.status is st.Status.GAP_OPEN
    assert hard.relative_gap > 1e-12
    free = case.solve(gap_tol=1e-6)
    assert free.status in (st.Status.GAP_REACHED, st.Status.OPTIMAL)


@pytest.mark.parametrize("budget", [12, st.PerColumn(1), st.PerRow(2)], ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_gap_tol_never_makes_a_plan_worse(seed, budget):
    """The plan of the default is one of those it looks at. Clusters and uneven masses, where starts differ most."""
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.normal(size=(8, 10))
    X, Y = (centres[rng.integers(8, size=size)] + 0.7 * rng.normal(size=(size, 10)) for size in (50, 40))
    problem = st.Problem.from_points(X, Y, rng.gamma(2.0, size=50), rng.gamma(2.0, size=40), kernels=st.RBF(4.0))
    default, closer = (st.solve(problem, budget=budget, gap_tol=tol) for tol in (None, 1e-2))
    assert closer.value <= default.value * (1.0 + 1e-12)


# --- guarantee -------------------------------------------------------------------------------------------------------


def test_the_guarantee_is_the_formula():
    """α = λ₂ / (2 λa max Ga_ii + 2 λb max Gb_jj + λ₂); 1 - e^-α, less ε, or (1 + 1/α)^-2."""
    problem = instance(0, 4, 5, "imq", 3.0, (2.0, 0.5)).problem()
    alpha = 3.0 / (5.0 / np.sqrt(0.5) + 3.0)
    assert st.guarantee(problem) == pytest.approx(1.0 - np.exp(-alpha))
    assert st.guarantee(problem, "greedy") == st.guarantee(problem, "omp")
    assert st.guarantee(problem, "stochastic", eps=0.1) == pytest.approx(0.9 - np.exp(-alpha))
    for method in ("residual", "residual-greedy"):
        assert st.guarantee(problem, method) == pytest.approx((1.0 + 1.0 / alpha) ** -2)


def test_nothing_is_promised_without_reg_or_without_a_matroid():
    """At λ₂ = 0 a cycle changes no marginal, so no constant of the paper can hold; an intersection is no matroid."""
    flat, curved = instance(0, reg=0.0).problem(), instance(0, reg=1.0).problem()
    assert [st.guarantee(flat, method) for method in ("omp", "stochastic", "residual")] == [0.0, 0.0, 0.0]
    assert st.guarantee(curved, "residual", budget=st.PerRow(1) & st.PerColumn(1)) == 0.0
    assert st.guarantee(curved) > 0.0
    for method in ("omp", "greedy", "stochastic"):  # which promise nothing within groups
        assert st.guarantee(curved, method, budget=st.PerColumn(1)) == 0.0
        assert st.guarantee(curved, method, budget=3) > 0.0
    assert st.guarantee(curved, "residual", budget=st.PerColumn(1)) > 0.0


@pytest.mark.parametrize("budget", [5, st.PerColumn(1)])
def test_the_cheap_bound_is_never_below_that_of_no_potentials(budget):
    """With a small ``reg`` the potentials of a plan that misses much prove next to nothing."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) + 1.0
    result = st.solve_sample(x, y, budget=budget, reg=1e-3)
    assert 0.0 <= result.lower_bound <= result.value
    C = rng.normal(size=(8, 8))  # what can be gained without potentials is what negative costs are good for
    result = st.solve(C, budget=5, unbalanced=1.0, reg=1e-3)
    gains = np.sort(np.minimum(C, 0.0).ravel())[:5]
    assert -0.5 / 1e-3 * gains @ gains - 1e-9 <= result.lower_bound <= result.value


def test_a_large_reg_needs_no_exact_plan_of_thousands_of_entries():
    """Where no jump leads to it: a plan on the way has entries enough for a proof."""
    default, thorough = (replace(each, towards_links=50, newton_points=0) for each in (st.DEFAULT, st.THOROUGH))
    case = instance(0, 30, 25, "rbf", 50.0, (5.0, 5.0))
    assert case.solve().rows.size > 100
    result = case.solve(budget=10, effort=default)
    proof = result.certify()
    assert 0.0 < result.lower_bound == proof.lower_bound <= result.value
    assert case.solve(budget=10, gap_tol=1e-9, effort=thorough).value <= result.value
    assert result._backing.certifier.full.rows.size == 50


def test_a_large_problem_is_proved_nearly_as_tightly(monkeypatch):
    """The ascent ends where it brings little: a small share of the gap, on whichever side."""
    case = instance(1, 20, 20, "rbf", 0.3, (5.0, 5.0))
    tight = case.solve(budget=6).certify()
    monkeypatch.setattr(bounds, "_LARGE", 0)
    early = case.solve(budget=6).certify()
    assert tight.gap <= early.gap <= 1.1 * tight.gap


def test_the_top_of_the_whole_plan_is_that_of_a_sort():
    """Found block by block, above a floor that rises; forbidden pairs are never in it."""
    rng = np.random.default_rng(0)
    costs = np.where(rng.random((600, 40)) < 0.1, np.inf, rng.random((600, 40)))
    problem = st.Problem.from_matrices(costs, unbalanced=1.0, reg=1.0)
    alpha, beta = rng.normal(size=600), rng.normal(size=40)
    wish = np.maximum(alpha[:, None] + beta - costs, 0.0)
    for count in (1, 7, 500, 30_000):
        value, row_sum, _ = bounds._whole(problem, count, alpha, beta)
        top = np.sort(wish, axis=None)[-count:]
        assert value == pytest.approx(0.5 * top @ top)
        assert row_sum.sum() == pytest.approx(top.sum())


@pytest.mark.parametrize(
    "budget", [st.PerColumn(2), st.PerRow(2), st.Uniform(30), st.PerRow(2) & st.PerColumn(3)], ids=repr
)
def test_what_the_dual_asks_for_is_within_the_budget_and_nearly_optimal(budget):
    case = instance(0, 25, 20, "rbf", 5.0, (5.0, 5.0))
    problem, limits = case.problem(), budget.limits(case.shape)
    result = case.solve(budget=budget)
    proof = result.certify()
    rows, cols, mass = bounds.suggested(problem, limits, proof.potential_a, proof.potential_b)
    chosen = list(zip(rows.tolist(), cols.tolist(), strict=True))
    assert all(budget.can_add(chosen[:k], pair) for k, pair in enumerate(chosen))
    assert (mass > 0.0).all()
    assert proof.lower_bound - 1e-9 <= st.solve_support(problem, links=chosen).value <= 1.3 * result.value


def test_nothing_is_promised_for_groups_that_cross():
    """A laminar budget is one only if its groups are nested."""
    problem = st.Problem.from_matrices(np.ones((3, 3)), reg=1.0)
    with pytest.raises(ValueError, match="overlap in part"):
        st.guarantee(problem, "residual", budget=st.Laminar(st.PerColumn(1), st.PerRow(1)))


def test_a_coarse_unbudgeted_plan_proves_less_than_an_exact_one():
    """What its gradients leave to gain is taken off."""
    case = instance(2, 8, 7, "delta", 0.0, (5.0, 5.0))
    exact, coarse = case.solve(budget=3), case.solve(budget=3)
    problem = coarse._backing.certifier.problem
    full = find(Search(problem, Constraint(None, (8, 7)), st.BARE, given=Links([]), tol=0.05))
    problem.memo["optimum"] = full
    assert problem.value(full.rows, full.cols, full.mass) > exact.lower_bound + 1e-6
    assert coarse.lower_bound <= exact.lower_bound + 1e-12


def test_what_is_to_be_optimal_to_a_coarse_tolerance_proves_nothing():
    """The bound is that of an exact solve."""
    C = np.random.default_rng(0).random((8, 8))
    assert st.solve(C, tol=1e-2).lower_bound == pytest.approx(st.solve(C).lower_bound, rel=1e-9)


def test_the_tight_bound_is_never_below_the_cheap_one(monkeypatch):
    """Not even where nothing is ascended."""
    monkeypatch.setattr(bounds, "ASCEND_UP_TO", 1)
    result = instance(1, 10, 8, "rbf", 0.3, (5.0, 5.0)).solve(budget=4)
    cheap = result.lower_bound
    assert result.certify().lower_bound >= cheap


def test_a_smaller_plan_on_the_way_is_measured_by_its_own_budget():
    """Its bound is that of a solve with as many entries, and with all the budget that of the result."""
    case = instance(1, 10, 8, "rbf", 0.3, (5.0, 5.0))
    result = case.solve(budget=12)
    few = case.solve(budget=4)
    assert result.path.plan_at(4).certify().lower_bound == pytest.approx(few.certify().lower_bound, rel=1e-4)
    assert result.path.plan_at(4).certify().lower_bound > result.certify().lower_bound * 1.001
    assert result.path.plan_at(10**6).certify().lower_bound == pytest.approx(result.certify().lower_bound, rel=1e-6)
