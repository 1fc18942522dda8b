"""Files that are written completely or not at all."""

import pytest

from sparsetransport._files import whole_file


def test_a_file_appears_when_it_is_whole(tmp_path):
    """Until then the old one is there, and the temporary file is beside it with the same extension."""
    path = tmp_path / "plan.csv"
    path.write_text("old")
    with whole_file(path) as unfinished:
        assert (unfinished.parent, unfinished.suffix) == (tmp_path, ".csv")
        unfinished.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("before", ["old", None])
def test_an_error_leaves_what_was_there(tmp_path, before, error):
    """Ctrl-C as well, and nothing half-written beside it."""
    path = tmp_path / "plan.csv"
    if before is not None:
        path.write_text(before)

    def interrupted():
        with whole_file(path) as unfinished:
            unfinished.write_text("half")
            raise error

    with pytest.raises(type(error)) as caught:
        interrupted()
    assert caught.value is error
    assert [one.read_text() for one in tmp_path.iterdir()] == ([] if before is None else ["old"])


def test_nothing_written_is_an_error(tmp_path):
    """The old file stays."""
    path = tmp_path / "plan.csv"
    path.write_text("old")
    with pytest.raises(FileNotFoundError), whole_file(path):
        pass
    assert path.read_text() == "old"
