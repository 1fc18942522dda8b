"""Hard marginals: against HiGHS's linear and integer programmes."""

import warnings

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_matrix, diags, eye, hstack, kron, vstack

import sparsetransport as st
from sparsetransport import hard
from sparsetransport.status import Status


def sums(m, n):
    """The matrix that takes a plan, row by row, to its row sums and column sums."""
    return vstack([kron(eye(m), np.ones((1, n))), kron(np.ones((1, m)), eye(n))]).tocsr()


def ranges(a, b, sense):
    """What row sums and column sums may be."""
    low = [np.full_like(w, -np.inf) if s == "<=" else w for w, s in zip((a, b), sense, strict=True)]
    high = [np.full_like(w, np.inf) if s == ">=" else w for w, s in zip((a, b), sense, strict=True)]
    return np.concatenate(low), np.concatenate(high)


def linear_programme(C, a, b, sense):
    low, high = ranges(a, b, sense)
    A, upper, lower = sums(*C.shape), np.isfinite(high), np.isfinite(low)
    found = linprog(C.ravel(), vstack([A[upper], -A[lower]]), np.concatenate([high[upper], -low[lower]]))
    return found.fun if found.status == 0 else np.inf


def integer_programme(C, a, b, sense, budget):
    """The least cost with so many links; inf if there is no such plan."""
    m, n = C.shape
    size = m * n
    largest = np.minimum(a[:, None], b).ravel()
    rules = [
        LinearConstraint(hstack([sums(m, n), csr_matrix((m + n, size))]), *ranges(a, b, sense)),
        LinearConstraint(hstack([eye(size), -diags(largest)]), -np.inf, 0.0),
        LinearConstraint(np.append(np.zeros(size), np.ones(size))[None], -np.inf, budget),
    ]
    whole = np.append(np.zeros(size), np.ones(size))
    bounds = Bounds(0.0, np.append(np.full(size, np.inf), np.ones(size)))
    found = milp(np.append(C.ravel(), np.zeros(size)), constraints=rules, integrality=whole, bounds=bounds)
    return np.inf if found.fun is None else found.fun


def transportation(seed, m, n, sense=("<=", "=")):
    rng = np.random.default_rng(seed)
    C, a, b = rng.random((m, n)), rng.random(m) + 0.05, rng.random(n) + 0.05
    return C, a * b.sum() / a.sum() * (1.0 if sense == ("=", "=") else 1.4), b


@pytest.mark.parametrize("spread", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("sense", [("<=", "="), ("=", "=")])
def test_masses_that_are_far_apart(spread, sense):
    """Every point has its own mass to 1e-9, whatever the others have, without a budget and within one."""
    rng = np.random.default_rng(1)
    C, a, b = rng.random((12, 30)), 10.0 ** rng.uniform(-spread, spread, 12), 10.0 ** rng.uniform(-spread, spread, 30)
    a *= (1.0 if sense == ("=", "=") else 1.3) * b.sum() / a.sum()
    problem = st.Problem.from_matrices(C, a, b, unbalanced=np.inf, sense=sense)
    result = st.solve(problem)
    assert result.status is Status.OPTIMAL
    assert result.value == pytest.approx(linear_programme(C, a, b, sense), rel=1e-9)
    fewer = [] if sense == ("=", "=") else [st.solve(problem, budget=result.mass.size - 2)]
    for plan in (result, *fewer):
        np.testing.assert_allclose(plan.marginal_b, b, rtol=1e-9)
        assert (plan.marginal_a <= a * (1.0 + 1e-9)).all()


@pytest.mark.parametrize("many", [1e4, 1e6, 1e9])
def test_capacities_that_are_never_reached(many):
    """However large, they are as good as the total that is asked for."""
    C, a, b = transportation(3, 6, 15)
    for capacity in (np.full(6, many), np.where(np.arange(6) == 2, many, a)):
        result = st.solve(C, capacity, b, unbalanced=np.inf, sense=("<=", "="))
        assert result.status is Status.OPTIMAL
        assert result.value == pytest.approx(linear_programme(C, capacity, b, ("<=", "=")), rel=1e-9)
        assert result.idle[0].sum() == pytest.approx(capacity.sum() - b.sum())
        fees = st.solve(C, capacity, b, unbalanced=np.inf, sense=("<=", "="), link_cost=0.1)
        np.testing.assert_allclose(fees.marginal_b, b, rtol=1e-9)


def test_a_point_that_gets_nothing_is_missed_however_little_it_wants():
    C, b = np.ones((2, 3)), np.array([1.0, 1.0, 1e-10])
    C[:, 2] = np.inf
    result = st.solve(C, np.ones(2), b, unbalanced=np.inf, sense=("<=", "="))
    assert result.status is Status.INFEASIBLE
    np.testing.assert_allclose(result.unserved[1], [0.0, 0.0, 1e-10])


@pytest.mark.parametrize("sense", [("<=", "="), ("=", "="), ("<=", ">="), ("=", "<=")])
@pytest.mark.parametrize("seed", range(3))
def test_the_transportation_problem(seed, sense):
    """With m + n - 1 links the cost is that of HiGHS, and the marginals are kept."""
    m, n = 8 + 5 * seed, 20 - 3 * seed
    C, a, b = transportation(seed, m, n, sense)
    b = b * (2.0 if sense == ("=", "<=") else 1.0)
    result = st.solve(C, a, b, budget=m + n - 1, unbalanced=np.inf, sense=sense)
    assert result.value == pytest.approx(linear_programme(C, a, b, sense), rel=1e-9)
    assert result.status is Status.OPTIMAL
    assert result.relative_gap < 1e-9
    for reached, wanted, each in zip(result.marginals, (a, b), sense, strict=True):
        error = {"=": np.abs, "<=": lambda x: x, ">=": lambda x: -x}[each](reached - wanted)
        assert error.max() <= 1e-9 * wanted.max()


def test_few_links():
    """Of these problems with fewer links than the linear programme takes, all but one are solved to optimality."""
    gaps = []
    for seed in range(6):
        C, a, b = transportation(seed, 6, 6)
        full = st.solve(C, a, b, unbalanced=np.inf, sense=("<=", "="))
        budget = max(len(full.mass) - 2, 6)
        best = integer_programme(C, a, b, ("<=", "="), budget)
        result = st.solve(C, a, b, budget=budget, unbalanced=np.inf, sense=("<=", "="))
        assert (result.status is Status.INFEASIBLE) == (best == np.inf)
        if best < np.inf:
            gaps.append(result.value / best - 1.0)
            assert result.lower_bound <= best * (1.0 + 1e-9)
            assert len(result.mass) <= budget
    assert len(gaps) >= 4
    assert min(gaps) > -1e-7
    assert sum(gap < 1e-7 for gap in gaps) >= len(gaps) - 1
    assert max(gaps) < 0.03


def test_one_side_hard():
    """The other one is soft: between the costs of the two linear programmes."""
    C, a, b = transportation(0, 6, 7)
    result = st.solve(C, a, b, unbalanced=(np.inf, 5.0), sense=("<=", "="))
    assert (result.marginal_a <= a * (1.0 + 1e-9)).all()
    soft = st.solve(C, a, b, unbalanced=(1e7, 5.0), sense=("<=", "="))
    assert result.value == pytest.approx(soft.value, rel=1e-5)
    assert result.value >= soft.value - 1e-12
    assert result.relative_gap < 1e-9


def test_a_quadratic_term_and_a_budget_of_columns():
    """Balanced: both marginals are kept to rounding, and the bound is below."""
    C, a, b = transportation(1, 12, 5, ("=", "="))
    result = st.solve(C, a, b, budget=st.PerColumn(4), unbalanced=np.inf, reg=0.5)
    assert result.status is not Status.INFEASIBLE
    assert np.bincount(result.cols).max() <= 4
    np.testing.assert_allclose(result.marginal_a, a, atol=1e-9 * a.max())
    np.testing.assert_allclose(result.marginal_b, b, atol=1e-9 * b.max())
    assert result.value == pytest.approx(float((C * result.plan).sum() + 0.25 * (result.plan**2).sum()))
    assert result.certify().lower_bound <= result.value


def test_no_plan_keeps_the_marginals():
    """The one that misses least comes back, with a status that says so and an infinite objective."""
    C, a, b = transportation(2, 4, 6)
    C[:, 2] = np.inf
    result = st.solve(C, a, b, budget=12, unbalanced=np.inf, sense=("<=", "="))
    assert result.status is Status.INFEASIBLE
    assert result.value == result.gap == np.inf
    np.testing.assert_allclose(result.marginal_b, np.where(np.arange(6) == 2, 0.0, b), atol=1e-6)
    assert hard.least_links(st.Problem.from_matrices(C, a, b, unbalanced=np.inf, sense=("<=", "="))) == np.inf


def test_the_fewest_links_that_could_do():
    C, a, b = np.ones((3, 2)), np.array([2.0, 1.0, 1.0]), np.array([2.5, 1.0])
    problem = st.Problem.from_matrices(C, a, b, unbalanced=np.inf, sense=("<=", "="))
    assert hard.least_links(problem) == 3
    assert st.solve(problem, budget=2).status is Status.INFEASIBLE
    assert st.solve(problem, budget=3).value == pytest.approx(3.5)


def test_prices_are_those_of_the_linear_programme():
    """The dual value of the potentials is the cost."""
    C, a, b = transportation(3, 7, 9)
    result = st.solve(C, a, b, unbalanced=np.inf, sense=("<=", "="))
    assert result.potential_a @ a + result.potential_b @ b == pytest.approx(result.value, rel=1e-9)
    assert (C - result.potential_a[:, None] - result.potential_b).min() > -1e-8


def test_what_does_not_take_hard_marginals_says_so():
    C = np.ones((3, 3))
    with pytest.raises(ValueError, match="Delta"):
        st.solve_sample(C, C, unbalanced=np.inf)
    for sense, unbalanced in (("<=", 1.0), ("=", np.inf)):
        problem = st.Problem.from_matrices(C, unbalanced=unbalanced, sense=sense)
        with pytest.raises(ValueError, match="guarantee"):
            st.guarantee(problem)
        with pytest.raises(ValueError, match="method"):
            st.solve(problem, method="greedy")
    with pytest.raises(ValueError, match="sense must be"):
        st.solve(C, sense="<")
    with pytest.raises(ValueError, match="negative"):
        st.solve(-C, sense=">=")


def test_batches_and_sweeps():
    """The same plans one by one as in a batch, and costs that do not rise with the budget."""
    cases = [transportation(seed, 4, 5) for seed in range(3)]
    batch = st.solve_batch(cases, budget=6, unbalanced=np.inf, sense=("<=", "="))
    for case, each in zip(cases, batch, strict=True):
        alone = st.solve(*case, budget=6, unbalanced=np.inf, sense=("<=", "="), effort="quick")
        assert each.value == alone.value
    sweep = st.solve_sweep(*cases[0], budgets=[5, 6, 7, 8], unbalanced=np.inf, sense=("<=", "="))
    values = [each.value for each in sweep]
    assert values == sorted(values, reverse=True)


def test_what_results_say():
    """What is unserved, above capacity and idle, in numbers and in words."""
    C, a, b = np.ones((3, 2)), np.array([2.0, 1.0, 1.0]), np.array([2.5, 1.0])
    missing = st.solve(C, a, b, budget=2, unbalanced=np.inf, sense=("<=", "="))
    assert missing.unserved[1].sum() + missing.excess[0].sum() == pytest.approx(0.5, rel=1e-2)
    assert "at least 3, whichever they are" in missing.summary()
    assert "of 3.5, at 2 of 2 columns (0, 1)" in missing.summary()
    assert "gap" not in missing.summary()
    result = st.solve(C, a, b, unbalanced=np.inf, sense=("<=", "="))
    assert sum(result.idle[0]) == pytest.approx(0.5)
    nothing = "unserved: nothing\nsent beyond the masses: nothing\ndelivered beyond the masses: nothing\n"
    assert f"{nothing}idle: 0.5 of 4, at 1 of 3 rows" in result.summary()
    assert result.marginal_errors == pytest.approx((0.0, 0.0))
    soft = st.solve(C, a, b, budget=1, unbalanced=10.0, sense=("<=", ">="))
    assert soft.unserved[1].sum() > 0.5
    assert "unserved" in soft.summary()
    assert "unserved" not in st.solve(C, a, b, budget=1, unbalanced=10.0).summary()


def test_a_plan_that_misses_hard_marginals_is_infeasible_when_the_time_is_up_too():
    C, a, b = transportation(0, 12, 30)
    result = st.solve(C, a, b, budget=20, unbalanced=np.inf, sense=("<=", "="), time_limit=1e-9)
    assert result.status is Status.INFEASIBLE
    assert "links needed" in result.summary()


@pytest.mark.parametrize("sense", [("=", "="), (">=", "<="), (">=", "=")])
def test_totals_that_no_plan_has_at_once(sense):
    C, a, b = transportation(0, 4, 5, ("=", "="))
    result = st.solve(C, 2.0 * a, b, budget=20, unbalanced=np.inf, sense=sense)
    assert result.status is Status.INFEASIBLE
    assert "no number of links is enough: the totals" in result.summary()


@pytest.mark.parametrize("unbalanced", [np.inf, 5.0])
def test_nothing_has_to_move_where_both_sides_are_at_most(unbalanced):
    C, a, b = transportation(0, 4, 5)
    result = st.solve(C, a, b, unbalanced=unbalanced, sense="<=")
    assert result.value == 0.0
    assert not result.mass.size
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("far", [1e6, 1e9, 1e12])
def test_costs_beside_huge_ones_count(far):
    """The weights of the search follow from the mean cost; the plan is HiGHS's where others are far below it."""
    rounding = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        C, a, b = transportation(seed, 6, 7, ("=", "="))
        huge = rng.choice(C.size, 4, replace=False)
        C.flat[huge] *= far * 10.0 ** rng.uniform(-2.0, 0.0, 4)
        best = linear_programme(np.minimum(C, 1e3), a, b, ("=", "="))  # no plan of that cost has one of the four
        found = st.solve(C, a, b, unbalanced=np.inf)
        assert found.status is Status.OPTIMAL
        assert found.value == pytest.approx(best, rel=1e-9)
        with warnings.catch_warnings(action="ignore"):  # of the mean cost, and of rounding
            half = st.solve(C, a, b, unbalanced=(np.inf, "auto"))  # a weight that the costs in use may be lost beside
        rounding += half.status is Status.ROUNDING
        assert half.status is Status.ROUNDING or half.value <= best * (1.0 + 1e-6)
    assert (rounding > 0) == (far == 1e12)
