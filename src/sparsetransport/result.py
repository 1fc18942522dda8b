"""What a solve returns: the plan, its value, the path of the solve and a certificate of quality."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _checks, _tables, describe
from ._checks import Floats, Ints
from ._progress import shown
from .certificate import CHEAP, LONG, TIGHT, Certificate, Gap
from .effort import PROOFS, Effort, as_effort
from .path import Path
from .status import Status
from .summary import summary_lines, title, without_link

if TYPE_CHECKING:
    import scipy.sparse

_BOUND_SHOWN_UP_TO = 1_000_000  # pairs; a notebook shows no bound of larger problems unless it is known


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
        return title(self)

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
        without a link: 1 of 2 rows (1) and 1 of 2 columns (1)
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

        The error of a side is the sum of what its points lack, or the sum of what they have in excess, whichever is
        larger. The two sums are equal if the plan moves the whole mass of the side. Every point counts individually,
        whatever the kernel, and only deviations that the sense of the side penalises count.
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

        The error of the rows is :math:`\|\gamma 1 - a\|_{G_a} / \|a\|_{G_a}`: what the objective penalises. Errors
        between points that the kernel treats as similar count less than in `marginal_errors`.
        """
        return self._facts.kernel_errors

    @property
    def without_link(self) -> tuple[list[Any], list[Any]]:
        """The rows and the columns with positive mass and no link, by label where there are labels.

        Under a kernel other than `Delta` they may be represented by the links of nearby points.
        """
        names = describe.ends(self._facts.labels, self._parts.shape)
        first, second = ([names[side][k] for k in without_link(self._parts, side)] for side in (0, 1))
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
            error[error <= _checks.KEPT * _checks.at_least(wanted)] = 0.0
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

    def transport(self, X: Any, *, obsm: str | None = None) -> Any:
        """Where new points of the first side go on average, under a kernel other than `Delta`; see `a_to_b`.

        Points are an array, a table, whose columns are matched by label, or an AnnData with its key ``obsm``.

        Examples
        --------
        >>> import numpy as np, sparsetransport as st
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> res = st.solve_sample(X, X + [5.0, 0.0], kernels=st.RBF(0.1), budget=100)
        >>> res.transport([[0.0, 0.0]]).round(1)
        array([[ 5., -0.]])
        """
        return self._give(self._backing.transport(self._parts, 0, _tables.cells("X", X, obsm)))

    def inverse_transport(self, Y: Any, *, obsm: str | None = None) -> Any:
        """Where new points of the second side come from on average; see `transport`."""
        return self._give(self._backing.transport(self._parts, 1, _tables.cells("Y", Y, obsm)))

    def _barycentres(self, side: int) -> Floats:
        found: Floats = self._backing.barycentres(self._parts, side)
        lost = without_link(self._parts, side)
        if self._facts.is_delta[side] and len(lost):
            name, told = ("a_to_b", "b_to_a")[side], describe.named(lost, self._facts.labels[side])
            _checks.warn(
                f"{name} is NaN for {len(lost)} of {len(found)} points, which have no link{told}: raise the budget, or "
                "take a kernel other than Delta, under which nearby links represent them"
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
            "quick" is the cheap bound, "default" the tight one; "thorough" continues with stronger bounds, including
            branch and bound, until the gap is within the tolerance or nothing helps. By default "thorough" if there
            is a time limit, otherwise "default".
        gap_tol : float
            Stronger bounds follow until the relative gap is below this.
        time_limit : float, optional
            Seconds after which no further bound is started, and long computations are stopped.
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
