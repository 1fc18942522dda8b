"""The report of an experiment: tables, claims and figures, shown on a terminal or written to a folder."""

import json
import math
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .._files import whole_file

if TYPE_CHECKING:
    from rich.console import RenderableType

_PACKAGES = ("numpy", "scipy", "numba", "matplotlib", "POT", "scikit-learn", "torch")


class Progress(Protocol):
    """The interface for the progress of an experiment."""

    def step(self, text: str) -> None:
        """Called before each step."""


class Quiet:
    """Progress that prints nothing."""

    def step(self, text: str) -> None:
        """Do nothing."""


@dataclass
class Table:
    """A table of raw values and their formats.

    Attributes
    ----------
    title : str
    columns : list of str
    rows : list of lists
        One value for each column: a number, a string, a bool, or None for an empty cell.
    formats : dict
        The number format of a column, by its name, such as ``".1e"``; ``"g"`` by default.

    Examples
    --------
    >>> table = Table("Gaps", ["kernel", "gap"], [["RBF", 1.25e-7], ["IMQ", None]], {"gap": ".0e"})
    >>> print(table.markdown())
    ### Gaps
    <BLANKLINE>
    | kernel | gap |
    |---|--:|
    | RBF | 1e-07 |
    | IMQ |  |
    """

    title: str
    columns: list[str]
    rows: list[list[Any]] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)

    def texts(self) -> list[list[str]]:
        """The rows as formatted texts."""
        return [[self._text(name, value) for name, value in zip(self.columns, row, strict=True)] for row in self.rows]

    def _text(self, column: str, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, bool | np.bool):
            return "yes" if value else "no"
        if isinstance(value, float | np.floating):
            return format(float(value), self.formats.get(column, "g"))
        if column in self.formats and isinstance(value, int | np.integer):
            return format(int(value), self.formats[column])
        return str(value)

    def _is_number(self, column: int) -> bool:
        values = [row[column] for row in self.rows if row[column] is not None]
        return bool(values) and all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in values)

    def markdown(self) -> str:
        """The table as Markdown, with numbers aligned to the right."""
        rule = ["--:" if self._is_number(k) else "---" for k in range(len(self.columns))]
        lines = [self.columns, *self.texts()]
        texts = ["| " + " | ".join(text.replace("|", r"\|") for text in line) + " |" for line in lines]
        return "\n".join([f"### {self.title}", "", texts[0], "|" + "|".join(rule) + "|", *texts[1:]])

    def rich(self) -> "RenderableType":
        """The table for a terminal."""
        from rich.table import Table as Rich

        table = Rich(title=self.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for k, name in enumerate(self.columns):
            table.add_column(name, justify="right" if self._is_number(k) else "left")
        for line in self.texts():
            table.add_row(*line)
        return table

    def as_dict(self) -> dict[str, Any]:
        """The raw values, for JSON."""
        return {"title": self.title, "columns": self.columns, "rows": self.rows}


class Claim(NamedTuple):
    """A claim of the experiment, and whether it holds."""

    text: str
    holds: bool

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'DOES NOT HOLD'}: {self.text}"


@dataclass
class Report:
    """The outcome of an experiment.

    Attributes
    ----------
    name : str
        The experiment.
    command : str
        The command that runs it again.
    seed : int
    tables : list of Table
    figures : dict
        By file name (``"gap.png"``): a matplotlib Figure, the bytes of the file, or a function that writes the file
        it is given.
    claims : list of Claim
    notes : list of str
        Notes on the tables, a sentence or two each.
    times : dict
        Seconds, by what they were spent on.

    Examples
    --------
    >>> import tempfile
    >>> report = Report("sums", "sparsetransport reproduce sums", tables=[Table("Sums", ["a", "b"], [[1, 2.0]])])
    >>> report.claim("two is more than one", 2 > 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in report.write(folder)]
    ['table.md', 'table.json']
    """

    name: str
    command: str
    seed: int = 0
    tables: list[Table] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    times: dict[str, float] = field(default_factory=dict)

    def claim(self, text: str, holds: bool) -> None:
        """Add a claim, and whether it holds."""
        self.claims.append(Claim(text, bool(holds)))

    def markdown(self) -> str:
        """All tables, claims and notes, and the command that made them."""
        parts = [f"## {self.name}", *(table.markdown() for table in self.tables)]
        if self.claims:
            parts.append("\n".join(f"- {claim}" for claim in self.claims))
        parts += self.notes
        parts += [f"![{Path(name).stem}]({name})" for name in self.figures]
        parts.append(f"Made by `{self.command}` (seed {self.seed}); versions and times are in `table.json`.")
        return "\n\n".join(parts) + "\n"

    def rich(self) -> "RenderableType":
        """All tables, claims and notes for a terminal."""
        from rich.console import Group
        from rich.text import Text

        parts: list[RenderableType] = []
        for table in self.tables:
            parts += [table.rich(), ""]
        for claim in self.claims:
            parts.append(Text(f"• {claim}", style="" if claim.holds else "bold red"))
        parts += [Text(note, style="dim") for note in self.notes]
        return Group(*parts)

    def as_dict(self) -> dict[str, Any]:
        """Everything except the figures, as values for JSON."""
        return {
            "name": self.name,
            "command": self.command,
            "seed": self.seed,
            "tables": [table.as_dict() for table in self.tables],
            "claims": [{"text": claim.text, "holds": claim.holds} for claim in self.claims],
            "notes": self.notes,
            "seconds": self.times,
            "versions": versions(),
            "pictures": list(self.figures),
        }

    def write(self, folder: str | Path) -> list[Path]:
        """Write ``table.md``, ``table.json`` and the figures; each file is written completely or not at all."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps(_plain(self.as_dict()), indent=1, ensure_ascii=False, allow_nan=False)
        texts = {"table.md": self.markdown(), "table.json": content + "\n"}
        pictures = {name: _writer(name, picture) for name, picture in self.figures.items()}
        for name, text in texts.items():
            with whole_file(folder / name) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
        for name, write in pictures.items():
            with whole_file(folder / name) as unfinished:
                write(unfinished)
        return [folder / name for name in [*texts, *pictures]]


def command(name: str, *, full: bool = False, seed: int = 0) -> str:
    """The command that runs an experiment, without the folder of the data."""
    return f"sparsetransport reproduce {name}" + " --full" * full + f" --seed {seed}" * (seed != 0)


def versions() -> dict[str, str]:
    """The versions of the packages that the numbers depend on."""
    found = {"sparsetransport": metadata.version("sparsetransport"), "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {**found, "system": f"{platform.system()} {platform.machine()}", "cpus": str(os.cpu_count())}


def _writer(name: str, picture: Any) -> Callable[[Path], object]:
    """A function that writes one figure to a given file."""
    if isinstance(picture, bytes):
        return lambda path: path.write_bytes(picture)
    if hasattr(picture, "savefig"):
        return lambda path: picture.savefig(path, format=Path(name).suffix[1:])
    if callable(picture):
        return picture  # type: ignore[no-any-return]
    raise TypeError(f"the figure {name} must be a Figure, bytes or a function, got {type(picture).__name__}")


def _plain(value: Any) -> Any:
    """A value for JSON: NumPy numbers as Python numbers, numbers that are not finite as None."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
