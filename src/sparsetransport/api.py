"""Solve a transport problem with a budget: the functions that users call."""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Never, Unpack

import numpy as np

from . import _checks, _tables
from ._checks import ArrayLike, Seed
from ._progress import shown
from .budgets import Uniform
from .build_result import build_result, on_support
from .certificate import LONG, PROVEN, Certificate
from .certify.strongest import has_long_bounds
from .effort import Effort, as_effort
from .engine.room import Constraint
from .engine.shell import jumped
from .given import KernelsLike, LinkCostLike, SenseLike, WeightsLike, auto_weight, weights_of
from .inner.solvers import ActiveSet
from .large import device_for
from .options import Budget, Options, Polish, SolveOptions, StartLike, as_pairs, as_start
from .plan import Callback, Outcome, Record, as_arrays
from .problem import Problem, as_problem, refuse, require_problem, second_by_name, warn_of_rounding
from .result import Result
from .search import GapTest, Links, Search
from .select.generic_greedy import Rule
from .status import Status
from .strategy import find, find_by_rule
from .summary import errors_as_asked

_MISSED = 0.35  # a marginal error, beyond that of totals that differ, for which a small weight gets a warning
_LIGHT = 0.02  # of the weight of "auto": a weight that may leave such errors
_ROUNDING = 1e-8  # of a relative gap: what rounding may leave of the optimum's
_UNFINISHED = Status.STOPPED, Status.BUDGET_USED, Status.LOCAL  # what a search may say that had no time for more


def solve(
    C: ArrayLike | Problem,
    a: ArrayLike | str | None = None,
    b: ArrayLike | str | None = None,
    *,
    kernels: KernelsLike = None,
    budget: Budget = None,
    unbalanced: WeightsLike = "auto",
    reg: float = 0.0,
    sense: SenseLike = "=",
    link_cost: LinkCostLike = None,
    method: str | Rule = "omp",
    inner: str = "active_set",
    reclaim: bool = True,
    effort: str | Effort | None = None,
    polish: Polish = None,
    gap_tol: float | None = None,
    time_limit: float | None = None,
    start: StartLike = None,
    callback: Callback | None = None,
    rng: Seed = None,
    tol: float | None = None,
    max_iter: int | None = None,
    progress: bool = False,
    obsp: str | None = None,
    **unknown: Never,
) -> Result:
    r"""Solve transport with a budget of entries and soft marginals.

    Minimises over plans :math:`\gamma \ge 0` whose entries stay within the budget

    .. math::
        \langle C, \gamma\rangle + \lambda_a \|\gamma 1 - a\|^2_{G_a} + \lambda_b \|\gamma^\top 1 - b\|^2_{G_b}
        + \tfrac{\lambda_2}{2}\|\gamma\|^2 + \sum_{\gamma_{ij} > 0} f_{ij} .

    Parameters
    ----------
    C : array of shape (m, n), AnnData or Problem
        Costs; or a whole problem, which contains masses, kernels and weights as well. Entries may be negative, and
        ``+inf`` forbids a pair. Costs are copied unless they take more than 64 MiB: do not modify such an array while
        you still compute bounds, or plans of smaller budgets, from the result.
    a, b : arrays of shape (m,) and (n,), or columns of ``obs`` of an AnnData by name, optional
        Masses of the two sides, not negative, of any total. A side without masses is uniform, with the total of the
        other side; if neither is given, both are uniform with total one.
    kernels : Gram matrix, kernel, or a pair of them, optional
        The norm of the marginal errors: one kernel for both sides, or one for each. `Delta` by default; `RBF`, `IMQ`,
        `IMQv2` and `Laplace` need points (see `solve_sample`).
    budget : int, Matroid or None
        The largest number of entries in the whole plan; or `PerColumn`, `PerRow`, `Partition`, `Laminar`, an
        intersection such as ``PerRow(1) & PerColumn(1)``, or a matroid of your own. None: no budget, the exact optimum.
    unbalanced : float, "auto", a multiple of it such as "100*auto", or a pair of them
        λ, the weight of the marginal errors: one for both sides, or one for each. "auto" makes transporting nothing a
        hundred times as bad as transporting everything at the mean cost. ``inf`` makes the marginals of a side hard
        (`Delta` kernels only): they are kept exactly, or the status says that no plan was found that does.
    reg : float
        λ₂, the weight of the quadratic term. A positive one makes certificates tight.
    sense : {"=", "<=", ">="} or a pair of them
        Whether the sums of a side should equal its masses (the default), be at most its masses, or be at least its
        masses. Only deviations in the wrong direction are penalised.
    link_cost : float or array of shape (m, n), optional
        A fixed cost of every link in use, instead of a budget or together with one: the number of links is then part
        of the solution. Only with `Delta` kernels and without ``reg``.
    method : {"omp", "stochastic", "residual", "greedy", "residual-greedy"} or a rule
        How the support is chosen: by gradient; by gradient in a random sample (Algorithm 1 of the paper); a random
        pair of the best base (Algorithm 2); by exact marginal gain; Algorithm 2 by exact gain (Chen et al.). Rule
        objects such as ``StochasticOMP(eps=0.1)`` carry their parameters.
    inner : {"active_set", "apgd"}
        The solver on a support: exact, or the accelerated gradient of the paper.
    reclaim : bool
        Drop pairs without mass, which frees their place in the budget. False: as in the published algorithm.
    effort : {"quick", "default", "thorough"} or Effort, optional
        How much to do: "quick" grows the plan, swaps entries for better pairs and goes beyond the budget and back by
        backward elimination, as `solve_batch` does; "default" tries other starts too and, with `Delta` kernels, local
        search on trees of links with perturbation; "thorough" uses many starts and continues for as long as it helps.
        An `Effort` holds all limits of the search.
    polish : bool or "quick", optional
        An older argument for the effort: False for growing alone, "quick", or True for the default.
    gap_tol : float, optional
        Continue, with the thorough effort and then with stronger and stronger bounds, until the certified relative gap
        is below this, the time is up or nothing helps; ``status`` says which.
    time_limit : float, optional
        Seconds after which the best plan so far is returned. With ``gap_tol``, bounds may then take longer than they do
        without a limit.
    start : Result, plan or list of pairs, optional
        Begin with this support; a result or a plan (an array of floats of shape (m, n)) is used with its masses.
    callback : callable, optional
        Called after each step with a `Step`: its index, pair, objective and number of entries. If it returns true, the
        solve stops. Swaps are reported one pass at a time, and a solve that is stopped there returns the plan after the
        pass. With ``gap_tol``, every start counts its steps anew; changes to a plan found in another way are not
        reported.
    rng : seed or numpy Generator, optional
        For the random methods.
    tol : float, optional
        A gradient below this share of the problem's scale counts as zero: 1e-13, or 1e-6 for "apgd".
    max_iter : int, optional
        Iterations of "apgd" per step; 1,000 by default. The active set needs no limit.
    progress : bool
        Show links, objective and gap so far on a terminal.
    obsp : str, optional
        The key of the costs in ``obsp`` of an AnnData ``C``; pairs that a sparse one does not store are forbidden.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> C = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
    >>> res = st.solve(C, [0.2, 0.5, 0.3], [0.4, 0.4, 0.2], budget=5, unbalanced=50.0, reg=1.0)
    >>> sorted((int(i), int(j)) for i, j in zip(res.rows, res.cols))
    [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]
    >>> res.relative_gap < 1e-6
    True
    """
    options = Options.checked(
        budget=budget,
        method=method,
        inner=inner,
        reclaim=reclaim,
        effort=effort,
        polish=polish,
        gap_tol=gap_tol,
        time_limit=time_limit,
        start=start,
        callback=callback,
        rng=rng,
        tol=tol,
        max_iter=max_iter,
        progress=progress,
        **unknown,
    )
    a, b = _tables.of_obs("a", a, C), _tables.of_obs("b", b, C)
    C = _tables.between_cells(C, obsp)
    problem = as_problem(C, a, b, kernels=kernels, unbalanced=unbalanced, reg=reg, sense=sense, link_cost=link_cost)
    result = solve_checked(problem, options, _checks.same_kind(C, a, b))
    if not isinstance(C, Problem):
        _warn_of_weight(result, problem, unbalanced)
    return result


def solve_sample(
    X: ArrayLike | Problem,
    Y: ArrayLike | None = None,
    a: ArrayLike | str | None = None,
    b: ArrayLike | str | None = None,
    *,
    kernels: KernelsLike = None,
    budget: Budget = None,
    unbalanced: WeightsLike = "auto",
    reg: float = 0.0,
    sense: SenseLike = "=",
    link_cost: LinkCostLike = None,
    metric: str = "sqeuclidean",
    normalize_cost: bool = False,
    forbidden: ArrayLike | None = None,
    lazy: bool | None = None,
    device: str | None = None,
    method: str | Rule = "omp",
    inner: str = "active_set",
    reclaim: bool = True,
    effort: str | Effort | None = None,
    polish: Polish = None,
    gap_tol: float | None = None,
    time_limit: float | None = None,
    start: StartLike = None,
    callback: Callback | None = None,
    rng: Seed = None,
    tol: float | None = None,
    max_iter: int | None = None,
    progress: bool = False,
    obsm: str | None = None,
    **unknown: Never,
) -> Result:
    """Solve transport with a budget between two point sets.

    Parameters
    ----------
    X, Y : arrays of shape (m, d) and (n, d), tables, or AnnData
        The points; or a `Problem` in place of ``X``, and no ``Y``.
    a, b, budget, unbalanced, reg, sense, link_cost
        Masses, budget, weights, senses and costs of links, as in `solve`.
    metric : {"sqeuclidean", "euclidean", "cosine"}
        The cost of moving a unit of mass.
    normalize_cost : bool
        Divide the costs by the largest one.
    forbidden : bool array of shape (m, n), optional
        Pairs that must not carry mass; not with ``lazy``, since this array is as large as the costs.
    kernels : kernel, name, rule, function, Gram matrix, or a pair of them, optional
        `RBF`, `IMQ`, `IMQv2`, `Laplace` or `Delta`; a function ``k(X, Y)`` of your own (not with ``lazy``); or a rule
        for the bandwidth of an RBF: "median" or "mean" of the squared distances between the points of a side, or a
        multiple of one. "0.1*median" is the default, and "median" that of the paper.
    lazy : bool, optional
        Keep the points and compute costs and kernels on demand, so that no m×n array ever exists. By default where a
        matrix would be larger than 400 MB.
    device : str, optional
        A GPU, such as "cuda", on which the dual prices of a large problem are computed: squared distances, `Delta`
        kernels, no ``reg``. By default the GPU of the points if they are tensors on one. Smaller problems, and the
        search within a budget, run on the CPU.
    obsm : str, optional
        The key of the points in ``obsm`` of AnnData, such as "X_pca"; without one all variables are taken.
    method, inner, reclaim, effort, polish, gap_tol, time_limit, start, callback, rng, tol, max_iter, progress
        As in `solve`.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(30, 2)), rng.normal(size=(25, 2)) + 1.0
    >>> res = st.solve_sample(X, Y, budget=20)
    >>> res.rows.size, res.sparse_plan.shape
    (20, (30, 25))
    """
    options = Options.checked(
        budget=budget,
        method=method,
        inner=inner,
        reclaim=reclaim,
        effort=effort,
        polish=polish,
        gap_tol=gap_tol,
        time_limit=time_limit,
        start=start,
        callback=callback,
        rng=rng,
        tol=tol,
        max_iter=max_iter,
        progress=progress,
        **unknown,
    )
    if isinstance(X, Problem):
        refuse(X, Y=Y, metric=(metric, "sqeuclidean"), normalize_cost=(normalize_cost, False), forbidden=forbidden)
        problem = as_problem(X, a, b, kernels=kernels, unbalanced=unbalanced, reg=reg, sense=sense, link_cost=link_cost)
        return solve_checked(problem, options, _checks.as_numpy)
    a, b = _tables.of_obs("a", a, X), _tables.of_obs("b", b, Y)
    X, Y = _tables.cells("X", X, obsm), _tables.cells("Y", Y, obsm)
    problem = Problem.from_points(
        X,
        Y,
        a,
        b,
        metric=metric,
        normalize_cost=normalize_cost,
        forbidden=forbidden,
        kernels=kernels,
        unbalanced=unbalanced,
        reg=reg,
        sense=sense,
        link_cost=link_cost,
        lazy=True if lazy is None and device is not None else lazy,
    )
    result = solve_checked(problem, options, _checks.same_kind(X, Y, a, b), device=device_for(problem, device, X))
    _warn_of_weight(result, problem, unbalanced)
    return result


def solve_problem(problem: Problem, *, budget: Budget = None, **options: Unpack[SolveOptions]) -> Result:
    """Solve a `Problem`: an older name of `solve`, which takes one."""
    _checks.warn("solve_problem is deprecated: call solve(problem, ...) instead")
    require_problem(problem, "call solve for an array of costs")
    return solve_checked(problem, Options.checked(budget=budget, **options), _checks.as_numpy)


def solve_support(
    C: ArrayLike | Problem,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    links: StartLike = None,
    kernels: KernelsLike = None,
    unbalanced: WeightsLike = "auto",
    reg: float = 0.0,
    sense: SenseLike = "=",
    link_cost: LinkCostLike = None,
) -> Result:
    """Solve for the optimal masses on given links.

    The certificate of the result compares it with every other plan of as many links.

    Parameters
    ----------
    C, a, b, kernels, unbalanced, reg, sense, link_cost
        As in `solve`.
    links : list of pairs, or a Result
        The rows and columns of the links; those that do not help get no mass.

    Returns
    -------
    Result

    Examples
    --------
    >>> import sparsetransport as st
    >>> st.solve_support([[0.0, 1.0], [1.0, 0.0]], links=[(0, 0), (1, 1)], unbalanced=10.0).mass
    array([0.5, 0.5])
    """
    a, links = second_by_name(C, "links", a, links)
    problem = as_problem(C, a, b, kernels=kernels, unbalanced=unbalanced, reg=reg, sense=sense, link_cost=link_cost)
    pairs = as_pairs("links", links, "a Result or a list of pairs of ints")
    _checks.inside("links", pairs, problem.shape)
    support = np.array(pairs, np.int64).reshape(-1, 2)
    limits = Uniform(max(len(support), 1)).limits(problem.shape)
    return on_support(problem, support[:, 0], support[:, 1], limits, _checks.same_kind(C, a, b))


def lower_bound(
    problem: Problem,
    budget: Budget = None,
    plan: StartLike = None,
    *,
    effort: str | Effort | None = None,
    gap_tol: float = 0.0,
    time_limit: float | None = None,
    progress: bool = False,
) -> Certificate:
    """Prove a lower bound on the objective of all plans within a budget, and so certify a plan from any program.

    Parameters
    ----------
    problem, budget
        As in `solve`.
    plan : array of shape (m, n), SciPy's sparse array, Result or list of pairs, optional
        A plan within the budget. Its masses are used as they are; for a list of pairs, optimal masses are computed. The
        problem is solved in any case, since bounds are found sooner from a good plan.
    effort, gap_tol, time_limit, progress
        As in `Result.certify`, where "thorough" is the default.

    Returns
    -------
    Certificate
        Its ``value`` is the objective of the plan, ``log`` has the bounds that were computed, and ``better`` is a
        better plan if one was found on the way.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> problem = st.Problem.from_matrices(np.arange(9.0).reshape(3, 3) % 4, unbalanced=10.0)
    >>> proof = st.lower_bound(problem, 3, np.roll(np.eye(3), 1, axis=0) / 3)
    >>> proof.lower_bound <= proof.better.value < proof.value
    True
    """
    require_problem(problem)
    options, given = Options.checked(budget=budget, time_limit=time_limit), as_start(plan, "plan")
    how = as_effort("effort", "thorough" if effort is None else effort)
    given.require(problem.shape, problem.labels, "plan")
    proofs: dict[str, Any] = {"effort": how, "gap_tol": gap_tol, "time_limit": time_limit, "progress": progress}
    if plan is None:
        with shown(progress):
            return solve_checked(problem, options, _checks.as_numpy).certify(**proofs)
    rows, cols = as_arrays(given.pairs)
    mass = ActiveSet(problem).solve(rows, cols, np.zeros(len(rows))).mass if given.mass is None else given.mass
    constraint = Constraint(options.matroid, problem.shape)
    search = Search(problem, constraint, how, given=Links([]))
    outcome = Outcome(rows, cols, mass, Status.BASELINE, (), Record(), True)
    if not search.is_within(outcome):
        raise ValueError(f"plan must be within the budget, {options.matroid}, got one with {len(rows)} entries")
    if not np.isfinite(problem.cost.entries(rows, cols)).all():
        raise ValueError("plan must have no mass on forbidden pairs, whose cost is inf")
    theirs = build_result(outcome, search.certifier, _checks.as_numpy)
    with shown(progress):
        ours = solve_checked(problem, options, _checks.as_numpy)
    if ours.value >= theirs.value:
        return theirs.certify(**proofs)
    proof = ours.certify(**proofs)  # bounds are found sooner from a good plan
    return replace(proof, value=theirs.value, better=proof.better or ours)


def _warn_of_weight(result: Result, problem: Problem, unbalanced: WeightsLike) -> None:
    """Warn if little mass or none moves for want of weight, and say which weight would move more."""
    if not problem.is_plain or problem.has_other_units:
        return
    if result.status is Status.EMPTY:
        _warn_of_empty(problem)
    elif result.status is Status.OPTIMAL and not weights_of(unbalanced).need_auto:
        _warn_of_light(result, problem)


def _warn_of_light(result: Result, problem: Problem) -> None:
    """Warn if the weight is small beside "auto" and leaves large errors that the totals do not explain."""
    totals = float(problem.a.sum()), float(problem.b.sum())
    error = max(errors_as_asked(result))
    is_short = result.mass.sum() < min(totals)  # where costs are negative, plans may move more than there is
    if not is_short or error - abs(totals[0] - totals[1]) / max(totals) < _MISSED:
        return
    sides = zip(problem.base, problem.unbalanced, (problem.a, problem.b), strict=True)
    undelivered = sum(float(-0.5 * base @ mass) / weight for base, weight, mass in sides)
    auto = auto_weight(problem.cost.mean, problem.a, problem.b, undelivered)
    if max(problem.unbalanced) <= _LIGHT * auto:
        told = " and ".join(f"{weight:.4g}" for weight in dict.fromkeys(problem.unbalanced))
        _checks.warn(
            f"marginal errors are up to {100.0 * error:.0f} % since unbalanced = {told} makes them cheap: "
            f"unbalanced='auto', which is {auto:.4g} here, moves nearly all mass"
        )


def _warn_of_empty(problem: Problem) -> None:
    """Warn that no mass moves, and say which weight would move some."""
    r, c = problem.base
    factor = np.inf
    for first, costs in problem.cost.blocks():
        gain = -(r[first : first + len(costs), None] + c)  # of moving mass: from what weight on it is worth the cost
        ratio = np.divide(costs, gain, out=np.full_like(gain, np.inf), where=gain > 0.0)
        factor = min(factor, float(ratio.min()))
    if factor < np.inf:
        weights = " and ".join(f"{factor * weight:.3g}" for weight in dict.fromkeys(problem.unbalanced))
        _checks.warn(
            "the plan is empty: moving mass costs more than the marginal errors it removes; the first link needs a "
            f"weight above unbalanced = {weights}, and unbalanced='auto' moves nearly all mass"
        )


def solve_checked(problem: Problem, options: Options, give: Any, *, device: str | None = None) -> Result:
    """Search as the options say, and build the result."""
    with shown(options.progress):
        return _solve_checked(problem, options, give, device)


def _solve_checked(problem: Problem, options: Options, give: Any, device: str | None) -> Result:
    start = options.start
    start.require(problem.shape, problem.labels)
    constraint = Constraint(options.matroid, problem.shape)
    warn_of_rounding(problem)
    if not (problem.is_plain or options.is_compiled):
        raise ValueError(
            'method, inner and reclaim must be "omp", "active_set" and True, the defaults, where sense is not "=", '
            "unbalanced is inf or links have a cost"
        )
    began, seconds = time.monotonic(), np.inf if options.time_limit is None else options.time_limit
    goes_on = options.gap_tol is not None and has_long_bounds(problem, constraint.limits)
    share = options.effort.search_share if goes_on else 1.0
    search = Search(
        problem,
        constraint,
        options.effort,
        given=Links(start.pairs, start.mass),
        tol=options.tol,
        callback=options.callback,
        gap_tol=options.gap_tol,
        deadline=began + share * seconds,
        device=device,
    )
    if options.is_compiled:
        outcome = find(search)
    else:
        outcome = find_by_rule(
            search,
            options.rule,
            matroid=options.matroid,
            inner=options.solver(problem, options.tol, options.max_iter),
            reclaim=options.reclaim,
            rng=options.rng,
        )
    if outcome.status in _UNFINISHED and time.monotonic() > search.deadline:
        is_missing = any(error.any() for error in problem.missed(outcome.rows, outcome.cols, outcome.mass))
        outcome = outcome._replace(status=Status.INFEASIBLE if is_missing else Status.TIME_LIMIT)
    if search.gap_test is None:
        return build_result(outcome, search.certifier, give)
    return _with_gap(search, outcome, search.gap_test, began + seconds, give)


def _with_gap(search: Search, outcome: Outcome, test: GapTest, deadline: float, give: Any) -> Result:
    """The result after as many bounds as its gap asks for, and what they say of it."""
    result, is_late = build_result(outcome, search.certifier, give), outcome.status is Status.TIME_LIMIT
    proofs = {level: replace(proof, value=result.value) for level, proof in test.proofs.items()}
    result._proofs.update(proofs)
    if result.status in (Status.ALL_FORBIDDEN, Status.STOPPED, Status.INFEASIBLE):
        return result
    if result.relative_gap > max(test.gap_tol, _ROUNDING) and proofs:
        known, plan = max(proofs.values(), key=lambda proof: proof.lower_bound), (outcome.rows, outcome.cols)
        proof, better = search.certifier.prove_further(
            (*plan, outcome.mass), known, search.effort, test.gap_tol, deadline
        )
        if better is not None:
            outcome = jumped(search.problem, outcome, Outcome(*better, Status.LOCAL, (), Record(), True))
            result = build_result(outcome, search.certifier, give)
        result._proofs.update({level: replace(each, value=result.value) for level, each in proofs.items()})
        result._proofs[LONG] = replace(proof, value=result.value)
    return replace(result, status=_status_of(result, test.gap_tol, is_late or time.monotonic() > deadline))


def _status_of(result: Result, gap_tol: float, is_late: bool) -> Status:
    """What the gap says of a plan."""
    gap = result.relative_gap
    if result.status in (Status.OPTIMAL, Status.EMPTY) and gap <= max(gap_tol, _ROUNDING):
        return result.status
    if gap <= PROVEN:
        return Status.OPTIMAL_PROVEN
    if gap <= gap_tol:
        return Status.GAP_REACHED
    return Status.TIME_LIMIT if is_late else Status.GAP_OPEN


def solve_after(problem: Problem, options: Options, earlier: Iterable[Result]) -> Result:
    """Solve, and where a plan of a smaller budget is better, once more from it; the better one of the two."""
    result = solve_checked(problem, options, _checks.as_numpy)
    best = min(earlier, key=lambda one: one.value, default=result)
    if best.value >= result.value or result.status is Status.STOPPED:
        return result
    again = solve_checked(problem, options._replace(start=as_start(best)), _checks.as_numpy)
    if again.value < result.value or again.status is not Status.STOPPED:
        return min(result, again, key=lambda one: one.value)
    return replace(result, status=Status.STOPPED)
