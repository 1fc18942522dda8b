"""Pictures show what they are given, on the Axes they are given, and say what is wrong with what they cannot draw."""

import builtins

import numpy as np
import pytest
import scipy.sparse

import sparsetransport as st
from sparsetransport import plotting

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from sparsetransport.plotting import (  # noqa: E402
    label_points,
    plot_alignment,
    plot_edges,
    plot_marginals,
    plot_path,
    plot_plan,
    plot_sweep,
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=(9, 2)) + 1.0


@pytest.fixture(scope="module")
def result():
    return st.solve_sample(X, Y, budget=8, reg=1.0)


@pytest.fixture
def axes():
    figure, one = plt.subplots()
    yield one
    plt.close(figure)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def ink(ax):
    """The share of pixels inside the Axes that are not white."""
    ax.figure.canvas.draw()
    frame = ax.get_window_extent()
    pixels = np.asarray(ax.figure.canvas.buffer_rgba())[::-1, :, :3]
    inside = pixels[int(frame.y0) + 2 : int(frame.y1) - 2, int(frame.x0) + 2 : int(frame.x1) - 2]
    return float((inside < 250).any(axis=2).mean())


def test_public_names_are_functions():
    """Colours are details of the drawings; ``color=`` gives another."""
    assert all(callable(getattr(plotting, name)) for name in plotting.__all__)
    assert not [name for name in vars(plotting) if name.isupper()]


DRAWINGS = {
    "plot_plan": lambda result, ax: plot_plan(result, ax=ax),
    "plot_edges": lambda result, ax: plot_edges(X, Y, result, ax=ax),
    "plot_path": lambda result, ax: plot_path(result, ax=ax),
    "plot_marginals": lambda result, ax: plot_marginals(result, ax=ax),
    "plot_alignment": lambda result, ax: plot_alignment(result, range(12), range(9), ax=ax),
}


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_draws_on_the_axes_given_and_returns_them(draw, result, axes):
    assert draw(result, axes) is axes
    assert ink(axes) > 0.001


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_makes_axes_of_its_own(draw, result):
    before = set(plt.get_fignums())
    ax = draw(result, None)
    assert isinstance(ax, matplotlib.axes.Axes)
    assert len(set(plt.get_fignums()) - before) == 1


def test_plan_has_a_dot_where_the_plan_has_mass_with_area_in_proportion(result, axes):
    dots = plot_plan(result, ax=axes).collections[0]
    drawn = {(int(i), int(j)): size for (j, i), size in zip(dots.get_offsets(), dots.get_sizes(), strict=True)}
    masses = dict(zip(zip(result.rows.tolist(), result.cols.tolist(), strict=True), result.mass, strict=True))
    assert drawn.keys() == masses.keys()
    heavy = [pair for pair, mass in masses.items() if mass > 0.2 * result.mass.max()]
    assert len(heavy) > 1
    assert np.ptp([drawn[pair] / masses[pair] for pair in heavy]) < 1e-6 * drawn[heavy[0]] / masses[heavy[0]]


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, lambda plan: plan.tolist()])
def test_plan_of_any_kind(kind, result, axes):
    dots = plot_plan(kind(result.plan), ax=axes).collections[0]
    assert len(dots.get_offsets()) == len(result.mass)


@pytest.mark.parametrize("size", [1, 5, 5000])
def test_plan_stays_readable_at_any_size(size, axes):
    plan = scipy.sparse.coo_array((np.ones(size), (np.arange(size), np.arange(size))), shape=(size, size))
    sizes = plot_plan(plan, ax=axes).collections[0].get_sizes()
    assert 1.0 <= sizes.min() <= sizes.max() <= 500.0
    assert ink(axes) > 0.001


def test_edges_join_the_points_of_the_entries_and_heavier_ones_are_wider(result, axes):
    plot_edges(X, Y, result, ax=axes)
    lines = axes.collections[0]
    drawn = sorted(map(tuple, (np.concatenate(ends).tolist() for ends in lines.get_segments())))
    expected = sorted(map(tuple, np.hstack([X[result.rows], Y[result.cols]]).tolist()))
    np.testing.assert_allclose(drawn, expected)
    assert np.all(np.diff(lines.get_linewidths()) >= 0.0)
    assert lines.get_linewidths()[-1] == pytest.approx(4.0)


def test_edges_of_many_points(axes):
    points = RNG.normal(size=(5000, 2))
    plan = scipy.sparse.coo_array((np.ones(5000), (np.arange(5000), np.arange(5000)[::-1])), shape=(5000, 5000))
    assert ink(plot_edges(points, points + 1.0, plan, ax=axes)) > 0.05


def test_markers_grow_with_their_weights(result, axes):
    weights = np.arange(1.0, 13.0), np.ones(9)
    circles, squares = plot_edges(X, Y, result, ax=axes, weights=weights).collections[1:]
    assert np.all(np.diff(squares.get_sizes()) > 0.0)
    assert np.ptp(circles.get_sizes()) == 0.0


def test_path_never_rises_and_ends_at_the_plan(result, axes):
    line, dot = plot_path(result, ax=axes, knee=False).lines
    assert np.all(np.diff(line.get_ydata()) <= 0.0)
    assert dot.get_xydata().tolist() == [[8, result.value]]
    assert line.get_ydata().min() == pytest.approx(result.value)


def test_path_shows_the_bound_once_it_is_known(axes):
    fresh = st.solve_sample(X, Y, budget=8, reg=1.0)
    assert "lower bound" not in {line.get_label() for line in plot_path(fresh, ax=axes).lines}
    proof = fresh.certify()
    bound = next(line for line in plot_path(fresh, ax=axes).lines if line.get_label() == "lower bound")
    assert set(bound.get_ydata()) == {proof.lower_bound}


def test_path_proves_bounds_on_the_way(result, axes):
    lines = {line.get_label(): line for line in plot_path(result, ax=axes, bounds=4).lines}
    entries, bounds = lines["lower bound"].get_data()
    assert entries.tolist() == [2, 4, 6, 8]
    assert np.all(np.diff(bounds) <= 1e-12)
    objective = dict(zip(*lines["objective"].get_data(), strict=True))
    assert all(objective[count] >= bound for count, bound in zip(entries, bounds, strict=True))


def test_path_shades_the_gap_between_objective_and_bound(result, axes):
    plot_path(result, ax=axes, bounds=4)
    (band,) = axes.collections
    lines = {line.get_label(): line.get_data() for line in axes.lines}
    corners = band.get_paths()[0].vertices
    assert corners[:, 0].min() == 2
    assert corners[:, 0].max() == 8
    assert corners[:, 1].min() == pytest.approx(lines["lower bound"][1].min())
    assert {text.get_text() for text in axes.get_legend().get_texts()} >= {"gap", "objective", "lower bound"}


def test_path_marks_the_knee_where_the_line_bends(axes):
    """Five links carry nearly everything: the objective falls steeply up to them and hardly beyond."""
    heavy = np.array([1.0] * 5 + [0.02] * 15)
    cost = 1.0 - np.eye(20)
    bent = st.solve(cost, heavy, heavy, unbalanced=10.0)
    labels = [line.get_label() for line in plot_path(bent, ax=axes).lines]
    assert "knee: 5 entries" in labels
    mark = axes.lines[labels.index("knee: 5 entries")]
    assert mark.get_xdata().tolist() == [5]


def test_a_straight_path_has_no_knee(axes):
    straight = st.solve(1.0 - np.eye(20), unbalanced=10.0)
    assert not [line for line in plot_path(straight, ax=axes).lines if line.get_label().startswith("knee")]


def test_a_sweep_shows_every_plan_and_its_bound(axes):
    """Of two plans with as many entries the better one; the gap is shaded where the lines are."""
    problem = st.Problem.from_points(X, Y, kernels="delta")
    found = st.solve_sweep(problem, budgets=[2, 5, 8, 11])
    worse = st.solve(problem, budget=5, method="stochastic", rng=0, polish=False)
    plot_sweep([*found, worse], ax=axes)
    lines = {line.get_label(): line.get_xydata() for line in axes.lines}
    assert lines["objective"].tolist() == [[len(plan.mass), plan.value] for plan in found]
    assert lines["lower bound"].tolist() == [[len(plan.mass), plan.certify().lower_bound] for plan in found]
    corners = axes.collections[0].get_paths()[0].vertices
    assert {2.0, 5.0, 8.0, 11.0} == set(corners[:, 0])
    other = axes.figure.add_subplot()
    (mine,) = other.plot([2, 11], [0.0, 1.0])
    plot_sweep(found[:1], ax=other, bounds=False, knee=False)
    assert [line.get_label() for line in other.lines[1:]] == ["objective"]
    assert [line.get_marker() for line in other.lines] == ["None", "o"]
    assert mine.get_label().startswith("_")


@pytest.mark.parametrize("given", [None, "one", ["no result"]])
def test_a_sweep_is_a_list_of_results(given, result):
    with pytest.raises(TypeError, match="results must be a list of Results"):
        plot_sweep(result if given == "one" else given)


def test_a_bound_that_is_zero_but_for_rounding_does_not_stretch_the_axis(axes):
    masses = 0.5 ** np.arange(12.0)
    problem = st.Problem.from_points(X, X, masses, masses, kernels="delta", unbalanced=10.0)
    found = st.solve_sweep(problem, budgets=range(1, 12))
    assert plot_sweep(found, ax=axes).get_yscale() == "log"
    assert axes.get_ylim()[0] >= 1e-3 * found[-1].value


def test_marginals_are_those_of_the_plan_and_those_asked_for(axes):
    plan = np.array([[0.2, 0.0, 0.1], [0.0, 0.3, 0.0]])
    asked = [0.5, 0.5], [0.2, 0.3, 0.5]
    plot_marginals(plan, *asked, ax=axes)
    for patch, expected, sign in zip(axes.patches, asked, (1.0, -1.0), strict=True):
        np.testing.assert_allclose(patch.get_data().values, sign * np.array(expected))
    up, down = (bars.get_paths()[0].vertices[:, 1] for bars in axes.collections)
    assert set(up.round(12)) == {0.0, 0.3}
    assert set(down.round(12)) == {0.0, -0.2, -0.3, -0.1}
    assert [text.get_text() for text in axes.texts] == [
        "rows: 60 % of the mass in place",
        "columns: 60 % of the mass in place",
    ]


@pytest.mark.parametrize("size", [1, 5, 5000])
def test_marginals_and_alignments_of_any_size(size):
    plan = scipy.sparse.coo_array((np.ones(size) / size, (np.arange(size), np.arange(size))), shape=(size, size))
    for draw in (lambda: plot_marginals(plan), lambda: plot_alignment(plan, range(size), range(size))):
        ax = draw()
        assert ink(ax) > 0.001
        assert len([label for label in ax.get_yticklabels() if label.get_text()]) <= 40


def test_many_marginals_are_sorted_by_what_was_asked(axes):
    weights = RNG.random(100)
    plot_marginals(np.diag(weights), weights, weights, ax=axes)
    np.testing.assert_array_equal(axes.patches[0].get_data().values, np.sort(weights)[::-1])


def test_alignment_shades_the_mass_and_names_the_words(axes):
    plan = np.array([[0.5, 0.0, 0.0], [0.0, 0.2, 0.1]])
    plot_alignment(plan, ["the", "cat"], ["le", "chat", "dort"], ax=axes, links=[(0, 0), (1, 1)])
    np.testing.assert_array_equal(axes.images[0].get_array(), plan)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["the", "cat"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["le", "chat", "dort"]
    assert axes.collections[0].get_offsets().tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_dollars_in_words_are_no_mathematics(axes):
    plot_alignment(np.eye(2), ["$5_$", "$a\\frac$"], ["$5-$10", "b"], ax=axes)
    label_points([[0.5, 0.5]], ["$5_$"], ax=axes)
    axes.figure.draw_without_rendering()
    words = [*axes.get_xticklabels(), *axes.get_yticklabels(), *axes.texts]
    assert [word.get_text() for word in words] == ["$5-$10", "b", "$5_$", "$a\\frac$", "$5_$"]
    assert not any(word.get_parse_math() for word in words)


def test_labels_do_not_overlap_and_those_without_room_are_left_out(axes):
    axes.set(xlim=(0, 1), ylim=(0, 1))
    points = np.full((40, 2), 0.5)
    axes.scatter(*points.T)
    label_points(points, [f"name {k}" for k in range(40)], ax=axes)
    boxes = [text.get_window_extent() for text in axes.texts]
    assert 4 <= len(boxes) < 40
    assert axes.texts[0].get_text() == "name 0"
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k])


def test_labels_far_away_get_a_line(axes):
    axes.set(xlim=(0, 1), ylim=(0, 1))
    points = np.full((20, 2), 0.5)
    label_points(points, [f"name {k}" for k in range(20)], ax=axes, farthest=30.0)
    assert any(text.arrow_patch is not None for text in axes.texts if not text.get_text())


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda result: plot_plan([1.0, 2.0]), "plan must have 2 dimensions"),
        (lambda result: plot_sweep([]), "results must hold at least one Result"),
        (lambda result: plot_plan([[1.0, -1.0]]), "plan must not be negative, got -1.0"),
        (lambda result: plot_plan(scipy.sparse.coo_array(np.ones(3))), "plan must have 2 dimensions"),
        (lambda result: plot_edges(X[:5], Y, result), r"X must have shape \(12, 2\)"),
        (lambda result: plot_edges(X, np.ones((9, 3)), result), r"Y must have shape \(9, 2\)"),
        (lambda result: plot_edges(X, Y, result, weights=(np.ones(3), np.ones(9))), "the first of weights"),
        (lambda result: plot_path(st.solve([[np.inf]])), "must have a path"),
        (lambda result: plot_marginals(result, np.ones(3)), "a must have one mass for each of the 12 points"),
        (lambda result: plot_marginals(result, None, -np.ones(9)), "b must not be negative"),
        (lambda result: plot_alignment(result, range(3), range(9)), "source must have one word for each of the 12"),
        (lambda result: plot_alignment(result, range(12), range(9), links=[(12, 0)]), "links must hold pairs"),
    ],
)
def test_what_cannot_be_drawn_is_said(draw, message, result):
    with pytest.raises(ValueError, match=message):
        draw(result)
    assert not plt.get_fignums(), "no empty figure is left behind"


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_axes_must_be_axes(draw, result):
    with pytest.raises(TypeError, match="ax must be matplotlib Axes, got ndarray"):
        draw(result, np.zeros(2))


@pytest.mark.parametrize("weights", [np.ones(12), [np.ones(12)]])
def test_weights_must_be_a_pair(weights, result):
    with pytest.raises(TypeError, match="weights must be a pair of arrays, one for X and one for Y"):
        plot_edges(X, Y, result, weights=weights)


@pytest.mark.parametrize(("stretch", "aspect"), [(1.0, 1.0), (1000.0, "auto"), (0.0, "auto")])
def test_coordinates_far_apart_in_scale_have_scales_of_their_own(stretch, aspect, result, axes):
    assert plot_edges(X * [1.0, stretch], Y * [1.0, stretch], result, ax=axes).get_aspect() == aspect


def test_entries_are_counted_in_whole_numbers(axes):
    path = st.solve_sample(X, Y, budget=3, reg=1.0)
    places = plot_path(path, ax=axes).get_xticks()
    assert (places == places.round()).all()


@pytest.mark.parametrize("size", [5, 1000])
def test_dots_at_the_border_are_whole(size, axes):
    plan = scipy.sparse.coo_array((np.ones(2), ([0, size - 1], [0, size - 1])), shape=(size, size))
    dots = plot_plan(plan, ax=axes).collections[0]
    axes.figure.draw_without_rendering()
    frame = axes.get_window_extent()
    reach = np.sqrt(dots.get_sizes().max()) / 2.0 * axes.figure.dpi / 72.0
    centres = axes.transData.transform(dots.get_offsets())
    assert (centres - reach >= np.array([frame.x0, frame.y0]) - 0.1).all()
    assert (centres + reach <= np.array([frame.x1, frame.y1]) + 0.1).all()


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0)])
def test_sentences_without_words(shape, recwarn):
    words = [["a", "b"][:count] for count in shape]
    ax = plot_alignment(scipy.sparse.coo_array(shape), *words)
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_yticklabels()] == words[0]
    assert not recwarn.list


def test_a_plan_alone_has_no_path(result):
    with pytest.raises(TypeError, match="result must be a Result, which has a path, got ndarray"):
        plot_path(result.plan)


def test_without_matplotlib_one_sentence_says_how_to_get_it(result, monkeypatch):
    def refuse(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install 'sparsetransport\[plot\]'"):
        plot_plan(result)


def test_a_result_knows_what_was_asked_of_it():
    """Masses need not be given again to see how much of them is in place."""
    masses = [0.7, 0.1, 0.1, 0.1]
    result = st.solve(1.0 - np.eye(4), masses, masses, budget=4, unbalanced=1e3)
    texts = [text.get_text() for text in plot_marginals(result).texts]
    assert texts == ["rows: 100 % of the mass in place", "columns: 100 % of the mass in place"]
