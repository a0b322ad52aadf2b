"""The text of arrays.

``repr`` prints fewer elements of an array that would take many lines; ``str`` is NumPy's in any
case.
"""

from __future__ import annotations

import numpy as np

from stretto._engine.core.showing.words import MOST_LINES
from stretto._engine.core.types import ArrayType
from stretto._engine.xla.array import Array
from stretto._engine.xla.samples import taken

_USUAL = {"threshold": 1000, "edgeitems": 3}
"""NumPy's settings of how much is printed, until somebody changes them."""


def text_of(
    host: np.ndarray,
    type: ArrayType,
    width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
    edge: int | None = None,
) -> str:
    """The text of an array: elements and type, in lines of this width, with so many digits.

    With ``edge``, so many elements at both ends of each axis.
    """
    settings = (width, precision, suppress_small, ", ", "Array(")
    threshold = None if edge is None else 0
    body = "[]"
    if host.size:
        body = np.array2string(host, *settings, threshold=threshold, edgeitems=edge)
    is_cut = edge is not None or host.size > np.get_printoptions()["threshold"]
    is_told = is_cut or (not host.size and type.shape != (0,))
    shape = f", shape={type.shape}" if is_told else ""
    return f"Array({body}{shape}, {_dtype(type)})"


def _dtype(type: ArrayType) -> str:
    return f"dtype={type.dtype.name}{', weak_type=True' if type.weak_type else ''}"


def brief_text(x: Array) -> str:
    """The ``repr`` of an array, in few lines, unless NumPy's settings of printing were changed."""
    settings = np.get_printoptions()
    if any([settings[name] != usual for name, usual in _USUAL.items()]):
        return text_of(x.to_host(), x.type)
    is_large = x.type.size > _USUAL["threshold"]
    host = _corners(x) if is_large else x.to_host()
    for edge in (3, 2, 1) if is_large else (None, 3, 2, 1):
        if _rows(x.type.shape, edge or 3) <= MOST_LINES:
            text = text_of(host, x.type, edge=edge)
            if text.count("\n") < MOST_LINES:
                return text
    ends = host.flat[:3], host.flat[-3:]
    first, last = [np.array2string(part, separator=", ")[1:-1] for part in ends]
    return f"Array({first}, ..., {last}, shape={x.type.shape}, {_dtype(x.type)})"


def _corners(x: Array) -> np.ndarray:
    """Three elements at both ends of each axis, and one between: what NumPy prints of it."""
    places = [np.r_[0:3, n // 2, n - 3 : n] if n > 7 else np.arange(n) for n in x.type.shape]
    found = taken(x, places)
    return x.to_host() if found is None else found[0]


def _rows(shape: tuple[int, ...], edge: int) -> int:
    """In how many rows the elements are of an array with so many at both ends of each axis."""
    total = 1
    for n in shape[:-1]:
        total *= min(n, 2 * edge + 1)
    return total


def gone(x: Array) -> str:
    """The ``repr`` of an array that was deleted or donated."""
    function = x._buffer.function
    return f"<Array {x.type}, {'deleted' if function is None else f'donated to {function}'}>"
