"""The columns of CSV, NPY, NPZ and Parquet files; every error names the file and the place in it."""

import csv
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, missing
from .cells import Rows, decimal_sign, like_a_number, number, opening, points_are_clear, read_rows, readable
from .outputs import either

_UNPACKED = 2**30, 100  # bytes that any file may unpack to, and times its size that a larger one may
READABLE = (".csv", ".tsv", ".npy", ".npz", ".parquet")


@dataclass
class Table:
    """The columns of a file: numbers if a whole column is known to be numbers, else text."""

    path: Path
    names: list[str] | None
    columns: list[Floats | list[str]]
    lines: list[int] | None = None  # the line number of each row
    sign: str = "."  # the `decimal_sign` of numbers in text
    rows: list[str] | None = None  # the names of the rows, if errors should mention them

    def place(self, row: int, column: int) -> str:
        """The place of a cell, for error messages."""
        where = f"row {row} (counted from 0)" if self.lines is None else f"line {self.lines[row]}"
        name = f" (row {self.rows[row]!r})" if self.rows and self.rows[row] else ""
        return f"{self.path}, {where}{name}, column {self.title(column)}"

    def title(self, column: int) -> str:
        """The title of a column, for error messages."""
        return repr(self.names[column]) if self.names and self.names[column] else str(column + 1)

    def numbers(self, columns: Sequence[int], *, infinite: bool = False, negative: bool = True) -> Floats:
        """Columns as a checked array: no NaN, no ``+inf`` unless ``infinite``, nothing negative unless ``negative``."""
        array = np.empty((len(self.columns[0]), len(columns)))
        for k, column in enumerate(columns):
            cells = self.columns[column]
            if isinstance(cells, list):
                for row, cell in enumerate(cells):
                    try:
                        array[row, k] = number(cell, self.sign)
                    except ValueError as error:
                        raise ValueError(f"{self.place(row, column)}: {error}") from None
            else:
                array[:, k] = cells
        bad = ~(np.isfinite(array) | (np.isposinf(array) & infinite))
        below = np.zeros_like(bad) if negative else array < 0.0
        if bad.any():
            row, k = (int(index) for index in np.argwhere(bad)[0])
            rule = "a finite number or inf" if infinite else "a finite number"
            raise ValueError(f"{self.place(row, columns[k])}: {array[row, k]} is not {rule}")
        if below.any():
            row, k = (int(index) for index in np.argwhere(below)[0])
            raise ValueError(f"{self.place(row, columns[k])}: must not be negative, got {array[row, k]:.10g}")
        return array

    def text(self, column: int) -> list[str]:
        """A column as labels, stripped of spaces; whole numbers without a decimal point."""
        cells = self.columns[column]
        if isinstance(cells, list):
            return [cell.strip() for cell in cells]
        return [f"{cell:.17g}" for cell in cells.tolist()]

    def find(self, name: str, option: str, *, twice: bool = False) -> int:
        """The position of a column that an option asks for, which may be given ``twice``, for two files."""
        if self.names is None:
            why = "has no header" if self.path.suffix.lower() in (".csv", ".tsv") else "has no names of columns"
            raise ValueError(f"{option} {name}: {self.path} {why}")
        found = [k for k, other in enumerate(self.names) if other == name]
        if not found:
            hint = f" ({option} may be given twice, for the first file and the second)" if twice else ""
            raise ValueError(f"{option} {name}: {self.path} has no column {name!r}, only {_list(self.names)}{hint}")
        if len(found) > 1:
            raise ValueError(f"{option} {name}: {self.path} has {len(found)} columns {name!r}")
        return found[0]


Header = Callable[[Rows], bool]  # True if the first row is a header


def plain_header(cells: Sequence[str]) -> bool:
    """True if no cell looks like a number and at least one is not empty."""
    return any(map(str.strip, cells)) and not any(map(like_a_number, cells))


def holds(path: Path, *keys: str) -> list[str]:
    """Those of the names that an NPZ file has an array for; none for other files."""
    if path.suffix.lower() != ".npz":
        return []
    arrays = _load(path)
    return [] if isinstance(arrays, np.ndarray) else [key for key in keys if key in arrays]


def read_table(path: Path, key: str, header: Header, *, text: bool = False) -> Table:
    """The columns of a file, as text if asked for; of an NPZ file those of the array ``key``, or of the only one."""
    ending = path.suffix.lower()
    if ending not in READABLE:
        raise ValueError(f"{path} must end in {either(READABLE)}")
    with readable(path):
        if ending == ".parquet":
            table = _read_parquet(path)
        elif ending in (".npy", ".npz"):
            table = _from_array(path, _load(path), key)
        else:
            table = (None if text else _read_numbers(path)) or text_table(read_rows(path), header)
    if not table.columns or not len(table.columns[0]):
        raise ValueError(f"{path} has no rows")
    return table


def text_table(rows: Rows, header: Header) -> Table:
    """The columns of a text file as they are."""
    names, cells, lines = None, rows.cells, rows.lines
    if header(rows):
        names, cells, lines = cells[0], cells[1:], lines[1:]
    columns: list[Floats | list[str]] = [[row[k] for row in cells] for k in range(len(rows.cells[0]))]
    sign = decimal_sign(rows.delimiter, (cell for row in cells for cell in row))
    return Table(rows.path, names, columns, lines, sign)


def _read_numbers(path: Path) -> Table | None:
    """Fast reader for a file of finite numbers below its header; None if there is anything else."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        begin = opening(file)
        if begin is None:
            return None
        try:
            first = [cell.strip() for cell in next(csv.reader([begin.first], delimiter=begin.delimiter))]
        except csv.Error:
            return None
        names = first if plain_header(first) else None
        file.seek(0)
        for _ in range(begin.before + (names is not None)):
            file.readline()
        start = file.tell()
        if not file.readline():
            return None
        file.seek(start)
        try:
            array = np.loadtxt(file, delimiter=begin.delimiter, ndmin=2, comments=None, quotechar='"')
        except ValueError:
            return None
        file.seek(start)
        cells = (cell.strip().strip('"') for line in file for cell in line.split(begin.delimiter))
        if not points_are_clear(begin.delimiter, cells):
            return None
    if not np.isfinite(array).all() or (names is not None and len(names) != array.shape[1]):
        return None
    return Table(path, names, list(array.T))


def _load(path: Path) -> Any:
    """What NumPy loads from a file: an array, or several named arrays."""
    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, MemoryError, zipfile.BadZipFile):
        raise ValueError(f"{path} is not a NumPy file of numbers") from None
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    if not isinstance(loaded, np.ndarray):
        _require_size(path, sum(part.file_size for part in loaded.zip.infolist()))
    return loaded


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
            except (ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error):
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
        raise missing("reading Parquet files needs pyarrow", "parquet") from None
    try:
        file = pyarrow.parquet.ParquetFile(path)
        _require_size(path, 8 * file.metadata.num_rows * file.metadata.num_columns)
        table = file.read()
        table.validate(full=True)
    except (pyarrow.ArrowException, UnicodeDecodeError):
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


def _require_size(path: Path, unpacked: int) -> None:
    """Refuse a file that says of itself that it unpacks to much more than its size, before memory is taken for it."""
    most, ratio = _UNPACKED
    if unpacked > max(most, ratio * path.stat().st_size):
        raise ValueError(
            f"{path} would unpack to {unpacked / 2**30:.1f} GiB, more than {ratio} times its size: store it without "
            "compression if that is right"
        )


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
