"""The bilinear family, and the settings that its products share: precision and accumulation.

Layer 2 (ops). Next, read ``contract``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto.core.interpreter import as_value
from stretto.core.primitive import Primitive
from stretto.core.types import as_dtype, is_inexact, kind_of, promote
from stretto.ops.convert import convert

__all__ = [
    "Bilinear",
    "accumulator",
    "precision_config",
    "precision_name",
    "preferred_dtype",
    "promote_dtypes",
    "promote_dtypes_of",
]

_PRECISIONS = ("DEFAULT", "HIGH", "HIGHEST")


class Bilinear(Primitive, abstract=True):
    """Linear in each of two operands: its derivative is itself, with a tangent for one of them."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """d B(x, y) = B(dx, y) + B(x, dy)."""
        (x, y), (dx, dy) = primals, tangents
        out = self(x, y)
        if not is_inexact(out.dtype):
            return out, None
        first = None if dx is None else self(dx, y)
        if dy is None:
            return out, first
        second = self(x, dy)
        return out, second if first is None else first + second


@functools.cache
def accumulator(dtype: np.dtype) -> np.dtype:
    """The dtype in which sums given as ``dtype`` are added up: float32 for narrower floats."""
    kind = kind_of(dtype)
    if kind == "float" and dtype.itemsize < 4:
        return np.dtype(np.float32)
    return np.dtype(np.int32) if dtype.kind == "V" and kind in ("int", "uint") else dtype


def precision_name(precision: Any, who: str) -> str | None:
    """``DEFAULT``, ``HIGH`` or ``HIGHEST``, in any case; None leaves it to the compiler."""
    if precision is None:
        return None
    name = str(getattr(precision, "name", precision)).upper()
    if name not in _PRECISIONS:
        raise ValueError(
            f"{who}: precision must be None, 'default', 'high' or 'highest'; got {precision!r}"
        )
    return name


def precision_config(precision: str | None) -> str:
    """The attribute for both operands, with the comma before it; empty for None."""
    if precision is None:
        return ""
    each = f"#stablehlo<precision {precision}>"
    return f", precision_config = [{each}, {each}]"


def preferred_dtype(preferred: Any, operand: np.dtype, who: str) -> np.dtype | None:
    """The dtype asked for of the output; None where it is the operands' own.

    Raises ``TypeError`` where it is of another kind than theirs, or narrower.
    """
    if preferred is None:
        return None
    dtype = as_dtype(preferred)
    if dtype == operand:
        return None
    kinds = kind_of(operand), kind_of(dtype)
    same = kinds[0] == kinds[1] or {*kinds} <= {"int", "uint", "bool"}
    if not same or dtype.itemsize < operand.itemsize:
        raise TypeError(
            f"{who}: preferred_element_type must be of the operands' kind and no narrower: got "
            f"{dtype} for {operand} operands; convert the result with .astype(...)"
        )
    return dtype


def promote_dtypes_of(*values: Any) -> np.dtype:
    """The dtype that these values combine to."""
    return promote([(v.type.dtype, v.type.weak_type) for v in values])[0]


def promote_dtypes(who: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Both as values of one dtype, each of its own shape."""
    x, y = as_value(x, who, "x"), as_value(y, who, "y")
    tx, ty = x.type, y.type
    if tx.dtype is ty.dtype and tx.weak_type == ty.weak_type:
        return x, y
    dtype, weak = promote([(tx.dtype, tx.weak_type), (ty.dtype, ty.weak_type)], who)
    return convert(x, dtype, weak), convert(y, dtype, weak)
