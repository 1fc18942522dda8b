"""The cells of text files: what separates them, and which are numbers, with a point or a comma before the decimals."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FORMULA = re.compile(r"'*[=+@＝＋＠－-]")  # what spreadsheets run, some in full width too, if a cell begins with it
_QUOTED = re.compile(r'"[^"]*"')
_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # the first line of some of Excel's files
_DECIMALS = re.compile(r"[+-]?\d*([.,])\d+(e[+-]?\d+)?", re.IGNORECASE)
_EITHER = re.compile(r"([+-]?[1-9]\d{0,2})[.,](\d{3})")  # perhaps a thousands separator: no such number begins with 0
_NEARLY = re.compile(
    r"(?=[+-]?[.,]?\d)[+-]?(\d+|\d{1,3}([.,'’_\s]\d{3})+)?([.,]\d*)?(e[+-]?\d+)?\s*%?",
    re.IGNORECASE,
)


def printable(text: str, but: str = "") -> str:
    r"""The text with control characters, which terminals obey, written out as ``\x1b``; ``but`` those to keep."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in but else repr(found[0])[1:-1], text)


def label_cell(label: str) -> str:
    """A label as a cell of a CSV file: with an apostrophe before what a spreadsheet would take for a formula."""
    text = printable(label)
    return f"'{text}" if _FORMULA.match(text) and not like_a_number(text) else text


def _label_in(cell: str) -> str:
    """The content of a cell, without the apostrophe of `label_cell`."""
    text = cell.strip()
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


class Opening(NamedTuple):
    """The beginning of a text file."""

    delimiter: str
    first: str  # the first line that has cells
    before: int  # the number of lines before it


class Rows(NamedTuple):
    """The cells of a text file, stripped of spaces, and the line number of each row."""

    path: Path
    delimiter: str
    cells: list[list[str]]
    lines: list[int]


def read_rows(path: Path) -> Rows:
    """The rows of a text file that are not blank, all of the same length."""
    with readable(path):
        text = path.read_text(encoding="utf-8-sig")
    begin = opening(io.StringIO(text, newline="")) or Opening(",", "", 0)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=begin.delimiter)
    try:
        every = [(reader.line_num, [_label_in(cell) for cell in row]) for row in reader]
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    found = [(line, row) for line, row in every if any(row) and line > begin.before]
    if not found:
        raise ValueError(f"{path} is empty")
    rows = Rows(path, begin.delimiter, [row for _, row in found], [line for line, _ in found])
    first, width = rows.cells[0], len(rows.cells[0])
    if _begins_with_a_title(rows.cells):
        title = next(filter(None, first))
        raise ValueError(f"{path}, line {rows.lines[0]}: {title!r} looks like a title: delete what is above the header")
    for line, row in found:
        if len(row) != width:
            hint = "cells are separated by commas, semicolons or tabs" if width == 1 else ""
            hint += "; a title above the header must go" if hint and not like_a_number(first[0]) else ""
            short = f"{path}, line {line}: {len(row)} cells where line {rows.lines[0]} has {width}"
            raise ValueError(short + (f" ({hint})" if hint else ""))
    return rows


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn errors of files that cannot be opened, or are not UTF-8, into errors that name the file."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        why = f"{error.reason} at byte {error.start}"
        raise ValueError(f"{path} must be text in UTF-8 ({why}): save it as CSV UTF-8") from None


def opening(lines: Iterable[str]) -> Opening | None:
    """What separates the cells, by ``sep=`` or by the first line with cells; None if there is no such line."""
    said = None
    for before, line in enumerate(lines):
        found = _SEPARATOR.fullmatch(line.strip("\r\n")) if said is None else None
        if found:
            said = found[1]
        elif line.strip():
            return Opening(said or delimiter_of(line), line, before)
    return None


def delimiter_of(line: str) -> str:
    """What separates the cells of a line: a tab, a semicolon or a comma outside of quotes."""
    return next((sign for sign in "\t;," if sign in _QUOTED.sub("", line)), ",")


def decimal_sign(delimiter: str, cells: Iterable[str]) -> str:
    """The decimal sign of a file, ``","`` or ``"."``; empty if its points may be thousands separators.

    A comma is possible if it does not separate cells. One number with a single possible reading decides.
    """
    if delimiter == ",":
        return "."
    signs = set(filter(None, map(_settles, cells)))
    return "," if "," in signs else "".join(signs)


def points_are_clear(delimiter: str, cells: Iterable[str]) -> bool:
    """True if the points of a file without decimal commas have one meaning only; reads no more cells than needed."""
    if delimiter == ",":
        return True
    unclear = False
    for cell in cells:
        if "." in cell:
            if _settles(cell):
                return True
            unclear = True
    return not unclear


def _settles(cell: str) -> str | None:
    """The decimal sign of a number, if it has one and the sign cannot be a thousands separator."""
    text = cell.strip()
    found = _DECIMALS.fullmatch(text)
    return found[1] if found and not _EITHER.fullmatch(text) else None


def number(cell: str, sign: str = ".") -> float:
    """The number in a cell, for the `decimal_sign` of the file; the error says what the cell holds instead."""
    text = cell.strip()
    if sign == "," and "." in text and _NEARLY.fullmatch(text):
        raise ValueError(f"{cell!r} has a point, and other cells of the file have a comma before the decimals")
    try:
        if "_" in text or (not sign and _EITHER.fullmatch(text)):
            raise ValueError
        return float(text.replace(",", ".") if sign == "," else text)
    except ValueError:
        raise ValueError(_what_is(text)) from None


def like_a_number(cell: str) -> bool:
    """True if a cell is a number, apart from a comma, a thousands separator or a per cent sign."""
    text = cell.strip()
    try:
        float(text)
    except ValueError:
        return bool(_NEARLY.fullmatch(text))
    return True


def _what_is(text: str) -> str:
    """The error message for a cell that is not a number."""
    if not text:
        return "the cell is empty"
    if found := _EITHER.fullmatch(text):
        whole, rest = found.groups()
        decimals = rest.rstrip("0") if rest.endswith("0") else f"{rest}0"  # never three: ambiguous again
        small = f"{whole}.{decimals}" if decimals else whole
        return f"{text!r} is not a number, as it may be {small} or {whole}{rest}: write the one that is meant"
    cure = "write numbers like 1234.5 (or 1234,5 where semicolons or tabs separate the cells), without further signs"
    return f"{text!r} is not a number" + (f": {cure}" if like_a_number(text) else "")


def _begins_with_a_title(rows: list[list[str]]) -> bool:
    """True if the first row is a single text above a possible header: a row of several texts and no number."""
    if sum(map(bool, rows[0])) != 1 or any(map(like_a_number, rows[0])):
        return False
    for row in rows[1:]:
        cells = row[0].split(delimiter_of(row[0])) if len(row) == 1 else row
        if sum(map(bool, cells)) > 1:
            return not any(map(like_a_number, cells))
    return False
