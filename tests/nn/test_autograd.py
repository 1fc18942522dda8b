"""Gradients of values and plans are those of finite differences, of any order, in batches and in every precision."""

import copy
from functools import partial

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.geometry.kernels import NAMES
from sparsetransport.geometry.radial import TABLE

torch = pytest.importorskip("torch")

from sparsetransport import nn  # noqa: E402

BUDGETS = [None, 8, st.PerColumn(2), st.PerRow(1)]


def inputs(m=6, n=5, seed=0, batch=()):
    """Costs, masses and points that gradients are wanted of."""
    rng = np.random.default_rng(seed)
    arrays = [
        rng.random((*batch, m, n)),
        rng.random((*batch, m)) + 0.5,
        rng.random((*batch, n)) + 0.5,
        rng.normal(size=(*batch, m, 2)),
        rng.normal(size=(*batch, n, 2)),
    ]
    return [torch.tensor(array, requires_grad=True) for array in arrays]


def transport(C, a, b, X, Y, budget=8, reg=0.1, effort="default"):
    kernels = nn.gram_matrix(st.RBF(1.0), X), nn.gram_matrix(st.IMQ(1.0), Y)
    return nn.sparse_transport(C, a, b, kernels=kernels, unbalanced=(3.0, 2.0), reg=reg, budget=budget, effort=effort)


@pytest.mark.parametrize("reg", [0.1, 0.0])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_gradients_of_plan_and_value_are_those_of_finite_differences(budget, reg):
    """With respect to costs, masses, and points through both Gram matrices."""
    plan, _ = transport(*inputs(), budget, reg)
    assert (plan > 0.0).sum() >= 5, "a plan that gradients flow through"
    assert torch.autograd.gradcheck(lambda *args: tuple(transport(*args, budget, reg)), inputs(), eps=1e-7, atol=1e-5)


def test_second_derivatives_are_exact():
    """The backward pass is differentiable in its turn: Newton's method on the value is possible."""
    assert torch.autograd.gradgradcheck(lambda *args: tuple(transport(*args)), inputs(4, 3), eps=1e-7, atol=1e-4)


def test_third_derivatives_are_exact():
    """Of plan and value together, by second differences of the gradient."""

    def gradient(*args):
        plan, value = transport(*args, budget=4)
        return torch.autograd.grad(value + (plan * plan).sum(), args, create_graph=True)

    assert torch.autograd.gradgradcheck(gradient, inputs(3, 2), eps=1e-7, atol=1e-3)


def test_the_forward_pass_is_solve():
    C, a, b, X, Y = (part.detach() for part in inputs())
    plan, value = transport(C, a, b, X, Y)
    kernels = st.RBF(1.0).gram(X.numpy()), st.IMQ(1.0).gram(Y.numpy())
    res = st.solve(C.numpy(), a.numpy(), b.numpy(), kernels=kernels, unbalanced=(3, 2), reg=0.1, budget=8)
    np.testing.assert_allclose(plan.numpy(), res.plan, atol=1e-12)
    assert float(value) == pytest.approx(res.value, rel=1e-12)


def test_gradient_of_the_value_with_respect_to_the_costs_is_the_plan():
    """The envelope theorem in its plainest form."""
    C = inputs()[0]
    plan, value = nn.sparse_transport(C, unbalanced=5.0, reg=0.2, budget=4)
    (grad,) = torch.autograd.grad(value, C)
    torch.testing.assert_close(grad, plan.detach())


def test_no_gradient_where_there_is_no_mass():
    """The support is held fixed: an entry without mass neither moves nor moves others."""
    C = inputs()[0]
    plan, _ = nn.sparse_transport(C, unbalanced=5.0, reg=0.2, budget=3)
    weights = torch.rand_like(plan)
    (grad,) = torch.autograd.grad((plan * weights).sum(), C)
    assert (grad[plan == 0.0] == 0.0).all()
    assert (grad[plan > 0.0] != 0.0).all()


def test_a_batch_is_its_problems_one_by_one():
    args = inputs(batch=(2, 3))
    plan, value = transport(*args, effort="quick")  # the default of one problem does more than that of a batch
    assert plan.shape == (2, 3, 6, 5)
    assert value.shape == (2, 3)
    (plan * torch.arange(30.0).reshape(6, 5)).sum().backward()
    for i in range(2):
        for j in range(3):
            single = [arg.detach()[i, j][None].requires_grad_() for arg in args]
            one, one_value = (each[0] for each in transport(*single, effort="quick"))
            torch.testing.assert_close(plan[i, j], one)
            torch.testing.assert_close(value[i, j], one_value)
            (one * torch.arange(30.0).reshape(6, 5)).sum().backward()
            for whole, part in zip(args, single, strict=True):
                torch.testing.assert_close(whole.grad[i, j], part.grad[0])


def test_masses_and_kernels_may_be_shared_by_a_batch():
    C, a, b, X, Y = inputs(batch=(3,))
    shared = [part[0].detach().requires_grad_() for part in (a, b, X, Y)]
    _, value = transport(C, *shared)
    grads = torch.autograd.grad(value.sum(), shared)
    alone = [torch.autograd.grad(transport(C[k], *shared).value, shared) for k in range(3)]
    for grad, *parts in zip(grads, *alone, strict=True):
        torch.testing.assert_close(grad, sum(parts))


def test_second_derivatives_are_exact_in_a_batch_that_shares():
    """The Hessian of a function of plans and values, with respect to what all problems share."""
    C, a, b, X, Y = inputs(4, 3, batch=(2,))
    shared = [part[0].detach().requires_grad_() for part in (a, b, X, Y)]
    assert torch.autograd.gradcheck(lambda *args: tuple(transport(*args)), [C, *shared], eps=1e-7, atol=1e-5)
    assert torch.autograd.gradgradcheck(lambda *args: tuple(transport(*args)), [C, *shared], eps=1e-7, atol=1e-4)


def test_a_shared_kernel_that_is_bad_is_no_fault_of_a_problem():
    with pytest.raises(ValueError, match=r"^kernels\[0\] must be symmetric"):
        nn.sparse_transport(torch.rand(3, 2, 2), kernels=torch.tensor([[1.0, 0.5], [0.0, 1.0]]))


def test_a_graph_can_be_used_twice():
    """Both outputs in one loss; backward twice; accumulation."""
    C = inputs()[0]
    plan, value = nn.sparse_transport(C, unbalanced=5.0, reg=0.2, budget=6)
    loss = value + (plan * plan).sum()
    loss.backward(retain_graph=True)
    first = C.grad.clone()
    loss.backward()
    torch.testing.assert_close(C.grad, 2.0 * first)
    separate = torch.autograd.grad(nn.sparse_transport(C, unbalanced=5.0, reg=0.2, budget=6).value, C)[0]
    again = nn.sparse_transport(C, unbalanced=5.0, reg=0.2, budget=6).plan
    torch.testing.assert_close(first, separate + torch.autograd.grad((again * again).sum(), C)[0])


def test_no_grad_records_nothing():
    C = inputs()[0]
    with torch.no_grad():
        plan, value = nn.sparse_transport(C, unbalanced=5.0, budget=4)
    assert not plan.requires_grad
    assert not value.requires_grad
    assert nn.sparse_transport(C, unbalanced=5.0, budget=4).plan.requires_grad
    assert not nn.sparse_transport(C.detach(), unbalanced=5.0, budget=4).plan.requires_grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_low_precision_in_single_precision_out(dtype):
    """The work is done in double precision; gradients come back in the precision of the input."""
    C = torch.linspace(0.0, 1.0, 30).reshape(6, 5).to(dtype).requires_grad_()
    plan, value = nn.sparse_transport(C, unbalanced=5.0, reg=0.2, budget=6)
    exact, exact_value = nn.sparse_transport(C.detach().double(), unbalanced=5.0, reg=0.2, budget=6)
    assert plan.dtype == value.dtype == torch.float32
    torch.testing.assert_close(plan, exact.float())
    torch.testing.assert_close(value, exact_value.float())
    value.backward()
    assert C.grad.dtype == dtype


def test_autocast_changes_nothing():
    x, y = torch.randn(20, 3, generator=torch.Generator().manual_seed(0)).requires_grad_(), torch.ones(15, 3)
    loss = nn.SparseTransportLoss(budget=10, reg=0.1)
    plain = loss(x, y)
    grad = torch.autograd.grad(plain, x)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = loss(x, y)
        cast_grad = torch.autograd.grad(cast, x)[0]
    torch.testing.assert_close(cast, plain)
    torch.testing.assert_close(cast_grad, grad)


def test_forbidden_pairs_get_no_gradient():
    C = inputs()[0].detach()
    C[0, 0] = torch.inf
    C.requires_grad_()
    plan, value = nn.sparse_transport(C, unbalanced=5.0, reg=0.2, budget=6)
    (value + plan.square().sum()).backward()
    assert torch.isfinite(C.grad).all()
    assert C.grad[0, 0] == 0.0


def test_links_that_depend_on_each_other_are_survived():
    """Two equal points and reg = 0: the Hessian is singular if both carry mass; the gradient of the value is finite."""
    x = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([[0.0, 0.5], [1.0, 0.5]], dtype=torch.float64)
    gram = nn.gram_matrix(st.RBF(1.0), x), nn.gram_matrix(st.RBF(1.0), y)
    plan, value = nn.sparse_transport(nn.cost_matrix(x, y), kernels=gram, unbalanced=10.0)
    (value + plan.square().sum()).backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
def test_costs_are_those_of_the_package(metric):
    rng = np.random.default_rng(0)
    for features in (3, 40):
        x, y = rng.normal(size=(7, features)), rng.normal(size=(5, features))
        mine = nn.cost_matrix(torch.tensor(x), torch.tensor(y), metric)
        np.testing.assert_allclose(mine.numpy(), st.cost_matrix(x, y, metric), atol=1e-12)


@pytest.mark.parametrize("sigma2", [0.3, "median", "mean"])
@pytest.mark.parametrize("features", [4, 40])
@pytest.mark.parametrize("name", TABLE)
def test_gram_matrices_are_those_of_the_package(name, features, sigma2):
    points, kernel = np.random.default_rng(0).normal(size=(9, features)), NAMES[name](sigma2)
    np.testing.assert_allclose(nn.gram_matrix(kernel, torch.tensor(points)).numpy(), kernel.gram(points), atol=1e-12)


@pytest.mark.parametrize("features", [2, 20])
@pytest.mark.parametrize("name", TABLE)
def test_gram_matrices_have_first_and_second_derivatives(name, features):
    """With σ² fixed, by finite differences, the entries at distance zero (the diagonal) among them."""
    points = torch.tensor(np.random.default_rng(0).normal(size=(2, 4, features)), requires_grad=True)
    assert torch.autograd.gradcheck(partial(nn.gram_matrix, NAMES[name](1.5)), points)
    assert torch.autograd.gradgradcheck(partial(nn.gram_matrix, NAMES[name](1.5)), points)


@pytest.mark.parametrize("features", [2, 200])
@pytest.mark.parametrize("name", TABLE)
def test_gram_matrices_have_a_gradient_where_points_meet(name, features):
    """Equal points neither draw nor repel each other, in single precision too, and a point's own entry is exact."""
    torch.manual_seed(0)
    points, kernel, grads = torch.randn(3, features).repeat(2, 1), NAMES[name](float(features)), []
    for each in (points.requires_grad_(), points.detach().double().requires_grad_()):
        gram = nn.gram_matrix(kernel, each)
        at_zero = TABLE[name](0.0, float(features))
        torch.testing.assert_close(gram.diagonal(), torch.full((6,), at_zero, dtype=each.dtype), rtol=1e-6, atol=0.0)
        grads.append(torch.autograd.grad(gram.square().sum(), each)[0].double())
    torch.testing.assert_close(grads[0], grads[1], rtol=0.0, atol=0.01 * float(grads[1].abs().max()))
    torch.testing.assert_close(grads[1][:3], grads[1][3:])


def test_a_kernel_of_ones_own_has_gradients():
    """A function of points gives what the kernel of the package with the same formula gives, in a batch as well."""

    def gaussian(x, y):
        return torch.exp(-0.5 * (x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1))

    _, a, b, X, Y = inputs(batch=(2,))
    for kernels in (gaussian, (gaussian, st.RBF(1.0))):
        mine, theirs = (
            nn.SparseTransportLoss(budget=6, kernels=each, unbalanced=2.0, reg=0.1)(X, Y, a, b)
            for each in (kernels, st.RBF(1.0))
        )
        torch.testing.assert_close(mine, theirs)
        torch.testing.assert_close(*(torch.autograd.grad(value, X)[0] for value in (mine, theirs)))
    with pytest.raises(ValueError, match=r"Gram matrix of kernel must have shape \(5, 5\), got \(5,\)"):
        nn.gram_matrix(lambda x, y: x.sum(-1), torch.ones(5, 2))
    with pytest.raises(TypeError, match="Gram matrix of kernel must be a tensor, got ndarray"):
        nn.gram_matrix(lambda x, y: np.eye(len(x)), torch.ones(5, 2))


@pytest.mark.parametrize("rule", ["median", "mean"])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_bandwidth_is_that_of_its_own_points(rule, n):
    """Each problem of a batch has the Gram matrix that it has alone."""
    points = np.random.default_rng(0).normal(size=(2, 3, n, 4)) * np.geomspace(1.0, 100.0, 6).reshape(2, 3, 1, 1)
    together = nn.gram_matrix(st.RBF(rule), torch.tensor(points)).numpy()
    for place in np.ndindex(2, 3):
        np.testing.assert_allclose(together[place], st.RBF(rule).gram(points[place]), atol=1e-12)


def test_points_of_different_kinds_have_costs():
    x, y = torch.arange(40).reshape(2, 20), torch.ones(3, 20, dtype=torch.float64)
    for metric in ("sqeuclidean", "euclidean", "cosine"):
        np.testing.assert_allclose(nn.cost_matrix(x, y, metric).numpy(), st.cost_matrix(x.numpy(), y.numpy(), metric))
    assert nn.cost_matrix(x, x).dtype == nn.gram_matrix("rbf", x).dtype == torch.float32


def test_short_vectors_have_a_direction():
    x = np.array([[1e-14, 0.0], [3e-20, 4e-20]])
    np.testing.assert_allclose(nn.cost_matrix(torch.tensor(x), torch.eye(2), "cosine"), [[0.0, 1.0], [0.4, 0.2]])


def test_euclidean_cost_has_a_gradient_where_points_meet():
    x = torch.zeros(2, 2, requires_grad=True)
    nn.cost_matrix(x, torch.zeros(2, 2), "euclidean").sum().backward()
    assert (x.grad == 0.0).all()


class TestLoss:
    def test_its_gradient_is_that_of_finite_differences(self):
        _, a, b, X, Y = inputs()
        loss = nn.SparseTransportLoss(budget=8, kernels=(st.RBF(1.0), st.IMQ(2.0)), unbalanced=2.0, reg=0.1)
        assert torch.autograd.gradcheck(loss, (X, Y, a, b), eps=1e-7, atol=1e-5)

    def test_descending_it_brings_the_clouds_together(self):
        torch.manual_seed(0)
        x, y = torch.randn(30, 2).requires_grad_(), torch.randn(30, 2) * 0.5 + 3.0
        loss = nn.SparseTransportLoss(kernels=st.Delta(), unbalanced=1000.0, warm_start=True)
        optimiser = torch.optim.SGD([x], lr=3.0)
        first = loss(x, y).item()
        for _ in range(40):
            optimiser.zero_grad()
            loss(x, y).backward()
            optimiser.step()
        assert loss(x, y).item() < 0.05 * first
        assert (x.mean(0) - y.mean(0)).norm() < 0.2

    def test_a_warm_start_gives_the_value_of_a_cold_one_without_a_budget(self):
        _, a, b, X, Y = inputs(batch=(2,))
        cold, warm = (nn.SparseTransportLoss(warm_start=flag, kernels=st.RBF(1.0)) for flag in (False, True))
        for shift in (0.0, 0.1, 0.2):
            torch.testing.assert_close(warm(X + shift, Y, a, b), cold(X + shift, Y, a, b))
        assert warm(X[0], Y[0]).shape == ()  # another shape starts anew

    def test_reductions(self):
        _, _, _, X, Y = inputs(batch=(3,))
        none, mean, total = (nn.SparseTransportLoss(budget=5, reduction=how)(X, Y) for how in ("none", "mean", "sum"))
        assert none.shape == (3,)
        torch.testing.assert_close(none.mean(), mean)
        torch.testing.assert_close(none.sum(), total)

    def test_a_fixed_kernel_leaves_the_gradient_of_the_costs(self):
        _, _, _, X, Y = inputs()
        grad = torch.autograd.grad(nn.SparseTransportLoss(budget=6, unbalanced=1.0, fixed_kernel=True)(X, Y), X)[0]
        kernels = nn.gram_matrix("median", X.detach()), nn.gram_matrix("median", Y.detach())
        plan = nn.sparse_transport(nn.cost_matrix(X, Y), kernels=kernels, unbalanced=1.0, budget=6).plan.detach()
        torch.testing.assert_close(grad, 2.0 * (plan.sum(1)[:, None] * X - plan @ Y).detach())

    def test_it_draws_ordinary_embeddings_together_as_it_is(self):
        """The default λ is "auto", which knows the scale of the costs: one is nothing in 64 dimensions."""
        torch.manual_seed(0)
        x, y = torch.randn(64, 64).requires_grad_(), torch.randn(64, 64) + 0.5
        loss = nn.SparseTransportLoss(budget=128, fixed_kernel=True)
        loss(x, y).backward()
        target = st.Problem.from_points(x.detach().numpy(), y.numpy(), kernels="median")
        np.testing.assert_allclose(loss.results[0].log["unbalanced"], target.unbalanced, rtol=1e-5)
        assert loss.results[0].rows.size >= 64
        assert (x.grad * (x - y.mean(0))).sum() > 0.0, "downhill is towards y"
        scaled = loss(10.0 * x, 10.0 * y)
        torch.testing.assert_close(scaled, 100.0 * loss(x, y), rtol=1e-4, atol=0.0)

    @pytest.mark.parametrize("options", [{}, {"reclaim": False}, {"budget": None}, {"warm_start": True}], ids=str)
    def test_a_loss_that_is_dead_says_so_once(self, options):
        torch.manual_seed(0)
        x, y = torch.randn(2, 20, 64), torch.randn(2, 20, 64) + 0.5
        x[1] *= 0.01
        y[1] *= 0.01
        loss = nn.SparseTransportLoss(**{"budget": 20, "unbalanced": 1.0, "fixed_kernel": True} | options)
        with pytest.warns(st.SparseTransportWarning, match="^1 of 2 plans are empty.*raise unbalanced") as caught:
            loss(x, y)
        assert caught[0].filename == __file__
        loss(x, y)  # a warning would be an error here
        with pytest.warns(st.SparseTransportWarning, match="^the plan is empty"):
            nn.SparseTransportLoss(**{"budget": 20, "unbalanced": 1.0} | options)(x[0], y[0])

    def test_there_is_nothing_to_say_where_no_mass_is_asked_for(self):
        x = torch.randn(5, 2)
        assert nn.SparseTransportLoss(budget=3)(x, x, torch.zeros(5), torch.zeros(5)) == 0.0

    def test_a_problem_does_not_depend_on_its_neighbours(self):
        """Each has a bandwidth and a λ of its own."""
        torch.manual_seed(0)
        X, Y = torch.randn(6, 15, 3), torch.randn(6, 12, 3)
        X[0] *= 100.0
        for unbalanced in ("auto", 1e5):
            loss = nn.SparseTransportLoss(budget=8, unbalanced=unbalanced, reduction="none", effort="quick")
            torch.testing.assert_close(loss(X, Y), torch.stack([loss(x, y) for x, y in zip(X, Y, strict=True)]))

    @pytest.mark.parametrize("warm_start", [False, True])
    def test_clouds_of_different_sizes_come_as_lists(self, warm_start):
        """Values, gradients and results are those of one after the other; masses may be left out for some."""
        rng = np.random.default_rng(0)
        sizes = [(5, 7), (8, 4), (3, 3)]
        xs, ys = ([torch.tensor(rng.normal(size=(pair[k], 2)), requires_grad=True) for pair in sizes] for k in (0, 1))
        masses = [None, torch.full((8,), 0.2, dtype=torch.float64), None]
        options = {"budget": 4, "unbalanced": 20.0}
        alone = [nn.SparseTransportLoss(**options)(x, y, a) for x, y, a in zip(xs, ys, masses, strict=True)]
        loss = nn.SparseTransportLoss(**options, reduction="none", warm_start=warm_start)
        for _ in range(2):
            together = loss(xs, ys, masses)
            assert torch.allclose(together, torch.stack(alone))
        assert [result.plan.shape for result in loss.results] == sizes
        wanted = torch.autograd.grad(sum(alone), xs)
        for mine, theirs in zip(torch.autograd.grad(together.sum(), xs), wanted, strict=True):
            assert torch.allclose(mine, theirs)

    def test_a_batch_may_share_one_side(self):
        _, _, _, X, Y = inputs(batch=(3,))
        loss, one = nn.SparseTransportLoss(budget=5, reduction="sum"), Y[0].detach().requires_grad_()
        shared, copied = loss(X, one), loss(X, one.expand(3, -1, -1))
        torch.testing.assert_close(shared, copied)
        for mine, theirs in zip(*(torch.autograd.grad(value, (X, one)) for value in (shared, copied)), strict=True):
            torch.testing.assert_close(mine, theirs)

    def test_results_of_the_last_call_are_kept_but_not_copied(self):
        _, _, _, X, Y = inputs(batch=(3,))
        loss = nn.SparseTransportLoss(budget=5, reduction="none")
        assert loss.results == []
        value = loss(X, Y)
        assert [result.value for result in loss.results] == value.tolist()
        assert all(isinstance(result.status, st.Status) and result.gap >= 0.0 for result in loss.results)
        assert copy.deepcopy(loss).results == []
        assert len(loss.results) == 3
        loss(X[0], Y[0])
        assert len(loss.results) == 1

    def test_its_text_says_what_it_was_made_with(self):
        assert "budget=7, kernels='median', unbalanced='auto'" in repr(nn.SparseTransportLoss(budget=7))


class TestBadInput:
    def test_costs(self):
        with pytest.raises(TypeError, match="C must be a tensor, got ndarray"):
            nn.sparse_transport(np.ones((2, 2)))
        with pytest.raises(ValueError, match=r"C must have at least 2 dimensions, got shape \(3,\)"):
            nn.sparse_transport(torch.ones(3))
        with pytest.raises(ValueError, match=r"C must not be empty"):
            nn.sparse_transport(torch.ones(0, 3))
        with pytest.raises(ValueError, match="C must be finite or"):
            nn.sparse_transport(torch.tensor([[float("nan")]]))
        with pytest.raises(TypeError, match="C must hold real numbers"):
            nn.sparse_transport(torch.ones(2, 2, dtype=torch.complex64))

    def test_masses_and_kernels(self):
        C = torch.ones(4, 2, 3)
        with pytest.raises(ValueError, match=r"a must have shape \(4, 2\), got \(3,\)"):
            nn.sparse_transport(C, torch.ones(3))
        with pytest.raises(ValueError, match=r"kernels\[1\] must have shape \(4, 3, 3\), got \(2, 2\)"):
            nn.sparse_transport(C, kernels=(st.Delta(), torch.eye(2)))
        with pytest.raises(TypeError, match="kernels must be tensors or Delta"):
            nn.sparse_transport(C, kernels=st.RBF())
        with pytest.raises(ValueError, match="a must not be negative"):
            nn.sparse_transport(C, -torch.ones(2))

    def test_points(self):
        x = torch.ones(4, 3)
        for function in (nn.cost_matrix, nn.SparseTransportLoss()):
            with pytest.raises(TypeError, match=r"^x must be a tensor, got ndarray$"):
                function(x.numpy(), x)
            with pytest.raises(TypeError, match=r"^y must be a tensor, got ndarray$"):
                function(x, x.numpy())
            with pytest.raises(ValueError, match=r"^x and y must have the same number of features, got 3 and 2$"):
                function(x, torch.ones(4, 2))
            with pytest.raises(ValueError, match=r"^y must have at least 2 dimensions, got shape \(3,\)$"):
                function(x, x[0])
            with pytest.raises(ValueError, match=r"^x must not be empty, got shape \(0, 3\)$"):
                function(x[:0], x)
            with pytest.raises(ValueError, match=r"^x and y must have equal batch dimensions, got \(2,\) and \(3,\)$"):
                function(x.expand(2, 4, 3), x.expand(3, 4, 3))
        with pytest.raises(TypeError, match=r"^points must be a tensor, got ndarray$"):
            nn.gram_matrix("rbf", x.numpy())
        with pytest.raises(ValueError, match=r"^points must have at least 2 dimensions"):
            nn.gram_matrix("delta", x[0])

    def test_a_zero_vector_has_no_cosine(self):
        """Neither here nor in NumPy: a cost of one would be made up."""
        x = torch.ones(2, 4, 3)
        bad = x.index_put((torch.tensor([1]), torch.tensor([2])), torch.zeros(3))
        for function in (lambda *points: nn.cost_matrix(*points, "cosine"), nn.SparseTransportLoss(metric="cosine")):
            with pytest.raises(ValueError, match=r"^x has the zero vector at row 2: its cosine is not defined$"):
                function(bad[1], x[0])
            with pytest.raises(ValueError, match=r"^problem 1 of the batch: y has the zero vector at row 2"):
                function(x, bad)
        with pytest.raises(ValueError, match="X has the zero vector at row 2: its cosine is not defined"):
            st.cost_matrix(bad[1], x[0], "cosine")

    def test_the_loss(self):
        with pytest.raises(ValueError, match="reduction must be one of"):
            nn.SparseTransportLoss(reduction="median")
        with pytest.raises(ValueError, match="same number of features, got 2 and 3"):
            nn.SparseTransportLoss()(torch.ones(4, 2), torch.ones(4, 3))

    @pytest.mark.parametrize(
        "clouds",
        [
            ([torch.ones(4, 2)], [torch.ones(4, 2)] * 2),
            ([torch.ones(4, 2)] * 2, [torch.ones(4, 2)] * 2, [None]),
            ([torch.ones(4, 2)] * 2, [torch.ones(4, 2)] * 2, None, torch.ones(2, 4)),
            ([], []),
            ([torch.ones(4, 2)], torch.ones(1, 4, 2)),
        ],
    )
    def test_lists_that_do_not_match(self, clouds):
        with pytest.raises(ValueError, match="must be a list with one tensor for every problem"):
            nn.SparseTransportLoss()(*clouds)

    def test_points_that_are_not_finite(self):
        """The most common fault of a training: it is the points that are named, not costs that nobody gave."""
        x, y = torch.ones(2, 4, 3), torch.zeros(2, 5, 3)
        y[1, 2, 0] = torch.nan
        loss = nn.SparseTransportLoss(budget=3)
        with pytest.raises(ValueError, match=r"^y must be finite, got nan at \(1, 2, 0\)$"):
            loss(x, y)
        with pytest.raises(ValueError, match=r"^y must be finite, got nan at \(2, 0\)$"):
            loss(list(x), list(y))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"budgets": 3}, "^unknown option budgets: help"),
            ({"kernel": st.RBF()}, "^unknown option kernel \\(kernel is called kernels here\\)"),
            ({"method": "opm"}, "method must be one of"),
            ({"budget": -1}, "budget must be"),
            ({"gap_tol": -0.1}, "gap_tol must be a positive number, got -0.1"),
            ({"start": np.ones((2, 3), int)}, "start must be a Result, a plan of floats or a list of pairs"),
            ({"metric": "euclid"}, "metric must be one of 'sqeuclidean', 'euclidean', 'cosine', got 'euclid'"),
            ({"kernels": "gauss"}, r"kernels\[0\] must be one of"),
            ({"kernels": ("rbf", "imq", "delta")}, "kernels must be one value for both sides or a pair, got 3 values"),
            ({"kernels": ("rbf", "gauss")}, r"kernels\[1\] must be one of"),
            ({"unbalanced": 0.0}, "unbalanced must be a positive number, got 0.0"),
            (
                {"unbalanced": "automatic"},
                "unbalanced must be .*, got 'automatic'",
            ),
            ({"reg": -1.0}, "reg must be a number that is not negative, got -1.0"),
        ],
    )
    def test_the_loss_notices_at_once_what_it_cannot_use(self, options, message):
        """A wrong or misspelt option is an error where the loss is made, not in the first step of the training."""
        with pytest.raises((TypeError, ValueError), match=message):
            nn.SparseTransportLoss(**options)

    def test_the_loss_takes_a_start_for_every_problem(self):
        X, Y = torch.rand(2, 5, 2), torch.rand(2, 4, 2)
        loss = nn.SparseTransportLoss(budget=3)
        starts = [st.solve_sample(x.numpy(), y.numpy(), budget=3, kernels="median") for x, y in zip(X, Y, strict=True)]
        assert nn.SparseTransportLoss(budget=3, start=starts)(X, Y) <= loss(X, Y) * 1.01


def test_a_gram_matrix_of_the_usual_formula_in_single_precision_is_taken():
    """Rounding makes exp(-cdist²/2) lopsided by a bit; a matrix that is lopsided by more is refused, in its place."""
    torch.manual_seed(0)
    z, cost = torch.randn(2, 200, 5), torch.rand(2, 200, 200)
    gram = torch.exp(-(torch.cdist(z, z) ** 2) / 2).requires_grad_()
    assert 0.0 < (gram - gram.mT).abs().max() < 1e-6
    _, value = nn.sparse_transport(cost, kernels=gram, budget=20)
    value.sum().backward()
    torch.testing.assert_close(gram.grad, gram.grad.mT)
    single = nn.sparse_transport(cost[0], kernels=gram[0].detach(), budget=20).value
    torch.testing.assert_close(single, value[0].detach())
    bad = gram.detach().clone()
    bad[1, 3, 4] += 0.01
    with pytest.raises(ValueError, match=r"problem 1 of the batch: kernels\[0\] must be symmetric.*0\.01"):
        nn.sparse_transport(cost, kernels=bad, budget=20)


def test_a_bad_entry_of_a_batch_is_found():
    """The error names the problem of the batch, by all leading dimensions; what concerns all names none."""
    cost = torch.rand(2, 3, 4, 5)
    cost[1, 2, 0, 1] = torch.nan
    with pytest.raises(ValueError, match=r"^problem 1, 2 of the batch: C must be finite or \+inf, got nan at \(0, 1\)"):
        nn.sparse_transport(cost)
    with pytest.raises(ValueError, match=r"^C must be finite"):
        nn.sparse_transport(cost[1, 2])
    with pytest.raises(ValueError, match=r"^unbalanced must be"):
        nn.sparse_transport(cost, unbalanced=0.0)
    with pytest.raises(ValueError, match=r"^reg must be"):
        nn.sparse_transport(cost, reg=-1.0)


def test_losses_may_be_part_of_a_compiled_model():
    loss = nn.SparseTransportLoss(budget=4, unbalanced=10.0)
    x, y = torch.randn(6, 2, requires_grad=True), torch.randn(5, 2)
    torch._dynamo.reset()
    value = torch.compile(loss, backend="eager")(x, y)
    torch.testing.assert_close(value, loss(x, y))
    value.backward()
    assert x.grad.abs().sum() > 0.0


def test_costs_do_not_lose_their_digits_under_autocast():
    x = torch.randn(5, 32)
    y = x + 0.01 * torch.randn(5, 32)
    for metric in ("sqeuclidean", "cosine"):
        exact = nn.cost_matrix(x, y, metric)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            torch.testing.assert_close(nn.cost_matrix(x, y, metric), exact)


def test_threads_share_no_generator():
    with pytest.raises(TypeError, match="rng must be a seed"):
        nn.sparse_transport(torch.rand(3, 4, 4), budget=3, method="stochastic", rng=np.random.default_rng(0))


def test_a_problem_without_a_minimum_is_named():
    blind = torch.zeros(2, 2, dtype=torch.float64)
    costs = torch.stack([torch.ones(2, 2), -torch.ones(2, 2)]).double()
    with pytest.raises(st.UnboundedError, match="problem 1 of the batch"):
        nn.sparse_transport(costs, kernels=blind, unbalanced=1.0)


def test_a_problem_does_not_depend_on_the_rest_of_its_batch():
    """In single precision too, where Gram matrices get a ridge: each by its own diagonal."""
    C = torch.rand(2, 5, 5, generator=torch.Generator().manual_seed(0))
    grams = torch.stack([torch.eye(5), 1e6 * torch.eye(5)])
    together = nn.sparse_transport(C, kernels=(grams, grams), unbalanced=1.0, budget=5)
    alone = nn.sparse_transport(C[0], kernels=(grams[0], grams[0]), unbalanced=1.0, budget=5)
    torch.testing.assert_close(together.value[0], alone.value)
    torch.testing.assert_close(together.plan[0], alone.plan)


def test_a_ridge_that_changes_the_problem_is_not_kept_quiet():
    C, gram = torch.rand(20, 20), torch.eye(20)
    with pytest.warns(st.SparseTransportWarning, match="20 points in bfloat16 gets a ridge of 0.16 times") as caught:
        nn.sparse_transport(C, kernels=gram.bfloat16(), unbalanced=1.0, budget=5)
    assert caught[0].filename == __file__, "at the line that called, not in torch"
    nn.sparse_transport(C, kernels=gram, unbalanced=1.0, budget=5)


@pytest.mark.parametrize("name", ["unbalanced", "reg"])
def test_weights_that_need_a_gradient_are_refused(name):
    weight = torch.nn.Parameter(torch.tensor(2.0))
    given = {"unbalanced": 1.0, name: weight}
    with pytest.raises(TypeError, match=f"{name} must not require a gradient"):
        nn.sparse_transport(torch.rand(3, 3), budget=3, **given)
    with pytest.raises(TypeError, match=f"{name} must not require a gradient"):
        nn.SparseTransportLoss(budget=3, **given)
    with pytest.raises(TypeError, match="unbalanced must not require a gradient"):
        nn.SparseTransportLoss(budget=3, unbalanced=(1.0, weight))
    nn.sparse_transport(torch.rand(3, 3), budget=3, **given | {name: weight.detach()})


@pytest.mark.parametrize(("x", "y"), [((4, 0), (4, 0)), ((0, 2), (4, 2))])
def test_empty_points_are_refused_by_name(x, y):
    with pytest.raises(ValueError, match="x must not be empty, got shape"):
        nn.SparseTransportLoss()(torch.zeros(x), torch.zeros(y))


def test_options_of_a_batch_are_those_of_a_problem():
    """However many problems a thread gets: None is the default, and what is no option of `solve` is none here."""
    costs = torch.rand(5, 3, 4)
    assert nn.sparse_transport(costs, budget=2, callback=None, start=None, progress=False).plan.shape == (5, 3, 4)
    for options in ({"n_jobs": 2}, {"on_error": "record"}):
        with pytest.raises(TypeError, match="unknown option"):
            nn.sparse_transport(costs, **options)
    with pytest.raises(TypeError, match="budget must be"):
        nn.sparse_transport(costs, budget=min)
