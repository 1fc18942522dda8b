"""How results show themselves: tables, graphs, and a picture in a notebook."""

from html import escape
from typing import Any

import numpy as np

from . import _checks, _tables

_WIDTH, _HEIGHT, _MARGIN = 320.0, 200.0, 10.0  # of the picture, in pixels
_LINES, _DOTS = 300, 600  # drawn at most
_COLOURS = "#0072B2", "#D55E00"  # of sources and targets
_SMALL = 1e-300  # in place of an extent of zero
_NAMED = 3  # points that a sentence names
_LIBRARIES = {name: name for name in ("pandas", "polars", "pyarrow", "modin", "cudf")}


def ends(labels: tuple[Any, Any], shape: tuple[int, int]) -> tuple[list[Any], list[Any]]:
    """What rows and columns are called: their labels, or their numbers."""
    first, second = (list(range(n)) if each is None else each for each, n in zip(labels, shape, strict=True))
    return first, second


def frame(parts: Any, facts: Any, library: str | None) -> Any:
    """A table with one row for each link."""
    rows, cols = ends(facts.labels, parts.shape)
    columns = {
        "source": [rows[i] for i in parts.rows.tolist()],
        "target": [cols[j] for j in parts.cols.tolist()],
        "mass": parts.mass.copy(),
        "cost": facts.costs.copy(),
    }
    chosen = facts.library or "pandas" if library is None else _checks.choice("library", library, _LIBRARIES)
    return _tables.built(columns, chosen)


def graph(parts: Any, facts: Any) -> Any:
    """A directed graph of NetworkX with every point, linked or not."""
    try:
        import networkx
    except ImportError:
        raise ImportError("to_networkx needs NetworkX: pip install networkx") from None
    found = networkx.DiGraph()
    names = ends(facts.labels, parts.shape)
    for side, kind in enumerate(("source", "target")):
        masses = zip(parts.wanted[side].tolist(), parts.marginals[side].tolist(), strict=True)
        for k, (name, (wanted, moved)) in enumerate(zip(names[side], masses, strict=True)):
            place = {} if parts.points is None else {"pos": tuple(parts.points[side][k].tolist())}
            found.add_node((kind, name), bipartite=side, wanted=wanted, moved=moved, **place)
    links = zip(parts.rows.tolist(), parts.cols.tolist(), parts.mass.tolist(), facts.costs.tolist(), strict=True)
    for i, j, mass, cost in links:
        found.add_edge(("source", names[0][i]), ("target", names[1][j]), mass=mass, cost=cost)
    return found


def into_obsp(parts: Any, facts: Any, data: Any, key: str) -> Any:
    """Put the plan into ``obsp`` of an AnnData that holds the points of both sides, as a CSR array: that array."""
    import scipy.sparse

    count = len(data.obs_names)
    places = {name: place for place, name in enumerate(data.obs_names)}
    ends = []
    for name, labels, side in zip(("rows", "columns"), facts.labels, (parts.rows, parts.cols), strict=True):
        lost = ["numbers alone"] if labels is None else [each for each in labels if each not in places]
        if lost or len(places) < count:
            raise ValueError(
                f"data must have all {name} of the plan in obs_names, once each, "
                + (f"got none for {lost[:3]}" if lost else "got some twice")
            )
        ends.append(np.array([places[labels[k]] for k in side.tolist()], np.int64))
    plan = scipy.sparse.csr_array((parts.mass, (ends[0], ends[1])), shape=(count, count))
    data.obsp[key] = plan
    return plan


def named(places: Any, labels: list[Any] | None) -> str:
    """The first of some points by name, or by number if they have no labels, in brackets; nothing if there are none."""
    if not len(places):
        return ""
    told = ", ".join(str(k if labels is None else labels[k]) for k in np.asarray(places)[:_NAMED].tolist())
    return f" ({told}{', ...' if len(places) > _NAMED else ''})"


def html(title: str, lines: dict[str, str], parts: Any) -> str:
    """The figures of a plan beside its picture, for a notebook."""
    told = "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in lines.items())
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">'
        f"<table><caption>{escape(title)}</caption><tbody>{told}</tbody></table>{picture(parts)}</div>"
    )


def picture(parts: Any) -> str:
    """The largest links as an SVG: between points of the plane, or else between two columns of dots."""
    places = _in_plane(parts) if parts.points is not None and parts.points[0].shape[1] == 2 else _in_columns(parts)
    order = np.argsort(parts.mass)[::-1][:_LINES]
    largest = float(parts.mass.max(initial=0.0)) or 1.0
    drawn = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:g}" height="{_HEIGHT:g}" role="img">']
    drawn.append(f"<title>{len(order)} of {len(parts.mass)} links</title>")
    for k in order:
        (x, y), (u, v) = places[0][parts.rows[k]], places[1][parts.cols[k]]
        width = 0.5 + 2.5 * parts.mass[k] / largest
        drawn.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}" stroke="#888" stroke-width="{width:.1f}"/>'
        )
    for dots, colour in zip(places, _COLOURS, strict=True):
        for x, y in dots[:: -(-len(dots) // _DOTS)]:
            drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>')
    return "".join(drawn) + "</svg>"


def _in_plane(parts: Any) -> tuple[Any, Any]:
    both = np.concatenate(parts.points)
    low, high = both.min(axis=0), both.max(axis=0)
    room = np.array([_WIDTH, _HEIGHT]) - 2.0 * _MARGIN
    scale = float((room / np.maximum(high - low, _SMALL)).min())
    first, second = (
        np.column_stack([_MARGIN + (each[:, 0] - low[0]) * scale, _HEIGHT - _MARGIN - (each[:, 1] - low[1]) * scale])
        for each in parts.points
    )
    return first, second


def _in_columns(parts: Any) -> tuple[Any, Any]:
    first, second = (
        np.column_stack([np.full(count, x), np.linspace(_MARGIN, _HEIGHT - _MARGIN, count)])
        for count, x in zip(parts.shape, (_MARGIN, _WIDTH - _MARGIN), strict=True)
    )
    return first, second
