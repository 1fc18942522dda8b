"""At most, exactly, at least: transportation problems with few links against HiGHS, and balanced ones against SCOT."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import ot
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_matrix, diags, eye, hstack, kron, load_npz, vstack

import sparsetransport as st

from .table import Table, seconds

HARD = {"unbalanced": np.inf, "sense": ("<=", "=")}
LIMIT = 20.0  # seconds for one integer programme
LONG = 60.0  # the same for large fixed charge problems


def run() -> list[Table]:
    return [_linear(), _few(), _charged(), _large(), _depots(), _balanced()]


def _problem(seed, m, n, spare):
    """Costs, capacities with this much to spare, and demands."""
    rng = np.random.default_rng(seed)
    C, a, b = rng.random((m, n)), rng.random(m) + 0.05, rng.random(n) + 0.05
    return C, a * (spare * b.sum() / a.sum()), b


def _sums(m, n):
    return vstack([kron(eye(m), np.ones((1, n))), kron(np.ones((1, m)), eye(n))]).tocsr()


def _lp(C, a, b):
    A, m = _sums(*C.shape), len(a)
    return linprog(C.ravel(), A[:m], a, A[m:], b, method="highs").fun


def _mip(C, a, b, budget=None, fees=None, low=None, limit=LIMIT):
    """The best plan of HiGHS, its lower bound, and whether it is optimal; infinite if none was found.

    Links are limited by the budget, or cost fees; columns get what they want, rows give at least ``low``.
    """
    m, n = C.shape
    size = m * n
    low, high = np.append(np.full(m, -np.inf) if low is None else low, b), np.append(a, b)
    zero, one = np.zeros(size), np.ones(size)
    rules = [
        LinearConstraint(hstack([_sums(m, n), csr_matrix((m + n, size))]), low, high),
        LinearConstraint(hstack([eye(size), -diags(np.minimum(a[:, None], b).ravel())]), -np.inf, 0.0),
    ]
    if budget is not None:
        rules.append(LinearConstraint(np.append(zero, one)[None], -np.inf, budget))
    costs = np.append(C.ravel(), zero if fees is None else fees.ravel())
    bounds = Bounds(0.0, np.append(np.full(size, np.inf), one))
    options = {"time_limit": limit, "mip_rel_gap": 1e-9}
    found = milp(costs, constraints=rules, integrality=np.append(zero, one), bounds=bounds, options=options)
    return np.inf if found.fun is None else found.fun, found.mip_dual_bound, found.status == 0


def _linear() -> Table:
    table = Table(
        "Supply at most, demand exactly, hard, m + n - 1 links, against HiGHS's linear programme",
        ["problems", "largest difference of cost", "largest error of a marginal", "ours", "HiGHS"],
        [],
    )
    difference, error, ours, theirs = [], [], 0.0, 0.0
    for seed in range(50):
        m, n = (10, 20) if seed < 20 else (40, 60) if seed < 40 else (100, 300)
        C, a, b = _problem(seed, m, n, 1.4)
        start = time.process_time()
        result = st.solve(C, a, b, budget=m + n - 1, **HARD)
        ours += time.process_time() - start if seed else 0.0
        start = time.process_time()
        value = _lp(C, a, b)
        theirs += time.process_time() - start
        difference.append(abs(result.value / value - 1.0))
        error.append(max((result.marginal_a - a).max() / a.max(), np.abs(result.marginal_b - b).max() / b.max()))
    table.rows.append([50, f"{max(difference):.0e}", f"{max(error):.0e}", seconds(ours), seconds(theirs)])
    table.claim("the same cost within 1e-9, marginals kept within 1e-9", max(*difference, *error) <= 1e-9)
    return table


def _few() -> Table:
    table = Table(
        "The same with one to four links less than the linear programme takes, against HiGHS's integer programme",
        ["size", "problems", "optimal", "worst", "no plan exists", "told so", "ours", "HiGHS"],
        [],
    )
    good = True
    for size in (6, 8, 10):
        gaps, none, told, ours, theirs = [], 0, 0, 0.0, 0.0
        for seed in range(50):
            rng = np.random.default_rng(seed)
            C, a, b = _problem(seed, size, size, rng.choice([1.3, 1.6, 2.0]))
            budget = max(len(st.solve(C, a, b, **HARD).mass) - int(rng.integers(1, 5)), size)
            start = time.process_time()
            result = st.solve(C, a, b, budget=budget, **HARD)
            ours += time.process_time() - start
            start = time.process_time()
            value, _, proved = _mip(C, a, b, budget)
            theirs += time.process_time() - start
            if np.isfinite(value):
                gaps.append(result.value / value - 1.0)
            elif proved or result.value == np.inf:
                none, told = none + 1, told + (result.value == np.inf)
        share, worst = np.mean(np.array(gaps) < 1e-7), max(gaps)
        good &= share >= 0.9 and worst <= 0.03
        table.rows.append(
            [f"{size} x {size}", 50, f"{share:.0%}", f"{worst:.2%}", none, told, seconds(ours), seconds(theirs)]
        )
    table.claim("optimal in at least 90 %, at most 3 % above HiGHS", good)
    return table


def _charged() -> Table:
    table = Table(
        "A fixed cost for every link, supply at most, demand exactly, against HiGHS's integer programme",
        ["size", "problems", "optimal", "worst", "our bound below the optimum, mean", "ours", "HiGHS"],
        [],
    )
    good = True
    for size in (6, 8, 10):
        gaps, loose, ours, theirs = [], [], 0.0, 0.0
        for seed in range(50):
            rng = np.random.default_rng(seed)
            C, a, b = _problem(seed, size, size, rng.choice([1.1, 1.4, 2.0]))
            fees = rng.random((size, size)) * rng.choice([0.3, 1.0, 5.0]) * b.mean()
            start = time.process_time()
            result = st.solve(C, a, b, link_cost=fees, **HARD)
            ours += time.process_time() - start
            start = time.process_time()
            value, _, _ = _mip(C, a, b, fees=fees)
            theirs += time.process_time() - start
            gaps.append(result.value / value - 1.0)
            loose.append(1.0 - result.lower_bound / value)
        share, worst = np.mean(np.array(gaps) < 1e-7), max(gaps)
        good &= share >= 0.9 and worst <= 0.03
        times = seconds(ours), seconds(theirs)
        table.rows.append([f"{size} x {size}", 50, f"{share:.0%}", f"{worst:.2%}", f"{np.mean(loose):.1%}", *times])
        good &= min(loose) >= -1e-9
    table.claim("optimal in at least 90 %, at most 3 % above HiGHS; no bound above the optimum", good)
    return table


def _balanced_fees(seed, size, scale):
    """As in Sun, Aronson, McKeown and Drinka (1998): unit costs of 3 to 8, fixed ones of 50 to 200 times a scale."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(200, 1800, size).astype(float), rng.integers(200, 1800, size).astype(float)
    a = np.round(a * (b.sum() / a.sum()))
    a[0] += b.sum() - a.sum()
    return rng.integers(3, 9, (size, size)).astype(float), a, b, rng.integers(50, 201, (size, size)) * scale


def _spare_fees(seed, size, scale):
    C, a, b = _problem(seed, size, size, 1.4)
    return C, a, b, np.random.default_rng(seed).random((size, size)) * scale * b.mean()


def _large() -> Table:
    """Processor time for both; on a loaded machine HiGHS gets less of it than its limit, which is of wall time."""
    table = Table(
        f"Fixed costs of links, {LONG:g} s for HiGHS",
        ["problem", "size", "ours", "HiGHS", "ours is lower by", "our bound", "HiGHS's bound", "time", "of HiGHS"],
        [],
    )
    good = fast = True
    for name, made, sense, scale in (
        ("supply = demand, fees 100 to 400", _balanced_fees, "=", 2.0),
        ("supply = demand, fees 800 to 3200", _balanced_fees, "=", 16.0),
        ("supply at most, 40 % to spare", _spare_fees, ("<=", "="), 5.0),
    ):
        for size in (50, 100):
            C, a, b, fees = made(1, size, scale)
            start = time.process_time()
            result = st.solve(C, a, b, link_cost=fees, unbalanced=np.inf, sense=sense)
            ours = time.process_time() - start
            start = time.process_time()
            value, bound, _ = _mip(C, a, b, fees=fees, low=a if sense == "=" else None, limit=LONG)
            theirs = time.process_time() - start
            good &= result.value <= value * (1.0 + 1e-7)
            fast &= ours <= LONG / 20.0
            row = [name, size, f"{result.value:.6g}", f"{value:.6g}", f"{1.0 - result.value / value:.2%}"]
            row += [f"{result.lower_bound:.6g}", f"{bound:.6g}", seconds(ours), f"{theirs:.1f} s"]
            table.rows.append(row)
    table.claim("no objective above that of HiGHS", good)
    table.claim(f"each in at most {LONG / 20.0:g} s", fast)
    return table


def _depots() -> Table:
    rng = np.random.default_rng(0)
    C = ot.dist(rng.random((12, 2)), rng.random((60, 2)), "euclidean")
    a, b = rng.integers(150, 290, 12).astype(float), rng.integers(10, 45, 60).astype(float)
    title = "12 depots with more capacity than 60 shops need, from the command line, with a picture"
    table = Table(title, ["links allowed", "links", "cost", "unserved"], [])
    least = _lp(C, a, b)
    for budget in (71, 60):
        plan = _from_command_line(C, a, b, budget)
        cost, missed = float((C * plan).sum()), np.maximum(b - plan.sum(0), 0.0)
        table.rows.append([budget, np.count_nonzero(plan), f"{cost:.4f}", f"{missed.sum():.3g}"])
        table.claim(
            f"{budget} links: all served, at most {0.0 if budget > 60 else 8.0} % above the linear programme",
            np.count_nonzero(plan) <= budget
            and bool((missed <= 1e-9 * b).all() and (plan.sum(1) <= a * (1.0 + 1e-9)).all())
            and cost <= least * (1.0 + 1e-9 if budget > 60 else 1.08),
        )
    return table


def _from_command_line(C, a, b, budget):
    with tempfile.TemporaryDirectory() as folder:
        given = {name: str(Path(folder, f"{name}.csv")) for name in ("cost-matrix", "a", "b")}
        for path, array in zip(given.values(), (C, a, b), strict=True):
            np.savetxt(path, array, delimiter=",")
        out, picture = Path(folder, "plan.npz"), Path(folder, "plan.png")
        options = [f"--{name}={path}" for name, path in given.items()]
        options += [f"--budget={budget}", "--supply=at-most", "--demand=exact", f"--out={out}", f"--plot={picture}"]
        subprocess.run([sys.executable, "-m", "sparsetransport", "solve", *options], check=True, capture_output=True)
        assert picture.stat().st_size
        return load_npz(out).toarray()


def _balanced() -> Table:
    """The links of SCOT's plan, which has marginal errors, get the best masses that keep them, if there are any."""
    table = Table(
        "Balanced, at most 4 links a column, reg = 1, 40 x 25 points: the objective, thorough effort",
        ["seed", "ours, marginals kept", "SCOT's plan", "its marginal error", "its links, marginals kept", "our bound"],
        [],
    )
    better = True
    for seed in range(4):
        rng = np.random.default_rng(seed)
        C = ot.dist(rng.normal(size=(40, 2)), rng.normal(size=(25, 2)) + 0.5)
        C /= C.max()
        a, b = rng.random(40) + 0.2, rng.random(25) + 0.2
        a, b = a / a.sum(), b / b.sum()
        plan = ot.smooth.smooth_ot_dual(a, b, C, 1.0, reg_type="sparsity_constrained", max_nz=4)
        theirs = float((C * plan).sum() + 0.5 * (plan**2).sum())
        error = max(np.abs(plan.sum(1) - a).sum(), np.abs(plan.sum(0) - b).sum()) / 2.0
        problem = st.Problem.from_matrices(C, a, b, unbalanced=np.inf, reg=1.0)
        result = st.solve(problem, budget=st.PerColumn(4), effort="thorough")
        kept = st.solve_support(problem, links=np.argwhere(plan > 1e-12))
        better &= result.value <= kept.value
        feasible = f"{kept.value:.5f}" if np.isfinite(kept.value) else "none"
        row = [seed, f"{result.value:.5f}", f"{theirs:.5f}", f"{error:.1%}", feasible]
        table.rows.append([*row, f"{result.certify().lower_bound:.5f}"])
    table.claim("a lower objective than SCOT's links have with the marginals kept", better)
    return table
