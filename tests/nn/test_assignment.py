"""The device solver: as good as one-at-a-time OMP, balanced where it must be, the same in any order of the tokens."""

import numpy as np
import pytest

import sparsetransport as st

torch = pytest.importorskip("torch")

from sparsetransport import nn  # noqa: E402
from sparsetransport.nn import _fused, assignment  # noqa: E402
from sparsetransport.nn.assignment import Setting, assign, objective  # noqa: E402


def tokens(n=128, m=4, scale=1.0, bias=0.0, seed=0):
    """Values of a gate, and features."""
    rng = np.random.default_rng(seed)
    logits = scale * rng.standard_normal((n, m))
    logits[:, 0] += bias * scale
    probabilities = torch.tensor(logits, dtype=torch.float32).softmax(1)
    return probabilities / probabilities.max(), torch.tensor(rng.standard_normal((n, 6)), dtype=torch.float32)


def sides(values, capacity=1.0):
    n, m = values.shape
    return torch.full((m,), capacity * n / m), torch.ones(n)


@pytest.mark.parametrize("weight", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize(("n", "m", "k"), [(128, 4, 1), (128, 4, 2), (96, 16, 2), (60, 8, 4)])
@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0])
def test_the_objective_is_at_most_one_per_cent_above_omp(n, m, k, weight, scale):
    values, features = tokens(n, m, scale)
    a, b = sides(values)
    setting = Setting(k, weight, 10.0)
    gram = nn.gram_matrix(st.IMQv2(), features)
    found = assign(values, a, b, gram, features.sum(1), setting)
    problem = st.Problem.from_matrices(
        -values.T.double(),
        a,
        b,
        kernels=(st.Delta(), nn.gram_matrix(st.IMQv2(), features.double())),
        unbalanced=weight,
        reg=10.0,
    )
    omp = st.solve(problem, budget=st.PerColumn(k), polish=False).value
    mine = float(objective(values, a, b, gram, found, setting))
    assert mine <= omp + 0.01 * abs(omp)
    pairs = [(int(i), j) for j, row in enumerate(found.experts.tolist()) for i in row]
    assert mine == pytest.approx(problem.value(*np.array(pairs).T, found.mass.flatten().double().numpy()), rel=1e-4)
    assert mine <= st.solve_support(problem, links=pairs).value * 1.01, "the masses are near the best on their support"


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("bias", [0.0, 3.0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1000.0])
def test_a_large_weight_makes_loads_equal_however_sure_the_gate_is(scale, bias, k):
    """Where all tokens want the same expert, where none has a preference, and in between."""
    values, features = tokens(scale=scale, bias=bias)
    found = assign(values, *sides(values), None, features.sum(1), Setting(k, 10.0, 10.0))
    load = torch.bincount(found.experts.flatten(), minlength=4)
    assert (load - 32 * k).abs().max() <= 1


def test_a_small_weight_lets_the_gate_have_its_way():
    values, features = tokens(bias=2.0)
    found = assign(values, *sides(values), None, features.sum(1), Setting(1, 1e-5, 10.0))
    assert (found.experts[:, 0] == values.argmax(1)).float().mean() > 0.95


def test_prices_satisfy_their_equation():
    """r = 2λ(load - a): a price above zero where an expert is overfull."""
    values, features = tokens(n=1024, bias=1.0)
    a, b = sides(values)
    found = assign(values, a, b, None, features.sum(1), Setting(1, 0.001, 10.0))
    load = torch.bincount(found.experts.flatten(), minlength=4)
    torch.testing.assert_close(found.prices, 2.0 * 0.001 * (load - a), atol=0.02, rtol=0.1)


def test_all_experts_where_k_is_their_number():
    values, features = tokens(m=3)
    found = assign(values, *sides(values), None, features.sum(1), Setting(3, 1.0, 10.0))
    assert (found.experts.sort(1).values == torch.arange(3)).all()


def sure_tokens(n=1024, m=16, scale=20.0, skew=100.0, seed=1):
    """Values of a gate that is sure of itself, and of some experts far more often than of others."""
    draw = torch.randn(n, m, generator=torch.Generator().manual_seed(seed))
    probabilities = (scale * draw + torch.linspace(0.0, skew, m)).softmax(1)
    return probabilities / probabilities.max()


def entries_value(values, a, b, experts, weight):
    """The objective with a mass of b / k for every entry, which is what the experts are chosen by."""
    k = experts.shape[1]
    load = (b / k) @ torch.zeros_like(values).scatter_(1, experts, 1.0)
    return float(weight * (load - a).double().square().sum() - values.double().gather(1, experts).sum() / k)


@pytest.mark.parametrize("steps", [{}, {"price_steps": 600}])
@pytest.mark.parametrize("weight", [10.0, 1000.0])
@pytest.mark.parametrize(("n", "m", "scale", "skew"), [(1024, 16, 20.0, 100.0), (1024, 64, 8.0, 16.0)])
def test_a_sure_and_skewed_gate_is_balanced_as_well_as_can_be(n, m, scale, skew, weight, steps):
    """Tokens are worth within 1 % of what they are in the best assignment with equal loads."""
    from scipy.optimize import linear_sum_assignment

    values = sure_tokens(n, m, scale, skew)
    a, b = sides(values)
    experts, _ = assignment.choose(values, a, b, values[:, 0], Setting(1, weight, 10.0, **steps))
    assert (torch.bincount(experts.flatten(), minlength=m) == n // m).all()
    seats = np.repeat(values.double().numpy(), n // m, axis=1)
    best = seats[linear_sum_assignment(seats, maximize=True)].sum()
    assert float(values.double().gather(1, experts).sum()) >= 0.99 * best


@pytest.mark.parametrize(("k", "weight"), [(1, 0.1), (2, 0.1), (2, 10.0)])
def test_a_sure_and_skewed_gate_is_within_one_per_cent_of_omp(k, weight):
    values = sure_tokens(1024, 64, 8.0, 16.0)
    a, b = sides(values)
    setting = Setting(k, weight, 10.0)
    found = assign(values, a, b, None, values[:, 0], setting)
    problem = st.Problem.from_matrices(-values.T.double(), a, b, kernels=st.Delta(), unbalanced=weight, reg=10.0)
    omp = st.solve(problem, budget=st.PerColumn(k), polish=False).value
    assert float(objective(values, a, b, None, found, setting)) <= omp + 0.01 * abs(omp)


def test_repair_only_lowers_the_objective():
    """Whatever it starts from, and however many rounds it has: masses being equal, loads and values count alone."""
    values, _ = tokens(n=40, m=5, bias=2.0)
    a, b = sides(values)
    for start in (values.topk(2, dim=1).indices, (-values).topk(2, dim=1).indices):
        for weight in (0.01, 1.0, 100.0):
            first = entries_value(values, a, b, start, weight)
            scores = []
            for rounds in (1, 2, 4, 8, 40):
                experts = assignment.repair(values, 2 * a, b, start, weight, rounds)
                assert all(len(set(row)) == 2 for row in experts.tolist())
                scores.append(entries_value(values, a, b, experts, weight))
            assert max(scores) <= first + 1e-4 * abs(first)
            assert scores[-1] <= min(scores) + 0.01 * abs(min(scores))


def test_moves_that_are_made_together_pay_together():
    """A round may move many tokens, and still the objective falls by what the last of them counts on, or more."""
    for seed in range(5):
        values = sure_tokens(200, 6, 8.0, 8.0, seed)
        a, b = sides(values)
        taken = torch.zeros_like(values, dtype=torch.bool).scatter_(1, values.topk(2, dim=1).indices, True)
        for weight in (0.02, 1.0, 500.0):
            for passes in (1, 3):
                after = assignment._repaired(values, 2 * a, b, b.amax(), taken, weight, passes)
                assert (after.sum(1) == 2).all()
                assert (after & ~taken).sum() > len(a), "more than one into each expert"
                scores = [assignment._cost(values, 2 * a, b, each, weight) for each in (taken, after)]
                assert scores[1] < scores[0]


def test_the_fused_kernel_is_for_gpus_and_small_batches():
    values, _ = tokens()
    assert not _fused.fits(values, 1)


def _on_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    return torch.device("cuda")


@pytest.mark.gpu
@pytest.mark.parametrize(("n", "m", "k"), [(128, 4, 1), (100, 13, 3), (50, 3, 2), (1000, 8, 2)])
@pytest.mark.parametrize("weight", [0.1, 10.0, 1000.0])
def test_the_fused_kernel_chooses_what_the_steps_choose(n, m, k, weight):
    """Nearly: it moves tokens one by one."""
    device = _on_gpu()
    values, features = tokens(n, m)
    a, b = (side.to(device) for side in sides(values))
    values, order, setting = values.to(device), features.sum(1).to(device), Setting(k, weight, 10.0)
    assert _fused.fits(values, k)
    fused, plain = (assign(values, a, b, None, order, setting, fused=flag) for flag in (True, False))
    one, other = (float(objective(values, a, b, None, found, setting)) for found in (fused, plain))
    assert one == pytest.approx(other, rel=1e-3)
    assert (fused.experts.sort(1).values == plain.experts.sort(1).values).all(1).float().mean() > 0.9


@pytest.mark.gpu
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("weight", [0.1, 10.0, 1000.0])
def test_the_fused_kernel_is_as_good_for_a_sure_gate(k, weight):
    device = _on_gpu()
    values = sure_tokens(m=8)
    a, b = (side.to(device) for side in sides(values))
    values, setting = values.to(device), Setting(k, weight, 10.0)
    assert _fused.fits(values, k)
    fused, plain = (assignment.choose(values, a, b, values[:, 0], setting, fused=flag)[0] for flag in (True, False))
    one, other = (entries_value(values, a, b, experts, weight) for experts in (fused, plain))
    assert one == pytest.approx(other, rel=0.01)


@pytest.mark.gpu
def test_a_graph_gives_what_eager_steps_give():
    device = _on_gpu()
    for seed in range(3):
        _, features = tokens(seed=seed)
        logits = torch.randn(128, 4, device=device)
        graphed, eager = (nn.SparseTransportRouter(4, graphs=flag).to(device) for flag in (True, False))
        for _ in range(3):
            torch.testing.assert_close(
                graphed(logits, features.to(device)).experts, eager(logits, features.to(device)).experts
            )


@pytest.mark.gpu
def test_cpu_and_gpu_agree():
    device = _on_gpu()
    values, features = tokens(n=512, m=8)
    setting = Setting(2, 1.0, 10.0)
    a, b = sides(values)
    here = assign(values, a, b, None, features.sum(1), setting)
    there = assign(*(x.to(device) for x in (values, a, b)), None, features.sum(1).to(device), setting)
    one, other = (
        float(objective(values, a, b, None, found, setting))
        for found in (here, assignment.Assignment(*(x.cpu() for x in there)))
    )
    assert one == pytest.approx(other, rel=1e-3)
