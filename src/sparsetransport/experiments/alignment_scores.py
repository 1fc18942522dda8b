"""Scores of word alignments: null and total accuracy and F1, and the paired bootstrap between two methods.

Words without a link are *null*. The null scores compare the sets of null words of both sentences, the total scores
the links and null words together. Precision and recall are averaged over sentence pairs, F1 is that of the two means,
and accuracy is the share of pairs without any error.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .._checks import Floats

Links = frozenset[tuple[int, int]]
_NULL_P, _NULL_R, _NULL_ACC, _TOTAL_P, _TOTAL_R, _TOTAL_ACC = range(6)


class Scores(NamedTuple):
    """The four scores of the paper, in per cent."""

    null_accuracy: float
    null_f1: float
    total_accuracy: float
    total_f1: float


def per_pair(gold: Sequence[Links], found: Sequence[Links], shapes: Sequence[tuple[int, int]]) -> Floats:
    """Null precision, recall and accuracy, and the same in total: one row for each sentence pair.

    Examples
    --------
    Of two and three words, the first ones are linked; the method also links the second words:

    >>> from sparsetransport.experiments.alignment_scores import per_pair
    >>> per_pair([frozenset({(0, 0)})], [frozenset({(0, 0), (1, 1)})], [(2, 3)]).round(3).tolist()
    [[1.0, 0.333, 0.0, 0.667, 0.5, 0.0]]
    """
    rows = np.zeros((len(gold), 6))
    for row, wanted, given, shape in zip(rows, gold, found, shapes, strict=True):
        null_wanted, null_given = _null(wanted, shape), _null(given, shape)
        hits = len(null_wanted & null_given)
        row[_NULL_P] = hits / len(null_given) if null_given else float(not null_wanted)
        row[_NULL_R] = hits / len(null_wanted) if null_wanted else float(not null_given)
        row[_NULL_ACC] = null_wanted == null_given
        hits += len(wanted & given)
        row[_TOTAL_P] = hits / (len(given) + len(null_given)) if shape != (0, 0) else 1.0
        row[_TOTAL_R] = hits / (len(wanted) + len(null_wanted)) if shape != (0, 0) else 1.0
        row[_TOTAL_ACC] = wanted == given
    return rows


def summary(rows: Floats) -> Scores:
    """The four scores from those of all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsetransport.experiments.alignment_scores import summary
    >>> summary(np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [0.5, 0.0, 0.0, 1.0, 0.6, 0.0]])).total_f1
    88.9
    """
    return Scores(*_from_means(rows.mean(axis=0)))


def precision_recall(rows: Floats) -> tuple[float, float, float, float]:
    """Null precision and recall, total precision and recall, in per cent."""
    mean = 100.0 * rows.mean(axis=0)
    return float(mean[_NULL_P]), float(mean[_NULL_R]), float(mean[_TOTAL_P]), float(mean[_TOTAL_R])


def bootstrap(one: Floats, other: Floats, *, draws: int = 2000, rng: np.random.Generator) -> Floats:
    """The 95 % intervals of the differences of the four scores: low and high, one column for each score.

    Both methods are scored on the same pairs, which are drawn with replacement.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsetransport.experiments.alignment_scores import bootstrap
    >>> same = np.ones((10, 6))
    >>> bootstrap(same, same, rng=np.random.default_rng(0)).tolist()
    [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    count = len(one)
    differences = np.empty((draws, 4))
    for k in range(draws):
        weight = rng.multinomial(count, np.full(count, 1.0 / count)) / count
        differences[k] = np.subtract(_from_means(weight @ one), _from_means(weight @ other))
    return np.quantile(differences, [0.025, 0.975], axis=0)


def _null(links: Iterable[tuple[int, int]], shape: tuple[int, int]) -> set[tuple[int, int]]:
    """The words of both sides without a link."""
    words = {(side, word) for side in (0, 1) for word in range(shape[side])}
    return words - {(side, pair[side]) for pair in links for side in (0, 1)}


def _from_means(mean: Floats) -> tuple[float, float, float, float]:
    def f1(precision: float, recall: float) -> float:
        return 100.0 * 2.0 * precision * recall / (precision + recall) if precision + recall else 0.0

    return (
        100.0 * float(mean[_NULL_ACC]),
        f1(float(mean[_NULL_P]), float(mean[_NULL_R])),
        100.0 * float(mean[_TOTAL_ACC]),
        f1(float(mean[_TOTAL_P]), float(mean[_TOTAL_R])),
    )
