"""Routers by other kinds of transport, for comparison, solved on the CPU by the package's baselines."""

from typing import Any

import torch
from torch import Tensor

from .. import _checks, baselines
from ..geometry.kernels import Delta, IMQv2, as_kernel
from ..problem import Problem
from ..result import Result
from .router import TransportRouter


class _PlanRouter(TransportRouter):
    """The k largest entries of a plan for each token; where it has fewer, the most probable experts."""

    def __init__(
        self, num_experts: int, k: int = 1, *, capacity_factor: float = 1.0, inference: str = "topk", **options: Any
    ) -> None:
        super().__init__(num_experts, k, capacity_factor=capacity_factor, inference=inference, **options)

    def transport(self, probabilities: Tensor, features: Tensor | None) -> Tensor:
        """The experts chosen by the plan."""
        a, b = self.capacities(probabilities.double().cpu())
        value = (probabilities / probabilities.amax()).double().cpu()
        geometry = self.geometry(None if features is None else features.double().cpu())
        plan = torch.as_tensor(self.solve(Problem.from_matrices(-value.mT, a, b, **geometry)).plan).mT
        return (plan + 1e-9 * value).topk(self.k, dim=1).indices.to(probabilities.device)

    def geometry(self, features: Tensor | None) -> dict[str, Any]:
        """The arguments of the problem besides costs and masses."""
        return {"unbalanced": 1.0}

    def solve(self, problem: Problem) -> Result:
        """The plan."""
        raise NotImplementedError


class _RegularisedRouter(_PlanRouter):
    """A router whose plan has the weight ``reg``."""

    def __init__(self, num_experts: int, k: int = 1, *, reg: float = 1.0, **options: Any) -> None:
        super().__init__(num_experts, k, **options)
        self.reg = _checks.number("reg", reg, positive=True)

    def extra_repr(self) -> str:
        """The settings of the module."""
        return f"{super().extra_repr()}, reg={self.reg:g}"


class EntropicRouter(_RegularisedRouter):
    """Entropic transport (Clark et al., 2022): the top k of Sinkhorn's plan.

    Parameters
    ----------
    num_experts, k
        As in `Router`.
    reg : float
        ε, the weight of the entropy.
    **options
        ``capacity_factor``, ``inference`` ("topk" or "transport"), ``noise``, ``noise_scale`` and ``check``.

    Examples
    --------
    >>> import torch
    >>> from sparsetransport import nn
    >>> nn.EntropicRouter(2, reg=0.1)(torch.tensor([[3.0, 0.0], [1.0, 0.0]])).load.tolist()
    [1, 1]
    """

    def __init__(self, num_experts: int, k: int = 1, *, reg: float = 0.1, **options: Any) -> None:
        super().__init__(num_experts, k, reg=reg, **options)

    def solve(self, problem: Problem) -> Result:
        """Sinkhorn's plan."""
        return baselines.entropic_ot(problem, self.reg, max_iter=1000)


class KLRouter(_RegularisedRouter):
    """Entropic transport with Kullback-Leibler marginals.

    Parameters
    ----------
    num_experts, k
        As in `Router`.
    reg, reg_m : float
        ε and ρ: the weights of the entropy and of the marginals.
    **options
        As in `EntropicRouter`.

    Examples
    --------
    >>> import torch
    >>> from sparsetransport import nn
    >>> nn.KLRouter(2, reg=0.1, reg_m=10.0)(torch.tensor([[3.0, 0.0], [1.0, 0.0]])).load.tolist()
    [1, 1]
    """

    def __init__(self, num_experts: int, k: int = 1, *, reg: float = 0.1, reg_m: float = 1.0, **options: Any) -> None:
        super().__init__(num_experts, k, reg=reg, **options)
        self.reg_m = _checks.number("reg_m", reg_m, positive=True)

    def extra_repr(self) -> str:
        """The settings of the module."""
        return f"{super().extra_repr()}, reg_m={self.reg_m:g}"

    def solve(self, problem: Problem) -> Result:
        """The plan by unbalanced Sinkhorn iterations."""
        return baselines.kl_uot(problem, self.reg, self.reg_m, max_iter=1000)


class SSOTRouter(_RegularisedRouter):
    """Smooth and sparse transport (Blondel et al., 2018).

    Parameters
    ----------
    num_experts, k
        As in `Router`.
    reg : float
        The weight of the quadratic term.
    **options
        As in `EntropicRouter`.

    Examples
    --------
    >>> import torch
    >>> from sparsetransport import nn
    >>> nn.SSOTRouter(2, reg=0.1)(torch.tensor([[3.0, 0.0], [1.0, 0.0]])).load.tolist()
    [1, 1]
    """

    def solve(self, problem: Problem) -> Result:
        """The plan by L-BFGS on the dual."""
        return baselines.ssot(problem, self.reg, max_iter=1000)


class SCOTRouter(_RegularisedRouter):
    """Sparsity-constrained transport (Liu et al., 2023): at most k entries for each token, hard marginals.

    Parameters
    ----------
    num_experts, k
        As in `Router`.
    reg : float
        The weight of the quadratic term.
    **options
        As in `EntropicRouter`.

    Examples
    --------
    >>> import torch
    >>> from sparsetransport import nn
    >>> routing = nn.SCOTRouter(3, reg=1.0)(torch.randn(12, 3, generator=torch.Generator().manual_seed(0)))
    >>> int(routing.load.sum())
    12
    """

    def solve(self, problem: Problem) -> Result:
        """The plan by L-BFGS on the semi-dual and a sparse projection."""
        return baselines.scot(problem, self.k, self.reg, max_iter=1000)


class MMDRouter(_PlanRouter):
    """The k largest entries of the unbudgeted optimum of our objective (MMD-UOT).

    Parameters
    ----------
    num_experts, k
        As in `Router`.
    kernel : kernel or name
        The kernel between tokens; `IMQv2` by default. `Delta` needs no features.
    unbalanced, reg : float
        λ and λ₂.
    **options
        As in `EntropicRouter`.

    Examples
    --------
    >>> import torch
    >>> from sparsetransport import nn
    >>> logits = torch.tensor([[3.0, 0.0], [1.0, 0.0]])
    >>> nn.MMDRouter(2, unbalanced=10.0)(logits, torch.eye(2)).load.tolist()
    [1, 1]
    """

    def __init__(
        self,
        num_experts: int,
        k: int = 1,
        *,
        kernel: Any = None,
        unbalanced: float = 0.1,
        reg: float = 10.0,
        **options: Any,
    ) -> None:
        super().__init__(num_experts, k, **options)
        self.kernel = IMQv2("median") if kernel is None else as_kernel("kernel", kernel)
        self.unbalanced = _checks.number("unbalanced", unbalanced, positive=True)
        self.reg = _checks.number("reg", reg, positive=False)

    def extra_repr(self) -> str:
        """The settings of the module."""
        return f"{super().extra_repr()}, kernel={self.kernel}, unbalanced={self.unbalanced:g}, reg={self.reg:g}"

    def geometry(self, features: Tensor | None) -> dict[str, Any]:
        """`Delta` between experts, the kernel between tokens."""
        gram: Any = self.kernel
        if not isinstance(self.kernel, Delta):
            if features is None:
                raise ValueError(f"features must be given for kernel={self.kernel}, got None; Delta() needs none")
            gram = self.kernel.gram(features.numpy())
        return {"kernels": (Delta(), gram), "unbalanced": self.unbalanced, "reg": self.reg}

    def solve(self, problem: Problem) -> Result:
        """The unbudgeted optimum."""
        return baselines.mmd_uot(problem)
