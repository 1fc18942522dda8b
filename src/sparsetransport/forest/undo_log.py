"""What a change of a forest touches, and how to take it back."""

from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.compiling import part, small_part
from .trees import Forest, fee, insert, is_charged, other_end, remove, settle

POINTS, LINKS, MARK, TURN, ASLEEP, IN_USE, NEAR, REACH = range(8)  # what is in ``UndoLog.counts``


@by_address
class UndoLog(NamedTuple):
    """The trees that a change touches, as they were before it, and which points are to be looked at."""

    points: Ints  # (points,) of these trees
    ends: Ints  # (2, points) of their links
    mass: Floats  # (points,)
    value: Floats  # (1,) what their points add to the objective
    mark: Ints  # (2, points) when a point was last among them, and when last among those nearby
    nearby: Ints  # (points,)
    partners: Ints  # (points,)
    awake: Ints  # (points,) 1: to be looked at
    tabu: Ints  # (2,) row and column (as a point) of the pair that must not be linked; -1: none
    counts: (
        Ints  # points and links kept, marks so far, the point in turn, points asleep, 1: in use; and how many points
    )
    # around a link are offered others, and around a changed one are looked at again


def new_log(points: int) -> UndoLog:
    """All points are awake."""
    ints, pairs = np.zeros(points, np.int64), np.zeros((2, points), np.int64)
    return UndoLog(
        ints.copy(),
        pairs.copy(),
        np.zeros(points),
        np.zeros(1),
        pairs,
        ints.copy(),
        ints.copy(),
        ints + 1,
        np.full(2, -1),
        np.zeros(8, np.int64),
    )


@part
def around(forest: Forest, log: UndoLog, start: int, without: int, most: int) -> int:
    """Up to ``most`` points around one, the nearest first, into ``nearby``; not across the link ``without``."""
    m, nearby = forest.rows, log.nearby
    log.counts[MARK] += 1
    nearby[0], log.mark[1, start] = start, log.counts[MARK]
    found, k = 1, 0
    while k < found:
        side = 0 if nearby[k] < m else 1
        link = forest.first[nearby[k]]
        while link >= 0 and found < most:
            other = forest.ends[1 - side, link]
            if link != without and log.mark[1, other] < log.counts[MARK]:
                log.mark[1, other] = log.counts[MARK]
                nearby[found] = other
                found += 1
            link = forest.after[side, link]
        k += 1
    return found


@small_part
def value_at(forest: Forest, point: int) -> float:
    """What a point adds to the objective; links count where their rows are."""
    potential = forest.potential[point]
    value = potential * (forest.wanted[point] - 0.5 * forest.give[point] * potential)
    if is_charged(forest) and point < forest.rows:
        link = forest.first[point]
        while link >= 0:
            value += fee(forest, point, forest.ends[1, link])
            link = forest.after[0, link]
    return float(value)


@part
def value_of(forest: Forest, log: UndoLog) -> float:
    """What the points of a log add to the objective now."""
    value = 0.0
    for k in range(log.counts[POINTS]):
        value += value_at(forest, log.points[k])
    return value


@small_part
def begin(log: UndoLog) -> None:
    """Nothing is kept yet."""
    log.counts[POINTS], log.counts[LINKS], log.value[0] = 0, 0, 0.0
    log.counts[MARK] += 1


@part
def keep(forest: Forest, log: UndoLog, root: int) -> None:
    """Keep the tree of a point as it is, unless it is kept already."""
    counts, mark, m = log.counts, log.mark[0], forest.rows
    if mark[root] == counts[MARK]:
        return
    k = counts[POINTS]
    mark[root], log.points[k] = counts[MARK], root
    counts[POINTS] += 1
    while k < counts[POINTS]:
        point = log.points[k]
        log.value[0] += value_at(forest, point)
        side = 0 if point < m else 1
        link = forest.first[point]
        while link >= 0:
            other = other_end(forest, link, point)
            if mark[other] < counts[MARK]:
                mark[other], log.points[counts[POINTS]] = counts[MARK], other
                counts[POINTS] += 1
                log.ends[0, counts[LINKS]], log.ends[1, counts[LINKS]] = forest.ends[0, link], forest.ends[1, link]
                log.mass[counts[LINKS]] = forest.mass[link]
                counts[LINKS] += 1
            link = forest.after[side, link]
        k += 1


@small_part
def keep_whole(forest: Forest, whole: UndoLog, point: int) -> None:
    """Keep the tree of a point, if somebody may want it back later."""
    if whole.counts[IN_USE] > 0:
        keep(forest, whole, point)


@part
def restore(forest: Forest, log: UndoLog) -> None:
    """Take the trees back to what they were."""
    for p in range(log.counts[POINTS]):
        while forest.first[log.points[p]] >= 0:
            remove(forest, forest.first[log.points[p]])
    for k in range(log.counts[LINKS]):
        insert(forest, log.ends[0, k], log.ends[1, k], log.mass[k])
    before = forest.counts[1]
    for p in range(log.counts[POINTS]):
        if forest.tree[log.points[p]] <= before:
            settle(forest, log.points[p])


@small_part
def is_tabu(log: UndoLog, row: int, col: int) -> bool:
    """True for the pair that must not be linked."""
    return bool(row == log.tabu[0] and col == log.tabu[1])
