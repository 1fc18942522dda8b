r"""Trees with points whose marginal errors count on one side alone, and with bounds on their potentials for that.

A point that may keep some of its mass without a penalty (sense ``"<="``) has a potential of at most zero, one that may
take more (``">="``) of at least zero. So the potentials of a tree move freely up to a bound. Beyond it the point at the
bound, the *anchor*, which is the root of its tree, takes what is left over, and the potentials stay where they are.

What a tree pays for sending ``x`` more is therefore :math:`R(x) = \min(h, \max(0, x - z)/s)` for each further unit:
nothing while the anchor has some left over (``z``), then by the spread ``s``, up to the next bound at ``h``. *Down* is
the direction in which a tree sends more, potentials of rows fall and those of columns rise; *up* is the other one.
"""

from typing import TYPE_CHECKING

import numpy as np

from .._numba.compiling import part, small_part

if TYPE_CHECKING:
    from .trees import Forest

FREE, UP, DOWN = range(3)  # what a tree's anchor blocks: nothing, since there is none; that it goes up; or down
# places in ``Forest.reach``, for the tree of a point, and what may go between it and the anchor
FREE_DOWN, MOST_DOWN, FREE_UP, MOST_UP, FLOW = range(5)
# places in ``Forest.parts``, for the two parts of a tree without a link: back to where they were, or on from there
BACK_FREE, BACK_MOST, ON_FREE, ON_MOST = range(4)


@small_part
def is_sided(forest: "Forest") -> bool:
    """True if potentials have bounds."""
    return bool(forest.bound.shape[1] > 0)


@part
def clipped(forest: "Forest", size: int, shift: float) -> tuple[float, int, int]:
    """The shift of a tree's potentials that the bounds allow, the point that is at its bound, and one opposed to it.

    No point: -1. An opposed one has a bound that no shift can keep together with that of the first one.
    """
    order, potential, bound, m = forest.order, forest.potential, forest.bound, forest.rows
    least, most, at_least, at_most = -np.inf, np.inf, -1, -1
    for k in range(size):
        point = order[k]
        low, high = bound[0, point] - potential[point], bound[1, point] - potential[point]
        if point >= m:
            low, high = -high, -low
        if low > least:
            least, at_least = low, point
        if high < most:
            most, at_most = high, point
    forest.counts[2] = FREE
    if least > most:
        forest.counts[2] = UP
        return most, at_most, at_least
    if shift > most:
        forest.counts[2] = UP
        return most, at_most, -1
    if shift < least:
        forest.counts[2] = DOWN
        return least, at_least, -1
    return shift, -1, -1


@part
def oppose(forest: "Forest", size: int, opposed: int) -> None:
    """Goals of masses where a point and the root both gain by moving mass between them for ever, until a link is empty.

    Every second link on the way loses mass, beginning with that of a column at its highest potential.
    """
    order, above, mass, goal = forest.order, forest.above, forest.mass, forest.goal
    for k in range(1, size):
        goal[above[order[k]]] = max(mass[above[order[k]]], 2.0 * forest.tiny[0])
    point, loses, widest = opposed, opposed >= forest.rows and forest.bound[1, opposed] < np.inf, 0.0
    while above[point] >= 0:
        widest = max(widest, mass[above[point]])
        point = forest.ends[0, above[point]] + forest.ends[1, above[point]] - point
    point = opposed
    while above[point] >= 0:
        goal[above[point]] += -2.0 * (widest + forest.tiny[0]) if loses else 2.0 * (widest + forest.tiny[0])
        loses = not loses
        point = forest.ends[0, above[point]] + forest.ends[1, above[point]] - point


@part
def describe_tree(forest: "Forest", size: int) -> None:
    """What a tree may send more or less, and what its parts may if one of its links were cut."""
    order, above, bound, span, m = forest.order, forest.above, forest.bound, forest.span, forest.rows
    potential, state, root = forest.potential, forest.counts[2], order[0]
    own_up, own_down, below_up, below_down, to_up, to_down, from_up, from_down = (
        span[0],
        span[1],
        span[2],
        span[3],
        span[4],
        span[5],
        span[6],
        span[7],
    )
    to_up[0] = to_down[0] = from_up[size] = from_down[size] = np.inf
    for k in range(size):
        point = order[k]
        up, down = bound[1, point] - potential[point], potential[point] - bound[0, point]
        if point >= m:
            up, down = down, up
        own_up[point] = below_up[point] = max(up, 0.0)
        own_down[point] = below_down[point] = max(down, 0.0)
        to_up[k + 1], to_down[k + 1] = min(to_up[k], own_up[point]), min(to_down[k], own_down[point])
    for k in range(size - 1, 0, -1):
        point = order[k]
        parent = forest.ends[0, above[point]] + forest.ends[1, above[point]] - point
        from_up[k], from_down[k] = min(from_up[k + 1], own_up[point]), min(from_down[k + 1], own_down[point])
        below_up[parent] = min(below_up[parent], below_up[point])
        below_down[parent] = min(below_down[parent], below_down[point])
    spare = 0.0 if state == FREE else abs(forest.need[root])
    for k in range(size):
        point = order[k]
        reach = forest.reach
        reach[FREE_DOWN, point], reach[MOST_DOWN, point] = spare, below_down[root]
        reach[FREE_UP, point], reach[MOST_UP, point] = spare, below_up[root]
        if state == UP:
            reach[FREE_UP, point] = np.inf
        elif state == DOWN:
            reach[FREE_DOWN, point] = np.inf
        reach[FLOW, point] = np.inf
        if state != FREE and k > 0:  # every second link towards the root loses mass
            parent = forest.ends[0, above[point]] + forest.ends[1, above[point]] - point
            flow = forest.mass[above[point]]
            if above[parent] >= 0:
                beyond = forest.ends[0, above[parent]] + forest.ends[1, above[parent]] - parent
                flow = min(flow, reach[FLOW, beyond])
            reach[FLOW, point] = flow
    for k in range(1, size):
        point = order[k]
        last = forest.last[point] + 1
        up, down = min(to_up[k], from_up[last]), min(to_down[k], from_down[last])
        _describe_cut(forest, point, (below_up[point], below_down[point]), (up, down), spare)


@part
def _describe_cut(
    forest: "Forest", point: int, near: tuple[float, float], far: tuple[float, float], spare: float
) -> None:
    """What would be, were the link above a point cut; ``near`` and ``far`` are how far its parts may go up and down.

    The part with the row of the link goes up, the one with its column down.
    """
    link, state = forest.above[point], forest.counts[2]
    mass, side = forest.mass[link], 0 if point == forest.ends[0, link] else 1
    worth = 0.0
    for which in range(2):
        end = side if which == 0 else 1 - side  # 0: the part with the row
        spread = forest.cut[2 + end, link]
        most, on = near[end] if which == 0 else far[end], np.inf
        free, at_root = 0.0, which == 1 and state != FREE
        blocked = at_root and state == (UP if end == 0 else DOWN)
        if at_root and not blocked:
            free = spare
        beyond = max(mass - free, 0.0)
        rise = 0.0 if blocked else min(beyond / spread, most)
        worth += rise * (beyond - 0.5 * spread * rise)
        back, back_most = max(beyond - spread * most, 0.0), np.inf
        if blocked:
            back, on = mass + spare, np.inf
        elif at_root and beyond == 0.0:
            back, on = np.inf, free - mass
        else:
            on = np.inf if rise >= most else 0.0
            back_most = rise if at_root else np.inf
        forest.cut[end, link] = forest.potential[forest.ends[end, link]] + rise
        forest.parts[4 * end + BACK_FREE, link], forest.parts[4 * end + BACK_MOST, link] = back, back_most
        forest.parts[4 * end + ON_FREE, link], forest.parts[4 * end + ON_MOST, link] = on, most - rise
    forest.worth[link] = worth


@part
def sided_worth(
    pull: float,
    spread: float,
    free: float,
    most: float,
    others: float,
    others_free: float,
    others_most: float,
    cap: float,
) -> float:
    """What a new link of at most ``cap`` between two trees or parts is worth, whose prices are as above."""
    gain = at = 0.0
    for _ in range(5):
        following, slope = cap, 0.0
        for which in range(2):
            flat, wide = (free, spread) if which == 0 else (others_free, others)
            steep = flat + wide * (most if which == 0 else others_most)
            if at < flat:
                following = min(following, flat)
            elif at < steep:
                following = min(following, steep)
                slope += 1.0 / wide
        if slope > 0.0 and at + pull / slope <= following:
            return gain + 0.5 * pull * pull / slope
        step = following - at
        gain += step * (pull - 0.5 * slope * step)
        pull, at = pull - slope * step, following
        if at >= cap:
            return gain
    return gain


@part
def joined_trees(forest: "Forest", row: int, col: int, pull: float, limited: bool) -> float:
    """What a new link between two trees is worth; at most that, unless what goes along them is ``limited`` too."""
    reach, cap = forest.reach, np.inf
    if limited:
        cap = min(reach[FLOW, row], reach[FLOW, col])
    return sided_worth(
        pull,
        forest.whole[row],
        reach[FREE_DOWN, row],
        reach[MOST_DOWN, row],
        forest.whole[col],
        reach[FREE_UP, col],
        reach[MOST_UP, col],
        cap,
    )


@part
def joined_part(forest: "Forest", link: int, part_of: int, point: int, other: int, pull: float) -> float:
    """What a new link of ``point`` is worth, which is in one part of the tree of a link that is cut.

    ``other`` is in another tree, or in the other part. Part 0 has the row of the link.
    """
    m, parts, reach = forest.rows, forest.parts, forest.reach
    from_row = point < m
    place = 4 * part_of + (BACK_FREE if from_row == (part_of == 0) else ON_FREE)
    free, most, spread = parts[place, link], parts[place + 1, link], forest.cut[2 + part_of, link]
    if forest.tree[other] == forest.tree[point]:
        far = 1 - part_of
        place = 4 * far + (BACK_FREE if (other < m) == (far == 0) else ON_FREE)
        others_free, others_most, others = parts[place, link], parts[place + 1, link], forest.cut[2 + far, link]
        cap = forest.mass[link] + max(min(free, forest.mass[link]), min(others_free, forest.mass[link]))
    else:
        others = forest.whole[other]
        first = FREE_UP if from_row else FREE_DOWN
        others_free, others_most = reach[first, other], reach[first + 1, other]
        cap = max(reach[FLOW, other], forest.mass[link])
    return sided_worth(pull, spread, free, most, others, others_free, others_most, cap)


@part
def crossed(forest: "Forest", link: int, other: int, pull: float) -> float:
    """What a new link is worth between the part of ``link`` with its row and that of ``other`` with its column."""
    parts, cap = forest.parts, forest.mass[link] + forest.mass[other]
    return sided_worth(
        pull,
        forest.cut[2, link],
        parts[BACK_FREE, link],
        parts[BACK_MOST, link],
        forest.cut[3, other],
        parts[4 + BACK_FREE, other],
        parts[4 + BACK_MOST, other],
        cap,
    )
