"""Problems side by side: matrices looked at together are what problems checked one by one are."""

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.batch.stack import Stack, matrices
from sparsetransport.given import weights_of


def items(count=12, seed=0):
    """Costs with masses or without, some pairs forbidden, some costs negative, some all forbidden or all zero."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(count):
        m, n = rng.integers(1, 8, 2)
        cost = rng.random((m, n)) - 0.3 * (k % 4 == 1)
        cost[rng.random((m, n)) < 0.3 * (k % 3 == 2)] = np.inf
        found.append((cost, None, None) if k % 2 else (cost, rng.random(m), rng.random(n)))
    return [*found, (np.full((2, 3), np.inf), None, None), (np.zeros((2, 2)), None, None)]


@pytest.mark.parametrize("unbalanced", ["auto", 4.0, (2.0, 5.0), (3.0, "auto"), "10*auto"], ids=str)
@pytest.mark.parametrize("reg", [0.0, 0.3])
def test_matrices_and_problems_make_the_same_stack(unbalanced, reg):
    sources = items()
    fast = Stack.of_matrices(sources, weights_of(unbalanced), reg)
    fine = [source for source, is_fine in zip(sources, fast.fine.tolist(), strict=True) if is_fine]
    assert len(fine) >= 12
    fast = Stack.of_matrices(fine, weights_of(unbalanced), reg)
    slow = Stack.of_problems([st.Problem.from_matrices(*one, unbalanced=unbalanced, reg=reg) for one in fine])
    for name in ("shape", "cost", "gram", "gram_size", "mass", "empty", "fine", "reg"):
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=name)
    for name in ("base", "weights", "scale", "common"):
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-14, err_msg=name)


def test_a_problem_comes_out_as_it_went_in():
    sources = [source for source in items() if np.isfinite(source[0]).any()]
    stack = Stack.of_matrices(sources, weights_of(4.0), 0.1)
    points, pairs = stack.ends()
    assert (points[-1], pairs[-1]) == (len(stack.mass), len(stack.cost))
    for k, (cost, a, b) in enumerate(sources):
        made, wanted = (
            stack.problem(k, points[k], pairs[k]),
            st.Problem.from_matrices(cost, a, b, unbalanced=4.0, reg=0.1),
        )
        np.testing.assert_array_equal(made.cost.rows(0, len(cost)), wanted.cost.rows(0, len(cost)))
        np.testing.assert_array_equal(made.a, wanted.a)
        np.testing.assert_array_equal(made.b, wanted.b)
        assert (made.unbalanced, made.reg, made.has_deltas) == (wanted.unbalanced, wanted.reg, True)
    problems = [st.Problem.from_matrices(*source) for source in sources]
    assert Stack.of_problems(problems).problem(3, 0, 0) is problems[3]


def test_costs_are_copied():
    """Proofs come later, and by then the user's arrays may hold something else."""
    cost, a, b = np.ones((2, 2)), np.ones(2), np.ones(2)
    stack = Stack.of_matrices([(cost, a, b)], weights_of(1.0), 0.0)
    cost[:], a[:], b[:] = 7.0, 7.0, 7.0
    assert stack.cost.tolist() == [1.0] * 4
    assert stack.mass.tolist() == [1.0] * 4


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ((np.array([[np.nan, 1.0]]), None, None), "nan"),
        ((np.array([[-np.inf, 1.0]]), None, None), "-inf"),
        ((np.ones((1, 2)), np.array([-1.0]), None), "a negative mass"),
        ((np.ones((1, 2)), np.array([np.inf]), None), "an infinite mass"),
        ((np.ones((1, 2)), np.array([1e7]), np.ones(2)), "totals in different units"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_gets_an_error_or_a_warning_alone_is_told(bad, what):
    good = (np.ones((2, 2)), None, None)
    assert Stack.of_matrices([good, bad, good], weights_of(1.0), 0.0).fine.tolist() == [True, False, True]


@pytest.mark.parametrize(
    "item",
    [
        [[1.0, 2.0]],
        ([[1.0, 2.0]],),
        np.ones(3),
        np.ones((0, 3)),
        np.ones((2, 2), complex),
        np.ones((2, 2), bool),
        (np.ones((2, 2)), np.ones(3)),
        (np.ones((2, 2)), [1.0, 1.0]),
        (np.ones((2, 2)), np.ones(2), np.ones((2, 1))),
        (np.ones((2, 2)), None, None, None),
        (),
        np.ma.ones((2, 2)),
        "text",
        None,
    ],
    ids=lambda item: type(item).__name__,
)
def test_other_items_take_the_ordinary_way(item):
    assert matrices(item) is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
def test_arrays_of_numpy_are_taken_as_floats(dtype):
    cost = np.arange(6).reshape(2, 3).astype(dtype)
    for item in (cost, (cost,), (cost, np.ones(2, dtype)), (cost, None, np.ones(3, dtype)), np.asfortranarray(cost)):
        found = matrices(item)
        assert found is not None
        assert found[0].dtype == np.float64
        assert found[0].flags.c_contiguous
        np.testing.assert_array_equal(found[0], cost)
