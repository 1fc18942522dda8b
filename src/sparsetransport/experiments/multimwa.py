"""MultiMWA-Wiki, sentence pairs with aligned words, from a local folder."""

from pathlib import Path
from typing import NamedTuple

from .data_files import VARIABLE, MissingDataError, find_file, folder_of

SPLITS = ("dev", "test")
_HELP = (
    "it is in the repository yukiar/OTAlign on GitHub, under data/MultiMWA-data; "
    f"name its folder with --data or ${VARIABLE}"
)
_FIRST, _SECOND, _SURE = 1, 3, 7  # columns


class Example(NamedTuple):
    """Two sentences and the links between their words that annotators are sure of."""

    first: list[str]
    second: list[str]
    links: frozenset[tuple[int, int]]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of words."""
        return len(self.first), len(self.second)


def load(data: str | Path | None, split: str) -> list[Example]:
    """A split of MultiMWA-Wiki, in lower case, split at white space.

    Parameters
    ----------
    data : path, optional
        A folder that holds ``wiki-dev.tsv`` and ``wiki-test.tsv`` at any depth; ``$SPARSETRANSPORT_DATA`` by default.
    split : {"dev", "test"}

    Returns
    -------
    list of Example
    """
    place = folder_of(data, "MultiMWA-Wiki", _HELP)
    name = f"wiki-{split}.tsv"
    path = find_file(place, name)
    if path is None:
        raise MissingDataError(f"{name} of MultiMWA-Wiki is not under {place}: {_HELP}")
    text = path.read_text(encoding="utf-8")
    return [_example(path, number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]


def _example(path: Path, number: int, line: str) -> Example:
    cells = line.split("\t")
    if len(cells) <= _SURE:
        raise ValueError(f"{path}, line {number}: must have at least {_SURE + 1} columns, got {len(cells)}")
    first, second = cells[_FIRST].lower().split(), cells[_SECOND].lower().split()
    links = set()
    for link in cells[_SURE].split():
        i, _, j = link.partition("-")
        if not (i.isdigit() and j.isdigit() and int(i) < len(first) and int(j) < len(second)):
            raise ValueError(f"{path}, line {number}: {link!r} is not a link of {len(first)} and {len(second)} words")
        links.add((int(i), int(j)))
    return Example(first, second, frozenset(links))
