"""Whether buffers have the values that a program was made for: see ``stretto.torch.guards``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.interpreter import Tracer

__all__ = ["TABLE"]


def _as_imported(buffer: Any, values: Sequence[Any], name: str) -> Any:
    """Whether a buffer is as it was when the module was imported; it raises where that is known."""
    expected = np.asarray(values, buffer.dtype).reshape(buffer.shape)
    if isinstance(buffer, Tracer):
        return snp.array_equal(buffer, expected, equal_nan=buffer.dtype.kind in "fc")
    if not np.array_equal(np.asarray(buffer), expected, equal_nan=buffer.dtype.kind in "fc"):
        raise ValueError(
            f"the program of this imported module is made for the values that its buffer {name} "
            f"had, as the module makes a number of Python of it (.item(), int(), if): import the "
            f"module anew with these values"
        )
    return True


def _where_as_imported(same: Any, x: Any) -> Any:
    """A result, or NaN, or -1 of an integer, where a compiled program is not made for a buffer."""
    if same is True or x.dtype.kind == "b":
        return x
    return snp.where(same, x, snp.asarray(-1 if x.dtype.kind in "iu" else snp.nan, x.dtype))


TABLE: dict[str, Callable[..., Any]] = {
    "stretto.as_imported.default": _as_imported,
    "stretto.where_as_imported.default": _where_as_imported,
}
