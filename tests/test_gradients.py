"""The step of a backward pass, on the host: tests of the gradients themselves are those of `nn` and `jax`."""

import numpy as np
import pytest

from sparsetransport.gradients import named, newton_step

REG, WEIGHTS = 0.1, np.array([3.0, 2.0])


def _batch(problems=3, m=5, n=4):
    rng = np.random.default_rng(0)
    plan = rng.random((problems, m, n)) * (rng.random((problems, m, n)) < 0.4)
    points = rng.normal(size=(problems, m, 2))
    gram = np.exp(-((points[:, :, None] - points[:, None]) ** 2).sum(-1))
    return plan, rng.normal(size=plan.shape), gram


def _hessian(rows, cols, gram):
    """Entry by entry, out of the formula of the objective."""
    return (
        REG * np.eye(len(rows)) + 2.0 * WEIGHTS[0] * gram[rows][:, rows] + 2.0 * WEIGHTS[1] * np.equal.outer(cols, cols)
    )


def test_a_step_makes_the_quadratic_model_stationary_on_the_support():
    """``H_SS s_S = -g_S`` and s = 0 elsewhere, for every problem of a batch."""
    plan, gradient, gram = _batch()
    step = newton_step(REG, plan, WEIGHTS, gradient, gram, None)
    assert (step[plan == 0.0] == 0.0).all()
    for k in range(len(plan)):
        links = np.nonzero(plan[k])
        np.testing.assert_allclose(_hessian(*links, gram[k]) @ step[k][links], -gradient[k][links], atol=1e-12)


def test_a_batch_may_share_a_gram_matrix():
    plan, gradient, gram = _batch()
    repeated = np.repeat(gram[:1], len(plan), axis=0)
    shared, apart = (newton_step(REG, plan, WEIGHTS, gradient, each, None) for each in (gram[0], repeated))
    np.testing.assert_array_equal(shared, apart)


def test_where_h_is_singular_the_step_has_least_norm():
    """All links of a 2x2 plan, delta kernels, reg = 0: H has rank 3 and ``H (1, -1, -1, 1) = 0``.

    Rounding may let the Cholesky factorisation of such a matrix succeed.
    """
    gradient = np.array([[1.0, 2.0], [3.0, 4.0]])
    step = newton_step(0.0, np.ones((2, 2)), WEIGHTS, gradient, None, None)
    assert step[0, 0] - step[0, 1] - step[1, 0] + step[1, 1] == pytest.approx(0.0, abs=1e-12)
    rows, cols = np.nonzero(np.ones((2, 2)))
    residual = (_hessian(rows, cols, np.eye(2)) - REG * np.eye(4)) @ step.ravel() + gradient.ravel()
    np.testing.assert_allclose(residual, 0.0, atol=1e-12)


@pytest.mark.parametrize("reg", [REG, 0.0])
def test_a_gradient_that_is_no_number_stays_one(reg):
    step = newton_step(reg, np.ones((2, 2)), WEIGHTS, np.array([[0.0, np.nan], [0.0, 0.0]]), None, None)
    assert np.isnan(step).any()


def test_an_error_names_its_problem():
    with pytest.raises(ValueError, match=r"^problem 1, 2 of the batch: no$"), named((1, 2)):
        raise ValueError("no")
    with pytest.raises(ValueError, match=r"^no$"), named(()):
        raise ValueError("no")
