r"""Links without a cycle, for delta kernels and no ``reg``, with the best masses that they can have.

They split the points into trees. On a tree all masses are positive only if :math:`\alpha_i + \beta_j = C_{ij}` on each
of its links, where :math:`\alpha_i = 2\lambda_a(a_i - \rho_i)` and :math:`\beta_j = 2\lambda_b(b_j - \kappa_j)` for row
sums :math:`\rho` and column sums :math:`\kappa`. That leaves one unknown a tree, which the sums decide, since what
leaves its rows arrives at its columns; the masses follow from the leaves inwards. So a change takes time with the
points of a tree, and not with the square of the links.

Points are numbered rows first. A point gives way by :math:`g = 1/2\lambda` of its side, and the objective is the sum
of :math:`\pi d - \tfrac12 g \pi^2` over all points, for potentials :math:`\pi` and wanted masses :math:`d`. If a tree
of spread :math:`s = \sum g` is to take in a little more than it sends, its potentials move by that over :math:`s`. So

- a link of mass :math:`x` between parts of spreads :math:`s` and :math:`t` is worth :math:`\tfrac12 x^2 (1/s + 1/t)`,
- one that is not there, with :math:`\pi_i + \pi_j - C_{ij} = W > 0`, would be worth :math:`\tfrac12 W^2 / (1/s + 1/t)`,

as long as no other link is left without mass, and at most that if one is.
"""

from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.compiling import compiled, part, small_part
from ..engine.room import Room, count
from ..geometry._entries import Cost, cost_entry
from ..given import potentials_of
from ..problem import Problem
from .sided import clipped, describe_tree, is_sided, oppose

_TINY = 1e-15  # of all masses: a link with less has none


@by_address
class Forest(NamedTuple):
    """Links, lists of them by point, and what is known of each tree since it was last settled."""

    cost: Cost
    rows: int
    room: Room
    wanted: Floats  # (points,) masses
    give: Floats  # (points,) one over twice the weight of their errors
    ends: Ints  # (2, room) the two points of a link
    mass: Floats  # (room,) zero where a link is not in use
    after: Ints  # (2, room) the next link of the same point, on either side; -1: none
    before: Ints  # (2, room)
    spare: Ints  # (room,) links that are not in use, ``counts[0]`` of them
    first: Ints  # (points,) the first link of a point
    potential: Floats  # (points,)
    tree: Ints  # (points,) a number for the tree, larger for those settled later
    above: Ints  # (points,) the link towards the root of the tree
    place: Ints  # (points,) in the tree: what hangs on a point comes right behind it,
    last: Ints  # (points,) up to this place
    below: Floats  # (points,) the spread of a point and what hangs on it
    whole: Floats  # (points,) the spread of the tree
    cut: Floats  # (4, room) were a link cut: the potentials of its ends, and the spreads of the two parts
    worth: Floats  # (room,) by how much the objective would rise then
    goal: Floats  # (room,) what the masses are on their way to
    need: Floats  # (points,) what is left of the sums of the points
    order: Ints  # (points,) of a tree, by place
    stack: Ints  # (points,)
    pending: Ints  # (points,)
    counts: Ints  # spare links, trees so far, what the anchor of a tree blocks: see `sided`
    tiny: Floats  # (1,) what counts as no mass
    fees: Floats  # (rows, columns) what links cost, or (1, 1) if all cost the same; no entries if they cost nothing
    bound: Floats  # (2, points) the lowest and the highest potential; no points where all senses are "="
    reach: Floats  # (5, points) what a tree may send more or less: see `sided`
    parts: Floats  # (8, room) the same for the parts of a tree, were a link cut
    span: Floats  # (8, points + 1) how far potentials are from their bounds


def bare(problem: Problem, room: Room, share: Floats | float = 1.0) -> Forest:
    """Points without links.

    Shares of the points change the problem: masses times their share, weights divided by it.
    """
    m, n = problem.shape
    points = m + n
    wanted = np.concatenate([problem.a, problem.b]) * share
    give = np.repeat(np.divide(0.5, problem.unbalanced), (m, n)) * share
    floats, ints = np.zeros(points), np.zeros(points, np.int64)
    sided = points if problem.is_sided else 0
    pairs, none = np.zeros((2, points), np.int64), np.full(points, -1)
    return Forest(
        cost=problem.cost.compiled,
        rows=m,
        room=room,
        wanted=wanted,
        give=give,
        ends=pairs.copy(),
        mass=floats.copy(),
        after=pairs.copy(),
        before=pairs.copy(),
        spare=ints + np.arange(points),
        first=none.copy(),
        potential=floats.copy(),
        tree=none.copy(),
        above=none.copy(),
        place=ints.copy(),
        last=ints.copy(),
        below=floats.copy(),
        whole=floats.copy(),
        cut=np.zeros((4, points)),
        worth=floats.copy(),
        goal=floats.copy(),
        need=floats.copy(),
        order=ints.copy(),
        stack=ints.copy(),
        pending=ints.copy(),
        counts=np.array([points, 0, 0]),
        tiny=np.array([_TINY * float(wanted.sum())]),
        fees=_fees(problem),
        bound=np.repeat(np.transpose([potentials_of(sense) for sense in problem.sense]), (m, n), axis=1)[
            :, :sided
        ].copy(),
        reach=np.zeros((5, sided)),
        parts=np.zeros((8, sided)),
        span=np.zeros((8, sided + 1)),
    )


def _fees(problem: Problem) -> Floats:
    """What links cost, as compiled functions read it."""
    if problem.link_cost is None:
        return np.zeros((0, 0))
    is_one = problem.link_cost.strides == (0, 0)
    return np.ascontiguousarray(problem.link_cost[:1, :1] if is_one else problem.link_cost)


@small_part
def is_charged(forest: Forest) -> bool:
    """True if links cost something, whatever they carry."""
    return bool(forest.fees.size > 0)


@small_part
def fee(forest: Forest, row: int, col: int) -> float:
    """What a link costs, whatever it carries."""
    fees = forest.fees
    if fees.size == 0:
        return 0.0
    return float(fees[0, 0] if fees.size == 1 else fees[row, col - forest.rows])


def links(forest: Forest) -> tuple[Ints, Ints, Floats]:
    """Rows, columns and masses."""
    used = np.flatnonzero(forest.mass > 0.0)
    return forest.ends[0, used], forest.ends[1, used] - forest.rows, forest.mass[used]


@compiled
def plant(forest: Forest, rows: Ints, cols: Ints, mass: Floats) -> None:
    """Begin with these links, each tree at its best; forbidden ones and those that close a cycle are left out."""
    insert_all(forest, rows, cols, mass)
    for point in range(forest.first.size):
        if forest.tree[point] < 0:
            settle(forest, point)


@part
def insert_all(forest: Forest, rows: Ints, cols: Ints, mass: Floats) -> None:
    """New links; forbidden ones and those that close a cycle are left out."""
    m, joined = forest.rows, np.arange(forest.first.size)
    for k in range(rows.size):
        near, far = _root(joined, rows[k]), _root(joined, m + cols[k])
        if near != far and cost_entry(forest.cost, rows[k], cols[k]) < np.inf:
            joined[near] = far
            insert(forest, rows[k], m + cols[k], mass[k])


@part
def _root(joined: Ints, point: int) -> int:
    """The point that stands for all that this one is joined with."""
    while joined[point] != point:
        joined[point] = joined[joined[point]]
        point = joined[point]
    return point


@part
def insert(forest: Forest, row: int, col: int, mass: float) -> None:
    """A new link, first in the lists of its points."""
    forest.counts[0] -= 1
    link = forest.spare[forest.counts[0]]
    forest.mass[link] = mass
    for side in range(2):
        point = row if side == 0 else col
        following = forest.first[point]
        forest.ends[side, link] = point
        forest.after[side, link], forest.before[side, link] = following, -1
        if following >= 0:
            forest.before[side, following] = link
        forest.first[point] = link
    count(forest.room, row, col - forest.rows, -1)


@part
def remove(forest: Forest, link: int) -> None:
    """Take a link out; what is left of its tree on either side has to be settled anew."""
    for side in range(2):
        point, following, previous = forest.ends[side, link], forest.after[side, link], forest.before[side, link]
        if previous >= 0:
            forest.after[side, previous] = following
        else:
            forest.first[point] = following
        if following >= 0:
            forest.before[side, following] = previous
    forest.mass[link] = 0.0
    forest.spare[forest.counts[0]] = link
    forest.counts[0] += 1
    count(forest.room, forest.ends[0, link], forest.ends[1, link] - forest.rows, 1)


@small_part
def other_end(forest: Forest, link: int, point: int) -> int:
    """The point at the other end of a link."""
    return int(forest.ends[0, link] + forest.ends[1, link] - point)


@small_part
def wish(forest: Forest, row: int, col: int) -> float:
    """By how much a pair wants to be linked: minus its gradient."""
    return float(forest.potential[row] + forest.potential[col] - cost_entry(forest.cost, row, col - forest.rows))


@small_part
def joined_worth(pull: float, spread: float, other: float) -> float:
    """What a new link between two trees is worth."""
    return 0.5 * pull * pull * spread * other / (spread + other)


@part
def settle(forest: Forest, root: int) -> int:
    """Take a tree to the best masses of its links; those left without mass go, and the parts are settled as well.

    The points looked at, times four.
    """
    forest.pending[0] = root
    pending, looked = 1, 0
    while pending > 0:
        pending, size = settle_next(forest, pending)
        if size > 0:
            _describe(forest, size)
        looked += 4 * abs(size)
    return looked


@part
def settle_next(forest: Forest, pending: int) -> tuple[int, int]:
    """Take one of the trees that wait towards its best masses, and a link out if it is left without mass.

    How many trees wait now, and the points of this one, which is in order; as a negative number if a link is out.
    """
    pending -= 1
    size = _walk(forest, forest.pending[pending])
    blocking = _approach(forest, size)
    if blocking < 0:
        return pending, size
    forest.pending[pending], forest.pending[pending + 1] = forest.ends[0, blocking], forest.ends[1, blocking]
    remove(forest, blocking)
    return pending + 2, -size


@part
def _walk(forest: Forest, root: int) -> int:
    """The points of a tree, each followed by what hangs on it, and potentials that agree with the links' costs."""
    order, above, ends, after, stack = forest.order, forest.above, forest.ends, forest.after, forest.stack
    potential, m = forest.potential, forest.rows
    forest.counts[1] += 1
    stack[0], above[root], potential[root] = root, -1, 0.0
    size, waiting = 0, 1
    while waiting > 0:
        waiting -= 1
        point = stack[waiting]
        order[size], forest.place[point], forest.tree[point] = point, size, forest.counts[1]
        size += 1
        side = 0 if point < m else 1
        link = forest.first[point]
        while link >= 0:
            if link != above[point]:
                other = ends[1 - side, link]
                above[other] = link
                potential[other] = cost_entry(forest.cost, ends[0, link], ends[1, link] - m) - potential[point]
                stack[waiting] = other
                waiting += 1
            link = after[side, link]
    return size


@part
def _balance(forest: Forest, size: int) -> tuple[float, float]:
    """The shift of the potentials that balances a tree, and its spread; the sums of the points without it."""
    order, potential, need, give, m = forest.order, forest.potential, forest.need, forest.give, forest.rows
    surplus = spread = 0.0  # of rows over columns, and what a shift of the potentials takes off it
    for k in range(size):
        point = order[k]
        need[point] = forest.wanted[point] - potential[point] * give[point]
        surplus += need[point] if point < m else -need[point]
        spread += give[point]
    return surplus / spread, spread


@part
def _approach(forest: Forest, size: int) -> int:
    """Go towards the best masses on a tree, until the first of them is zero: that link, or -1."""
    order, above, mass, goal = forest.order, forest.above, forest.mass, forest.goal
    potential, need, give, below = forest.potential, forest.need, forest.give, forest.below
    m, opposed = forest.rows, -1
    shift, spread = _balance(forest, size)
    if is_sided(forest):
        shift, anchor, opposed = clipped(forest, size, shift)
        if anchor >= 0 and anchor != order[0]:
            shift += potential[anchor] if anchor < m else -potential[anchor]
            _walk(forest, anchor)
            _balance(forest, size)
    for k in range(size):
        point = order[k]
        change = shift if point < m else -shift
        potential[point] += change
        need[point] -= change * give[point]
        below[point], forest.whole[point], forest.last[point] = give[point], spread, k
    if opposed >= 0:
        oppose(forest, size, opposed)
    length, blocking = 1.0, -1
    for k in range(size - 1, 0, -1):
        point = order[k]
        link = above[point]
        towards = other_end(forest, link, point)
        if opposed < 0:
            goal[link] = need[point]
        need[towards] -= goal[link]
        below[towards] += below[point]
        forest.last[towards] = max(forest.last[towards], forest.last[point])
        if goal[link] <= forest.tiny[0]:
            share = min(mass[link] / (mass[link] - goal[link]), 1.0) if mass[link] > max(goal[link], 0.0) else 0.0
            if share < length or blocking < 0:
                length, blocking = share, link
    for k in range(1, size):
        link = above[order[k]]
        mass[link] = goal[link] if blocking < 0 else max(mass[link] + length * (goal[link] - mass[link]), 0.0)
    return blocking


@part
def _describe(forest: Forest, size: int) -> None:
    """What would be, were a link of a settled tree cut."""
    cut, mass = forest.cut, forest.mass
    for k in range(1, size):
        point = forest.order[k]
        link = forest.above[point]
        side = 0 if point == forest.ends[0, link] else 1
        cut[2 + side, link], cut[3 - side, link] = forest.below[point], forest.whole[point] - forest.below[point]
        rise = mass[link] / cut[2, link], mass[link] / cut[3, link]
        cut[0, link] = forest.potential[forest.ends[0, link]] + rise[0]
        cut[1, link] = forest.potential[forest.ends[1, link]] + rise[1]
        forest.worth[link] = 0.5 * mass[link] * (rise[0] + rise[1])
    if is_sided(forest):
        describe_tree(forest, size)


@part
def way_round(forest: Forest, row: int, col: int, moved: float) -> tuple[float, int]:
    """Move mass from the links between two points of a tree to a new one between them; the sums stay what they are.

    Of the links on the way every second one, beginning at both ends, loses mass: the least that one has, and which.
    """
    place, last, mass = forest.place, forest.last, forest.mass
    near, far, loses_near, loses_far = row, col, True, True
    least, least_at = np.inf, -1
    while near != far:
        if place[near] <= place[far] <= last[near]:  # near is on the way from far to the root
            link, loses = forest.above[far], loses_far
            far, loses_far = other_end(forest, link, far), not loses_far
        else:
            link, loses = forest.above[near], loses_near
            near, loses_near = other_end(forest, link, near), not loses_near
        if loses and mass[link] < least:
            least, least_at = mass[link], link
        mass[link] += -moved if loses else moved
    return least, least_at
