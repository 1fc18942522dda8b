"""Room in a budget, for compiled functions: the one test of whether a pair may be added.

Capacities are in one array, for the whole plan, its rows, its columns and labelled groups, in this order. ``labels``
has shape (q, m, n) and holds the group of every pair in each of ``q`` families of groups; -1: in none. A budget that
does not count entries is asked through ``oracle``; what it refused is in the last family, in a group without any
capacity, until a pair leaves the support: a matroid that refuses a pair refuses it for every larger support.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.callback import Callback, call_address
from .._numba.compiling import compiled, part, small_part
from ..budgets import Limits, Matroid, Pair, counts, limits_of


@by_address
class Room(NamedTuple):
    """What is left of a budget."""

    left: Ints  # (1 + m + n + groups,) free capacities
    labels: NDArray[np.int32]  # (q, m, n)
    oracle: Ints  # (1,) the address of the function to ask as well, or zero
    notes: Ints  # (3 + 2 * _ASIDE,) changes so far, questions since somebody looked, pairs set aside, rows and columns


_ASIDE = 4  # pairs that can be set aside at a time
CHANGES, ASKED, ASIDE = range(3)
ASKING = 3e3  # operations that a question counts for: it goes through Python


class Constraint:
    """A budget on plans of one shape: its limits, and the matroid itself where they do not say all of it."""

    def __init__(self, matroid: Matroid | None, shape: tuple[int, int]) -> None:
        self.limits = limits_of(matroid, shape)
        self.oracle = None if counts(matroid) else matroid

    @classmethod
    def of(cls, limits: Limits) -> "Constraint":
        """One that the limits say all of."""
        made = cls.__new__(cls)
        made.limits, made.oracle = limits, None
        return made

    def of_rank(self, rank: int) -> "Constraint":
        """The same, where all maximal plans are known to have so many links, as in a matroid: less need be asked."""
        made = Constraint.of(self.limits._replace(total=min(self.limits.total, rank)))
        made.oracle = self.oracle
        return made

    def room(self) -> Room:
        """All of it."""
        limits = self.limits
        labels, left = limits.labels, limits.flat
        if self.oracle is not None:
            refused = np.full((1, *labels.shape[1:]), -1, np.int32)
            labels, left = np.concatenate([labels, refused]), np.append(left, 0)
        return Room(left, labels, np.zeros(1, np.int64), np.zeros(3 + 2 * _ASIDE, np.int64))

    def attach(self, room: Room, support: Callable[[], list[Pair]]) -> Callback | None:
        """Have the room ask the matroid about the support that a solver says it has; None if it need not be asked."""
        matroid = self.oracle
        if matroid is None:
            return None

        known: tuple[int, list[Pair]] = (-1, [])

        def may_add(i: int, j: int) -> bool:
            nonlocal known
            changes, _, count, *aside = room.notes.tolist()
            if known[0] != changes:
                known = changes, support()
            if not count:
                return matroid.can_add(known[1], (i, j))
            gone = list(zip(aside[: 2 * count : 2], aside[1 : 2 * count : 2], strict=True))
            return matroid.can_add([pair for pair in known[1] if pair not in gone], (i, j))

        callback = Callback(may_add)
        room.oracle[0] = callback.address
        return callback


def excess(matroid: Matroid, support: list[Pair], loss: Floats) -> list[int]:
    """Places of the pairs to give up so that a matroid allows the rest, which is worth most; the least missed first."""
    kept: list[Pair] = []
    spare = []
    for k in np.argsort(-loss, kind="stable").tolist():
        if matroid.can_add(kept, support[k]):
            kept.append(support[k])
        else:
            spare.append(k)
    return spare[::-1]


@part
def count(room: Room, i: int, j: int, change: int) -> None:
    """Give back (+1) or take (-1) the capacity that the pair uses."""
    _change(room, i, j, change)
    room.notes[CHANGES] += 1
    if change > 0:
        forget_refusals(room)


@part
def forget_refusals(room: Room) -> None:
    """What was refused may be allowed by now."""
    if room.oracle[0] != 0:
        room.labels[room.labels.shape[0] - 1] = -1


@small_part
def _change(room: Room, i: int, j: int, change: int) -> None:
    left, labels = room.left, room.labels
    m, n = labels.shape[1], labels.shape[2]
    left[0] += change
    left[1 + i] += change
    left[1 + m + j] += change
    for q in range(labels.shape[0]):
        if labels[q, i, j] >= 0:
            left[1 + m + n + labels[q, i, j]] += change


@part
def is_free(room: Room, i: int, j: int) -> bool:
    """True if the pair may be added."""
    return has_capacity(room, i, j) and (room.oracle[0] == 0 or _ask(room, i, j))


@part
def has_capacity(room: Room, i: int, j: int) -> bool:
    """True if the pair may be added for all that is known without asking."""
    left, labels = room.left, room.labels
    m, n = labels.shape[1], labels.shape[2]
    if left[0] <= 0 or left[1 + i] <= 0 or left[1 + m + j] <= 0:
        return False
    families = labels.shape[0]
    if room.oracle[0] != 0 and room.notes[ASIDE] > 0:  # what was refused may be allowed without the pairs set aside
        families -= 1
    for q in range(families):
        if labels[q, i, j] >= 0 and left[1 + m + n + labels[q, i, j]] <= 0:
            return False
    return True


@part
def _ask(room: Room, i: int, j: int) -> bool:
    """What the oracle says of the pair, which is remembered if it is refused and nothing is set aside."""
    room.notes[ASKED] += 1
    allowed = call_address(room.oracle[0], i, j) != 0
    if not allowed and room.notes[ASIDE] == 0:
        room.labels[room.labels.shape[0] - 1, i, j] = room.left.size - 2 - room.labels.shape[1] - room.labels.shape[2]
    return allowed


@part
def set_aside(room: Room, i: int, j: int) -> None:
    """Leave a pair of the support out of account for a moment."""
    k = room.notes[ASIDE]
    room.notes[3 + 2 * k], room.notes[4 + 2 * k] = i, j
    room.notes[ASIDE] = k + 1
    _change(room, i, j, 1)


@part
def put_back(room: Room) -> None:
    """Take the pair that was last set aside into account again."""
    k = room.notes[ASIDE] - 1
    room.notes[ASIDE] = k
    _change(room, room.notes[3 + 2 * k], room.notes[4 + 2 * k], -1)


@small_part
def questions(room: Room) -> float:
    """Operations that the questions since the last look count for."""
    asked = room.notes[ASKED]
    room.notes[ASKED] = 0
    return ASKING * asked


@small_part
def is_over(room: Room, i: int, j: int) -> bool:
    """True if the pair uses a capacity that is exceeded."""
    left, labels = room.left, room.labels
    m, n = labels.shape[1], labels.shape[2]
    if left[0] < 0 or left[1 + i] < 0 or left[1 + m + j] < 0:
        return True
    for q in range(labels.shape[0]):
        if labels[q, i, j] >= 0 and left[1 + m + n + labels[q, i, j]] < 0:
            return True
    return False


@compiled
def fits(room: Room, rows: Ints, cols: Ints) -> bool:
    """True if all of the pairs have room together, for capacities alone; nothing is taken."""
    for k in range(rows.size):
        _change(room, rows[k], cols[k], -1)
    enough = True
    for k in range(room.left.size):
        enough &= room.left[k] >= 0
    for k in range(rows.size):
        _change(room, rows[k], cols[k], 1)
    return enough
