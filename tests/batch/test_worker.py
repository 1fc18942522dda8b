"""A worker's chunk: every problem gets its result or its own error, at its own place."""

import pickle
import warnings

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.batch import worker
from sparsetransport.batch.worker import ProblemError, Stop, Task, batch_options, solve_chunk
from sparsetransport.effort import DEFAULT, QUICK


def task_of(budget=4, *, geometry=None, stop=None, **options):
    geometry = {"kernels": None, "unbalanced": 5.0, "reg": 0.1, "sense": "=", "link_cost": None, **(geometry or {})}
    return Task(budget, geometry, options, stop or Stop())


def costs(count, shape=(6, 5), seed=0):
    return list(np.random.default_rng(seed).random((count, *shape)))


BROKEN = {
    "NaN": np.full((6, 5), np.nan),
    "negative mass": (np.ones((6, 5)), -np.ones(6), np.ones(5)),
    "a string": "costs",
    "wrong length": (np.ones((6, 5)), np.ones(4), np.ones(5)),
    "too many": (np.ones((6, 5)),) * 4,
}


@pytest.mark.parametrize("broken", BROKEN)
def test_one_broken_item_is_an_error_at_its_index(broken):
    """Counted from the beginning of the batch; the others have the results of problems solved one by one."""
    items = costs(5)
    items[3] = BROKEN[broken]
    found = solve_chunk(task_of(), (100, items))
    assert isinstance(found[3], ProblemError)
    assert found[3].index == 103
    assert str(found[3]).startswith("problems[103]: ")
    for k in (0, 1, 2, 4):
        alone = st.solve(items[k], budget=4, unbalanced=5.0, reg=0.1, effort="quick")
        np.testing.assert_array_equal(found[k].plan, alone.plan)
        assert found[k].value == pytest.approx(alone.value, rel=1e-12)


def test_matrices_and_problems_may_stand_side_by_side():
    """Whatever way each takes, results are in the order of the items; a Problem beside a geometry is refused."""
    matrices = costs(4)
    problems = [st.Problem.from_matrices(C, unbalanced=5.0, reg=0.1) for C in matrices]
    mixed = [matrices[0], problems[1], (matrices[2],), problems[3]]
    expected = [st.solve(problem, budget=4, effort="quick") for problem in problems]
    refused = solve_chunk(task_of(), (0, mixed))
    assert [isinstance(one, ProblemError) for one in refused] == [False, True, False, True]
    for k in (0, 2):
        np.testing.assert_array_equal(refused[k].plan, expected[k].plan)
    plain = solve_chunk(task_of(geometry={"unbalanced": "auto", "reg": 0.0}), (0, mixed))
    for k in (1, 3):
        np.testing.assert_array_equal(plain[k].plan, expected[k].plan)
        np.testing.assert_array_equal(plain[k].path.pairs, expected[k].path.pairs)
    np.testing.assert_array_equal(plain[0].plan, st.solve(matrices[0], budget=4, effort="quick").plan)


def test_a_budget_that_fails_for_one_shape_is_an_error_of_its_problems():
    def budget(m, n):
        if m == 3:
            raise RuntimeError("no budget")
        return n

    found = solve_chunk(task_of(budget), (10, [*costs(2), *costs(1, (3, 4)), *costs(1)]))
    assert [isinstance(one, ProblemError) for one in found] == [False, False, True, False]
    assert (found[2].index, found[2].reason) == (12, "RuntimeError: no budget")
    assert found[0].rows.size <= 5


def test_what_is_not_finished_together_is_solved_alone(monkeypatch):
    """The results are the same, whoever finds them."""
    items = costs(4)
    together = solve_chunk(task_of(), (0, items))
    monkeypatch.setattr(worker, "_together", lambda group, task, results: group)
    for one, other in zip(together, solve_chunk(task_of(), (0, items)), strict=True):
        np.testing.assert_array_equal(one.plan, other.plan)
        assert one.status is other.status


def test_a_stop_is_heard_between_problems_that_are_solved_alone():
    class Own(st.Matroid):
        def can_add(self, support, pair):
            stop.asked = True
            return len(support) < 3

    stop = Stop()
    found = solve_chunk(task_of(Own(), stop=stop), (0, costs(3)))
    assert found[0].rows.size == 3
    assert found[1:] == [None, None]


def test_a_warning_that_is_an_error_has_an_index():
    """Costs that rounding hides are warned of; the problem that it is about is told."""
    items = costs(3)
    items[1] = 1e-14 * items[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solve_chunk(task_of(geometry={"unbalanced": 1e5}), (0, items))
    assert [isinstance(one, ProblemError) for one in found] == [False, True, False]
    assert found[1].index == 1


def test_the_effort_of_a_batch_is_quick_unless_one_asks():
    assert batch_options(3, {}).effort is QUICK
    assert batch_options(3, {"effort": "default"}).effort is DEFAULT
    assert batch_options(3, {"gap_tol": 1e-3}).effort is st.THOROUGH
    assert not batch_options(3, {"inner": "apgd"}).effort.improves


def test_an_error_travels_to_another_process():
    """With its index, its reason, and the words of the error it was made from."""
    sent = pickle.loads(pickle.dumps(ProblemError.of(7, KeyError("x"))))
    assert (sent.index, sent.reason, str(sent)) == (7, "KeyError: 'x'", "problems[7]: KeyError: 'x'")
    assert ProblemError.of(7, ValueError("a must be positive")).reason == "a must be positive"
    assert ProblemError.of(7, MemoryError()).reason == "MemoryError"
