"""Lists, series and columns of tables as arrays: what ragged arrays are made of.

Series and tables are known by their protocols, ``__array__`` and ``table[name]``: no library of
tables is imported.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import promote

_NOT_NUMBERS = "OSUMm"
"""The kinds of dtypes that NumPy has beside numbers."""


def as_column(x: Any, caller: str, argument: str) -> Any:
    """The value of an array, a series, or nested lists of numbers.

    Raises ``TypeError`` if they are not numbers, ``ValueError`` if nested lists differ in length,
    and ``OverflowError`` for integers that do not fit in the dtype.
    """
    if isinstance(x, Value) or not (isinstance(x, (list, tuple)) or hasattr(x, "__array__")):
        return as_value(x, caller, argument)
    host = x if isinstance(x, np.ndarray) else _host(x, caller, argument)
    if host.dtype.kind == "O":
        host = _numbers(host)
    if host.dtype.kind in _NOT_NUMBERS:
        raise TypeError(_refusal(host, caller, argument))
    return as_value(host, caller, argument)


def _host(x: Any, caller: str, argument: str) -> np.ndarray:
    try:
        return np.asarray(x)
    except ValueError as error:
        if not isinstance(x, (list, tuple)):
            raise
        raise ValueError(
            f"{caller}: {argument} is a list of lists that differ in shape, and arrays may differ "
            f"along their first axis alone: flatten the inner lists, or pad them to one length"
        ) from error


def _numbers(host: np.ndarray) -> np.ndarray:
    """The numbers of an array of objects, if that is what they are."""
    try:
        found = np.array(host.tolist())
    except ValueError:  # lists of different lengths
        return host
    return host if found.dtype.kind in _NOT_NUMBERS or found.shape != host.shape else found


def _refusal(host: np.ndarray, caller: str, argument: str) -> str:
    """That an array holds something else than numbers: what, and what to do."""
    elements = host.ravel().tolist()
    odd = next((x for x in elements if not isinstance(x, numbers.Number)), elements[0])
    if host.dtype.kind in "Mm":
        way = "convert times to numbers, as by subtracting the first and dividing by a unit"
    elif isinstance(odd, str):
        way = "number the strings first: np.unique(x, return_inverse=True)[1]"
    elif isinstance(odd, (list, tuple, np.ndarray)):
        way = "arrays may differ along their first axis alone: flatten or pad what is in it"
    elif odd is None or _is_missing(odd):
        way = "leave missing values out, or put nan in their place"
    else:
        way = "convert it to a dtype of numbers"
    return f"{caller}: {argument} must hold numbers, got {odd!r} in dtype {host.dtype}: {way}"


def _is_missing(x: Any) -> bool:
    """Whether this stands for a missing value: None, nan, or what does not say if it is itself."""
    try:
        return x is None or bool(x != x)  # noqa: PLR0124 (nan does not equal itself)
    except TypeError:  # pandas' NA
        return True


def grouped(table: Any, by: Any, columns: Any, caller: str) -> tuple[np.ndarray, np.ndarray, bool]:
    """The rows of a table, those of equal ids together, and how many each id has.

    Ids are sorted; rows of one id stay in their order. The third result is whether the dtype is
    weak.
    """
    names = _names(table, caller)
    several = isinstance(columns, (list, tuple))
    wanted = list(columns) if several else [columns]
    if not wanted:
        raise ValueError(f"{caller}: columns must be a name or a list of names, got none")
    for argument, name in [("by", by), *[("columns", name) for name in wanted]]:
        if name not in names:
            has = ", ".join(map(repr, names))
            raise ValueError(f"{caller}: {argument} is {name!r}, and the table has {has}")
    place, counts = _places(table[by], by, caller)
    values = [as_column(table[name], caller, f"column {name!r}") for name in wanted]
    for name, x in zip(wanted, values, strict=True):
        if x.shape[:1] != place.shape or x.shape != values[0].shape:
            raise ValueError(
                f"{caller}: columns must have a row for each id, and one shape; there are "
                f"{len(place)} ids in {by!r}, and column {name!r} is {x.type}"
            )
    dtype, weak = promote([(x.dtype, x.type.weak_type) for x in values], caller)
    hosts = [np.asarray(x).astype(dtype) for x in values]
    rows = np.stack(hosts, -1) if several else hosts[0]
    return rows[np.argsort(place, kind="stable")], counts, weak


def _names(table: Any, caller: str) -> list[Any]:
    """The names of a table's columns."""
    if isinstance(table, Mapping):
        return list(table)
    names = getattr(table, "column_names", None)  # Arrow's tables
    names = getattr(table, "columns", None) if names is None else names
    if names is None or not hasattr(table, "__getitem__"):
        raise TypeError(
            f"{caller}: table must be a DataFrame or a dictionary of columns; got "
            f"{type(table).__name__}"
        )
    return list(names)


def _places(column: Any, by: Any, caller: str) -> tuple[np.ndarray, np.ndarray]:
    """For each row the place of its id among the sorted ones, and how many rows each has."""
    ids = np.asarray(column)
    if ids.ndim != 1 or not ids.size:
        raise ValueError(
            f"{caller}: column {by!r} must have an id for each of one row or more; got shape "
            f"{ids.shape}"
        )
    objects = ids.dtype.kind == "O"
    missing = np.array([_is_missing(x) for x in ids]) if objects else ids != ids  # noqa: PLR0124
    if missing.any():
        raise ValueError(
            f"{caller}: column {by!r} has no id in row {np.argmax(missing)} ({missing.sum()} in "
            f"all): leave such rows out, or give them an id of their own"
        )
    try:
        _, place, counts = np.unique(ids, return_inverse=True, return_counts=True)
    except TypeError as error:
        raise TypeError(
            f"{caller}: the ids in column {by!r} cannot be sorted, {error}: give all one type, as "
            f"by str"
        ) from None
    return place, counts
