r"""One-sided marginals for any kernel: entries without a cost that the budget does not count.

Where a side may have less than its masses, or more, the norm is that of what is left after the best slack
:math:`s \ge 0`: :math:`\|\gamma 1 - a + s\|_G` or :math:`\|\gamma 1 - a - s\|_G`. Further entries bring it: a row
more for every row, with its column of the Gram matrix or minus that, and one column that they all share, which nothing
is asked of. So whatever solves problems whose marginals are exact solves these.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._checks import Floats, Ints
from ..budgets import Limits, Matroid, Pair, free, pairs_of
from ..geometry._entries import DENSE
from ..geometry.matrices import Cost, Gram
from ..plan import Outcome, Record
from ..problem import Problem
from .room import Constraint

_ANY = 2**40  # entries: no limit


class Slacked(Problem):
    """A problem with entries for slack behind its links; ``reg`` counts links alone."""

    linked: tuple[int, int]  # the shape of the problem without them

    @classmethod
    def of(cls, problem: Problem) -> Problem:
        """The problem with exact marginals and slack."""
        return cls.of_all([problem])[0]

    @classmethod
    def of_all(cls, problems: Sequence[Problem]) -> list[Problem]:
        """The same for several with the same senses; what they share, they share then too."""
        known: dict[tuple[int, int, int], tuple[Cost, Gram, Gram]] = {}
        made: list[Problem] = []
        for problem in problems:
            key = id(problem.cost), id(problem.gram_a), id(problem.gram_b)
            if key not in known:
                known[key] = _matrices(problem)
            cost, gram_a, gram_b = known[key]
            (m, n), one = problem.shape, object.__new__(cls)
            a, b = np.zeros(gram_a.size), np.zeros(gram_b.size)
            a[:m], b[:n] = problem.a, problem.b
            values = {name: vars(problem)[name] for name in problem.__dataclass_fields__}
            values |= {"cost": cost, "gram_a": gram_a, "gram_b": gram_b, "a": a, "b": b}
            vars(one).update(values, sense=("=", "="), points=None, labels=(None, None), linked=(m, n))
            made.append(one)
        return made

    @property
    def counted_shape(self) -> tuple[int, int]:
        """Rows and columns whose pairs are links."""
        return self.linked

    def value(self, rows: Ints, cols: Ints, mass: Floats) -> float:
        """The objective of a sparse plan, from its definition."""
        slack = mass[~self._are_links(rows, cols)]
        return super().value(rows, cols, mass) - 0.5 * self.reg * float(slack @ slack)

    def hessian(self, rows: Ints, cols: Ints, other_rows: Ints, other_cols: Ints) -> Floats:
        """The quadratic term between two lists of pairs."""
        block = super().hessian(rows, cols, other_rows, other_cols)
        same = (rows[:, None] == other_rows) & (cols[:, None] == other_cols)
        block[same & ~self._are_links(rows, cols)[:, None]] -= self.reg
        return block

    def _are_links(self, rows: Ints, cols: Ints) -> Any:
        return (rows < self.linked[0]) & (cols < self.linked[1])


def first_slack(problem: Problem) -> tuple[list[Pair], Floats]:
    """The slack of the empty plan, and its masses: that of all points that may have less than they could."""
    pairs, masses = list[Pair](), []
    for (rows, cols), wanted, sense in zip(_pairs(problem), (problem.a, problem.b), problem.sense, strict=True):
        if sense == "<=":
            some = np.flatnonzero(wanted)
            pairs += list(zip(rows[some].tolist(), cols[some].tolist(), strict=True))
            masses.append(wanted[some])
    return pairs, np.concatenate([np.zeros(0), *masses])


def slack_pairs(problem: Problem) -> list[Pair]:
    """All entries for slack."""
    return [pair for rows, cols in _pairs(problem) for pair in pairs_of(rows, cols)]


def room_for_slack(problem: Problem, constraint: Constraint) -> Constraint:
    """The budget on links, with room for all slack."""
    (m, n), (rows, cols), limits = problem.shape, _shape(problem), constraint.limits
    layers = [*limits.labels] + [np.zeros((m, n), np.int32) + len(limits.groups)] * (limits.total < m * n)
    labels = np.full((len(layers), rows, cols), -1, np.int32)
    for layer, known in zip(labels, layers, strict=True):
        layer[:m, :n] = known
    groups = np.append(limits.groups, limits.total) if limits.total < m * n else limits.groups
    wide = Limits(
        _ANY,
        np.append(limits.rows, np.full(rows - m, n + 1)),
        np.append(limits.cols, np.full(cols - n, m + 1)),
        labels,
        groups.astype(np.int64),
    )
    made = Constraint.of(wide)
    if constraint.oracle is not None:
        made.oracle = _OnLinks(constraint.oracle, (m, n))
    return made


def has_room(problem: Problem, constraint: Constraint, rows: Ints, cols: Ints) -> bool:
    """True if the budget would let another pair in that is not forbidden, as far as it counts entries."""
    held, n = pairs_of(rows, cols), problem.shape[1]
    for first, block in problem.cost.blocks():
        i, j = np.nonzero(np.isfinite(block))
        i += first
        others = ~np.isin(i * n + j, rows * n + cols)
        if free(constraint.limits, held, i[others], j[others]).any():
            return True
    return False


def without_slack(plan: Outcome, shape: tuple[int, int]) -> Outcome:
    """The plan of links alone, and how it got there; masses may have a row for every scenario."""
    m, n = shape
    kept = (plan.rows < m) & (plan.cols < n)
    start = tuple(pair for pair in plan.start if pair[0] < m and pair[1] < n)
    record = _on_links(plan.record, start, shape)
    return plan._replace(
        rows=plan.rows[kept], cols=plan.cols[kept], mass=plan.mass[..., kept], start=start, record=record
    )


def _on_links(record: Record, start: Sequence[Pair], shape: tuple[int, int]) -> Record:
    """The steps that added links, with how many links there were after each."""
    m, n = shape
    path = record.path((), lambda *_: None)
    kept, inside, first, made = [], set(start), 0, Record()
    counts = []
    for k, (pair, until) in enumerate(zip(path.pairs.tolist(), path.gone_until.tolist(), strict=True)):
        inside.add((pair[0], pair[1]))
        inside -= {(i, j) for i, j in path.gone[first:until].tolist()}
        first = until
        if pair[0] < m and pair[1] < n:
            kept.append(k)
            counts.append(sum(i < m and j < n for i, j in inside))
    gone = (path.gone < (m, n)).all(axis=1)
    until = np.append(0, np.cumsum(gone))[path.gone_until]
    if kept:
        ends = until[kept]
        ends[-1], counts[-1] = (
            gone.sum(),
            sum(i < m and j < n for i, j in inside),
        )  # what left later, left with the last
        made.extend(path.pairs[kept], path.objective[kept], np.array(counts), path.gone[gone], ends)
    return made


class _OnLinks(Matroid):
    """A budget on the links of a plan."""

    def __init__(self, matroid: Matroid, shape: tuple[int, int]) -> None:
        self.matroid, self.shape = matroid, shape
        self.is_matroid = matroid.is_matroid

    def can_add(self, support: Sequence[Pair], pair: Pair) -> bool:
        """True if ``pair`` may be added to ``support``."""
        m, n = self.shape
        if pair[0] >= m or pair[1] >= n:
            return True
        return self.matroid.can_add([each for each in support if each[0] < m and each[1] < n], pair)


def _shape(problem: Problem) -> tuple[int, int]:
    (m, n), (first, second) = problem.shape, (sense != "=" for sense in problem.sense)
    return m + m * first + second, n + n * second + first


def _pairs(problem: Problem) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """The pairs of the slack of rows, and of columns."""
    (m, n), (rows, cols) = problem.shape, _shape(problem)
    lines = [
        np.arange(size) if sense != "=" else np.zeros(0, np.int64)
        for size, sense in zip((m, n), problem.sense, strict=True)
    ]
    return (m + lines[0], np.full(len(lines[0]), cols - 1)), (np.full(len(lines[1]), rows - 1), n + lines[1])


def _matrices(problem: Problem) -> tuple[Cost, Gram, Gram]:
    """Costs and kernels with slack."""
    first, second = problem.sense
    matrix = np.full(_shape(problem), np.inf)
    for start, block in problem.cost.blocks():
        matrix[start : start + len(block), : block.shape[1]] = block
    for rows, cols in _pairs(problem):
        matrix[rows, cols] = 0.0
    kernels = _wider(problem.gram_a, first, second != "="), _wider(problem.gram_b, second, first != "=")
    return Cost.of_matrix(matrix), *kernels


def _wider(gram: Gram, sense: str, grounded: bool) -> Gram:
    """The kernel with points for slack, and one that nothing is asked of if the other side has some."""
    if sense == "=" and not grounded:
        return gram
    every = np.arange(gram.size)
    block = gram.block(every, every)
    if sense != "=":
        sign = 1.0 if sense == "<=" else -1.0
        block = np.block([[block, sign * block], [sign * block, block]])
    if grounded:
        block = np.pad(block, (0, 1))
    return Gram(DENSE, len(block), np.ascontiguousarray(block))
