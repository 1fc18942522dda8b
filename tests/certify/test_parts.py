"""Parts of few points: the optimum of one with its links, and the least reduced costs of all."""

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.certify import parts


@pytest.mark.parametrize("reg", [0.0, 0.4])
def test_the_optimum_of_a_part_is_that_of_its_points(reg):
    rng = np.random.default_rng(0)
    cost, wanted, weights = rng.random((3, 4)), rng.lognormal(size=7), np.array([3.0, 8.0])
    for rows, cols in (([0, 1, 2], [0, 1, 2, 3]), ([1], [2]), ([0, 2], [1, 3])):
        k = sum(1 << i for i in rows) + sum(1 << (3 + j) for j in cols)
        pairs, mass, found = np.empty((2, 49), np.int64), np.empty(49), np.zeros(1, np.int64)
        bound = parts.optimum(cost, wanted, weights, reg, k, pairs, mass, found)
        a, b = wanted[rows], wanted[3 + np.array(cols)]
        truth = st.solve(cost[np.ix_(rows, cols)], a, b, unbalanced=(3.0, 8.0), reg=reg).value
        assert bound <= truth
        assert bound == pytest.approx(truth, rel=1e-9)
        assert set(pairs[0, : found[0]]) <= set(rows)
        assert set(pairs[1, : found[0]]) <= set(cols)
