"""``sparsetransport compile``."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

from ..api import solve
from ..apps.network_design import design
from ..apps.word_alignment.aligner import WordAligner
from ..batch import solve_batch
from ..budgets import PerColumn
from ..effort import DEFAULT, Prices
from ..geometry.costs import cost_matrix
from ..problem import Problem
from ..shared import solve_shared
from .console import Debug, duration, in_background, plain_errors


def compile_all(debug: Debug = False) -> None:
    """Precompile all functions, so that later calls do not wait: once for an image, or for the nodes of a cluster."""
    console = Console()
    with plain_errors(debug):
        started = time.perf_counter()
        for name, call in small_calls().items():
            with console.status(f"Compiling: {name}"):
                in_background(call)
        took = duration(time.perf_counter() - started)
    console.print(f"All functions are compiled; it took {took}.", highlight=False)


def small_calls() -> dict[str, Callable[[], Any]]:
    """Small calls that together compile every compiled function."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(8, 2)), rng.normal(size=(6, 2))
    problem, lazy = (Problem.from_points(X, Y, reg=1.0, lazy=lazy) for lazy in (False, True))
    alone = Problem.from_points(X, Y, rng.random(8), rng.random(6), kernels="delta")
    aligner = WordAligner(lambda words: [[len(word), 1] for word in words])
    return {
        "plans": partial(solve, problem, budget=5),
        "plans from other plans": partial(_solve_again, problem, lazy, replace(alone, reg=1.0)),
        "plans with a certified gap": partial(solve, problem, budget=PerColumn(1), gap_tol=1e-9),
        "plans with the delta kernel": partial(solve, alone, budget=9, gap_tol=1e-9),
        "plans with lazy costs": partial(solve, lazy, budget=5, gap_tol=1e-9),
        "large problems": partial(_solve_large, rng),
        "the paper's solver": partial(solve, problem, budget=5, inner="apgd", tol=0.5),
        "greedy with exact gains": partial(solve, problem, budget=PerColumn(1), method="greedy"),
        "batches": partial(solve_batch, [(cost_matrix(X, Y),)] * 2, budget=5),
        "shared links for many scenarios": partial(solve_shared, [problem] * 2, budget=5),
        "network design": partial(design, rng.random((4, 5)), np.ones(4), rng.random((6, 5)), 6),
        "word alignment": partial(aligner.align, "a new day", "a day that is new"),
    }


def _solve_again(*problems: Problem) -> None:
    """Plans that begin with others, and all starts of the thorough effort."""
    for problem in problems:
        solve(problem, budget=5, start=solve(problem, budget=4), effort="thorough")


def _solve_large(rng: np.random.Generator) -> None:
    """Plans from dual prices: by trees of boxes, by products, and of a matrix; rounds, and one cut short."""
    prices = Prices(above=0, coarsest=4, close=-1.0)
    for dimensions, lazy, operations in ((2, True, 1e9), (9, True, 1e9), (2, False, 0.0)):
        points = rng.random((12, dimensions)), rng.random((10, dimensions))
        how = replace(DEFAULT, prices=replace(prices, operations=operations))
        solve(Problem.from_points(*points, kernels="delta", lazy=lazy), effort=how, gap_tol=1e-9)
