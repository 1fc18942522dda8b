"""The problem: costs, masses, kernels and weights, and its objective and gradients on a support."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from . import _checks, _tables
from ._checks import Floats, Ints
from ._tables import Labels
from .geometry import costs
from .geometry.kernels import DEFAULT_RULE, Delta
from .geometry.matrices import Cost, Gram, as_gram
from .geometry.pricing import Pricing
from .given import (
    LARGEST,
    SAME_UNITS,
    SMALLEST,
    LinkCostLike,
    SenseLike,
    auto_weight,
    costs_are_lost,
    is_in_range,
    link_cost_of,
    masses_of,
    senses_of,
    side_is_lost,
    sides_of,
    weights_of,
)

Fields = tuple[Floats, Floats]
LAZY_FROM = 50_000_000  # entries; larger matrices are not built from points unless asked for


class Quadratic(Protocol):
    """A quadratic ``constant + slope'x + ½ x'Hx`` of the masses ``x >= 0`` of pairs, as `maximise` needs it.

    Pairs index a grid of the given ``shape``; a plain list of ``n`` variables is a grid of shape ``(1, n)``. ``fields``
    computes, once for given masses, what the gradients need.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid."""

    @property
    def constant(self) -> float:
        """The value of the function where all masses are zero."""

    @property
    def scale(self) -> float:
        """The size of a typical gradient, against which small ones count as zero."""

    def slope(self, rows: Ints, cols: Ints) -> Floats:
        """The linear term at the pairs."""

    def hessian(self, rows: Ints, cols: Ints, other_rows: Ints, other_cols: Ints) -> Floats:
        """The quadratic term between two lists of pairs."""

    def fields(self, rows: Ints, cols: Ints, mass: Floats) -> Any:
        """Whatever ``gradient`` and ``gradient_rows`` need for these masses."""

    def gradient(self, fields: Any, rows: Ints, cols: Ints) -> Floats:
        """The gradient at pairs without mass."""

    def gradient_rows(self, fields: Any, first: int, last: int) -> Floats:
        """The gradient at all pairs of some rows, as if without mass."""


@dataclass(frozen=True, repr=False, eq=False)
class Problem:
    r"""Transport with soft or hard marginals.

    The objective of a plan :math:`\gamma \ge 0` is

    .. math::
        U(\gamma) = \langle C, \gamma\rangle + \lambda_a \|\gamma 1 - a\|^2_{G_a}
        + \lambda_b \|\gamma^\top 1 - b\|^2_{G_b} + \tfrac{\lambda_2}{2}\|\gamma\|^2
        + \sum_{\gamma_{ij} > 0} f_{ij} .

    On a side with the sense ``"<="`` only mass above the wanted one is penalised, with ``">="`` only mass below it: the
    norm is that of the errors after the best slack of the right sign. An infinite weight is a hard marginal. Links cost
    :math:`f`, ``link_cost``, whatever they carry; by default nothing.

    Build one with `Problem.from_matrices` or `Problem.from_points`, and pass it to ``solve`` in place of the costs.
    ``dataclasses.replace(problem, b=...)`` makes a problem that differs in one part, with the same checks.

    Examples
    --------
    >>> import sparsetransport as st
    >>> problem = st.Problem.from_matrices([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], [0.5, 0.5], unbalanced=10.0)
    >>> problem.shape, problem.constant
    ((2, 2), 10.0)
    >>> problem
    Problem(2x2, kernels=Delta(), unbalanced=10, reg=0)
    """

    cost: Cost
    a: Floats
    b: Floats
    gram_a: Gram = None  # type: ignore[assignment]  # so that `Problem(C, a, b)` gets a helpful error
    gram_b: Gram = None  # type: ignore[assignment]
    unbalanced: tuple[float, float] = (1.0, 1.0)
    reg: float = 0.0
    points: tuple[Floats, Floats] | None = None
    labels: tuple[Labels, Labels] = (None, None)  # of rows and columns, where tables had them
    sense: tuple[str, str] = ("=", "=")  # what each side asks for
    library: str | None = None  # of the tables that it was made from, by its name
    link_cost: Floats | None = None  # (m, n) what every link in use costs, whatever it carries
    coordinates: Labels = None  # the names of those of the points, where tables had them

    def __post_init__(self) -> None:
        """Check all arguments and convert them to the types of the fields."""
        if self.gram_a is None or self.gram_b is None:
            raise TypeError("make a Problem with Problem.from_matrices(C, a, b) or Problem.from_points(X, Y, a, b)")
        labels = self._labels()
        library = self.library or _tables.library(self.cost, self.a, self.b, self.gram_a, self.gram_b)
        cost = self.cost if isinstance(self.cost, Cost) else Cost.dense(_tables.matched("C", self.cost, *labels))
        m, n = cost.shape
        x, y = (None, None) if self.points is None else self.points
        if x is not None and y is not None and (len(x), len(y)) != (m, n):
            raise ValueError(f"points must match the shape of the costs, {m} and {n} points, got {len(x)} and {len(y)}")
        weights, sense = weights_of(self.unbalanced), senses_of(self.sense)
        reg = _checks.number("reg", self.reg, positive=False)
        a, b = masses_of(
            _tables.aligned("a", self.a, "index", labels[0], "rows"),
            _tables.aligned("b", self.b, "index", labels[1], "columns"),
            (m, n),
        )
        link_cost = link_cost_of(self.link_cost, (m, n), labels)
        matched = [_tables.matched(f"kernels[{k}]", (self.gram_a, self.gram_b)[k], *2 * [labels[k]]) for k in (0, 1)]
        gram_a = as_gram("kernels[0]", matched[0], m, x, lazy=cost.is_lazy)
        gram_b = as_gram("kernels[1]", matched[1], n, y, lazy=cost.is_lazy)
        for k, gram in enumerate((gram_a, gram_b)):
            if weights.numbers[k] == np.inf and not gram.is_delta:
                raise ValueError(
                    f"unbalanced must be finite where the kernel is not Delta(), got inf for side {k}: hard marginals "
                    "are those of single points"
                )
        if sense == (">=", ">=") and cost.lowest < 0.0:
            raise ValueError(
                "sense must not be '>=' on both sides where costs are negative: more mass between such a pair would "
                "lower the objective without bound"
            )
        if link_cost is not None and cost.is_lazy:
            raise ValueError("link_cost needs a dense matrix of costs: pass lazy=False")
        if link_cost is not None and not (gram_a.is_delta and gram_b.is_delta and reg == 0.0):
            raise ValueError(
                "link_cost must be None or 0 unless kernels are Delta() and reg is 0: the search that weighs links "
                "against their cost works on trees of links only"
            )
        if weights.need_auto:
            with np.errstate(over="ignore"):
                smoothed = gram_a.times(a), gram_b.times(b)
                terms = float(a @ smoothed[0]), float(b @ smoothed[1])
            vars(self).update(smoothed=smoothed)
            undelivered = sum(x for x, each in zip(terms, sense, strict=True) if each != "<=") or sum(terms)
            auto = auto_weight(cost.mean, a, b, undelivered)
            if not 0.0 < auto < np.inf:
                raise ValueError("unbalanced='auto' finds no weight: the masses or costs are too large or too small")
            if cost.common < cost.mean:
                _checks.warn(
                    f"unbalanced='auto' is based on the mean cost, {cost.mean:.2g}, which would be {cost.common:.2g} "
                    "without the largest costs: mark forbidden pairs with inf, or give a weight"
                )
        else:
            auto = np.nan
        # Not by assignment, since the dataclass is frozen.
        vars(self).update(cost=cost, a=a, b=b, gram_a=gram_a, gram_b=gram_b, unbalanced=weights.given(auto), reg=reg)
        vars(self).update(labels=labels, sense=sense, library=library, link_cost=link_cost)
        a.setflags(write=False)
        b.setflags(write=False)
        for points in self.points or ():
            points.setflags(write=False)
        self._require_range()

    def _require_range(self) -> None:
        """Raise an error where products would be too large or too small for floating-point numbers."""
        soft = tuple(weight for weight in self.unbalanced if weight < np.inf)
        with np.errstate(all="ignore"):
            terms = {
                "the costs": max(abs(self.cost.mean), -self.cost.lowest),
                "unbalanced": soft,
                "reg": self.reg,
                "link_cost": 0.0 if self.link_cost is None else float(self.link_cost.max()),
                "a": self.a.sum(),
                "b": self.b.sum(),
                "masses times unbalanced": (
                    (*(np.abs(field).max() for field in self.terms), self.constant) if len(soft) == 2 else ()
                ),
            }
        for name, sizes in terms.items():
            for size in np.atleast_1d(sizes).tolist():
                if not is_in_range(size):
                    raise ValueError(
                        f"{name} must be zero or between {SMALLEST:g} and {LARGEST:g} in size, got {size:g}: "
                        "choose other units"
                        + " (scaling C, unbalanced and reg together changes no plan)"
                        * (name not in ("a", "b"))
                    )

    def _labels(self) -> tuple[Labels, Labels]:
        """The labels of rows and columns: those known, or the first ones among costs, masses and Gram matrices."""
        known, read = self.labels, _tables.labels
        rows = _tables.first(known[0], read(self.cost, "index"), read(self.a, "index"), read(self.gram_a, "index"))
        cols = _tables.first(known[1], read(self.cost, "columns"), read(self.b, "index"), read(self.gram_b, "index"))
        return rows, cols

    def __getstate__(self) -> dict[str, Any]:
        """All but the trees of its points, which a copy in another process makes again."""
        return {name: value for name, value in vars(self).items() if name != "pricing"}

    def __repr__(self) -> str:
        m, n = self.shape
        kernels = ["Gram matrix" if gram.kernel is None else str(gram.kernel) for gram in (self.gram_a, self.gram_b)]
        weights = [f"{weight:.4g}" for weight in self.unbalanced]
        more = f", sense={_both([repr(each) for each in self.sense])}" * self.is_sided
        if self.link_cost is not None:
            low, high = float(self.link_cost.min()), float(self.link_cost.max())
            more += f", link_cost={low:.4g}" + f"..{high:.4g}" * (low < high)
        return f"Problem({m}x{n}, kernels={_both(kernels)}, unbalanced={_both(weights)}, reg={self.reg:.4g}{more})"

    @classmethod
    def from_matrices(
        cls,
        C: Any,
        a: Any = None,
        b: Any = None,
        *,
        kernels: Any = None,
        unbalanced: Any = "auto",
        reg: float = 0.0,
        sense: SenseLike = "=",
        link_cost: LinkCostLike = None,
    ) -> "Problem":
        """A problem from a cost matrix; see ``solve`` for the arguments."""
        if isinstance(C, Problem):
            raise TypeError("C must be an array of costs, got a Problem, which solve takes in place of C")
        if getattr(_tables.column(a), "ndim", 1) == 2:
            raise ValueError(
                f"a must have 1 dimension, got shape {tuple(a.shape)}: it holds masses; points go to solve_sample"
            )
        about: Any = {"sense": senses_of(sense), "link_cost": link_cost}
        return cls(C, a, b, *sides_of(kernels, Delta()), unbalanced, reg, **about)

    @classmethod
    def from_points(
        cls,
        X: Any,
        Y: Any,
        a: Any = None,
        b: Any = None,
        *,
        metric: str = "sqeuclidean",
        normalize_cost: bool = False,
        forbidden: Any = None,
        kernels: Any = None,
        unbalanced: Any = "auto",
        reg: float = 0.0,
        sense: SenseLike = "=",
        link_cost: LinkCostLike = None,
        lazy: bool | None = None,
        obsm: str | None = None,
    ) -> "Problem":
        """A problem from two point sets; see ``solve_sample`` for the arguments."""
        a, b = _tables.of_obs("a", a, X), _tables.of_obs("b", b, Y)
        X, Y = _tables.cells("X", X, obsm), _tables.cells("Y", Y, obsm)
        x, y = (each.copy() for each in costs.points(X, Y))  # copies: they may change before a bound is computed
        rows = _tables.first(_tables.labels(X, "index"), _tables.labels(a, "index"))
        cols = _tables.first(_tables.labels(Y, "index"), _tables.labels(b, "index"))
        coordinates = _tables.first(_tables.labels(X, "columns"), _tables.labels(Y, "columns"))
        _checks.flag("normalize_cost", normalize_cost)
        costs.require_metric(metric)
        if max(len(x), len(y)) ** 2 > LAZY_FROM if lazy is None else _checks.flag("lazy", lazy):
            if forbidden is not None:
                raise ValueError("forbidden needs a dense matrix of costs: pass lazy=False")
            built = Cost.lazy(x, y, metric, normalize=normalize_cost)
        else:
            matrix = costs.cost_matrix(x, y, metric, normalize=normalize_cost)
            if forbidden is not None:
                pairs = _tables.matched("forbidden", forbidden, rows, cols)
                matrix[_checks.mask("forbidden", pairs, matrix.shape)] = np.inf
            built = Cost.of_matrix(_checks.real_array("the matrix of costs", matrix, ndim=2, infinite=True))
        given = sides_of(kernels, DEFAULT_RULE)
        sides = tuple(_tables.matched(f"kernels[{k}]", given[k], *2 * [(rows, cols)[k]]) for k in (0, 1))
        if metric == "cosine":  # which depends on directions alone, and so must the kernels
            sides = tuple(
                as_gram(f"kernels[{k}]", kernel, len(p), costs.directions("XY"[k], p), lazy=built.is_lazy)
                for k, (kernel, p) in enumerate(zip(sides, (x, y), strict=True))
            )
        about: Any = (x, y), (rows, cols), senses_of(sense), _tables.library(X, Y, a, b), link_cost, coordinates
        return cls(built, a, b, sides[0], sides[1], unbalanced, reg, *about)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of points on each side."""
        return self.cost.shape

    @cached_property
    def base(self) -> Fields:
        """``r`` and ``c`` of the empty plan: ``-2 λ_a G_a a`` and ``-2 λ_b G_b b`` where both senses are "="."""
        if self.is_sided:
            return self.smooth(*self.counted(-self.a, -self.b))
        first, second = (-2.0 * weight * each for weight, each in zip(self.unbalanced, self.smoothed, strict=True))
        return first, second

    @cached_property
    def smoothed(self) -> Fields:
        """``G_a a`` and ``G_b b``."""
        return self.gram_a.times(self.a), self.gram_b.times(self.b)

    @cached_property
    def constant(self) -> float:
        """The objective of the empty plan."""
        if not self.is_plain:
            nothing = np.zeros(0, np.int64)
            return self.value(nothing, nothing, np.zeros(0))
        r, c = self.base
        return float(-0.5 * (r @ self.a + c @ self.b))

    @cached_property
    def terms(self) -> Fields:
        """The terms of gradients that come from the masses, up to their sign; whatever the senses are."""
        return self.smooth(self.a, self.b) if self.is_sided else self.base

    @cached_property
    def scale(self) -> float:
        """The size of the terms of a negative gradient, which its rounding error is proportional to."""
        r, c = self.terms
        return max(float(np.abs(r).max()), float(np.abs(c).max()), -min(self.cost.lowest, 0.0))

    @property
    def has_deltas(self) -> bool:
        """True if marginal errors are counted point by point."""
        return self.gram_a.is_delta and self.gram_b.is_delta

    @property
    def has_trees(self) -> bool:
        """True if plans without cycles are enough: marginal errors are counted point by point, and ``reg`` is zero."""
        return self.reg == 0.0 and self.has_deltas

    @property
    def has_other_units(self) -> bool:
        """True if the totals of two sides that should be equal differ so much that their units must."""
        totals = float(self.a.sum()), float(self.b.sum())
        return not self.is_sided and max(totals) > SAME_UNITS * min(totals) > 0.0

    @property
    def is_sided(self) -> bool:
        """True if one of the senses is not "="."""
        return self.sense != ("=", "=")

    @property
    def is_hard(self) -> bool:
        """True if one of the weights is infinite."""
        return np.inf in self.unbalanced

    @property
    def is_plain(self) -> bool:
        """True if all deviations from the masses are penalised, with finite weights, and links cost nothing."""
        return not (self.is_sided or self.is_hard or self.is_charged)

    @property
    def is_charged(self) -> bool:
        """True if links cost something, whatever they carry."""
        return self.link_cost is not None

    @property
    def counted_shape(self) -> tuple[int, int]:
        """Rows and columns whose pairs are links, and not slack: see `engine.slack`."""
        return self.shape

    @property
    def soft_part(self) -> "Problem":
        """The same without the errors of hard marginals."""
        return self.like(unbalanced=tuple(0.0 if weight == np.inf else weight for weight in self.unbalanced))

    def like(self, **changes: Any) -> "Problem":
        """The same with other values of some fields, which are not checked."""
        made = object.__new__(Problem)
        vars(made).update({name: vars(self)[name] for name in self.__dataclass_fields__} | changes)
        return made

    def only(self, rows: Ints, cols: Ints) -> "Problem":
        """The same where all pairs but these are forbidden."""
        matrix = np.full(self.shape, np.inf)
        matrix[rows, cols] = self.cost.entries(rows, cols)
        return self.like(cost=Cost.of_matrix(matrix))

    @cached_property
    def pricing(self) -> Pricing:
        """The pricing of its costs."""
        return Pricing(self.cost)

    @cached_property
    def memo(self) -> dict[str, Any]:
        """A cache of what was computed for the problem, such as its unbudgeted optimum."""
        return {}

    @property
    def costs_are_lost(self) -> bool:
        """True if marginal errors weigh so much that costs are lost in the rounding of their sum."""
        return bool(costs_are_lost(self.scale, self.cost.common))

    @property
    def side_is_lost(self) -> bool:
        """True if the marginal errors of one side weigh so much that those of the other are lost in rounding."""
        return bool(side_is_lost(*(np.abs(field).max() for field in self.terms)))

    @property
    def is_lost(self) -> bool:
        """True if costs or the marginal errors of a side are lost in rounding, of which `warn_of_rounding` tells."""
        return not self.is_hard and (self.side_is_lost or self.costs_are_lost)

    def smooth(self, u: Floats, v: Floats, *, exact: bool = False) -> Fields:
        """``2 λ_a G_a u`` and ``2 λ_b G_b v``; for proofs with the ``exact`` matrices, not their low-rank factors."""
        weight_a, weight_b = self.unbalanced
        first, second = self.gram_a.times(u, exact=exact), self.gram_b.times(v, exact=exact)
        return 2.0 * weight_a * first, 2.0 * weight_b * second

    def counted(self, p: Floats, q: Floats) -> Fields:
        """What counts of the errors of both sides: what is left after the best slack that the senses allow."""
        first, second = (
            each if sense == "=" else _left_over(gram, each, sense)
            for gram, each, sense in zip((self.gram_a, self.gram_b), (p, q), self.sense, strict=True)
        )
        return first, second

    def missed(self, rows: Ints, cols: Ints, mass: Floats) -> Fields:
        """What the marginals of a plan miss of those that are hard, by more than rounding; zero for soft ones."""
        sums = self.marginals(rows, cols, mass)
        errors = self.counted(sums[0] - self.a, sums[1] - self.b)
        first, second = (
            np.where(np.abs(error) > _checks.KEPT * _checks.at_least(wanted), error, 0.0) * (weight == np.inf)
            for error, wanted, weight in zip(errors, (self.a, self.b), self.unbalanced, strict=True)
        )
        return first, second

    def marginals(self, rows: Ints, cols: Ints, mass: Floats) -> Fields:
        """Row and column sums of a sparse plan."""
        m, n = self.shape
        return _sums(rows, mass, m), _sums(cols, mass, n)

    def cost_of_links(self, rows: Ints, cols: Ints, mass: Floats) -> float:
        """What the links with mass cost, whatever they carry."""
        used = mass > 0.0
        return 0.0 if self.link_cost is None else float(self.link_cost[rows[used], cols[used]].sum())

    def value(self, rows: Ints, cols: Ints, mass: Floats) -> float:
        """The objective of a sparse plan, from its definition."""
        row_sum, col_sum = self.marginals(rows, cols, mass)
        p, q = row_sum - self.a, col_sum - self.b
        weight_a, weight_b = self.unbalanced
        linear = float(self.cost.entries(rows, cols) @ mass)
        if not self.is_plain:
            if self.is_hard and any(each.any() for each in self.missed(rows, cols, mass)):
                return np.inf
            p, q = self.counted(p, q)
            weight_a, weight_b = (0.0 if weight == np.inf else weight for weight in self.unbalanced)
        missed = weight_a * float(p @ self.gram_a.times(p)) + weight_b * float(q @ self.gram_b.times(q))
        return linear + missed + 0.5 * self.reg * float(mass @ mass) + self.cost_of_links(rows, cols, mass)

    def fields(self, rows: Ints, cols: Ints, mass: Floats) -> Fields:
        """``r = 2 λ_a G_a (γ1 - a)`` and ``c = 2 λ_b G_b (γ'1 - b)``: the gradient off the support is ``C + r + c``."""
        row_sum, col_sum = self.marginals(rows, cols, mass)
        return self.smooth(*self.counted(row_sum - self.a, col_sum - self.b))  # differences first lose little

    def slope(self, rows: Ints, cols: Ints) -> Floats:
        """The linear term at the pairs."""
        return self.gradient(self.base, rows, cols)

    def gradient(self, fields: Fields, rows: Ints, cols: Ints) -> Floats:
        """The gradient at pairs without mass."""
        return self.cost.entries(rows, cols) + fields[0][rows] + fields[1][cols]

    def steepest(self, fields: Fields) -> float:
        """The smallest gradient of all pairs, as if without mass."""
        if self.cost.is_lazy:
            return float((self.pricing.rows(-fields[1])[0][:, 0] + fields[0]).min())
        return min(
            float((block + fields[0][first : first + len(block), None] + fields[1]).min())
            for first, block in self.cost.blocks()
        )

    def gradient_rows(self, fields: Fields, first: int, last: int) -> Floats:
        """The gradient at all pairs of some rows, as if without mass."""
        return self.cost.rows(first, last) + fields[0][first:last, None] + fields[1]

    def hessian(self, rows: Ints, cols: Ints, other_rows: Ints, other_cols: Ints) -> Floats:
        """The quadratic term between two lists of pairs."""
        weight_a, weight_b = self.unbalanced
        block = 2.0 * weight_a * self.gram_a.block(rows, other_rows)
        block += 2.0 * weight_b * self.gram_b.block(cols, other_cols)
        same = (rows[:, None] == other_rows) & (cols[:, None] == other_cols)
        block[same] += self.reg
        return block


def as_problem(
    C: Any,
    a: Any = None,
    b: Any = None,
    *,
    kernels: Any = None,
    unbalanced: Any = "auto",
    reg: Any = 0.0,
    sense: Any = "=",
    link_cost: Any = None,
) -> Problem:
    """A problem from a cost matrix; a `Problem` is returned unchanged."""
    if not isinstance(C, Problem):
        return Problem.from_matrices(
            C, a, b, kernels=kernels, unbalanced=unbalanced, reg=reg, sense=sense, link_cost=link_cost
        )
    refuse(C, a=a, b=b, kernels=kernels, unbalanced=(unbalanced, "auto"), reg=(reg, 0.0), sense=(sense, "="))
    refuse(C, link_cost=link_cost)
    return C


def require_plain(problem: Problem, what: str) -> None:
    """Raise an error for senses, hard marginals and costs of links where something does not know them."""
    if problem.is_charged:
        raise ValueError(f"{what} takes problems without link_cost only")
    if problem.is_sided:
        raise ValueError(f"{what} takes problems with sense='=' on both sides only, got sense={problem.sense}")
    if problem.is_hard:
        raise ValueError(f"{what} takes problems with finite weights only, got unbalanced={problem.unbalanced}")


def _left_over(gram: Gram, error: Floats, sense: str) -> Floats:
    """What is left of the errors of a side in its norm after the best slack, which only adds or only takes mass."""
    if gram.is_delta:
        return error.clip(0.0) if sense == "<=" else error.clip(None, 0.0)
    from scipy.optimize import nnls  # imported where it is used: it takes long

    sign = 1.0 if sense == "<=" else -1.0
    root = gram.root
    slack, _ = nnls(root, -sign * (root @ error))
    return error + sign * slack


def refuse(problem: Problem, **given: Any) -> None:
    """Raise an error if an argument was given that is part of the problem; a pair is the argument and its default."""
    for name, value in given.items():
        value, default = value if isinstance(value, tuple) and name not in ("kernels", "a", "b") else (value, None)
        same = value is default or (isinstance(value, str | float | int) and value == default)
        if not same:
            raise TypeError(
                f"{name} must not be given together with a Problem, which has its own, got {name}={value!r}"
            )


def second_by_name(C: Any, name: str, second: Any, named: Any) -> tuple[Any, Any]:
    """The masses and a keyword argument, which used to be the second positional one after a problem."""
    if isinstance(C, Problem) and second is not None and named is None:
        _checks.warn(f"{name} is a keyword argument now: write {name}=...")
        return None, second
    return second, named


def mean_problem(problems: Sequence[Problem], weights: Floats) -> Problem:
    """The problem with the weighted mean of costs and masses; kernels and weights of marginals are those of the first.

    Lazy costs are those of the first, too.
    """
    share, first = weights / weights.sum(), problems[0]
    if len(problems) == 1:
        return first
    a, b = (sum(w * getattr(one, side) for w, one in zip(share, problems, strict=True)) for side in ("a", "b"))
    cost = first.cost
    if not any(one.cost.is_lazy for one in problems) and any(one.cost is not cost for one in problems):
        matrices = (one.cost.compiled.matrix for one in problems)
        cost = Cost.of_matrix(sum(w * matrix for w, matrix in zip(share, matrices, strict=True)))
    return replace(first, cost=cost, a=a, b=b)


def _sums(index: Ints, mass: Floats, size: int) -> Floats:
    """The total mass at every index, as floats even if there are no entries."""
    return np.bincount(index, mass, size).astype(np.float64, copy=False)


def require_problem(problem: Any, cure: str = "make one with Problem.from_matrices from an array of costs") -> None:
    """Raise an error unless this is a `Problem`."""
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a Problem, got {type(problem).__name__}: {cure}")


def warn_of_rounding(problem: Problem) -> None:
    """Warn if marginal errors weigh so much that costs, or those of the other side, are lost in rounding.

    Totals that are too different come first, since no weight helps there.
    """
    if problem.is_hard:
        return
    if problem.has_other_units:
        _checks.warn(
            f"the masses a have a total of {problem.a.sum():.3g} and the masses b of {problem.b.sum():.3g}: give both "
            "sides in the same units"
        )
        return
    if problem.side_is_lost:
        _checks.warn(
            f"unbalanced = {problem.unbalanced} and the masses differ so much between the sides that the marginal "
            "errors of one are lost in rounding: the plan may be far from optimal; use weights that differ less"
        )
    elif problem.costs_are_lost:
        _checks.warn(
            f"unbalanced = {problem.unbalanced} is so large that costs are lost in rounding (marginal errors weigh "
            f"{problem.scale / problem.cost.common:.1e} times as much): the plan may be far from optimal; use a "
            "smaller weight"
        )


def _both(sides: list[str]) -> str:
    """The texts of the two sides, or one text if they are the same."""
    return sides[0] if sides[0] == sides[1] else f"({', '.join(sides)})"
