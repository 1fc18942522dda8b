"""``sparsetransport align``: two sentences on the terminal, files line by line, and nothing finished is done twice."""

import pytest
from typer.testing import CliRunner

from sparsetransport import cli
from sparsetransport.apps.word_alignment import WordAligner
from sparsetransport.cli import align as command
from sparsetransport.cli.pairs_file import PairsFile, Partial

LINES = ["a big house\ta house .", "abc d\td abc", "e f g h\te g h", "x\tx y"]


@pytest.fixture
def invoke(tiny_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("\n".join(LINES * 3) + "\n", encoding="utf-8")

    def run(*arguments, encoder=tiny_model):
        return CliRunner().invoke(cli.app, ["align", *map(str, arguments), "--encoder", str(encoder)])

    return run


@pytest.fixture
def wanted(tiny_model):
    aligner = WordAligner(tiny_model)
    return [found.pharaoh for found in aligner.align_many([line.split("\t") for line in LINES * 3])]


def test_two_sentences_are_shown_with_their_links_and_what_is_left_over(invoke, tiny_model):
    answer = invoke("x y z", "x y")
    assert answer.exit_code == 0, answer.output
    found = WordAligner(tiny_model).align("x y z", "x y")
    assert f"links: {found.pharaoh}" in answer.stdout
    first = answer.stdout.splitlines()[0]
    assert first == " ".join(word if k not in found.unaligned_1 else f"[{word}]" for k, word in enumerate("xyz"))
    assert "unaligned in the first:" in answer.stdout


def test_an_empty_sentence_has_no_links(invoke):
    answer = invoke("", "x y")
    assert answer.exit_code == 0
    assert "unaligned in the second: x y" in answer.stdout
    assert answer.stdout.splitlines()[-1] == "links:"


def test_a_picture_of_two_sentences(invoke, tmp_path):
    pytest.importorskip("matplotlib")
    assert invoke("x y", "x y", "--plot", "links.png").exit_code == 0
    assert (tmp_path / "links.png").stat().st_size > 1000


def test_a_file_of_pairs_has_a_line_of_links_for_each(invoke, tmp_path, wanted):
    answer = invoke("pairs.tsv", "--out", "new/links.txt", "--jobs", -2)
    assert answer.exit_code == 0, answer.output
    assert answer.stdout == "12 pairs: new/links.txt (in a new folder)\n"
    assert (tmp_path / "new" / "links.txt").read_text().splitlines() == wanted
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["links.txt"]
    for more in ([], ["--out", "-"]):
        assert invoke("pairs.tsv", *more).stdout.splitlines() == wanted, "without --out they are printed"
    assert invoke("pairs.tsv", "--out", "new/links.txt", "--jobs", 2).stdout == "12 pairs: new/links.txt\n"


def test_an_interrupted_file_goes_on_where_it_was(invoke, tmp_path, wanted, monkeypatch):
    monkeypatch.setattr(command, "CHUNK", 5)
    real, calls = WordAligner.align_many, []

    def interrupted(self, pairs, **options):
        calls.append(len(pairs))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(self, pairs, **options)

    monkeypatch.setattr(WordAligner, "align_many", interrupted)
    answer = invoke("pairs.tsv", "--out", "links.txt")
    assert answer.exit_code == 130
    assert "5 of 12 pairs are kept in links.txt.partial" in answer.stderr
    assert not (tmp_path / "links.txt").exists()
    with (tmp_path / "links.txt.partial").open("a") as file:
        file.write("0-0 1-")  # a line that was cut off
    answer = invoke("pairs.tsv", "--out", "links.txt")
    assert answer.exit_code == 0
    assert "5 of 12 pairs are in links.txt.partial: continuing from there" in answer.stderr
    assert calls == [5, 5, 5, 2], "the first five are not done again"
    assert (tmp_path / "links.txt").read_text().splitlines() == wanted
    assert not (tmp_path / "links.txt.partial").exists()


def test_what_another_file_left_behind_is_not_gone_on_with(invoke, tmp_path, wanted):
    source = PairsFile(tmp_path / "pairs.tsv", (0, 1), skip_bad=False)
    other = Partial(tmp_path / "links.txt", source.key("another encoder"))
    with other.opened():
        other.add(["9-9"] * 5)
    answer = invoke("pairs.tsv", "--out", "links.txt")
    assert answer.exit_code == 0
    assert "going on" not in answer.stderr
    assert (tmp_path / "links.txt").read_text().splitlines() == wanted


def test_a_line_without_its_columns_is_named_and_the_rest_aligned_on_request(invoke, tmp_path, wanted):
    (tmp_path / "bad.tsv").write_text("\n".join([LINES[0], "no tab here", LINES[1]]) + "\n")
    answer = invoke("bad.tsv", "--out", "links.txt")
    assert answer.exit_code == 2
    assert "bad.tsv, line 2: must have 2 columns, got 1 (--skip-bad aligns the rest)" in answer.stderr
    assert not list(tmp_path.glob("links*"))
    answer = invoke("bad.tsv", "--out", "links.txt", "--skip-bad")
    assert answer.exit_code == 0
    assert "bad.tsv, line 2: must have 2 columns, got 1: left without links" in answer.stderr
    assert (tmp_path / "links.txt").read_text().split("\n") == [wanted[0], "", wanted[1], ""]


def test_columns_say_where_the_sentences_are(invoke, tmp_path, wanted):
    (tmp_path / "more.tsv").write_text("".join(f"id\t{line}\tend\n" for line in LINES))
    assert invoke("more.tsv", "--columns", "2,3").stdout.splitlines() == wanted[:4]


def test_line_ends_and_marks_of_other_systems_do_no_harm(invoke, tmp_path, wanted):
    (tmp_path / "dos.tsv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(LINES).encode())
    assert invoke("dos.tsv").stdout.splitlines() == wanted[:4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.tsv"], "there is no file 'no.tsv'"),
        (["pairs.tsv", "--columns", "2"], "--columns must be two numbers such as 1,2, got '2'"),
        (["pairs.tsv", "--columns", "0,1"], "--columns must be two numbers"),
        (["pairs.tsv", "--jobs", "0"], "--jobs must be a number of threads"),
        (["pairs.tsv", "--out", "pairs.tsv"], "--out pairs.tsv would overwrite the input"),
        (["pairs.tsv", "--plot", "links.png"], "--plot needs two sentences"),
        (["x", "y", "--out", "links.txt"], "--out needs a file of pairs"),
        (["x", "y", "--plot", "links.doc"], "--plot links.doc must end in"),
        (["x", "y", "--layer", "-9"], "layer must be an int from -3 to -1"),
        (["latin.tsv"], "latin.tsv, line 2: must be text in UTF-8"),
    ],
)
def test_bad_input_ends_in_one_sentence(invoke, tmp_path, arguments, message):
    (tmp_path / "latin.tsv").write_bytes(b"a\tb\ncaf\xe9\tb\n")
    answer = invoke(*arguments)
    assert answer.exit_code == 2
    assert message in answer.stderr.replace("\n", " ")
    assert answer.stderr.count("Error:") == 1


def test_an_unknown_encoder_ends_in_one_sentence(invoke, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    answer = invoke("x", "y", encoder="no-such-model")
    assert answer.exit_code == 2
    assert "unknown encoder 'no-such-model'" in answer.stderr
