"""Routers for mixtures of experts: gate logits in, experts and combine weights out."""

import math
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from .. import _checks
from ..geometry.kernels import Delta, IMQv2, Kernel, as_kernel
from .assignment import Assignment, Setting, assign, choose
from .geometry import gram_matrix
from .graphs import GraphCache

_NOISE = {"uniform": torch.rand_like, "normal": torch.randn_like}
_INFERENCE = dict.fromkeys(("topk", "prices", "transport"))


class Routing(NamedTuple):
    """The result of a router."""

    experts: Tensor
    """Of shape (..., k): the experts of every token, all different."""
    weights: Tensor
    """Of shape (..., k): the weights of their outputs; gradients reach the gate through them."""
    load: Tensor
    """Of shape (m,): the number of tokens of each expert."""
    loss: Tensor
    """The load-balancing loss, a scalar; gradients reach the gate through it too."""


class Router(torch.nn.Module):
    r"""The base class of all routers: checks, noise, combine weights and the load-balancing loss.

    Weights are the gate's softmax at the chosen experts, normalised over them if k > 1, in single precision. A batch
    may have no tokens. The load-balancing loss is that of Switch Transformers, :math:`m \sum_i f_i \bar{p}_i` with the
    share of tokens :math:`f_i` and the mean probability :math:`\bar{p}_i` of expert i; it is one if all are equal. A
    subclass implements ``choose``.

    Parameters
    ----------
    num_experts : int
    k : int
        The number of experts for each token.
    noise : {"uniform", "normal"}, optional
        Noise added to the logits in training, only for the choice of experts: uniform in [0, 1) or standard normal,
        from PyTorch's global generator.
    noise_scale : float
        The factor of the noise.
    check : bool
        Raise an error for logits that are not finite in single precision, which routers compute in. The check waits for
        the device, as sending tokens to experts does anyway, and breaks the graph of ``torch.compile``.
    """

    def __init__(
        self, num_experts: int, k: int = 1, *, noise: str | None = None, noise_scale: float = 1.0, check: bool = True
    ) -> None:
        super().__init__()
        self.num_experts = _checks.positive_int("num_experts", num_experts)
        self.k = _checks.positive_int("k", k)
        if self.k > self.num_experts:
            raise ValueError(f"k must be at most num_experts = {num_experts}, got {k}")
        if noise is not None:
            _checks.choice("noise", noise, _NOISE)
        self.noise, self.noise_scale = noise, _checks.number("noise_scale", noise_scale, positive=False)
        self.check = _checks.flag("check", check)

    def extra_repr(self) -> str:
        """The settings of the module."""
        scale = "" if self.noise is None else f", noise_scale={self.noise_scale:g}"
        return f"num_experts={self.num_experts}, k={self.k}, noise={self.noise!r}{scale}"

    def choose(self, probabilities: Tensor, features: Tensor | None) -> Tensor:
        """The experts, of shape (n, k), for probabilities of shape (n, m) in single precision."""
        raise NotImplementedError

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Routing:
        """Route tokens with logits of shape (..., m) and, if the router uses them, features of shape (..., d)."""
        flat = self._checked(logits)
        tokens = None if features is None else self._features(features, logits)
        with torch.autocast(flat.device.type, enabled=False):
            single = flat.float()
            clean, n = single.softmax(1), max(len(flat), 1)
            with torch.no_grad():
                noisy = single.detach()
                if self.training and self.noise is not None:
                    noisy = noisy + self.noise_scale * _NOISE[self.noise](noisy)
                experts = self.choose(noisy.softmax(1), tokens) if len(flat) else flat.new_zeros(0, self.k).long()
            # The softmax over the chosen experts equals the normalised one over all, and does not underflow.
            weights = single.gather(1, experts).softmax(1) if self.k > 1 else clean.gather(1, experts)
            counts = torch.zeros(self.num_experts, dtype=torch.int64, device=flat.device)
            load = counts.index_add(0, experts.flatten(), torch.ones_like(experts.flatten()))
            loss = (load * clean.sum(0)).sum() * (self.num_experts / (n * n * self.k))
        shape = (*logits.shape[:-1], self.k)
        return Routing(experts.reshape(shape), weights.reshape(shape).to(logits.dtype), load, loss)

    def _checked(self, logits: Tensor) -> Tensor:
        if not isinstance(logits, Tensor) or not logits.is_floating_point():
            raise TypeError(f"logits must be a tensor of floats, got {getattr(logits, 'dtype', type(logits).__name__)}")
        if logits.ndim < 2 or logits.shape[-1] != self.num_experts:
            raise ValueError(f"logits must have shape (..., {self.num_experts}), got {tuple(logits.shape)}")
        flat = logits.reshape(-1, self.num_experts)
        if self.check:
            finite = torch.isfinite(flat.detach().float())  # the precision of routers
            if not bool(finite.all()):
                token, expert = torch.nonzero(~finite)[0].tolist()
                value = flat[token, expert].item()
                rule = "finite in single precision" if math.isfinite(value) else "finite"
                raise ValueError(f"logits must be {rule}, got {value} at token {token}, expert {expert}")
        return flat

    def _features(self, features: Tensor, logits: Tensor) -> Tensor:
        lead = tuple(logits.shape[:-1])
        if not isinstance(features, Tensor) or tuple(features.shape[: len(lead)]) != lead or features.ndim <= len(lead):
            shown = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
            raise ValueError(f"features must have shape ({', '.join(map(str, lead))}, ...), one a token, got {shown}")
        return features.detach().flatten(0, len(lead) - 1).flatten(1)


class TopKRouter(Router):
    """The k most probable experts of every token, whatever their load.

    Parameters
    ----------
    num_experts, k, noise, noise_scale, check
        As in `Router`.

    Examples
    --------
    >>> import torch
    >>> from sparsetransport import nn
    >>> routing = nn.TopKRouter(3, k=2)(torch.tensor([[0.0, 2.0, 1.0], [3.0, 2.0, 1.0]]))
    >>> routing.experts.tolist(), routing.load.tolist()
    ([[1, 2], [0, 1]], [1, 2, 1])
    """

    def choose(self, probabilities: Tensor, features: Tensor | None) -> Tensor:
        """The k most probable experts."""
        return probabilities.topk(self.k, dim=1).indices


class NoisyTopKRouter(TopKRouter):
    """The top k of logits with normal noise in training (Shazeer et al., 2017), to be used with the balancing loss.

    Parameters
    ----------
    num_experts, k, noise_scale, check
        As in `Router`.

    Examples
    --------
    >>> import torch
    >>> from sparsetransport import nn
    >>> _ = torch.manual_seed(0)
    >>> nn.NoisyTopKRouter(4)(torch.zeros(100, 4)).load.min() > 10
    tensor(True)
    """

    def __init__(self, num_experts: int, k: int = 1, *, noise_scale: float = 1.0, check: bool = True) -> None:
        super().__init__(num_experts, k, noise="normal", noise_scale=noise_scale, check=check)


class TransportRouter(Router):
    """The base class of routers by transport, which choose experts by a plan between experts and the batch of tokens.

    ``inference`` is the choice in ``eval`` mode, where a token's experts should not depend on the rest of its batch:
    "topk" is the plain top k; "transport" computes a plan as in training, as in the paper.
    """

    modes = dict.fromkeys(("topk", "transport"))

    def __init__(self, num_experts: int, k: int, *, capacity_factor: float, inference: str, **options: Any) -> None:
        super().__init__(num_experts, k, **options)
        self.capacity_factor = _checks.number("capacity_factor", capacity_factor, positive=True)
        _checks.choice("inference", inference, self.modes)
        self.inference = inference

    def extra_repr(self) -> str:
        """The settings of the module."""
        return f"{super().extra_repr()}, capacity_factor={self.capacity_factor:g}, inference={self.inference!r}"

    def choose(self, probabilities: Tensor, features: Tensor | None) -> Tensor:
        """By transport in training, by ``inference`` in evaluation."""
        if not self.training and self.inference == "topk":
            return probabilities.topk(self.k, dim=1).indices
        return self.transport(probabilities, features)

    def transport(self, probabilities: Tensor, features: Tensor | None) -> Tensor:
        """The experts chosen by a plan for the whole batch."""
        raise NotImplementedError

    def capacities(self, probabilities: Tensor) -> tuple[Tensor, Tensor]:
        """The masses of the two sides: the capacity of each expert, and one for each token."""
        n, m = probabilities.shape
        return probabilities.new_full((m,), self.capacity_factor * n / m), probabilities.new_ones(n)


class SparseTransportRouter(TransportRouter):
    r"""At most k experts for each token by sparse transport, with balanced loads and no balancing loss.

    The plan minimises, over the tokens of the batch,

    .. math::
        \langle C, \gamma\rangle + \lambda\|\gamma 1 - a\|^2 + \lambda\|\gamma^\top 1 - b\|^2_G
        + \tfrac{\lambda_2}{2}\|\gamma\|^2, \qquad C = -\mathrm{softmax}^\top / \max,

    with at most k entries for each token, where ``a`` is the capacity of each expert, ``b`` is one for each token, and
    G is the Gram matrix of the tokens' features. It is solved on the device of the logits, as described in
    `sparsetransport.nn.assignment`. The experts of a token depend on the experts' prices alone; the kernel only affects
    the masses. A mixture of experts needs the experts alone; `plan` returns both.

    Parameters
    ----------
    num_experts, k
        As in `Router`.
    kernel : kernel or name
        The kernel between tokens, in `plan`; `IMQv2` by default. `Delta` needs no features.
    unbalanced : float
        λ: 0.1 lets loads differ by a few tokens where the gate has strong preferences, 10 or more makes them equal.
    reg : float
        λ₂.
    capacity_factor : float
        The capacity of each expert is this times n / m, in the masses of `plan`. No token is dropped, and since all
        experts have the same capacity, the choice of experts does not depend on it.
    inference : {"topk", "prices", "transport"}
        The choice in ``eval`` mode. "topk" is the plain top k of the gate. "prices" takes the top k of the
        probabilities minus the running mean of the experts' prices in training: a token's experts do not depend on
        other tokens, and loads stay balanced unless the probabilities are small compared with the prices. "transport"
        computes a plan for the batch as in training, as in the paper: a token's experts depend on the other tokens of
        the batch, but not on their order.
    momentum : float
        The momentum of the running mean of the prices.
    price_steps, repair_rounds, mass_steps : int
        The numbers of steps of the solver. For a gate that is nearly certain, very uneven and has hundreds of experts,
        more ``repair_rounds`` make loads more even.
    graphs : bool
        Replay the solver as a CUDA graph, one for each batch size.
    noise, noise_scale, check
        As in `Router`.

    Examples
    --------
    >>> import torch
    >>> from sparsetransport import nn
    >>> _ = torch.manual_seed(0)
    >>> logits, features = torch.randn(64, 4) + torch.tensor([2.0, 0.0, 0.0, 0.0]), torch.randn(64, 8)
    >>> nn.TopKRouter(4)(logits).load.tolist()
    [52, 4, 5, 3]
    >>> nn.SparseTransportRouter(4, unbalanced=10.0)(logits, features).load.tolist()
    [16, 16, 16, 16]
    """

    modes = _INFERENCE
    prices: Tensor
    batches: Tensor

    def __init__(
        self,
        num_experts: int,
        k: int = 1,
        *,
        kernel: Any = None,
        unbalanced: float = 0.1,
        reg: float = 10.0,
        capacity_factor: float = 1.0,
        inference: str = "topk",
        momentum: float = 0.99,
        price_steps: int = 60,
        repair_rounds: int = 32,
        mass_steps: int = 10,
        graphs: bool = True,
        noise: str | None = None,
        noise_scale: float = 1.0,
        check: bool = True,
    ) -> None:
        super().__init__(
            num_experts,
            k,
            capacity_factor=capacity_factor,
            inference=inference,
            noise=noise,
            noise_scale=noise_scale,
            check=check,
        )
        self.kernel: Kernel = IMQv2("median") if kernel is None else as_kernel("kernel", kernel)
        self.setting = Setting(
            self.k,
            _checks.number("unbalanced", unbalanced, positive=True),
            _checks.number("reg", reg, positive=True),
            _checks.positive_int("price_steps", price_steps),
            _checks.positive_int("repair_rounds", repair_rounds),
            _checks.positive_int("mass_steps", mass_steps),
        )
        self.momentum = _checks.number("momentum", momentum, positive=False)
        if self.momentum >= 1.0:
            raise ValueError(f"momentum must be below 1, got {momentum}")
        self._graphs: GraphCache | None = GraphCache() if _checks.flag("graphs", graphs) else None
        self._weights = torch.zeros(0)
        self.register_buffer("prices", torch.zeros(self.num_experts, dtype=torch.float32))
        self.register_buffer("batches", torch.zeros((), dtype=torch.float32))

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Move the buffers with the model, but keep them in single precision.

        A running mean of prices and a count of batches would stop changing in half precision.
        """
        kept = {name: self._buffers[name] for name in ("prices", "batches")}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, before in kept.items():
            after = self._buffers[name]
            if before is not None and after is not None and after.dtype != before.dtype:
                self._buffers[name] = before.to(after.device)
        return self

    def extra_repr(self) -> str:
        """The settings of the module."""
        weights = f"unbalanced={self.setting.unbalanced:g}, reg={self.setting.reg:g}"
        return f"{super().extra_repr()}, kernel={self.kernel}, {weights}"

    def choose(self, probabilities: Tensor, features: Tensor | None) -> Tensor:
        """By transport in training, by ``inference`` in evaluation."""
        if not self.training and self.inference == "prices":
            mean = self.prices / (1.0 - self.momentum**self.batches).clamp_min(1e-12)
            return (probabilities - mean).topk(self.k, dim=1).indices
        return super().choose(probabilities, features)

    def transport(self, probabilities: Tensor, features: Tensor | None) -> Tensor:
        """The experts chosen by the router's problem; updates the running prices in training."""
        inputs = probabilities, self._order(probabilities, features)
        if self._graphs is None:
            experts, prices = self._choose(*inputs)
        else:
            experts, prices = self._graphs((self.setting, self.capacity_factor), self._choose, *inputs)
        if self.training:
            self.prices.lerp_(prices.to(self.prices.dtype), 1.0 - self.momentum)
            self.batches.add_(1.0)
        return experts

    def _choose(self, probabilities: Tensor, order: Tensor) -> tuple[Tensor, ...]:
        """Experts, and prices in units of probability, since the scale differs between batches."""
        scale = probabilities.amax()
        experts, prices = choose(probabilities / scale, *self.capacities(probabilities), order, self.setting)
        return experts, torch.nan_to_num(prices * scale, 0.0, 0.0, 0.0)  # a bad batch must not spoil the running mean

    @torch.no_grad()
    def plan(self, logits: Tensor, features: Tensor | None = None) -> Assignment:
        """The whole plan for a batch: the experts of every token as in training, their masses, and the prices.

        `forward` does not compute the masses, which a mixture does not need, and so does not use the kernel.

        Parameters
        ----------
        logits : tensor of shape (..., m)
        features : tensor of shape (..., d), optional
            The features that the kernel compares; `Delta` needs none.

        Returns
        -------
        Assignment
            ``experts`` and ``mass`` of shape (..., k), and ``prices`` of shape (m,), in units of the largest
            probability. The experts of a token are sorted by its probability minus the price of the expert, the best
            one first; their masses need not be in that order.
        """
        probabilities = self._checked(logits).float().softmax(1)
        if not len(probabilities):
            raise ValueError(f"logits must hold at least one token, got shape {tuple(logits.shape)}")
        tokens = None if features is None else self._features(features, logits)
        if tokens is None and not isinstance(self.kernel, Delta):
            raise ValueError(f"features must be given for kernel={self.kernel}, got None; kernel=Delta() needs none")
        with torch.autocast(logits.device.type, enabled=False):
            gram = None if tokens is None else gram_matrix(self.kernel, tokens.float())
            values, sides = probabilities / probabilities.amax(), self.capacities(probabilities)
            found = assign(values, *sides, gram, self._order(probabilities, tokens), self.setting)
        shape = (*logits.shape[:-1], self.k)
        return found._replace(experts=found.experts.reshape(shape), mass=found.mass.reshape(shape))

    def _order(self, probabilities: Tensor, features: Tensor | None) -> Tensor:
        """Numbers that distinguish tokens and do not depend on their positions in the batch."""
        seen = probabilities if features is None else features
        if self._weights.shape != seen.shape[1:] or self._weights.device != seen.device:
            self._weights = torch.arange(1, seen.shape[1] + 1, device=seen.device, dtype=torch.float32).cos()
        return seen.float() @ self._weights  # plain sums would all be equal after a layer norm
