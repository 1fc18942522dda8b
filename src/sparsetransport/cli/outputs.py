"""Output files of the commands: their names, how they are written, and the line that reports them."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from .. import plotting
from .._files import real
from .cells import printable
from .console import output_file

PICTURES = (".png", ".pdf", ".svg")


class Output(NamedTuple):
    """The destination of a result: a file, standard output, or none."""

    what: str
    path: Path | None = None  # no file
    printed: bool = False
    new_folder: bool = False  # the folder of the file did not exist

    @property
    def ending(self) -> str:
        """The file extension, in lower case."""
        return "" if self.path is None else self.path.suffix.lower()

    def file(self) -> AbstractContextManager[Path | None]:
        """A file to write to, or None; it is written completely or not at all."""
        return nullcontext() if self.path is None else output_file(self.path)

    def tell(self) -> None:
        """Print where the file is, and whether its folder is new, which may be due to a typing error."""
        if self.path is not None:
            note = " (in a new folder)" if self.new_folder else ""
            Console().print(printable(f"{self.what}: {self.path}{note}"), soft_wrap=True, highlight=False, markup=False)


def output(what: str, path: Path | None, endings: Sequence[str], inputs: Iterable[Path]) -> Output:
    """The destination of ``--out``, checked before any work; ``-`` is standard output, no endings allow any."""
    if path is not None and str(path) == "-":
        return Output(what, printed=True)
    return _checked(what, "--out", path, endings, inputs)


def picture(path: Path | None, inputs: Iterable[Path] = ()) -> Output:
    """The destination of ``--plot``, checked before any work."""
    found = _checked("picture", "--plot", path, PICTURES, inputs)
    if path is not None:
        plotting.require_matplotlib()
    return found


def _checked(what: str, option: str, path: Path | None, endings: Sequence[str], inputs: Iterable[Path]) -> Output:
    if path is None:
        return Output(what)
    if endings and path.suffix.lower() not in endings:
        raise ValueError(f"{option} {path} must end in {either(endings)}")
    target = real(path)
    if any(target == real(other) for other in inputs):
        raise ValueError(f"{option} {path} would overwrite the input")
    return Output(what, path, new_folder=not target.parent.exists())


def either(endings: Sequence[str]) -> str:
    """File extensions as a list in words."""
    return " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
