"""Improvers: who carries them out, that none is worse than none, and what limits them."""

from dataclasses import replace

import numpy as np
import pytest
from cases import KERNELS, instance, problem_of

import sparsetransport as st
from sparsetransport.effort import Eliminate, Grow, Grown, Perturb, Repeat, Swap
from sparsetransport.engine.room import Constraint
from sparsetransport.improvers import improve, part_of
from sparsetransport.search import Links, Search


def solver_of(problem, budget):
    """One that has grown a plan."""
    solver = Search(problem, Constraint(st.Uniform(budget), problem.shape), st.DEFAULT, given=Links([])).omp()
    solver.grow()
    return solver


@pytest.mark.parametrize("thing", [Perturb(), Grown(), "grow", None, Grow], ids=repr)
def test_an_unknown_improver_is_an_error(thing):
    problem, own = instance(0).problem(), replace(st.QUICK, improvers=(Grow(), thing))
    for solve in (
        lambda: st.solve(problem, budget=3, effort=own),
        lambda: st.solve_shared([problem], budget=3, effort=own),
        lambda: st.solve(problem, budget=3, effort=replace(own, improvers=(Grow(), Repeat((thing,))))),
    ):
        with pytest.raises(TypeError, match="must hold improvers"):
            solve()


@pytest.mark.parametrize(
    "improver", [Swap(), Swap(passes=1.0), Eliminate(), Eliminate(passes=0.0), Repeat((Swap(),))], ids=repr
)
@pytest.mark.parametrize("kernel", KERNELS)
def test_an_improver_is_never_worse_than_none(improver, kernel):
    for seed in range(3):
        solver = solver_of(problem_of(seed, 9, 8, kernel, 0.05 * (seed % 2), (10.0, 10.0)), 6)
        before = solver.gain
        improve(improver, solver, solver.effort[0])
        assert solver.gain >= before * (1.0 - 1e-12)
        assert solver.size <= 6


def test_operations_of_improvers_follow_those_of_growing():
    """``share`` of them, and ``free`` on top: with neither there is at most one short look."""
    case = instance(0, 30, 25, "rbf", 0.05, (10.0, 10.0))

    def spent(swap):
        solver = solver_of(case.problem(), 25)
        built = solver.effort[0]
        improve(swap, solver, built)
        return (solver.effort[0] - built) / built

    shares = [spent(Swap(share=share, free=0.0)) for share in (0.0, 1.0, np.inf)]
    assert shares[0] <= shares[1] < shares[2]
    assert shares[1] < 3.0


def test_improvers_are_repeated_for_as_long_as_they_help(monkeypatch):
    gains = []

    class Fake:
        stopped, effort = False, np.zeros(1)
        steps = iter([1.0, 2.0, 3.0, 3.0, 9.0])
        gain = 0.0

        def grow(self):
            self.gain = next(self.steps)
            gains.append(self.gain)

    improve(Repeat((Grow(),)), Fake(), 1.0)
    assert gains == [1.0, 2.0, 3.0, 3.0]


def test_a_part_keeps_at_least_one_link_and_drops_at_least_one():
    rng = np.random.default_rng(0)
    mass, cost = rng.random(10), rng.random(10)
    for share, kept in ((0.0, 9), (0.3, 7), (0.99, 1)):
        part = part_of(mass, cost, share, np.random.default_rng(1))
        assert len(part) == len(set(part.tolist())) == kept
    order = rng.permutation(10)
    other = part_of(mass[order], cost[order], 0.3, np.random.default_rng(1))
    assert set(order[other].tolist()) == set(part_of(mass, cost, 0.3, np.random.default_rng(1)).tolist())
