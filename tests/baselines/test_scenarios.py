"""The baselines of the network-design experiment: GSOT, and Algorithm 1 as published."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

import sparsetransport as st
from sparsetransport.baselines import algorithm_1, gsot
from sparsetransport.experiments import flexibility


def problems(m=6, n=5, z=3, *, seed=0, rows_alike=False):
    rng = np.random.default_rng(seed)
    profit = rng.uniform(0.5, 1.5, (1 if rows_alike else m, n)) * np.ones((m, 1))
    demands = rng.uniform(0.5, 1.5, (z, n))
    demands /= demands.sum(axis=1, keepdims=True)
    first = st.Problem.from_matrices(-profit, np.full(m, 1.0 / m), demands[0], unbalanced=50.0)
    return [replace(first, b=b) for b in demands]


def exact_cost(problem):
    m, n = problem.shape
    sums = np.vstack([np.repeat(np.eye(m), n, axis=1), np.tile(np.eye(n), m)])
    return linprog(problem.cost.rows(0, m).ravel(), A_eq=sums, b_eq=np.concatenate([problem.a, problem.b])).fun


def test_gsot_without_penalty_is_exact_transport():
    """As alpha vanishes, ADMM converges to the linear programs of the scenarios: marginals and costs agree."""
    scenarios = problems()
    result = gsot(scenarios, 30, alpha=1e-9, rho=0.5, max_iter=400, tol=1e-12)
    assert len(result.links) == 30
    for problem, plan in zip(scenarios, result.plans, strict=True):
        assert plan.value_linear == pytest.approx(exact_cost(problem), abs=2e-3)
        np.testing.assert_allclose(plan.marginal_a, problem.a, atol=1e-4)
        np.testing.assert_allclose(plan.marginal_b, problem.b, atol=1e-4)
    assert result.log["primal"] < 1e-3
    assert result.status is st.Status.BASELINE


def test_gsot_minimises_its_penalised_objective():
    """With a penalty the cost is higher and the sum of cost and penalty lower than without, and than at other plans."""
    scenarios, alpha = problems(6, 6, 3, seed=1), 0.2
    free, bound = (gsot(scenarios, 36, alpha=a, rho=0.5, max_iter=1000, tol=1e-12) for a in (1e-9, alpha))
    costs = [sum(plan.value_linear for plan in result.plans) for result in (free, bound)]
    totals = [
        cost + alpha * np.linalg.norm(result.mass, axis=0).sum()
        for cost, result in zip(costs, (free, bound), strict=True)
    ]
    assert costs[1] > costs[0] + 1e-4
    assert totals[1] < totals[0] - 1e-4
    dense = [np.stack([plan.plan for plan in result.plans]) for result in (free, bound)]
    profit = np.stack([problem.cost.rows(0, 6) for problem in scenarios])
    for share in (0.01, 0.1, 0.5):
        between = (1.0 - share) * dense[1] + share * dense[0]
        total = (profit * between).sum() + alpha * np.linalg.norm(between, axis=0).sum()
        assert totals[1] <= total + 1e-5


def test_gsot_links_where_all_plants_are_alike():
    """Plants that are the same point get the same plan, so the first m links are all plants for one product."""
    result = gsot(problems(6, 5, rows_alike=True), 6, max_iter=20)
    assert sorted(result.links[:, 0].tolist()) == list(range(6))
    assert len(set(result.links[:, 1].tolist())) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "k must be a positive int, got 0"),
        ({"alpha": 0.0}, "alpha must be a positive number"),
        ({"rho": -1.0}, "rho must be a positive number"),
        ({"problems": []}, "at least one scenario"),
    ],
)
def test_gsot_errors(change, message):
    with pytest.raises(ValueError, match=message):
        gsot(**({"problems": problems(), "k": 3} | change))


def smooth(reg=0.0):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(9, 2)), rng.normal(size=(8, 2))
    return st.Problem.from_points(x, y, kernels=st.RBF(1.0), normalize_cost=True, unbalanced=10.0, reg=reg, lazy=False)


@pytest.mark.parametrize("reg", [0.0, 0.5])
def test_algorithm_1_with_all_pairs_is_omp(reg):
    """Enough iterations give the masses of the exact solver, and so the same pairs."""
    problem = smooth(reg)
    literal = algorithm_1(problem, 5, max_iter=20_000)
    exact = st.solve(problem, budget=5, reclaim=False, polish=False)
    assert literal.value == pytest.approx(exact.value, rel=1e-4)
    assert literal.path.pairs.tolist() == exact.path.pairs.tolist()


def in_pytorch(torch, problem, k, eps, max_iter):
    """Algorithm 1 as published, with PyTorch's draws, products and ties, on dense gradients."""
    torch.manual_seed(0)
    m, n = problem.shape
    weight = problem.unbalanced[0]
    dense = problem.gram_a.matrix, problem.gram_b.matrix, problem.cost.rows(0, m), problem.a, problem.b
    gram_a, gram_b, cost, a, b = map(torch.tensor, dense)
    plan, free, chosen = torch.zeros(m, n, dtype=torch.float64), torch.arange(m * n), []

    slope = cost - 2 * weight * ((gram_a @ a)[:, None] + gram_b @ b)

    def gradient(plan):
        return slope + 2 * weight * ((gram_a @ plan.sum(1))[:, None] + gram_b @ plan.sum(0))

    for _ in range(k):
        sample = free[torch.randint(len(free), (int(np.ceil(m * n / k * np.log(1 / eps))),))]
        pair = int(sample[gradient(plan).take(sample).argmin()])
        free = free[free != pair]
        chosen.append(divmod(pair, n))
        rows, cols = torch.tensor(chosen).T
        near, far = gram_a[rows.unique()][:, rows.unique()], gram_b[cols.unique()][:, cols.unique()]
        lipschitz = (len(far) * near.norm()) ** 2 + (len(near) * far.norm()) ** 2 + 2 * near.sum() * far.sum()
        step = 1 / (2 * weight * lipschitz.sqrt())
        point, old, t = plan, plan, 1.0
        on = torch.zeros_like(plan)
        on[rows, cols] = 1
        for _ in range(max_iter):
            plan = (on * (point - step * gradient(point))).clamp(min=0)
            following = (1 + np.sqrt(1 + 4 * t * t)) / 2
            point, old, t = plan + (t - 1) / following * (plan - old), plan, following
    return chosen, plan


@pytest.mark.parametrize("eps", [1e-2, 1e-4])
@pytest.mark.parametrize("seed", [0, 1])
def test_algorithm_1_is_the_published_one(seed, eps):
    """The same pairs in the same order and the same masses; plants apart, so that rounding does not decide."""
    torch = pytest.importorskip("torch")
    market = flexibility.synthetic(seed, normalised=False)
    kernels = tuple(np.exp(-0.5 * cdist(x, x, "sqeuclidean")) + 1e-10 * np.eye(len(x)) for x in market.points)
    problem = st.Problem.from_matrices(market.profit, market.supply, market.test[0], kernels=kernels, unbalanced=100.0)
    ours = algorithm_1(problem, 10, eps=eps, max_iter=1000)
    chosen, plan = in_pytorch(torch, problem, 10, eps, 1000)
    assert ours.path.pairs.tolist() == [list(pair) for pair in chosen]
    assert_allclose(ours.plan, plan.numpy(), atol=1e-12)


def test_algorithm_1_repeats_itself_and_keeps_its_budget():
    one, same, other = (algorithm_1(smooth(), 7, eps=0.5, seed=seed, max_iter=200) for seed in (3, 3, 4))
    assert one.path.pairs.tolist() == same.path.pairs.tolist()
    assert one.path.pairs.tolist() != other.path.pairs.tolist()
    assert len(one.path) == 7
    assert one.value >= st.solve(smooth(), budget=7).value - 1e-9


@pytest.mark.parametrize(
    ("change", "message"),
    [({"k": 0}, "k must be a positive int"), ({"eps": 1.5}, "eps must be between 0 and 1, got 1.5")],
)
def test_algorithm_1_errors(change, message):
    with pytest.raises(ValueError, match=message):
        algorithm_1(**({"problem": smooth(), "k": 3} | change))


def test_algorithm_1_wants_one_weight():
    problem = st.Problem.from_matrices(np.ones((2, 2)), unbalanced=(1.0, 2.0))
    with pytest.raises(ValueError, match="one number for algorithm_1"):
        algorithm_1(problem, 2)
