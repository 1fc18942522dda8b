"""What a change of a forest touches, and how to take it back."""

from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.compiling import part, small_part
from .trees import Forest, insert, other_end, remove, settle

NEAR = 16  # points around one, at the most
POINTS, LINKS, MARK, TURN, ASLEEP, IN_USE = range(6)  # what is in ``Patch.counts``


@by_address
class Patch(NamedTuple):
    """The trees that a change touches, as they were before it, and which points are to be looked at."""

    points: Ints  # (points,) of these trees
    ends: Ints  # (2, points) of their links
    mass: Floats  # (points,)
    value: Floats  # (1,) what their points add to the objective
    mark: Ints  # (2, points) when a point was last among them, and when last among those nearby
    nearby: Ints  # (points,)
    partners: Ints  # (points,)
    awake: Ints  # (points,) 1: to be looked at
    counts: Ints  # points and links kept, marks so far, the point in turn, points asleep in a row, 1: is to be kept


def new_patch(points: int) -> Patch:
    """All points are awake."""
    ints, pairs = np.zeros(points, np.int64), np.zeros((2, points), np.int64)
    return Patch(
        ints.copy(),
        pairs.copy(),
        np.zeros(points),
        np.zeros(1),
        pairs,
        ints.copy(),
        ints.copy(),
        ints + 1,
        np.zeros(6, np.int64),
    )


@part
def around(forest: Forest, patch: Patch, start: int, without: int) -> int:
    """Up to ``NEAR`` points around one, the nearest first, into ``patch.nearby``; not across the link ``without``."""
    m, nearby = forest.rows, patch.nearby
    patch.counts[MARK] += 1
    nearby[0], patch.mark[1, start] = start, patch.counts[MARK]
    found, k = 1, 0
    while k < found:
        side = 0 if nearby[k] < m else 1
        link = forest.first[nearby[k]]
        while link >= 0 and found < NEAR:
            other = forest.ends[1 - side, link]
            if link != without and patch.mark[1, other] < patch.counts[MARK]:
                patch.mark[1, other] = patch.counts[MARK]
                nearby[found] = other
                found += 1
            link = forest.after[side, link]
        k += 1
    return found


@small_part
def value_at(forest: Forest, point: int) -> float:
    """What a point adds to the objective."""
    potential = forest.potential[point]
    return float(potential * (forest.wanted[point] - 0.5 * forest.give[point] * potential))


@part
def value_of(forest: Forest, patch: Patch) -> float:
    """What the points of a patch add to the objective now."""
    value = 0.0
    for k in range(patch.counts[POINTS]):
        value += value_at(forest, patch.points[k])
    return value


@small_part
def begin(patch: Patch) -> None:
    """Nothing is kept yet."""
    patch.counts[POINTS], patch.counts[LINKS], patch.value[0] = 0, 0, 0.0
    patch.counts[MARK] += 1


@part
def keep(forest: Forest, patch: Patch, root: int) -> None:
    """Keep the tree of a point as it is, unless it is kept already."""
    counts, mark, m = patch.counts, patch.mark[0], forest.rows
    if mark[root] == counts[MARK]:
        return
    k = counts[POINTS]
    mark[root], patch.points[k] = counts[MARK], root
    counts[POINTS] += 1
    while k < counts[POINTS]:
        point = patch.points[k]
        patch.value[0] += value_at(forest, point)
        side = 0 if point < m else 1
        link = forest.first[point]
        while link >= 0:
            other = other_end(forest, link, point)
            if mark[other] < counts[MARK]:
                mark[other], patch.points[counts[POINTS]] = counts[MARK], other
                counts[POINTS] += 1
                patch.ends[0, counts[LINKS]], patch.ends[1, counts[LINKS]] = forest.ends[0, link], forest.ends[1, link]
                patch.mass[counts[LINKS]] = forest.mass[link]
                counts[LINKS] += 1
            link = forest.after[side, link]
        k += 1


@small_part
def keep_whole(forest: Forest, whole: Patch, point: int) -> None:
    """Keep the tree of a point, if somebody may want it back later."""
    if whole.counts[IN_USE] > 0:
        keep(forest, whole, point)


@part
def restore(forest: Forest, patch: Patch) -> None:
    """Take the trees back to what they were."""
    for p in range(patch.counts[POINTS]):
        while forest.first[patch.points[p]] >= 0:
            remove(forest, forest.first[patch.points[p]])
    for k in range(patch.counts[LINKS]):
        insert(forest, patch.ends[0, k], patch.ends[1, k], patch.mass[k])
    before = forest.counts[1]
    for p in range(patch.counts[POINTS]):
        if forest.tree[patch.points[p]] <= before:
            settle(forest, patch.points[p])
