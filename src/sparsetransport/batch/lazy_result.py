"""Results of a batch, cut out of the arrays of their chunk when they are asked for."""

from dataclasses import fields
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats
from .._numba.codes import BUDGET_USED, LOCAL, OPTIMAL
from ..budgets import Limits
from ..build_result import proof_of, restricted
from ..certify.certifier import Prover
from ..engine import batch_solver
from ..geometry.matrices import Cost, Gram
from ..options import Options
from ..problem import Problem
from ..result import Certificate, Parts, Path, Result, Status

_STATUS = {BUDGET_USED: Status.BUDGET_USED, LOCAL: Status.LOCAL, OPTIMAL: Status.OPTIMAL}
Matrices = tuple[Floats, Floats | None, Floats | None]
"""Costs and the masses of the two sides; None for uniform ones."""


class Asked(NamedTuple):
    """A problem of a chunk, its place there, and how to solve it."""

    place: int
    source: Problem | Matrices  # matrices are looked at together, in machine code
    limits: Limits | None  # None: not for the compiled batch
    options: Options
    give: Any  # what turns arrays into the user's kind


class Solved(NamedTuple):
    """The plans of a chunk, and where each of them is."""

    plans: batch_solver.Plans
    ends: list[list[int]]  # (problems + 1, 5) of entries, steps, departures, points, pairs
    values: list[list[float]]  # (problems, 3) cost of transport, objective, KKT residual
    potential: Floats  # of all points
    kkt: Floats
    weights: Floats  # (problems, 3) the two λ and λ₂
    mass: Floats  # asked for, of all points
    cost: Floats  # of all pairs: a copy, since proofs come later and the user's arrays may change
    empty: NDArray[np.bool_]  # is every pair forbidden?

    @classmethod
    def of(
        cls, plans: batch_solver.Plans, packed: batch_solver.Pack, scale: Floats, empty: NDArray[np.bool_]
    ) -> "Solved":
        """What `batch_solver.solve` gave, with KKT residuals relative to the ``scale`` of the gradients."""
        ends = np.zeros((len(scale) + 1, 5), np.int64)
        np.cumsum(plans.sizes, axis=0, out=ends[1:, :3])
        np.cumsum(packed.size[:, :2].sum(1), out=ends[1:, 3])
        np.cumsum(packed.size[:, :2].prod(1), out=ends[1:, 4])
        kkt = np.divide(plans.number[:, 2], scale, out=np.zeros_like(scale), where=scale > 0.0)
        return cls(
            plans,
            ends.tolist(),
            plans.number.tolist(),
            -plans.field,
            kkt,
            packed.number[:, :3] * (0.5, 0.5, 1.0),
            packed.mass,
            packed.cost,
            empty,
        )


class Later(Result):
    """A result whose parts are cut out of those of its chunk when they are first asked for."""

    _solved: Solved
    _k: int
    _asked: Asked
    converged = True

    @classmethod
    def of(cls, solved: Solved, k: int, asked: Asked) -> "Later":
        """Plan ``k`` of a chunk."""
        self = cls.__new__(cls)
        self.__dict__.update(_solved=solved, _k=k, _asked=asked, _give=asked.give)
        return self

    def __reduce__(self) -> Any:
        """An ordinary result: without the rest of the chunk."""
        return Result, tuple(getattr(self, each.name) for each in fields(Result))

    def _spans(self) -> list[slice]:
        """Of entries, steps, departures, points and pairs."""
        return list(map(slice, self._solved.ends[self._k], self._solved.ends[self._k + 1]))

    def _constant(self, m: int) -> float:
        """The objective of the empty plan."""
        source, points = self._asked.source, self._spans()[3]
        if isinstance(source, Problem):
            return source.constant
        weight_a, weight_b, _ = self._solved.weights[self._k]
        squares = self._solved.mass[points] ** 2
        return float(weight_a * squares[:m].sum() + weight_b * squares[m:].sum())

    @cached_property
    def _parts(self) -> Parts:
        solved, source = self._solved, self._asked.source
        plans = solved.plans
        entries, _, _, points, _ = self._spans()
        m, n = source.shape if isinstance(source, Problem) else source[0].shape
        linear, value, _ = solved.values[self._k]
        marginal, potential = plans.marginal[points], solved.potential[points]
        return Parts(
            plans.label[entries, 0].copy(),
            plans.label[entries, 1].copy(),
            plans.mass[entries],
            (m, n),
            value,
            linear,
            (solved.mass[points][:m], solved.mass[points][m:]),
            (marginal[:m], marginal[m:]),
            (potential[:m], potential[m:]),
            source.points if isinstance(source, Problem) else None,
            self._constant(m),
        )

    @cached_property
    def status(self) -> Status:
        """Why the solve ended."""
        status = _STATUS[int(self._solved.plans.code[self._k])]
        return status.said_of(self._parts, not self._solved.empty[self._k])

    @cached_property
    def kkt(self) -> float:
        """The largest violation of the optimality conditions on the support."""
        return float(self._solved.kkt[self._k])

    @cached_property
    def path(self) -> Path:
        """How the plan came about, step by step."""
        plans = self._solved.plans
        _, steps, departures, _, _ = self._spans()
        return Path(
            plans.added[steps],
            self._problem.constant - plans.gain[steps],
            plans.entries[steps],
            plans.gone[departures],
            plans.gone_until[steps],
            (),
            partial(restricted, self._prover, self._give),
        )

    @cached_property
    def log(self) -> dict[str, Any]:
        """Counters of the solve."""
        steps = self._spans()[1]
        first, second, reg = self._solved.weights[self._k].tolist()
        return {"steps": steps.stop - steps.start, "unbalanced": (first, second), "reg": reg}

    @cached_property
    def _problem(self) -> Problem:
        """As it was solved."""
        source = self._asked.source
        if isinstance(source, Problem):
            return source
        m, n = source[0].shape
        _, _, _, points, pairs = self._spans()
        mass = self._solved.mass[points]
        first, second, reg = self._solved.weights[self._k].tolist()
        cost = Cost.of_matrix(self._solved.cost[pairs].reshape(m, n))
        return Problem(cost, mass[:m], mass[m:], Gram.delta(m), Gram.delta(n), (first, second), reg)

    @cached_property
    def _prover(self) -> Prover:
        limits = self._asked.limits
        assert limits is not None  # what is solved in a batch has some
        return Prover(self._problem, limits, self._asked.options.tol)

    @cached_property
    def _prove(self) -> Any:
        return partial(proof_of, self._prover, self._parts, self._give)

    @cached_property
    def _proofs(self) -> dict[bool, Certificate]:
        return {}
