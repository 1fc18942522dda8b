"""Many small problems in one compiled call: no Python between two of them.

Problems lie one after another in flat arrays. Each goes through the same improvers as by `OMPSolver`; one that outgrows
its arrays is left unfinished, and the caller solves it alone.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from .._numba.borrowed import borrowed, by_address, keep
from .._numba.codes import BUDGET_USED, LOCAL, OPTIMAL, UNFINISHED
from .._numba.compiling import compiled, inlined_part, part
from ..budgets import Limits
from ..effort import Effort, Tuning
from ..geometry._entries import DENSE, FAR, SUMMED, Cost, Gram, cost_entry, summarise
from ..plan import Trace, new_trace
from ..problem import Problem
from .elimination import is_better, lift, lower, shrink, write_jump
from .grow import grow, has_room, start_afresh, wants_more
from .omp_solver import first_entries
from .room import Room
from .shell import OPERATIONS
from .state import Data, Saved, Work, new_saved, new_work, restore, save
from .swaps import swap_pass

_T = TypeVar("_T", int, Ints)
GROW, SWAP, ELIMINATE = range(3)
"""What a step of a program does: see `strategy.Effort.program`."""


@by_address
class Pack(NamedTuple):
    """Problems side by side, in order; where each begins follows from the sizes of those before it."""

    size: Ints  # (problems, 6) rows, columns, sizes of the two Gram matrices (0: delta), room for entries, capacity
    number: Floats  # (problems, 4) 2 lambda of the two sides, reg, tol
    cost: Floats
    gram: Floats  # of the first side, then of the second
    mass: Floats  # a, then b
    base: Floats  # r and c of the empty plan
    left: Ints  # capacities of rows and columns

    @classmethod
    def of(
        cls,
        size: Any,
        limits: Sequence[Limits],
        effort: Effort,
        number: Floats,
        cost: Floats,
        gram: Floats,
        mass: Floats,
        base: Floats,
    ) -> "Pack":
        """The arrays as they are, with capacities from the limits, and room for what the effort does beyond them.

        ``size`` has the first four numbers.
        """
        distinct = {id(one): one for one in limits}
        made = {
            key: (one.flat[1:], first_entries(one, effort.beyond(one.most)), one.total) for key, one in distinct.items()
        }
        known = [made[id(one)] for one in limits]
        left = np.concatenate([flat for flat, *_ in known])
        rooms = np.array([(room, total) for _, room, total in known])
        return cls(np.column_stack([np.asarray(size), rooms]), number, cost, gram, mass, base, left)


@by_address
class Plans(NamedTuple):
    """What comes out, laid out in the same way."""

    code: Ints  # (problems,) why each ended
    sizes: Ints  # (problems, 3) entries, steps, departures
    label: Ints  # (entries, 2)
    mass: Floats  # (entries,)
    marginal: Floats  # row sums, then column sums
    field: Floats  # r and c
    number: Floats  # (problems, 3) linear cost, objective, KKT residual
    added: Ints  # (steps, 2)
    gain: Floats  # (steps,)
    entries: Ints  # (steps,)
    gone: Ints  # (departures, 2)
    gone_until: Ints  # (steps,)


def fits(problem: Problem) -> bool:
    """True if all entries of the problem are there."""
    return not problem.cost.is_lazy and max(problem.gram_a.kind, problem.gram_b.kind) <= DENSE


@by_address
class Look(NamedTuple):
    """What is known of problems after a look at all of their numbers."""

    allowed: Ints  # pairs that are not forbidden
    sound: NDArray[np.bool_]  # no NaN, no minus infinity, and masses that are finite and not negative
    lowest: Floats  # the lowest cost
    mean: Floats  # the mean absolute cost of the allowed pairs
    largest: Floats  # (problems, 2) the largest mass of the two sides
    apart: NDArray[np.bool_]  # are all costs far below the largest?


def look(shape: Ints, cost: Floats, mass: Floats) -> Look:
    """See whether costs and masses, side by side, are sound, and how large they are."""
    problems = len(shape)
    seen = Look(
        np.empty(problems, np.int64),
        np.ones(problems, np.bool_),
        np.empty(problems),
        np.empty(problems),
        np.zeros((problems, 2)),
        np.zeros(problems, np.bool_),
    )
    _look(shape, cost, mass, seen)
    return seen


@part
def _stands_apart(cost: Floats) -> bool:
    """True if nothing is between the largest cost and what is far below it."""
    largest = 0.0
    for p in range(cost.size):
        if abs(cost[p]) < np.inf:
            largest = max(largest, abs(cost[p]))
    between = 0
    for p in range(cost.size):
        between += FAR * largest <= abs(cost[p]) < largest
    return between == 0


@compiled
def _look(shape: Ints, cost: Floats, mass: Floats, seen: Look) -> None:
    """Fill in what is seen."""
    at = point = 0
    for k in range(len(shape)):
        m, n = shape[k, 0], shape[k, 1]
        matrix = cost[at : at + m * n].reshape(m, n)
        allowed, lowest, total = 0, np.inf, 0.0
        for first in range(0, m, SUMMED):
            some, least, size = summarise(matrix[first : min(first + SUMMED, m)])
            allowed, lowest, total = allowed + some, min(lowest, least), total + size
        seen.allowed[k], seen.lowest[k], seen.mean[k] = allowed, lowest, total / max(allowed, 1)
        seen.apart[k] = lowest <= FAR * seen.mean[k] and _stands_apart(cost[at : at + m * n])
        # summarise counts neither NaN nor infinity
        forbidden = 0
        for p in range(m * n):
            forbidden += cost[at + p] == np.inf
        seen.sound[k] = allowed + forbidden == m * n and lowest > -np.inf
        for p in range(m + n):
            value, side = mass[point + p], int(p >= m)
            seen.sound[k] &= 0.0 <= value < np.inf
            seen.largest[k, side] = max(seen.largest[k, side], value)
        at += m * n
        point += m + n


def solve(packed: Pack, program: Floats, tuning: Tuning) -> Plans:
    """Solve problems that fit, each within its own limits, by the steps of the program."""
    room = packed.size[:, 4]
    plans = _new_plans(len(room), packed.mass.size, int(room.sum()), int(_steps(room).sum()))
    _solve(packed, program, tuning, plans)
    entries, steps, departures = plans.sizes.sum(0)
    return plans._replace(
        label=plans.label[:entries].copy(),
        mass=plans.mass[:entries].copy(),
        added=plans.added[:steps].copy(),
        gain=plans.gain[:steps].copy(),
        entries=plans.entries[:steps].copy(),
        gone=plans.gone[:departures].copy(),
        gone_until=plans.gone_until[:steps].copy(),
    )


@part
def _steps(room: _T) -> _T:
    """Steps that are written down for a plan with this room; a solve that takes more is left to the caller."""
    return 8 * room + 64


def _new_plans(problems: int, points: int, entries: int, steps: int) -> Plans:
    """Room for what comes out."""
    return Plans(
        np.empty(problems, np.int64),
        np.zeros((problems, 3), np.int64),
        np.empty((entries, 2), np.int64),
        np.empty(entries),
        np.empty(points),
        np.empty(points),
        np.zeros((problems, 3)),
        np.empty((steps, 2), np.int64),
        np.empty(steps),
        np.empty(steps, np.int64),
        np.empty((steps + entries, 2), np.int64),
        np.empty(steps, np.int64),
    )


@part
def _gram(flat: Floats, first: int, size: int, points: int, weight: float, nothing: Floats, slots: Ints) -> Gram:
    """One side's kernel from its matrix in ``flat``; delta where ``size`` is zero."""
    columns = flat[first : first + size * size].reshape(size, size)
    return Gram(min(size, slots[1]), weight, 1.0, columns, slots[: points + 1], nothing)


@compiled
def _solve(packed: Pack, program: Floats, tuning: Tuning, plans: Plans) -> None:
    """Solve all; the arrays of entries and steps have room to spare at their ends."""
    problems, widest = len(packed.size), 1
    for k in range(problems):
        widest = max(widest, packed.size[k, 0], packed.size[k, 1])
    # Numbers come from slots, and False from a comparison, below: constants would be types of their own, and everything
    # that takes them would be compiled twice.
    nothing, slots = np.zeros((0, 0)), np.arange(widest + 1)
    cost_at, gram_at, point = 0, 0, 0
    written = np.zeros(3, np.int64)
    for k in range(problems):
        m, n, side_a, side_b = packed.size[k, 0], packed.size[k, 1], packed.size[k, 2], packed.size[k, 3]
        room, number = packed.size[k, 4], packed.number[k]
        constant, wanted = 0.0, 0.0
        for p in range(point, point + m + n):
            constant -= 0.5 * packed.base[p] * packed.mass[p]
            wanted += packed.mass[p]
        data = Data(
            Cost(slots[0], packed.cost[cost_at : cost_at + m * n].reshape(m, n), nothing, nothing, 1.0),
            _gram(packed.gram, gram_at, side_a, m, number[0], nothing, slots),
            _gram(packed.gram, gram_at + side_a * side_a, side_b, n, number[1], nothing, slots),
            packed.base[point : point + m],
            packed.base[point + m : point + m + n],
            number[2],
            number[3],
            constant,
            wanted,
            m < 0,
            tuning,
            packed.size[k, :2],
            slots[0],
        )
        left = np.empty(1 + m + n, np.int64)
        left[0] = packed.size[k, 5]
        left[1:] = packed.left[point : point + m + n]
        space = Room(left, np.zeros((0, m, n), np.int32), np.zeros(1, np.int64), np.zeros(3, np.int64))
        here, other = borrowed(data), room if len(program) > 1 else slots[1]
        work, trace = new_work(here, room, space), new_trace(_steps(room), room)
        before, spare = new_saved(other, left), new_saved(other, left)
        state, steps = borrowed(work), borrowed(trace)
        plans.code[k] = _run(here, state, borrowed(before), borrowed(spare), steps, program)
        if plans.code[k] != UNFINISHED:
            _describe(packed, plans, k, point, here, state)
            _write(plans, k, written, state, steps)
        keep(data)
        keep(work)
        keep(before)
        keep(spare)
        keep(trace)
        cost_at += m * n
        gram_at += side_a * side_a + side_b * side_b
        point += m + n


@part
def _swap(data: Data, work: Work, spare: Saved, trace: Trace, effort: Floats, allowed: float, passes: float) -> bool:
    """`OMPSolver.swap` in one go; False if there is no room for what it does."""
    allowed += effort[0]
    accepted = 1
    while accepted != 0 and passes > 0.0 and effort[0] < allowed:
        accepted = swap_pass(data, work, spare, trace, effort, min(allowed, effort[0] + 10.0 * OPERATIONS))
        if accepted < 0 or trace.steps[0] == trace.gain.size:
            return False
        passes -= 1.0
    return True


@inlined_part
def _eliminate(
    data: Data,
    work: Work,
    before: Saved,
    spare: Saved,
    trace: Trace,
    effort: Floats,
    extra: int,
    allowed: float,
    passes: float,
) -> bool:
    """`OMPSolver.eliminate` in one go; False if there is no room for what it does."""
    factor, steps, departures = work.factor, trace.steps[0], trace.steps[1]
    if factor.size[0] == 0 or not wants_more(data, work):
        return True
    save(work, before)
    total = lift(work.room, extra)
    start_afresh(work)
    code = grow(data, work, trace, effort, np.inf)
    lower(work.room, extra, total)
    if code in (BUDGET_USED, LOCAL):
        shrink(data, work, trace, np.full(factor.mass.size, np.nan), effort, np.inf)
        start_afresh(work)
        code = grow(data, work, trace, effort, np.inf)
    if code not in (BUDGET_USED, LOCAL) or not _swap(data, work, spare, trace, effort, allowed, passes):
        return False
    trace.steps[0], trace.steps[1] = steps, departures
    if not (is_better(factor, work.room, before.factor, data.wanted) and write_jump(before.factor, factor, trace)):
        restore(before, work)
    return True


@inlined_part
def _run(data: Data, work: Work, before: Saved, spare: Saved, trace: Trace, program: Floats) -> int:
    """One problem from start to end, as `OMPSolver` does it."""
    effort, built = np.zeros(1), 0.0
    for k in range(program.shape[0]):
        kind, passes, allowed = program[k, 0], program[k, 1], program[k, 2] * built + program[k, 3]
        if kind == GROW:
            start_afresh(work)
            code = grow(data, work, trace, effort, np.inf)
            if code != BUDGET_USED and code != LOCAL:
                return UNFINISHED
            built = effort[0]
        elif kind == SWAP:
            if not _swap(data, work, spare, trace, effort, allowed, passes):
                return UNFINISHED
        else:
            extra = int(min(max(float(work.factor.size[0]), program[k, 4]), program[k, 5]))
            if not _eliminate(data, work, before, spare, trace, effort, extra, allowed, passes):
                return UNFINISHED
    if not wants_more(data, work):
        return OPTIMAL
    return LOCAL if has_room(data, work) else BUDGET_USED


@part
def _missed(field: Floats, mass: Floats, wanted: Floats) -> float:
    """What the marginal of one side misses, times two."""
    total = 0.0
    for i in range(field.size):
        total += field[i] * (mass[i] - wanted[i])
    return total


@inlined_part
def _describe(packed: Pack, plans: Plans, k: int, point: int, data: Data, work: Work) -> None:
    """Marginals, potentials and numbers of a plan whose ``r`` and ``c`` are up to date."""
    m, n, factor = work.r.size, work.c.size, work.factor
    plans.marginal[point : point + m], plans.marginal[point + m : point + m + n] = work.mass_a, work.mass_b
    plans.field[point : point + m], plans.field[point + m : point + m + n] = work.r, work.c
    # Sums have loops of their own: beside stores the compiler may take one order or another, by where arrays lie.
    missed = _missed(work.r, work.mass_a, packed.mass[point : point + m])
    missed += _missed(work.c, work.mass_b, packed.mass[point + m : point + m + n])
    linear = square = residual = 0.0
    for t in range(factor.size[0]):
        i, j, mass = factor.label[0, t], factor.label[1, t], factor.mass[t]
        cost = cost_entry(data.cost, i, j)
        linear += cost * mass
        square += mass * mass
        residual = max(residual, abs(cost + work.r[i] + work.c[j] + data.reg * mass))
    plans.number[k, 0] = linear
    plans.number[k, 1] = linear + 0.5 * missed + 0.5 * data.reg * square
    plans.number[k, 2] = residual


@inlined_part
def _write(plans: Plans, k: int, written: Ints, work: Work, trace: Trace) -> None:
    """Entries and steps of a plan, behind those of the plans before it."""
    factor = work.factor
    for t in range(factor.size[0]):
        plans.label[written[0] + t, 0], plans.label[written[0] + t, 1] = factor.label[0, t], factor.label[1, t]
        plans.mass[written[0] + t] = factor.mass[t]
    for s in range(trace.steps[0]):
        plans.added[written[1] + s, 0], plans.added[written[1] + s, 1] = trace.added[0, s], trace.added[1, s]
        plans.gain[written[1] + s] = trace.gain[s]
        plans.entries[written[1] + s] = trace.entries[s]
        plans.gone_until[written[1] + s] = trace.gone_until[s]
    for d in range(trace.steps[1]):
        plans.gone[written[2] + d, 0], plans.gone[written[2] + d, 1] = trace.gone[0, d], trace.gone[1, d]
    plans.sizes[k, 0], plans.sizes[k, 1], plans.sizes[k, 2] = factor.size[0], trace.steps[0], trace.steps[1]
    for kind in range(3):
        written[kind] += plans.sizes[k, kind]
