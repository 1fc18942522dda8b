"""What a result says of itself: a title, and figures a line each."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _checks, describe
from ._checks import Floats, Ints
from .status import Status

if TYPE_CHECKING:
    from .result import Parts, Result

_NAMED = 5  # points that are named one by one
_OFF = 0.05  # a marginal error for which a larger weight would use more links
_LITTLE = 1e-3  # of the mass of a point: an error that is told for all points together
_ROUNDING = 1e-14  # of the objective of the empty plan: a value that is none
_SMALL = 1e-300  # in place of a total of zero
_MANY = 10.0  # a share that is told as a multiple, not in per cent
_FEW = 0.1  # a share that is told with a digit after the point


def title(result: "Result") -> str:
    """The result in a line."""
    (m, n), errors = result._parts.shape, errors_as_asked(result)
    told = [_error(*each, digits=int(each[0] < _FEW)) for each in zip(errors, result._parts.wanted, strict=True)]
    off = f"marginal errors {told[0]} and {told[1]}, " * (max(errors) >= 0.01)
    entries = f"{result._parts.mass.size} of {m}x{n} entries"
    return f"Result({entries}, value={_told(result._parts, result.value):.4g}, {off}{_sentence(result)})"


def summary_lines(result: "Result", *, bound: bool) -> dict[str, str]:
    """The figures of a plan, each with its name."""
    parts = result._parts
    (m, n), missed, facts = parts.shape, result.marginal_errors, result._facts
    empty = [without_link(parts, side) for side in (0, 1)]
    told = [describe.named(each, names) for each, names in zip(empty, facts.labels, strict=True)]
    kernel = {
        f"in the kernel's norm, {side}": _error(error, wanted)
        for side, error, wanted, is_delta in zip(
            ("rows", "columns"), facts.kernel_errors, parts.wanted, facts.is_delta, strict=True
        )
        if not is_delta
    }
    lines = {"entries": f"{len(parts.mass)} of {m} x {n}", "objective": f"{_told(parts, result.value):.6g}"}
    if bound and result.value < math.inf:
        lines["lower bound"] = f"{_told(parts, result.lower_bound):.6g}"
        lines["gap"] = f"{_figure(max(_told(parts, result.gap), 0.0))} ({_share(result.relative_gap)} the objective)"
    return lines | {
        "mass moved": _moved(*(float(each.sum()) for each in (parts.mass, *parts.wanted))),
        "cost of transport": f"{_told(parts, result.value_linear):.6g}",
        **({"cost of links": f"{result.value_links:.6g}"} if result.value_links else {}),
        "weight of marginals": " and ".join(map(_weight, dict.fromkeys(result.log["unbalanced"]))),
        "marginal error, rows": _error(missed[0], parts.wanted[0]),
        "marginal error, columns": _error(missed[1], parts.wanted[1]),
        **kernel,
        "without a link": f"{len(empty[0])} of {m} rows{told[0]} and {len(empty[1])} of {n} columns{told[1]}",
        **_sided_lines(result),
        "status": _sentence(result),
    }


def _sentence(result: "Result") -> str:
    """The status, or why the budget is not used up: the weight is small, or the bandwidth makes fewer links enough."""
    facts, count = result._facts, result._parts.mass.size
    is_left = facts.budget is not None and 0 < count < facts.budget
    if result.status is Status.OPTIMAL and is_left and not all(facts.is_delta):
        first, second = (float(side.sum()) for side in result._parts.wanted)
        if max(errors_as_asked(result)) >= _OFF + abs(first - second) / max(first, second, _SMALL):
            return f"{count} of {facts.budget} links: with this weight of marginals more would not lower the objective"
        return f"{count} of {facts.budget} links: at this bandwidth more would not lower the objective"
    return str(result.status)


def _told(parts: "Parts", value: float) -> float:
    """A value of the objective, or zero if it is what rounding leaves of the objective of the empty plan."""
    return 0.0 if abs(value) <= _ROUNDING * abs(parts.constant) < math.inf else value


def errors_as_asked(result: "Result") -> tuple[float, float]:
    """The marginal errors in the norm that was asked for: point by point under `Delta`, else in that of the kernel."""
    facts = result._facts
    pairs = zip(facts.is_delta, result.marginal_errors, facts.kernel_errors, strict=True)
    first, second = (single if is_delta else smooth for is_delta, single, smooth in pairs)
    return first, second


def without_link(parts: "Parts", side: int) -> Ints:
    """The points of a side that want mass and have none."""
    return np.flatnonzero((parts.wanted[side] > 0.0) & (parts.marginals[side] == 0.0))


def _weight(weight: float) -> str:
    return "hard" if weight == math.inf else f"{weight:.6g}"


def _sided_lines(result: "Result") -> dict[str, str]:
    """What is missing, too much and idle, where a side has a sense of its own or is hard."""
    parts, names = result._parts, describe.ends(result._facts.labels, result._parts.shape)
    if parts.sense == ("=", "=") and math.inf not in parts.weights:
        return {}
    lines = {}
    for heading, sides, counts in (
        (("not sent", "unserved"), result.unserved, ("=", ">=")),
        (("sent beyond the masses", "delivered beyond the masses"), result.excess, ("=", "<=")),
    ):
        for side, of in enumerate(("rows", "columns")):
            if parts.sense[side] in counts:
                error = _checks.to_numpy(sides[side])
                lines[heading[side]] = _points(error, parts.wanted[side], of, names[side]) or "nothing"
    if "<=" in parts.sense:
        told = [
            _points(_checks.to_numpy(result.idle[side]), parts.wanted[side], of, names[side])
            for side, of in enumerate(("rows", "columns"))
        ]
        lines["idle"] = "; ".join(filter(None, told)) or "nothing"
    if result.status is Status.INFEASIBLE and result.problem is not None:
        least = result._backing.least_links()
        lines["links needed"] = (
            "no number of links is enough" if least == math.inf else f"at least {least:.0f}, whichever they are"
        )
        if result._backing.totals_differ():
            sent, received = (f"{float(wanted.sum()):.6g}" for wanted in parts.wanted)
            lines["links needed"] += f": the totals, {sent} and {received}, do not allow both hard marginals"
    return lines


def _points(error: Floats, wanted: Floats, of: str, names: list[Any]) -> str:
    """How much it is, at how many points, and which; nothing if there is nothing."""
    places = np.flatnonzero(error)
    if not places.size:
        return ""
    total = float(wanted.sum())
    told = f"{float(error.sum()):.6g}" + (f" of {total:.6g}" if total else "")
    if (error <= _LITTLE * wanted).all():
        return f"{told}, less than 0.1 % at each of the {of}"
    order = places[np.argsort(-error[places], kind="stable")][:_NAMED]
    named = ", ".join(str(names[k]) for k in sorted(order.tolist()))
    more = f" and {places.size - _NAMED} more" if places.size > _NAMED else ""
    return f"{told}, at {places.size} of {len(error)} {of} ({named}{more})"


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
