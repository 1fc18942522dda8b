"""Local search on trees of links as in `local_search`, which looks at the pairs on short lists alone.

Plans of large problems have many small trees. A point is offered the pairs on its list, a link those of the points near
it. A crossing of two links is looked at if one of its new pairs is on a list.
"""

from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.codes import LOCAL, PAUSED
from .._numba.compiling import compiled, part
from ..engine.room import has_capacity, put_back, set_aside
from ..geometry._entries import cost_entry
from .lists import Lists
from .local_search import _exchange, _link_between, _partners
from .trees import Forest, insert, joined_worth, remove, settle, way_round
from .undo_log import NEAR, REACH, UndoLog, around


@by_address
class Queue(NamedTuple):
    """The points that are to be looked at, in turn."""

    points: Ints  # (points,) round and round
    waits: Ints  # (points,) 1: among them
    counts: Ints  # (2,) where the first one is, and how many there are


def queue_of(points: Ints, size: int) -> Queue:
    """These points, out of so many."""
    ring, waits = np.zeros(size, np.int64), np.zeros(size, np.int64)
    ring[: points.size], waits[points] = points, 1
    return Queue(ring, waits, np.array([0, points.size]))


@part
def _wake(forest: Forest, log: UndoLog, queue: Queue, point: int) -> None:
    """What is around a point is to be looked at again."""
    size, counts = queue.points.size, queue.counts
    for k in range(around(forest, log, point, -1, log.counts[REACH])):
        near = log.nearby[k]
        if queue.waits[near] == 0:
            queue.waits[near] = 1
            queue.points[(counts[0] + counts[1]) % size] = near
            counts[1] += 1


@compiled
def improve(
    forest: Forest,
    log: UndoLog,
    whole: UndoLog,
    queue: Queue,
    lists: Lists,
    tol: float,
    least: float,
    effort: Floats,
    limit: float,
) -> int:
    """Look at the points in the queue, and change what lowers the objective by ``least``, until it is empty."""
    counts = queue.counts
    while counts[1] > 0:
        if effort[0] > limit:
            return PAUSED
        point = queue.points[counts[0]]
        counts[0], counts[1] = (counts[0] + 1) % queue.points.size, counts[1] - 1
        queue.waits[point] = 0
        effort[0] += 1.0
        while _improve_at(forest, log, whole, queue, lists, point, tol, least, effort):
            pass
    return LOCAL


@part
def _improve_at(
    forest: Forest,
    log: UndoLog,
    whole: UndoLog,
    queue: Queue,
    lists: Lists,
    point: int,
    tol: float,
    least: float,
    effort: Floats,
) -> bool:
    """One change at a point, if one helps."""
    if forest.first[point] < 0 and forest.room.left[0] <= 0:
        return False
    if _link_up(forest, log, whole, queue, lists, point, tol, least, effort):
        return True
    partners = _partners(forest, log, point)
    for k in range(partners):
        if queue.waits[log.partners[k]] > 0:
            continue  # the link will be looked at from there
        link = _link_between(forest, point, log.partners[k])
        if link < 0:
            return True  # rounding has cut it off: look again
        row, col = _best_replacement(forest, log, lists, link, least, effort)
        if row >= 0 and _tried(forest, log, whole, queue, link, -1, row, col, tol, least, effort):
            return True
        link = _link_between(forest, point, log.partners[k])  # what was tried in vain has another number now
        if link < 0:
            return True
        other = _best_crossing(forest, log, lists, link, least, effort)
        if other >= 0 and _tried(forest, log, whole, queue, link, other, -1, -1, tol, least, effort):
            return True
    return False


@part
def _tried(
    forest: Forest,
    log: UndoLog,
    whole: UndoLog,
    queue: Queue,
    link: int,
    other: int,
    row: int,
    col: int,
    tol: float,
    least: float,
    effort: Floats,
) -> bool:
    """Exchange a link for a pair, or for another link crosswise, if that helps; and look around there again."""
    i, j = forest.ends[0, link], forest.ends[1, link]
    k, l = (row, col) if other < 0 else (forest.ends[0, other], forest.ends[1, other])
    if not _exchange(forest, log, whole, link, other, row, col, tol, least, effort):
        return False
    _wake(forest, log, queue, i)
    _wake(forest, log, queue, j)
    _wake(forest, log, queue, k)
    _wake(forest, log, queue, l)
    return True


@part
def _link_up(
    forest: Forest,
    log: UndoLog,
    whole: UndoLog,
    queue: Queue,
    lists: Lists,
    point: int,
    tol: float,
    least: float,
    effort: Floats,
) -> bool:
    """Add the best new link at a point."""
    m, tree_here, best, partner = forest.rows, forest.tree[point], least, -1
    has_room = forest.room.left[0] > 0 and forest.room.left[1 + point] > 0
    for e in range(lists.first[point], lists.first[point + 1]):
        other = lists.other[e]
        is_joined = forest.tree[other] == tree_here
        pull = forest.potential[point] + forest.potential[other] - lists.cost[e]
        row, col = min(point, other), max(point, other)
        if pull <= tol or not (is_joined or has_room):
            continue
        if not is_joined:
            gain = joined_worth(pull, forest.whole[row], forest.whole[col])
            if gain > best and has_capacity(forest.room, row, col - m):
                best, partner = gain, other
        else:
            moved, blocking = way_round(forest, row, col, 0.0)
            effort[0] += 10.0
            if moved * pull > best:
                set_aside(forest.room, forest.ends[0, blocking], forest.ends[1, blocking] - m)
                if has_capacity(forest.room, row, col - m):
                    best, partner = moved * pull, other
                put_back(forest.room)
    effort[0] += lists.first[point + 1] - lists.first[point]
    if partner < 0:
        return False
    row, col = min(point, partner), max(point, partner)
    moved = 0.0
    if forest.tree[row] == forest.tree[col]:
        moved, blocking = way_round(forest, row, col, 0.0)
        way_round(forest, row, col, moved)
        _wake(forest, log, queue, forest.ends[0, blocking])
        _wake(forest, log, queue, forest.ends[1, blocking])
        remove(forest, blocking)
    insert(forest, row, col, moved)
    effort[0] += settle(forest, row)
    _wake(forest, log, queue, row)
    _wake(forest, log, queue, col)
    return True


@part
def _best_replacement(
    forest: Forest, log: UndoLog, lists: Lists, link: int, least: float, effort: Floats
) -> tuple[int, int]:
    """The pair that is best linked in place of a link; -1 if none seems to help: see `local_search`."""
    m, cut, place, last, tree = forest.rows, forest.cut, forest.place, forest.last, forest.tree
    i, j = forest.ends[0, link], forest.ends[1, link]
    hanging = i if forest.above[i] == link else j
    tree_here, low, high = tree[i], place[hanging], last[hanging]
    rises = forest.mass[link] / cut[2, link], -forest.mass[link] / cut[3, link]
    small = 0 if cut[2, link] <= cut[3, link] else 1
    found = around(forest, log, forest.ends[small, link], link, log.counts[NEAR])
    log.nearby[found] = forest.ends[1 - small, link]
    set_aside(forest.room, i, j - m)
    best, best_row, best_col = forest.worth[link] + least, -1, -1
    for k in range(found + 1):
        point = log.nearby[k]
        if forest.room.left[1 + point] <= 0:
            continue
        part_of = small if k < found else 1 - small
        hangs, from_row = low <= place[point] <= high, point < m
        base = forest.potential[point] + (rises[part_of] if from_row else -rises[part_of])
        across = -rises[1 - part_of] if from_row else rises[1 - part_of]
        effort[0] += lists.first[point + 1] - lists.first[point]
        for e in range(lists.first[point], lists.first[point + 1]):
            other = lists.other[e]
            pull, spread = base + forest.potential[other] - lists.cost[e], forest.whole[other]
            if tree[other] == tree_here:
                if (low <= place[other] <= high) == hangs:
                    continue
                pull += across
                spread = cut[3 - part_of, link]
            if pull <= 0.0:
                continue
            gain = joined_worth(pull, cut[2 + part_of, link], spread)
            row, col = (point, other) if from_row else (other, point)
            if gain <= best or (row == i and col == j):
                continue
            if has_capacity(forest.room, row, col - m):
                best, best_row, best_col = gain, row, col
    put_back(forest.room)
    return best_row, best_col


@part
def _best_crossing(forest: Forest, log: UndoLog, lists: Lists, link: int, least: float, effort: Floats) -> int:
    """The link of another tree with which one is best exchanged crosswise; -1 if none seems to help."""
    m, cut = forest.rows, forest.cut
    best, partner = least, -1
    for side in range(2):
        point, left = forest.ends[side, link], forest.ends[1 - side, link]
        effort[0] += 2.0 * (lists.first[point + 1] - lists.first[point])
        for e in range(lists.first[point], lists.first[point + 1]):
            target = lists.other[e]
            if forest.tree[target] == forest.tree[point]:
                continue
            other = forest.first[target]
            while other >= 0:
                pull = cut[side, link] + cut[1 - side, other] - lists.cost[e]
                if pull > 0.0:
                    end = forest.ends[side, other]
                    row, col = (left, end) if side == 1 else (end, left)
                    second = cut[1 - side, link] + cut[side, other] - cost_entry(forest.cost, row, col - m)
                    if second > 0.0:
                        gain = joined_worth(pull, cut[2 + side, link], cut[3 - side, other])
                        gain += joined_worth(second, cut[3 - side, link], cut[2 + side, other])
                        gain -= forest.worth[link] + forest.worth[other]
                        if gain > best:
                            best, partner = gain, other
                other = forest.after[1 - side, other]
    return partner
