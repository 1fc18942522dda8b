"""Tables of pandas, polars and their like: rows and columns are matched by label, and results become tables again.

A table without an index, such as one of polars, may hold the labels of its rows in one column of strings.
"""

from typing import Any

import numpy as np

Labels = list[Any] | None
"""The labels of one side, in order; None if there are none."""


def labels(table: Any, axis: str) -> Labels:
    """The labels of the "index" or the "columns" of a table; None where it has none, as for any other array.

    The names of columns that polars makes up ("column_0", "column_1", ...) count as none.
    """
    if hasattr(table, "iloc"):
        return None if axis == "columns" and table.ndim < 2 else list(getattr(table, axis))
    frame = _unindexed(table)
    if frame is None:
        return None
    held = _label_column(frame)
    if axis == "index":
        return None if held is None else frame[held].to_list()
    names = [name for name in frame.columns if name != held]
    return None if names == [f"column_{k}" for k in range(len(names))] else names


def numbers(table: Any) -> Any:
    """The numbers of a table without an index, its column of labels left out; anything else as it is."""
    frame = _unindexed(table)
    if frame is None:
        return table
    held = _label_column(frame)
    return (frame if held is None else frame.drop(held)).to_numpy()


def column(table: Any) -> Any:
    """The one column of a table of masses; anything else as it is."""
    array = np.asarray(numbers(table)) if _is_table(table) else None
    return table if array is None or array.ndim != 2 or array.shape[1] != 1 else array[:, 0]


def library(*tables: Any) -> str | None:
    """The name of the library of the first table or series among these; None if there is none."""
    for table in tables:
        if _is_table(table) or hasattr(type(table), "to_frame"):
            import narwhals

            known = narwhals.from_native(table, allow_series=True, pass_through=True)
            if known is not table:
                return str(known.implementation.value)
    return None


def built(columns: dict[str, Any], library: Any) -> Any:
    """A table of a library, by its name."""
    import narwhals

    try:
        return narwhals.from_dict(columns, backend=library).to_native()
    except ImportError:
        raise ImportError(f"a table of {library} needs {library}: pip install {library}") from None


def by_position(name: str, value: Any) -> Any:
    """The value, whose entries have no labels but a count from 0; an error for a table with others.

    For what does not know the labels of a problem, and so cannot match them.
    """
    for axis in ("index", "columns"):
        held = labels(value, axis)
        if held is not None and held != list(range(len(held))):
            raise ValueError(
                f"{name} must go by position, since a budget does not know the labels of the costs, got {held[0]!r} as "
                "one: bring the table into the order of the costs and call .to_numpy()"
            )
    return value


def cells(name: str, data: Any, obsm: str | None) -> Any:
    """The points of an AnnData as a table: those of ``obsm``, or its variables; anything else as it is."""
    if not (hasattr(data, "obsm") and hasattr(data, "obs_names")):
        if obsm is not None:
            raise TypeError(f"{name} must be an AnnData where obsm is given, got {type(data).__name__}")
        return data
    return data.to_df() if obsm is None else _of_cells(_held("obsm", data.obsm, obsm), data.obs_names)


def between_cells(data: Any, obsp: str | None) -> Any:
    """The costs in ``obsp`` of an AnnData as a table; pairs that a sparse one does not store are forbidden."""
    if obsp is None:
        return data
    if not (hasattr(data, "obsp") and hasattr(data, "obs_names")):
        raise TypeError(f"C must be an AnnData where obsp is given, got {type(data).__name__}")
    held = _held("obsp", data.obsp, obsp)
    if hasattr(held, "tocoo"):
        stored = held.tocoo()
        held = np.full(stored.shape, np.inf)
        held[stored.row, stored.col] = stored.data
    return _of_cells(held, data.obs_names, data.obs_names)


def of_obs(name: str, mass: Any, data: Any) -> Any:
    """The masses in a column of ``obs`` of an AnnData, if they go by its name; anything else as it is."""
    if not isinstance(mass, str):
        return mass
    if not (hasattr(data, "obs") and hasattr(data, "obs_names")):
        raise TypeError(f"{name} must hold masses, got {mass!r}: names are those of columns in obs of an AnnData")
    if mass not in data.obs:
        raise ValueError(f"{name} must hold masses or be one of {list(data.obs)} in obs, got {mass!r}")
    return data.obs[mass]


def _held(name: str, known: Any, key: str) -> Any:
    if key not in known:
        raise ValueError(f"{name} must be one of {list(known)}, got {key!r}")
    return known[key]


def _of_cells(held: Any, *names: Any) -> Any:
    import pandas  # AnnData needs it too

    return pandas.DataFrame(np.asarray(held.toarray() if hasattr(held, "toarray") else held), *names)


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
    if hasattr(table, "iloc"):
        return table.iloc[places] if axis == "index" else table.iloc[:, places]
    frame = _unindexed(table)
    if axis == "index":
        return frame[places].to_native()
    held = _label_column(frame)
    names = [name for name in frame.columns if name != held]
    return frame.select([held] * (held is not None) + [names[k] for k in places]).to_native()


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


def _is_table(value: Any) -> bool:
    """True for a data frame or a series; without an import, since most values are arrays."""
    return hasattr(type(value), "iloc") or hasattr(type(value), "__dataframe__") or hasattr(type(value), "get_columns")


def _unindexed(table: Any) -> Any:
    """A data frame without an index, in the interface of narwhals; None for anything else."""
    if not _is_table(table) or hasattr(table, "iloc"):
        return None
    import narwhals

    return narwhals.from_native(table, eager_only=True)


def _label_column(frame: Any) -> str | None:
    """The column of strings, if there is one and no more."""
    import narwhals

    kinds = narwhals.String, narwhals.Categorical, narwhals.Enum
    found = [str(name) for name, kind in frame.schema.items() if isinstance(kind, kinds)]
    return found[0] if len(found) == 1 else None
