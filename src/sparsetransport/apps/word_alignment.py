"""Which words of two sentences stand for each other: a sparse plan between the words, one link a word and then some.

The costs come from the vectors of the words, and two plans are made from them. The first allows a word one link. A
word that it leaves over and that stands beside a linked one may join it in the second, so that phrases are found.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from .._checks import Floats
from .._jit import kernel
from ..batch import solve_batch
from ..geometry.kernels import Delta
from ..geometry.matrices import Cost, Gram, as_gram
from ..matroids import Pair, PerColumn, PerRow
from ..plotting import plot_alignment
from ..problem import Problem
from ..result import Result
from . import sample_sentences
from .encoders import Encoder, FunctionEncoder, TokenPair, has_vector, load_encoder
from .encoding_cache import CachedEncoder

if TYPE_CHECKING:
    import scipy.sparse
    from matplotlib.axes import Axes

Ints = NDArray[np.int64]
_ONE_EACH = PerRow(1) & PerColumn(1)
_CHUNK = 256  # pairs whose vectors are held at once
_EPSILON = 1e-10  # keeps the scaling of a constant matrix finite


class Settings(NamedTuple):
    """What the links depend on beside the vectors; the defaults were tuned on the dev split of MultiMWA-Wiki.

    Attributes
    ----------
    distortion : float
        How much of their similarity two words at opposite ends of their sentences lose, from 0 to 1.
    smoothing : float
        The weight of the pairs of words before and after, (i-1, j-1) and (i+1, j+1), in the similarity of (i, j).
    neighbours : float
        ρ, from 0 to below ½: how much a word that is left over pulls the words beside it. Marginal errors are measured
        with the Gram matrix that has 1 on the diagonal and -ρ beside it.
    unbalanced : float
        λ of the first plan.
    threshold : float
        Entries of the first plan above this share of its largest one are links.
    phrases : float
        λ of the second plan, which is the larger the more words join the link beside them; 0 for no second plan.
    """

    distortion: float = 0.1
    smoothing: float = 0.2
    neighbours: float = 0.2
    unbalanced: float = 0.5
    threshold: float = 0.6
    phrases: float = 0.15

    def checked(self) -> "Settings":
        """These, if they make sense."""
        for name in ("distortion", "smoothing", "phrases"):
            _checks.number(name, getattr(self, name), positive=False)
        _checks.number("unbalanced", self.unbalanced, positive=True)
        if self.distortion > 1.0:
            raise ValueError(f"distortion must be a number from 0 to 1, got {self.distortion!r}")
        if not 0.0 <= _checks.number("neighbours", self.neighbours, positive=False) < 0.5:
            raise ValueError(f"neighbours must be a number from 0 to below 0.5, got {self.neighbours!r}")
        if not 0.0 <= _checks.number("threshold", self.threshold, positive=False) < 1.0:
            raise ValueError(f"threshold must be a number from 0 to below 1, got {self.threshold!r}")
        return self


DEFAULTS = Settings()
"""What won on MultiMWA-Wiki."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """The links between the words of two sentences.

    Attributes
    ----------
    tokens_1, tokens_2 : tuples of str
        The words.
    links : list of pairs
        Word ``i`` of the first sentence and word ``j`` of the second, in order; both count from 0.
    scores : list of float
        The mass of every link as a share of the largest one of its plan, between 0 and 1.

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
        """The links as most tools read them: ``0-0 1-2``."""
        return " ".join(f"{i}-{j}" for i, j in self.links)

    @property
    def words(self) -> list[tuple[str, str]]:
        """The words of every link."""
        return [(self.tokens_1[i], self.tokens_2[j]) for i, j in self.links]

    @property
    def plan(self) -> "scipy.sparse.coo_array":
        """The links and their scores as a sparse matrix, one row a word of the first sentence."""
        import scipy.sparse

        rows, cols = np.array(self.links, np.int64).reshape(-1, 2).T
        shape = len(self.tokens_1), len(self.tokens_2)
        return scipy.sparse.coo_array((np.array(self.scores, np.float64), (rows, cols)), shape=shape)

    def plot(self, *, ax: "Axes | None" = None, links: Any = None) -> "Axes":
        """Draw the plan as a shaded matrix between the words; ``links`` to compare with are drawn as open squares."""
        return plot_alignment(self.plan, self.tokens_1, self.tokens_2, ax=ax, links=links)


class WordAligner:
    """Aligns the words of sentence pairs in one language.

    Parameters
    ----------
    encoder : {"minilm", "mpnet", "glove"}, str, path, callable or Encoder
        What gives words their vectors: a known encoder, the name or the folder of any Hugging Face model, a function
        that takes the words of a sentence and gives one row of numbers a word, or an `Encoder`.
    layer : int, optional
        The hidden layer of a transformer, counted from the last one (-1); what is best for the known ones by default.
    cache : path, optional
        A folder where encodings are kept, so that a pair is read by the model once.
    batch_size : int
        Sentence pairs that a transformer reads at once.
    lower : bool
        Read the words in lower case.
    **settings
        See `Settings`; the defaults are those that won on MultiMWA-Wiki.

    Notes
    -----
    Vectors are compared by their cosine after the mean vector has been taken off: by default that of a few sentences
    that come with this package (so that an alignment depends on nothing but its pair), after `fit` that of a corpus of
    yours. The vectors of a function are taken as they are unless `fit` is called. A word whose vector is zero, such as
    one that GloVe does not know, has none: it is linked to the same word alone.

    Examples
    --------
    >>> from sparsetransport.apps.word_alignment import WordAligner
    >>> def letters(words):  # a poor man's vectors: which letters a word has
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
        lower: bool = True,
        **settings: float,
    ) -> None:
        unknown = set(settings) - set(Settings._fields)
        if unknown:
            raise TypeError(f"settings must be among {', '.join(Settings._fields)}, got {', '.join(sorted(unknown))}")
        self.settings = Settings(**settings).checked()
        self.lower = lower
        found = load_encoder(encoder, layer=layer, batch_size=_checks.positive_int("batch_size", batch_size))
        self.encoder: Encoder = found if cache is None else CachedEncoder(found, cache)
        self._plain = isinstance(found, FunctionEncoder)
        self._centre: Floats | None = None

    def fit(self, pairs: Iterable[tuple[Any, Any]]) -> "WordAligner":
        """Take the mean vector of these pairs off all vectors from now on; the aligner itself is returned."""
        total: Any = 0.0
        count = 0
        for chunk in _chunks(pairs):
            for vectors in self.encoder.encode([pair for pair in map(self._read, chunk) if pair[0] and pair[1]]):
                total = total + sum(side.sum(axis=0, dtype=np.float64) for side in vectors)
                count += sum(int(has_vector(side).sum()) for side in vectors)
        if not count:
            raise ValueError("pairs must hold words with vectors to take the mean of, got none")
        self._centre = np.asarray(total / count)
        return self

    def align(self, tokens_1: Any, tokens_2: Any) -> Alignment:
        """The alignment of two sentences: lists of words, or strings that are split at white space."""
        return self.align_many([(tokens_1, tokens_2)])[0]

    def align_many(self, pairs: Iterable[tuple[Any, Any]], *, n_jobs: int | None = None) -> list[Alignment]:
        """The alignments of many pairs, in order; with ``n_jobs`` solved by so many workers.

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
        """The costs between the words of every pair, from 0 to 1; infinite for a word without a vector and another."""
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
        """The vector that is taken off; None for none."""
        if self._centre is None and not self._plain:
            self.fit(sample_sentences.PAIRS)
        return self._centre

    def _read(self, pair: tuple[Any, Any]) -> TokenPair:
        """The words as the encoder reads them."""
        first, second = _words("tokens_1", pair[0]), _words("tokens_2", pair[1])
        if not self.lower:
            return first, second
        return [word.lower() for word in first], [word.lower() for word in second]


def cosines(x: Any, y: Any, centre: Any = None) -> Floats:
    """The cosines between two lists of vectors, off a centre; a zero vector stands for none and is like no other.

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


def word_costs(cosine: Floats, distortion: float = 0.0, smoothing: float = 0.0) -> Floats:
    """The costs of links between words, from 0 to 1, from the cosines of their vectors.

    The similarity (1 + cosine) / 2 of two words falls with the square of the difference of their places in their
    sentences (by ``distortion`` from one end to the other), is averaged with that of the words before and after (with
    weight ``smoothing``), and is scaled so that the best pair costs 0 and the worst one 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsetransport.apps.word_alignment import word_costs
    >>> word_costs(np.array([[1.0, 0.0], [-1.0, 0.5]])).round(3)
    array([[0.  , 0.5 ],
           [1.  , 0.25]])
    """
    m, n = cosine.shape
    similarity = 0.5 * (cosine + 1.0)
    if distortion:
        places = np.arange(m)[:, None] / max(m - 1, 1) - np.arange(n) / max(n - 1, 1)
        similarity = similarity * (1.0 - distortion * places**2)
    if smoothing:
        total, weight = similarity.copy(), np.ones((m, n))
        total[1:, 1:] += smoothing * similarity[:-1, :-1]
        total[:-1, :-1] += smoothing * similarity[1:, 1:]
        weight[1:, 1:] += smoothing
        weight[:-1, :-1] += smoothing
        similarity = total / weight
    low, high = float(similarity.min()), float(similarity.max())
    return np.asarray(1.0 - (similarity - low + _EPSILON) / (high - low + _EPSILON))


def align_costs(
    costs: Sequence[Floats], settings: Settings = DEFAULTS, *, n_jobs: int | None = None
) -> list[tuple[list[Pair], list[float]]]:
    """The links, in order, and their scores for every matrix of costs.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsetransport.apps.word_alignment import align_costs
    >>> costs = np.array([[0.0, 0.9, 0.9], [0.9, 0.1, 0.2], [0.9, 0.9, 0.9]])
    >>> align_costs([costs])[0][0]
    [(0, 0), (1, 1), (1, 2)]
    """
    held = [k for k, cost in enumerate(costs) if cost.size]
    found = [_NOTHING for _ in costs]
    first = [_first_problem(costs[k], settings) for k in held]
    # no polish: exchanges lower the objective, but do not bring it closer to what people link
    for k, result in zip(held, solve_batch(first, budget=_ONE_EACH, polish=False, n_jobs=n_jobs), strict=True):
        found[k] = _links(result, settings.threshold)
    if settings.phrases:
        owners, problems, words = [], [], []
        for k in held:
            cost, rows, cols = _beside(costs[k], found[k].rows, found[k].cols)
            if cost.size:
                owners.append(k)
                problems.append(_second_problem(cost, settings.phrases))
                words.append((rows, cols))
        for k, (rows, cols), result in zip(owners, words, solve_batch(problems, n_jobs=n_jobs), strict=True):
            found[k] = found[k].joined(_links(result, 0.0), rows, cols)
    return [links.sorted() for links in found]


class _Links(NamedTuple):
    """Links as arrays: words of the first sentence, words of the second, shares of the largest mass."""

    rows: Ints
    cols: Ints
    share: Floats

    def joined(self, other: "_Links", rows: Ints, cols: Ints) -> "_Links":
        """These, and those of another plan, whose words are ``rows`` and ``cols``, that are not among them."""
        known = set(zip(self.rows.tolist(), self.cols.tolist(), strict=True))
        near, far = rows[other.rows], cols[other.cols]
        new = [pair not in known for pair in zip(near.tolist(), far.tolist(), strict=True)]
        parts = zip(self, (near[new], far[new], other.share[new]), strict=True)
        return _Links(*(np.concatenate(pair) for pair in parts))

    def sorted(self) -> tuple[list[Pair], list[float]]:
        """The pairs in order, and their shares."""
        order = sorted(zip(self.rows.tolist(), self.cols.tolist(), self.share.tolist(), strict=True))
        return [(i, j) for i, j, _ in order], [share for *_, share in order]


_NOTHING = _Links(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def _first_problem(cost: Floats, settings: Settings) -> Problem:
    """A mass of one for every word, and marginal errors that neighbours share."""
    m, n = cost.shape
    weights = settings.unbalanced, settings.unbalanced
    gram_a, gram_b = (_chain(size, settings.neighbours) for size in (m, n))
    return Problem(Cost.dense(cost), np.ones(m), np.ones(n), gram_a, gram_b, weights, 0.0)


def _second_problem(cost: Floats, weight: float) -> Problem:
    """A mass of one for every word again, and errors that nobody shares."""
    m, n = cost.shape
    return Problem(Cost.dense(cost), np.ones(m), np.ones(n), _chain(m, 0.0), _chain(n, 0.0), (weight, weight), 0.0)


@lru_cache(maxsize=1024)
def _chain(size: int, neighbours: float) -> Gram:
    """The Gram matrix of words in a row: 1 on the diagonal and -ρ beside it, which has no eigenvalue below 1 - 2ρ."""
    if neighbours == 0.0 or size == 1:
        return as_gram("neighbours", Delta(), size)
    beside = np.eye(size, k=1) + np.eye(size, k=-1)
    return as_gram("neighbours", np.eye(size) - neighbours * beside, size)


def _links(result: Result, threshold: float) -> _Links:
    """The entries above a share of the largest one."""
    mass = result.mass
    if not mass.size:
        return _NOTHING
    share = mass / mass.max()
    kept = share > threshold
    return _Links(result.rows[kept], result.cols[kept], share[kept])


@kernel
def _beside(cost: Floats, rows: Ints, cols: Ints) -> tuple[Floats, Ints, Ints]:
    """What the second plan is made from: costs (p, q) and the words of the p rows and q columns.

    Allowed are the pairs beside a link (``rows[k]``, ``cols[k]``) of a word that has none yet, and the links that these
    are beside; all else costs infinity. Nothing is left if there are no such pairs.
    """
    m, n = cost.shape
    free_row, free_col = np.ones(m, np.bool_), np.ones(n, np.bool_)
    for k in range(rows.size):
        free_row[rows[k]] = False
        free_col[cols[k]] = False
    allowed = np.zeros((m, n), np.bool_)
    for k in range(rows.size):
        i, j = rows[k], cols[k]
        for step in (-1, 1):
            if 0 <= i + step < m and free_row[i + step]:
                allowed[i, j] = allowed[i + step, j] = True
            if 0 <= j + step < n and free_col[j + step]:
                allowed[i, j] = allowed[i, j + step] = True
    in_row, in_col = np.zeros(m, np.bool_), np.zeros(n, np.bool_)
    for i in range(m):
        for j in range(n):
            if allowed[i, j]:
                in_row[i] = in_col[j] = True
    near, far = np.flatnonzero(in_row), np.flatnonzero(in_col)
    held = np.full((near.size, far.size), np.inf)
    for p in range(near.size):
        for q in range(far.size):
            if allowed[near[p], far[q]]:
                held[p, q] = cost[near[p], far[q]]
    return held, near, far


def _words(name: str, sentence: Any) -> tuple[str, ...]:
    """The words of a sentence."""
    words = tuple(sentence.split()) if isinstance(sentence, str) else tuple(sentence)
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"{name} must be a string or a list of words, got {word!r} in it")
    return words


def _same(first: Sequence[str], second: Sequence[str]) -> NDArray[np.bool_]:
    """Which words of two sentences are the same."""
    return np.asarray(np.array(first, object)[:, None] == np.array(second, object))


def _chunks(pairs: Iterable[tuple[Any, Any]]) -> Iterable[list[tuple[Any, Any]]]:
    """So many pairs at a time."""
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
