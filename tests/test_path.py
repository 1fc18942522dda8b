"""Steps that one can walk, and the plans on the way."""

import numpy as np
import pytest
from cases import KERNELS, instance, support
from hypothesis import given
from hypothesis import strategies as some
from strategies import instances

import sparsetransport as st

METHODS = ["omp", "stochastic", "residual", "greedy", "residual-greedy"]
BUDGETS = [9, st.PerColumn(1), st.PerRow(2), st.PerRow(1) & st.PerColumn(2)]


@pytest.fixture
def case():
    return instance(1, 8, 7, "rbf", 0.1, (5.0, 2.0))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("reclaim", [True, False])
def test_the_objective_falls_along_the_path(case, method, budget, reclaim):
    """Each step solves on a larger support: the objective never rises, and the last one is the value."""
    result = case.solve(budget=budget, method=method, reclaim=reclaim, polish=False, rng=0)
    path = result.path
    assert len(path) == len(path.pairs) == len(path.entries) > 0
    assert (np.diff(path.objective) <= 1e-10 * case.constant()).all()
    assert path.objective[0] < case.constant()
    assert path.objective[-1] == pytest.approx(result.value, rel=1e-9)
    assert path.entries[-1] == result.rows.size


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("options", [{}, {"polish": False}, {"reclaim": False}], ids=repr)
def test_the_path_has_a_plan_for_every_smaller_budget(case, method, budget, options):
    """``plan_at(k)`` has at most k entries, is optimal on its support, and improves with k."""
    result = case.solve(budget=budget, method=method, rng=0, **options)
    values = [case.constant()]
    for k in range(1, 10):
        part = result.path.plan_at(k)
        assert part.rows.size <= k
        assert part.value == pytest.approx(case.value(part.plan))
        assert part.kkt < 1e-10
        on_support = set(support(part))
        assert on_support <= set(result.path.support_at(k))
        values.append(part.value)
    assert (np.diff(values) <= 1e-9).all()
    assert result.path.plan_at(result.rows.size).value <= result.value + 1e-9
    assert result.path.plan_at(0).rows.size == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_plan_on_the_path_is_no_worse_than_that_of_the_smaller_budget(kernel):
    """OMP begins alike whatever the budget, so ``plan_at(k)`` is the plan for k, or a better one met later on."""
    case = instance(1, 8, 7, kernel, 0.1, (5.0, 2.0))
    path = case.solve(budget=12, polish=False).path
    for k in range(1, 12):
        alone = case.solve(budget=k, polish=False)
        np.testing.assert_array_equal(path.pairs[: len(alone.path)], alone.path.pairs)
        assert path.plan_at(k).value <= alone.value + 1e-10
    np.testing.assert_allclose(path.plan_at(2).plan, case.solve(budget=2, polish=False).plan, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("polish", [True, False])
def test_a_path_from_a_start_keeps_count(case, method, polish):
    """Begun with earlier pairs, used or not, ``plan_at(k)`` still has at most k entries."""
    start = [(i, j) for i in range(3) for j in range(3)]
    result = case.solve(budget=st.Uniform(12), method=method, polish=polish, start=start, rng=0)
    for k in range(13):
        assert result.path.plan_at(k).rows.size <= k


@given(instances(lowest=-1, regs=(0.0625, 1.0)), some.integers(1, 25))
def test_the_path_adds_up(case, k):
    """Pairs added less pairs gone are the entries, at every step; at the end they are the plan. Polish included."""
    m, n = case.shape
    result = case.solve(budget=min(k, m * n))
    path, held, first = result.path, set(), 0
    for step, pair in enumerate(map(tuple, path.pairs.tolist())):
        held.add(pair)
        held -= set(map(tuple, path.gone[first : path.gone_until[step]].tolist()))
        first = path.gone_until[step]
        assert len(held) == path.entries[step]
    assert held == set(support(result))


def test_paths_and_certificates_print_in_one_line(case):
    result = case.solve(budget=5)
    path, proof = result.path, result.certify()
    first, last = f"{path.objective[0]:.4g}", f"{path.objective[-1]:.4g}"
    assert repr(path) == f"Path({len(path)} steps to {path.entries[-1]} entries, objective from {first} to {last})"
    assert repr(st.solve([[np.inf]]).path) == "Path(0 steps)"
    assert repr(proof).startswith(
        f"Certificate(value={result.value:.6g}, lower_bound={proof.lower_bound:.6g}, relative"
    )
    assert len(repr(proof)) < 100


def test_a_negative_number_of_entries_is_an_error(case):
    """There is no plan with fewer entries than none."""
    with pytest.raises(ValueError, match=r"entries.*-1"):
        case.solve(budget=3).path.plan_at(-1)
    for entries in (2.5, 2.0, True, "two"):
        with pytest.raises(TypeError, match=rf"entries must be an int that is not negative, got {entries!r}"):
            case.solve(budget=3).path.plan_at(entries)
