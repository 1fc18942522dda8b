"""Tables whose rows and columns have names, from CSV files; every complaint names the file, the row and the column."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._checks import Floats
from .cells import decimal_commas, number, opening


class Cells(NamedTuple):
    """The cells of a file as text, with the line that each row is on."""

    path: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]
    comma: bool = False  # before the decimals

    def place(self, row: int, column: int) -> str:
        """Where a cell is, for people: by the names of its row and column, and by the line."""
        name = self.rows[row][0] if column else ""
        which = f"line {self.lines[row]}" + (f" (row {name!r})" if name else "")
        return f"{self.path}, {which}, column {self.header[column]!r}"

    def number(self, row: int, column: int, *, negative: bool) -> float:
        """A finite number, not negative unless it may be."""
        cell = self.rows[row][column]
        try:
            value = number(cell, comma=self.comma)
        except ValueError as error:
            raise ValueError(f"{self.place(row, column)}: {error}") from None
        if not math.isfinite(value):
            raise ValueError(f"{self.place(row, column)}: {cell} is not a finite number")
        if value < 0.0 and not negative:
            raise ValueError(f"{self.place(row, column)}: must not be negative, got {cell}")
        return value


class Labelled(NamedTuple):
    """Numbers with the names of their rows and columns."""

    path: Path
    rows: list[str]
    columns: list[str]
    values: Floats


def read_cells(path: Path) -> Cells:
    """The cells of a CSV file below its header, none missing."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8: {error.reason} at byte {error.start}") from None
    begin = opening(io.StringIO(text, newline=""))
    if begin is None:
        raise ValueError(f"{path} is empty")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=begin.delimiter)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    found = [(line, row) for line, row in rows if any(row) and line > begin.before]
    header = found[0][1]
    for line, row in found[1:]:
        if len(row) != len(header):
            raise ValueError(f"{path}, line {line}: {len(row)} cells where the header has {len(header)}")
    below = [row for _, row in found[1:]]
    comma = decimal_commas(begin.delimiter, (cell for row in below for cell in row))
    return Cells(path, header, below, [line for line, _ in found[1:]], comma)


def read_labelled(path: Path, *, negative: bool = False, what: str = "rows") -> Labelled:
    """A table of numbers: the first line names the columns, the first column the rows."""
    cells = read_cells(path)
    if len(cells.header) < 2:
        raise ValueError(f"{path} must have a column of names and at least one of numbers, it has {len(cells.header)}")
    if not cells.rows:
        raise ValueError(f"{path} has no {what}: there is nothing below its header")
    columns, rows = cells.header[1:], [row[0] for row in cells.rows]
    _require_names(path, "column", columns, [f"column {k + 2}" for k in range(len(columns))])
    _require_names(path, "row", rows, [f"line {line}" for line in cells.lines])
    values = np.array(
        [
            [cells.number(row, column, negative=negative) for column in range(1, len(cells.header))]
            for row in range(len(cells.rows))
        ]
    )
    return Labelled(path, rows, columns, values)


def read_pairs(path: Path, plants: Sequence[str], products: Sequence[str]) -> dict[tuple[int, int], int]:
    """Links by name, and the line that each is on first.

    The file has a column ``plant`` and a column ``product``, in any case; others are left alone.
    """
    cells = read_cells(path)
    at, titles = [], [title.lower() for title in cells.header]
    for name in ("plant", "product"):
        if name not in titles:
            raise ValueError(f"{path} must have a column {name!r}, it has {', '.join(map(repr, cells.header))}")
        at.append(titles.index(name))
    found: dict[tuple[int, int], int] = {}
    for row in range(len(cells.rows)):
        ends = []
        for column, known, what in zip(at, (plants, products), ("plant", "product"), strict=True):
            name = cells.rows[row][column]
            if name not in known:
                where = f"{path}, line {cells.lines[row]}, column {cells.header[column]!r}"
                raise ValueError(f"{where}: there is no {what} {name!r} in the profits")
            ends.append(list(known).index(name))
        found.setdefault((ends[0], ends[1]), cells.lines[row])
    return found


def in_order(table: Labelled, names: Sequence[str], axis: int, of: Path) -> Floats:
    """The numbers with their rows (axis 0) or columns (axis 1) in the order of the names, which must be the same."""
    held = table.rows if axis == 0 else table.columns
    what = "row" if axis == 0 else "column"
    for name in names:
        if name not in held:
            raise ValueError(f"{table.path} has no {what} {name!r}, which {of} has")
    for name in held:
        if name not in names:
            raise ValueError(f"{table.path}, {what} {name!r}: {of} has nothing of that name")
    return np.take(table.values, [held.index(name) for name in names], axis=axis)


def _require_names(path: Path, what: str, names: Sequence[str], places: Sequence[str]) -> None:
    """Every row and column has a name of its own."""
    seen: dict[str, str] = {}
    for name, place in zip(names, places, strict=True):
        if not name:
            raise ValueError(f"{path}, {place}: the {what} has no name")
        if name in seen:
            raise ValueError(f"{path}, {place}: the {what} {name!r} is there twice, first in {seen[name]}")
        seen[name] = place
