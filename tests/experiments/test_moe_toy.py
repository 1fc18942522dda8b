"""The toy mixture: the data is as described, every router trains, and the report is whole."""

import warnings

import numpy as np
import pytest

from sparsetransport.experiments import Quiet

torch = pytest.importorskip("torch")
pytest.importorskip("ot")
pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")

from sparsetransport.experiments import moe_toy  # noqa: E402


@pytest.fixture(autouse=True)
def quiet():
    """POT warns where its iterations do not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_the_data_is_as_described():
    data = moe_toy.draw_data(np.random.default_rng(0))
    assert [len(points) for points, _ in data] == [100, 20, 100]
    everything = np.concatenate([points for points, _ in data])
    assert everything.max() == 1.0
    shares = [labels.mean() for _, labels in data]
    assert max(shares) - min(shares) < 0.06, "splits are stratified"
    assert 0.3 < shares[0] < 0.8


def test_the_order_of_a_split_does_not_tell_the_class():
    """Sorted by label, the rank correlation of position and label would be 0.87."""
    places = []
    for seed in range(50):
        for _, labels in moe_toy.draw_data(np.random.default_rng(seed)):
            position = np.arange(len(labels)) / len(labels)
            places.append(position[labels == 1].mean() - position[labels == 0].mean())
    assert abs(np.mean(places)) < 0.03
    assert np.abs(places).max() < 0.45, "half for a sorted split"


@pytest.mark.parametrize("name", ["top-2", moe_toy.OURS])
def test_what_is_dropped_does_not_tell_the_class(name):
    """Second choices of both classes are kept alike by a gate that knows nothing."""
    kept = {0: [], 1: []}
    for seed in range(20):
        points, labels = moe_toy.draw_data(np.random.default_rng(seed)).train
        torch.manual_seed(seed)
        layer = moe_toy.make_layer(moe_toy.methods()[name][0]())
        tokens = torch.tensor(points, dtype=torch.float32)
        with torch.no_grad():
            experts = layer.router(layer.gate(tokens), tokens).experts
        second = moe_toy.within(experts, 41)[:, 1].numpy()
        for label in kept:
            kept[label].append(second[labels == label].mean())
    assert abs(np.mean(kept[0]) - np.mean(kept[1])) < 0.15


def test_paired_differences():
    """The p value is that of Student's t with n − 1 degrees of freedom; equal samples have none."""
    from scipy import stats

    mean, error, p = moe_toy.paired([3.0, 5.0, 4.0], [1.0, 2.0, 3.0])
    assert (mean, error) == (2.0, pytest.approx(1.0 / np.sqrt(3.0)))
    assert p == pytest.approx(2.0 * stats.t.sf(mean / error, 2))
    assert moe_toy.paired([1.0, 2.0], [1.0, 2.0]) == (0.0, None, None)


def test_what_finds_no_room_is_dropped_second_choices_first():
    experts = torch.tensor([[0, 1], [0, 1], [0, 1], [1, 0], [2, 0]])
    assert moe_toy.within(experts, 2).tolist() == [[True, True], [True, False], [False, False], [True, False]] + [
        [True, False]
    ]
    assert moe_toy.within(experts, 5).all()


@pytest.mark.parametrize("training", [True, False])
def test_no_expert_takes_more_than_its_capacity(training):
    data = moe_toy.draw_data(np.random.default_rng(0))
    torch.manual_seed(0)
    layer = moe_toy.make_layer(moe_toy.methods()["top-2"][0]()).train(training)
    answer = moe_toy.ask(layer, torch.tensor(data.train[0], dtype=torch.float32))
    assert answer.load.max() == (41 if training else 66)
    assert answer.balance >= 0.5


def test_ours_fits_the_capacity_of_testing():
    data = moe_toy.draw_data(np.random.default_rng(0))
    torch.manual_seed(0)
    layer = moe_toy.make_layer(moe_toy.methods()[moe_toy.OURS][0]()).eval()
    answer = moe_toy.ask(layer, torch.tensor(data.test[0], dtype=torch.float32))
    assert answer.load.sum() >= 196
    assert layer.router.capacity_factor == pytest.approx(66 * 3 / 100)


def test_the_epoch_that_did_best_on_the_validation_split_is_kept():
    data = moe_toy.draw_data(np.random.default_rng(1))
    router = moe_toy.methods()["top-2"][0]
    scores = [moe_toy.score(moe_toy.train(router(), data, 0, epochs), data.validation)[0] for epochs in (1, 20, 60)]
    assert scores == sorted(scores)
    assert scores[-1] > 50.0


def test_the_report_is_whole(tmp_path):
    report = moe_toy.run(data=None, full=False, seed=0, progress=Quiet(), seeds=2, epochs=2)
    assert [row[0] for row in report.tables[0].rows] == list(moe_toy.methods())
    assert len(report.tables[0].rows) == 8
    assert {path.name for path in report.write(tmp_path)} == {"table.md", "table.json", "experts.png"}


def test_one_seed_one_answer():
    data = moe_toy.draw_data(np.random.default_rng(2))
    scores = [
        moe_toy.score(moe_toy.train(moe_toy.methods()[moe_toy.OURS][0](), data, 5, 10), data.test) for _ in range(2)
    ]
    assert scores[0] == scores[1]
