"""Points, masses and costs from CSV, NPY, NPZ and Parquet files; every error names the file and the place in it."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import _checks
from .._checks import Floats
from .cells import Rows, like_a_number
from .table import Header, Table, plain_header, read_table

# Titles of columns whose numbers are names.
_IDS = re.compile(
    r"(.*[\W_])?(id|ids|index|code|key|no|nr|number|name|label|from|origin|source|supplier|plant|site|depot|warehouse|store)",
    re.IGNORECASE,
)


class Side(NamedTuple):
    """The points of one side, and the names of their coordinates, masses and labels if the file has them."""

    points: Floats
    names: list[str] | None
    mass: Floats | None
    labels: list[str] | None


def read_points(
    path: Path, key: str, *, columns: Sequence[str] | None = None, mass: str | None = None, label: str | None = None
) -> Side:
    """The points of a file: all its columns or those asked for, except the columns of masses and labels."""
    asked = [name for name in (mass, label, *(columns or ())) if name is not None]
    table = read_table(path, key, _header(asked), text=label is not None)
    mass_at = None if mass is None else table.find(mass, "--mass-column", twice=True)
    label_at = None if label is None else table.find(label, "--label-column", twice=True)
    if columns is not None:
        chosen = [table.find(name, "--columns", twice=True) for name in columns]
    else:
        chosen = [k for k in range(len(table.columns)) if k not in (mass_at, label_at)]
        if table.names is not None and any(not table.names[k] for k in chosen):
            raise ValueError(f"{path} has a column without a name: choose the columns of coordinates with --columns")
    if not chosen:
        raise ValueError(f"{path} has no column of coordinates left")
    if label is None and table.names is not None:
        for k in chosen:
            if _is_text(table.columns[k]):
                hint = f"if these are names, use {label_option(table.names[k])}"
                raise ValueError(f"{table.place(0, k)}: {table.text(k)[0]!r} is not a number; {hint}")
    return Side(
        table.numbers(chosen),
        None if table.names is None else [table.names[k] for k in chosen],
        None if mass_at is None else table.numbers([mass_at], negative=False)[:, 0],
        None if label_at is None else table.text(label_at),
    )


class Costs(NamedTuple):
    """A matrix of costs, and the names of its rows and columns where the file has them."""

    matrix: Floats
    rows: list[str] | None
    cols: list[str] | None


def read_costs(path: Path, key: str, *, label: str | None = None) -> Costs:
    """A matrix of costs, where ``inf`` forbids a pair; the first column may have names, or another one asked for."""
    table = read_table(path, key, _header_of_costs if label is None else _header([label]), text=label is not None)
    if label is not None:
        names: int | None = table.find(label, "--label-column")
    else:
        names = 0 if _starts_with_names(table) or _has_numbers_for_titles(table) else None
    chosen = [k for k in range(len(table.columns)) if k != names]
    if not chosen:
        raise ValueError(f"{path} has no column of costs left")
    if names is None:
        _warn_of_ids(table)
    return Costs(
        table.numbers(chosen, infinite=True),
        None if names is None else table.text(names),
        None if table.names is None else [table.names[k] for k in chosen],
    )


def _warn_of_ids(table: Table) -> None:
    """Warn if the first column of costs looks like row numbers."""
    if table.names is None or len(table.columns) < 2:
        return
    title, cells = table.names[0], table.numbers([0], infinite=True)[:, 0]
    counted = len(cells) > 1 and np.array_equal(cells - np.arange(len(cells)), np.full(len(cells), cells[0]))
    whole = bool((cells == np.floor(cells)).all()) and len(set(cells.tolist())) == len(cells)
    if (whole and _IDS.fullmatch(title)) or (counted and np.isfinite(cells[0])):
        read = f"the column {title!r} of {table.path} is read as costs"
        _checks.warn(f"{read}: if these are names, use {label_option(title)}")


class Masses(NamedTuple):
    """Masses, with the names beside them, or above them for a row."""

    mass: Floats
    names: list[str] | None = None
    titles: list[str] | None = None


def read_masses(path: Path, key: str) -> Masses:
    """A column or a row of masses; or two columns, of names and masses."""
    table = read_table(path, key, _header_of_masses)
    several = len(table.columns[0]) > 1
    if len(table.columns) == 2 and (_starts_with_names(table) or (table.names is not None and several)):
        return Masses(table.numbers([1], negative=False)[:, 0], table.text(0))
    titles = None
    if len(table.columns) > 1 and not several:
        titles = table.names
        table = Table(path, None, [table.numbers(range(len(table.columns)))[0]])
    if len(table.columns) > 1:
        hint = ": if the names are numbers, add a header line" if len(table.columns) == 2 else ""
        raise ValueError(
            f"{path} must have one column of masses, or names and masses, it has {len(table.columns)}{hint}"
        )
    return Masses(table.numbers([0], negative=False)[:, 0], titles=titles)


def label_option(name: str) -> str:
    """The command-line option for a column of names."""
    return f"--label-column {shlex.quote(name)}"


def _header(asked: Sequence[str]) -> Header:
    """A test for headers: first rows without numbers, or with one of the names that options ask for."""
    known = {name for name in asked if not like_a_number(name)}

    def is_header(rows: Rows) -> bool:
        if plain_header(rows.cells[0]) or known & set(rows.cells[0]):
            return True
        _refuse_words(rows, 0)
        return False

    return is_header


def _header_of_costs(rows: Rows) -> bool:
    """True for a header of costs, which may also have numbers as names, after an empty corner or a title."""
    corner, *titles = rows.cells[0]
    if plain_header(rows.cells[0]) or (not corner and titles):
        return True
    below = [row[0] for row in rows.cells[1:]]
    if titles and not like_a_number(corner) and below and all(map(like_a_number, below)):
        line = f"{rows.path}, line {rows.lines[0]}"
        _checks.warn(f"{line} is read as a header, and the first column as names: {label_option(corner)} confirms it")
        return True
    _refuse_words(rows, 0)
    return False


def _header_of_masses(rows: Rows) -> bool:
    """True for a header of masses; without a header there may be names beside the masses."""
    if plain_header(rows.cells[0]):
        return True
    _refuse_words(rows, 1 if len(rows.cells[0]) == 2 else 0, hint=False)
    return False


def _refuse_words(rows: Rows, start: int, *, hint: bool = True) -> None:
    """Raise an error if a row mixes numbers with other text from a column on: it is neither a header nor numbers."""
    for k, cell in enumerate(rows.cells[0][start:], start):
        if not like_a_number(cell):
            place = f"{rows.path}, line {rows.lines[0]}, column {k + 1}: {cell!r} is not a number"
            more = f"; if it is a header, use {label_option(cell)}" if hint and cell else ", so the line is no header"
            raise ValueError(f"{place}, but other cells of the line are{more}")


def _starts_with_names(table: Table) -> bool:
    """True if the first of several columns holds names: all text, or no title where others have one."""
    first = table.columns[0]
    if len(table.columns) < 2 or not (isinstance(first, list) or table.names):
        return False
    return (table.names is not None and not table.names[0]) or _is_text(first)


def _has_numbers_for_titles(table: Table) -> bool:
    """True if the title of the first column is a text and another one is a number: the first holds names then."""
    return table.names is not None and not like_a_number(table.names[0]) and any(map(like_a_number, table.names[1:]))


def _is_text(cells: Floats | list[str]) -> bool:
    """True if no cell of the column is empty or a number."""
    return isinstance(cells, list) and all(cell.strip() and not like_a_number(cell) for cell in cells)
