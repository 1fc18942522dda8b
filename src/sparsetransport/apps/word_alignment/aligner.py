"""Word alignment of sentence pairs by sparse plans, with one link for each word and more for phrases.

The costs come from the vectors of the words; `links` computes plans and links from them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ..._checks import Floats
from ...budgets import Pair
from ...plotting import plot_alignment
from . import sample_sentences
from .encoders import Encoder, FunctionEncoder, TokenPair, has_vector, load_encoder
from .encoding_cache import CachedEncoder
from .links import DEFAULTS, Settings, align_costs, word_costs

if TYPE_CHECKING:
    import scipy.sparse
    from matplotlib.axes import Axes

__all__ = ["DEFAULTS", "Alignment", "Settings", "WordAligner", "align_costs", "cosines", "word_costs"]
_CHUNK = 256  # pairs whose vectors are in memory at one time


@dataclass(frozen=True, eq=False)
class Alignment:
    """The links between the words of two sentences.

    Attributes
    ----------
    tokens_1, tokens_2 : tuples of str
        The words.
    links : list of pairs
        Word ``i`` of the first sentence and word ``j`` of the second, sorted; both count from 0.
    scores : list of float
        The mass of every link as a share of the largest mass of its plan, between 0 and 1.

    Examples
    --------
    >>> from sparsetransport.apps.word_alignment import Alignment
    >>> found = Alignment(("a", "big", "house"), ("a", "villa"), [(0, 0), (1, 1), (2, 1)], [1.0, 0.4, 0.9])
    >>> found.pharaoh
    '0-0 1-1 2-1'
    >>> found.unaligned_1, found.unaligned_2
    ([], [])
    >>> found.plan.shape
    (3, 2)
    """

    tokens_1: tuple[str, ...]
    tokens_2: tuple[str, ...]
    links: list[Pair]
    scores: list[float]

    @cached_property
    def unaligned_1(self) -> list[int]:
        """Words of the first sentence without a link."""
        return sorted(set(range(len(self.tokens_1))) - {i for i, _ in self.links})

    @cached_property
    def unaligned_2(self) -> list[int]:
        """Words of the second sentence without a link."""
        return sorted(set(range(len(self.tokens_2))) - {j for _, j in self.links})

    @property
    def pharaoh(self) -> str:
        """The links in Pharaoh format: ``0-0 1-2``."""
        return " ".join(f"{i}-{j}" for i, j in self.links)

    @property
    def words(self) -> list[tuple[str, str]]:
        """The words of every link."""
        return [(self.tokens_1[i], self.tokens_2[j]) for i, j in self.links]

    @property
    def plan(self) -> "scipy.sparse.coo_array":
        """The links and their scores as a sparse matrix, one row for each word of the first sentence."""
        import scipy.sparse

        rows, cols = np.array(self.links, np.int64).reshape(-1, 2).T
        shape = len(self.tokens_1), len(self.tokens_2)
        return scipy.sparse.coo_array((np.array(self.scores, np.float64), (rows, cols)), shape=shape)

    def plot(self, *, ax: "Axes | None" = None, links: Any = None) -> "Axes":
        """Draw the plan as a shaded matrix between the words; ``links`` to compare with are drawn as open squares."""
        return plot_alignment(self.plan, self.tokens_1, self.tokens_2, ax=ax, links=links)


class WordAligner:
    """Aligns the words of sentence pairs of the same language.

    Parameters
    ----------
    encoder : {"minilm", "mpnet", "glove"}, str, path, callable or Encoder
        The source of word vectors: a known encoder, the name or the folder of any Hugging Face model, a function that
        takes the words of a sentence and returns one row of numbers for each word, or an `Encoder`.
    layer : int, optional
        The hidden layer of a transformer, counted from the last one (-1); by default the best one for known encoders.
    cache : path, optional
        A folder to cache encodings in, so that the model encodes a pair once.
    batch_size : int
        The number of sentence pairs that a transformer encodes at once.
    trust_remote_code : bool
        Run Python code that comes with a Hugging Face model, and load pickled weights, which can run code too. By
        default neither is done: such a model raises an error.
    lower : bool
        Convert the words to lower case.
    **settings
        See `Settings`; the defaults are the best ones on the dev split of MultiMWA-Wiki.

    Notes
    -----
    Vectors are compared by their cosine after subtracting a mean vector: by default that of sample sentences in this
    package, so that an alignment depends on its pair alone; after `fit`, that of your corpus. From the vectors of a
    function nothing is subtracted unless `fit` is called. A zero vector means that a word has no vector, such as a word
    missing in GloVe: it can only be linked to the same word.

    Examples
    --------
    >>> from sparsetransport.apps.word_alignment import WordAligner
    >>> def letters(words):  # simple vectors: the letters of a word
    ...     return [[word.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for word in words]
    >>> aligner = WordAligner(letters)
    >>> found = aligner.align("the cat sleeps today", "the cats sleep")
    >>> found.pharaoh, [found.tokens_1[i] for i in found.unaligned_1]
    ('0-0 1-1 2-2', ['today'])
    """

    def __init__(
        self,
        encoder: Any = "minilm",
        *,
        layer: int | None = None,
        cache: str | Path | None = None,
        batch_size: int = 16,
        trust_remote_code: bool = False,
        lower: bool = True,
        **settings: float,
    ) -> None:
        unknown = set(settings) - set(Settings._fields)
        if unknown:
            raise TypeError(f"settings must be among {', '.join(Settings._fields)}, got {', '.join(sorted(unknown))}")
        self.settings = Settings(**settings).checked()
        self.lower = lower
        size = _checks.positive_int("batch_size", batch_size)
        found = load_encoder(encoder, layer=layer, batch_size=size, trust_remote_code=trust_remote_code)
        self.encoder: Encoder = found if cache is None else CachedEncoder(found, cache)
        self._plain = isinstance(found, FunctionEncoder)
        self._centre: Floats | None = None

    def fit(self, pairs: Iterable[tuple[Any, Any]]) -> "WordAligner":
        """Subtract the mean vector of these pairs from all vectors from now on; returns the aligner."""
        total: Any = 0.0
        count = 0
        for chunk in _chunks(pairs):
            for vectors in self.encoder.encode([pair for pair in map(self._read, chunk) if pair[0] and pair[1]]):
                total = total + sum(side.sum(axis=0, dtype=np.float64) for side in vectors)
                count += sum(int(has_vector(side).sum()) for side in vectors)
        if not count:
            raise ValueError("pairs must hold at least one word with a vector, got none")
        self._centre = np.asarray(total / count)
        return self

    def align(self, tokens_1: Any, tokens_2: Any) -> Alignment:
        """The alignment of two sentences: lists of words, or strings that are split at white space."""
        return self.align_many([(tokens_1, tokens_2)])[0]

    def align_many(self, pairs: Iterable[tuple[Any, Any]], *, n_jobs: int | None = None) -> list[Alignment]:
        """The alignments of many pairs, in order, solved by ``n_jobs`` workers.

        The result for a pair does not depend on the others.
        """
        found: list[Alignment] = []
        for chunk in _chunks(pairs):
            words = [(_words("tokens_1", first), _words("tokens_2", second)) for first, second in chunk]
            costs = self.costs(words)
            for (first, second), links in zip(words, align_costs(costs, self.settings, n_jobs=n_jobs), strict=True):
                found.append(Alignment(first, second, *links))
        return found

    def costs(self, pairs: Sequence[tuple[Any, Any]]) -> list[Floats]:
        """The costs between the words of every pair, from 0 to 1; infinite from a word without a vector to others."""
        read = [self._read(pair) for pair in pairs]
        full = [k for k, (first, second) in enumerate(read) if first and second]
        costs = [np.zeros((len(first), len(second))) for first, second in read]
        for k, (x, y) in zip(full, self.encoder.encode([read[k] for k in full]), strict=True):
            unknown = ~has_vector(x)[:, None] | ~has_vector(y)
            same = _same(*read[k]) if unknown.any() else unknown
            cosine = np.where(unknown & same, 1.0, cosines(x, y, self.centre))
            costs[k] = word_costs(cosine, self.settings.distortion, self.settings.smoothing)
            costs[k][unknown & ~same] = np.inf
        return costs

    @property
    def centre(self) -> Floats | None:
        """The mean vector that is subtracted, or None."""
        if self._centre is None and not self._plain:
            self.fit(sample_sentences.PAIRS)
        return self._centre

    def _read(self, pair: tuple[Any, Any]) -> TokenPair:
        """The words in the form that the encoder takes."""
        first, second = _words("tokens_1", pair[0]), _words("tokens_2", pair[1])
        if not self.lower:
            return first, second
        return [word.lower() for word in first], [word.lower() for word in second]


def cosines(x: Any, y: Any, centre: Any = None) -> Floats:
    """The cosines between two lists of vectors after subtracting a centre; 0 for a zero vector, which means none.

    Examples
    --------
    >>> from sparsetransport.apps.word_alignment import cosines
    >>> cosines([[2.0, 0.0]], [[1.0, 0.0], [0.0, 3.0], [0.0, 0.0]]).tolist()
    [[1.0, 0.0, 0.0]]
    """
    sides = []
    for side in (x, y):
        vectors = np.asarray(side, np.float64)
        if centre is not None:
            vectors = np.where(has_vector(vectors)[:, None], vectors - centre, 0.0)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        sides.append(vectors / np.where(length > 0.0, length, 1.0))
    return np.asarray(np.clip(sides[0] @ sides[1].T, -1.0, 1.0))


def _words(name: str, sentence: Any) -> tuple[str, ...]:
    """The words of a sentence."""
    if not isinstance(sentence, Iterable):
        raise TypeError(f"{name} must be a string or a list of words, got {sentence!r}")
    words = tuple(sentence.split()) if isinstance(sentence, str) else tuple(sentence)
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"{name} must be a string or a list of words, got {word!r} in it")
    return words


def _same(first: Sequence[str], second: Sequence[str]) -> NDArray[np.bool_]:
    """Which words of two sentences are the same."""
    return np.asarray(np.array(first, object)[:, None] == np.array(second, object))


def _chunks(pairs: Iterable[tuple[Any, Any]]) -> Iterable[list[tuple[Any, Any]]]:
    """The pairs in chunks."""
    held: list[tuple[Any, Any]] = []
    for number, pair in enumerate(pairs):
        if isinstance(pair, str) or len(pair) != 2:
            raise ValueError(f"pairs must hold two sentences each, got {pair!r} at {number}")
        held.append(pair)
        if len(held) == _CHUNK:
            yield held
            held = []
    if held:
        yield held
