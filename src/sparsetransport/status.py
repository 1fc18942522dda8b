"""Why a solve ended."""

from enum import Enum
from typing import Any


class Status(Enum):
    """Why a solve ended, in words."""

    OPTIMAL = "no pair lowers the objective any further: this is the unbudgeted optimum"
    EMPTY = "the empty plan is optimal: moving mass costs more than the marginal errors it removes; raise unbalanced"
    BUDGET_USED = "the budget is used up"
    LOCAL = "no pair that the budget still allows lowers the objective"
    PRICED = "computed from the dual prices of a large problem: the gap bounds the distance from the unbudgeted optimum"
    TOLERANCE = "no pair that the budget allows has a gradient steeper than tol; a smaller tol may lower the objective"
    ROUNDING = (
        "no pair lowers the objective beyond rounding errors, which are large: unbalanced is too large or unequal"
    )
    GAP_REACHED = "the certified gap is within the tolerance asked for"
    GAP_OPEN = "no improvement was found, and the certified gap is above the tolerance asked for"
    GIVEN = "the links were given, and their masses are optimal"
    BASELINE = "the plan of a baseline method, which has an objective of its own"
    OPTIMAL_PROVEN = "no plan within the budget is better: proven"
    INFEASIBLE = "no plan that keeps the hard marginals was found within the budget: this one violates them least"
    STOPPED = "stopped by the callback"
    TIME_LIMIT = "the time limit was reached"
    ALL_FORBIDDEN = "every pair is forbidden: the plan is empty"

    def __str__(self) -> str:
        return self.value

    def said_of(self, parts: Any, has_pairs: bool, is_exact: bool, is_lost: bool = False) -> "Status":
        """The status itself, or the one that says why the plan is empty, or no better than ``tol`` or rounding."""
        if not has_pairs:
            return Status.ALL_FORBIDDEN
        if self in (Status.OPTIMAL, Status.LOCAL) and (is_lost or not is_exact):
            return Status.ROUNDING if is_lost else Status.TOLERANCE
        wanted = all(side.any() for side in parts.wanted) and any(sense != "<=" for sense in parts.sense)
        return Status.EMPTY if self is Status.OPTIMAL and wanted and not parts.mass.size else self
