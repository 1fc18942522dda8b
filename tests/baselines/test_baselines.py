"""The baselines solve what they say: closed forms, POT itself, and the optimality conditions of each problem."""

import builtins

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport import baselines

ot = pytest.importorskip("ot")


def make(m=8, n=6, *, seed=0, balanced=True, kernels=True, unbalanced=2.0, reg=0.3):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(m, 2)), rng.normal(size=(n, 2)) + 0.5
    a, b = rng.random(m) + 0.1, rng.random(n) + 0.1
    a, b = a / a.sum(), b / b.sum() * (1.0 if balanced else 1.4)
    kernels = "median" if kernels else "delta"
    return st.Problem.from_points(X, Y, a, b, kernels=kernels, unbalanced=unbalanced, reg=reg, normalize_cost=True)


def cost(problem):
    return problem.cost.rows(0, problem.shape[0]).copy()


EVERY = {
    "exact_ot": lambda p: baselines.exact_ot(p),
    "entropic_ot": lambda p: baselines.entropic_ot(p, 0.1),
    "ssot": lambda p: baselines.ssot(p, 0.5),
    "scot": lambda p: baselines.scot(p, 2, 0.5),
    "kl_uot": lambda p: baselines.kl_uot(p, 0.1, 1.0),
    "kl_uot without entropy": lambda p: baselines.kl_uot(p, 0.0, 1.0),
    "partial_ot": lambda p: baselines.partial_ot(p, 0.4),
    "entropic_partial_ot": lambda p: baselines.entropic_partial_ot(p, 0.4, 0.1),
    "mmd_uot": lambda p: baselines.mmd_uot(p),
    "mmd_uot by apgd": lambda p: baselines.mmd_uot(p, "apgd"),
    "scot_dual": lambda p: baselines.scot_dual(p, 2),
    "algorithm_2": lambda p: baselines.algorithm_2(p, 2, max_iter=50),
    "top_k": lambda p: baselines.top_k(baselines.mmd_uot(p), 5),
}


@pytest.mark.parametrize("name", EVERY)
def test_the_value_is_our_objective_and_the_bound_holds(name):
    """Whatever a method minimises, the result's value is U of its plan, and no plan of U is below the bound."""
    problem = make()
    result = EVERY[name](problem)
    plan = result.plan
    rows, cols = np.nonzero(plan)
    assert result.value == pytest.approx(problem.value(rows, cols, plan[rows, cols]), rel=1e-10)
    assert plan.min() >= 0.0
    assert result.certify().lower_bound <= result.value + 1e-9


def test_scot_does_not_call_a_plan_without_its_row_sums_converged():
    """Costs that leave no doubt: whole rows go without, and POT's solver stops content."""
    logits = 200.0 * np.random.default_rng(0).standard_normal((200, 6)) + 50.0 * np.arange(6)
    gate = np.exp(logits - logits.max(axis=1, keepdims=True))
    cost = -(gate / gate.sum(axis=1, keepdims=True)).T
    result = baselines.scot(st.Problem.from_matrices(cost, np.full(6, 200 / 6), np.ones(200)), 1, 1.0)
    missed = np.abs(result.plan.sum(axis=1) - 200 / 6).sum() / 200
    assert missed > 0.1
    assert not result.converged
    assert result.log["marginal_error"] == pytest.approx(missed)
    mild = -np.random.default_rng(0).random((4, 120))
    assert baselines.scot(st.Problem.from_matrices(mild, np.full(4, 30.0), np.ones(120)), 2, 0.1).converged


@pytest.mark.parametrize("name", ["exact_ot", "entropic_ot", "ssot", "partial_ot", "kl_uot", "entropic_partial_ot"])
def test_points_without_mass_get_none(name):
    """Zero masses are fine, and nothing is sent from or to there."""
    C = np.random.default_rng(0).random((4, 3))
    problem = st.Problem.from_matrices(C, [0.5, 0.0, 0.3, 0.2], [0.6, 0.4, 0.0], unbalanced=1.0, reg=0.1)
    plan = EVERY[name](problem).plan
    assert np.isfinite(plan).all()
    assert plan[1].sum() == plan[:, 2].sum() == 0.0
    assert plan.sum() > 0.1


def test_exact_ot_is_the_cheapest_plan():
    """On a line, sorted points are matched in order: the closed form of transport in one dimension."""
    rng = np.random.default_rng(1)
    x, y = np.sort(rng.normal(size=7)), np.sort(rng.normal(size=7))
    problem = st.Problem.from_points(x[:, None], y[:, None], unbalanced=1.0)
    result = baselines.exact_ot(problem)
    np.testing.assert_allclose(result.plan, np.eye(7) / 7.0, atol=1e-12)
    assert result.converged
    assert result.status is st.Status.BASELINE


@pytest.mark.parametrize("name", ["exact_ot", "entropic_ot", "ssot"])
def test_totals_that_differ_are_scaled_to_the_first(name):
    """Balanced methods meet a, and b scaled to the total of a."""
    problem = make(balanced=False)
    result = EVERY[name](problem)
    np.testing.assert_allclose(result.marginal_a, problem.a, atol=1e-5)
    np.testing.assert_allclose(result.marginal_b, problem.b / problem.b.sum() * problem.a.sum(), atol=1e-5)


def test_entropic_ot_is_a_scaled_gibbs_kernel():
    """log γ + C/ε is a sum of a row and a column term."""
    problem = make()
    result = baselines.entropic_ot(problem, 0.2)
    log = np.log(result.plan) + cost(problem) / 0.2
    inner = log - log[:1] - log[:, :1] + log[0, 0]
    assert np.abs(inner).max() < 1e-6
    assert result.converged


def test_ssot_meets_its_optimality_conditions():
    """Where γ > 0: C + ργ = α + β; elsewhere C ≥ α + β. Checked against POT's other solver of the same problem."""
    problem = make()
    result = baselines.ssot(problem, 0.5)
    other = ot.smooth.smooth_ot_semi_dual(problem.a, problem.b, cost(problem), 0.5, stopThr=1e-12, numItermax=5000)
    np.testing.assert_allclose(result.plan, other, atol=1e-5)
    assert (result.plan == 0.0).any()


def test_scot_keeps_within_k_a_column_and_prints_nothing(capsys):
    """At most k entries a column, the column sums exact; with k = m it is SSOT."""
    problem = make()
    result = baselines.scot(problem, 2, 0.5)
    assert (np.count_nonzero(result.plan, axis=0) <= 2).all()
    np.testing.assert_allclose(result.marginal_b, problem.b, atol=1e-10)
    everything = baselines.scot(problem, problem.shape[0], 0.5)
    np.testing.assert_allclose(everything.plan, baselines.ssot(problem, 0.5).plan, atol=1e-5)
    assert capsys.readouterr().out == ""


def test_kl_uot_of_one_pair_has_a_closed_form():
    """γ = (ab)^((ε+ρ)/(ε+2ρ)) exp(-c/(ε+2ρ)), for ε > 0 and for ε = 0."""
    c, a, b, rho = 0.7, 0.8, 1.5, 2.0
    problem = st.Problem.from_matrices([[c]], [a], [b], unbalanced=1.0)
    for eps in (0.5, 0.0):
        expected = (a * b) ** ((eps + rho) / (eps + 2 * rho)) * np.exp(-c / (eps + 2 * rho))
        result = baselines.kl_uot(problem, eps, rho)
        assert result.mass[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("rho", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("eps", [1e-3, 1e-2, 0.1, 1.0])
def test_kl_uot_meets_its_optimality_conditions_however_small_the_entropy(eps, rho):
    """ε log(γ/ab) + C + ρ log(γ1/a) + ρ log(γ'1/b) = 0, with costs that are a thousand times ε."""
    problem = make(20, 15, balanced=False)
    C = 10.0 * cost(problem)
    result = baselines.kl_uot(st.Problem.from_matrices(C, problem.a, problem.b), eps, rho, max_iter=100_000)
    assert result.converged
    missed = rho * (np.log(result.marginal_a / problem.a)[:, None] + np.log(result.marginal_b / problem.b))
    expected = np.outer(problem.a, problem.b) * np.exp(-(C + missed) / eps)
    np.testing.assert_allclose(result.plan, expected, rtol=1e-5 + 1e-9 * rho / eps, atol=1e-12)


def test_kl_uot_says_where_it_did_not_converge():
    assert not baselines.kl_uot(make(), 1e-3, 100.0, max_iter=3).converged


def test_kl_uot_is_pots_plain_sinkhorn_where_nothing_underflows():
    problem = make(balanced=False)
    theirs = ot.unbalanced.sinkhorn_unbalanced(
        problem.a, problem.b, cost(problem), 0.1, 1.0, method="sinkhorn", reg_type="kl", stopThr=1e-12
    )
    np.testing.assert_allclose(baselines.kl_uot(problem, 0.1, 1.0).plan, theirs, rtol=1e-7)


@pytest.mark.parametrize("name", ["partial_ot", "entropic_partial_ot"])
def test_partial_plans_move_what_was_asked_and_no_more_than_there_is(name):
    """The total is s, the marginals are at most a and b."""
    problem = make(balanced=False)
    result = EVERY[name](problem)
    assert result.mass.sum() == pytest.approx(0.4, abs=1e-6)
    assert (result.marginal_a <= problem.a + 1e-6).all()
    assert (result.marginal_b <= problem.b + 1e-6).all()


def test_partial_ot_of_everything_is_exact_ot():
    """With s the common total, partial transport is transport."""
    problem = make()
    partial = baselines.partial_ot(problem, float(problem.a.sum()))
    assert partial.value_linear == pytest.approx(baselines.exact_ot(problem).value_linear, abs=1e-9)
    with pytest.raises(ValueError, match="mass must not exceed the smaller total"):
        baselines.partial_ot(problem, 1.5)


@pytest.mark.parametrize("kernels", [True, False])
def test_apgd_on_the_whole_plan_finds_the_exact_optimum(kernels):
    """Both solvers of MMD-UOT end at the same value; the exact one is not above, and apgd says when it is not there."""
    problem = make(kernels=kernels)
    exact, long = baselines.mmd_uot(problem), baselines.mmd_uot(problem, "apgd", max_iter=20_000)
    short = baselines.mmd_uot(problem, "apgd", max_iter=3)
    assert exact.status is st.Status.OPTIMAL
    assert exact.value <= long.value + 1e-12
    assert long.value == pytest.approx(exact.value, abs=1e-8)
    assert long.converged
    assert not short.converged
    assert short.value > exact.value


def test_apgd_leaves_forbidden_pairs_alone():
    """A cost of +inf is never used."""
    C = np.array([[0.1, np.inf], [0.3, 0.2]])
    result = baselines.mmd_uot(st.Problem.from_matrices(C, unbalanced=5.0, reg=0.1), "apgd")
    assert result.plan[0, 1] == 0.0
    assert np.isfinite(result.value)


def test_scot_dual_finds_the_best_dual_value_and_a_plan_within_the_budget():
    """Run to the end, the dual value is our tight bound; the gap is to its own dual value, and ours is not above."""
    problem = make(unbalanced=5.0)
    result = baselines.scot_dual(problem, 2, max_iter=5000, tol=1e-14)
    ours = st.solve(problem, budget=st.PerColumn(2))
    assert (np.count_nonzero(result.plan, axis=0) <= 2).all()
    assert result.log["dual"] <= ours.certify().lower_bound + 1e-9
    assert result.log["dual"] == pytest.approx(ours.certify().lower_bound, rel=1e-2)  # it may stall at a kink
    assert result.log["gap"] == pytest.approx(result.value - result.log["dual"])
    assert ours.value <= result.value + 1e-9


@pytest.mark.parametrize("reg", [0.1, 1.0, 4.0])
def test_scot_dual_divides_by_the_weight_of_the_quadratic_term(reg):
    """With a budget that forbids nothing strong duality holds, and the projection gives the optimum for every λ₂."""
    problem = make(kernels=False, reg=reg)
    result = baselines.scot_dual(problem, problem.shape[0], max_iter=5000, tol=1e-14)
    np.testing.assert_allclose(result.plan, st.solve(problem).plan, atol=1e-4)


def test_scot_dual_says_what_it_cannot_do():
    with pytest.raises(ValueError, match="reg must be positive"):
        baselines.scot_dual(make(reg=0.0), 2)
    flat = st.Problem.from_matrices(np.ones((2, 2)), kernels=(np.ones((2, 2)), np.eye(2)), unbalanced=1.0, reg=1.0)
    with pytest.raises(ValueError, match="must be positive definite"):
        baselines.scot_dual(flat, 1)


def test_top_k_keeps_the_largest():
    """The k largest masses stay as they are; any result will do if its problem is given."""
    problem = make()
    whole = baselines.mmd_uot(problem)
    cut = baselines.top_k(whole, 4)
    assert sorted(cut.mass) == sorted(np.sort(whole.mass)[-4:])
    assert cut.value > whole.value
    mine = st.solve(problem, budget=6)
    assert baselines.top_k(mine, 3, problem).mass.size == 3
    with pytest.raises(ValueError, match="problem must be given"):
        baselines.top_k(mine, 3)


def test_algorithm_2_draws_as_the_published_code():
    """PyTorch's shuffle with the same seed starts with the same thing, time after time."""
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(5)
    expected = [int(torch.randperm(400 - k, generator=generator)[0]) for k in range(6)]
    twister = np.random.RandomState(5)
    drawn = [int(twister.randint(0, 2**32, size=399 - k, dtype=np.uint32)[0]) % (400 - k) for k in range(6)]
    assert drawn == expected


def test_algorithm_2_uses_its_budget_and_solves_on_the_support():
    """All k·n steps are taken; with enough iterations the masses are those of the exact solve on the same support."""
    problem = make(reg=1.0)
    steps = []
    result = baselines.algorithm_2(problem, 2, max_iter=20_000, callback=steps.append)
    assert len(steps) == 2 * problem.shape[1]
    assert (np.bincount([step.pair[1] for step in steps]) == 2).all()
    exact = st.solve_support(problem, links=[step.pair for step in steps])
    assert result.value == pytest.approx(exact.value, rel=1e-6)
    assert steps[-1].objective == pytest.approx(result.value, rel=1e-9)
    again, other = baselines.algorithm_2(problem, 2), baselines.algorithm_2(problem, 2, seed=1)
    assert baselines.algorithm_2(problem, 2).value == again.value
    assert other.value != again.value
    with pytest.raises(ValueError, match="one number"):
        baselines.algorithm_2(make(unbalanced=(1.0, 2.0)), 2)


@pytest.mark.parametrize("name", ["exact_ot", "entropic_ot", "ssot", "scot", "kl_uot without entropy", "partial_ot"])
def test_without_pot_one_sentence_says_how_to_get_it(name, monkeypatch):
    """No POT: an ImportError with the line that helps."""
    real = builtins.__import__

    def no_pot(module, *args, **kwargs):
        if module == "ot":
            raise ImportError(module)
        return real(module, *args, **kwargs)

    problem = make()
    monkeypatch.setattr(builtins, "__import__", no_pot)
    with pytest.raises(ImportError, match=r"pip install 'sparsetransport\[pot\]'"):
        EVERY[name](problem)


def test_bad_arguments_are_named():
    problem = make()
    for call, message in [
        (lambda: baselines.entropic_ot(problem, -1.0), "reg must be a positive number"),
        (lambda: baselines.scot(problem, 0, 1.0), "k must be a positive int"),
        (lambda: baselines.mmd_uot(problem, "magic"), "solver must be one of"),
        (lambda: baselines.top_k(baselines.mmd_uot(problem), 0), "k must be a positive int"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="C must be finite for exact_ot"):
        baselines.exact_ot(st.Problem.from_matrices([[1.0, np.inf]], unbalanced=1.0))
