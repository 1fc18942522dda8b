r"""The router's problem on any device: at most k experts for each token, in a fixed number of steps.

The problem is that of the package, with `Delta` between experts and a budget of k entries in each column:

.. math::
    \min_{\gamma \ge 0} -\langle V, \gamma\rangle + \lambda \|\gamma 1 - a\|^2 + \lambda \|\gamma^\top 1 - b\|^2_G
    + \tfrac{\lambda_2}{2}\|\gamma\|^2, \qquad V = -C.

In its dual a column's entries are the top k of :math:`V_{ij} - r_i - c_j`, and the order in a column does not depend on
:math:`c_j`. So the support is a function of the experts' prices r alone, m numbers with :math:`r = 2\lambda(\gamma 1 -
a)`. This is what is solved here, without a loop over entries:

1. *prices*: the top k is smoothed with a temperature that falls geometrically, and r takes a preconditioned step
   towards its equation at each;
2. *rounding*: the top k of V - r;
3. *repair*: tokens move to other experts while that lowers the objective, in each round as many as do not conflict
   (rounding misses the balanced loads by a few tokens, which is expensive for a large λ, and by many more where the
   gate is nearly certain, since many tokens then change experts at the same price);
4. *masses*: conjugate gradients on the support.

All shapes are fixed and nothing waits for the device, so that a CUDA graph can record all of it.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from . import _fused

_TIE = 1e-4  # of the spread of the values: the perturbation that breaks ties
_TINY = 1e-6
_LEAST = 1e-3  # of an expert's capacity: smaller loads count as this
_THRESHOLD_STEPS = 2
_GENTLEST = 0.05  # the least reaction of a load to its price that a step assumes
_SLIGHT = 0.1  # of the spread: the cost of one token too many at the start of `repair`
_STAGES = 6  # of the rising weight in the Triton kernel, which stays at each until no token moves
_GOLDEN = 0.6180339887498949


class Setting(NamedTuple):
    """The weights and the number of steps of each kind."""

    k: int
    unbalanced: float
    reg: float
    price_steps: int = 60
    repair_rounds: int = 32
    mass_steps: int = 10


class Assignment(NamedTuple):
    """The experts of every token, the masses there, and the experts' prices."""

    experts: Tensor  # (n, k), best first
    mass: Tensor  # (n, k)
    prices: Tensor  # (m,)


def assign(
    values: Tensor, a: Tensor, b: Tensor, gram: Tensor | None, order: Tensor, setting: Setting, *, fused: bool = True
) -> Assignment:
    """Solve the problem approximately.

    Parameters
    ----------
    values : tensor of shape (n, m)
        V transposed: what a token gains at an expert.
    a, b : tensors of shape (m,) and (n,)
        The mass that each expert should receive, and each token send.
    gram : tensor of shape (n, n), optional
        Between tokens; None for `Delta`.
    order : tensor of shape (n,)
        Any numbers that distinguish the tokens; ties are broken by their rank, so that permuting the tokens permutes
        the result.
    setting : Setting
    fused : bool
        Use the Triton kernel if it is available and the batch fits.
    """
    experts, prices = choose(values, a, b, order, setting, fused=fused)
    return Assignment(experts, find_masses(values, a, b, gram, experts, setting), prices)


def choose(
    values: Tensor, a: Tensor, b: Tensor, order: Tensor, setting: Setting, *, fused: bool = True
) -> tuple[Tensor, Tensor]:
    """The experts of every token, best first, and the experts' prices: steps 1 to 3, which need no Gram matrix."""
    m, k = values.shape[1], setting.k
    if k == m:
        return values.argsort(dim=1, descending=True, stable=True), values.new_zeros(m)
    # Loads are counted in entries, k of them for a unit of mass: integers, which are equal or differ by at least one.
    a, weight = k * a, 2.0 * setting.unbalanced / k
    told = break_ties(values - values.amax(1, keepdim=True), order)  # near zero digits are left for breaking ties
    heat = temperatures(told, setting.price_steps)
    if fused and _fused.fits(values, k):
        constants = _LEAST, _GENTLEST, _THRESHOLD_STEPS
        weights = rising_weights(told, b, weight, _STAGES)
        return _fused.choose(told, a, b, heat, weights, k, weight, setting.repair_rounds, *constants)
    prices = find_prices(told, a, b, heat, k, weight)
    experts = (told - prices).topk(k, dim=1).indices
    return repair(told, a, b, experts, weight, setting.repair_rounds), prices


def break_ties(values: Tensor, order: Tensor) -> Tensor:
    """Values perturbed by rank, so that tokens that are indifferent between experts prefer different ones."""
    m = values.shape[1]
    rank = order.argsort(stable=True).argsort()[:, None]
    expert = torch.arange(m, device=values.device)
    turn = ((rank + expert) % m).to(values.dtype)
    degree = ((rank + 1).to(values.dtype) * ((expert + 1).to(values.dtype) * _GOLDEN).frac()).frac()
    return values + (_TIE * _spread(values) + _TINY) / m * (turn + degree)


def _spread(values: Tensor) -> Tensor:
    """The mean difference between a token's values, over the tokens."""
    return (values.amax(1) - values.amin(1)).mean()


def temperatures(values: Tensor, steps: int) -> Tensor:
    """Temperatures from half the spread of the values down to where few tokens are undecided, even among ties."""
    spread = _spread(values) + _TINY
    last = max(2.0 * _TIE / len(values), 1e-6)
    fall = torch.linspace(0.0, 1.0, steps, device=values.device, dtype=values.dtype)
    return 0.5 * spread * (2.0 * last) ** fall


def find_prices(values: Tensor, a: Tensor, share: Tensor, heat: Tensor, k: int, weight: float) -> Tensor:
    """The experts' prices ``r = weight (load - a)``, for tokens that go to the top k of ``V - r``, smoothed ever less.

    At temperature T a load falls by at most the factor ``exp(-d/T)`` if its price rises by d. The step is Newton's
    method on the logarithm of ``load(r + d) = a + (r + d) / weight`` for each expert: close to Sinkhorn's as λ grows.
    """
    prices = torch.zeros_like(a)
    for temperature in heat:
        left = values - prices
        best = left.topk(k + 1, dim=1).values
        scaled = (left - 0.5 * (best[:, k - 1 : k] + best[:, k:])) / temperature
        chosen = torch.sigmoid(scaled)
        for _ in range(_THRESHOLD_STEPS):  # Newton's method for the threshold where the choices of a token add up to k
            slope = (chosen * (1.0 - chosen)).sum(1, keepdim=True).clamp_min(_LEAST)
            scaled = scaled - (chosen.sum(1, keepdim=True) - k) / slope
            chosen = torch.sigmoid(scaled)
        load = torch.maximum(share @ chosen, _LEAST * a)
        bend = ((share @ (chosen * (1.0 - chosen))) / load).clamp(_GENTLEST, 1.0)
        wanted = torch.maximum(a + prices / weight, _LEAST * a)
        prices = prices + torch.log(load / wanted) / (bend / temperature + 1.0 / (weight * wanted))
    return prices


def repair(values: Tensor, a: Tensor, share: Tensor, experts: Tensor, weight: float, rounds: int) -> Tensor:
    """Move tokens between experts while the objective falls, masses held fixed.

    With the excess p of the experts' loads over a, a move of mass x from expert e to f changes the objective by
    ``x (V_e - V_f + weight (p_f - p_e + x))``. Every round finds the best move of each token and makes all moves that
    lower the objective together, see `_together`. A large weight would send all tokens to the emptiest expert, so it
    begins where one token too many costs little compared with the values, and rises; the last third of the rounds has
    the full weight. The result is never worse than the given experts.
    """
    n, m = values.shape
    start = taken = torch.zeros(n, m, dtype=torch.bool, device=values.device).scatter_(1, experts, True)
    rising, heaviest = rounds - -(-rounds // 3), share.amax()
    weights = rising_weights(values, share, weight, rising)
    for turn in range(rounds):
        whole = turn >= rising
        taken = _repaired(values, a, share, heaviest, taken, weight if whole else weights[turn], 3 if whole else 1)
    before, after = (_cost(values, a, share, each, weight) for each in (start, taken))
    taken = torch.where(after <= before, taken, start)
    price = (values - weight * (share @ taken.to(values.dtype) - a)).masked_fill(~taken, -torch.inf)
    return price.topk(experts.shape[1], dim=1).indices


def rising_weights(values: Tensor, share: Tensor, weight: float, count: int) -> Tensor:
    """Weights at which a token too many costs from a tenth to the whole of the values' spread, or up to ``weight``."""
    climb = torch.linspace(0.0, 1.0, count, device=values.device, dtype=values.dtype)
    return (_SLIGHT ** (1.0 - climb) * (_spread(values) + _TINY) / share.amax()).clamp_max(weight)


def _repaired(
    values: Tensor, a: Tensor, share: Tensor, heaviest: Tensor, taken: Tensor, weight: Tensor | float, passes: int
) -> Tensor:
    """One round of `repair`."""
    n, m = values.shape
    excess = share @ taken.to(values.dtype) - a
    # A token leaves the worst of its experts, at present prices, and enters the best of the others.
    price = values - weight * excess
    ends = torch.stack([price.masked_fill(~taken, torch.inf).argmin(1), price.masked_fill(taken, -torch.inf).argmax(1)])
    left, entered = values.T.gather(0, ends)
    above = excess[ends]
    loss, room = left - entered, above[0] - above[1] - share  # apart: a large weight would lose the values in rounding
    ranks = (loss - weight * room).argsort(stable=True)
    ends = ends[:, ranks]
    goes = _together(loss[ranks], room[ranks], heaviest, ends, m, weight, passes).to(torch.int8)
    flat = (ranks * m + ends).flatten()
    return taken.to(torch.int8).flatten().index_add(0, flat, torch.cat([-goes, goes])).reshape(n, m).bool()


def _together(
    loss: Tensor, room: Tensor, heaviest: Tensor, ends: Tensor, m: int, weight: Tensor | float, passes: int
) -> Tensor:
    """Which moves, best first, lower the objective even though those ahead of them are made too.

    A move gains less for each move ahead of it that leaves the same expert or enters the same expert; other moves can
    only help. Assume that all moves are made: those that still gain are safe. Assume that only these are made: more
    seem to gain, some of them wrongly. Assume that those are made: more moves are safe than at first. So the result is
    safe after every odd number of passes.
    """
    every = torch.arange(m, device=loss.device)[:, None]
    sides = ends[:, None, :] == every  # (2, m, n)
    goes = loss < weight * room
    for _ in range(passes):
        ahead = (sides & goes).cumsum(2, dtype=torch.int32)  # integers: the order of summation does not matter
        ahead = (ahead * sides).sum((0, 1)) - 2 * goes.to(torch.int32)
        goes = loss < weight * (room - heaviest * ahead)
    return goes


def _cost(values: Tensor, a: Tensor, share: Tensor, taken: Tensor, weight: float) -> Tensor:
    """The objective with masses held fixed."""
    excess = share @ taken.to(values.dtype) - a
    return 0.5 * weight * excess @ excess - share @ (values * taken).sum(1)


def find_masses(values: Tensor, a: Tensor, b: Tensor, gram: Tensor | None, experts: Tensor, setting: Setting) -> Tensor:
    """The masses on a support, by conjugate gradients; those below zero are set to zero."""
    weight, gains = 2.0 * setting.unbalanced, values.gather(1, experts)
    flat = experts.flatten()

    def hessian(x: Tensor) -> Tensor:
        load = torch.zeros_like(a).index_add(0, flat, x.flatten())
        column = x.sum(1)
        field = column if gram is None else gram @ column
        return weight * load[experts] + weight * field[:, None] + setting.reg * x

    right = weight * a[experts] + weight * (b if gram is None else gram @ b)[:, None] + gains
    mass = (b / setting.k)[:, None].expand_as(gains)
    residual = right - hessian(mass)
    direction, norm = residual, residual.square().sum()
    for _ in range(setting.mass_steps):
        image = hessian(direction)
        step = norm / (direction * image).sum().clamp_min(torch.finfo(values.dtype).tiny)
        mass = mass + step * direction
        residual = residual - step * image
        following = residual.square().sum()
        direction = residual + following / norm.clamp_min(torch.finfo(values.dtype).tiny) * direction
        norm = following
    return mass.clamp_min(0.0)


def objective(values: Tensor, a: Tensor, b: Tensor, gram: Tensor | None, found: Assignment, setting: Setting) -> Tensor:
    """The objective of an assignment, in double precision."""
    values, a, b, mass = values.double(), a.double(), b.double(), found.mass.double()
    p = torch.zeros_like(a).index_add(0, found.experts.flatten(), mass.flatten()) - a
    q = mass.sum(1) - b
    missed = p @ p + q @ (q if gram is None else gram.double() @ q)
    linear = (values.gather(1, found.experts) * mass).sum()
    return setting.unbalanced * missed - linear + 0.5 * setting.reg * mass.square().sum()
