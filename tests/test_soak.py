"""The soak run in short: random problems check, memory stays flat; and the checks notice what is false."""

from dataclasses import replace

import numpy as np
import pytest

import sparsetransport as st
from benchmarks import soak


def test_random_problems_check():
    """Budgets, masses, objectives, bounds and statuses, by code that shares nothing with the package."""
    tally = soak.fuzz(120, seed=2)
    assert tally.failures == []
    assert tally.tried["problems", "checked"] >= 105
    assert {name for kind, name in tally.tried if kind == "unusual"} >= set(soak.ODD) - {"nothing"}


@pytest.mark.parametrize("seed", [(22119, 190), (2029, 743)])
def test_problems_that_failed_once_check(seed):
    """Plans that were called optimal although the costs in use were lost beside others, or beside the weights."""
    assert soak.failures_of(soak.draw(np.random.default_rng(seed)), [*seed, 1]) == ("checked", [])


def test_memory_stays_flat():
    _, after, most = soak.memory(1000, seed=0)
    assert np.isnan(after) or most <= (1.0 + soak.MEMORY) * after


def test_a_case_that_is_kept_comes_back(tmp_path):
    for k in range(40):
        case = soak.draw(np.random.default_rng([3, k]))
        case.save(tmp_path / "3-0.npz", [])
        again = soak.Case.load(tmp_path / "3-0.npz")
        for name in case.__dataclass_fields__:
            np.testing.assert_equal(getattr(again, name), getattr(case, name))


def test_a_failure_is_kept_and_runs_again(tmp_path, monkeypatch, capsys):
    """What fails is written to the folder, and the exit code of running it again says whether it still fails."""
    right = soak._plan
    monkeypatch.setattr(soak, "_plan", lambda result: right(result)._replace(value=result.value + 1.0))
    assert soak.main(["--problems", "3", "--solves", "1", "--seed", "4", "--keep", str(tmp_path)]) == 1
    assert len(files := sorted(tmp_path.iterdir())) == 3
    assert soak.main(["--replay", str(files[0])]) == 1
    monkeypatch.setattr(soak, "_plan", right)
    assert soak.main(["--replay", str(files[0])]) == 0
    assert "nothing is false" in capsys.readouterr().out


@pytest.fixture
def solved():
    """A problem, its plans and what the checks say of them."""
    rng = np.random.default_rng(0)
    case = soak.Case(
        rng.random((1, 4)), rng.random((1, 5)), "solve", "delta", (("whole", 3),), 5.0, 0.0, "quick", rng.random((4, 5))
    )
    return case, soak.solved(case)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda plan: {"value": plan.value * (1.0 + 1e-6)}, "recomputed"),
        (lambda plan: {"mass": -plan.mass}, "negative mass"),
        (lambda plan: {"mass": plan.mass * np.nan}, "not finite"),
        (lambda plan: {"bounds": (plan.value, plan.value * (1.0 + 1e-6))}, "the tight bound"),
        (lambda plan: {"status": st.Status.OPTIMAL}, "reduced cost"),
        (lambda plan: {"status": st.Status.ALL_FORBIDDEN}, "pairs that are allowed"),
        (lambda plan: {"cols": np.zeros_like(plan.cols), "rows": np.zeros_like(plan.rows)}, "comes twice"),
    ],
)
def test_the_checks_notice_what_is_false(solved, change, complaint):
    case, (plan,) = solved
    assert soak._plans(case, [plan])[1] == []
    assert any(complaint in text for text in soak._plans(case, [plan._replace(**change(plan))])[1])


def test_the_checks_notice_a_budget_that_is_not_kept(solved):
    case, plans = solved
    assert "is not kept" in soak._plans(replace(case, budget=(("whole", 2),)), plans)[1][0]


def test_the_checks_notice_a_bound_above_another_plan(solved):
    _, (plan,) = solved
    values, lower = [(plan.value, 1.0), (plan.value - 1e-3, 1.0)], plan.value - 1e-4
    assert "a bound of" in soak._together(plan, values, [lower], warned=False)[0]
    optimal = plan._replace(status=st.Status.OPTIMAL)
    assert "OPTIMAL at" in soak._together(optimal, values, [], warned=False)[0]
