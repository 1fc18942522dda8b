"""Points, masses and costs from CSV, NPY, NPZ and Parquet files; every complaint names the file and the place in it."""

import csv
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from .._checks import Floats
from .cells import Opening, decimal_commas, like_a_number, number, opening

READABLE = (".csv", ".tsv", ".npy", ".npz", ".parquet")
_IDS = re.compile(r"(.*[\W_])?(id|index)", re.IGNORECASE)  # titles of columns of numbers that are names


class Side(NamedTuple):
    """The points of one side, with the names of their coordinates, masses and labels where the file has them."""

    points: Floats
    names: list[str] | None
    mass: Floats | None
    labels: list[str] | None


@dataclass
class Table:
    """The columns of a file: numbers where all of a column is known to be, text elsewhere."""

    path: Path
    names: list[str] | None
    columns: list[Floats | list[str]]
    lines: list[int] | None = None  # the line of the file that each row is on
    comma: bool = False  # before the decimals of numbers in text

    def place(self, row: int, column: int) -> str:
        """Where a cell is, for people."""
        where = f"row {row} (counted from 0)" if self.lines is None else f"line {self.lines[row]}"
        return f"{self.path}, {where}, column {self.title(column)}"

    def title(self, column: int) -> str:
        """What to call a column."""
        return repr(self.names[column]) if self.names and self.names[column] else str(column + 1)

    def numbers(self, columns: Sequence[int], *, infinite: bool = False) -> Floats:
        """Columns as an array without NaN, and without ``+inf`` unless ``infinite``."""
        array = np.empty((len(self.columns[0]), len(columns)))
        for k, column in enumerate(columns):
            cells = self.columns[column]
            if isinstance(cells, list):
                for row, cell in enumerate(cells):
                    try:
                        array[row, k] = number(cell, comma=self.comma)
                    except ValueError as error:
                        raise ValueError(f"{self.place(row, column)}: {error}") from None
            else:
                array[:, k] = cells
        bad = ~(np.isfinite(array) | (np.isposinf(array) & infinite))
        if bad.any():
            row, k = (int(index) for index in np.argwhere(bad)[0])
            rule = "a finite number or inf" if infinite else "a finite number"
            raise ValueError(f"{self.place(row, columns[k])}: {array[row, k]} is not {rule}")
        return array

    def find(self, name: str, option: str) -> int:
        """The position of a column that an option asks for."""
        if self.names is None:
            why = "has no header" if self.path.suffix.lower() in (".csv", ".tsv") else "has no names of columns"
            raise ValueError(f"{option} {name}: {self.path} {why}")
        found = [k for k, other in enumerate(self.names) if other == name]
        if len(found) != 1:
            held = (
                f"has {len(found)} columns {name!r}" if found else f"has no column {name!r}, only {_list(self.names)}"
            )
            raise ValueError(f"{option} {name}: {self.path} {held}")
        return found[0]


def read_points(
    path: Path, key: str, *, columns: Sequence[str] | None = None, mass: str | None = None, label: str | None = None
) -> Side:
    """The points of a file: all its columns, or those asked for, but for the columns of masses and labels."""
    table = read_table(path, key, text=label is not None)
    mass_at = None if mass is None else table.find(mass, "--mass-column")
    label_at = None if label is None else table.find(label, "--label-column")
    if columns is not None:
        chosen = [table.find(name, "--columns") for name in columns]
    else:
        chosen = [k for k in range(len(table.columns)) if k not in (mass_at, label_at)]
        if table.names is not None and any(not table.names[k] for k in chosen):
            raise ValueError(f"{path} has a column without a name: say with --columns which ones to use")
    if not chosen:
        raise ValueError(f"{path} has no column of coordinates left")
    if label is None and table.names is not None:
        for k in chosen:
            if _is_text(table.columns[k]):
                hint = f"are these names? --label-column {table.names[k]} keeps them"
                raise ValueError(f"{table.place(0, k)}: {table.columns[k][0]!r} is not a number; {hint}")
    return Side(
        table.numbers(chosen),
        None if table.names is None else [table.names[k] for k in chosen],
        None if mass_at is None else _not_negative(table, mass_at),
        None if label_at is None else _text(table.columns[label_at]),
    )


class Costs(NamedTuple):
    """A matrix of costs, and the names of its rows and columns where the file has them."""

    matrix: Floats
    rows: list[str] | None
    cols: list[str] | None


def read_costs(path: Path, key: str, *, label: str | None = None) -> Costs:
    """A matrix of costs, where ``inf`` forbids a pair; the first column may have names, or another one asked for."""
    table = read_table(path, key, text=label is not None)
    names = table.find(label, "--label-column") if label is not None else 0 if _starts_with_names(table) else None
    chosen = [k for k in range(len(table.columns)) if k != names]
    if not chosen:
        raise ValueError(f"{path} has no column of costs left")
    if names is None:
        _warn_of_ids(table)
    return Costs(
        table.numbers(chosen, infinite=True),
        None if names is None else _text(table.columns[names]),
        None if table.names is None else [table.names[k] for k in chosen],
    )


def _warn_of_ids(table: Table) -> None:
    """Say so where the first column of costs looks like the numbers of the rows."""
    if table.names is None or len(table.columns) < 2:
        return
    title, cells = table.names[0], table.numbers([0], infinite=True)[:, 0]
    counted = len(cells) > 1 and np.array_equal(cells - np.arange(len(cells)), np.full(len(cells), cells[0]))
    if _IDS.fullmatch(title) or (counted and np.isfinite(cells[0])):
        _checks.warn(f"the column {title!r} of {table.path} is read as costs: are these names? --label-column {title}")


class Masses(NamedTuple):
    """Masses, with the names beside them or, of a row, those above."""

    mass: Floats
    names: list[str] | None = None
    titles: list[str] | None = None


def read_masses(path: Path, key: str) -> Masses:
    """A column or a row of masses; or two columns, of names and masses."""
    table = read_table(path, key)
    if len(table.columns) == 2 and _starts_with_names(table):
        return Masses(_not_negative(table, 1), _text(table.columns[0]))
    titles = None
    if len(table.columns) > 1 and len(table.columns[0]) == 1:
        titles = table.names
        table = Table(path, None, [table.numbers(range(len(table.columns)))[0]])
    if len(table.columns) > 1:
        raise ValueError(f"{path} must have one column of masses, or names and masses, it has {len(table.columns)}")
    return Masses(_not_negative(table, 0), titles=titles)


def _starts_with_names(table: Table) -> bool:
    """Are there several columns and the first is of names: all text, or without a title where others have one?"""
    first = table.columns[0]
    if len(table.columns) < 2 or not (isinstance(first, list) or table.names):
        return False
    return (table.names is not None and not table.names[0]) or _is_text(first)


def _is_text(cells: Floats | list[str]) -> bool:
    """Is there something in every cell of the column, and nowhere a number?"""
    return isinstance(cells, list) and all(cell.strip() and not like_a_number(cell) for cell in cells)


def holds(path: Path, *keys: str) -> list[str]:
    """Those of the names that an NPZ file has an array for; none in other files."""
    if path.suffix.lower() != ".npz":
        return []
    arrays = _load(path)
    return [] if isinstance(arrays, np.ndarray) else [key for key in keys if key in arrays]


def read_table(path: Path, key: str, *, text: bool = False) -> Table:
    """The columns of a file, as text if asked for; of an NPZ file those of the array ``key``, or of the only one."""
    ending = path.suffix.lower()
    if ending not in READABLE:
        raise ValueError(f"{path} must end in {either(READABLE)}")
    try:
        if ending == ".parquet":
            table = _read_parquet(path)
        elif ending in (".npy", ".npz"):
            table = _from_array(path, _load(path), key)
        else:
            table = _read_csv(path, text)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    if not table.columns or not len(table.columns[0]):
        raise ValueError(f"{path} has no rows")
    return table


def _read_csv(path: Path, text: bool) -> Table:
    """A text file: with a header if no cell of its first line is a number."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            begin = opening(file)
        if begin is None:
            raise ValueError(f"{path} is empty")
        numbers = None if text else _read_numbers(path, begin)
        return numbers or _read_cells(path, begin)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8: {error.reason} at byte {error.start}") from None
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as CSV: {error}") from None


def _read_numbers(path: Path, begin: Opening) -> Table | None:
    """The fast way, for a file that holds finite numbers alone below its header; None if it does not."""
    names = _header(next(csv.reader([begin.first], delimiter=begin.delimiter)))
    with path.open(encoding="utf-8-sig", newline="") as file:
        for _ in range(begin.before + (names is not None)):
            file.readline()
        try:
            start = file.tell()
            if not file.readline():
                return None
            file.seek(start)
            array = np.loadtxt(file, delimiter=begin.delimiter, ndmin=2, comments=None, quotechar='"')
        except ValueError:
            return None
    if not np.isfinite(array).all() or (names is not None and len(names) != array.shape[1]):
        return None
    return Table(path, names, list(array.T))


def _read_cells(path: Path, begin: Opening) -> Table:
    """The slow way, which knows the line of every cell."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=begin.delimiter)
        rows = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    rows = [(line, cells) for line, cells in rows if line > begin.before]
    first, cells = rows[0]
    names = _header(cells)
    if names is not None:
        rows = rows[1:]
    elif not all(map(like_a_number, cells)):
        bad = next(k for k, cell in enumerate(cells) if not like_a_number(cell))
        raise ValueError(
            f"{path}, line {first}, column {bad + 1}: {cells[bad]!r} is not a number, and others of the line are, "
            "so it is no header either"
        )
    for line, row in rows:
        if len(row) != len(cells):
            hint = " (cells are separated by commas, semicolons or tabs)" if len(cells) == 1 else ""
            raise ValueError(f"{path}, line {line}: {len(row)} cells where line {first} has {len(cells)}{hint}")
    columns: list[Floats | list[str]] = [[row[k] for _, row in rows] for k in range(len(cells))]
    comma = decimal_commas(begin.delimiter, (cell for _, row in rows for cell in row))
    return Table(path, names, columns, [line for line, _ in rows], comma)


def _header(cells: list[str]) -> list[str] | None:
    """The names of the columns, if no cell is like a number and at least one is a name."""
    names = [cell.strip() for cell in cells]
    return names if any(names) and not any(map(like_a_number, names)) else None


def _load(path: Path) -> Any:
    """What NumPy finds in a file: an array, or named ones."""
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{path} is not a NumPy file of numbers") from None
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error


def _from_array(path: Path, loaded: Any, key: str) -> Table:
    """The columns of an array; a vector is one column."""
    name = str(path)
    if not isinstance(loaded, np.ndarray):
        with loaded as arrays:
            if key not in arrays and len(arrays.files) != 1:
                raise ValueError(f"{path} has no array {key!r}, only {_list(arrays.files)}")
            key = key if key in arrays else arrays.files[0]
            name = f"array {key!r} of {path}"
            try:
                loaded = arrays[key]
            except (ValueError, EOFError, zipfile.BadZipFile):
                raise ValueError(f"{name} is not an array of numbers") from None
    array: NDArray[Any] = loaded
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two dimensions, got shape {array.shape}")
    return Table(Path(name), None, list(array.reshape(len(array), -1).T.astype(np.float64)) if array.size else [])


def _read_parquet(path: Path) -> Table:
    """A Parquet file, without the index that pandas writes along."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("reading Parquet files needs pyarrow: pip install pyarrow") from None
    try:
        table = pyarrow.parquet.ParquetFile(path).read()
    except pyarrow.ArrowInvalid:
        raise ValueError(f"{path} is not a Parquet file") from None
    names, columns = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if re.fullmatch(r"__index_level_\d+__", name):
            continue
        kind = column.type
        numeric = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_decimal(kind)
        names.append(name)
        columns.append(
            column.cast(pyarrow.float64()).to_numpy().astype(np.float64)
            if numeric
            else ["" if cell is None else str(cell) for cell in column.to_pylist()]
        )
    return Table(path, names, columns)


def _not_negative(table: Table, column: int) -> Floats:
    mass: Floats = table.numbers([column])[:, 0]
    if mass.min() < 0.0:
        row = int(mass.argmin())
        raise ValueError(f"{table.place(row, column)}: a mass must not be negative, got {mass[row]}")
    return mass


def _text(cells: Floats | list[str]) -> list[str]:
    """Labels, without the space around them; whole numbers without their point."""
    return [cell.strip() for cell in cells] if isinstance(cells, list) else [f"{cell:.17g}" for cell in cells.tolist()]


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def either(endings: Sequence[str]) -> str:
    """Endings as people list them."""
    return f"{', '.join(endings[:-1])} or {endings[-1]}"
