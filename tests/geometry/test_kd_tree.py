"""The tree of boxes: what it leaves out is never among the least."""

import numpy as np
import pytest

from sparsetransport.geometry.kd_tree import KDTree


@pytest.mark.parametrize("n", [1, 2, 8, 9, 100, 333])
def test_boxes_share_the_points_and_hold_them(n):
    points = np.random.default_rng(n).normal(size=(n, 3))
    tree = KDTree(points)
    assert sorted(tree.order) == list(range(n))
    for box, (first, last) in enumerate(zip(tree.starts, tree.ends, strict=True)):
        inside = points[tree.order[first:last]]
        assert len(inside) >= 1
        assert (inside >= tree.low[box]).all()
        assert (inside <= tree.high[box]).all()
        if 2 * box + 2 < len(tree.starts):
            assert (tree.starts[2 * box + 1], tree.ends[2 * box + 2]) == (first, last)


@pytest.mark.parametrize("most", [np.inf, 1.0])
def test_planes_are_above_all_prices_of_their_boxes(most):
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(200, 2)), np.zeros((40, 2)), 1e6 + 1e-6 * rng.normal(size=(40, 2))])
    tree = KDTree(points)
    for prices in (rng.normal(size=280), points @ [3.0, -1.0], np.sum(points**2, 1), np.ones(280)):
        planes = tree.planes(prices, most=most)
        for box in range(len(tree.starts)):
            here = slice(tree.starts[box], tree.ends[box])
            plane = (
                planes.height[box] + (tree.points[here] - 0.5 * (tree.low[box] + tree.high[box])) @ planes.slope[box]
            )
            rounding = 1e-12 * np.abs(prices).max()
            assert (planes.prices[here] <= plane + rounding).all()
            assert planes.top[box] == planes.prices[here].max()
            assert np.linalg.norm(planes.slope[box]) <= most * (1 + 1e-12)


def test_a_linear_price_has_exact_planes():
    points = np.random.default_rng(1).random((500, 2))
    planes = KDTree(points).planes(points @ [2.0, 1.0])
    wide = np.flatnonzero(np.abs(planes.slope).sum(1) > 0.0)
    np.testing.assert_allclose(planes.slope[wide[:15]], [[2.0, 1.0]] * 15, rtol=1e-4)
