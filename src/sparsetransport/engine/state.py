"""The problem and the state of a solve as arrays, for compiled functions.

``Data`` is the problem and comes out of a call as it went in (but for the cache of lazy Gram columns); ``Work`` is the
state, and a call may stop at any step and go on from there.
"""

from typing import NamedTuple

import numpy as np

from .._checks import Floats, Ints
from .._numba.borrowed import by_address
from .._numba.compiling import part, small_part
from ..effort import Tuning
from ..geometry._entries import DENSE, Cost, Gram, cost_entry, gram_diagonal, gram_entry, potential
from ..inner.active_set import Factor, copy_factor, new_factor
from .room import CHANGES, Room, forget_refusals

CLOSE = 1e-9  # of the objective: what a plan that counts as optimal may leave to gain
HUGE = 1e8  # times the masses wanted: no plan with more than that in an entry is taken for a better one


@by_address
class Data(NamedTuple):
    """The problem as arrays."""

    cost: Cost  # where candidates are not listed, its matrix is a copy, which scans mark for a moment
    gram_a: Gram
    gram_b: Gram
    base_r: Floats  # (m,) r of the empty plan: -2 lambda_a Ga a
    base_c: Floats  # (n,)
    reg: float
    tol: float  # a gradient above -tol counts as zero
    constant: float  # the objective of the empty plan
    wanted: float  # the masses of both sides together
    listed: bool  # candidates come from a list
    tuning: Tuning
    links: Ints  # (2,) rows and columns of links, which ``reg`` counts; what is behind them is slack
    pricer: int  # the address of a function that prices columns, see `priced_columns`, or zero: they are scanned


@by_address
class Work(NamedTuple):
    """The state of a solve."""

    factor: Factor
    r: Floats
    c: Floats
    mass_a: Floats  # row sums of the plan
    mass_b: Floats
    room: Room
    active: Ints  # (2, max(m, n)) scratch: rows and columns with mass
    head: Ints  # (m,) first support entry of a row, -1: none
    link: Ints  # (capacity,) next one in the same row
    best: Floats  # (depth + 1, n) smallest gradients of a column; at last, scratch for one row of the cost
    where: Ints  # (depth, n) their rows
    listed: Ints  # (2, size) rows and columns of the candidate list
    list_state: Floats  # (4,) pairs in the list, additions it is good for, smallest gradient left out, 1: it is given
    progress: Floats  # (2,) the best gain so far, and steps since it was reached


@by_address
class Saved(NamedTuple):
    """What a state comes back from; the rest of it follows."""

    factor: Factor
    left: Ints


@part
def new_work(data: Data, capacity: int, room: Room) -> Work:
    """The empty plan with arrays for ``capacity`` entries, and a room of its own, as large as ``room``."""
    m, n, depth = data.base_r.size, data.base_c.size, data.tuning.list_depth
    return Work(
        new_factor(capacity),
        data.base_r.copy(),
        data.base_c.copy(),
        np.zeros(m),
        np.zeros(n),
        Room(room.left.copy(), room.labels, room.oracle, room.notes),
        np.zeros((2, max(m, n)), np.int64),
        np.zeros(m, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros((depth + 1, n)),
        np.zeros((depth, n), np.int64),
        np.zeros((2, data.tuning.list_size), np.int64),
        np.zeros(4),
        np.zeros(2),
    )


def with_more_columns(gram: Gram, spare: int, needed: Ints | None = None) -> Gram:
    """A lazy Gram matrix with room for ``spare`` columns more, where there is not as much left.

    Columns of points that are not ``needed`` are forgotten, if these are known; if that is not enough, there is twice
    the room.
    """
    slots, size = gram.columns.shape
    if gram.kind <= DENSE or gram.slot[-1] + spare <= slots or slots == size:
        return gram
    points = np.flatnonzero(gram.slot[:-1] >= 0) if needed is None else np.unique(needed)
    kept = points[gram.slot[points] >= 0]
    kept = kept[np.argsort(gram.slot[kept])]
    columns = gram.columns if points.size + spare <= slots else np.empty((min(2 * slots + spare, size), size))
    for new, old in enumerate(gram.slot[kept].tolist()):  # no column is written over before it has been moved
        columns[new] = gram.columns[old]
    gram.slot[:-1] = -1
    gram.slot[kept], gram.slot[-1] = np.arange(kept.size), kept.size
    return gram._replace(columns=columns)


@part
def new_saved(capacity: int, left: Ints) -> Saved:
    """Room for a state with ``capacity`` entries."""
    return Saved(new_factor(capacity), left.copy())


@part
def save(work: Work, saved: Saved) -> None:
    """Remember the plan."""
    copy_factor(work.factor, saved.factor)
    for k in range(saved.left.size):
        saved.left[k] = work.room.left[k]


@part
def restore(saved: Saved, work: Work) -> None:
    """Go back to the plan that was saved."""
    copy_factor(saved.factor, work.factor)
    for k in range(saved.left.size):
        work.room.left[k] = saved.left[k]
    work.room.notes[CHANGES] += 1
    forget_refusals(work.room)


@part
def couple_arrays(gram_a: Gram, gram_b: Gram, label: Ints, coupling: Floats, i: int, j: int) -> None:
    """The Hessian between the pair and the first pairs of ``label``, as many as ``coupling`` has room for."""
    for t in range(coupling.size):
        coupling[t] = gram_entry(gram_a, i, label[0, t]) + gram_entry(gram_b, j, label[1, t])


@small_part
def couple(data: Data, work: Work, i: int, j: int) -> None:
    """Put the Hessian between the pair and the support into ``factor.coupling``."""
    factor = work.factor
    couple_arrays(data.gram_a, data.gram_b, factor.label, factor.coupling[: factor.size[0]], i, j)


@small_part
def diagonal(data: Data, i: int, j: int) -> float:
    """The Hessian's diagonal entry of a pair."""
    reg = data.reg if i < data.links[0] and j < data.links[1] else 0.0
    return float(gram_diagonal(data.gram_a, i) + gram_diagonal(data.gram_b, j) + reg)


@small_part
def slope(data: Data, i: int, j: int) -> float:
    """The linear term of a pair."""
    return float(cost_entry(data.cost, i, j) + data.base_r[i] + data.base_c[j])


@part
def _tally(
    label: Ints, mass: Floats, size: int, mass_a: Floats, mass_b: Floats, active: Ints, head: Ints, link: Ints
) -> tuple[int, int]:
    """Sums of rows and columns, lists of those with mass, and of the entries of each row; the lengths of the first."""
    mass_a[:] = 0.0
    mass_b[:] = 0.0
    head[:] = -1
    count_a = count_b = 0
    for t in range(size):
        i, j = label[0, t], label[1, t]
        if mass_a[i] == 0.0:
            active[0, count_a] = i
            count_a += 1
        if mass_b[j] == 0.0:
            active[1, count_b] = j
            count_b += 1
        mass_a[i] += mass[t]
        mass_b[j] += mass[t]
        link[t] = head[i]
        head[i] = t
    return count_a, count_b


@small_part
def refresh_inline(data: Data, work: Work) -> None:
    """`refresh` as part of its caller."""
    factor, active = work.factor, work.active
    count_a, count_b = _tally(
        factor.label, factor.mass, factor.size[0], work.mass_a, work.mass_b, active, work.head, work.link
    )
    potential(data.gram_a, data.base_r, work.mass_a, active[0], count_a, work.r)
    potential(data.gram_b, data.base_c, work.mass_b, active[1], count_b, work.c)


@part
def refresh(data: Data, work: Work) -> None:
    """Marginals, ``r`` and ``c`` of the present plan, and the lists of support entries by row."""
    refresh_inline(data, work)


@small_part
def holds(head: Ints, link: Ints, columns: Ints, i: int, j: int) -> bool:
    """Is the pair in the support? Asks the lists that ``refresh`` made."""
    t = head[i]
    while t >= 0 and columns[t] != j:
        t = link[t]
    return bool(t >= 0)


@part
def is_sound(factor: Factor, wanted: float) -> bool:
    """Are the masses of a size that rounding leaves a meaning? Where there is no minimum they grow beyond it."""
    for t in range(factor.size[0]):
        if wanted > 0.0 and not factor.mass[t] < HUGE * wanted:
            return False
    return True


@part
def stalls(progress: Floats, reached: float, patience: float) -> bool:
    """True if nothing but rounding has been gained for a while; ``progress``: the most gained, the steps since."""
    if reached > progress[0] * (1.0 + 1e-14):
        progress[0], progress[1] = reached, 0.0
    else:
        progress[1] += 1.0
    return bool(progress[1] > patience)
