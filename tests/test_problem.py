"""The problem: objective, gradient and Hessian are those of the formula."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
import strategies
from cases import KERNELS, instance
from hypothesis import given
from scipy.spatial.distance import cdist

import sparsetransport as st

PAIRS = np.divmod(np.arange(20), 5)


def _sparse(plan):
    rows, cols = np.nonzero(plan)
    return rows, cols, plan[rows, cols]


@given(strategies.instances(lowest=-1), strategies.seeds)
def test_the_objective_is_the_formula(case, seed):
    """U(γ) = <C,γ> + λa |γ1 - a|²_Ga + λb |γ'1 - b|²_Gb + λ2/2 |γ|², term by term."""
    rng = np.random.default_rng(seed)
    plan = np.where(np.isfinite(case.C) & (rng.random(case.shape) < 0.5), rng.random(case.shape), 0.0)
    problem = case.problem()
    assert problem.value(*_sparse(plan)) == pytest.approx(case.value(plan), abs=1e-10)
    assert problem.constant == pytest.approx(case.constant(), abs=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_quadratic_on_pairs_is_the_formula(kernel):
    """Slope, Hessian, and the gradient with and without mass are the derivatives of U."""
    case = instance(0, 4, 5, kernel, reg=0.3, unbalanced=(2.0, 0.7))
    problem = case.problem()
    hessian, slope, constant = oracles.quadratic(*case.arrays)
    np.testing.assert_allclose(problem.slope(*PAIRS), slope, rtol=1e-12)
    np.testing.assert_allclose(problem.hessian(*PAIRS, *PAIRS), hessian, rtol=1e-12)
    assert problem.constant == pytest.approx(constant)

    plan = np.where(np.arange(20).reshape(4, 5) % 3 == 0, 0.1, 0.0)
    fields = problem.fields(*_sparse(plan))
    expected = oracles.gradient(*case.arrays, plan) - case.reg * plan
    np.testing.assert_allclose(problem.gradient(fields, *PAIRS), expected.ravel(), atol=1e-12)
    np.testing.assert_allclose(problem.gradient_rows(fields, 1, 3), expected[1:3], atol=1e-12)
    np.testing.assert_allclose(problem.marginals(*_sparse(plan))[0], plan.sum(axis=1))


def test_points_make_costs_and_kernels():
    """From points: squared Euclidean costs, and an RBF with a tenth of the median on each side by itself."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 2)), 3.0 * rng.normal(size=(5, 2))
    problem = st.Problem.from_points(x, y)
    np.testing.assert_allclose(problem.cost.rows(0, 6), cdist(x, y, "sqeuclidean"), atol=1e-12)
    for gram, points in ((problem.gram_a, x), (problem.gram_b, y)):
        every = np.arange(len(points))
        np.testing.assert_allclose(gram.block(every, every), st.RBF("0.1*median").gram(points))


def test_large_point_sets_are_lazy_by_themselves():
    """Beyond 400 MB for a matrix, points are kept and no matrix is built, unless asked for; small ones are dense."""
    small = st.Problem.from_points(np.zeros((3, 1)), np.ones((4, 1)))
    assert not small.cost.is_lazy
    assert st.Problem.from_points(np.zeros((3, 1)), np.ones((4, 1)), lazy=True).cost.is_lazy
    large = st.Problem.from_points(np.zeros((10, 1)), np.arange(7200.0)[:, None], kernels=st.RBF(1.0), unbalanced=1.0)
    assert large.cost.is_lazy


def test_a_changed_problem_is_the_one_built_anew():
    """replace() takes what the constructors take: lists, one number for both sides, "auto", None for uniform masses."""
    C, gram = np.arange(6.0).reshape(2, 3), np.eye(2) + 0.5
    first = st.Problem.from_matrices(C, [1.0, 2.0], unbalanced=2.0)
    for changes in ({"b": [0.2, 0.3, 0.5]}, {"unbalanced": 3}, {"unbalanced": "auto"}, {"reg": np.float32(0.5)}):
        new = replace(first, **changes)
        expected = st.Problem.from_matrices(C, **{"a": [1.0, 2.0], "unbalanced": 2.0} | changes)
        assert (new.unbalanced, new.reg, new.constant) == (expected.unbalanced, expected.reg, expected.constant)
        np.testing.assert_array_equal(new.b, expected.b)
        assert new.cost is first.cost
    expected = st.Problem.from_matrices(C, [1.0, 2.0], kernels=(gram, st.Delta()), unbalanced=2.0)
    assert replace(first, gram_a=gram).constant == expected.constant
    assert replace(first, a=None).a.tolist() == [1.5, 1.5]  # with the total of b
    assert replace(first, a=None, b=None).a.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"reg": -1.0}, ValueError, r"reg.*not negative.*-1"),
        ({"a": [1.0, np.nan]}, ValueError, r"\ba\b.*nan"),
        ({"b": -np.ones(3)}, ValueError, r"\bb\b.*negative.*-1"),
        ({"b": np.ones(2)}, ValueError, r"\bb\b.*3 points.*2"),
        ({"unbalanced": 0.0}, ValueError, r"unbalanced.*positive.*0"),
        ({"cost": np.ones((4, 3))}, ValueError, r"\ba\b.*4 points.*2"),
        ({"gram_b": np.eye(2)}, ValueError, r"kernels\[1\].*\(3, 3\).*\(2, 2\)"),
        ({"gram_b": st.Problem.from_matrices(np.ones((2, 2))).gram_a}, ValueError, r"kernels\[1\].*3 points.*2"),
        ({"points": (np.ones((2, 1)), np.ones((4, 1)))}, ValueError, r"points.*2 and 3.*2 and 4"),
    ],
)
def test_a_change_is_checked_as_the_constructors_check(changes, error, words):
    """What `from_matrices` refuses, ``dataclasses.replace`` refuses too."""
    with pytest.raises(error, match=words):
        replace(st.Problem.from_matrices(np.ones((2, 3))), **changes)


def test_a_problem_prints_in_one_line():
    points = np.random.default_rng(0).normal(size=(40, 2))
    sides = st.Problem.from_points(points, points[:30], kernels=(st.RBF(2.0), "delta"), unbalanced=(1.5, 2.0), reg=0.1)
    assert repr(sides) == "Problem(40x30, kernels=(RBF(sigma2=2.0), Delta()), unbalanced=(1.5, 2), reg=0.1)"
    lazy = st.Problem.from_points(points, points, unbalanced=1.0, lazy=True)
    assert repr(lazy) == "Problem(40x40, kernels=RBF(sigma2='0.1*median'), unbalanced=1, reg=0)"
    given = st.Problem.from_matrices(np.ones((2, 2)), kernels=np.eye(2), unbalanced=1.0)
    assert repr(given) == "Problem(2x2, kernels=Gram matrix, unbalanced=1, reg=0)"


def test_problems_are_compared_by_identity():
    """They hold arrays; and so they can be looked for in lists and be keys."""
    first, second = (st.Problem.from_matrices(np.ones((2, 2))) for _ in range(2))
    assert first == first
    assert first != second
    assert {first: 1}[first] == 1
    assert first.cost != second.cost


def test_lazy_is_a_flag():
    with pytest.raises(TypeError, match="lazy must be True or False, got 'no'"):
        st.solve_sample(np.ones((2, 1)), np.ones((2, 1)), lazy="no")


@pytest.mark.parametrize("lazy", [False, True])
def test_lengths_do_not_matter_to_cosine_costs(lazy):
    """Neither to the costs nor to the kernels."""
    rng = np.random.default_rng(0)
    X, Y, lengths = rng.normal(size=(20, 5)), rng.normal(size=(15, 5)), np.exp(rng.normal(size=(20, 1)))
    plain, scaled = (st.solve_sample(x, Y, metric="cosine", budget=10, lazy=lazy) for x in (X, lengths * X))
    np.testing.assert_allclose(scaled.plan, plain.plan, atol=1e-9)
    torch, nn = pytest.importorskip("torch"), pytest.importorskip("sparsetransport.nn")
    loss = nn.SparseTransportLoss(10, "0.1*median", plain.log["unbalanced"], metric="cosine")
    assert float(loss(torch.tensor(lengths * X), torch.tensor(Y))) == pytest.approx(plain.value)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.85])
def test_large_numbers_that_stand_for_forbidden_pairs_are_pointed_out(share):
    """They would make the automatic weight follow them."""
    rng = np.random.default_rng(0)
    C = rng.random((20, 20))
    C[rng.random((20, 20)) < share] = 1e9
    with pytest.warns(UserWarning, match="forbidden pairs with inf"):
        st.Problem.from_matrices(C)
    C[C > 1.0] = np.inf
    st.Problem.from_matrices(C)


def test_points_close_to_their_partners_are_no_such_case():
    """A few costs near zero say nothing of the others."""
    x = np.random.default_rng(0).normal(size=(50, 3))
    for y in (x, x + 1e-9):
        cost = st.Problem.from_points(x, y).cost
        assert cost.common == cost.mean


@pytest.mark.parametrize("scale", [1e200, 1e308])
def test_numbers_that_overflow_are_refused(scale):
    """Rather than a plan of NaN that calls itself optimal."""
    C = np.random.default_rng(0).random((4, 4))
    with pytest.raises(ValueError, match="too large or too small"):
        st.Problem.from_matrices(C, np.full(4, scale / 10), np.full(4, scale / 10))
    with pytest.raises(ValueError, match="other units"):
        st.Problem.from_matrices(C, np.full(4, scale / 10), np.full(4, scale / 10), unbalanced=1.0)


def test_negative_costs_are_part_of_the_scale():
    """They are all there is where there are no masses."""
    assert st.Problem.from_matrices(-3.0 * np.ones((2, 2)), np.zeros(2), np.zeros(2), unbalanced=1.0).scale == 3.0


def test_pairs_of_points_can_be_forbidden():
    """By a mask or as pairs; the same as infinite costs."""
    rng = np.random.default_rng(0)
    X, Y, mask = rng.normal(size=(9, 2)), rng.normal(size=(8, 2)), rng.random((9, 8)) < 0.5
    C = np.where(mask, np.inf, st.cost_matrix(X, Y))
    expected = st.solve(
        C, kernels=(st.RBF("0.1*median").gram(X), st.RBF("0.1*median").gram(Y)), budget=6, unbalanced=10.0
    )
    for forbidden in (mask, np.argwhere(mask), np.argwhere(mask).tolist()):
        result = st.solve_sample(X, Y, budget=6, forbidden=forbidden, unbalanced=10.0)
        np.testing.assert_allclose(result.plan, expected.plan, atol=1e-12)
        assert result.a_to_b.shape == (9, 2)


@pytest.mark.parametrize(
    ("forbidden", "options", "message"),
    [
        (np.ones((2, 2), bool), {}, r"forbidden must have shape \(3, 3\), got \(2, 2\)"),
        ([(0, 3)], {}, r"forbidden must hold pairs of a plan of shape \(3, 3\), got \(0, 3\)"),
        ([(0, 0)], {"lazy": True}, "pass lazy=False"),
    ],
)
def test_what_cannot_be_forbidden(forbidden, options, message):
    with pytest.raises(ValueError, match=message):
        st.solve_sample(np.eye(3), np.eye(3), forbidden=forbidden, **options)


@pytest.mark.parametrize("solve", [st.solve, lambda C, a, b, **given: st.solve_batch([(C, a, b)], **given)[0]])
def test_totals_in_different_units_are_told(solve):
    """And not blamed on weights; capacities that are never reached may be as large as one likes."""
    C = np.random.default_rng(0).random((4, 3))
    with pytest.warns(st.SparseTransportWarning) as caught:
        solve(C, np.full(4, 1e8), np.ones(3), budget=3)
    assert [str(one.message) for one in caught] == [
        "the masses a have a total of 4e+08 and the masses b of 3: give both sides in the same units"
    ]
    solve(C, np.full(4, 2.0), np.ones(3), budget=3)
    st.solve(C, np.full(4, 1e8), np.ones(3), unbalanced=np.inf, sense=("<=", "="))
