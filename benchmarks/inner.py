"""The inner solve on a random support of 500 against interior-point and ADMM solvers for quadratic programs."""

import clarabel
import numpy as np
import osqp
import scipy.sparse as sp

import sparsetransport as st

from .table import Table, best_time, seconds

SIZE, SUPPORT = 200, 500


def run() -> Table:
    table = Table(
        f"Inner solve on a random support of {SUPPORT} ({SIZE}×{SIZE}, RBF, λ1 = 10), relative KKT residual",
        ["λ2", "active set", "KKT", "Clarabel", "KKT", "OSQP", "KKT"],
        [],
    )
    for reg in (0.0, 0.1):
        problem, rows, cols = _problem(reg)
        hessian = problem.hessian(rows, cols, rows, cols)
        slope = problem.slope(rows, cols)
        results = [
            best_time(lambda p=problem, r=rows, c=cols: st.ActiveSet(p).solve(r, c, np.zeros(len(r))).mass, 3),
            best_time(lambda h=hessian, f=slope: _clarabel(h, f), 2),
            best_time(lambda h=hessian, f=slope: _osqp(h, f), 2),
        ]
        residuals = [_kkt(hessian, slope, mass) / problem.scale for _, mass in results]
        row: list[object] = [reg]
        for (time, _), residual in zip(results, residuals, strict=True):
            row += [seconds(time), f"{residual:.1e}"]
        table.rows.append(row)
        ours, theirs = results[0][0], min(results[1][0], results[2][0])
        table.claim(f"λ2 = {reg}: faster than both ({theirs / ours:.1f}×)", ours < theirs)
        table.claim(f"λ2 = {reg}: KKT residual at most 1e-10 ({residuals[0]:.1e})", residuals[0] <= 1e-10)
    return table


def _problem(reg: float) -> tuple[st.Problem, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(SIZE, 5)), rng.normal(size=(SIZE, 5)) + 0.5
    problem = st.Problem.from_points(x, y, normalize_cost=True, kernels="median", unbalanced=10.0, reg=reg)
    pairs = rng.choice(SIZE * SIZE, SUPPORT, replace=False)
    return problem, pairs // SIZE, pairs % SIZE


def _kkt(hessian: np.ndarray, slope: np.ndarray, mass: np.ndarray) -> float:
    mass = np.maximum(mass, 0.0)
    gradient = hessian @ mass + slope
    return float(np.abs(np.minimum(gradient, mass)).max())


def _clarabel(hessian: np.ndarray, slope: np.ndarray) -> np.ndarray:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    size = len(slope)
    quadratic, bounds = sp.triu(sp.csc_matrix(hessian), format="csc"), -sp.identity(size, format="csc")
    solver = clarabel.DefaultSolver(
        quadratic, slope, bounds, np.zeros(size), [clarabel.NonnegativeConeT(size)], settings
    )
    return np.array(solver.solve().x)


def _osqp(hessian: np.ndarray, slope: np.ndarray) -> np.ndarray:
    size = len(slope)
    solver = osqp.OSQP()
    solver.setup(
        sp.triu(sp.csc_matrix(hessian), format="csc"), slope, sp.identity(size, format="csc"), np.zeros(size),
        np.full(size, np.inf), verbose=False, eps_abs=1e-10, eps_rel=1e-10, max_iter=20000,
    )  # fmt: skip
    return np.array(solver.solve(raise_error=False).x)
