"""Trees as seen from their roots: parts of them hang elsewhere, and the order of the points follows."""

import numpy as np
import pytest
from cases import clouds

from sparsetransport.engine.room import Constraint
from sparsetransport.forest.rooted import look_up, rehang, root_of, rooted, widen
from sparsetransport.forest.trees import bare, insert, other_end, remove, settle_next


def planted(rng, m=12, n=9):
    """A random tree of all points and what is known of it; masses so large that none of its links leaves."""
    problem = clouds(0, m, n)
    forest = bare(problem, Constraint(None, problem.shape).room())
    forest.tiny[0] = -np.inf
    insert(forest, 0, m, 1e9)
    linked = {0, m}
    for point in rng.permutation([*range(1, m), *range(m + 1, m + n)]):
        other = rng.choice([each for each in linked if (each < m) != (point < m)])
        insert(forest, *sorted((int(point), int(other))), 1e9)
        linked.add(int(point))
    forest.pending[0] = rng.integers(m + n)
    _, size = settle_next(forest, 1)
    trees = rooted(m + n)
    look_up(forest, trees, size)
    assert size == m + n
    return forest, trees


def check(forest, trees):
    """Every point follows what it hangs on, has its links, and is followed by as many as hang on it."""
    points = forest.first.size
    hanging = [[] for _ in range(points)]
    for point in range(points):
        way = [point]
        while trees.parent[way[-1]] >= 0:
            assert other_end(forest, forest.above[way[-1]], way[-1]) == trees.parent[way[-1]]
            way.append(trees.parent[way[-1]])
        assert root_of(trees, point) == way[-1]
        for each in way:
            hanging[each].append(point)
    for point in range(points):
        walked = [point]
        while len(walked) < len(hanging[point]):
            assert trees.before[trees.after[walked[-1]]] == walked[-1]
            walked.append(trees.after[walked[-1]])
        assert sorted(walked) == hanging[point]
        assert trees.size[point] == len(walked)
        if trees.parent[point] < 0:
            assert (trees.before[point], trees.after[walked[-1]]) == (-1, -1)
    return hanging


@pytest.mark.parametrize("seed", range(30))
def test_parts_hang_elsewhere(seed):
    """A link is replaced by another one between the parts, and prices change on one side of it alone."""
    rng = np.random.default_rng(seed)
    forest, trees = planted(rng)
    m, points = forest.rows, forest.first.size
    hanging = check(forest, trees)
    for _ in range(20):
        root = rng.choice([point for point in range(points) if trees.parent[point] >= 0])
        inside = hanging[root]
        pairs = [(p, q) for p in inside for q in range(points) if q not in inside and (p < m) != (q < m)]
        if not pairs:
            continue
        point, onto = pairs[rng.integers(len(pairs))]
        before = forest.potential.copy()
        widen(trees, trees.parent[root], -1, -len(inside))
        widen(trees, onto, -1, len(inside))
        remove(forest, forest.above[root])
        insert(forest, *sorted((point, onto)), 1e9)
        rehang(forest, trees, point, root, onto, forest.first[point], 0.5)
        hanging = check(forest, trees)
        assert hanging[point] == inside
        expected = [0.0 if p not in inside else 0.5 if (p < m) == (point < m) else -0.5 for p in range(points)]
        np.testing.assert_allclose(forest.potential - before, expected)
