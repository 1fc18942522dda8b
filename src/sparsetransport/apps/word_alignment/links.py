"""Links between words from their costs: two plans for each sentence pair, many pairs in one call.

The first plan allows one link for each word. In the second plan, an unaligned word next to a linked one may join its
link, so that phrases are found.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ..._checks import Floats, Ints
from ..._numba.borrowed import by_address
from ..._numba.codes import UNFINISHED
from ..._numba.compiling import compiled, part
from ...api import solve
from ...batch import workers
from ...budgets import Pair, PerColumn, PerRow, pairs_of
from ...effort import BARE
from ...engine.batch_solver import Pack, Plans
from ...engine.batch_solver import solve as solve_packed
from ...inner.solvers import EXACT
from ...problem import Problem

Links = tuple[list[Pair], list[float]]
"""Pairs of words, sorted, and their scores."""
_TOGETHER = 64  # sentence pairs that go to a worker at once
_GROWING = BARE.program, BARE.tuning
_EPSILON = 1e-10  # keeps the scaling of a constant matrix finite


class Settings(NamedTuple):
    """The settings of the aligner; the defaults were tuned on the dev split of MultiMWA-Wiki.

    Attributes
    ----------
    distortion : float
        The share of their similarity that two words at opposite ends of their sentences lose, from 0 to 1.
    smoothing : float
        The weight of the adjacent pairs (i-1, j-1) and (i+1, j+1) in the similarity of (i, j).
    neighbours : float
        ρ, from 0 to below ½: how strongly an unaligned word affects the words next to it. Marginal errors are measured
        with the Gram matrix that has 1 on the diagonal and -ρ next to it.
    unbalanced : float
        λ of the first plan.
    threshold : float
        Entries of the first plan above this share of its largest one are links.
    phrases : float
        λ of the second plan: the larger, the more words join the link next to them; 0 for no second plan.
    """

    distortion: float = 0.1
    smoothing: float = 0.2
    neighbours: float = 0.2
    unbalanced: float = 0.5
    threshold: float = 0.6
    phrases: float = 0.15

    def checked(self) -> "Settings":
        """The settings as floats, checked."""
        for name in ("distortion", "smoothing", "phrases"):
            _checks.number(name, getattr(self, name), positive=False)
        _checks.number("unbalanced", self.unbalanced, positive=True)
        if self.distortion > 1.0:
            raise ValueError(f"distortion must be a number from 0 to 1, got {self.distortion!r}")
        if not 0.0 <= _checks.number("neighbours", self.neighbours, positive=False) < 0.5:
            raise ValueError(f"neighbours must be a number from 0 to below 0.5, got {self.neighbours!r}")
        if not 0.0 <= _checks.number("threshold", self.threshold, positive=False) < 1.0:
            raise ValueError(f"threshold must be a number from 0 to below 1, got {self.threshold!r}")
        return Settings(*map(float, self))


DEFAULTS = Settings()
"""The best settings on the dev split of MultiMWA-Wiki."""


def word_costs(cosine: Floats, distortion: float = 0.0, smoothing: float = 0.0) -> Floats:
    """The costs of links between words, from 0 to 1, from the cosines of their vectors.

    The similarity (1 + cosine) / 2 of two words falls with the squared difference of their relative positions in the
    sentences (by ``distortion`` from one end to the other), is averaged with that of the words before and after (with
    weight ``smoothing``), and is scaled so that the best pair costs 0 and the worst one 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsetransport.apps.word_alignment import word_costs
    >>> word_costs(np.array([[1.0, 0.0], [-1.0, 0.5]])).round(3)
    array([[0.  , 0.5 ],
           [1.  , 0.25]])
    """
    return _word_costs(np.ascontiguousarray(cosine, np.float64), float(distortion), float(smoothing))


@compiled
def _word_costs(cosine: Floats, distortion: float, smoothing: float) -> Floats:
    m, n = cosine.shape
    similar = np.empty((m, n))
    for i in range(m):
        place = i / max(m - 1, 1)
        for j in range(n):
            apart = place - j / max(n - 1, 1)
            similar[i, j] = 0.5 * (cosine[i, j] + 1.0) * (1.0 - distortion * apart * apart)
    cost = np.empty((m, n))
    low, high = np.inf, -np.inf
    for i in range(m):
        for j in range(n):
            total, weight = similar[i, j], 1.0
            if i > 0 and j > 0:
                total, weight = total + smoothing * similar[i - 1, j - 1], weight + smoothing
            if i < m - 1 and j < n - 1:
                total, weight = total + smoothing * similar[i + 1, j + 1], weight + smoothing
            cost[i, j] = total / weight
            low, high = min(low, cost[i, j]), max(high, cost[i, j])
    for i in range(m):
        for j in range(n):
            cost[i, j] = 1.0 - (cost[i, j] - low + _EPSILON) / (high - low + _EPSILON)
    return cost


def align_costs(costs: Sequence[Floats], settings: Settings = DEFAULTS, *, n_jobs: int | None = None) -> list[Links]:
    """The sorted links and their scores for every matrix of costs.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsetransport.apps.word_alignment import align_costs
    >>> costs = np.array([[0.0, 0.9, 0.9], [0.9, 0.1, 0.2], [0.9, 0.9, 0.9]])
    >>> align_costs([costs])[0][0]
    [(0, 0), (1, 1), (1, 2)]
    """
    _checks.jobs(n_jobs)
    settings = settings.checked()
    found: list[Links] = [([], []) for _ in costs]
    held = {
        k: _checks.real_array(f"costs[{k}]", cost, ndim=2, infinite=True)
        for k, cost in enumerate(costs)
        if np.size(cost)
    }
    filled = list(held)
    groups = [filled[first : first + _TOGETHER] for first in range(0, len(filled), _TOGETHER)]
    with workers(n_jobs) as run:
        parts = run(partial(_align, settings), [[held[k] for k in group] for group in groups])
        for group, links in zip(groups, parts, strict=True):
            for k, each in zip(group, links, strict=True):
                found[k] = each
    return found


def _align(settings: Settings, costs: list[Floats]) -> list[Links]:
    """The links of some pairs of sentences, none of them empty."""
    shape = np.array([cost.shape for cost in costs])
    flat = np.concatenate([cost.ravel() for cost in costs])
    first = _first_problems(shape, flat, settings.neighbours, settings.unbalanced)
    # growing alone: exchanges lower the objective, but do not bring the links closer to those of annotators
    links = _links(solve_packed(first, *_GROWING), settings.threshold)
    if settings.phrases:
        problems = _second_problems(first, links, settings.phrases)
        if problems.owner.size:
            links = _joined(links, _links(solve_packed(problems.packed, *_GROWING), 0.0), problems)
    _sort(links)
    pairs, at = pairs_of(links.rows, links.cols), links.ends.tolist()
    scores = links.share.tolist()
    return [
        (pairs[at[k] : at[k + 1]], scores[at[k] : at[k + 1]]) if done else _align_alone(costs[k], settings)
        for k, done in enumerate(links.done.tolist())
    ]


@by_address
class _Links(NamedTuple):
    """The links of many sentence pairs in flat arrays."""

    rows: Ints
    cols: Ints
    share: Floats  # of the largest mass of the plan
    ends: Ints  # (pairs + 1,)
    done: NDArray[np.bool_]  # False: the plan is not finished

    @classmethod
    def none(cls, room: int, done: NDArray[np.bool_]) -> "_Links":
        """No links, with room for so many."""
        ends = np.zeros(done.size + 1, np.int64)
        return cls(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room), ends, done)


def _links(plans: Plans, threshold: float) -> _Links:
    """The entries of every plan above a share of its largest one."""
    links = _Links.none(plans.mass.size, plans.code != UNFINISHED)
    _pick(plans, threshold, links)
    return links


@compiled
def _pick(plans: Plans, threshold: float, links: _Links) -> None:
    """Write down the entries above the threshold."""
    at = count = 0
    for k in range(plans.code.size):
        last = at + plans.sizes[k, 0]
        largest = 0.0
        for t in range(at, last):
            largest = max(largest, plans.mass[t])
        for t in range(at, last):
            if plans.mass[t] > threshold * largest:
                links.rows[count], links.cols[count] = plans.label[t, 0], plans.label[t, 1]
                links.share[count] = plans.mass[t] / largest
                count += 1
        links.ends[k + 1] = count
        at = last


def _first_problems(shape: Ints, cost: Floats, neighbours: float, weight: float) -> Pack:
    """The problems of the first plan: mass one and one link for every word, and errors coupled between neighbours."""
    pairs, points = len(shape), int(shape.sum())
    packed = Pack(
        np.zeros((pairs, 6), np.int64),
        np.zeros((pairs, 4)),
        cost,
        np.zeros(int((shape[shape > 1] ** 2).sum()) if neighbours > 0.0 else 0),
        np.ones(points),
        np.empty(points),
        np.ones(points, np.int64),
    )
    _fill_first(packed, shape, neighbours, weight)
    return packed


@compiled
def _fill_first(packed: Pack, shape: Ints, neighbours: float, weight: float) -> None:
    """Fill in sizes, numbers, Gram matrices and the gradients of the empty plan."""
    point = at = 0
    for k in range(len(shape)):
        largest = 0.0
        for side in range(2):
            size = shape[k, side]
            chained = neighbours > 0.0 and size > 1
            for p in range(size):
                beside = (p > 0) + (p < size - 1) if chained else 0
                packed.base[point + p] = -2.0 * weight * (1.0 - neighbours * beside)
                largest = max(largest, -packed.base[point + p])
                if chained:
                    row = packed.gram[at + p * size : at + (p + 1) * size]
                    row[p] = 1.0
                    if p > 0:
                        row[p - 1] = -neighbours
                    if p < size - 1:
                        row[p + 1] = -neighbours
            packed.size[k, side], packed.size[k, 2 + side] = size, size if chained else 0
            at += size * size if chained else 0
            point += size
        packed.size[k, 4] = packed.size[k, 5] = min(shape[k, 0], shape[k, 1]) + 1
        packed.number[k, 0] = packed.number[k, 1] = 2.0 * weight
        packed.number[k, 3] = EXACT * largest


@by_address
class _Second(NamedTuple):
    """The problems of the second plan, their sentence pairs, and the words of their rows and columns."""

    packed: Pack
    owner: Ints
    words: Ints


def _second_problems(first: Pack, links: _Links, weight: float) -> _Second:
    """The problems of the second plan: mass one for every word in them, and errors that are not coupled."""
    cost, size, number = np.empty_like(first.cost), np.zeros_like(first.size), np.zeros_like(first.number)
    owner, words = np.empty(len(size), np.int64), np.empty(first.mass.size, np.int64)
    count, at, point = _fill_second(first, links, weight, cost, size, number, owner, words)
    packed = Pack(
        size[:count],
        number[:count],
        cost[:at],
        np.zeros(0),
        np.ones(point),
        np.full(point, -2.0 * weight),
        np.full(point, point),
    )
    return _Second(packed, owner[:count], words[:point])


@compiled
def _fill_second(
    first: Pack,
    links: _Links,
    weight: float,
    cost: Floats,
    size: Ints,
    number: Floats,
    owner: Ints,
    words: Ints,
) -> tuple[int, int, int]:
    """Fill in costs, sizes, numbers, sentence pairs and words; returns the counts of problems, word pairs and words."""
    count = at = point = start = 0
    for k in range(len(first.size)):
        m, n = first.size[k, 0], first.size[k, 1]
        span = slice(links.ends[k], links.ends[k + 1])
        matrix = first.cost[start : start + m * n].reshape(m, n)
        held, near, far = _beside(matrix, links.rows[span], links.cols[span])
        start += m * n
        if held.size == 0:
            continue
        cost[at : at + held.size] = held.ravel()
        words[point : point + near.size] = near
        words[point + near.size : point + near.size + far.size] = far
        owner[count] = k
        size[count, 0], size[count, 1] = near.size, far.size
        size[count, 4] = size[count, 5] = 2 * (near.size + far.size)
        number[count, 0] = number[count, 1] = 2.0 * weight
        number[count, 3] = EXACT * 2.0 * weight
        at += held.size
        point += near.size + far.size
        count += 1
    return count, at, point


@part
def _beside(cost: Floats, rows: Ints, cols: Ints) -> tuple[Floats, Ints, Ints]:
    """The costs (p, q) of the second plan, and the words of its p rows and q columns.

    Allowed are pairs of an unaligned word next to a link (``rows[k]``, ``cols[k]``), and the links that these are next
    to; all other costs are infinite. The arrays are empty if there are no such pairs.
    """
    m, n = cost.shape
    free_row, free_col = np.ones(m, np.bool_), np.ones(n, np.bool_)
    for k in range(rows.size):
        free_row[rows[k]] = False
        free_col[cols[k]] = False
    allowed = np.zeros((m, n), np.bool_)
    in_row, in_col = np.zeros(m, np.bool_), np.zeros(n, np.bool_)
    for k in range(rows.size):
        i, j = rows[k], cols[k]
        for step in (-1, 1):
            if 0 <= i + step < m and free_row[i + step]:
                allowed[i, j] = allowed[i + step, j] = True
                in_row[i] = in_row[i + step] = in_col[j] = True
            if 0 <= j + step < n and free_col[j + step]:
                allowed[i, j] = allowed[i, j + step] = True
                in_row[i] = in_col[j] = in_col[j + step] = True
    near, far = np.flatnonzero(in_row), np.flatnonzero(in_col)
    held = np.full((near.size, far.size), np.inf)
    for p in range(near.size):
        for q in range(far.size):
            if allowed[near[p], far[q]]:
                held[p, q] = cost[near[p], far[q]]
    return held, near, far


def _joined(links: _Links, others: _Links, second: _Second) -> _Links:
    """The links of the first plans, and those of the second that are not among them."""
    both = _Links.none(int(links.ends[-1] + others.ends[-1]), links.done.copy())
    _join(links, others, second, both)
    return both


@compiled
def _join(links: _Links, others: _Links, second: _Second, both: _Links) -> None:
    """Write both into ``both``."""
    count = point = p = 0
    for k in range(links.done.size):
        begin = count
        for t in range(links.ends[k], links.ends[k + 1]):
            both.rows[count], both.cols[count], both.share[count] = links.rows[t], links.cols[t], links.share[t]
            count += 1
        end = count
        if p < second.owner.size and second.owner[p] == k:
            near = second.packed.size[p, 0]
            for t in range(others.ends[p], others.ends[p + 1]):
                i, j = second.words[point + others.rows[t]], second.words[point + near + others.cols[t]]
                known = False
                for s in range(begin, end):
                    known |= both.rows[s] == i and both.cols[s] == j
                if not known:
                    both.rows[count], both.cols[count], both.share[count] = i, j, others.share[t]
                    count += 1
            both.done[k] &= others.done[p]
            point += near + second.packed.size[p, 1]
            p += 1
        both.ends[k + 1] = count


@compiled
def _sort(links: _Links) -> None:
    """Sort the links of every sentence pair by words."""
    rows, cols, share = links.rows, links.cols, links.share
    for k in range(links.done.size):
        begin, end = links.ends[k], links.ends[k + 1]
        for t in range(begin, end):
            i, j, size = rows[t], cols[t], share[t]
            place = t  # there are few links, most of them sorted already
            while place > begin and (rows[place - 1], cols[place - 1]) > (i, j):
                rows[place], cols[place], share[place] = rows[place - 1], cols[place - 1], share[place - 1]
                place -= 1
            rows[place], cols[place], share[place] = i, j, size


def _align_alone(cost: Floats, settings: Settings) -> Links:
    """The links of one sentence pair by `solve`, for plans that the compiled batch solver did not finish."""
    m, n = cost.shape
    chains = tuple(np.eye(k) - settings.neighbours * (np.eye(k, k=1) + np.eye(k, k=-1)) for k in (m, n))
    caps = PerRow(1) & PerColumn(1)
    masses = np.ones(m), np.ones(n)
    problem = Problem.from_matrices(cost, *masses, kernels=chains, unbalanced=settings.unbalanced)
    plan = solve(problem, budget=caps, effort=BARE).plan
    rows, cols = np.nonzero(plan > settings.threshold * plan.max())
    found = {(int(i), int(j)): float(plan[i, j] / plan.max()) for i, j in zip(rows, cols, strict=True)}
    held, near, far = _beside(cost, rows, cols)
    if settings.phrases and held.size:
        masses = np.ones(len(near)), np.ones(len(far))
        plan = solve(Problem.from_matrices(held, *masses, unbalanced=settings.phrases)).plan
        for p, q in np.argwhere(plan > 0.0).tolist():
            found.setdefault((int(near[p]), int(far[q])), float(plan[p, q] / plan.max()))
    return sorted(found), [found[pair] for pair in sorted(found)]
