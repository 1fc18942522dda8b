"""Hypothesis generators: problems on a grid of eighths, so that ties, duplicates and degenerate supports are common."""

import numpy as np
from cases import TINY_BUDGETS, Budget, Instance
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays

import sparsetransport as st

seeds = some.integers(0, 2**32 - 1)


def eighths(low, high):
    """Multiples of 1/8 between two integers."""
    return some.integers(8 * low, 8 * high).map(lambda k: k / 8.0)


def grams(size):
    """Gram matrices of points on a grid, where points may coincide; for every kernel of the package."""
    points = arrays(float, (size, 2), elements=some.integers(0, 4).map(lambda k: k / 2.0))
    kernels = some.sampled_from([None, st.RBF(0.5), st.IMQ(0.5), st.IMQv2(2.0)])
    return some.builds(lambda kernel, x: np.eye(size) if kernel is None else kernel.gram(x), kernels, points)


@some.composite
def instances(draw, shape=None, *, regs=(0.0, 0.125, 1.0), lowest=0, forbidden=True):
    """Small problems; costs from ``lowest`` up to 2, some pairs forbidden, masses zero here and there."""
    m, n = draw(some.tuples(some.integers(1, 5), some.integers(1, 5))) if shape is None else shape
    C = draw(arrays(float, (m, n), elements=eighths(lowest, 2)))
    if forbidden and draw(some.booleans()):
        C = np.where(draw(arrays(bool, (m, n))), np.inf, C)
    weights = some.sampled_from([0.5, 1.0, 10.0])
    return Instance(
        C,
        draw(arrays(float, m, elements=eighths(0, 1))),
        draw(arrays(float, n, elements=eighths(0, 1))),
        draw(grams(m)),
        draw(grams(n)),
        (draw(weights), draw(weights)),
        draw(some.sampled_from(regs)),
    )


tiny_budgets = some.sampled_from(sorted(TINY_BUDGETS)).map(lambda name: TINY_BUDGETS[name])
"""Budgets for plans of shape (4, 4), each with its rule for the brute force."""


@some.composite
def whole_budgets(draw, shape):
    """Budgets of the whole plan."""
    k = draw(some.integers(1, shape[0] * shape[1]))
    return Budget(k, lambda support: len(support) <= k)
