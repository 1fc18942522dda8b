"""What a solve returns: the plan, its value, the path of the solve and a certificate of quality."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _checks, _tables, describe
from ._checks import Floats, Ints
from ._progress import shown
from .effort import PROOFS, Effort, as_effort

if TYPE_CHECKING:
    import scipy.sparse
    from typing_extensions import TypeVar

    Plan = TypeVar("Plan", default="Result")
else:  # Python's own knows defaults from 3.13 on
    from typing import TypeVar

    Plan = TypeVar("Plan")

CHEAP, TIGHT, LONG = range(3)  # bounds, by what they cost
PROVEN = 1e-9  # of a relative gap: no plan is better by more than rounding
_NOTHING = 1e-12
_ROUNDING = 1e-9  # of the largest mass of a side: an error that is none
_NAMED = 5  # points that are named one by one
_MANY = 10.0  # a share that is told as a multiple, not in per cent
_FEW = 0.1  # a share that is told with a digit after the point
_BOUND_SHOWN_UP_TO = 1_000_000  # pairs; a notebook shows no bound of larger problems unless it is known


class Status(Enum):
    """Why a solve ended, in words."""

    OPTIMAL = "no pair lowers the objective any further: this is the unbudgeted optimum"
    EMPTY = "the empty plan is optimal: moving mass costs more than the marginal errors it removes; raise unbalanced"
    BUDGET_USED = "the budget is used up"
    LOCAL = "no pair that the budget still allows lowers the objective"
    PRICED = "built from the dual prices of a large problem: the gap says how near the unbudgeted optimum this is"
    TOLERANCE = "no pair that the budget allows has a gradient beyond tol; a smaller tol may lower the objective"
    ROUNDING = "no pair lowers the objective beyond rounding, in which much is lost: unbalanced is too large or unequal"
    GAP_REACHED = "the certified gap is within the tolerance asked for"
    GAP_OPEN = "no improvement was found, and the certified gap is above the tolerance asked for"
    GIVEN = "the links were given, and their masses are optimal"
    BASELINE = "a baseline method made this plan, for its own objective"
    OPTIMAL_PROVEN = "no plan within the budget is better: proven"
    INFEASIBLE = "no plan that keeps the hard marginals was found within the budget: this one misses them least"
    STOPPED = "the callback asked to stop"
    TIME_LIMIT = "the time limit was reached"
    ALL_FORBIDDEN = "every pair is forbidden: the plan is empty"

    def __str__(self) -> str:
        return self.value

    def said_of(self, parts: "Parts", has_pairs: bool, is_exact: bool, is_lost: bool = False) -> "Status":
        """The status itself, or the one that says why the plan is empty, or no better than ``tol`` or rounding."""
        if not has_pairs:
            return Status.ALL_FORBIDDEN
        if self in (Status.OPTIMAL, Status.LOCAL) and (is_lost or not is_exact):
            return Status.ROUNDING if is_lost else Status.TOLERANCE
        wanted = all(side.any() for side in parts.wanted)
        return Status.EMPTY if self is Status.OPTIMAL and wanted and not parts.mass.size else self


class Gap(ABC):
    """The gap between an objective and its lower bound."""

    @abstractmethod
    def _bounds(self) -> tuple[float, float, float]:
        """The objective, its lower bound, and the objective of the empty plan."""

    @property
    def gap(self) -> float:
        """The objective minus its lower bound: no plan within the budget is better by more than this."""
        value, lower_bound, _ = self._bounds()
        return value - lower_bound if value < np.inf else np.inf

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective.

        An objective below 1e-12 times that of the empty plan is zero up to rounding; the gap is then divided by this
        threshold instead.
        """
        value, lower_bound, empty = self._bounds()
        if value == np.inf:
            return np.inf
        whole = max(abs(value), _NOTHING * abs(empty))
        return (value - lower_bound) / whole if whole else value - lower_bound


class BoundRecord(NamedTuple):
    """One lower bound that was computed: its name, its value and how long it took."""

    name: str
    value: float
    seconds: float


@dataclass(frozen=True, repr=False, eq=False)
class Certificate(Gap):
    """A proof of quality: no plan within the budget has an objective below ``lower_bound``.

    ``log`` has the bounds that were computed, each a `BoundRecord`. The dual point of the best one named "dual" is
    ``potential_a = 2 λ_a G_a u`` and ``potential_b = 2 λ_b G_b v``; anybody can recompute that bound from it.
    ``better`` is a better plan within the budget, if a bound has found one on the way, else None.
    """

    value: float
    lower_bound: float
    potential_a: Any
    potential_b: Any
    u: Any
    v: Any
    _constant: float  # the objective of the empty plan
    log: tuple[BoundRecord, ...] = ()
    better: "Result | None" = None

    def __repr__(self) -> str:
        return (
            f"Certificate(value={self.value:.6g}, lower_bound={self.lower_bound:.6g}, "
            f"relative_gap={self.relative_gap:.2g})"
        )

    def _bounds(self) -> tuple[float, float, float]:
        return self.value, self.lower_bound, self._constant


@dataclass(frozen=True, repr=False, eq=False)
class Path(Generic[Plan]):
    """The steps of a solve.

    ``objective[k]`` and ``entries[k]`` are the objective and the number of entries after step ``k``, which added the
    pair ``pairs[k]``. The steps of the improvers, which exchange entries, come last. Of pairs that enter together, each
    has the objective and the number of entries after the last one.
    """

    pairs: Ints  # (steps, 2)
    objective: Floats
    entries: Ints
    gone: Ints  # (departures, 2)
    gone_until: Ints  # (steps,)
    start: tuple[tuple[int, int], ...]
    _restrict: Callable[[Ints, Ints, int], Plan]

    def __repr__(self) -> str:
        if not len(self):
            return "Path(0 steps)"
        span = f"{self.objective[0]:.4g} to {self.objective[-1]:.4g}"
        return f"Path({len(self)} steps to {self.entries[-1]} entries, objective from {span})"

    def __len__(self) -> int:
        return len(self.objective)

    def support_at(self, entries: int) -> list[tuple[int, int]]:
        """The pairs in use at the step with the lowest objective among those with at most ``entries`` entries."""
        entries = _checks.count("entries", entries)
        within = np.flatnonzero(self.entries <= entries)
        if not within.size:
            return list(self.start) if len(self.start) <= entries else []
        last = int(within[::-1][self.objective[within[::-1]].argmin()])  # of steps that were made together, the last
        support = dict.fromkeys(self.start)
        first = 0
        for pair, until in zip(self.pairs[: last + 1].tolist(), self.gone_until.tolist(), strict=False):
            support[pair[0], pair[1]] = None
            for lost in self.gone[first:until].tolist():
                support.pop((lost[0], lost[1]), None)
            first = until
        return list(support)

    def plan_at(self, entries: int) -> Plan:
        """The best plan on the path with at most ``entries`` entries, solved exactly on its support."""
        entries = _checks.count("entries", entries)
        support = np.array(self.support_at(entries), np.int64).reshape(-1, 2)
        return self._restrict(support[:, 0], support[:, 1], entries)


class Parts(NamedTuple):
    """What the solver knows of a plan, as NumPy arrays; a result converts them to the user's kind of array."""

    rows: Ints
    cols: Ints
    mass: Floats
    shape: tuple[int, int]
    value: float
    value_linear: float
    wanted: tuple[Floats, Floats]
    marginals: tuple[Floats, Floats]
    potentials: tuple[Floats, Floats]
    points: tuple[Floats, Floats] | None
    constant: float  # the objective of the empty plan
    sense: tuple[str, str] = ("=", "=")
    weights: tuple[float, float] = (1.0, 1.0)
    value_links: float = 0.0


class Facts(NamedTuple):
    """What the problem says of a plan: names, the costs of its links, its errors in the norms of the kernels."""

    labels: tuple[_tables.Labels, _tables.Labels]
    library: str | None  # of the tables that the problem was made from
    costs: Floats  # of the links
    kernel_errors: tuple[float, float]
    is_delta: tuple[bool, bool]
    budget: int | None  # of the whole plan


@dataclass(frozen=True, repr=False, eq=False)
class Result(Gap):
    """A sparse transport plan, its value and its certificate. The names are those of POT's ``OTResult``.

    Arrays are copies, except ``plan``: writing to them does not change the result.

    Attributes
    ----------
    status : Status
        Why the solve ended; ``str(status)`` is a sentence.
    converged : bool
        True if the masses are optimal on their support.
    kkt : float
        The largest violation of the optimality conditions on the support, relative to the scale of the gradient.
    path : Path
        The steps of the solve.
    log : dict
        Counters of the solve.

    Examples
    --------
    >>> import sparsetransport as st
    >>> res = st.solve([[0.0, 2.0], [2.0, 1.0]], [0.5, 0.5], [0.5, 0.5], budget=1, unbalanced=10.0, reg=0.1)
    >>> res
    Result(1 of 2x2 entries, value=5.012, marginal errors 50 % and 50 %, no plan within the budget is better: proven)
    >>> res.plan.round(3)
    array([[0.499, 0.   ],
           [0.   , 0.   ]])
    """

    status: Status
    converged: bool
    kkt: float
    path: Path
    log: dict[str, Any]
    _parts: Parts
    _backing: Any  # a `build_result.Backing`
    _proofs: dict[int, Certificate] = field(default_factory=dict)

    def _give(self, array: NDArray[Any]) -> Any:
        """An array as the user's kind of array."""
        return self._backing.give(array)

    @cached_property
    def _facts(self) -> Facts:
        facts: Facts = self._backing.facts(self._parts)
        return facts

    @property
    def problem(self) -> Any:
        """The `Problem`; None for a result that was loaded from a file without it."""
        return self._backing.problem

    def __repr__(self) -> str:
        (m, n), errors = self._parts.shape, _errors_as_asked(self)
        told = [_error(*each, digits=int(each[0] < _FEW)) for each in zip(errors, self._parts.wanted, strict=True)]
        off = f"marginal errors {told[0]} and {told[1]}, " * (max(errors) >= 0.01)
        return f"Result({self._parts.mass.size} of {m}x{n} entries, value={self.value:.4g}, {off}{_sentence(self)})"

    def _repr_html_(self) -> str:
        pairs = self._parts.shape[0] * self._parts.shape[1]
        known = bool(self._proofs) or (self.problem is not None and pairs <= _BOUND_SHOWN_UP_TO)
        return describe.html("Transport plan", summary_lines(self, bound=known), self._parts)

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table("", "", title="Transport plan", show_header=False)
        for name, text in summary_lines(self, bound=bool(self._proofs)).items():
            table.add_row(name, text)
        return table

    def summary(self) -> str:
        """The figures of the plan, one a line; computes the cheap lower bound unless one is known.

        Examples
        --------
        >>> import sparsetransport as st
        >>> print(st.solve([[0.0, 2.0], [2.0, 1.0]], budget=1, unbalanced=10.0, reg=0.1).summary())
        entries: 1 of 2 x 2
        objective: 5.01247
        lower bound: 5.01247
        gap: ... (below 0.01 % of the objective)
        mass moved: 0.498753 of 1
        cost of transport: 0
        weight of marginals: 10
        marginal error, rows: 50.1 %
        marginal error, columns: 50.1 %
        without a link: 1 of 2 rows and 1 of 2 columns
        status: no plan within the budget is better: proven
        """
        return "\n".join(f"{name}: {text}" for name, text in summary_lines(self, bound=True).items())

    @property
    def rows(self) -> Any:
        """The row of every entry of the plan."""
        return self._give(self._parts.rows.copy())

    @property
    def cols(self) -> Any:
        """The column of every entry of the plan."""
        return self._give(self._parts.cols.copy())

    @property
    def mass(self) -> Any:
        """The mass of every entry of the plan."""
        return self._give(self._parts.mass.copy())

    @property
    def links(self) -> Any:
        """Row and column of every entry of the plan, an array of shape (k, 2)."""
        return self._give(np.column_stack([self._parts.rows, self._parts.cols]))

    @property
    def value(self) -> float:
        """The objective, all terms."""
        return self._parts.value

    def _bounds(self) -> tuple[float, float, float]:
        return self.value, self.lower_bound, self._parts.constant

    @property
    def value_linear(self) -> float:
        """The cost of transport alone."""
        return self._parts.value_linear

    @property
    def value_links(self) -> float:
        """The fixed cost of the links in use; zero where links have none.

        Examples
        --------
        >>> import numpy as np, sparsetransport as st
        >>> C, a, b = [[1.0, 2.0, 5.0], [3.0, 1.0, 1.0]], [4.0, 6.0], [3.0, 2.0, 2.0]
        >>> res = st.solve(C, a, b, unbalanced=np.inf, sense=("<=", "="), link_cost=1.5)
        >>> res.value, res.value_linear, res.value_links
        (11.5, 7.0, 4.5)
        """
        return self._parts.value_links

    @property
    def sparse_plan(self) -> "scipy.sparse.coo_array":
        """The plan as a SciPy sparse array."""
        import scipy.sparse

        parts = self._parts
        return scipy.sparse.coo_array((parts.mass, (parts.rows, parts.cols)), shape=parts.shape, copy=True)

    @cached_property
    def plan(self) -> Any:
        """The plan as a dense array, built when it is first asked for."""
        dense = np.zeros(self._parts.shape)
        dense[self._parts.rows, self._parts.cols] = self._parts.mass
        return self._give(dense)

    @property
    def marginals(self) -> tuple[Any, Any]:
        """Row sums and column sums of the plan."""
        return self.marginal_a, self.marginal_b

    @property
    def marginal_a(self) -> Any:
        """Row sums of the plan."""
        return self._give(self._parts.marginals[0].copy())

    @property
    def marginal_b(self) -> Any:
        """Column sums of the plan."""
        return self._give(self._parts.marginals[1].copy())

    @property
    def marginal_errors(self) -> tuple[float, float]:
        """The marginal errors of rows and columns, as shares of the total masses of ``a`` and ``b``.

        The error of a side is the sum of what its points lack, or the sum of what they have too much, whichever is
        larger. The two sums are equal if the plan moves the whole mass of the side. Every point counts for itself,
        whatever the kernel. Only what the sense of the side penalises counts.
        """
        first, second = (
            max(
                float((reached - wanted).clip(0.0).sum()) * (sense != ">="),
                float((wanted - reached).clip(0.0).sum()) * (sense != "<="),
            )
            / (float(wanted.sum()) or 1.0)
            for reached, wanted, sense in zip(self._parts.marginals, self._parts.wanted, self._parts.sense, strict=True)
        )
        return first, second

    @property
    def kernel_errors(self) -> tuple[float, float]:
        r"""The marginal errors of rows and columns in the norms of their kernels, as shares of the masses' norms.

        The error of the rows is :math:`\\|\\gamma 1 - a\\|_{G_a} / \\|a\\|_{G_a}`: what the objective penalises. Errors
        between points that the kernel takes for alike count less than in `marginal_errors`.
        """
        return self._facts.kernel_errors

    @property
    def without_link(self) -> tuple[list[Any], list[Any]]:
        """The rows and the columns that want mass and have no link, by label where there are any.

        Under a kernel other than `Delta` the links of points close by may stand for theirs.
        """
        names = describe.ends(self._facts.labels, self._parts.shape)
        first, second = ([names[side][k] for k in _without_link(self._parts, side)] for side in (0, 1))
        return first, second

    def to_frame(self, library: str | None = None) -> Any:
        """The links as a table with the columns source, target, mass and cost.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow", "modin", "cudf"}, optional
            The library of the table: by default the one that the data came in, or pandas.

        Examples
        --------
        >>> import pandas, sparsetransport as st
        >>> costs = pandas.DataFrame([[0.0, 2.0], [2.0, 1.0]], ["mill", "port"], ["north", "south"])
        >>> st.solve(costs, budget=2, unbalanced=10.0).to_frame()
          source target   mass  cost
        0   mill  north  0.500   0.0
        1   port  south  0.475   1.0
        """
        return describe.frame(self._parts, self._facts, library)

    def to_networkx(self) -> Any:
        """The plan as a ``networkx.DiGraph``.

        Nodes are ``("source", label)`` and ``("target", label)``, all points among them, with the mass ``wanted`` and
        ``moved``; edges have ``mass`` and ``cost``.

        Examples
        --------
        >>> import sparsetransport as st
        >>> graph = st.solve([[0.0, 2.0], [2.0, 1.0]], budget=1, unbalanced=10.0).to_networkx()
        >>> list(graph.edges), graph.number_of_nodes()
        ([(('source', 0), ('target', 0))], 4)
        """
        return describe.graph(self._parts, self._facts)

    def to_obsp(self, data: Any, key: str = "transport") -> Any:
        """Put the plan into ``data.obsp[key]`` of an AnnData that holds the points of both sides, by their names.

        Returns
        -------
        scipy.sparse.csr_array
            What was put there: of shape (n_obs, n_obs), with the mass from the cell of a row to that of a column.
        """
        return describe.into_obsp(self._parts, self._facts, data, key)

    def save(self, path: Any, *, problem: bool | None = None) -> None:
        """Write the result to a file that `load` reads, exact to the bit.

        Parameters
        ----------
        path : str or Path
            Ends in ``.npz`` or ``.json``.
        problem : bool, optional
            Save the problem too, so that bounds and plans of smaller budgets can be computed later; by default if it
            takes no more than 16 MiB.

        Examples
        --------
        >>> import pathlib, tempfile, sparsetransport as st
        >>> res = st.solve([[0.0, 2.0], [2.0, 1.0]], budget=1, unbalanced=10.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     res.save(pathlib.Path(folder, "plan.json"))
        ...     again = st.load(pathlib.Path(folder, "plan.json"))
        >>> again.value == res.value, again.problem
        (True, Problem(2x2, kernels=Delta(), unbalanced=10, reg=0))
        """
        self._backing.save(path, self, problem)

    @property
    def unserved(self) -> tuple[Any, Any]:
        """What rows and columns lack of the masses that they should have; zero for the sense ``"<="``.

        Examples
        --------
        >>> import numpy as np, sparsetransport as st
        >>> C = [[1.0, 2.0, 5.0], [3.0, 1.0, 1.0]]
        >>> res = st.solve(C, [4.0, 6.0], [3.0, 2.0, 2.0], budget=3, unbalanced=np.inf, sense=("<=", "="))
        >>> [each.round(6).tolist() for each in (*res.unserved, *res.excess, *res.idle)]
        [[0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0], [0.0, 0.0, 0.0]]
        """
        return self._deviations(-1.0, ("=", ">="))

    @property
    def excess(self) -> tuple[Any, Any]:
        """What rows and columns have above the masses that they may have; zero for the sense ``">="``."""
        return self._deviations(1.0, ("=", "<="))

    @property
    def idle(self) -> tuple[Any, Any]:
        """What rows and columns of the sense ``"<="`` do not use of their masses; zero for other senses."""
        return self._deviations(-1.0, ("<=",))

    def _deviations(self, sign: float, senses: tuple[str, ...]) -> tuple[Any, Any]:
        """The errors of one sign on sides with these senses; zero where they are rounding."""
        found = []
        for reached, wanted, sense in zip(self._parts.marginals, self._parts.wanted, self._parts.sense, strict=True):
            error = (sign * (reached - wanted)).clip(0.0) * (sense in senses)
            error[error <= _ROUNDING * wanted.max(initial=0.0)] = 0.0
            found.append(self._give(error))
        return found[0], found[1]

    @property
    def potentials(self) -> tuple[Any, Any]:
        """Dual potentials: a pair without mass has the gradient ``C_ij - potential_a[i] - potential_b[j]``."""
        return self.potential_a, self.potential_b

    @property
    def potential_a(self) -> Any:
        """Dual potential of the first side."""
        return self._give(self._parts.potentials[0].copy())

    @property
    def potential_b(self) -> Any:
        """Dual potential of the second side."""
        return self._give(self._parts.potentials[1].copy())

    @property
    def a_to_b(self) -> Any:
        """Where each point of the first side goes on average.

        Under a kernel this is the average of the points at the ends of all links, weighted by mass times kernel. Under
        `Delta` it is that of the point's own links, and NaN, with a warning, for a point without one.
        """
        return self._give(self._barycentres(0))

    @property
    def b_to_a(self) -> Any:
        """Where each point of the second side comes from on average; see `a_to_b`."""
        return self._give(self._barycentres(1))

    def transport(self, X: Any) -> Any:
        """Where new points of the first side go on average, under a kernel other than `Delta`; see `a_to_b`.

        Examples
        --------
        >>> import numpy as np, sparsetransport as st
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> res = st.solve_sample(X, X + [5.0, 0.0], kernels=st.RBF(0.1), budget=100)
        >>> res.transport([[0.0, 0.0]]).round(1)
        array([[ 5., -0.]])
        """
        return self._give(self._backing.transport(self._parts, 0, X))

    def inverse_transport(self, Y: Any) -> Any:
        """Where new points of the second side come from on average, under a kernel other than `Delta`."""
        return self._give(self._backing.transport(self._parts, 1, Y))

    def _barycentres(self, side: int) -> Floats:
        found: Floats = self._backing.barycentres(self._parts, side)
        lost = _without_link(self._parts, side)
        if self._facts.is_delta[side] and len(lost):
            name, labels = ("a_to_b", "b_to_a")[side], self._facts.labels[side]
            told = describe.named(lost, list(range(len(found))) if labels is None else labels)
            _checks.warn(
                f"{name} is NaN for {len(lost)} of {len(found)} points, which have no link{told}: raise the budget, or "
                "take a kernel other than Delta, under which links close by stand for theirs"
            )
        return found

    @property
    def lower_bound(self) -> float:
        """No plan within the budget has a lower objective; the best bound known so far, at first the cheap one."""
        if not self._proofs:
            self._proofs[CHEAP] = self._backing.prove(self._parts, CHEAP)
        return max(proof.lower_bound for proof in self._proofs.values())

    def certify(
        self,
        *,
        effort: "str | Effort | None" = None,
        gap_tol: float = 0.0,
        time_limit: float | None = None,
        progress: bool = False,
    ) -> Certificate:
        """The tight bound, by maximising the dual; from then on ``lower_bound`` and ``gap`` use it too.

        Parameters
        ----------
        effort : {"quick", "default", "thorough"} or Effort, optional
            "quick" is the cheap bound, "default" the tight one; "thorough" goes on with the next stronger bound, branch
            and bound among them, until the gap is within the tolerance or nothing helps. "thorough" if there is a
            time limit, otherwise "default".
        gap_tol : float
            Stronger bounds follow until the relative gap is below this.
        time_limit : float, optional
            Seconds after which no stronger bound is begun, and those that go on for long are stopped.
        progress : bool
            Show the gap so far on a terminal.

        Examples
        --------
        >>> import numpy as np, sparsetransport as st
        >>> res = st.solve(np.random.default_rng(0).random((6, 6)), budget=6)
        >>> res.certify().lower_bound <= res.certify(time_limit=10.0).lower_bound <= res.value
        True
        """
        gap_tol = _checks.number("gap_tol", gap_tol, positive=False)
        seconds = None if time_limit is None else _checks.number("time_limit", time_limit, positive=True)
        how = as_effort("effort", effort if effort is not None else "default" if seconds is None else "thorough")
        level = (CHEAP, TIGHT, LONG)[PROOFS.index(how.proofs)]
        with shown(progress):
            if level not in self._proofs:
                self._proofs[level] = self._backing.prove(self._parts, min(level, TIGHT))
            known = max(self._proofs.values(), key=lambda proof: proof.lower_bound)
            if level == LONG and known.relative_gap > gap_tol:
                self._proofs[LONG] = self._backing.prove_further(self._parts, known, how, gap_tol, seconds)
        return self._proofs[level]


def summary_lines(result: Result, *, bound: bool) -> dict[str, str]:
    """The figures of a plan, each with its name."""
    parts = result._parts
    (m, n), missed, facts = parts.shape, result.marginal_errors, result._facts
    empty = [_without_link(parts, side) for side in (0, 1)]
    told = [describe.named(each, names) for each, names in zip(empty, facts.labels, strict=True)]
    kernel = {
        f"in the kernel's norm, {side}": _error(error, wanted)
        for side, error, wanted, is_delta in zip(
            ("rows", "columns"), facts.kernel_errors, parts.wanted, facts.is_delta, strict=True
        )
        if not is_delta
    }
    lines = {"entries": f"{len(parts.mass)} of {m} x {n}", "objective": f"{result.value:.6g}"}
    if bound and result.value < math.inf:
        lines["lower bound"] = f"{result.lower_bound:.6g}"
        lines["gap"] = f"{_figure(max(result.gap, 0.0))} ({_share(result.relative_gap)} the objective)"
    return lines | {
        "mass moved": _moved(*(float(each.sum()) for each in (parts.mass, *parts.wanted))),
        "cost of transport": f"{result.value_linear:.6g}",
        **({"cost of links": f"{result.value_links:.6g}"} if result.value_links else {}),
        "weight of marginals": " and ".join(map(_weight, dict.fromkeys(result.log["unbalanced"]))),
        "marginal error, rows": _error(missed[0], parts.wanted[0]),
        "marginal error, columns": _error(missed[1], parts.wanted[1]),
        **kernel,
        "without a link": f"{len(empty[0])} of {m} rows{told[0]} and {len(empty[1])} of {n} columns{told[1]}",
        **_sided_lines(result),
        "status": _sentence(result),
    }


def _sentence(result: Result) -> str:
    """The status, or that the budget is not used up since the bandwidth of the kernels makes fewer links enough."""
    facts, count = result._facts, result._parts.mass.size
    is_left = facts.budget is not None and 0 < count < facts.budget
    if result.status is Status.OPTIMAL and is_left and not all(facts.is_delta):
        return f"{count} of {facts.budget} links: at this bandwidth more would not lower the objective"
    return str(result.status)


def _errors_as_asked(result: Result) -> tuple[float, float]:
    """The marginal errors in the norm that was asked for: point by point under `Delta`, else in that of the kernel."""
    facts = result._facts
    pairs = zip(facts.is_delta, result.marginal_errors, facts.kernel_errors, strict=True)
    first, second = (single if is_delta else smooth for is_delta, single, smooth in pairs)
    return first, second


def _without_link(parts: Parts, side: int) -> Ints:
    """The points of a side that want mass and have none."""
    return np.flatnonzero((parts.wanted[side] > 0.0) & (parts.marginals[side] == 0.0))


def _weight(weight: float) -> str:
    return "hard" if weight == math.inf else f"{weight:.6g}"


def _sided_lines(result: Result) -> dict[str, str]:
    """What is unserved, above capacity and idle, where a side has a sense of its own or is hard."""
    parts, names = result._parts, describe.ends(result._facts.labels, result._parts.shape)
    if parts.sense == ("=", "=") and math.inf not in parts.weights:
        return {}
    lines = {}
    for name, sides, counts in (
        ("unserved", result.unserved, ("=", ">=")),
        ("above capacity", result.excess, ("=", "<=")),
        ("idle", result.idle, ("<=",)),
    ):
        told = [
            _points(_checks.to_numpy(error), wanted, of, called)
            for error, wanted, of, called, sense in zip(
                sides, parts.wanted, ("rows", "columns"), names, parts.sense, strict=True
            )
            if sense in counts
        ]
        if told:
            some = [text for text in told if text]
            lines[name] = "; ".join(some) or "nothing"
    if result.status is Status.INFEASIBLE and result.problem is not None:
        least = result._backing.least_links()
        lines["links needed"] = (
            "no number of links is enough" if least == math.inf else f"at least {least:.0f}, whichever they are"
        )
    return lines


def _points(error: Floats, wanted: Floats, of: str, names: list[Any]) -> str:
    """How much it is, at how many points, and which; nothing if there is nothing."""
    places = np.flatnonzero(error)
    if not places.size:
        return ""
    order = places[np.argsort(-error[places], kind="stable")][:_NAMED]
    named = ", ".join(str(names[k]) for k in sorted(order.tolist()))
    more = f" and {places.size - _NAMED} more" if places.size > _NAMED else ""
    total = float(wanted.sum())
    whole = f" of {total:.6g}" if total else ""
    return f"{float(error.sum()):.6g}{whole}, at {places.size} of {len(error)} {of} ({named}{more})"


def _moved(moved: float, to_send: float, to_receive: float) -> str:
    """The mass moved out of the totals; one total is shown if the two agree in the digits shown."""
    if not (to_send and to_receive):
        return f"{moved:.6g}, with {to_send:.6g} to send and {to_receive:.6g} to receive"
    text = f"{moved:.6g} of {to_send:.6g}"
    same = math.isclose(to_send, to_receive, rel_tol=1e-6)
    return text if same else f"{text} to send and {to_receive:.6g} to receive"


def _figure(number: float) -> str:
    """A number to three digits, without an exponent where it is of a usual size."""
    return f"{float(f'{number:.3g}'):.9g}"


def _share(part: float) -> str:
    """A share in per cent, or as a multiple where that is easier to read; rounding may leave one below zero."""
    if part >= _MANY:
        return f"{part:.3g} times"
    return "below 0.01 % of" if 0.0 < part < 1e-4 else f"{100.0 * max(part, 0.0):.2f} % of"


def _error(share: float, wanted: Floats, *, digits: int = 1) -> str:
    """A marginal error as a share of the masses of its side, or by itself if they are all zero."""
    if not wanted.any():
        return f"{share:.3g} where all masses are zero"
    return f"{share:.3g} times the masses" if share >= _MANY else f"{100.0 * share:.{digits}f} %"
