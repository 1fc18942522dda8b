"""Steps 1 to 3 of `assignment` as a single Triton kernel, for batches that fit one multiprocessor.

The steps are many and small, so on a GPU their launches take most of the time; this needs one launch.
"""

import importlib.util

import torch
from torch import Tensor

_LARGEST = 8_192  # values, padded to powers of two
_WIDEST = 65_536  # values times experts: beyond that Triton compiles for up to a minute and a half
_MOST_EXPERTS_A_TOKEN = 4


def fits(values: Tensor, k: int) -> bool:
    """True if the Triton kernel supports these."""
    n, m = values.shape
    return (
        values.is_cuda
        and values.dtype == torch.float32
        and k <= _MOST_EXPERTS_A_TOKEN
        and _padded(n, 16) * _padded(m, 2) <= min(_LARGEST, _WIDEST // _padded(m, 2))
        and importlib.util.find_spec("triton") is not None
    )


def choose(
    values: Tensor,
    a: Tensor,
    share: Tensor,
    temperatures: Tensor,
    weights: Tensor,
    k: int,
    weight: float,
    rounds: int,
    least: float,
    gentlest: float,
    threshold_steps: int,
) -> tuple[Tensor, Tensor]:
    """The experts of every token, best first, and the prices: `find_prices`, the top k, and a repair in one launch.

    A round of this repair moves one token into each expert, while a round of `assignment.repair` sorts and moves many.
    Rounds are cheap here and their number is not fixed: the weight rises, or the loop ends, when no token moves.
    """
    from ._triton import route

    n, m = values.shape
    experts = torch.empty(n, k, dtype=torch.int64, device=values.device)
    prices = torch.empty_like(a)
    rows, cols = _padded(n, 16), _padded(m, 2)
    route[(1,)](
        values.contiguous(),
        a.contiguous(),
        share.contiguous(),
        temperatures,
        weights,
        experts,
        prices,
        n,
        m,
        weight,
        rounds * max(1, n * k // m),
        STEPS=len(temperatures),
        STAGES=len(weights),
        LEAST=least,
        GENTLEST=gentlest,
        THRESHOLD_STEPS=threshold_steps,
        K=k,
        N=rows,
        M=cols,
        num_warps=4 if rows * cols <= 2048 else 16,
    )
    return experts, prices


def _padded(size: int, least: int) -> int:
    """The next power of two."""
    return max(least, 1 << (size - 1).bit_length())
