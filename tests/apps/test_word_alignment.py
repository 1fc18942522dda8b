"""Words are linked as the plans say: once each, then beside; whatever the company, the order and the workers."""

import numpy as np
import pytest
from sentences import PAIRS, gold, letters

import sparsetransport as st
from sparsetransport.apps.word_alignment import Settings, WordAligner, align_costs, cosines, word_costs
from sparsetransport.apps.word_alignment import links as word_links


@pytest.fixture(scope="module")
def aligner():
    # Letters know nothing of order: no distortion, no smoothing, no evidence from neighbours.
    return WordAligner(letters, distortion=0.0, smoothing=0.0, neighbours=0.0, threshold=0.75, phrases=0.0)


def test_the_ten_pairs_are_aligned_as_written(aligner):
    for first, second, links in PAIRS:
        assert frozenset(aligner.align(first, second).links) == gold(links), (first, second)


def test_many_at_once_are_the_same_as_one_by_one():
    aligner = WordAligner(letters)
    pairs = [(first, second) for first, second, _ in PAIRS] * 40  # more than one chunk
    alone = [aligner.align(*pair) for pair in pairs[:10]]
    for jobs in (None, 2):
        many = aligner.align_many(iter(pairs), n_jobs=jobs)
        assert len(many) == 400
        for number, found in enumerate(many):
            assert (found.links, found.scores) == (alone[number % 10].links, alone[number % 10].scores)


def test_swapping_the_sentences_swaps_the_links(aligner):
    for first, second, _ in PAIRS:
        there, back = aligner.align(first, second), aligner.align(second, first)
        assert sorted((j, i) for i, j in back.links) == there.links
        assert (back.unaligned_1, back.unaligned_2) == (there.unaligned_2, there.unaligned_1)


def test_an_alignment_says_what_is_linked_and_what_is_not(aligner):
    found = aligner.align(["Trains", "stop", "here"], "a train stops")
    assert found.tokens_1 == ("Trains", "stop", "here"), "words come back as they were given"
    assert found.pharaoh == "0-1 1-2"
    assert found.words == [("Trains", "train"), ("stop", "stops")]
    assert (found.unaligned_1, found.unaligned_2) == ([2], [0])
    assert max(found.scores) == 1.0
    assert min(found.scores) > 0.75
    assert found.plan.shape == (3, 3)
    np.testing.assert_array_equal(found.plan.toarray() > 0.0, [[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_empty_sentences_have_an_empty_alignment():
    def never(words):
        raise AssertionError("nothing to encode")

    aligner = WordAligner(never)
    for first, second in (("", ""), ("two words", []), ([], "one")):
        found = aligner.align(first, second)
        assert (found.links, found.pharaoh) == ([], "")
        assert len(found.unaligned_1) == len(found.tokens_1)
        assert len(found.unaligned_2) == len(found.tokens_2)
        assert found.plan.shape == (len(found.tokens_1), len(found.tokens_2))
    assert aligner.align_many([]) == []


def test_lower_case_is_read_unless_told_otherwise():
    seen = []

    def remember(words):
        seen.extend(words)
        return letters(words)

    WordAligner(remember).align("Big", "HOUSE")
    WordAligner(remember, lower=False).align("Big", "HOUSE")
    assert seen == ["big", "house", "Big", "HOUSE"]


def test_fit_takes_the_mean_off():
    def shifted(words):
        return letters(words) + 100.0  # all cosines are near one

    pairs = [(first, second) for first, second, _ in PAIRS]
    options = {"distortion": 0.0, "smoothing": 0.0, "neighbours": 0.0, "threshold": 0.75, "phrases": 0.0}
    fitted, plain = (WordAligner(function, **options).fit(pairs) for function in (shifted, letters))
    np.testing.assert_allclose(fitted.centre, plain.centre + 100.0)
    for one, other in zip(fitted.costs(pairs), plain.costs(pairs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    with pytest.raises(ValueError, match="pairs must hold at least one word"):
        plain.fit([("", "")])


def test_costs_by_hand():
    cosine = np.array([[1.0, 0.2, -1.0], [0.0, 0.6, 0.4]])
    # similarities 1, .6, 0 and .5, .8, .7; half of it lost from one end to the other: (0 - 1)² = 1, (0 - ½)² = ¼
    similarity = np.array([[1.0, 0.6 * 0.875, 0.0], [0.5 * 0.5, 0.8 * 0.875, 0.7]])
    low, high = similarity.min(), similarity.max()
    np.testing.assert_allclose(word_costs(cosine, distortion=0.5), 1.0 - (similarity - low) / (high - low), atol=1e-8)
    plain = 0.5 * (cosine + 1.0)
    smooth = plain.copy()
    smooth[0, 0] = (plain[0, 0] + 0.5 * plain[1, 1]) / 1.5
    smooth[1, 1] = (plain[1, 1] + 0.5 * plain[0, 0]) / 1.5
    smooth[0, 1] = (plain[0, 1] + 0.5 * plain[1, 2]) / 1.5
    smooth[1, 2] = (plain[1, 2] + 0.5 * plain[0, 1]) / 1.5
    low, high = smooth.min(), smooth.max()
    np.testing.assert_allclose(word_costs(cosine, smoothing=0.5), 1.0 - (smooth - low) / (high - low), atol=1e-8)
    assert word_costs(np.array([[0.3]])).tolist() == [[0.0]]


def test_a_vector_without_a_length_is_like_no_other():
    assert cosines([[0.0, 0.0], [1.0, 0.0]], [[5.0, 0.0]]).tolist() == [[0.0], [1.0]]
    assert cosines([[0.0, 0.0]], [[0.0, 0.0], [5.0, 0.0]], [1.0, 1.0]).tolist() == [[0.0, 0.0]]


def only_letters(words):
    """Which letters a word has; none, a row of zeros, for numbers."""
    return [[word.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for word in words]


@pytest.mark.parametrize("fitted", [False, True])
def test_a_word_without_a_vector_is_linked_to_the_same_word_alone(fitted):
    """Numbers have no letters, so their vectors are zero: they tell nothing, and only the word itself does."""
    aligner = WordAligner(only_letters)
    if fitted:
        aligner.fit([("the cat sleeps", "a dog barks 17")])
    assert aligner.align("17", "1999").links == []
    assert aligner.align("17 1999", "2001 5").links == []
    assert aligner.align("17", "17").links == [(0, 0)]
    assert aligner.align("17", "sleeps").links == []
    assert aligner.align("sleeps 17", "sleeps 1999").links == [(0, 0)]
    assert aligner.align("the cat 17 sleeps 1999", "the cats 1999 sleeps").links == [(0, 0), (1, 1), (3, 3), (4, 2)]


def test_words_without_a_vector_do_not_move_the_mean():
    aligner = WordAligner(only_letters).fit([("cat dog", "hen")])
    again = WordAligner(only_letters).fit([("cat 17 dog", "hen 1999")])
    np.testing.assert_allclose(again.centre, aligner.centre)
    with pytest.raises(ValueError, match="pairs must hold at least one word with a vector, got none"):
        WordAligner(only_letters).fit([("17", "1999")])


def test_the_first_plan_is_that_of_solve():
    """One link a word, a mass of one each, and the tridiagonal Gram matrix."""
    cost = np.random.default_rng(0).random((9, 7))
    grams = [np.eye(n) - 0.2 * (np.eye(n, k=1) + np.eye(n, k=-1)) for n in (9, 7)]
    budget = st.PerRow(1) & st.PerColumn(1)
    res = st.solve(cost, np.ones(9), np.ones(7), kernels=tuple(grams), unbalanced=0.5, budget=budget, polish=False)
    wanted = [(i, j) for i, j in np.argwhere(res.plan > 0.4 * res.plan.max()).tolist()]
    ((links, scores),) = align_costs([cost], Settings(threshold=0.4, phrases=0.0))
    assert links == wanted
    np.testing.assert_allclose(scores, [res.plan[pair] / res.plan.max() for pair in links])


@pytest.mark.parametrize("weight", [0.1, 0.15, 0.3])
def test_a_word_joins_the_link_beside_it_where_that_lowers_the_objective(weight):
    """A link of cost c has mass 1 - c/4λ; another word of cost d gains by joining it if d < 2λ + c/2."""
    linked = 0.1
    for margin, joins in ((-0.01, True), (0.01, False)):
        cost = np.ones((3, 2))
        cost[0, 0], cost[1, 1], cost[2, 1] = 0.0, linked, 2.0 * weight + 0.5 * linked + margin
        ((links, _),) = align_costs([cost], Settings(neighbours=0.0, unbalanced=0.5, phrases=weight))
        assert links == [(0, 0), (1, 1)] + [(2, 1)] * joins


@pytest.mark.parametrize("settings", [Settings(), Settings(neighbours=0.0, threshold=0.2), Settings(phrases=0.0)])
def test_many_plans_at_once_are_those_of_solve(settings):
    rng = np.random.default_rng(5)
    costs = [rng.random(rng.integers(1, 15, 2)) for _ in range(100)]
    for cost in costs[::7]:
        cost[rng.random(cost.shape) < 0.3] = np.inf
    costs += [np.zeros((0, 3)), np.full((2, 3), np.inf), np.full((4, 3), 0.5)]
    together = align_costs(costs, settings)
    for cost, (links, scores) in zip(costs, together, strict=True):
        wanted = word_links._align_alone(cost, settings) if cost.size else ([], [])
        assert links == wanted[0]
        np.testing.assert_allclose(scores, wanted[1], rtol=1e-9)


@pytest.mark.parametrize(
    ("costs", "settings", "message"),
    [
        ([[0.0, np.nan], [1.0, 0.0]], Settings(), r"costs\[1\] must be finite or \+inf, got nan at \(0, 1\)"),
        ([0.0, 1.0], Settings(), r"costs\[1\] must have 2 dimensions"),
        ([[0.0]], Settings(unbalanced=-1.0), "unbalanced must be a positive number"),
        ([[0.0]], Settings(neighbours=0.9), "neighbours must be"),
    ],
)
def test_bad_costs_and_settings_are_errors(costs, settings, message):
    with pytest.raises(ValueError, match=message):
        align_costs([np.ones((1, 1)), np.array(costs)], settings)


def test_costs_and_settings_may_be_whole_numbers():
    costs = np.array([[0, 1], [1, 0]])
    assert align_costs([costs], Settings(unbalanced=1, threshold=0)) == align_costs(
        [costs.astype(float)], Settings(unbalanced=1.0, threshold=0.0)
    )


def test_only_words_beside_a_link_join_it():
    cost = np.full((4, 2), 0.9)
    cost[0, 0], cost[1, 1], cost[3, 1] = 0.0, 0.1, 0.15  # the word between stays out, so the last one is not beside
    ((links, _),) = align_costs([cost], Settings(neighbours=0.0))
    assert links == [(0, 0), (1, 1)]


def test_what_the_second_plan_may_use():
    cost = np.arange(12.0).reshape(4, 3)
    held, rows, cols = word_links._beside(cost, np.array([0, 1]), np.array([0, 2]))
    assert rows.tolist() == [0, 1, 2]
    assert cols.tolist() == [0, 1, 2]
    infinite = np.inf
    assert held.tolist() == [[0.0, 1.0, infinite], [infinite, 4.0, 5.0], [infinite, infinite, 8.0]]
    held, rows, cols = word_links._beside(cost[:1, :1], np.array([0]), np.array([0]))
    assert held.size == rows.size == cols.size == 0


def test_neighbours_share_evidence():
    """With ρ > 0 a word between two that are left over gets less mass than one between two that are linked."""
    cost = np.ones((5, 5))
    np.fill_diagonal(cost, 0.2)
    for k in (3,):
        cost[k, k] = 1.0  # no counterpart
    scores = {}
    for rho in (0.0, 0.2):
        ((links, found),) = align_costs([cost], Settings(neighbours=rho, threshold=0.0, phrases=0.0))
        scores[rho] = dict(zip(links, found, strict=True))
    assert scores[0.0][2, 2] == pytest.approx(scores[0.0][1, 1])
    assert scores[0.2][2, 2] < scores[0.2][1, 1] - 0.02


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"distortion": 1.5}, "distortion must be a number from 0 to 1, got 1.5"),
        ({"smoothing": -1.0}, "smoothing must be a number that is not negative"),
        ({"neighbours": 0.5}, "neighbours must be a number from 0 to below 0.5, got 0.5"),
        ({"unbalanced": 0.0}, "unbalanced must be a positive number"),
        ({"threshold": 1.0}, "threshold must be a number from 0 to below 1, got 1.0"),
        ({"phrases": float("nan")}, "phrases must be a number that is not negative"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        WordAligner(letters, **settings)


def test_bad_input_is_named():
    with pytest.raises(TypeError, match=r"settings must be among distortion.*got limit"):
        WordAligner(letters, limit=0.5)
    with pytest.raises(TypeError, match="tokens_2 must be a string or a list of words, got 3 in it"):
        WordAligner(letters).align("a", ["b", 3])
    with pytest.raises(TypeError, match="tokens_1 must be a string or a list of words, got None"):
        WordAligner(letters).align(None, "x")
    with pytest.raises(ValueError, match=r"pairs must hold two sentences each, got 'ab' at 1"):
        WordAligner(letters).align_many([("a", "b"), "ab"])
    with pytest.raises(TypeError, match="encoder must be a name"):
        WordAligner(3)
    with pytest.raises(ValueError, match=r"one row for each of the 2 words, got shape \(1, 3\)"):
        WordAligner(lambda words: np.ones((1, 3))).align("two words", "b")
    with pytest.raises(ValueError, match="finite numbers, got others for 'a'"):
        WordAligner(lambda words: np.full((len(words), 3), np.nan)).align("a", "b")


def test_plot_draws_the_words_and_the_links():
    pytest.importorskip("matplotlib")
    found = WordAligner(letters).align("the big house", "the house")
    ax = found.plot(links=[(0, 0)])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["the", "big", "house"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["the", "house"]
    np.testing.assert_allclose(ax.images[0].get_array(), found.plan.toarray())
