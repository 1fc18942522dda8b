"""Sparse plans recolour a photograph nearly as exact OT does, with far fewer links."""

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.experiments import Quiet

pytest.importorskip("ot")
pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from sparsetransport.apps.colour_transfer import (
    Palette,
    colour_transfer,
    move,
    palette,
    palette_problem,
    recolour,
)
from sparsetransport.experiments import colour_transfer as experiment
from sparsetransport.experiments.colour_transfer import EXACT, MMD, OURS, OURS_CLOSER, SSOT


@pytest.fixture(scope="module")
def photographs():
    return tuple(photograph[::8, ::8] for photograph in experiment.photographs())


@pytest.fixture(scope="module")
def outcomes(photographs):
    return experiment.compare(*photographs, 128, seed=0, progress=Quiet())


def test_ours_is_sparser_and_close_to_exact_ot(outcomes, photographs):
    assert outcomes[OURS].zeros > max(outcomes[name].zeros for name in (EXACT, SSOT))
    assert outcomes[OURS].zeros >= outcomes[MMD].zeros, "the accelerated gradient may get as far on a small problem"
    closer, exact = outcomes[OURS_CLOSER], outcomes[EXACT]
    assert len(closer.plan.mass) <= 128 < len(exact.plan.mass) < len(outcomes[SSOT].plan.mass)
    untouched = float(np.sqrt(((photographs[0].astype(float) - exact.image) ** 2).mean()))
    assert closer.rmse < 0.4 * untouched
    assert exact.rmse == 0.0


def test_table_claims_and_picture(outcomes, photographs, tmp_path):
    table = experiment._table("china", outcomes)
    assert [row[0] for row in table.rows] == [EXACT, SSOT, MMD, OURS, OURS_CLOSER]
    assert [row[1] for row in table.rows][3:] == [len(outcomes[name].plan.mass) for name in (OURS, OURS_CLOSER)]
    figure = experiment._figure(*photographs, outcomes)
    assert len([ax for ax in figure.axes if ax.images]) == 7
    figure.savefig(tmp_path / "china.png", dpi=40)
    assert (tmp_path / "china.png").stat().st_size > 10_000


def test_few_links_come_as_close_to_exact_ot_as_all_of_them(photographs):
    table = experiment.links_needed(*photographs, (48,), seed=0, progress=Quiet())
    ((colours, untouched, one, more, free, links),) = table.rows
    assert colours == 48 < links
    assert max(one, more, free) < 0.1 * untouched


def test_the_function_for_users_does_it_in_one_call(photographs):
    transfer = colour_transfer(*photographs, colours=32, budget=60, rng=0)
    assert transfer.image.shape == photographs[0].shape
    assert transfer.image.dtype == np.uint8
    assert len(transfer.result.mass) <= 60
    wanted, before, after = (
        picture.reshape(-1, 3).mean(axis=0) for picture in (photographs[1], photographs[0], transfer.image)
    )
    assert np.abs(after - wanted).max() < 0.3 * np.abs(before - wanted).max()


def test_palettes_are_the_same_for_the_same_seed_and_add_up(photographs):
    one, same = (palette(photographs[0], 20, rng=1) for _ in range(2))
    np.testing.assert_array_equal(one.colours, same.colours)
    assert one.weight.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(np.bincount(one.labels.ravel(), minlength=20) / one.labels.size, one.weight)


def test_a_colour_that_the_plan_leaves_out_moves_as_its_nearest_neighbour_does():
    colours = np.array([[0.2, 0.2, 0.2], [0.25, 0.2, 0.2], [0.9, 0.9, 0.9]])
    source = Palette(colours, np.full(3, 1 / 3), np.array([[0, 1, 2]]))
    target = Palette(np.array([[0.1, 0.5, 0.2], [0.8, 0.8, 0.8]]), np.full(2, 0.5), np.array([[0, 1]]))
    plan = st.solve_support(palette_problem(source, target), links=[(0, 0), (2, 1)])
    assert sorted(plan.rows.tolist()) == [0, 2]
    expected = [[0.1, 0.5, 0.2], [0.15, 0.5, 0.2], [0.8, 0.8, 0.8]]
    np.testing.assert_allclose(move(source, target, plan), expected, atol=1e-12)


def test_pixels_keep_their_detail():
    picture = np.full((4, 4, 3), 0.5)
    picture[0, 0] = 0.54
    source, target = palette(picture, 1), palette(picture - 0.2, 1)
    image = recolour(picture, source, target, st.solve(palette_problem(source, target)))
    assert image[0, 0, 0] - image[1, 1, 0] == pytest.approx(0.04 * 255, abs=1.0)


@pytest.mark.parametrize("which", ["image", "reference"])
@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 4, 2)), r"must have shape \(height, width, 3\) or \(height, width\), got \(4, 4, 2\)$"),
        (np.zeros((4, 4, 4)), r"got \(4, 4, 4\): drop the alpha channel with \[:, :, :3\]$"),
        (np.zeros((0, 4, 3)), r"must have shape .*, got \(0, 4, 3\)$"),
        (np.full((4, 4, 3), 2.0), "integers from 0 to 255 or floats from 0 to 1, got numbers from 2.0 to 2.0"),
        (np.linspace(-1.0, 0.0, 48).reshape(4, 4, 3), "floats from 0 to 1, got numbers from -1.0 to 0.0"),
        (np.full((4, 4, 3), np.nan), "integers from 0 to 255 or floats from 0 to 1, got numbers from nan to nan"),
    ],
)
def test_what_is_no_picture_is_refused_by_name(which, image, message):
    pictures = {"image": np.zeros((4, 4, 3)), "reference": np.zeros((4, 4, 3)), which: image}
    with pytest.raises(ValueError, match=f"^{which} .*{message}"):
        colour_transfer(**pictures)


def test_shades_of_grey_are_colours_too():
    grey = np.full((4, 5), 100, np.uint8)
    red = np.zeros((3, 3, 3)) + [0.8, 0.1, 0.1]
    image = colour_transfer(grey, red, colours=1).image
    assert (image.shape, image.dtype, image[0, 0].tolist()) == ((4, 5, 3), np.uint8, [204, 26, 26])
    assert colour_transfer(red, grey, colours=1).image[0, 0].tolist() == [100, 100, 100]


def test_a_picture_with_fewer_colours_than_asked_for_has_those():
    assert len(palette(np.zeros((4, 4, 3)), 8).colours) == 1
