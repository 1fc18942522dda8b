"""What solvers hand each other: records of steps that lead from one plan to the next."""

import numpy as np
import pytest

from sparsetransport.plan import Outcome, Record, Step, as_arrays, new_trace
from sparsetransport.status import Status


def outcome(pairs):
    rows, cols = as_arrays(pairs)
    return Outcome(rows, cols, np.ones(len(pairs)), Status.LOCAL, (), Record(), True)


def path_of(record, start=()):
    return record.path(start, None)


def test_pairs_become_rows_and_columns():
    rows, cols = as_arrays([(3, 1), (0, 2)])
    assert (rows.tolist(), cols.tolist()) == ([3, 0], [1, 2])
    assert rows.dtype == cols.dtype == np.int64
    assert rows.flags.c_contiguous, "of their own, as compiled functions want them"
    assert [each.shape for each in as_arrays([])] == [(0,), (0,)]


def test_steps_one_by_one():
    record = Record()
    assert record.add((0, 1), 5.0, 1, []) == Step(0, (0, 1), 5.0, 1)
    record.add((2, 2), 4.0, 2, [])
    assert record.add((3, 0), 3.0, 1, [(0, 1), (2, 2)]).number == 2
    assert len(record) == 3
    path = path_of(record)
    assert path.pairs.tolist() == [[0, 1], [2, 2], [3, 0]]
    assert path.objective.tolist() == [5.0, 4.0, 3.0]
    assert path.entries.tolist() == [1, 2, 1]
    assert path.gone_until.tolist() == [0, 0, 2]
    assert set(path.support_at(1)) == {(3, 0)}


def trace_of(steps):
    """A trace of ``(pair, gain, entries, gone)``."""
    trace = new_trace(len(steps) + 2, 4)
    for k, (pair, gain, entries, gone) in enumerate(steps):
        trace.added[:, k], trace.gain[k], trace.entries[k] = pair, gain, entries
        for lost in gone:
            trace.gone[:, trace.steps[1]] = lost
            trace.steps[1] += 1
        trace.gone_until[k] = trace.steps[1]
        trace.steps[0] += 1
    return trace


def test_a_trace_becomes_steps_after_those_before():
    """Only as many as it has; departures are counted on from those there were."""
    record, told = Record(), []
    record.add((9, 9), 8.0, 1, [])
    record.add((8, 8), 7.5, 1, [(9, 9)])
    trace = trace_of([((0, 1), 3.0, 2, []), ((1, 1), 4.0, 2, [(8, 8)])])
    assert record.follow(trace, 10.0, told.append) is False
    assert told == [Step(2, (0, 1), 7.0, 2), Step(3, (1, 1), 6.0, 2)]
    assert path_of(record).gone_until.tolist() == [0, 1, 1, 2]
    assert path_of(record).gone.tolist() == [[9, 9], [8, 8]]
    assert record.follow(new_trace(3, 2), 10.0, told.append) is False
    assert len(record) == 4


def test_a_callback_that_says_stop_hears_no_more():
    told = []
    steps = [((k, k), float(k), k + 1, []) for k in range(4)]
    assert Record().follow(trace_of(steps), 10.0, lambda step: told.append(step) or step.number == 1) is True
    assert [step.number for step in told] == [0, 1]
    assert Record().follow(trace_of(steps), 10.0, None) is False


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [(0, 0), (2, 3)]),
        ([(0, 0), (2, 3)], [(0, 0), (1, 3)]),
        ([(0, 0), (2, 3), (4, 1)], [(0, 3), (2, 0)]),
        ([(0, 0), (2, 3)], [(0, 0)]),
        ([(0, 10), (1, 0)], [(1, 0), (0, 11)]),
    ],
)
def test_a_jump_leads_from_one_plan_to_the_other(before, after):
    """A step for every new pair; where none is new, one that stays stands for the step."""
    record, told = Record(), []
    for k, pair in enumerate(before):
        record.add(pair, 9.0 - k, k + 1, [])
    assert record.jump(outcome(before), outcome(after), 2.5, lambda step: told.append(step)) is False
    path = path_of(record)
    assert set(path.support_at(10)) == set(after)
    new = [pair for pair in after if pair not in before]
    assert len(path) == len(before) + max(len(new), 1)
    assert path.objective[-1] == 2.5
    assert path.entries[-1] == len(after)
    assert [(step.number, step.objective, step.entries) for step in told] == [(len(path) - 1, 2.5, len(after))]
    assert told[0].pair in after


def test_a_jump_to_nothing_is_no_step():
    record = Record()
    assert record.jump(outcome([]), outcome([]), 1.0, lambda step: True) is False
    assert len(record) == 0


def test_a_jump_may_be_stopped_at():
    assert Record().jump(outcome([]), outcome([(1, 1)]), 1.0, lambda step: step.entries == 1) is True


def test_a_path_begins_with_its_start():
    record = Record()
    record.add((1, 1), 3.0, 2, [])
    assert set(path_of(record, ((0, 0),)).support_at(2)) == {(0, 0), (1, 1)}
    assert len(path_of(Record())) == 0
