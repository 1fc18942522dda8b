"""The undo log: whatever was done to trees that are kept, `restore` takes it back."""

import numpy as np
import pytest
from cases import clouds

import sparsetransport as st
from sparsetransport._checks import Floats, Ints
from sparsetransport._numba.compiling import compiled
from sparsetransport.engine.room import Constraint
from sparsetransport.forest import trees, undo_log
from sparsetransport.forest.trees import Forest
from sparsetransport.forest.undo_log import UndoLog


@compiled
def change(forest: Forest, log: UndoLog, points: Ints, kinds: Ints, mass: Floats) -> None:
    """Keep the trees of two points at a time, then cut a link of the first, or join both if they are of two trees."""
    undo_log.begin(log)
    m = forest.rows
    for k in range(kinds.size):
        row, col = points[0, k], m + points[1, k]
        undo_log.keep(forest, log, row)
        undo_log.keep(forest, log, col)
        if kinds[k] == 0 and forest.first[row] >= 0:
            trees.remove(forest, forest.first[row])
        elif kinds[k] == 1 and forest.tree[row] != forest.tree[col]:
            trees.insert(forest, row, col, mass[k])
        trees.settle(forest, row)
        trees.settle(forest, col)


@compiled
def take_back(forest: Forest, log: UndoLog) -> None:
    undo_log.restore(forest, log)


@compiled
def begin_with(forest: Forest, log: UndoLog, point: int) -> float:
    """Keep one tree; what its points add to the objective."""
    undo_log.begin(log)
    undo_log.keep(forest, log, point)
    return undo_log.value_of(forest, log)


def planted(problem, budget):
    plan = st.solve(problem, budget=budget, polish=False)
    forest = trees.bare(problem, Constraint(st.Uniform(20) & st.PerRow(11), problem.shape).room())
    trees.plant(forest, plan.rows, plan.cols, plan.mass)
    return forest


def links_of(forest):
    """Pairs and masses in order of the pairs, and what the pairs are worth."""
    rows, cols, mass = trees.links(forest)
    order = np.lexsort([cols, rows])
    return rows[order], cols[order], mass[order], forest.worth[forest.mass > 0.0][order]


@pytest.mark.parametrize("seed", range(12))
def test_random_changes_are_taken_back(seed):
    """Links, masses, potentials, worths, spreads and capacities are what they were, and trees are told apart."""
    problem, rng = clouds(seed), np.random.default_rng(seed)
    forest, log = planted(problem, 14), undo_log.new_log(25)
    before, potential, whole = links_of(forest), forest.potential.copy(), forest.whole.copy()
    left, spare = forest.room.left.copy(), int(forest.counts[0])
    steps = 6
    points = np.stack([rng.integers(0, 14, steps), rng.integers(0, 11, steps)])
    change(forest, log, points, rng.integers(0, 2, steps), rng.random(steps))
    changed = links_of(forest)
    assert len(changed[2]) != len(before[2]) or not np.array_equal(changed[2], before[2])
    take_back(forest, log)
    for there, then in zip(links_of(forest), before, strict=True):
        np.testing.assert_allclose(there, then, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(forest.potential, potential, atol=1e-12 * problem.scale)
    np.testing.assert_allclose(forest.whole, whole, rtol=1e-12)
    np.testing.assert_array_equal(forest.room.left, left)
    assert forest.counts[0] == spare
    for i, j in zip(*before[:2], strict=True):
        assert forest.tree[i] == forest.tree[14 + j]


def test_a_log_holds_the_tree_of_a_point():
    """Its points, its links with their masses, and what the points add to the objective; twice kept is kept once."""
    problem = clouds(1)
    forest, log = planted(problem, 14), undo_log.new_log(25)
    rows, cols, mass = trees.links(forest)
    total, seen = 0.0, set()
    for point in range(25):
        value = begin_with(forest, log, point)
        undo_log.keep(forest, log, point)
        points, links = (int(count) for count in log.counts[[undo_log.POINTS, undo_log.LINKS]])
        held = set(log.points[:points].tolist())
        assert held == set(np.flatnonzero(forest.tree == forest.tree[point]).tolist())
        assert links == points - 1
        inside = {
            (i, 14 + j, x) for i, j, x in zip(rows.tolist(), cols.tolist(), mass.tolist(), strict=True) if i in held
        }
        assert set(zip(*log.ends[:, :links].tolist(), log.mass[:links].tolist(), strict=True)) == inside
        assert log.value[0] == pytest.approx(value, rel=1e-12)
        if point not in seen:
            total, seen = total + value, seen | held
    assert total == pytest.approx(problem.value(rows, cols, mass), rel=1e-10)


def test_the_nearest_points_come_first():
    """By the number of links between, at most as many as wanted, and nothing across the link that is left out."""
    problem = clouds(2)
    forest, log = planted(problem, 20), undo_log.new_log(25)
    start = int(np.bincount(forest.tree).argmax())
    start = int(np.flatnonzero(forest.tree == start)[0])
    used = np.flatnonzero(forest.mass > 0.0)
    graph = {(int(i), int(j)) for i, j in forest.ends[:, used].T}

    def distances(links):
        far, reached = {start: 0}, [start]
        for point in reached:
            for pair in links:
                for one, other in (pair, pair[::-1]):
                    if one == point and other not in far:
                        far[other] = far[one] + 1
                        reached.append(other)
        return far

    far = distances(graph)
    assert len(far) > 4
    found = undo_log.around(forest, log, start, -1, 25)
    nearby = log.nearby[:found].tolist()
    assert set(nearby) == set(far)
    assert [far[point] for point in nearby] == sorted(far.values())
    assert undo_log.around(forest, log, start, -1, 3) == 3
    assert log.nearby[:3].tolist() == nearby[:3]
    without = int(forest.first[start])
    cut = distances(graph - {tuple(forest.ends[:, without].tolist())})
    found = undo_log.around(forest, log, start, without, 25)
    assert set(log.nearby[:found].tolist()) == set(cut) < set(far)


def test_one_pair_is_tabu():
    log = undo_log.new_log(5)
    assert not undo_log.is_tabu(log, 0, 3)
    log.tabu[:] = 0, 3
    assert [undo_log.is_tabu(log, *pair) for pair in ((0, 3), (0, 4), (1, 3))] == [True, False, False]
