"""The cells of text files: what separates them, and which are numbers, with a point or a comma before the decimals."""

import re
from collections.abc import Iterable
from typing import NamedTuple

_QUOTED = re.compile(r'"[^"]*"')
_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # the first line of some of Excel's files
_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # may be a number of thousands too
_NEARLY = re.compile(
    r"(?=[+-]?[.,]?\d)[+-]?(\d+|\d{1,3}([.,'’_\s]\d{3})+)?([.,]\d*)?(e[+-]?\d+)?\s*%?",
    re.IGNORECASE,
)


class Opening(NamedTuple):
    """How a text file begins."""

    delimiter: str
    first: str  # the first line that has cells
    before: int  # how many lines come before it


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


def decimal_commas(delimiter: str, cells: Iterable[str]) -> bool:
    """Has a file commas before the decimals: is there one which separates neither cells nor thousands?"""
    if delimiter == ",":
        return False
    found = (cell.strip() for cell in cells if "," in cell)
    return any(_COMMA.fullmatch(cell) and not _EITHER.fullmatch(cell) for cell in found)


def number(cell: str, *, comma: bool = False) -> float:
    """The number of a cell, with a comma before its decimals if the file has those; the error says what else it is."""
    text = cell.strip()
    if comma and "." in text and _NEARLY.fullmatch(text):
        raise ValueError(f"{cell!r} has a point, and other cells of the file have a comma before the decimals")
    try:
        if "_" in text:
            raise ValueError
        return float(text.replace(",", ".") if comma else text)
    except ValueError:
        raise ValueError(_what_is(text)) from None


def like_a_number(cell: str) -> bool:
    """Is a cell a number, or but for a comma, a sign for thousands or a per cent sign?"""
    text = cell.strip()
    try:
        float(text)
    except ValueError:
        return bool(_NEARLY.fullmatch(text))
    return True


def _what_is(text: str) -> str:
    """What to say of a cell that is not a number."""
    if not text:
        return "the cell is empty"
    if _EITHER.fullmatch(text):
        meanings = f"{text.replace(',', '.')} or {text.replace(',', '')}"
        return f"{text!r} is not a number, as it may be {meanings}: write the one that is meant"
    cure = "write numbers like 1234.5 (or 1234,5 where semicolons or tabs separate the cells), without further signs"
    return f"{text!r} is not a number" + (f": {cure}" if like_a_number(text) else "")
