"""Plans of many scenarios on shared links: each is the exact plan of its scenario alone."""

from dataclasses import replace

import numpy as np
import pytest
from cases import instance
from hypothesis import given
from hypothesis import strategies as some

import sparsetransport as st
from sparsetransport._numba.codes import NEEDS_ROOM, SOLVED
from sparsetransport.engine import shared_plans as plans
from sparsetransport.inner.solvers import EXACT, ActiveSet

LINKS = [(0, 0), (3, 2), (1, 4), (0, 4), (5, 1), (2, 2), (4, 0), (1, 3)]


def scenarios(z=5, kernel="rbf", reg=0.1, seed=0):
    """Problems that differ in their masses alone."""
    first, rng = instance(seed, 6, 5, kernel, reg, (10.0, 4.0)).problem(), np.random.default_rng(seed)
    return [replace(first, a=rng.random(6), b=rng.random(5)) for _ in range(z)]


def supported(links, room=16):
    support = plans.new_support(room, 6)
    for pair in links:
        plans.append(support, *pair)
    return support


class State:
    """A group of scenarios and the arrays that its solves write to."""

    def __init__(self, problems, room=16):
        z = len(problems)
        self.group = plans.new_group(problems, range(z), EXACT)
        self.r = np.stack([problem.base[0] for problem in problems])
        self.c = np.stack([problem.base[1] for problem in problems])
        self.mass, self.gains = np.zeros((z, room)), np.zeros(z)

    def solve(self, support):
        state = self.r, self.c, self.mass, self.gains
        return plans.solve(self.group, support, *state, 0, len(self.gains))


def exact(problem, links):
    rows, cols = np.array(links).T.copy()
    return rows, cols, ActiveSet(problem).solve(rows, cols, np.zeros(len(links))).mass


@pytest.mark.parametrize("reg", [0.0, 0.1])
@pytest.mark.parametrize("kernel", ["delta", "rbf"])
def test_every_scenario_has_the_masses_it_has_alone(kernel, reg):
    """Masses, gain and fields are those of the active set on the same links."""
    problems, support = scenarios(kernel=kernel, reg=reg), supported(LINKS)
    state = State(problems)
    assert state.solve(support) == SOLVED
    for s, problem in enumerate(problems):
        rows, cols, mass = exact(problem, LINKS)
        np.testing.assert_allclose(state.mass[s, : len(LINKS)], mass, rtol=1e-9, atol=1e-12)
        assert state.gains[s] == pytest.approx(problem.constant - problem.value(rows, cols, mass), rel=1e-10)
        fields = problem.fields(rows, cols, mass)
        np.testing.assert_allclose(state.r[s], fields[0], atol=1e-10)
        np.testing.assert_allclose(state.c[s], fields[1], atol=1e-10)
    assert not state.mass[:, len(LINKS) :].any()


def test_a_link_that_is_forgotten_leaves_all_plans():
    """What follows is the exact plan on the links that are left, as it is from the start."""
    problems, support = scenarios(), supported(LINKS)
    state = State(problems)
    state.solve(support)
    assert state.mass[:, 2].any()
    plans.forget(state.group, *LINKS[2])
    plans.remove(support, 2)
    assert state.solve(support) == SOLVED
    rest = LINKS[:2] + LINKS[3:]
    for s, problem in enumerate(problems):
        np.testing.assert_allclose(state.mass[s, : len(rest)], exact(problem, rest)[2], rtol=1e-9, atol=1e-12)


def test_losses_are_what_the_objective_rises_by():
    """The weighted sum over scenarios, wherever a deletion neither empties another link nor brings one into use."""
    problems, support, weights = scenarios(), supported(LINKS), np.array([1.0, 2.0, 0.5, 3.0, 1.0])
    state = State(problems)
    state.solve(support)
    loss = np.zeros(len(LINKS))
    plans.losses(state.group, support, weights, loss)
    used = [{LINKS[k] for k in np.flatnonzero(mass)} for mass in state.mass]
    values, exact_ones = np.array([problem.constant for problem in problems]) - state.gains, 0
    for k, link in enumerate(LINKS):
        found = [st.solve_support(problem, links=LINKS[:k] + LINKS[k + 1 :]) for problem in problems]
        left = [set(zip(one.rows.tolist(), one.cols.tolist(), strict=True)) for one in found]
        if left == [links - {link} for links in used]:
            rise = weights @ (np.array([one.value for one in found]) - values)
            assert rise == pytest.approx(loss[k], rel=1e-7)
            exact_ones += loss[k] > 0.0
    assert exact_ones > 1


def test_more_room_keeps_the_plans():
    """A plan with more entries than there is room for says so, and goes on where it was."""
    problems = scenarios(kernel="delta", reg=5.0)
    every = [(i, j) for i in range(6) for j in range(5)]
    state, support = State(problems, 32), supported(every, 32)
    state.group = state.group._replace(factors=plans.new_factors(len(problems), 2))
    rounds = 0
    while state.solve(support) == NEEDS_ROOM:
        before = state.group.factors.mass[:, :2].copy()
        state.group, rounds = plans.with_more_room(state.group), rounds + 1
        np.testing.assert_array_equal(state.group.factors.mass[0, :2], before[0])
    assert rounds > 1
    for s, problem in enumerate(problems):
        np.testing.assert_allclose(state.mass[s, :30], exact(problem, every)[2], rtol=1e-9, atol=1e-12)


@given(moves=some.lists(some.tuples(some.integers(0, 5), some.integers(0, 4)), max_size=40))
def test_links_come_and_go_as_in_a_list(moves):
    """In order of choice; every link is found where it stands, others are found nowhere."""
    support, links = plans.new_support(30, 6), []
    for pair in moves:
        if pair in links:
            plans.remove(support, links.index(pair))
            links.remove(pair)
        else:
            plans.append(support, *pair)
            links.append(pair)
    assert support.size[0] == len(links)
    assert list(zip(support.rows[: len(links)].tolist(), support.cols[: len(links)].tolist(), strict=True)) == links
    for pair in np.ndindex(6, 5):
        assert plans.place(support, *pair) == (links.index(pair) if pair in links else -1)


def test_alike_are_problems_that_differ_in_masses_alone():
    one, *rest = scenarios(3)
    other, heavier = instance(7, 6, 5).problem(), replace(one, reg=0.3)
    assert plans.alike([one, other, *rest, heavier]) == [[0, 2, 3], [1], [4]]
