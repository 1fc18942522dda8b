"""Plans to CSV, NPZ and JSON files."""

import csv
import json
import math
import platform
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import scipy.sparse

from .. import __version__
from ..result import Result
from .cells import label_cell

ENDINGS = (".csv", ".npz", ".json")


class Labels(NamedTuple):
    """The names of rows and columns, if the files have them."""

    rows: list[str] | None
    cols: list[str] | None


def write_plan(path: Path, ending: str, result: Result, labels: Labels, details: dict[str, Any]) -> None:
    """Write the plan in the format of a file extension, to a file of any name."""
    if ending == ".npz":
        with path.open("wb") as file:
            scipy.sparse.save_npz(file, result.sparse_plan)
        return
    with path.open("w", encoding="utf-8", newline="") as text:
        if ending == ".csv":
            write_links(text, result, labels)
        else:
            json.dump(as_json(result, labels, details), text, indent=1, allow_nan=False, ensure_ascii=False)
            text.write("\n")


def write_links(file: TextIO, result: Result, labels: Labels) -> None:
    """Write one line for each link, ordered by row and column, with exact masses."""
    found = links(result, Labels(*(None if names is None else list(map(label_cell, names)) for names in labels)))
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_keys(labels))
    writer.writerows(link.values() for link in found)


def links(result: Result, labels: Labels) -> list[dict[str, Any]]:
    """Every link with its row, column, mass, and labels if there are any; rows and columns count from 0."""
    rows, cols, mass = result.rows, result.cols, result.mass
    order = np.lexsort((cols, rows))
    names = _keys(labels)
    found = []
    for i, j, moved in zip(rows[order].tolist(), cols[order].tolist(), mass[order].tolist(), strict=True):
        known = (i, j, moved, labels.rows and labels.rows[i], labels.cols and labels.cols[j])
        every = dict(zip(("row", "column", "mass", "row_label", "column_label"), known, strict=True))
        found.append({name: every[name] for name in names})
    return found


def as_json(result: Result, labels: Labels, details: dict[str, Any]) -> dict[str, Any]:
    """The links, the figures of the plan, its certificate, and the versions that computed it."""
    return {
        "shape": list(result.sparse_plan.shape),
        "links": links(result, labels),
        "value": _finite(result.value),
        "value_linear": result.value_linear,
        "value_links": result.value_links,
        "status": str(result.status),
        "converged": result.converged,
        "unbalanced": [_finite(weight) for weight in result.log["unbalanced"]],  # null: hard
        "sense": list(result.log["sense"]),
        "reg": result.log["reg"],
        **{name: _finite(value) for name, value in details.items()},
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """The versions of the packages that the numbers depend on."""
    return {
        "sparsetransport": __version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("numpy", "scipy", "numba")},
    }


def _keys(labels: Labels) -> list[str]:
    names = ["row", "column", "mass"]
    return names + ["row_label"] * (labels.rows is not None) + ["column_label"] * (labels.cols is not None)


def _finite(value: Any) -> Any:
    """JSON has no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
