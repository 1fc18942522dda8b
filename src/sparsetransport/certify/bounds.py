r"""Lower bounds on the objective of all plans within the budget.

With ``reg`` λ₂ > 0 every pair of potentials gives a bound (Lemma 3.4 of the paper). For :math:`\alpha = 2\lambda_a
G_a u` and :math:`\beta = 2\lambda_b G_b v`

.. math::
    D(u, v) = \langle\alpha, a\rangle + \langle\beta, b\rangle - \lambda_a u^\top G_a u - \lambda_b v^\top G_b v
    - \frac{1}{2\lambda_2}\sum_g \Big(\text{the } k_g \text{ largest of } \max(0, \alpha \oplus \beta - C)
    \text{ in group } g\Big)^2 ,

where the groups are the columns, the rows, the whole plan or those of the user; no Gram matrix is inverted. The cheap
bound takes :math:`u = a - \gamma 1, v = b - \gamma^\top 1` (Proposition 3.5), the tight one maximises ``D`` from
there. Where a budget is an intersection, each of its parts alone gives a bound, and the best one counts.

With the kernel ``Delta`` a bound also uses how many rows and columns the budget can reach. The potentials ask for the
row sums :math:`w = a - u`, and a row without an entry costs :math:`\lambda_a w_i^2` more than ``D`` counts. If at
most ``r`` rows can be reached, all but the ``r`` largest of these terms are added to ``D``, which stays concave. This
needs no λ₂: with λ₂ = 0 the sum above becomes the constraint :math:`\alpha \oplus \beta \le C`. With other kernels a
row without an entry costs :math:`\lambda_a d_i w_i^2` more, for any diagonal with :math:`G_a \succeq \mathrm{diag}(d)`.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from .._checks import Floats, Ints
from .._numba.compiling import compiled
from ..budgets import Limits, Matroid, Uniform, as_matroid, limits_of
from ..geometry.matrices import Gram
from ..problem import Problem, require_plain, require_problem

Conjugate = Callable[[Floats, Floats], tuple[float, Floats, Floats]]
_BLOCK = 256
_FEW = 16  # entries a line; up to here a short list is faster than a partition
_ITERATIONS, _MEMORY = 1000, 20  # of L-BFGS
_LARGE = 50_000  # pairs; in larger problems L-BFGS ends early,
_LOOK, _WORTH = 50, 1e-3  # when so many iterations close less than this share of the gap
ASCEND_UP_TO = 4000  # points a side, since the ascent factorises the Gram matrices


def conjugates(problem: Problem, limits: Limits) -> list[Conjugate]:
    """For each part of the budget a function of potentials: ``Σ ½ (top of W)²``, and row and column sums of the top."""
    m, n = problem.shape
    found: list[Conjugate] = []
    if (limits.cols < m).any():
        found.append(lambda alpha, beta: _by_line(problem, limits.cols, alpha, beta, columns=True))
    if (limits.rows < n).any():
        found.append(lambda alpha, beta: _by_line(problem, limits.rows, alpha, beta, columns=False))
    for layer in limits.labels:
        found.append(lambda alpha, beta, layer=layer: _by_label(problem, layer, limits.groups, alpha, beta))  # type: ignore[misc]
    if limits.total < m * n or not found:
        found.append(lambda alpha, beta: _whole(problem, limits.total, alpha, beta))
    return found


def _wishes(problem: Problem, alpha: Floats, beta: Floats) -> Iterator[tuple[int, Floats]]:
    """``max(0, α + β - C)`` a block of rows at a time, with the first row."""
    for first, block in problem.cost.blocks():
        yield first, np.maximum(alpha[first : first + len(block), None] + beta - block, 0.0)


def _whole(problem: Problem, count: int, alpha: Floats, beta: Floats) -> tuple[float, Floats, Floats]:
    """The ``count`` largest of the whole plan."""
    rows, cols, top = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    for first, block in problem.cost.blocks():
        floor = float(top.min()) if top.size == count else 0.0
        i, j = np.divmod(_above(block, alpha[first : first + len(block)], beta, floor), block.shape[1])
        found = np.maximum(alpha[i + first] + beta[j] - block[i, j], 0.0)
        rows, cols, top = np.concatenate([rows, i + first]), np.concatenate([cols, j]), np.concatenate([top, found])
        if top.size > count:
            keep = np.argpartition(top, top.size - count)[top.size - count :]
            rows, cols, top = rows[keep], cols[keep], top[keep]
    return 0.5 * float(top @ top), *problem.marginals(rows, cols, top)


@compiled
def _above(cost: Floats, alpha: Floats, beta: Floats, floor: float) -> Ints:
    """Where ``α + β - C`` is above ``floor``, counted row by row."""
    place, size = np.empty(1024, np.int64), 0
    for i in range(cost.shape[0]):
        row, most = cost[i], -np.inf
        for j in range(row.size):  # first whether there is any, which vectorises; usually there is none
            most = max(most, beta[j] - row[j])
        if not alpha[i] + most > floor:
            continue
        if size + row.size > place.size:
            place = np.append(place, np.empty(max(place.size, row.size), np.int64))
        for j in range(row.size):
            if alpha[i] + beta[j] - row[j] > floor:
                place[size] = i * row.size + j
                size += 1
    return place[:size].copy()


def _by_line(
    problem: Problem, capacity: Ints, alpha: Floats, beta: Floats, *, columns: bool
) -> tuple[float, Floats, Floats]:
    """The largest of every column or row."""
    m, n = problem.shape
    total, row_sum, col_sum = 0.0, np.zeros(m), np.zeros(n)
    for first in range(0, n if columns else m, _BLOCK):
        lines = np.arange(first, min(first + _BLOCK, n if columns else m))
        cost = problem.cost.columns(lines).T if columns else problem.cost.rows(first, first + len(lines))
        near, far = (beta, alpha) if columns else (alpha, beta)
        wish = np.maximum(near[lines, None] + far - cost, 0.0)
        _keep_largest(wish, capacity[lines])
        total += 0.5 * float(np.vdot(wish, wish))
        if columns:
            row_sum += wish.sum(axis=0)
            col_sum[lines] = wish.sum(axis=1)
        else:
            row_sum[lines] = wish.sum(axis=1)
            col_sum += wish.sum(axis=0)
    return total, row_sum, col_sum


def _keep_largest(wish: Floats, capacity: Ints) -> None:
    """Set all but the ``capacity[k]`` largest of row ``k`` to zero, in place."""
    length = wish.shape[1]
    if capacity.max() <= _FEW:
        _keep_few(wish, capacity)
        return
    for count in np.unique(np.minimum(capacity, length)):
        mine = np.flatnonzero(np.minimum(capacity, length) == count)
        if count < length:
            small = np.argpartition(wish[mine], length - count - 1, axis=1)[:, : length - count]
            wish[mine[:, None], small] = 0.0


@compiled
def _keep_few(wish: Floats, capacity: Ints) -> None:
    """As `_keep_largest`, for capacities so small that sorting into a short list is the fastest."""
    top, where = np.empty(_FEW + 1), np.empty(_FEW + 1, np.int64)
    for i in range(wish.shape[0]):
        row, size, limit = wish[i], 0, capacity[i]
        for j in range(row.size):
            value = row[j]
            row[j] = 0.0
            if value <= 0.0 or (size == limit and (limit == 0 or value <= top[limit - 1])):
                continue
            place = size
            while place > 0 and value > top[place - 1]:
                top[place], where[place] = top[place - 1], where[place - 1]
                place -= 1
            top[place], where[place] = value, j
            size = min(size + 1, limit)
        for place in range(size):
            row[where[place]] = top[place]


def _by_label(
    problem: Problem, layer: NDArray[np.int32], capacity: Ints, alpha: Floats, beta: Floats
) -> tuple[float, Floats, Floats]:
    """The largest of every labelled group; pairs in no group count in full."""
    wish = np.concatenate([block for _, block in _wishes(problem, alpha, beta)])
    rows, cols = np.nonzero(wish)
    top, label = wish[rows, cols], layer[rows, cols]
    order = np.lexsort((-top, label))
    rows, cols, top, label = rows[order], cols[order], top[order], label[order]
    rank = np.arange(len(top)) - np.searchsorted(label, label)
    keep = (label < 0) | (rank < capacity[label]) if len(capacity) else np.ones(len(top), bool)
    rows, cols, top = rows[keep], cols[keep], top[keep]
    return 0.5 * float(top @ top), *problem.marginals(rows, cols, top)


def reach(problem: Problem, limits: Limits) -> tuple[int, int]:
    """How many rows and columns a plan within the limits can reach; all on a side without a `diagonal`."""
    most = limits.most
    return tuple(  # type: ignore[return-value]
        size if diagonal(problem, side) is None else min(most, size) for side, size in enumerate(problem.shape)
    )


def diagonal(problem: Problem, side: int) -> Floats | None:
    """Weights d for which ``G - diag(d)`` is positive semidefinite, where they are known: see `certify.diagonal`."""
    gram = (problem.gram_a, problem.gram_b)[side]
    return np.ones(gram.size) if gram.is_delta else problem.memo.get(f"diagonal {side}")


def unreached(problem: Problem, side: int, u: Floats, count: int) -> tuple[float, Floats]:
    """What the unreachable lines of a side add to the bound, and the gradient of it: see the top of the file."""
    own = diagonal(problem, side)
    if own is None:
        return 0.0, np.zeros_like(u)
    weight, asked = problem.unbalanced[side] * own, (problem.a, problem.b)[side] - u
    price = weight * asked**2
    left_out = asked < 0.0  # no plan has negative sums
    spare = len(u) - int(left_out.sum()) - count
    if spare > 0:
        left_out[np.argpartition(np.where(left_out, np.inf, price), spare - 1)[:spare]] = True
    return float(price[left_out].sum()), np.where(left_out, -2.0 * weight * asked, 0.0)


def dual_value(problem: Problem, conjugate: Conjugate, reached: tuple[int, int], u: Floats, v: Floats) -> float:
    """The bound that ``u`` and ``v`` prove; ``reg`` must be positive."""
    alpha, beta = problem.smooth(u, v, exact=True)
    return linear(problem, reached, u, v, alpha, beta) - conjugate(alpha, beta)[0] / problem.reg


def linear(problem: Problem, reached: tuple[int, int], u: Floats, v: Floats, alpha: Floats, beta: Floats) -> float:
    """The bound without the term for what entries may gain."""
    more = unreached(problem, 0, u, reached[0])[0] + unreached(problem, 1, v, reached[1])[0]
    return float(alpha @ (problem.a - 0.5 * u) + beta @ (problem.b - 0.5 * v)) + more


def bound_at(problem: Problem, limits: Limits, u: Floats, v: Floats) -> tuple[float, Floats, Floats]:
    """The best bound that the potentials prove over all parts of the budget: ``(bound, u, v)``."""
    reached = reach(problem, limits)
    if problem.reg > 0.0:
        return max(dual_value(problem, conjugate, reached, u, v) for conjugate in conjugates(problem, limits)), u, v
    alpha, beta = problem.smooth(u, v, exact=True)
    above = -problem.steepest((-alpha, -beta))
    if above > 0.0 and problem.gram_a.is_delta:
        alpha, u = alpha - above, u - above / (2.0 * problem.unbalanced[0])
    elif above > 0.0 and problem.gram_b.is_delta:
        beta, v = beta - above, v - above / (2.0 * problem.unbalanced[1])
    elif above > 0.0:
        return -np.inf, u, v
    return linear(problem, reached, u, v, alpha, beta), u, v


def priced_bound(problem: Problem, limits: Limits, alpha: Floats, beta: Floats) -> tuple[float, Floats, Floats]:
    """The bound of prices that no pair of `Delta` kernels without ``reg`` has a cost below: ``(bound, u, v)``."""
    u, v = alpha / (2.0 * problem.unbalanced[0]), beta / (2.0 * problem.unbalanced[1])
    return linear(problem, reach(problem, limits), u, v, alpha, beta), u, v


def tight_bound(
    problem: Problem, limits: Limits, starts: list[tuple[Floats, Floats]], value: float
) -> tuple[float, Floats, Floats]:
    """The best bound that maximising the dual finds, over all parts of the budget: ``(bound, u, v)``.

    ``value`` is the objective of the plan in question.
    """
    found, reached = [], reach(problem, limits)
    for conjugate in conjugates(problem, limits):
        values = [dual_value(problem, conjugate, reached, u, v) for u, v in starts]
        best = int(np.argmax(values))
        found.append((values[best], *starts[best]))
        if max(problem.shape) <= ASCEND_UP_TO:
            found.append(_ascend(problem, conjugate, reached, *starts[best], value))
    return max(found, key=lambda one: one[0])


def suggested(problem: Problem, limits: Limits, alpha: Floats, beta: Floats) -> tuple[Ints, Ints, Floats]:
    """The entries that a dual point asks for within the budget, and their masses: the optimum, if the gap is zero.

    Groups other than rows and columns are ignored.
    """
    wish = np.concatenate([block for _, block in _wishes(problem, alpha, beta)])
    _keep_largest(wish, limits.rows)
    flipped = np.ascontiguousarray(wish.T)
    _keep_largest(flipped, limits.cols)
    cols, rows = np.nonzero(flipped)
    top = flipped[cols, rows]
    if len(top) > limits.total:
        keep = np.argpartition(top, len(top) - limits.total)[len(top) - limits.total :]
        rows, cols, top = rows[keep], cols[keep], top[keep]
    return rows, cols, top / problem.reg


def _ascend(
    problem: Problem, conjugate: Conjugate, reached: tuple[int, int], u: Floats, v: Floats, objective: float
) -> tuple[float, Floats, Floats]:
    r"""Maximise the dual by L-BFGS.

    With :math:`G = RR^\top` and :math:`y = \sqrt{2\lambda}R^\top u` the quadratic terms become :math:`\tfrac12|y|^2`,
    however badly conditioned the Gram matrices are.
    """
    sides = [
        _Side(gram, weight) for gram, weight in zip((problem.gram_a, problem.gram_b), problem.unbalanced, strict=True)
    ]
    m = len(u)

    def descend(x: Floats) -> tuple[float, Floats]:
        y, z = x[:m], x[m:]
        alpha, beta = sides[0].potential(y), sides[1].potential(z)
        top, row_sum, col_sum = conjugate(alpha, beta)
        value = float(alpha @ problem.a + beta @ problem.b) - 0.5 * float(x @ x) - top / problem.reg
        slopes = [sides[0].pull(problem.a - row_sum / problem.reg), sides[1].pull(problem.b - col_sum / problem.reg)]
        for k, (side, count) in enumerate(zip(sides, reached, strict=True)):
            more, slope = unreached(problem, k, side.leave((y, z)[k]), count)
            value += more
            slopes[k] += side.pull_back(slope)
        return -value, x - np.concatenate(slopes)

    begin = np.concatenate([sides[0].enter(u), sides[1].enter(v)])
    found = _descend(descend, begin, -objective, _WORTH if m * len(v) > _LARGE else 0.0)
    # The reported bound is evaluated from u and v again, free of the rounding of the change of variables.
    u, v = sides[0].leave(found[:m]), sides[1].leave(found[m:])
    return dual_value(problem, conjugate, reached, u, v), u, v


def _descend(function: Callable[[Floats], tuple[float, Floats]], x: Floats, least: float, worth: float) -> Floats:
    """Minimise a convex function with kinks: L-BFGS with the weak Wolfe line search of Lewis and Overton.

    It ends when `_LOOK` iterations have not reduced the distance to ``least`` by the share ``worth``.
    SciPy's L-BFGS-B asks for smoothness and spends its time in threaded BLAS calls on vectors of a few hundred numbers.
    """
    value, slope = function(x)
    steps: list[tuple[Floats, Floats, float]] = []
    before = np.inf
    for iteration in range(_ITERATIONS):
        if iteration % _LOOK == 0:
            if before - value < worth * (value - least):
                break
            before = value
        direction = _quasi_newton(slope, steps)
        falling = float(direction @ slope)
        if not falling < 0.0:
            break
        length, low, high = 1.0, 0.0, np.inf
        for _ in range(40):
            new = x + length * direction
            new_value, new_slope = function(new)
            if new_value > value + 1e-4 * length * falling:
                high = length
            elif float(new_slope @ direction) < 0.9 * falling:
                low = length
            else:
                break
            length = 0.5 * (low + high) if high < np.inf else 2.0 * low
        if not new_value < value - 1e-13 * abs(value):
            break
        change, bend = new - x, new_slope - slope
        if float(change @ bend) > 0.0:
            steps = [*steps[1 - _MEMORY :], (change, bend, float(change @ bend))]
        x, value, slope = new, new_value, new_slope
    return x


def _quasi_newton(slope: Floats, steps: list[tuple[Floats, Floats, float]]) -> Floats:
    """The two-loop recursion: minus the inverse Hessian, estimated from the last steps, times the gradient."""
    direction = -slope
    weights = []
    for change, bend, product in reversed(steps):
        weights.append(float(change @ direction) / product)
        direction = direction - weights[-1] * bend
    if steps:
        change, bend, product = steps[-1]
        direction = direction * (product / float(bend @ bend))
    for (change, bend, product), weight in zip(steps, reversed(weights), strict=True):
        direction = direction + (weight - float(bend @ direction) / product) * change
    return direction


class _Side:
    """The change of variables of one side: ``α = √(2λ) R y`` with ``G = R R'``."""

    def __init__(self, gram: Gram, weight: float) -> None:
        self.factor = np.sqrt(2.0 * weight)
        self.vectors: Floats | None = None
        if not gram.is_delta:
            every = np.arange(gram.size)
            values, self.vectors = np.linalg.eigh(gram.block(every, every))
            self.root = np.sqrt(np.maximum(values, 1e-15 * values[-1]))
            self.inverse = np.divide(1.0, self.root, out=np.zeros_like(self.root), where=self.root > 0.0)

    def enter(self, u: Floats) -> Floats:
        """``y`` of ``u``."""
        return np.asarray(self.factor * (u if self.vectors is None else self.root * (self.vectors.T @ u)))

    def leave(self, y: Floats) -> Floats:
        """``u`` of ``y``."""
        return np.asarray((y if self.vectors is None else self.vectors @ (y * self.inverse)) / self.factor)

    def potential(self, y: Floats) -> Floats:
        """``α`` of ``y``."""
        return np.asarray(self.factor * (y if self.vectors is None else self.vectors @ (self.root * y)))

    def pull(self, residual: Floats) -> Floats:
        """The gradient with respect to ``y`` from the one with respect to ``α``."""
        return self.enter(residual)

    def pull_back(self, slope: Floats) -> Floats:
        """The gradient with respect to ``y`` from the one with respect to ``u``."""
        return np.asarray((slope if self.vectors is None else self.inverse * (self.vectors.T @ slope)) / self.factor)


def guarantee(
    problem: Problem, method: str = "omp", *, budget: int | Matroid | None = None, eps: float = 0.01
) -> float:
    r"""The share of the best possible reduction ``F(S*)`` that theory guarantees for a method.

    With :math:`F(S) = U(0) - \min_{\mathrm{supp}\,\gamma \subseteq S} U(\gamma)` and the submodularity ratio
    :math:`\alpha = u / \tilde U_1`: greedy and OMP reach :math:`1 - e^{-\alpha}` on a whole-plan budget, stochastic OMP
    :math:`1 - e^{-\alpha} - \varepsilon` in expectation (Lemma 3.2), the residual random rules :math:`(1 +
    1/\alpha)^{-2}` in expectation on any matroid (Lemma 3.3). The constants are :math:`u = \lambda_2`, the strong
    convexity that the quadratic term guarantees, and :math:`\tilde U_1 = \max_s H_{ss}`, the largest curvature along
    one pair.

    The paper states a positive :math:`u` for λ₂ = 0 too. That cannot be: moving mass around a 2×2 cycle of the plan
    changes no marginal, so the objective is linear along it, and the guarantee here is 0. Certificates (`Result.gap`)
    are more informative.

    Parameters
    ----------
    problem : Problem
    method : {"omp", "greedy", "stochastic", "residual", "residual-greedy"}
    budget : int or Matroid, optional
        The budget; one on the whole plan by default. There is no guarantee for an intersection, and for matroids other
        than the whole-plan budget only the residual rules have one.
    eps : float
        The ε of stochastic OMP.

    Examples
    --------
    >>> import sparsetransport as st
    >>> problem = st.Problem.from_matrices([[0.0, 1.0], [1.0, 0.0]], unbalanced=1.0, reg=4.0)
    >>> round(st.guarantee(problem, "omp"), 3), round(st.guarantee(problem, "residual"), 3)
    (0.393, 0.111)
    """
    require_problem(problem)
    require_plain(problem, "guarantee")
    known = {"omp": 0, "greedy": 0, "stochastic": 1, "residual": 2, "residual-greedy": 2}
    kind = _checks.choice("method", method, known)
    if not 0.0 < _checks.number("eps", eps, positive=True) < 1.0:
        raise ValueError(f"eps must be between 0 and 1, got {eps!r}")
    matroid = as_matroid(budget)
    limits_of(matroid, problem.shape)  # which checks the budget
    if matroid is not None and not (matroid.is_matroid if kind == 2 else isinstance(matroid, Uniform)):
        return 0.0
    weight_a, weight_b = problem.unbalanced
    steepest = 2.0 * weight_a * float(problem.gram_a.diagonal.max()) + 2.0 * weight_b * float(
        problem.gram_b.diagonal.max()
    )
    alpha = problem.reg / (steepest + problem.reg)
    if kind == 2:
        return (1.0 + 1.0 / alpha) ** -2 if alpha > 0.0 else 0.0
    return float(max(-np.expm1(-alpha) - (eps if kind == 1 else 0.0), 0.0))
