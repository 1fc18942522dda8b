"""Polish for any matroid and any objective: exchange one entry for a better pair, as long as that helps."""

import numpy as np

from ..budgets import Matroid, pairs_of
from ..inner.solvers import EXACT, ActiveSet
from ..plan import Callback, Outcome, as_arrays
from ..problem import Quadratic
from ..result import Status
from .generic_greedy import View

WIDTH = 8  # pairs from outside that are tried in a pass
NOBODY = -1  # leaves


def exchange(
    objective: Quadratic, matroid: Matroid, outcome: Outcome, tol: float = EXACT, callback: Callback | None = None
) -> Outcome:
    """Exchange entries of the outcome until no exchange of the steepest pairs outside lowers the objective.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> problem = st.Problem.from_matrices(np.arange(16.0).reshape(4, 4) % 5)
    >>> found = st.maximise(problem, st.Uniform(3), st.OMP())
    >>> better = exchange(problem, st.Uniform(3), found)
    >>> len(better.rows) <= 3
    True
    """
    inner = ActiveSet(objective, tol)
    support = pairs_of(outcome.rows, outcome.cols)
    solution = inner.solve(*as_arrays(support), outcome.mass)
    changed = True
    while changed:
        changed = False
        view = View(
            objective, matroid, None, inner, support, solution.mass, np.random.default_rng(0), 1, tol * objective.scale
        )
        rows, cols, gradient = view.candidates(below=-view.tol)
        wanted = [(int(rows[k]), int(cols[k])) for k in np.argsort(gradient, kind="stable")[:WIDTH]]
        best = view.best() if len(support) < len(outcome.rows) else None  # an exchange has emptied other entries
        tries = [(best[1], NOBODY)] if best is not None and best[0] < -view.tol else []
        tries += [(e, t) for e in wanted for t in np.argsort(solution.mass, kind="stable").tolist()]
        for pair, leaving in tries:
            remaining = [kept for k, kept in enumerate(support) if k != leaving]
            if leaving != NOBODY and not matroid.can_add(remaining, pair):
                continue
            swapped = [*remaining, pair]
            tried = inner.solve(*as_arrays(swapped), np.zeros(len(swapped)))
            if tried.change < solution.change - 1e-12 * abs(solution.change):
                gone = [] if leaving == NOBODY else [support[leaving]]
                gone += [p for p, x in zip(swapped, tried.mass, strict=True) if x <= 0.0]
                support = [p for p, x in zip(swapped, tried.mass, strict=True) if x > 0.0]
                solution = tried._replace(mass=tried.mass[tried.mass > 0.0])
                step = outcome.record.add(pair, objective.constant + solution.change, len(support), gone)
                changed = True
                if callback is not None and callback(step):
                    outcome, changed = outcome._replace(status=Status.STOPPED), False
                break
    rows, cols = as_arrays(support)
    return outcome._replace(rows=rows, cols=cols, mass=solution.mass)
