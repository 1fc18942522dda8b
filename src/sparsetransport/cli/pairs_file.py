"""Files of sentence pairs, one a line with tabs between columns, and partial files of their links."""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .._files import naming, permissions, whole_file

_MARK = "# sparsetransport align "


class PairsFile:
    """A file of sentence pairs, checked once as a whole and then read on demand.

    Parameters
    ----------
    path : Path
        UTF-8, one pair a line.
    columns : pair of int
        The columns of the sentences, counted from 0.
    skip_bad : bool
        Treat a line without these columns as a pair without words and record it in ``bad``; otherwise it is an error.
    """

    def __init__(self, path: Path, columns: tuple[int, int], *, skip_bad: bool) -> None:
        self.path, self.columns = path, columns
        self.bad: list[str] = []
        self.count = 0
        digest = hashlib.sha256()
        for number, line in enumerate(self._lines(), 1):
            digest.update(line.encode() + b"\n")
            self.count = number
            cells = line.split("\t")
            if max(columns) >= len(cells):
                problem = f"{path}, line {number}: must have {max(columns) + 1} columns, got {len(cells)}"
                if not skip_bad:
                    raise ValueError(f"{problem} (--skip-bad aligns the rest)")
                self.bad.append(problem)
        self._digest = digest.hexdigest()

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The sentences of every line; none for those that are bad."""
        for line in self._lines():
            cells = line.split("\t")
            good = max(self.columns) < len(cells)
            yield (cells[self.columns[0]], cells[self.columns[1]]) if good else ("", "")

    def key(self, *settings: str) -> str:
        """A key for the links of this file with these settings."""
        every = "\n".join([self._digest, str(self.columns), *settings])
        return hashlib.sha256(every.encode()).hexdigest()[:32]

    def _lines(self) -> Iterator[str]:
        with self.path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                try:
                    yield raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    raise ValueError(f"{self.path}, line {number}: must be text in UTF-8") from None


class Partial:
    """The finished lines, in a temporary file beside the output file, which it becomes at the end."""

    def __init__(self, out: Path, key: str) -> None:
        self.out, self.path = out, out.with_name(f"{out.name}.partial")
        self._header = f"{_MARK}{key}\n".encode()
        self.done = 0
        self._end = 0
        self._file: IO[bytes] | None = None
        if self.path.is_file():
            with self.path.open("rb") as file:
                if file.readline() == self._header:
                    self._end = len(self._header)
                    for line in file:
                        if line.endswith(b"\n"):  # otherwise it was cut off
                            self._end += len(line)
                            self.done += 1

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Open for more lines, after the last complete one; a file with other settings is started again."""
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch((permissions(self.out) if self.out.is_file() else None) or 0o666)
        with naming(self.path), self.path.open("r+b" if self._end else "wb") as file:
            if self._end:
                file.truncate(self._end)
                file.seek(self._end)
            else:
                file.write(self._header)
            self._file = file
            yield

    def add(self, lines: Sequence[str]) -> None:
        """Write lines to the disk."""
        if self._file is None:
            raise ValueError("the file must be opened before lines are added")
        self._file.write("".join(f"{line}\n" for line in lines).encode())
        self._file.flush()
        self.done += len(lines)

    def finish(self) -> None:
        """Rename it to the output file."""
        with whole_file(self.out) as unfinished, self.path.open("rb") as file, unfinished.open("wb") as whole:
            file.readline()
            shutil.copyfileobj(file, whole)
        self.path.unlink()
