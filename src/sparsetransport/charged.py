r"""Links with a fixed cost: the linear problems that stand for them, from below and as starts.

A link that costs :math:`f` whatever it carries, and can carry at most :math:`M` in an optimal plan, costs at least
:math:`f/M` a unit. So the problem with the costs :math:`C + f/M` and no fixed ones has no larger optimum. With
:math:`f/x` for the mass :math:`x` of a link in a plan, in place of :math:`f/M`, the linear costs are those of that plan
(dynamic slope scaling); its optimum is another plan, and often a better one.
"""

import numpy as np

from ._checks import Floats
from .effort import Effort
from .geometry.matrices import Cost
from .optimum import unbudgeted_optimum
from .plan import Outcome, Record
from .problem import Problem
from .result import Status

_KEY = "linear in place of fixed"


def largest_masses(problem: Problem) -> Floats:
    r"""What a link carries at the most in an optimal plan; ``inf`` where nothing limits it.

    A hard upper limit of its row or column does. With soft ones on both sides :math:`C_{ij} + r_i + c_j = 0` on a link,
    where :math:`r_i \ge 2\lambda_a(x - a_i)` and :math:`c_j \ge 2\lambda_b(x - b_j)` for its mass :math:`x`.
    """
    m, n = problem.shape
    limits = [
        wanted if sense != ">=" and weight == np.inf else np.full_like(wanted, np.inf)
        for wanted, sense, weight in zip((problem.a, problem.b), problem.sense, problem.unbalanced, strict=True)
    ]
    most = np.minimum(limits[0][:, None], limits[1])
    if ">=" not in problem.sense and not problem.is_hard:
        (weight_a, weight_b), costs = problem.unbalanced, problem.cost.rows(0, m)
        soft = (weight_a * problem.a[:, None] + weight_b * problem.b - 0.5 * costs) / (weight_a + weight_b)
        most = np.minimum(most, np.maximum(soft, 0.0))
    return np.broadcast_to(most, (m, n))


def linear(problem: Problem, masses: Floats) -> Problem:
    """The problem where links cost their fixed cost over these masses, a unit; nothing can go where they are zero."""
    assert problem.link_cost is not None
    costs = problem.cost.rows(0, problem.shape[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.where(problem.link_cost > 0.0, problem.link_cost / masses, 0.0)
    return problem.like(cost=Cost.of_matrix(costs + more), link_cost=None)


def relaxed(problem: Problem) -> Problem:
    """The problem without fixed costs whose optimum is no larger; kept with the problem."""
    if _KEY not in problem.memo:
        problem.memo[_KEY] = linear(problem, largest_masses(problem))
    found: Problem = problem.memo[_KEY]
    return found


def slope_scaled(problem: Problem, effort: Effort) -> Outcome:
    """The best plan that rounds of slope scaling lead to, whatever the budget is."""
    masses = np.minimum(largest_masses(problem), np.minimum(problem.a[:, None], problem.b))
    best, value, seen = None, np.inf, set[bytes]()
    for _ in range(effort.slope_rounds):
        plan = unbudgeted_optimum(linear(problem, masses), effort)
        found = problem.value(plan.rows, plan.cols, plan.mass)
        if best is None or found < value:
            best, value = plan, found
        key = np.sort(plan.rows * problem.shape[1] + plan.cols).tobytes()
        if key in seen:
            break
        seen.add(key)
        masses = masses.copy()
        masses[plan.rows, plan.cols] = np.where(plan.mass > 0.0, plan.mass, masses[plan.rows, plan.cols])
    assert best is not None, "an effort must have slope_rounds"
    status = Status.INFEASIBLE if best.status is Status.INFEASIBLE else Status.LOCAL
    return Outcome(best.rows, best.cols, best.mass, status, (), Record(), True)
