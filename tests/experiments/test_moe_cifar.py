"""The image mixture: transforms, training in pieces, and the report, on a few synthetic images."""

import math

import numpy as np
import pytest

from sparsetransport.experiments import Quiet, cifar, data_files

torch = pytest.importorskip("torch")

from sparsetransport.experiments import moe_cifar, moe_images, moe_training  # noqa: E402
from sparsetransport.experiments.moe_training import SETTINGS, Record, Size, Training, train  # noqa: E402

CPU = torch.device("cpu")
TINY = Size(epochs=2, width=2, images=64)


@pytest.fixture(autouse=True)
def one_thread():
    """Small networks get slower with more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    pictures = np.kron(rng.integers(0, 256, (64, 8, 8, 3)), np.ones((1, 4, 4, 1))).astype(np.uint8)
    return moe_images.prepare(pictures[:48], CPU), moe_images.prepare(pictures[48:], CPU)


def test_half_of_the_images_are_rotated(images):
    train_images, _ = images
    assert train_images.pixels.shape == (96, 3, 32, 32)
    assert train_images.pixels.dtype == torch.uint8
    assert train_images.rotated.tolist() == [0] * 48 + [1] * 48
    assert (train_images.pixels[:48] != train_images.pixels[48:]).float().mean() > 0.5


def test_rotation_is_counter_clockwise_about_the_centre():
    """A dot to the right of the centre goes up; four quarter turns are none."""
    dot = torch.zeros(1, 1, 33, 33)
    dot[0, 0, 16, 28] = 1.0
    turned = moe_images.rotate(dot, 90.0)
    assert turned[0, 0, 4, 16] == 1.0
    once = torch.rand(2, 3, 33, 33)
    again = once
    for _ in range(4):
        again = moe_images.rotate(again, 90.0)
    torch.testing.assert_close(again, once)


def test_no_black_corner_gives_a_rotated_image_away():
    white = np.full((1, 32, 32, 3), 255, np.uint8)
    assert moe_images.prepare(white, CPU).pixels.min() == 255


def test_blur_is_a_mean_and_wider_down_than_across():
    dot = torch.zeros(2, 1, 21, 21)
    dot[:, :, 10, 10] = 1.0
    spread = moe_images.blur(dot, torch.tensor([1.1, 2.2]))
    torch.testing.assert_close(spread.sum((1, 2, 3)), torch.ones(2))
    assert (spread[0, 0].sum(1) > 0).sum() == 7
    assert (spread[0, 0].sum(0) > 0).sum() == 3
    assert spread[0].max() > spread[1].max()
    ratio = float(spread[0, 0, 11, 10] / spread[0, 0, 10, 10])
    assert ratio == pytest.approx(math.exp(-0.5 / 1.1**2), rel=1e-5)


def test_images_are_pillow_s_to_the_bit():
    """The published transforms are Pillow's: rotation to the nearest pixel, then a bilinear resize in two passes."""
    image = pytest.importorskip("PIL.Image")
    pictures = np.random.default_rng(1).integers(0, 256, (5, 32, 32, 3)).astype(np.uint8)
    mine = moe_images.prepare(pictures, CPU).pixels.permute(0, 2, 3, 1).numpy()
    bilinear, nearest = image.Resampling.BILINEAR, image.Resampling.NEAREST
    theirs = [
        np.asarray(image.fromarray(each).rotate(angle, nearest).crop((4, 4, 28, 28)).resize((32, 32), bilinear))
        for angle in (0, 30)
        for each in pictures
    ]
    np.testing.assert_array_equal(mine, np.stack(theirs))


def test_a_batch_is_blurred_or_not(images):
    index = torch.arange(96)
    sharp, _ = moe_images.batch(images[0], index, blurred=False)
    blurred, _ = moe_images.batch(images[0], index, blurred=True)
    assert ((sharp - blurred).abs().amax((1, 2, 3)) > 0.0).all()
    back = sharp * torch.tensor([0.2023, 0.1994, 0.2010]).reshape(3, 1, 1)
    back = 255.0 * (back + torch.tensor([0.4914, 0.4822, 0.4465]).reshape(3, 1, 1))
    torch.testing.assert_close(back, images[0].pixels.float(), atol=1e-2, rtol=0.0)


def test_two_experts_an_image_double_the_load(images, tmp_path):
    for slug in ("ours-0.1-k-2", "top-2-balanced"):
        record = train(moe_training.MORE[slug], 0, TINY, tmp_path, images, progress=Quiet())
        assert all(sum(load) == 2 * 96 for load in record.loads)


@pytest.mark.parametrize("slug", ["top-1-default", "top-1-balanced", "ours-0.1", "ours-1000", "scot-10"])
def test_every_kind_of_setting_trains_and_is_tested(slug, images, tmp_path):
    if slug.startswith("scot"):
        pytest.importorskip("ot")
    record = train(SETTINGS[slug], 0, TINY, tmp_path, images, progress=Quiet())
    assert len(record.losses) == 2
    assert all(math.isfinite(loss) for loss in record.losses)
    assert all(sum(load) == 96 for load in record.loads)
    assert len(record.tests) == 2
    modes = {"top": ["topk"], "our": ["topk", "prices", "transport"], "sco": ["topk", "transport"]}[slug[:3]]
    assert sorted(record.inference) == sorted(modes)
    assert record.inference[modes[-1]] == record.tests[-1], "transport is the paper's way"
    for test in (*record.tests, *record.inference.values()):
        assert sum(test["load"]) == 32
        assert 0.0 <= test["accuracy"] <= 1.0
    assert [path.name for path in tmp_path.iterdir()] == [f"{slug}-0.json"], "the checkpoint is gone"


def test_training_in_pieces_is_training_at_once(images, tmp_path):
    """Stopped after every epoch and taken up from its file, it ends at the same numbers."""
    setting = SETTINGS["ours-0.1"]
    whole = train(setting, 3, TINY, tmp_path / "whole", images, progress=Quiet())
    first = Training(setting, 3, TINY, CPU)
    first.epoch(images[0], Quiet())
    first.test(images[1])
    first.save(tmp_path / "pieces" / "ours-0.1-3.pt")
    torch.manual_seed(99)  # what happens in between does not matter
    stopped = train(setting, 3, TINY, tmp_path / "pieces", images, progress=Quiet(), minutes=0.0)
    assert len(stopped.losses) == 1
    assert len(stopped.tests) == 1
    rest = train(setting, 3, TINY, tmp_path / "pieces", images, progress=Quiet())
    assert rest.losses == whole.losses
    assert rest.tests == whole.tests


def test_what_is_finished_is_not_redone(images, tmp_path, monkeypatch):
    record = train(SETTINGS["ours-10"], 0, TINY, tmp_path, images, progress=Quiet())
    monkeypatch.setattr(moe_training, "Training", None)
    assert train(SETTINGS["ours-10"], 0, TINY, tmp_path, images, progress=Quiet()) == record


def test_gradients_of_every_expert_have_norms_that_add_up_to_one(images):
    training = Training(SETTINGS["ours-0.1"], 0, TINY, CPU)
    loss, _ = training._loss(*moe_images.batch(images[0], torch.arange(96), blurred=True))
    loss.backward()
    moe_training.normalise_gradients(training.model)
    for expert in training.model.experts:
        assert sum(float(p.grad.norm()) for p in expert.parameters()) == pytest.approx(1.0, rel=1e-4)


def test_the_rate_falls_by_a_cosine_and_the_gate_s_stays(images):
    training = Training(SETTINGS["top-1-default"], 0, TINY, CPU)
    rates = []
    for _ in range(2):
        training.epoch(images[0], Quiet())
        rates.append([group["lr"] for group in training.optimiser.param_groups])
    assert rates == [[pytest.approx(0.01), 1e-4], [pytest.approx(0.005), 1e-4]]


def test_the_gate_starts_without_a_preference_and_is_noisy_in_training(images):
    pixels, _ = moe_images.batch(images[0], torch.arange(4), blurred=False)
    gate = moe_training.Gate()
    noisy = gate(pixels)
    assert noisy.min() >= 0.0
    assert noisy.max() < 1.0
    assert noisy.std() > 0.1
    assert (gate.eval()(pixels) == 0.0).all()


@pytest.mark.parametrize("setting", [SETTINGS["top-1-default"], moe_training.MORE["top-2-balanced"]])
def test_masked_images_count_in_the_batch_statistics_alone(setting, images):
    """In evaluation both ways are one; in training the statistics are those of a batch with black images."""
    pixels, _ = moe_images.batch(images[0], torch.arange(96), blurred=False)
    one, other = (Training(setting, 0, TINY._replace(masked=flag), CPU) for flag in (False, True))
    other.model.load_state_dict(one.model.state_dict())
    for training in (one, other):
        training.model.eval()
    torch.testing.assert_close(one._forward(pixels)[0], other._forward(pixels)[0])
    routing = other.model.router(torch.randn(96, 4), pixels)
    torch.testing.assert_close(other._masked(pixels, routing), other.model.combine(pixels, routing))
    other.model.train()
    other._masked(pixels, routing)
    own = pixels * (routing.experts == 0).any(1).float()[:, None, None, None]
    first = other.model.experts[0].body[0](own).mean((0, 2, 3))
    torch.testing.assert_close(other.model.experts[0].body[1].running_mean, 0.1 * first)


def _record(name, seed, accuracies, load, seconds, size):
    tests = [{"accuracy": accuracy, "load": load} for accuracy in accuracies]
    mode = "transport" if name.startswith(("ours", "SCOT")) else "topk"
    return Record(name, seed, "GPU", size._asdict(), [0.1] * 10, [seconds] * 10, [load] * 10, tests, {mode: tests[-1]})


def test_the_report_is_made_from_records(tmp_path, monkeypatch):
    """Without data and without a GPU, where everything has been trained."""
    monkeypatch.setenv(moe_cifar.VARIABLE, str(tmp_path))
    size, place = moe_cifar.size_of(True), moe_cifar.place_of(True)
    for slug, setting in SETTINGS.items():
        for seed in (0, 1):
            best = (0.97 if setting.name == "ours 0.1" else 0.9) + 0.01 * seed
            record = _record(setting.name, seed, [0.8, best, 0.85], [5500, 5000, 4750, 4750], 30.0, size)
            record.write(place / f"{slug}-{seed}.json")
    report = moe_cifar.run(data=None, full=True, seed=0, progress=Quiet())
    assert [claim.holds for claim in report.claims] == [True, False], "the best epoch is good enough, the last is not"
    table = report.tables[0]
    row = next(row for row in table.rows if row[0] == "ours 0.1")
    assert row[:3] == ["ours 0.1", 95.56, pytest.approx(97.5)]
    assert row[3:6] == [pytest.approx(85.0), pytest.approx(100 * 0.01 / 2**0.5), 2]
    assert row[8] == pytest.approx(5500 / 4750)
    assert len(table.rows) == 8
    trainings = report.tables[-1]
    assert len(trainings.rows) == 16
    of_ours = [row for row in trainings.rows if row[0] == "ours 0.1"]
    assert [row[1:4] for row in of_ours] == [["no", 0, pytest.approx(97.0)], ["no", 1, pytest.approx(98.0)]]


def test_more_settings_and_trainings_on_own_images_are_reported_where_there_are_some(tmp_path, monkeypatch):
    monkeypatch.setenv(moe_cifar.VARIABLE, str(tmp_path))
    more = [setting.name for setting in moe_training.MORE.values()]
    for name, masked in [*((setting.name, True) for setting in SETTINGS.values()), *((name, False) for name in more)]:
        size, place = moe_cifar.size_of(True, masked), moe_cifar.place_of(True, masked)
        accuracy = 0.97 if name == "ours 0.1, k = 2" else 0.9
        _record(name, 0, [accuracy], [5000] * 4, 30.0, size).write(place / f"{name}.json")
    report = moe_cifar.run(data=None, full=True, seed=0, progress=Quiet())
    published, own, *_ = report.tables
    assert len(published.rows) == len(SETTINGS)
    assert sorted(row[0] for row in own.rows) == sorted(more)
    assert all(row[1] is None for row in own.rows), "the paper has none of them"
    assert all(claim.holds and "ours 0.1, k = 2, own images" in claim.text for claim in report.claims)


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setenv(moe_cifar.VARIABLE, str(tmp_path))
    monkeypatch.delenv(cifar.VARIABLE, raising=False)
    with pytest.raises(data_files.MissingDataError, match="this needs CIFAR-10"):
        moe_cifar.run(data=None, full=False, seed=0, progress=Quiet())


def test_the_paper_s_size_wants_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv(moe_cifar.VARIABLE, str(tmp_path))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="needs a GPU"):
        moe_cifar.run(data=None, full=True, seed=0, progress=Quiet())
