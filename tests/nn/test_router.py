"""Routers keep their promises: k experts a token, loads, gradients, order, seeds; and they refuse nonsense."""

import copy
import io
import warnings

import numpy as np
import pytest

import sparsetransport as st

torch = pytest.importorskip("torch")

from sparsetransport import nn  # noqa: E402

N, M = 96, 4
ROUTERS = {
    "top-k": lambda k: nn.TopKRouter(M, k),
    "noisy": lambda k: nn.NoisyTopKRouter(M, k),
    "entropic": lambda k: nn.EntropicRouter(M, k, reg=0.1),
    "kl": lambda k: nn.KLRouter(M, k, reg=0.5, reg_m=1.0),
    "ssot": lambda k: nn.SSOTRouter(M, k, reg=1.0),
    "scot": lambda k: nn.SCOTRouter(M, k, reg=1.0),
    "mmd": lambda k: nn.MMDRouter(M, k, unbalanced=10.0),
    "ours": lambda k: nn.SparseTransportRouter(M, k, unbalanced=10.0),
}
BALANCED = ["entropic", "ssot", "scot", "mmd", "ours"]


def make(name, k=1):
    if name in ("entropic", "kl", "ssot", "scot"):
        pytest.importorskip("ot")
    return ROUTERS[name](k)


@pytest.fixture(autouse=True)
def quiet():
    """POT warns where its iterations do not converge, and of SciPy's plans."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def batch(seed=0, bias=1.0, n=N):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, M, generator=generator)
    logits[:, 0] += bias
    return logits, torch.randn(n, 7, generator=generator)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ROUTERS)
def test_every_token_has_k_different_experts(name, k, training):
    router = make(name, k).train(training)
    routing = router(*batch())
    assert routing.experts.shape == routing.weights.shape == (N, k)
    assert all(len(set(row)) == k for row in routing.experts.tolist())
    assert ((routing.experts >= 0) & (routing.experts < M)).all()
    torch.testing.assert_close(routing.load, torch.bincount(routing.experts.flatten(), minlength=M))
    if k > 1:
        torch.testing.assert_close(routing.weights.sum(1), torch.ones(N))


@pytest.mark.parametrize("name", BALANCED)
def test_transport_balances_where_top_k_does_not(name):
    logits, features = batch(bias=2.0)
    plain, load = nn.TopKRouter(M)(logits).load, make(name)(logits, features).load
    assert plain.max() > 2 * N / M
    assert load.max() - load.min() < 0.6 * (plain.max() - plain.min())
    if name in ("scot", "ours"):  # at most k entries a token: what is rounded is the plan itself
        assert load.max() - load.min() <= 2


@pytest.mark.parametrize("weight", [0.1, 10.0])
def test_capacity_is_respected_up_to_the_soft_penalty(weight):
    """A token moves to another expert at the cost of at most one: so r = 2λ(load - a) differs by at most that."""
    logits, features = batch(bias=3.0, n=400)
    load = nn.SparseTransportRouter(M, unbalanced=weight)(logits, features).load.float()
    assert 2.0 * weight * (load.max() - load.min()) <= 1.0 + 2.0 * 2.0 * weight * 1.5


@pytest.mark.parametrize("name", ROUTERS)
def test_gradients_reach_gate_and_experts(name):
    torch.manual_seed(0)
    gate = torch.nn.Linear(7, M)
    experts = [torch.nn.Linear(7, 3) for _ in range(M)]
    layer = nn.SparseMoE(experts, make(name, 2), gate)
    output, routing = layer(batch()[1])
    (output.square().mean() + 0.01 * routing.loss).backward()
    assert gate.weight.grad.abs().sum() > 0.0
    for expert, load in zip(experts, routing.load.tolist(), strict=True):
        assert (expert.weight.grad is not None) == (load > 0)
    gate.zero_grad()
    layer(batch()[1])[1].loss.backward()
    assert gate.weight.grad.abs().sum() > 0.0, "the balancing loss alone reaches the gate"


@pytest.mark.parametrize("name", ROUTERS)
def test_one_seed_one_answer(name):
    logits, features = batch()
    answers = []
    for _ in range(2):
        torch.manual_seed(3)
        answers.append(make(name)(logits, features).experts)
    assert (answers[0] == answers[1]).all()


@pytest.mark.parametrize("name", ["top-k", "ours", "mmd", "ssot"])
def test_reordering_the_tokens_reorders_the_answer(name):
    logits, features = batch()
    order = torch.randperm(N, generator=torch.Generator().manual_seed(1))
    straight = make(name)(logits, features).experts
    shuffled = make(name)(logits[order], features[order]).experts
    assert (straight[order] == shuffled).float().mean() > 0.98


@pytest.mark.parametrize("inference", ["topk", "prices"])
def test_at_inference_a_token_does_not_depend_on_the_others(inference):
    router = nn.SparseTransportRouter(M, inference=inference)
    for seed in range(20):
        router(*batch(seed))
    router.eval()
    logits, features = batch(100)
    together = router(logits, features).experts
    alone = torch.cat([router(logits[j : j + 1], features[j : j + 1]).experts for j in range(N)])
    assert (together == alone).all()


def test_running_prices_keep_loads_balanced_at_inference():
    """Plain top-k sends most tokens to the expert that the gate prefers; with the prices of training it does not."""
    router = nn.SparseTransportRouter(M, unbalanced=10.0, momentum=0.9)
    for seed in range(50):
        router(*batch(seed, bias=2.0))
    router.eval()
    loads = {}
    for router.inference in ("topk", "prices", "transport"):
        loads[router.inference] = sum(router(*batch(seed, bias=2.0)).load for seed in range(100, 120))
    assert loads["topk"].max() > 2.0 * loads["topk"].float().mean()
    assert loads["prices"].max() < 1.25 * loads["prices"].float().mean()
    assert loads["transport"].max() < 1.05 * loads["transport"].float().mean()


def test_noise_changes_the_choice_in_training_alone():
    router = nn.TopKRouter(M, noise="uniform", noise_scale=5.0)
    logits, _ = batch()
    torch.manual_seed(0)
    assert (router(logits).experts != nn.TopKRouter(M)(logits).experts).any()
    assert (router.eval()(logits).experts == nn.TopKRouter(M)(logits).experts).all()


@pytest.mark.parametrize("kernel", [None, st.RBF(2.0), st.Delta()])
def test_the_plan_has_the_routed_experts_and_near_optimal_masses(kernel):
    router = nn.SparseTransportRouter(M, 2, kernel=kernel)
    logits, features = batch()
    found, gram = router.plan(logits, features), nn.gram_matrix(router.kernel, features.double())
    assert (found.experts == router(logits, features).experts).all()
    problem = st.Problem.from_matrices(
        -(logits.softmax(1) / logits.softmax(1).max()).T.double(),
        np.full(M, N / M),
        np.ones(N),
        kernels=(st.Delta(), st.Delta() if gram is None else gram),
        unbalanced=router.setting.unbalanced,
        reg=router.setting.reg,
    )
    pairs = np.array([(i, j) for j, row in enumerate(found.experts.tolist()) for i in row])
    value = problem.value(*pairs.T, found.mass.flatten().double().numpy())
    assert value == pytest.approx(st.solve_support(problem, links=pairs).value, rel=1e-4)


def test_the_plan_keeps_leading_dimensions_as_routing_does():
    router = nn.SparseTransportRouter(M, 2)
    logits, features = batch()
    flat = router.plan(logits, features)
    found = router.plan(logits.reshape(2, -1, M), features.reshape(2, N // 2, -1))
    assert found.experts.shape == found.mass.shape == (2, N // 2, 2)
    assert (found.experts.reshape(N, 2) == flat.experts).all()
    assert (found.mass.reshape(N, 2) == flat.mass).all()


def test_the_plan_leaves_the_router_as_it_was():
    router = nn.SparseTransportRouter(M)
    logits, features = batch()
    router(logits, features)
    before = copy.deepcopy(router.state_dict())
    assert router.plan(logits.requires_grad_(), features).mass.requires_grad is False
    assert all((router.state_dict()[name] == value).all() for name, value in before.items())


def test_routers_are_saved_and_copied():
    router = nn.SparseTransportRouter(M, inference="prices")
    logits, features = batch(bias=2.0)
    router(logits, features)
    file = io.BytesIO()
    torch.save(router.state_dict(), file)
    file.seek(0)
    other = nn.SparseTransportRouter(M, inference="prices")
    other.load_state_dict(torch.load(file, weights_only=True))
    for each in (other, copy.deepcopy(router)):
        assert (each.eval()(logits, features).experts == router.eval()(logits, features).experts).all()


def test_features_only_tell_equal_tokens_apart():
    logits, features = batch()
    router = nn.SparseTransportRouter(M, unbalanced=10.0)
    assert (router(logits).load - N // M).abs().max() <= 1
    assert (router(logits).experts == router(logits, features).experts).float().mean() > 0.95
    assert nn.SparseTransportRouter(M, kernel=st.Delta()).plan(logits).mass.shape == (N, 1)


def test_sequences_of_tokens():
    logits, features = batch()
    router = nn.SparseTransportRouter(M, 2)
    flat, shaped = router(logits, features), router(logits.reshape(8, 12, M), features.reshape(8, 12, 7))
    assert shaped.experts.shape == shaped.weights.shape == (8, 12, 2)
    assert (flat.experts == shaped.experts.reshape(N, 2)).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_precision_and_autocast(dtype):
    logits, features = batch()
    routing = nn.SparseTransportRouter(M)(logits.to(dtype), features.to(dtype))
    assert routing.weights.dtype == dtype
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = nn.SparseTransportRouter(M)(logits, features)
    assert (cast.experts == nn.SparseTransportRouter(M)(logits, features).experts).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_models_may_be_converted_and_the_running_numbers_stay_single(dtype):
    """Conversion before training, and of a trained model: no number of the router's is rounded."""
    layer = nn.SparseMoE(
        [torch.nn.Linear(7, 5) for _ in range(M)], nn.SparseTransportRouter(M), torch.nn.Linear(7, M)
    ).to(dtype)
    tokens = batch()[1].to(dtype)
    for _ in range(2):
        output, routing = layer(tokens)
        assert output.dtype == routing.weights.dtype == dtype
    before = copy.deepcopy(layer.router.state_dict())
    assert before["batches"] == 2.0
    assert before["prices"].abs().sum() > 0.0
    after = layer.bfloat16().router.state_dict()
    for name, value in before.items():
        assert after[name].dtype == torch.float32
        torch.testing.assert_close(after[name], value, rtol=0.0, atol=0.0)
    assert nn.SparseTransportRouter(M).to("meta").prices.is_meta


def test_the_balancing_loss_is_one_for_equal_loads():
    routing = nn.SparseTransportRouter(M, kernel=st.Delta(), unbalanced=10.0)(torch.zeros(N, M))
    assert float(routing.loss) == pytest.approx(1.0)


@pytest.mark.parametrize(("tokens", "experts"), [(512, 8), (1000, 8), (1024, 32)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_gate_of_zeros_gives_everybody_the_same(tokens, experts, k):
    """As gates are initialised: ties of all tokens, which single precision must not drown."""
    router = nn.SparseTransportRouter(experts, k, unbalanced=10.0)
    load = router(torch.zeros(tokens, experts), torch.randn(tokens, 4)).load
    assert load.max() - load.min() <= 1


def test_without_balance_at_stake_the_gate_has_its_way():
    torch.manual_seed(0)
    logits = torch.randn(512, 8)
    ours, top = (
        router(logits, torch.randn(512, 4)).experts.sort(1).values
        for router in (nn.SparseTransportRouter(8, 2, unbalanced=1e-7), nn.TopKRouter(8, 2))
    )
    assert (ours == top).all()


def test_weights_add_up_to_one_even_where_the_gate_sees_one_expert_alone():
    routing = nn.SparseTransportRouter(4, 2, unbalanced=10.0)(torch.tensor([[200.0, 0.0, 0.0, 0.0]] * 8))
    torch.testing.assert_close(routing.weights.sum(1), torch.ones(8))


def test_one_bad_batch_does_not_spoil_the_running_prices():
    router = nn.SparseTransportRouter(M, check=False, inference="prices")
    logits, features = batch()
    router(logits, features)
    before = router.prices.clone()
    router(torch.full_like(logits, torch.nan), features)
    torch.testing.assert_close(router.prices, before * router.momentum)


def test_tokens_are_told_apart_after_a_layer_norm():
    """Whose features all add up to zero: reordering the tokens reorders the answer there too."""
    torch.manual_seed(0)
    features, order = torch.nn.functional.layer_norm(torch.randn(64, 16), (16,)), torch.randperm(64)
    router = nn.SparseTransportRouter(M)
    straight = router(torch.zeros(64, M), features).experts
    assert (router(torch.zeros(64, M), features[order]).experts == straight[order]).all()


def test_half_precision_is_loaded_as_it_is():
    router = nn.SparseTransportRouter(M)
    router.load_state_dict({name: value.half() for name, value in router.state_dict().items()}, assign=True)
    router(*batch())
    assert router.batches == 1.0


def test_routers_compile():
    """Without a look at the logits there is nothing to break the graph; one for batches of any size."""
    router = nn.SparseTransportRouter(M, 2, check=False, price_steps=3, repair_rounds=2, graphs=False).eval()
    router.inference = "transport"
    compiled = torch.compile(router, backend="eager", fullgraph=True)
    torch._dynamo.reset()
    for tokens in (16, 24, 40):
        logits, features = torch.randn(tokens, M), torch.randn(tokens, 3)
        assert (compiled(logits, features).experts == router(logits, features).experts).all()


class TestMixture:
    @pytest.mark.parametrize("k", [1, 2])
    def test_it_is_the_weighted_sum_of_the_chosen_experts(self, k):
        torch.manual_seed(0)
        layer = nn.SparseMoE([torch.nn.Linear(7, 3) for _ in range(M)], nn.TopKRouter(M, k), torch.nn.Linear(7, M))
        x = batch()[1]
        output, routing = layer(x)
        every = torch.stack([expert(x) for expert in layer.experts], 1)
        picked = every.gather(1, routing.experts[..., None].expand(-1, -1, 3))
        torch.testing.assert_close(output, (picked * routing.weights[..., None]).sum(1))

    def test_an_expert_sees_its_own_tokens_and_no_others(self):
        seen = []

        class Spy(torch.nn.Module):
            def forward(self, x):
                seen.append(len(x))
                return x

        layer = nn.SparseMoE([Spy() for _ in range(M)], nn.SparseTransportRouter(M, 2), torch.nn.Linear(7, M))
        _, routing = layer(batch()[1])
        assert seen == [count for count in routing.load.tolist() if count]
        assert sum(seen) == 2 * N

    def test_an_expert_without_tokens_is_left_alone(self):
        gate = torch.nn.Linear(7, M)
        torch.nn.init.zeros_(gate.weight)
        gate.bias.data = torch.tensor([9.0, 0.0, 0.0, 0.0])
        output, routing = nn.SparseMoE([torch.nn.Linear(7, 2) for _ in range(M)], nn.TopKRouter(M), gate)(batch()[1])
        assert routing.load.tolist() == [N, 0, 0, 0]
        assert output.shape == (N, 2)

    def test_images_go_through_as_they_are(self):
        experts = [torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2)) for _ in range(M)]
        gate = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, M))
        output, _ = nn.SparseMoE(experts, nn.SparseTransportRouter(M), gate)(torch.randn(20, 3, 2, 2))
        assert output.shape == (20, 2)

    @pytest.mark.parametrize("training", [True, False])
    def test_sequences_are_routed_as_one_batch(self, training):
        torch.manual_seed(0)
        experts = [torch.nn.Linear(7, 3) for _ in range(M)]
        layer = nn.SparseMoE(experts, nn.SparseTransportRouter(M, 2), torch.nn.Linear(7, M)).train(training)
        x = torch.randn(4, 6, 7)
        output, routing = layer(x)
        flat, of_flat = layer(x.flatten(0, 1))
        assert output.shape == (4, 6, 3)
        assert routing.load.tolist() == of_flat.load.tolist()
        torch.testing.assert_close(output.flatten(0, 1), flat)

    @pytest.mark.parametrize("name", ROUTERS)
    def test_a_batch_without_tokens_comes_out_empty(self, name):
        """As of any layer: a mask may leave nothing, and training goes on."""
        experts = [torch.nn.Linear(7, 3) for _ in range(M)]
        layer = nn.SparseMoE(experts, make(name, 2), torch.nn.Linear(7, M))
        output, routing = layer(torch.zeros(0, 7))
        assert output.shape == (0, 3)
        assert routing.experts.shape == routing.weights.shape == (0, 2)
        assert routing.load.tolist() == [0] * M
        assert float(routing.loss) == 0.0
        (output.sum() + routing.loss).backward()

    def test_tokens_that_were_not_routed(self):
        layer = nn.SparseMoE([torch.nn.Linear(7, 3) for _ in range(M)], nn.TopKRouter(M), torch.nn.Linear(7, M))
        routing = layer(torch.randn(4, 6, 7))[1]
        with pytest.raises(ValueError, match=r"tokens must have shape \(4, 6, ...\), got \(24, 7\)"):
            layer.combine(torch.randn(24, 7), routing)

    def test_as_many_experts_as_the_router_has(self):
        with pytest.raises(ValueError, match="experts must be num_experts = 4 modules, got 3"):
            nn.SparseMoE([torch.nn.Linear(2, 2)] * 3, nn.TopKRouter(4), torch.nn.Linear(2, 4))


class TestBadInput:
    def test_more_experts_a_token_than_there_are(self):
        with pytest.raises(ValueError, match="k must be at most num_experts = 3, got 4"):
            nn.SparseTransportRouter(3, 4)
        with pytest.raises(ValueError, match="k must be a positive int, got 0"):
            nn.TopKRouter(3, 0)

    @pytest.mark.parametrize("bad", [float("nan"), float("inf")])
    def test_logits_that_are_not_finite(self, bad):
        logits, features = batch()
        logits[5, 2] = bad
        with pytest.raises(ValueError, match=f"logits must be finite, got {bad} at token 5, expert 2"):
            nn.SparseTransportRouter(M)(logits, features)

    def test_shapes_and_types(self):
        logits, features = batch()
        with pytest.raises(ValueError, match=r"logits must have shape \(..., 4\), got \(96, 3\)"):
            nn.TopKRouter(M)(logits[:, :3])
        with pytest.raises(TypeError, match=r"logits must be a tensor of floats, got torch\.int64"):
            nn.TopKRouter(M)(torch.zeros(5, M, dtype=torch.int64))
        with pytest.raises(ValueError, match=r"features must have shape \(96, ...\), one a token, got \(95, 7\)"):
            nn.SparseTransportRouter(M)(logits, features[:95])
        with pytest.raises(ValueError, match="features must be given for kernel=IMQv2"):
            nn.SparseTransportRouter(M).plan(logits)
        with pytest.raises(ValueError, match="features must be given for kernel=IMQv2"):
            nn.MMDRouter(M)(logits)

    def test_options(self):
        with pytest.raises(ValueError, match="inference must be one of 'topk', 'prices', 'transport', got 'auction'"):
            nn.SparseTransportRouter(M, inference="auction")
        with pytest.raises(ValueError, match="inference must be one of 'topk', 'transport'"):
            nn.SCOTRouter(M, inference="prices")
        with pytest.raises(ValueError, match="noise must be one of"):
            nn.TopKRouter(M, noise="loud")
        with pytest.raises(ValueError, match="momentum must be below 1"):
            nn.SparseTransportRouter(M, momentum=1.0)
        with pytest.raises(ValueError, match="capacity_factor must be a positive number"):
            nn.SparseTransportRouter(M, capacity_factor=0.0)
        with pytest.raises(ValueError, match="reg must be a positive number"):
            nn.SparseTransportRouter(M, reg=0.0)


def test_the_default_precision_does_not_matter():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert nn.SparseTransportRouter(M, 2)(torch.randn(16, M), torch.randn(16, 3)).load.sum() == 32
    finally:
        torch.set_default_dtype(before)


def test_a_plan_needs_tokens():
    with pytest.raises(ValueError, match="logits must hold at least one token"):
        nn.SparseTransportRouter(M, kernel=st.Delta()).plan(torch.zeros(0, M))


def test_logits_beyond_single_precision_are_refused():
    logits = torch.zeros(5, M, dtype=torch.float64)
    logits[2, 1] = 1e39
    with pytest.raises(ValueError, match="finite in single precision, got 1e\\+39 at token 2, expert 1"):
        nn.SparseTransportRouter(M, 2)(logits)
