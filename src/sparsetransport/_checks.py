"""Checks of arguments: every error names the argument, the rule and the value, before any work starts."""

import importlib
import math
import numbers
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any, Protocol

import array_api_compat
import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from . import _tables

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Seed = int | np.random.Generator | None
"""The source of randomness: a seed, a generator, or None for fresh entropy."""


class _Exchangeable(Protocol):
    """An array of another library, such as a tensor."""

    def __dlpack__(self) -> Any: ...


ArrayLike = npt.ArrayLike | _Exchangeable
"""Arrays of NumPy, PyTorch, JAX or CuPy, tables, and lists of numbers."""

# Packages whose frames are not the user's code.
KEPT = 1e-9  # of what a point wants, see `at_least`: a hard marginal is kept if no sum is off by more
_OURS = ("sparsetransport", "joblib", "concurrent", "threading", "contextlib", "torch")
_NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # dtypes of ml_dtypes, used by JAX, that NumPy sees as raw bytes


class SparseTransportWarning(UserWarning):
    """Something was adjusted, or stopped early; the message says what."""


class ConvergenceWarning(SparseTransportWarning):
    """A solver stopped before it converged."""


def warn(message: str, category: type[SparseTransportWarning] = SparseTransportWarning) -> None:
    """Warn at the line of the user's code, outside of the package and of the libraries that run its threads."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def cuda_device(name: str, device: Any) -> None:
    """Raise an error unless PyTorch finds such a device."""
    try:
        import torch
    except ImportError as err:
        raise missing(f"{name} needs PyTorch", "torch") from err
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as err:
        raise ValueError(f"{name} must be a device of PyTorch such as 'cuda', got {device!r}") from err
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"{name} must be an available device, got {device!r}: PyTorch finds no GPU")


def missing(sentence: str, extra: str) -> ImportError:
    """The error for a missing optional package: the sentence says what needs it, the extra installs it."""
    return ImportError(f"{sentence}: pip install 'sparsetransport[{extra}]'")


def to_numpy(value: Any) -> NDArray[Any]:
    """A NumPy array from any array library, without its gradient, on the CPU."""
    if array_api_compat.is_torch_array(value):
        value = value.detach().cpu()
        # NumPy has no bfloat16, nor anything smaller than half precision.
        return np.asarray(value.float() if value.is_floating_point() and value.itemsize < 4 else value)
    if array_api_compat.is_cupy_array(value):
        return np.asarray(value.get())
    array = np.asarray(_tables.numbers(value))
    if array.dtype == object:
        return _unboxed(array)
    return array.astype(np.float32) if array.dtype.name in _NARROW else array


def _unboxed(array: NDArray[Any]) -> NDArray[Any]:
    """Objects, which tables with nullable dtypes become, as bools, ints or floats where that changes none of them."""
    kinds: tuple[tuple[Any, Any], ...] = (
        (bool | np.bool, np.bool_),
        (numbers.Integral, np.int64),
        (numbers.Real | Decimal, np.float64),
    )
    for kind, dtype in kinds:
        if array.size and all(isinstance(each, kind) for each in array.flat):
            with suppress(OverflowError):  # an int that is too large for the first dtypes
                found = array.astype(dtype)
                if all(
                    one == other or other != other
                    for one, other in zip(found.ravel().tolist(), array.flat, strict=True)
                ):
                    return found
    return array


def _warn_of_gradients(name: str, value: Any) -> None:
    """Warn of a tensor that requires gradients, which do not pass through NumPy."""
    if array_api_compat.is_torch_array(value) and value.requires_grad and sys.modules["torch"].is_grad_enabled():
        warn(
            f"{name} requires a gradient, and none is tracked here: call nn.sparse_transport for plans with gradients, "
            f"or pass {name}.detach()"
        )


def require_entries(name: str, value: Any, *, infinite: bool = False) -> None:
    """Raise an error if an array is sparse or has masked entries."""
    sparse_torch = array_api_compat.is_torch_array(value) and "strided" not in str(value.layout)
    if sparse_torch or hasattr(value, "toarray"):  # SciPy's and CuPy's have that
        cure = ": call .toarray(), where zeros are costs of zero and forbidden pairs must be +inf" if infinite else ""
        raise TypeError(f"{name} must be a dense array, got a sparse {type(value).__name__}{cure}")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        cure = "call .filled(np.inf) to forbid the masked pairs" if infinite else "call .filled(value) to replace them"
        place = tuple(int(k) for k in np.argwhere(np.ma.getmaskarray(value))[0])
        raise ValueError(f"{name} must not have masked entries, got one at {place}: {cure}")


def real_array(name: str, value: Any, *, ndim: int, infinite: bool = False, cure: str = "") -> Floats:
    """``value`` as a contiguous float64 array: not empty, no NaN, no ``-inf``, ``+inf`` only if ``infinite``.

    ``cure`` is a hint for an array with another number of dimensions.
    """
    require_entries(name, value, infinite=infinite)
    _warn_of_gradients(name, value)
    try:
        array = to_numpy(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array of numbers: {error}") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}{_cure(array)}")
    if array.ndim != ndim:
        said = f"{name} must have {ndim} dimension{'s' * (ndim > 1)}, got shape {array.shape}"
        raise ValueError(f"{said}: {cure}" if cure else said)
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    array = np.ascontiguousarray(array, dtype=np.float64)
    # One pass without a temporary of the array's size: a sum is NaN or infinite if an entry is.
    with np.errstate(invalid="ignore", over="ignore"):
        total = float(array.sum())
    if not math.isfinite(total):
        bad = np.isnan(array) | (np.isinf(array) if not infinite else np.isneginf(array))
        if bad.any():
            place = tuple(int(k) for k in np.argwhere(bad)[0])
            raise ValueError(f"{name} must be finite{' or +inf' * infinite}, got {array[place]} at {place}")
    return array if array.flags.writeable else array.copy()


def _cure(array: NDArray[Any]) -> str:
    """What is no number in an array of objects, and what to do about it."""
    if array.dtype.kind in "SU":
        return ": call .astype(float) if its texts are numbers"
    if array.dtype != object or not array.ndim:
        return ""
    for place, each in np.ndenumerate(array):
        where = f" with {each!r} at {tuple(map(int, place))}"
        if isinstance(each, numbers.Real | Decimal):
            if float(each) != each and each == each:
                return f"{where}, which is no float: .astype(float) rounds it"
        elif type(each).__name__ in ("NAType", "NoneType"):
            return f"{where}: fill missing numbers with .fillna(...)"
        else:
            return f"{where}: call .astype(float) if it stands for a number"
    return ": call .astype(float)"


def rounding(value: Any) -> float:
    """The machine epsilon of the dtype that an array was given in, at least that of float64."""
    least = float(np.finfo(np.float64).eps)
    if not array_api_compat.is_array_api_obj(value):
        return least
    namespace = array_api_compat.array_namespace(value)
    floats = namespace.isdtype(value.dtype, "real floating")
    return max(least, float(namespace.finfo(value.dtype).eps)) if floats else least


def tolerance(name: str, value: Any) -> float:
    """A share below one: with one or more every gradient would count as zero."""
    share = number(name, value, positive=True)
    if share >= 1.0:
        raise ValueError(f"{name} must be below 1, since it is a share of the problem's scale, got {value!r}")
    return share


def masses(name: str, value: Any, size: int) -> Floats:
    """Non-negative masses of ``size`` points; uniform with total one for None."""
    if value is None:
        return np.full(size, 1.0 / size)
    cure = "a budget is given by name, as budget=..." if isinstance(value, numbers.Real) else ""
    array = real_array(name, _tables.column(value), ndim=1, cure=cure)
    if array.size != size:
        raise ValueError(f"{name} must have one mass for each of the {size} points, got {array.size}")
    if array.min() < 0.0:
        place = int(array.argmin())
        raise ValueError(f"{name} must not be negative, got {array[place]} at {place}")
    return array.copy()


def weights(value: Any, count: int) -> Floats:
    """A positive weight for each of so many scenarios; equal with total one for None."""
    if value is None:
        return np.full(count, 1.0 / count)
    array = real_array("weights", value, ndim=1)
    if len(array) != count:
        raise ValueError(f"weights must have one number for each of the {count} scenarios, got {len(array)}")
    if array.min() <= 0.0:
        raise ValueError(f"weights must be positive, got {array.min()} at {int(array.argmin())}")
    with np.errstate(over="ignore"):
        if not math.isfinite(array.sum()):
            raise ValueError(f"weights must have a total below 1e308, got {array.max()} among them: rescale them")
    return array.copy()


def pairs(name: str, value: Any, rule: str = "a list of pairs of ints") -> list[tuple[int, int]]:
    """Pairs of a row and a column, each once, in the order given."""
    require_entries(name, value)
    array = to_numpy(value)
    if array.size and (array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != 2):
        raise TypeError(f"{name} must be {rule}, got dtype {array.dtype} and shape {array.shape}")
    return list(dict.fromkeys((int(i), int(j)) for i, j in array.reshape(-1, 2)))


def inside(name: str, value: list[tuple[int, int]], shape: tuple[int, int], rule: str | None = None) -> None:
    """Raise an error unless all pairs lie in a plan of the given shape."""
    for pair in value:
        if not (0 <= pair[0] < shape[0] and 0 <= pair[1] < shape[1]):
            raise ValueError(f"{name} must hold {rule or f'pairs of a plan of shape {shape}'}, got {pair}")


def mask(name: str, value: Any, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """A mask of pairs, from a bool array or a list of pairs."""
    given = to_numpy(value)
    if given.dtype == bool:
        if given.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got {given.shape}")
        return given
    meant = pairs(name, value, "a bool array or a list of pairs of ints")
    inside(name, meant, shape)
    out = np.zeros(shape, bool)
    out[tuple(np.array(meant, np.int64).reshape(-1, 2).T)] = True
    return out


def number(name: str, value: Any, *, positive: bool) -> float:
    """A finite number that is positive, or at least not negative."""
    rule = "a positive number" if positive else "a number that is not negative"
    foreign = not isinstance(value, numbers.Number | np.generic) and array_api_compat.is_array_api_obj(value)
    if foreign and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {rule}, got {value!r}")
    result = float(value)
    if not math.isfinite(result) or result < 0.0 or (positive and result == 0.0):
        raise ValueError(f"{name} must be {rule}, got {value!r}")
    return result


def count(name: str, value: Any) -> int:
    """An integer that is not negative; neither a bool nor a float that looks like one."""
    return _integer(name, value, 0, "an int that is not negative")


def positive_int(name: str, value: Any) -> int:
    """An integer of at least one; neither a bool nor a float that looks like one."""
    return _integer(name, value, 1, "a positive int")


def _integer(name: str, value: Any, least: int, rule: str) -> int:
    if isinstance(value, bool | np.bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be {rule}, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {rule}, got {value!r}")
    return int(value)


def jobs(n_jobs: Any) -> int | None:
    """A number of workers as joblib counts them: -1 for all cores, -2 for all but one, None for the default."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a number of workers, -1 for all cores, or None, got {n_jobs!r}")
    return int(n_jobs)


def threads(n_jobs: Any) -> int:
    """How many threads: one for None, all cores for -1, all but one for -2, and so on, but one at least."""
    count = jobs(n_jobs)
    if count is None:
        return 1
    return count if count > 0 else max(cores() + 1 + count, 1)


def cores() -> int:
    """The number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def generator(name: str, value: Any) -> np.random.Generator:
    """A random generator, from a seed or a generator."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must be a seed or a numpy.random.Generator, got {value!r}") from None


def flag(name: str, value: Any) -> bool:
    """True or False; other truthy or falsy values are refused."""
    if not isinstance(value, bool | np.bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def function(name: str, value: Any) -> Any:
    """A callable, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable, got {value!r}")
    return value


def choice(name: str, value: Any, known: dict[str, Any]) -> Any:
    """``known[value]``, or an error that lists the known names."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
    return known[value]


def as_numpy(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself: what `same_kind` gives for NumPy arrays and lists."""
    return array


class _Like:
    """Converts NumPy arrays to the library and the device of the first of the given arrays; can be pickled.

    Floats get the highest precision among the given arrays, or the default of their library if none holds floats.
    """

    def __init__(self, *values: Any) -> None:
        namespace = array_api_compat.array_namespace(values[0])
        self.namespace = namespace.__name__
        self.device = array_api_compat.device(values[0])
        floats = [
            value.dtype
            for value in values
            if array_api_compat.array_namespace(value) is namespace and namespace.isdtype(value.dtype, "real floating")
        ]
        self.dtype = namespace.result_type(*floats) if floats else None

    def __getstate__(self) -> dict[str, Any]:
        """The state without a device of JAX, which cannot be pickled: its arrays come back on the default device."""
        return self.__dict__ | ({"device": None} if self.namespace.startswith("jax") else {})

    def __call__(self, array: NDArray[Any]) -> Any:
        dtype = self.dtype if array.dtype.kind == "f" else None
        return importlib.import_module(self.namespace).asarray(array, dtype=dtype, device=self.device)


def same_kind(*inputs: Any) -> Callable[[NDArray[Any]], Any]:
    """A function that converts NumPy arrays to the library of the inputs that are not NumPy arrays: see `_Like`."""
    foreign = [
        value
        for value in inputs
        if array_api_compat.is_array_api_obj(value) and not isinstance(value, np.ndarray | np.generic)
    ]
    return _Like(*foreign) if foreign else as_numpy


def at_least(wanted: Floats) -> Floats:
    """What points want, or a thousandth of what the largest does: errors in units of less would be rounding."""
    return np.maximum(wanted, 1e-3 * wanted.max(initial=0.0) or np.finfo(float).tiny)
