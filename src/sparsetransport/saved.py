"""Files of results: NPZ or JSON, exact to the bit, without pickle, and checked when they are read."""

import json
import math
import zipfile
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _checks
from ._files import whole_file
from .budgets import Limits
from .certificate import CHEAP, LONG, TIGHT, BoundRecord, Certificate
from .geometry import _entries
from .geometry.costs import METRICS
from .geometry.kernels import NAMES, Delta, Radial
from .geometry.matrices import Cost, Gram
from .problem import Problem
from .result import Facts, Parts, Result
from .status import Status

FORMAT, VERSION = "sparsetransport result", 1
STORED_UP_TO = 1 << 24  # bytes; a larger problem is saved only on request
_DTYPES = {name: np.dtype(name) for name in ("float64", "int64", "int32", "uint8")}
_KINDS = ".npz", ".json"
_META = "meta"
_BOUNDS = {CHEAP: "cheap", TIGHT: "tight", LONG: "long"}
_SIDES = "a", "b"
_STEPS = "pairs", "objective", "entries", "gone", "gone_until"
_DUALS = "potential_a", "potential_b", "u", "v"

Arrays = dict[str, NDArray[Any]]


class Contents(NamedTuple):
    """What a file holds of a result; the problem and its limits only if they were saved too."""

    parts: Parts
    facts: Facts
    status: Status
    converged: bool
    kkt: float
    log: dict[str, Any]
    steps: dict[str, Any]  # of the path
    proofs: dict[int, Certificate]
    problem: Problem | None
    limits: Limits | None
    tol: float
    is_whole: bool  # the limits are all of the budget


class Backed(Protocol):
    """The problem, and what its plans are compared with: a `Certifier`."""

    problem: Problem
    limits: Limits
    tol: float
    is_whole: bool


def save(path: Any, result: Result, facts: Facts, backed: Backed | None) -> None:
    """Write a result, with its problem if that is given."""
    path = Path(path)
    suffix = _checks.choice("the extension of path", path.suffix, dict(zip(_KINDS, _KINDS, strict=True)))
    arrays, meta = _of_result(result, facts)
    if backed is not None:
        meta["problem"] = _of_problem(backed.problem, arrays) | _of_limits(backed.limits, arrays)
        meta["problem"] |= {"tol": backed.tol, "is_whole": backed.is_whole}
    text = {"format": FORMAT, "version": VERSION, **meta}
    with whole_file(path) as unfinished:
        if suffix == ".npz":
            encoded = json.dumps(_plain(text), allow_nan=False).encode()
            np.savez(unfinished, allow_pickle=False, **arrays, **{_META: np.frombuffer(encoded, np.uint8)})
        else:
            listed = {name: _as_json(array) for name, array in arrays.items()}
            unfinished.write_text(json.dumps(_plain(text) | {"arrays": listed}, allow_nan=False), encoding="utf-8")


def size(problem: Problem) -> int:
    """The bytes of a problem in a file."""
    arrays: Arrays = {}
    _of_problem(problem, arrays)
    return sum(array.nbytes for array in arrays.values())


def read(path: Any) -> Contents:
    """The contents of a file, checked: an error says what is wrong with it."""
    path = Path(path)
    kind = _checks.choice("the extension of path", path.suffix, dict(zip(_KINDS, _KINDS, strict=True)))
    try:
        arrays, meta = _read_npz(path) if kind == ".npz" else _read_json(path)
        if meta.get("format") != FORMAT:
            raise ValueError("it does not have the format of a saved result")
        if meta.get("version") != VERSION:
            raise ValueError(f"it has version {meta.get('version')!r} of the format, but this package reads {VERSION}")
        return _contents(arrays, meta)
    except (ValueError, TypeError, KeyError, zipfile.BadZipFile, EOFError, RecursionError, OverflowError) as error:
        told = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path} must be a result saved by Result.save: {told}") from error


# --- what is written -------------------------------------------------------------------------------------------------


def _of_result(result: Result, facts: Facts) -> tuple[Arrays, dict[str, Any]]:
    """Everything but the problem."""
    parts, path = result._parts, result.path
    arrays: Arrays = {"rows": parts.rows, "cols": parts.cols, "mass": parts.mass, "costs": facts.costs}
    for name in ("wanted", "marginals", "potentials", *(["points"] if parts.points is not None else [])):
        arrays |= {f"{name}_{side}": each for side, each in zip(_SIDES, getattr(parts, name), strict=True)}
    arrays |= {f"path_{name}": getattr(path, name) for name in _STEPS}
    arrays["path_start"] = np.array(path.start, np.int64).reshape(-1, 2)
    proofs: dict[str, dict[str, Any]] = {}
    for level, proof in result._proofs.items():
        name = _BOUNDS[level]
        proofs[name] = {"value": proof.value, "lower_bound": proof.lower_bound, "constant": proof._constant}
        proofs[name]["log"] = list(map(tuple, proof.log))
        arrays |= {f"{name}_{dual}": _checks.to_numpy(getattr(proof, dual)).astype(np.float64) for dual in _DUALS}
    meta = {
        name: getattr(parts, name)
        for name in ("shape", "value", "value_linear", "constant", "sense", "weights", "value_links")
    }
    meta |= {name: getattr(facts, name) for name in ("labels", "library", "kernel_errors", "is_delta", "budget")}
    meta |= {"status": result.status.name, "converged": bool(result.converged), "kkt": result.kkt, "proofs": proofs}
    meta |= {"log": {name: value for name, value in result.log.items() if _is_plain(value)}, "problem": None}
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}, meta


def _of_problem(problem: Problem, arrays: Arrays) -> dict[str, Any]:
    """The parts of a problem that its result does not have already."""
    cost = problem.cost.compiled
    arrays |= {"cost_x": cost.x, "cost_y": cost.y} if problem.cost.is_lazy else {"cost": cost.matrix}
    kernels = []
    for side, gram in zip(_SIDES, (problem.gram_a, problem.gram_b), strict=True):
        kernel = gram.kernel
        radial = {"name": kernel.name, "sigma2": kernel.sigma2} if isinstance(kernel, Radial) else None
        kernels.append({"delta": gram.is_delta, "radial": radial, "bandwidth": gram.bandwidth})
        if gram.kind == _entries.DENSE:
            arrays[f"gram_{side}"] = gram.matrix
        if gram.points.size:
            arrays[f"kernel_points_{side}"] = gram.points
    if problem.link_cost is not None:
        arrays["link_cost"] = problem.link_cost
    metric = {code: name for name, code in METRICS.items() if name != "cosine"}  # which is scaled squared distances
    lazy = {"metric": metric[cost.kind], "scale": cost.scale} if problem.cost.is_lazy else None
    numbers = {"unbalanced": problem.unbalanced, "reg": problem.reg}
    return {"lazy": lazy, "kernels": kernels, "coordinates": problem.coordinates, **numbers}


def _of_limits(limits: Limits, arrays: Arrays) -> dict[str, Any]:
    arrays |= {f"limits_{name}": getattr(limits, name) for name in ("rows", "cols", "labels", "groups")}
    return {"most": int(limits.total)}


# --- what is read ----------------------------------------------------------------------------------------------------


class _Reader:
    """The arrays of a file, each with the dtype and the shape it must have."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def get(self, name: str, dtype: str, *shape: int | None) -> NDArray[Any]:
        """An array; None in the shape for any length."""
        array = self.arrays[name]
        fits = array.ndim == len(shape) and all(
            want in (None, have) for want, have in zip(shape, array.shape, strict=True)
        )
        if array.dtype != _DTYPES[dtype] or not fits:
            raise ValueError(f"{name} has dtype {array.dtype} and shape {array.shape}")
        return array

    def floats(self, name: str, *shape: int | None) -> Any:
        """Finite numbers."""
        array = self.get(name, "float64", *shape)
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has numbers that are not finite")
        return array

    def indices(self, name: str, below: Any, *shape: int | None) -> Any:
        """Whole numbers from zero to below a limit."""
        array = self.get(name, "int64", *shape)
        if ((array < 0) | (array >= below)).any():
            raise ValueError(f"{name} has a number out of range")
        return array


def _contents(arrays: Arrays, meta: dict[str, Any]) -> Contents:
    """The contents, with everything that is used as an index checked."""
    read = _Reader(arrays)
    m, n = shape = _pair(meta["shape"], int)
    if min(shape) < 1:
        raise ValueError(f"the shape is {shape}")
    rows = read.indices("rows", m, None)
    count = len(rows)
    sides = {name: (f"{name}_a", f"{name}_b") for name in ("wanted", "marginals", "potentials", "points")}
    both = {
        name: (read.floats(first, m), read.floats(second, n))
        for name, (first, second) in sides.items()
        if name != "points"
    }
    points = None
    if "points_a" in arrays:
        points = read.floats("points_a", m, None), read.floats("points_b", n, None)
    value, linear, constant = (_float(meta[name]) for name in ("value", "value_linear", "constant"))
    mass, cols = read.floats("mass", count), read.indices("cols", n, count)
    parts = Parts(
        rows,
        cols,
        mass,
        shape,
        value,
        linear,
        both["wanted"],
        both["marginals"],
        both["potentials"],
        points,
        constant,
        _pair(meta["sense"], str),
        _pair(meta["weights"], float),
        _float(meta.get("value_links", 0.0)),
    )
    labels = _pair(meta["labels"], list | None)
    if any(each is not None and len(each) != length for each, length in zip(labels, shape, strict=True)):
        raise ValueError("there must be a label for each row and column")
    errors = _pair(meta["kernel_errors"], float)
    costs = read.floats("costs", count)
    budget = None if meta["budget"] is None else int(meta["budget"])
    facts = Facts(labels, _text(meta["library"]), costs, errors, _pair(meta["is_delta"], bool), budget)
    problem = limits = None
    held, tol, is_whole = meta["problem"], 0.0, False
    if held is not None:
        problem = _problem(held, read, parts, facts)
        limits, tol, is_whole = _limits(held, read, shape), _float(held["tol"]), bool(held["is_whole"])
    return Contents(
        parts,
        facts,
        Status[meta["status"]],
        bool(meta["converged"]),
        _float(meta["kkt"]),
        dict(meta["log"]),
        _steps(read, shape),
        {
            level: _proof(name, meta["proofs"][name], read, shape)
            for level, name in _BOUNDS.items()
            if name in meta["proofs"]
        },
        problem,
        limits,
        tol,
        is_whole,
    )


def _steps(read: _Reader, shape: tuple[int, int]) -> dict[str, Any]:
    """The arrays of a path."""
    pairs, gone = (read.indices(f"path_{name}", shape, None, 2) for name in ("pairs", "gone"))
    count = len(pairs)
    start = read.indices("path_start", shape, None, 2)
    return {
        "pairs": pairs,
        "objective": read.floats("path_objective", count),
        "entries": read.indices("path_entries", np.inf, count),
        "gone": gone,
        "gone_until": read.indices("path_gone_until", len(gone) + 1, count),
        "start": tuple(map(tuple, start.tolist())),
    }


def _proof(name: str, held: dict[str, Any], read: _Reader, shape: tuple[int, int]) -> Certificate:
    """The cheap or the tight certificate."""
    first, second, u, v = (read.floats(f"{name}_{dual}", shape[k % 2]) for k, dual in enumerate(_DUALS))
    log = tuple(BoundRecord(str(bound), _float(value), _float(seconds)) for bound, value, seconds in held["log"])
    value, bound, constant = (_float(held[key]) for key in ("value", "lower_bound", "constant"))
    return Certificate(value, bound, first, second, u, v, constant, log)


def _problem(held: dict[str, Any], read: _Reader, parts: Parts, facts: Facts) -> Problem:
    """The problem, through the checks of its own classes."""
    (m, n), lazy = parts.shape, held["lazy"]
    if lazy is None:
        cost = Cost.of_matrix(_checks.real_array("cost", read.get("cost", "float64", m, n), ndim=2, infinite=True))
    else:
        x = read.floats("cost_x", m, None)
        y, kind = read.floats("cost_y", x.shape[1], n), _checks.choice("metric", lazy["metric"], METRICS)
        cost = Cost(_entries.Cost(kind, np.zeros((0, 0)), x, y, _float(lazy["scale"])), (m, n))
    sides = zip(_SIDES, held["kernels"], parts.shape, strict=True)
    first, second = (_gram(side, about, read, length) for side, about, length in sides)
    weights, reg = _pair(held["unbalanced"], float), _float(held["reg"])
    fees = read.floats("link_cost", m, n) if "link_cost" in read.arrays else None
    names = held.get("coordinates")
    if names is not None and not (isinstance(names, list) and parts.points and len(names) == parts.points[0].shape[1]):
        raise ValueError("there must be a name for each coordinate")
    about: Any = parts.points, facts.labels, parts.sense, facts.library, fees, names
    return Problem(cost, *parts.wanted, first, second, weights, reg, *about)


def _gram(side: str, held: dict[str, Any], read: _Reader, length: int) -> Gram:
    """The kernel of a side."""
    if held["delta"]:
        return Gram.delta(length)
    about, name = held["radial"], f"kernel_points_{side}"
    points = read.floats(name, length, None) if name in read.arrays else np.zeros((0, 0))
    kernel, bandwidth = None, _checks.number("bandwidth", held["bandwidth"], positive=True)
    if about is not None:
        kind: Any = _checks.choice(
            "kernel", about["name"], {name: each for name, each in NAMES.items() if each is not Delta}
        )
        kernel = kind(about["sigma2"])
    if f"gram_{side}" in read.arrays:
        matrix = read.floats(f"gram_{side}", length, length)
        Gram.dense(f"gram_{side}", matrix, length)  # checks it, and would round where it is not quite symmetric
        return Gram(_entries.DENSE, length, matrix, points, bandwidth, kernel)
    if kernel is None or not points.size:
        raise ValueError(f"the kernel of side {side} has neither a matrix nor points")
    return Gram(kernel.code, length, points=points, bandwidth=bandwidth, kernel=kernel)


def _limits(held: dict[str, Any], read: _Reader, shape: tuple[int, int]) -> Limits:
    """What the budget allows."""
    rows, cols = (read.indices(f"limits_{name}", np.inf, k) for name, k in zip(("rows", "cols"), shape, strict=True))
    groups, labels = read.indices("limits_groups", np.inf, None), read.get("limits_labels", "int32", None, *shape)
    if ((labels < -1) | (labels >= len(groups))).any():
        raise ValueError("limits_labels has a number out of range")
    return Limits(int(held["most"]), rows, cols, labels, groups)


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"it has {value!r} in place of a number")
    return float(value)


def _text(value: Any) -> str | None:
    if not isinstance(value, str | None):
        raise ValueError(f"it has {value!r} in place of a name")
    return value


def _pair(value: Any, kind: Any) -> Any:
    """Two values of a kind."""
    if not isinstance(value, tuple) or len(value) != 2 or not all(isinstance(each, kind) for each in value):
        raise ValueError(f"it has {value!r:.80} in place of a pair")
    return value


# --- the two kinds of files ------------------------------------------------------------------------------------------


def _read_npz(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """The arrays of an NPZ file that is neither compressed nor pickled, so that it holds no more than its size."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        if {"row.npy", "col.npy", "data.npy", "format.npy"} <= set(archive.namelist()):
            raise ValueError(
                "it is a sparse array, as `sparsetransport solve --out` writes: scipy.sparse.load_npz reads it"
            )
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if member.compress_type != zipfile.ZIP_STORED or name in arrays or member.file_size > path.stat().st_size:
                raise ValueError(f"its member {member.filename} is compressed, there twice or larger than the file")
            with archive.open(member) as file:
                magic = np.lib.format.read_magic(file)
                header = np.lib.format.read_array_header_1_0 if magic == (1, 0) else np.lib.format.read_array_header_2_0
                shape, by_columns, dtype = header(file)
                data = file.read()
            if (
                dtype not in _DTYPES.values()
                or math.prod(shape) * dtype.itemsize != len(data)
                or min(shape, default=0) < 0
            ):
                raise ValueError(f"its array {name} has dtype {dtype}, shape {shape} and {len(data)} bytes")
            arrays[name] = np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C").copy(order="C")
    text = arrays.pop(_META)
    return arrays, _decoded(text.tobytes().decode())


def _read_json(path: Path) -> tuple[Arrays, dict[str, Any]]:
    meta = _decoded(path.read_text(encoding="utf-8"))
    if "links" in meta and "arrays" not in meta:
        raise ValueError(
            "it is the list of links that `sparsetransport solve --out` writes: json.load reads it, and "
            "solve_support(C, a, b, links=[(each['row'], each['column']) for each in held['links']]) makes a result"
        )
    arrays = meta.pop("arrays")
    return {name: _from_json(name, held) for name, held in arrays.items()}, meta


def _decoded(text: str) -> dict[str, Any]:
    meta = _restored(json.loads(text, parse_constant=_refused))
    if not isinstance(meta, dict):
        raise ValueError("it holds no fields")
    return meta


def _refused(name: str) -> float:
    raise ValueError(f"it contains the number {name}")


def _as_json(array: NDArray[Any]) -> dict[str, Any]:
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "data": [_plain(each) for each in array.ravel().tolist()],
    }


def _from_json(name: str, held: dict[str, Any]) -> NDArray[Any]:
    dtype, data = _checks.choice(f"the dtype of {name}", held["dtype"], _DTYPES), held["data"]
    kinds = (int, float) if dtype.kind == "f" else (int,)
    if not all(type(each) in kinds for each in data):
        raise ValueError(f"{name} must hold numbers only")
    return np.array(data, dtype).reshape(held["shape"])


def _is_plain(value: Any) -> bool:
    try:
        _plain(value)
    except TypeError:
        return False
    return True


def _plain(value: Any) -> Any:
    """A value as JSON has it; a tuple and a number that is not finite are marked."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return {"__float__": str(value)}
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return {"__tuple__": [_plain(each) for each in value]}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    raise TypeError(
        f"a label of {type(value).__name__} cannot be saved, only strings, numbers and tuples of them: rename it, for "
        "instance with .astype(str)"
    )


def _restored(value: Any) -> Any:
    """The value that `_plain` was given."""
    if isinstance(value, dict):
        if value.keys() == {"__float__"}:
            return float(value["__float__"])
        if value.keys() == {"__tuple__"}:
            return tuple(map(_restored, value["__tuple__"]))
        return {key: _restored(each) for key, each in value.items()}
    return list(map(_restored, value)) if isinstance(value, list) else value
