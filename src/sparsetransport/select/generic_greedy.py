"""The generic greedy loop: pick a pair, solve on the support, drop pairs without mass, and repeat.

It is independent of transport. It maximises any function ``F(S) = constant - min over x >= 0 on S`` of a `Quadratic`,
which is monotone and weakly submodular where the quadratic is strongly convex on small supports. A rule chooses
the next pair, a matroid says which pairs are allowed, and an inner solver computes the masses.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, Ints
from ..budgets import Limits, Matroid, Pair, as_matroid, counts, free, limits_of
from ..effort import DEFAULT
from ..inner.solvers import EXACT, ActiveSet, InnerSolver, Solution
from ..plan import Callback, Outcome, Record, as_arrays
from ..problem import Quadratic
from ..status import Status

BLOCK = 256  # rows of the gradient that exist at one time
_Plan = TypeVar("_Plan")


class View:
    """What a rule sees: the gradient at the present plan, and which pairs are free."""

    def __init__(
        self,
        objective: Quadratic,
        matroid: Matroid | None,
        limits: Limits | None,
        inner: InnerSolver,
        support: list[Pair],
        mass: Floats,
        rng: np.random.Generator,
        budget: int,
        tol: float,
    ) -> None:
        self.objective, self.matroid, self.limits, self.inner = objective, matroid, limits, inner
        self.support, self.mass, self.rng, self.budget, self.tol = support, mass, rng, budget, tol
        self.rows, self.cols = as_arrays(support)
        self.fields = objective.fields(self.rows, self.cols, mass)

    def gradient(self, rows: Ints, cols: Ints) -> Floats:
        """The gradient at some pairs off the support."""
        return self.objective.gradient(self.fields, rows, cols)

    def is_free(self, rows: Ints, cols: Ints) -> NDArray[np.bool_]:
        """Which of these pairs off the support the matroid allows."""
        if self.limits is not None:
            return free(self.limits, self.support, rows, cols)
        return np.ones(len(rows), bool) if self.matroid is None else self.matroid.mask(self.support, rows, cols)

    def candidates(self, *, below: float = np.inf) -> tuple[Ints, Ints, Floats]:
        """All pairs off the support with a gradient below ``below``, free or not, and their gradients."""
        found = []
        for first, block in self._blocks():
            rows, cols = np.nonzero(block < below)
            found.append((rows + first, cols, block[rows, cols]))
        rows, cols, gradient = (np.concatenate(part) for part in zip(*found, strict=True))
        return rows, cols, gradient

    def best(self) -> tuple[float, Pair] | None:
        """The free pair with the smallest gradient; ties go to the first column, then to the first row."""
        if self.limits is None and self.matroid is not None:
            return self._best_by_oracle(self.matroid)
        smallest, pair = np.inf, None
        for first, block in self._blocks():
            if self.limits is not None:
                rows, cols = np.divmod(np.arange(block.size), block.shape[1])
                block[~free(self.limits, self.support, rows + first, cols).reshape(block.shape)] = np.inf
            j, i = divmod(int(block.T.argmin()), block.shape[0])
            value = float(block[i, j])
            if value < smallest or (value == smallest and pair is not None and j < pair[1]):
                smallest, pair = value, (i + first, j)
        return None if pair is None else (smallest, pair)

    def _best_by_oracle(self, matroid: Matroid) -> tuple[float, Pair] | None:
        rows, cols, gradient = self.candidates()
        for k in np.lexsort((rows, cols, gradient)):
            pair = int(rows[k]), int(cols[k])
            if matroid.can_add(self.support, pair):
                return float(gradient[k]), pair
        return None

    def _blocks(self) -> Iterator[tuple[int, Floats]]:
        """The gradient a block of rows at a time, ``inf`` on the support and at forbidden pairs."""
        m = self.objective.shape[0]
        for first in range(0, m, BLOCK):
            last = min(first + BLOCK, m)
            block = self.objective.gradient_rows(self.fields, first, last)
            inside = (self.rows >= first) & (self.rows < last)
            block[self.rows[inside] - first, self.cols[inside]] = np.inf
            yield first, block


class Rule(Protocol):
    """A rule that picks the next pair.

    An ``exhaustive`` rule looks at all pairs: if its pick does not help, none does.
    """

    @property
    def exhaustive(self) -> bool:
        """True if the rule looks at all pairs."""

    def select(self, view: View) -> Pair | None:
        """A free pair off the support, or None if there is none."""


def _require_free(view: View, pair: Pair) -> None:
    """Raise an error if a rule, which may be the user's, chose a pair that may not be added."""
    i, j = pair
    m, n = view.objective.shape
    if not (0 <= i < m and 0 <= j < n) or pair in view.support or not view.is_free(*as_arrays([pair]))[0]:
        raise ValueError(f"method: select must return a pair off the support that the budget allows, got {pair!r}")


def maximise(
    objective: Quadratic,
    budget: int | Matroid | None,
    rule: Rule,
    *,
    inner: InnerSolver | None = None,
    reclaim: bool = True,
    rng: np.random.Generator | None = None,
    tol: float = EXACT,
    start: Sequence[Pair] = (),
    callback: Callback | None = None,
) -> Outcome:
    """Choose a support by a rule until the budget is used up or nothing helps.

    Parameters
    ----------
    objective : Quadratic
        The function of the masses on a support.
    budget : int, Matroid or None
        None for no budget.
    rule : Rule
        Which pair comes next.
    inner : InnerSolver, optional
        Exact active set by default.
    reclaim : bool
        Drop pairs whose mass is zero from the support, which frees their budget. False for the published algorithms,
        which count them.
    rng : Generator, optional
        For rules that draw at random.
    tol : float
        A gradient smaller than this times the objective's scale counts as zero.
    start : list of pairs
        Pairs to begin with.
    callback : callable, optional
        Called with a `Step` after each step; a true return value stops the loop.

    Returns
    -------
    Outcome
    """
    matroid = as_matroid(budget)
    limits = limits_of(matroid, objective.shape) if matroid is not None and counts(matroid) else None
    most = limits.most if limits is not None else objective.shape[0] * objective.shape[1]
    inner = ActiveSet(objective, tol) if inner is None else inner
    rng = np.random.default_rng() if rng is None else rng
    threshold = tol * objective.scale
    support = _allowed(start, matroid, limits, objective)
    record = Record()
    solution = inner.solve(*as_arrays(support), np.zeros(len(support)))
    if reclaim:
        support, solution, _ = _drop_empty(support, solution)
    begun = tuple(support)
    status, stalls = Status.BUDGET_USED, 0
    while True:
        view = View(objective, matroid, limits, inner, support, solution.mass, rng, most, threshold)
        pair = rule.select(view)
        if pair is None:
            break
        _require_free(view, pair)
        helps = view.gradient(*as_arrays([pair]))[0] < -threshold
        if not helps and (reclaim or rule.exhaustive or matroid is None):
            best = None if rule.exhaustive else view.best()
            if best is None or best[0] >= -threshold:
                status = Status.LOCAL
                break
            pair = best[1]  # the sample missed it
        before = solution.change
        support.append(pair)
        solution = inner.solve(*as_arrays(support), np.append(solution.mass, 0.0))
        gone: list[Pair] = []
        if reclaim:
            support, solution, gone = _drop_empty(support, solution)
        entries = int((solution.mass > 0.0).sum())
        step = record.add(pair, objective.constant + solution.change, entries, gone)
        if callback is not None and callback(step):
            status = Status.STOPPED
            break
        stalls = stalls + 1 if solution.change >= before else 0
        if reclaim and stalls > DEFAULT.patience:  # only rounding is left to gain
            status = Status.LOCAL
            break
    rows, cols = as_arrays(support)
    return Outcome(rows, cols, solution.mass, status, begun, record, solution.converged)


def _allowed(start: Sequence[Pair], matroid: Matroid | None, limits: Limits | None, objective: Quadratic) -> list[Pair]:
    """Those pairs, taken one after the other, that are not forbidden and that the budget allows."""
    support: list[Pair] = []
    finite = np.isfinite(objective.slope(*as_arrays(start)))
    for pair in dict.fromkeys(pair for pair, fine in zip(start, finite, strict=True) if fine):
        if limits is not None:
            fits = bool(free(limits, support, *as_arrays([pair]))[0])
        else:
            fits = matroid is None or matroid.can_add(support, pair)
        if fits:
            support.append(pair)
    return support


def _drop_empty(support: list[Pair], solution: Solution) -> tuple[list[Pair], Solution, list[Pair]]:
    """Pairs with mass, their solution, and the pairs without."""
    kept = solution.mass > 0.0
    stay = [pair for pair, keep in zip(support, kept, strict=True) if keep]
    gone = [pair for pair, keep in zip(support, kept, strict=True) if not keep]
    return stay, solution._replace(mass=solution.mass[kept]), gone
