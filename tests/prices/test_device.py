"""Prices on a device: the bound is below the optimum and close to it, whatever shares the rows."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
spawn = pytest.importorskip("torch.multiprocessing").spawn

import sparsetransport as st  # noqa: E402
from sparsetransport.effort import DevicePrices  # noqa: E402
from sparsetransport.prices import device, device_pricing  # noqa: E402

HOW = DevicePrices(coarsest=30, iterations=60, begin=(30.0, 3.0, 0.3))


def clouds(m, n, d=2, seed=0, **options):
    rng = np.random.default_rng(seed)
    X, Y = rng.random((m, d)), rng.normal(0.5, 0.2, (n, d))
    a, b = rng.lognormal(0.0, 0.7, m), rng.lognormal(0.0, 0.7, n)
    return st.Problem.from_points(X, Y, a / m, b / n, kernels=st.Delta(), lazy=True, **options)


@pytest.mark.parametrize(("m", "n", "d"), [(150, 120, 2), (60, 200, 3), (120, 100, 8)])
def test_the_bound_is_close_to_the_optimum_and_never_above(m, n, d):
    problem = clouds(m, n, d)
    found = device.prices(problem, HOW, "cpu")
    optimum = st.solve(problem).value
    assert found.bound <= optimum <= found.value + 1e-12
    assert found.value - found.bound < 0.03 * optimum
    value = problem.value(*(each.numpy() for each in (found.rows, found.cols, found.mass)))
    assert value == pytest.approx(found.value, rel=1e-9)
    reduced = problem.cost.rows(0, m) - found.alpha.numpy()[:, None] - found.beta.numpy()
    assert reduced.min() >= -1e-12 * abs(problem.cost.mean), "the prices are a dual point that anybody can check"


def test_a_gap_that_is_asked_for_is_reached():
    found = device.prices(clouds(150, 120), HOW, "cpu", gap_tol=1e-3)
    assert found.value - found.bound <= 1e-3 * found.value


def test_the_unit_of_the_points_changes_nothing():
    """Powers of two scale exactly, far beyond single precision."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((80, 2)), rng.random((70, 2))
    bounds = []
    for unit in (1.0, 2.0**80, 2.0**-80):
        problem = st.Problem.from_points(
            X * unit, Y * unit, kernels=st.Delta(), lazy=True, unbalanced=10.0 * unit * unit
        )
        bounds.append(device.prices(problem, HOW, "cpu").bound / unit / unit)
    assert bounds[0] == bounds[1] == bounds[2]


@pytest.mark.parametrize("case", ["equal", "one", "twice"])
def test_points_that_are_not_in_general_position(case):
    rng = np.random.default_rng(0)
    X, Y = rng.random((50, 2)), rng.random((40, 2))
    if case == "equal":
        X, Y = np.ones((50, 2)), np.ones((40, 2))
    if case == "one":
        Y = Y[:1]
    if case == "twice":
        X = np.repeat(X[:25], 2, axis=0)
    problem = st.Problem.from_points(X, Y, kernels=st.Delta(), lazy=True, unbalanced=5.0)
    found = device.prices(problem, HOW, "cpu")
    optimum = st.solve(problem).value
    assert found.bound <= optimum + 1e-12 <= found.value + 1e-9
    assert found.value - found.bound < 0.03 * max(optimum, 1.0)


def test_other_problems_are_refused():
    problem = st.Problem.from_points(np.ones((2, 2)), np.ones((2, 2)), kernels=st.Delta(), lazy=True, reg=1.0)
    with pytest.raises(ValueError, match="device must be None unless"):
        device.prices(problem, HOW, "cpu")


def test_too_little_memory_is_said_before_any_work(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2**30, 2**34))
    with pytest.raises(MemoryError, match=r"1\.0 GiB free, and 2,000,000 points in 2 dimensions take about"):
        device_pricing.require_memory(torch.device("cuda"), 2_000_000, 2)
    device_pricing.require_memory(torch.device("cuda"), 1000, 2)


def _one_process(rank, world, port, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    found = device.prices(clouds(90, 70), HOW, "cpu", group=torch.distributed.group.WORLD)
    if rank == 0:
        torch.save(found, f"{folder}/found.pt")
    torch.distributed.destroy_process_group()


def test_two_processes_share_the_rows(tmp_path, free_port):
    """The same plan as one process, up to the rounding of sums."""
    spawn(_one_process, (2, free_port, str(tmp_path)), nprocs=2)
    together = torch.load(tmp_path / "found.pt", weights_only=False)
    alone = device.prices(clouds(90, 70), HOW, "cpu")
    assert together.bound == pytest.approx(alone.bound, rel=1e-6)
    assert together.value == pytest.approx(alone.value, rel=1e-6)
    links = [set(zip(each.rows.tolist(), each.cols.tolist(), strict=True)) for each in (together, alone)]
    assert len(links[0] & links[1]) > 0.99 * len(links[0] | links[1])


@pytest.fixture
def free_port():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.gpu
def test_cpu_and_gpu_agree():
    problem = clouds(3000, 3000)
    here, there = (device.prices(problem, DevicePrices(), where) for where in ("cpu", "cuda"))
    assert there.bound == pytest.approx(here.bound, rel=1e-4)
    assert there.value == pytest.approx(here.value, rel=1e-4)


def test_it_tells_of_every_stage_and_stops_when_told_to():
    problem, told = clouds(150, 120), []

    def tell(value, row, col, links):
        told.append(value)
        assert 0 <= row < 150
        assert 0 <= col < 120 <= links
        return len(told) == 2

    whole, short = device.prices(problem, HOW, "cpu"), device.prices(problem, HOW, "cpu", tell=tell)
    assert len(told) == 2
    assert short.bound <= whole.value
    assert (problem.cost.rows(0, 150) - short.alpha.numpy()[:, None] - short.beta.numpy()).min() >= -1e-12


def test_neighbours_on_the_curve_are_near_each_other():
    points = torch.rand(4096, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    order = device_pricing.along_a_curve(points)
    assert (order.sort().values == torch.arange(4096)).all()
    apart = (points[order][1:] - points[order][:-1]).norm(dim=1)
    assert float(apart.median()) < 2.0 / 64.0
