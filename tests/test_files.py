"""Files that are written completely or not at all."""

import errno
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

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


def test_many_threads_may_write_one_file(tmp_path):
    """One of them is last, its file is whole, and nothing else is left."""
    path, begin = tmp_path / "plan.csv", threading.Barrier(8)
    contents = [str(k) * 10_000 for k in range(8)]

    def write(content):
        begin.wait()
        for _ in range(50):
            with whole_file(path) as unfinished:
                unfinished.write_text(content)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, contents))
    assert path.read_text() in contents
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_an_existing_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "plan.csv"
    path.write_text("old")
    path.chmod(mode)
    with whole_file(path) as unfinished:
        unfinished.write_text("new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


@pytest.mark.parametrize("target", ["real.csv", "missing.csv"])
def test_a_link_stays_and_its_target_is_written(tmp_path, target):
    (tmp_path / "real.csv").write_text("old")
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / target)
    with whole_file(link) as unfinished:
        unfinished.write_text("new")
    assert link.is_symlink()
    assert (tmp_path / target).read_text() == "new"


def test_links_in_a_circle_are_an_error_of_the_system(tmp_path):
    """They are not replaced."""
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.symlink_to(second)
    second.symlink_to(first)
    with pytest.raises(OSError, match=r"symbolic links: '.*first\.csv'"), whole_file(first) as unfinished:
        unfinished.write_text("new")
    assert sorted(tmp_path.iterdir()) == [first, second]
    assert first.is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_to_not_replaced(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(pipe.read_text)
        with whole_file(pipe) as unfinished:
            unfinished.write_text("content")
        assert read.result(30) == "content"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_full_disk_names_the_file(tmp_path):
    path = tmp_path / "plan.csv"
    with pytest.raises(OSError, match=r"No space left on device: '.*plan\.csv'"), whole_file(path):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_missing_folder_is_told_of_the_file_asked_for(tmp_path):
    """Not of the temporary one beside it."""
    path = tmp_path / "missing" / "plan.csv"
    with pytest.raises(FileNotFoundError, match=r"plan\.csv'$"), whole_file(path) as unfinished:
        unfinished.write_text("content")
