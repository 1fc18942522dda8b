"""A sparse mixture of experts: every expert processes only the tokens routed to it."""

from collections.abc import Iterable

import torch
from torch import Tensor

from .router import Router, Routing


class SparseMoE(torch.nn.Module):
    r"""A layer :math:`\sum_{r \in E(x)} w_r(x)\, \mathrm{expert}_r(x)` over the k experts E(x) that the router chose.

    Parameters
    ----------
    experts : modules
        Each takes a batch of tokens and returns one output for each token, all of the same shape.
    router : Router
    gate : module
        Logits of shape (n, m) from the tokens.

    Examples
    --------
    >>> import torch
    >>> from sparsetransport import nn
    >>> _ = torch.manual_seed(0)
    >>> experts = [torch.nn.Linear(8, 5) for _ in range(4)]
    >>> layer = nn.SparseMoE(experts, nn.SparseTransportRouter(4, k=2), torch.nn.Linear(8, 4))
    >>> output, routing = layer(torch.randn(32, 8))
    >>> output.shape, int(routing.load.sum())
    (torch.Size([32, 5]), 64)
    """

    def __init__(self, experts: Iterable[torch.nn.Module], router: Router, gate: torch.nn.Module) -> None:
        super().__init__()
        self.experts = torch.nn.ModuleList(experts)
        if len(self.experts) != router.num_experts:
            raise ValueError(f"experts must be num_experts = {router.num_experts} modules, got {len(self.experts)}")
        self.router, self.gate = router, gate

    def forward(self, tokens: Tensor, features: Tensor | None = None) -> tuple[Tensor, Routing]:
        """The output for the tokens, and the routing.

        Tokens have the leading dimensions of the gate's logits, such as (n, d) or (batch, length, d), and so have
        ``features``, which the router compares tokens by; the tokens themselves by default. All tokens are routed as
        one batch, so leave padding out: ``layer(tokens[mask])``.
        """
        routing = self.router(self.gate(tokens), tokens if features is None else features)
        return self.combine(tokens, routing), routing

    def combine(self, tokens: Tensor, routing: Routing) -> Tensor:
        """Send each expert its tokens and add up the weighted outputs."""
        lead, k = routing.experts.shape[:-1], self.router.k
        if tokens.shape[: len(lead)] != lead:
            raise ValueError(f"tokens must have shape ({', '.join(map(str, lead))}, ...), got {tuple(tokens.shape)}")
        flat = tokens.flatten(0, len(lead) - 1)
        order = routing.experts.flatten().argsort(stable=True)
        counts = routing.load.tolist()
        owner = order if k == 1 else order // k
        sent = torch.split(flat.index_select(0, owner), counts)
        answers = [expert(part) for expert, part in zip(self.experts, sent, strict=True) if len(part)]
        answer = torch.cat(answers or [self.experts[0](flat)])
        weight = routing.weights.flatten().index_select(0, order).to(answer.dtype)
        weighted = answer * weight.reshape(-1, *[1] * (answer.ndim - 1))
        output = weighted.new_zeros(len(flat), *answer.shape[1:]).index_add(0, owner, weighted)
        return output.reshape(*lead, *output.shape[1:])
