"""Budgets that only the user can tell about reach what the compiled loop reaches."""

import numpy as np
import pytest
from cases import instance, support

import sparsetransport as st


class SoMany(st.Matroid):
    """As `Uniform`, by one method."""

    def __init__(self, k):
        self.k = k

    def can_add(self, support, pair):
        return len(support) < self.k


class OnceAColumn(st.Matroid):
    """As `PerColumn(1)`, by one method."""

    def can_add(self, support, pair):
        return all(held[1] != pair[1] for held in support)


class Everything(st.Matroid):
    """Forbids nothing."""

    def can_add(self, support, pair):
        return True


@pytest.mark.parametrize("seed", range(12))
def test_nothing_that_helps_is_left_out(seed):
    """An exchange may empty other entries: the room is used."""
    case = instance(seed, 6, 5, "delta", 0.0, (10.0, 10.0))
    result = case.solve(budget=SoMany(7))
    again = case.solve(budget=SoMany(7), start=result)
    assert again.value >= result.value * (1.0 - 1e-9)


@pytest.mark.parametrize(("own", "known"), [(SoMany(20), 20), (OnceAColumn(), st.PerColumn(1))])
@pytest.mark.parametrize("seed", range(3))
def test_a_budget_by_one_method_gives_plans_as_good(own, known, seed):
    """Within a few per cent of those of the compiled loop; without the looser budget's plan they cost twice as much."""
    C = np.random.default_rng(seed).random((20, 20))
    assert st.solve(C, budget=own).value <= 1.05 * st.solve(C, budget=known).value


def test_the_path_leads_to_the_plan():
    """Also where that came from another start."""
    result = st.solve(np.random.default_rng(0).random((20, 20)), budget=SoMany(20))
    assert set(result.path.support_at(20)) == set(support(result))


def test_a_budget_that_counts_is_not_forgotten_beside_one_that_does_not():
    """Its limits hold for both together, so the bound knows them."""
    problem = st.Problem.from_matrices(np.random.default_rng(0).random((15, 15)), unbalanced=10.0, reg=5.0)
    alone = st.solve_problem(problem, budget=st.PerColumn(1)).certify()
    both = st.solve_problem(problem, budget=st.PerColumn(1) & Everything()).certify()
    assert both.lower_bound == pytest.approx(alone.lower_bound, rel=1e-3)
    assert both.lower_bound > st.solve_problem(problem, budget=Everything()).certify().lower_bound * 1.001
