"""Points flow to the target, ours closer than MMD-UOT at the published settings."""

import io

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.experiments import Quiet

pytest.importorskip("ot")
pytest.importorskip("torch")
pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")

from sparsetransport.experiments import gradient_flow  # noqa: E402
from sparsetransport.experiments.gradient_flow import MMD, OURS, OURS_CLOSER, SETTINGS  # noqa: E402

STEPS = 120


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    source, target, _ = gradient_flow.densities(None)
    return gradient_flow.sample(source, 60, rng), gradient_flow.sample(target, 60, rng)


@pytest.fixture(scope="module")
def flows(clouds):
    return [gradient_flow.flow(*clouds, setting, STEPS, progress=Quiet()) for setting in SETTINGS]


def test_ours_ends_closer_to_the_target(clouds, flows):
    start = gradient_flow.sinkhorn_divergence(*clouds)
    end = {each.setting.name: gradient_flow.sinkhorn_divergence(each.points[-1], clouds[1]) for each in flows}
    assert end[OURS] < end[MMD] < start
    assert end[OURS_CLOSER] < end[OURS]
    assert end[OURS_CLOSER] < 0.01 * start


def test_the_gradient_is_that_of_the_value(clouds):
    """The envelope theorem: moving the points changes the value by it, Gram matrix and scale of costs held fixed."""
    X, Y = clouds
    kernel = st.IMQ(1e-4)
    kernels, largest = (kernel.gram(X), kernel.gram(Y)), st.cost_matrix(X, Y).max()

    def value(points):
        return st.solve(st.cost_matrix(points, Y) / largest, kernels=kernels, unbalanced=0.1).value

    moved = gradient_flow.flow(X, Y, SETTINGS[1], 1, progress=Quiet()).points[-1]
    gradient = (X - moved) / (gradient_flow.RATE * len(X))
    direction = np.random.default_rng(1).normal(size=X.shape)
    ahead, behind = value(X + 1e-5 * direction), value(X - 1e-5 * direction)
    assert (ahead - behind) / 2e-5 == pytest.approx(float((gradient * direction).sum()), rel=1e-3)


def test_frames_begin_at_the_start_and_end_at_the_end(clouds, flows):
    for each in flows:
        assert each.steps[0] == 0
        assert each.steps[-1] == STEPS
        assert len(each.steps) == len(each.points)
        np.testing.assert_array_equal(each.points[0], clouds[0])


def test_the_animation_moves(clouds, flows):
    with Image.open(io.BytesIO(gradient_flow._animation(clouds[1], flows))) as film:
        assert film.n_frames == len(flows[0].points)
        first = np.asarray(film.convert("RGB"), int)
        film.seek(film.n_frames - 1)
        last = np.asarray(film.convert("RGB"), int)
    assert np.ptp(first) > 150
    assert (np.abs(first - last) > 50).mean() > 0.003


def test_stills_show_every_method(clouds, flows):
    figure = gradient_flow._stills(clouds[1], flows)
    assert [ax.get_ylabel() for ax in figure.axes[::4]] == [MMD, OURS, OURS_CLOSER]
    file = io.BytesIO()
    figure.savefig(file, dpi=40)
    assert np.ptp(np.asarray(Image.open(file).convert("L"), int)) > 150


def test_pictures_in_the_data_folder_take_the_place_of_ours(tmp_path):
    """Dark is mass, and up in the picture is up in the plane."""
    for name, rows in (("density_a.png", slice(0, 2)), ("density_b.png", slice(8, 10))):
        picture = np.full((10, 10), 255, np.uint8)
        picture[rows] = 0
        Image.fromarray(picture).save(tmp_path / name)
    source, target, origin = gradient_flow.densities(tmp_path)
    assert "data folder" in origin
    rng = np.random.default_rng(0)
    assert gradient_flow.sample(source, 200, rng)[:, 1].mean() > 0.8
    assert gradient_flow.sample(target, 200, rng)[:, 1].mean() < 0.2


def test_a_white_picture_is_refused(tmp_path):
    Image.fromarray(np.full((5, 5), 255, np.uint8)).save(tmp_path / "density_a.png")
    with pytest.raises(ValueError, match=r"density_a\.png must have dark pixels"):
        gradient_flow.read_density(tmp_path / "density_a.png")


@pytest.mark.filterwarnings("ignore:the costs in use are lost in rounding")  # clouds that agree cost next to nothing
def test_the_report_is_whole(clouds, monkeypatch, tmp_path):
    monkeypatch.setattr(gradient_flow, "sample", lambda density, count, rng: clouds[int(density[50, 25] == 0.0)][:12])
    monkeypatch.setattr(gradient_flow, "FRAMES", 3)
    report = gradient_flow.run(data=None, full=False, seed=0, progress=Quiet())
    names = {path.name for path in report.write(tmp_path)}
    assert names == {"table.md", "table.json", "flow.png", "flow.gif"}
    assert [claim for claim in report.claims if not claim.holds] == []
    assert [row[0] for row in report.tables[0].rows] == ["start", MMD, OURS, OURS_CLOSER]
