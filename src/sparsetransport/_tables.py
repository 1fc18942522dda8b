"""Tables of pandas and polars: their rows and columns are matched by label."""

from typing import Any

Labels = list[Any] | None
"""The labels of one side, in order; None if there are none."""


def labels(table: Any, axis: str) -> Labels:
    """The labels of the "index" or the "columns" of a table; None where it has none, as for any other array.

    polars has names of columns only; those that it makes up ("column_0", "column_1", ...) count as none.
    """
    if hasattr(table, "iloc"):
        return None if axis == "columns" and table.ndim < 2 else list(getattr(table, axis))
    if axis == "columns" and _is_polars(table):
        names = list(table.columns)
        return None if names == [f"column_{k}" for k in range(len(names))] else names
    return None


def first(*known: Labels) -> Labels:
    """The first labels that there are."""
    return next((one for one in known if one is not None), None)


def aligned(name: str, table: Any, axis: str, wanted: Labels, of: str) -> Any:
    """The table with its "index" or its "columns" in the order of the labels wanted, those ``of`` the other arguments.

    Without labels on both sides entries are matched by position. Labels that differ raise an error.
    """
    places = order(name, labels(table, axis), wanted, of)
    if places is None:
        return table
    if axis == "index":
        return table.iloc[places]
    return table[:, places] if _is_polars(table) else table.iloc[:, places]


def matched(name: str, table: Any, rows: Labels, columns: Labels) -> Any:
    """A table of pairs with its rows and columns in the order of these labels."""
    return aligned(name, aligned(name, table, "index", rows, "rows"), "columns", columns, "columns")


def order(name: str, held: Labels, wanted: Labels, of: str) -> list[int] | None:
    """Where the labels wanted are among those held; None if entries are matched by position.

    The count from 0 that pandas makes up is no label, unless the other side has such numbers too.
    """
    if held is None or wanted is None or held == wanted or len(held) != len(wanted):  # sizes are checked elsewhere
        return None
    count = list(range(len(held)))
    if count in (held, wanted) and not set(held) & set(wanted):
        return None
    place = {label: k for k, label in enumerate(held)}
    cure = "call .to_numpy() to match by position"
    if len(place) < len(held):
        twice = next(label for k, label in enumerate(held) if place[label] != k)
        raise ValueError(f"{name} must have different labels to be matched with the {of}, got {twice!r} twice: {cure}")
    missing = [label for label in wanted if label not in place]
    if missing:
        raise ValueError(f"{name} must have the same labels as the {of}, got none for {missing[0]!r}: {cure}")
    places = [place[label] for label in wanted]
    if len(set(places)) < len(places):
        raise ValueError(f"{name} must have the same labels as the {of}, which have one twice: {cure}")
    return places


def _is_polars(table: Any) -> bool:
    """True for a data frame of polars."""
    return type(table).__module__.partition(".")[0] == "polars" and hasattr(table, "get_columns")
