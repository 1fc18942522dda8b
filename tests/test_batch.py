import dataclasses
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from dying import DiesOnce
from hypothesis import given
from hypothesis import strategies as some
from strategies import instances

import sparsetransport as st
from sparsetransport import batch
from sparsetransport.batch import worker
from sparsetransport.effort import Eliminate, Grow, Grown, Random, Regularised, Swap

BUDGETS = {
    "none": None,
    "whole": 6,
    "column": st.PerColumn(1),
    "both": st.PerRow(1) & st.PerColumn(2),
    "one to one": st.PerRow(1) & st.PerColumn(1),
    "shape": min,
}


def mixed(count=40, seed=0):
    """Problems of many sizes, with and without Gram matrices."""
    rng = np.random.default_rng(seed)
    problems = []
    for k in range(count):
        m, n = rng.integers(2, 14, 2)
        x, y = rng.normal(size=(m, 2)), rng.normal(size=(n, 2))
        problems.append(
            st.Problem.from_points(
                x,
                y,
                rng.random(m),
                rng.random(n),
                kernels=[st.Delta(), st.RBF(0.5), (st.Delta(), st.IMQ(1.0))][k % 3],
                unbalanced=(5.0, 9.0),
                reg=[0.0, 0.1][k % 2],
            )
        )
    return problems


def assert_same(one, other):
    """Two results of one problem, however they came about."""
    np.testing.assert_array_equal(one.rows, other.rows)
    np.testing.assert_array_equal(one.cols, other.cols)
    np.testing.assert_array_equal(one.mass, other.mass)
    np.testing.assert_array_equal(one.path.pairs, other.path.pairs)
    np.testing.assert_array_equal(one.path.entries, other.path.entries)
    np.testing.assert_array_equal(one.path.gone, other.path.gone)
    np.testing.assert_array_equal(one.path.gone_until, other.path.gone_until)
    np.testing.assert_array_equal(one.path.objective, other.path.objective)
    for attribute in ("marginal_a", "marginal_b", "potential_a", "potential_b"):
        np.testing.assert_allclose(getattr(one, attribute), getattr(other, attribute), rtol=1e-12, atol=1e-13)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    assert one.value_linear == pytest.approx(other.value_linear, rel=1e-12, abs=1e-15)
    assert one.lower_bound == pytest.approx(other.lower_bound, rel=1e-9, abs=1e-12)
    assert (one.status, one.converged, one.log) == (other.status, other.converged, other.log)


@pytest.mark.filterwarnings("ignore:budget = 6 is more:sparsetransport.SparseTransportWarning")
@pytest.mark.filterwarnings("ignore:PerColumn = 2 is more:sparsetransport.SparseTransportWarning")
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_a_batch_gives_what_one_by_one_gives(budget):
    problems = mixed()
    results = st.solve_batch(problems, budget=budget)
    assert len(results) == len(problems)
    for problem, result in zip(problems, results, strict=True):
        count = budget(*problem.shape) if callable(budget) else budget
        assert_same(result, st.solve(problem, budget=count, polish="quick"))


@given(some.lists(instances(), min_size=1, max_size=4), some.booleans())
def test_degenerate_problems_come_out_as_one_by_one(several, polish):
    problems = [instance.problem() for instance in several]
    results = st.solve_batch(problems, budget=1, polish=polish)
    for problem, result in zip(problems, results, strict=True):
        assert_same(result, st.solve(problem, budget=1, polish=polish))


@pytest.mark.parametrize(
    "options",
    [
        {"method": "residual", "rng": 3},
        {"inner": "apgd"},
        {"gap_tol": 1e-3},
        {"polish": False},
        {"reclaim": False},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_are_those_of_solve(options):
    problems = [problem for problem in mixed(12) if problem.reg > 0.0]
    for problem, result in zip(problems, st.solve_batch(problems, budget=3, **options), strict=True):
        assert_same(result, st.solve(problem, budget=3, **options))


@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_with_polish_asked_for_plans_are_those_of_solve(reg):
    """Delta kernels, uneven masses: better than the quick ones that a batch has by default."""
    rng = np.random.default_rng(0)
    problems = [(rng.random((12, 10)), rng.random(12), rng.random(10)) for _ in range(8)]
    quick = st.solve_batch(problems, budget=12, reg=reg)
    results = st.solve_batch(problems, budget=12, reg=reg, polish=True)
    for problem, result in zip(problems, results, strict=True):
        assert_same(result, st.solve(*problem, budget=12, reg=reg))
    gains = [after.value / before.value for before, after in zip(quick, results, strict=True)]
    assert max(gains) <= 1.0 + 1e-12
    assert np.mean(gains) < 0.98


def test_the_number_of_workers_changes_nothing(monkeypatch):
    monkeypatch.setattr(batch, "CHUNK", 7)
    problems = mixed()
    for jobs in (1, 2, 3, -1):
        for one, other in zip(
            st.solve_batch(problems, budget=4, n_jobs=jobs), st.solve_batch(problems, budget=4), strict=True
        ):
            assert_same(one, other)


def test_threads_do_without_joblib(monkeypatch):
    alone = st.solve_batch(mixed(30), budget=3)
    monkeypatch.setattr(batch, "CHUNK", 7)
    monkeypatch.setitem(sys.modules, "joblib", None)
    for jobs in (None, 1, 2, -1):
        for one, other in zip(st.solve_batch(mixed(30), budget=3, n_jobs=jobs), alone, strict=True):
            assert_same(one, other)


@pytest.mark.parametrize(
    ("budget", "options"),
    [
        (None, {}),
        (6, {}),
        (6, {"polish": False}),
        (st.PerColumn(1), {}),
        (st.PerRow(1) & st.PerColumn(2), {}),
        (st.PerRow(1) & st.PerColumn(1), {"polish": False}),
    ],
)
def test_what_can_be_is_solved_together(budget, options, monkeypatch):
    """In one call of a compiled function: matrices, problems with delta kernels, and with others."""
    problems = mixed(12)
    matrices = [problem.cost.rows(0, problem.shape[0]) for problem in problems]
    monkeypatch.setattr(worker, "solve_checked", None)
    for results in (
        st.solve_batch(problems, budget=budget, **options),
        st.solve_batch(matrices, budget=budget, unbalanced=5.0, **options),
    ):
        assert [type(one) for one in results] == [st.Result] * 12


@pytest.mark.parametrize("effort", ["quick", "default", "thorough", st.BARE], ids=str)
def test_an_effort_asked_for_is_that_of_solve(effort):
    problems = mixed(12)
    for problem, result in zip(problems, st.solve_batch(problems, budget=3, effort=effort), strict=True):
        assert_same(result, st.solve(problem, budget=3, effort=effort))


@pytest.mark.parametrize(
    "change",
    [
        {"starts": (Grown(), Random(count=3))},
        {"starts": (Grown(), Regularised())},
        {"improvers": (Grow(), Swap(passes=1.0))},
        {"improvers": (Grow(), Eliminate(least=2, most=2), Swap(), Swap())},
        {"swap_few": 0, "swap_width": 1},
        {"patience": 0.0},
        {"list_above": 0},
    ],
    ids=str,
)
def test_a_changed_effort_is_that_of_solve(change):
    """Whatever was changed of it, a batch either knows it or leaves the problem to the ordinary way."""
    problems, effort = [one for one in mixed(24) if one.reg == 0.0], dataclasses.replace(st.QUICK, **change)
    for problem, result in zip(problems, st.solve_batch(problems, budget=3, effort=effort), strict=True):
        assert_same(result, st.solve(problem, budget=3, effort=effort))


def test_a_fault_of_the_batch_is_not_hidden(monkeypatch):
    monkeypatch.setattr(worker, "_together", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        st.solve_batch(mixed(3), budget=3)


def test_stacked_arrays_are_a_batch():
    rng = np.random.default_rng(1)
    C, a, b = rng.random((9, 4, 5)), rng.random((9, 4)), rng.random((9, 5))
    settings = {"budget": 5, "unbalanced": 3.0, "reg": 0.5, "kernels": (np.eye(4) + 0.5, st.Delta())}
    for k, result in enumerate(st.solve_batch(zip(C, a, b, strict=True), **settings)):
        assert_same(result, st.solve(C[k], a[k], b[k], polish="quick", **settings))
    for k, result in enumerate(st.solve_batch(C, budget=5)):
        assert_same(result, st.solve(C[k], budget=5, polish="quick"))


@pytest.mark.filterwarnings("ignore:marginal errors are up to:sparsetransport.SparseTransportWarning")
@pytest.mark.parametrize("unbalanced", ["auto", 4.0, (2.0, 5.0)], ids=str)
def test_matrices_of_numpy_come_out_as_one_by_one(unbalanced):
    """They are looked at and packed together, without a `Problem` for each."""
    rng = np.random.default_rng(2)
    items = []
    for k in range(30):
        m, n = rng.integers(1, 12, 2)
        cost = rng.normal(size=(m, n)) if k % 2 else rng.random((m, n))
        cost[rng.random((m, n)) < 0.2 * (k % 3)] = np.inf
        items.append([cost, (cost,), (cost, rng.random(m, np.float32)), (cost, None, rng.integers(0, 4, n))][k % 4])
    items += [rng.integers(0, 9, (4, 5)), rng.random((5, 4)).astype(np.float32).T, np.full((3, 2), np.inf)]
    items += [(np.ones((2, 2)), np.zeros(2), np.zeros(2)), rng.random((300, 3))]
    options = {"unbalanced": unbalanced, "reg": 0.05}
    for item, result in zip(items, st.solve_batch(items, budget=min, **options), strict=True):
        arrays = item if isinstance(item, tuple) else (item,)
        assert_same(result, st.solve(*arrays, budget=min(arrays[0].shape), polish="quick", **options))


def test_a_result_is_an_ordinary_one_once_it_leaves_its_batch():
    rng = np.random.default_rng(3)
    results = st.solve_batch(rng.random((200, 6, 7)), budget=4)
    sent = pickle.dumps(results[7])
    assert len(sent) < 6_000
    again = pickle.loads(sent)
    assert type(again) is st.Result
    assert_same(again, results[7])
    other = dataclasses.replace(results[8], status=st.Status.STOPPED)
    assert other.status is st.Status.STOPPED
    assert other.value == results[8].value


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="MALLOC_PERTURB_ is glibc's")
def test_no_kernel_reads_memory_that_was_given_back():
    """Kernels do not count references to their arguments; freed memory is overwritten here, and nothing changes."""
    program = """
import numpy as np, sparsetransport as st
costs = np.random.default_rng(0).random((300, 12, 9))
results = st.solve_batch(costs, budget=9, unbalanced=10.0, reg=0.1)
results += [st.solve(cost, budget=st.PerColumn(1), unbalanced=3.0) for cost in costs[:20]]
print([result.value.hex() for result in results])
"""
    said = [
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | perturbed, check=True, capture_output=True, text=True
        ).stdout
        for perturbed in ({}, {"MALLOC_PERTURB_": "165"})
    ]
    assert said[0] == said[1]
    assert "nan" not in said[0]


def test_what_happens_to_the_inputs_later_does_not_matter():
    rng = np.random.default_rng(4)
    C, a, b, weights = rng.random((4, 5)), rng.random(4), rng.random(5), [2.0, 3.0]
    wanted = st.solve(C.copy(), a.copy(), b.copy(), budget=3, unbalanced=tuple(weights), reg=0.1)
    (result,) = st.solve_batch([(C, a, b)], budget=3, unbalanced=weights, reg=0.1)
    a[:], b[:], weights[0] = 7.0, 7.0, 100.0
    assert_same(result, wanted)
    (result,) = st.solve_batch([C], budget=3)
    C[:] = np.nan
    assert result.path.objective[-1] == pytest.approx(result.value)
    assert pickle.loads(pickle.dumps(result)).value == result.value
    C[:] = np.inf
    (result,) = st.solve_batch([C])
    C[:] = 1.0
    assert result.status is st.Status.ALL_FORBIDDEN


def test_a_budget_may_solve_a_batch_itself():
    def budget(m, n):
        return st.solve_batch([np.ones((m, n))], budget=2)[0].rows.size

    assert st.solve_batch([np.ones((3, 4))], budget=budget)[0].rows.size == 2


def test_true_is_no_budget_even_beside_one():
    results = st.solve_batch(
        [np.ones((3, 2)), np.ones((2, 2))], budget=lambda m, n: True if m == 2 else 1, on_error="record"
    )
    assert isinstance(results[0], st.Result)
    assert "budget must be a positive int" in results[1].reason


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_masses_that_overflow_are_refused_as_by_solve():
    """With the place of the problem."""
    huge = np.ones((4, 5)), np.full(4, 1e308), np.full(5, 1e308)
    with pytest.raises(ValueError, match=r"problems\[1\]: .*too large"):
        st.solve_batch([np.ones((4, 5)), huge], budget=3)


def _with_one_large_cost():
    costs = np.random.default_rng(0).random((6, 5))
    costs[0, 0] = 1e6
    return costs


@pytest.mark.parametrize(
    ("problem", "options", "message"),
    [
        (_with_one_large_cost(), {}, "is based on the mean cost"),
        (_with_one_large_cost(), {"unbalanced": 1e9}, "lost in rounding"),
        (st.Problem.from_matrices(_with_one_large_cost(), unbalanced=1e9), {}, "lost in rounding"),
    ],
    ids=["auto", "rounding", "rounding of a Problem"],
)
def test_no_warning_of_solve_is_missing(problem, options, message):
    with pytest.warns(st.SparseTransportWarning, match=message) as caught:
        st.solve_batch([problem], budget=4, **options)
    assert len(caught) == 1


@pytest.mark.parametrize("masses", [(np.arange(1.0, 7.0), None), (None, np.arange(5.0) / 7.0), (np.zeros(6), None)])
def test_a_side_without_masses_has_the_total_of_the_other(masses):
    costs = np.random.default_rng(0).random((6, 5))
    (found,) = st.solve_batch([(costs, *masses)], budget=4)
    single = st.solve(costs, *masses, budget=4, effort="quick")
    for one, other in zip((found.problem.a, found.problem.b), (single.problem.a, single.problem.b), strict=True):
        np.testing.assert_array_equal(one, other)


def test_warnings_are_those_of_solve():
    """Marginals that weigh so much that costs are lost: said once for each such problem, and for no other."""
    costs = np.random.default_rng(0).random((3, 4, 3))
    with pytest.warns(st.SparseTransportWarning, match="costs are lost in rounding") as caught:
        several = st.solve_batch(costs, budget=3, unbalanced=1e12)
    assert len(caught) == len(several) == 3
    assert {one.filename for one in caught} == {__file__}
    with pytest.warns(st.SparseTransportWarning, match="costs are lost in rounding"):
        st.solve_batch([st.Problem.from_matrices(costs[0], unbalanced=1e12)], budget=3)


def test_torch_in_torch_out():
    torch = pytest.importorskip("torch")
    C = torch.rand(3, 4, 5, dtype=torch.float64)
    assert all(isinstance(result.plan, torch.Tensor) for result in st.solve_batch(C, budget=3))


def test_large_and_lazy_problems_take_the_ordinary_way():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(520, 2)), rng.normal(size=(500, 2))
    problems = [
        st.Problem.from_points(x, y),
        st.Problem.from_points(x[:9], y[:8], lazy=True),
        st.Problem.from_points(x[:9], y[:8]),
    ]
    for problem, result in zip(problems, st.solve_batch(problems, budget=8), strict=True):
        assert_same(result, st.solve(problem, budget=8, polish="quick"))


def test_a_plan_that_outgrows_its_room_is_solved_alone():
    """Without a budget, and with a large quadratic term, the optimum uses nearly every pair."""
    problem = st.Problem.from_matrices(np.zeros((40, 40)), unbalanced=1.0, reg=50.0)
    (result,) = st.solve_batch([problem])
    assert result.rows.size == 1600 > 2 * (40 + 40)
    assert_same(result, st.solve(problem))


def test_results_can_be_pickled():
    result = st.solve_batch(mixed(3), budget=3)[2]
    again = pickle.loads(pickle.dumps(result))
    assert_same(result, again)
    assert again.certify().lower_bound == pytest.approx(result.certify().lower_bound)


def counted(read):
    """Problems without end, and which of them were read."""
    for k in itertools.count():
        read.append(k)
        yield np.full((3, 3), 1.0 + k)


def test_a_stream_reads_no_further_than_it_must():
    read = []
    results = st.solve_stream(counted(read), budget=2)
    firsts = [next(results).value for _ in range(300)]
    assert len(set(firsts)) == 300
    assert len(read) <= 300 + batch.CHUNK


def test_workers_read_a_few_chunks_ahead(monkeypatch):
    """However many results are taken, no more than AHEAD chunks a worker are read beyond them."""
    monkeypatch.setattr(batch, "CHUNK", 5)
    read = []
    results = st.solve_stream(counted(read), budget=2, n_jobs=2)
    for taken in range(1, 400):
        next(results)
        assert len(read) <= taken + 2 * batch.AHEAD * batch.CHUNK
    results.close()


def test_results_come_before_all_is_read_if_they_are_ready():
    read = []
    with ThreadPoolExecutor(1) as pool:

        def slow():
            for k in range(100):
                read.append(k)
                yield k
                pool.submit(int).result()  # the one thread is done with what came before

        assert next(batch._in_threads(pool, 100, str, slow())) == "0"
    assert len(read) <= 2


@pytest.mark.parametrize(("backend", "jobs"), [("threading", 1), ("threading", 2), ("loky", 2), ("multiprocessing", 2)])
def test_a_source_that_fails_gives_what_came_before(backend, jobs):
    joblib = pytest.importorskip("joblib")

    def failing():
        yield from np.random.default_rng(0).random((500, 3, 3))
        raise OSError("the line is cut")

    got = []
    with joblib.parallel_config(backend=backend, n_jobs=jobs), pytest.raises(OSError, match="the line is cut"):
        got.extend(st.solve_stream(failing(), budget=2))
    for cost, result in zip(np.random.default_rng(0).random((500, 3, 3)), got, strict=True):
        assert_same(result, st.solve(cost, budget=2, polish="quick"))


@pytest.mark.filterwarnings("ignore:.*tasks:UserWarning")  # joblib tells what was done for nothing
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_stream_may_be_closed_early(backend):
    """Nothing is read or left running afterwards, and the next batch is an ordinary one."""
    joblib = pytest.importorskip("joblib")
    read = []
    with joblib.parallel_config(backend=backend, n_jobs=2):
        results = st.solve_stream(counted(read), budget=2)
        next(results)
        results.close()
        seen = len(read)
        for thread in threading.enumerate():
            if thread.name.startswith("sparsetransport"):
                thread.join()
        assert len(st.solve_batch(np.ones((300, 3, 3)), budget=2)) == 300
    assert len(read) == seen


def test_a_worker_stops_when_nobody_wants_the_results():
    stopped = worker.Task(
        2,
        {"kernels": None, "unbalanced": "auto", "reg": 0.0, "sense": "=", "link_cost": None},
        {"method": "residual"},
        worker.Stop(True),
    )
    assert worker.solve_chunk(stopped, (0, [np.ones((3, 3))] * 2)) == [None, None]


def test_a_million_workers_are_a_few():
    pytest.importorskip("joblib")
    before = threading.active_count()
    most = 0

    def budget(m, n):
        nonlocal most
        most = max(most, threading.active_count() - before)
        return 2

    assert len(st.solve_batch(np.ones((5000, 2, 2)), budget=budget, n_jobs=10**6)) == 5000
    assert 1 <= most <= batch.THREADS * (os.cpu_count() or 1)


def test_large_problems_make_small_chunks():
    chunks = list(batch._chunks([np.ones((600, 500))] * 5, []))
    assert [(first, len(items)) for first, items in chunks] == [(0, 2), (2, 2), (4, 1)]


def test_an_empty_batch_is_empty():
    assert st.solve_batch([]) == []


def bad_batch():
    good = np.ones((3, 3))
    low = np.where(np.eye(3) > 0.0, -np.inf, 1.0)
    return [
        *(good, np.full((3, 3), np.nan), good, (good, [1.0, -1.0, 1.0]), (good, 1, 2, 3), good),
        *((good, -good[0]), (good, good[0], np.array([1.0, np.inf, 1.0])), (good, good[0, :2]), low, good[:0]),
    ]


def test_a_bad_problem_names_its_index():
    with pytest.raises(
        st.ProblemError, match=r"problems\[1\]: C must be finite or \+inf, got nan at \(0, 0\)"
    ) as caught:
        st.solve_batch(bad_batch(), budget=2)
    assert caught.value.index == 1
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("given", [{"kernels": st.Delta()}, {"kernels": np.eye(2)}, {"unbalanced": 3.0}, {"reg": 1.0}])
def test_what_a_problem_has_settled_is_not_asked_for_again(given):
    """Kernels and weights are those of a Problem: others beside it are refused by name, the defaults are not."""
    problem = st.Problem.from_matrices(np.ones((2, 2)), unbalanced=2.0)
    with pytest.raises(st.ProblemError, match=rf"problems\[1\]: {next(iter(given))} must not be given"):
        st.solve_batch([np.ones((2, 2)), problem], **given)
    assert st.solve_batch([problem], kernels=None, unbalanced="auto", reg=0)[0].log["unbalanced"] == (2.0, 2.0)


def test_costs_and_masses_may_be_a_list():
    """[C, a, b] is (C, a, b), while a matrix as a list of rows stays one."""
    C, a, b = np.arange(6.0).reshape(2, 3), np.array([0.5, 0.5]), np.array([0.2, 0.3, 0.5])
    listed, rows = st.solve_batch([[C, a, b], C.tolist()])
    assert (listed.value, rows.value) == (st.solve(C, a, b).value, st.solve(C).value)


def test_with_record_the_others_finish():
    results = st.solve_batch(bad_batch(), budget=2, on_error="record", n_jobs=2)
    errors = {k: str(result) for k, result in enumerate(results) if isinstance(result, st.ProblemError)}
    assert sorted(errors) == [1, 3, 4, 6, 7, 8, 9, 10]
    assert "a must not be negative" in errors[3]
    assert "got a tuple of 4" in errors[4]
    assert "a must not be negative, got -1.0 at 0" in errors[6]
    assert "b must be finite, got inf at (1,)" in errors[7]
    assert "a must have one mass for each of the 3 points, got 2" in errors[8]
    assert "C must be finite or +inf, got -inf at (0, 0)" in errors[9]
    assert "C must not be empty" in errors[10]
    assert_same(results[5], st.solve(np.ones((3, 3)), budget=2, polish="quick"))


class Raises:
    """A matrix that cannot be had."""

    def __init__(self, error):
        self.error = error

    def __array__(self, *_, **__):
        raise self.error


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("error", "reason"),
    [(RuntimeError("lost"), "RuntimeError: lost"), (NotImplementedError(), "NotImplementedError")],
    ids=["words", "none"],
)
def test_whatever_goes_wrong_with_a_problem_has_its_index(error, reason, jobs):
    problems = [np.ones((3, 3)), Raises(error), np.ones((3, 3))]
    with pytest.raises(st.ProblemError) as caught:
        st.solve_batch(problems, budget=2, n_jobs=jobs)
    assert (caught.value.index, caught.value.reason) == (1, reason)
    good, bad, also = st.solve_batch(problems, budget=2, n_jobs=jobs, on_error="record")
    assert str(bad) == f"problems[1]: {reason}"
    assert good.value == also.value


def test_an_interrupt_is_no_error_of_a_problem():
    with pytest.raises(KeyboardInterrupt):
        st.solve_batch([np.ones((3, 3)), Raises(KeyboardInterrupt())], on_error="record")


def test_a_tensor_without_numbers_is_recorded():
    torch = pytest.importorskip("torch")
    good, bad = st.solve_batch([np.ones((4, 4)), torch.rand(4, 4, device="meta")], on_error="record", budget=2)
    assert isinstance(good, st.Result)
    assert bad.index == 1


def test_an_error_of_the_budget_is_one_of_the_problem():
    def budget(m, n):
        return {3: 2}[n]

    good, bad = st.solve_batch([np.ones((3, 3)), np.ones((3, 4))], budget=budget, on_error="record")
    assert good.rows.size == 2
    assert str(bad) == "problems[1]: KeyError: 4"


_ONES, _HUGE = (np.ones((4, 5)), np.ones(4), np.ones(5)), (np.ones((4, 5)), np.full(4, 1e308), np.full(5, 1e308))


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (_ONES, _HUGE),
        (st.Problem.from_matrices(*_ONES, unbalanced=2.0), st.Problem.from_matrices(*_ONES, unbalanced=1e14)),
    ],
    ids=["overflow", "rounding"],
)
def test_a_warning_turned_into_an_error_is_of_its_problem(good, bad):
    """The others of its chunk, packed together with it, come out as ever."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, failed, last = st.solve_batch([good, bad, good], budget=3, on_error="record")
    assert failed.index == 1
    assert first.value == last.value == st.solve(*_ONES, budget=3, unbalanced=first.log["unbalanced"]).value


def test_an_objective_without_a_minimum_is_an_error_of_its_problem():
    nothing = np.zeros((2, 2))
    falling = st.Problem.from_matrices(-np.ones((2, 2)), kernels=nothing, unbalanced=1.0)
    good = st.Problem.from_matrices(np.ones((2, 2)))
    results = st.solve_batch([good, falling], on_error="record")
    assert isinstance(results[0], st.Result)
    assert "falls without bound" in results[1].reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_error": "ignore"}, "on_error must be one of 'raise', 'record', got 'ignore'"),
        ({"n_jobs": 0}, "n_jobs must be a number of workers"),
        ({"n_jobs": 1.5}, "n_jobs must be a number of workers"),
        ({"start": [(0, 0)]}, "start must not be given for a batch"),
        ({"callback": print}, "callback must not be given for a batch"),
        ({"rng": np.random.default_rng(0)}, "rng must be a seed"),
        ({"budget": -3}, "budget must be a positive int, got -3"),
        ({"method": "magic"}, "method must be one of"),
        ({"foo": 1}, "unknown option foo"),
        ({"reg": -1.0}, "reg must be a number that is not negative, got -1.0"),
        ({"unbalanced": 0.0}, "unbalanced must be a positive number, got 0.0"),
        ({"max_iter": 5}, 'max_iter must be None unless inner="apgd"'),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_options_are_errors_before_any_work(options, message):
    def never():
        raise AssertionError("a problem was read")
        yield

    with pytest.raises((TypeError, ValueError), match=message):
        st.solve_stream(never(), **options)


def test_the_bar_is_quiet_without_a_terminal(capfd):
    assert len(st.solve_batch(mixed(5), budget=3, progress=True)) == 5
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_cluster_that_loses_a_worker_gives_every_result_once(monkeypatch, tmp_path):
    distributed = pytest.importorskip("distributed")
    joblib = pytest.importorskip("joblib")
    monkeypatch.setattr(batch, "CHUNK", 50)
    rng = np.random.default_rng(0)
    problems = [st.Problem.from_matrices(rng.random((6, 5 + k % 3))) for k in range(500)]
    problems[234] = st.Problem.from_matrices(rng.random((7, 4)))
    marker = tmp_path / "died"
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path), silence_logs=50
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        results = st.solve_batch(problems, budget=DiesOnce((7, 4), marker))
    assert marker.exists()
    for result, alone in zip(results, st.solve_batch(problems, budget=min), strict=True):
        assert_same(result, alone)


def test_a_budget_function_may_return_numpy_integers():
    """Every problem gets the budget of its own shape, whatever the type of the number and however short its life."""
    rng = np.random.default_rng(0)
    problems = [-np.ones((m, 8)) - rng.random((m, 8)) for m in rng.integers(1, 40, 300)]
    results = st.solve_batch(problems, budget=lambda m, n: np.minimum(m, n))
    for C, result in zip(problems, results, strict=True):
        assert result.rows.size <= min(C.shape)
        assert_same(result, st.solve(C, budget=min(C.shape), polish="quick"))


def test_a_ragged_problem_is_recorded_like_any_other():
    results = st.solve_batch([[[1.0, 2.0], [3.0]], np.ones((2, 2))], on_error="record", budget=1)
    assert results[0].index == 0
    assert "rectangular" in results[0].reason
    assert results[1].rows.size == 1
