r"""Ascent of the smoothed dual on candidate pairs.

For :math:`\rho > 0` and :math:`g = 1/2\lambda` of a side, prices :math:`\alpha, \beta` are raised to

.. math::
    \max \sum_i a_i \alpha_i - \tfrac12 g_a \alpha_i^2 + \sum_j b_j \beta_j - \tfrac12 g_b \beta_j^2
    - \tfrac1{2\rho} \sum_{ij} (\alpha_i + \beta_j - C_{ij})_+^2 ,

the dual of the problem with :math:`\tfrac\rho2 |\gamma|^2` more in it, whose plan is
:math:`\gamma = (\alpha \oplus \beta - C)_+ / \rho`. For given :math:`\beta` every :math:`\alpha_i` is the root of a
concave falling function. Newton's method reaches it in a few steps: its first step, from wherever, ends right of the
root, and then the pairs that count become fewer. The same goes for :math:`\beta`. To take turns is monotone but slow;
the momentum of Nesterov makes it fast, and is dropped whenever it would lower the dual value.
"""

from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.compiling import compiled
from .._numba.threads import in_parts

_PART = 4096  # points that one thread looks at at a time
_STEPS = 60  # of Newton's method at the most; usually four


class Half(NamedTuple):
    """One side of a graph: where the pairs of each of its points begin, their other ends and costs; and its masses."""

    first: Ints
    other: Ints
    cost: Floats
    mass: Floats
    give: float
    rho: float

    def best(self, others: Floats, begin: Floats, low: Floats, high: Floats) -> tuple[Floats, float, float]:
        """The best prices of this side, what it adds to the dual value, and the sum of its marginal errors before."""
        out = np.empty_like(begin)

        def improve(part: slice) -> Floats:
            first = self.first[part.start : part.stop + 1]
            mass, give, rho = self.mass[part], self.give, self.rho
            return best_prices(
                first, self.other, self.cost, others, mass, give, rho, begin[part], low[part], high[part], out[part]
            )

        told = np.sum(in_parts(improve, begin.size, _PART), axis=0)
        return out, float(told[0]), float(told[1])


@compiled
def best_prices(
    first: Ints,
    other: Ints,
    cost: Floats,
    others: Floats,
    mass: Floats,
    give: float,
    rho: float,
    begin: Floats,
    low: Floats,
    high: Floats,
    out: Floats,
) -> Floats:
    """Fill in the best prices of one side between ``low`` and ``high``, given those of the other.

    Two numbers: what the side adds to the dual value, pairs included, unless it is held between bounds, and the sum of
    its marginal errors before, where it is not held.
    """
    told, buffer = np.zeros(2), np.empty(64)
    for i in range(mass.size):
        start, size = first[i], first[i + 1] - first[i]
        if size > buffer.size:
            buffer = np.empty(2 * size)
        price, total, count = begin[i], 0.0, 0
        for k in range(size):
            buffer[k] = cost[start + k] - others[other[start + k]]
            if buffer[k] < price:
                total += buffer[k]
                count += 1
        wrong = abs(mass[i] - price * give - (count * price - total) / rho)
        price = (mass[i] * rho + total) / (count + give * rho)
        live, before = size, -1
        for _ in range(_STEPS):
            total, count = 0.0, 0
            for k in range(live):
                if buffer[k] < price:
                    buffer[count] = buffer[k]
                    total += buffer[k]
                    count += 1
            live = count
            if live == before:
                break
            before = live
            price = (mass[i] * rho + total) / (count + give * rho)
        out[i] = min(max(price, low[i]), high[i])
        told[1] += wrong if low[i] < out[i] < high[i] else 0.0  # what is held cannot be righted
        told[0] += out[i] * (mass[i] - 0.5 * give * out[i])
        for k in range(live):
            told[0] -= 0.5 * (price - buffer[k]) ** 2 / rho
    return told


@compiled
def smoothed_plan(row: Ints, col: Ints, cost: Floats, alpha: Floats, beta: Floats, rho: float) -> Floats:
    """The masses of the candidate pairs that go with the prices."""
    mass = np.empty(cost.size)
    for e in range(cost.size):
        mass[e] = max(alpha[row[e]] + beta[col[e]] - cost[e], 0.0) / rho
    return mass
