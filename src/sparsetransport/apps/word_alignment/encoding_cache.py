"""A disk cache of encodings, so that a model encodes a sentence pair once."""

import hashlib
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..._files import whole_file
from .encoders import Encoder, TokenPair, VectorPair

BATCH = 256  # pairs between two writes to the disk


class CachedEncoder:
    """An encoder with a disk cache.

    There is one ``.npz`` file for each pair, under the name of the encoder, named by a hash of the words. Files are
    written under a temporary name and then renamed, so that several threads and processes may share a folder and an
    interruption leaves no incomplete file; a file that cannot be read is computed again.

    Parameters
    ----------
    encoder : Encoder
        An encoder with a name, under which its encodings are cached.
    folder : path
        The folder, created if necessary.

    Examples
    --------
    >>> import tempfile
    >>> from sparsetransport.apps.word_alignment.encoders import FunctionEncoder
    >>> from sparsetransport.apps.word_alignment.encoding_cache import CachedEncoder
    >>> def lengths(words):
    ...     print("computed")
    ...     return [[len(word)] for word in words]
    >>> lengths.name = "lengths"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cached = CachedEncoder(FunctionEncoder(lengths), folder)
    ...     first, again = cached.encode([(["a"], ["b"])]), cached.encode([(["a"], ["b"])])
    computed
    computed
    >>> bool((first[0][0] == again[0][0]).all())
    True
    """

    def __init__(self, encoder: Encoder, folder: str | Path) -> None:
        if not encoder.name:
            raise ValueError("cache needs an encoder with a name: give the function an attribute `name`")
        self.encoder, self.name = encoder, encoder.name
        self.folder = Path(folder) / hashlib.sha256(encoder.name.encode()).hexdigest()[:16]
        self.folder.mkdir(parents=True, exist_ok=True)
        label = self.folder / "encoder.txt"
        if not label.exists():
            with whole_file(label) as unfinished:
                unfinished.write_text(encoder.name + "\n", encoding="utf-8")

    def encode(self, pairs: Sequence[TokenPair]) -> list[VectorPair]:
        """The vectors of every pair; those that are not cached are computed and cached."""
        found = [self._read(pair) for pair in pairs]
        missing = [k for k, vectors in enumerate(found) if vectors is None]
        for begin in range(0, len(missing), BATCH):
            batch = missing[begin : begin + BATCH]
            for k, vectors in zip(batch, self.encoder.encode([pairs[k] for k in batch]), strict=True):
                self._write(pairs[k], vectors)
                found[k] = vectors
        return [vectors for vectors in found if vectors is not None]

    def path(self, pair: TokenPair) -> Path:
        """The file of the encoding of a pair."""
        key = hashlib.sha256(json.dumps([list(pair[0]), list(pair[1])]).encode()).hexdigest()
        return self.folder / key[:2] / f"{key[2:34]}.npz"

    def _read(self, pair: TokenPair) -> VectorPair | None:
        try:
            with self.path(pair).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                first, second = file["first"], file["second"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None  # missing or damaged: computed again
        return (first, second) if (len(first), len(second)) == (len(pair[0]), len(pair[1])) else None

    def _write(self, pair: TokenPair, vectors: VectorPair) -> None:
        path = self.path(pair)
        path.parent.mkdir(exist_ok=True)
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, first=vectors[0], second=vectors[1])
