"""The bilinear family, and the settings that its products share: precision and accumulation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.config import settings, under
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import Primitive, leibniz
from stretto._engine.core.types import is_inexact, kind_of, promote, short_name
from stretto._engine.ops.convert import convert, dtype_argument
from stretto._engine.ops.precision import ALGORITHMS, Precision


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

    def taylor(self, k: int, out: Any, x: Any, y: Any) -> Any:
        return leibniz(self, k, x, y)


@functools.cache
def accumulator(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which sums of this dtype accumulate: float32 for narrower floats."""
    kind = kind_of(dtype)
    if kind == "float" and dtype.itemsize < 4:
        return np.dtype(np.float32)
    return np.dtype(np.int32) if dtype.kind == "V" and kind in ("int", "uint") else dtype


def precision_name(precision: Any, caller: str) -> str | tuple[str, str] | None:
    """Return the name of a precision, or one for each operand; None leaves it to the compiler.

    By default it is ``config.default_matmul_precision``. Raises ``ValueError`` for anything that
    does not name a precision.
    """
    if precision is None:
        precision = settings.key.precision
        if precision is None:
            return None
    if isinstance(precision, (tuple, list)) and len(precision) == 2:
        first, second = (
            "DEFAULT" if one is None else precision_name(one, caller) for one in precision
        )
        return first if first == second else (str(first), str(second))
    try:
        # Other enumerations with these names, such as JAX's, are accepted too.
        return Precision(getattr(precision, "name", precision)).name
    except ValueError:
        raise ValueError(
            f"{caller}: precision must be None, a Precision, 'default', 'high' or 'highest', or a "
            f"pair of these; got {precision!r}"
        ) from None


def precision_config(precision: str | tuple[str, str] | None, platform: str) -> str:
    """Return the attribute for both operands, with a comma in front; empty for None on a CPU.

    GPUs multiply float32 in TF32, with 11 bits of precision, unless they are told not to.
    """
    if precision is None and platform == "cpu":
        return ""
    precision = precision or "HIGHEST"
    if isinstance(precision, str) and precision in ALGORITHMS:
        algorithm = ALGORITHMS[precision].definition
        types = [short_name(np.dtype(t)) for t in algorithm[:3]]
        values = [*types, *algorithm[3:6], str(algorithm[6]).lower()]
        fields = zip(algorithm._fields, values, strict=True)
        return (
            f", algorithm = #stablehlo.dot_algorithm<{', '.join(f'{k} = {v}' for k, v in fields)}>"
        )
    each = (precision, precision) if isinstance(precision, str) else precision
    names = ", ".join(f"#stablehlo<precision {name}>" for name in each)
    return f", precision_config = [{names}]"


def preferred_dtype(preferred: Any, operand: np.dtype, caller: str) -> np.dtype | None:
    """Return the dtype requested for the output; None where it is the operands' own.

    Raises ``TypeError`` if it is of a different kind from theirs, or narrower.
    """
    if preferred is None:
        return None
    dtype = dtype_argument(preferred, caller, "preferred_element_type")
    if dtype == operand:
        return None
    kinds = kind_of(operand), kind_of(dtype)
    same = kinds[0] == kinds[1] or {*kinds} <= {"int", "uint", "bool"}
    if not same or dtype.itemsize < operand.itemsize:
        raise TypeError(
            f"{caller}: preferred_element_type must be of the operands' kind and no narrower: got "
            f"{dtype} for {operand} operands; convert the result with .astype(...)"
        )
    return dtype


def accumulated(
    caller: str, x: Any, y: Any, preferred: Any, product: Callable[[Any, Any, np.dtype | None], Any]
) -> Any:
    """``product(x, y, dtype)`` in the dtype ``preferred``, by default in the operands' own.

    Where floats are requested of integers, the operands are converted first. Where narrower floats
    are requested, the result is converted from the dtype in which it accumulated. Raises
    ``TypeError`` for any other change of kind.
    """
    if preferred is None:
        return product(x, y, None)
    dtype, own = dtype_argument(preferred, caller, "preferred_element_type"), x.dtype
    kinds = kind_of(own), kind_of(dtype)
    if is_inexact(dtype) and not is_inexact(own):
        return product(convert(x, dtype), convert(y, dtype), None)
    wide = accumulator(own)
    if kinds == ("float", "float") and (dtype.itemsize < own.itemsize or dtype != own != wide):
        return convert(product(x, y, wide if wide != own else None), dtype)
    return product(x, y, preferred_dtype(dtype, own, caller))


def promote_dtypes_of(*values: Any) -> np.dtype:
    """Return the dtype that these values promote to."""
    return promote([(v.type.dtype, v.type.weak_type) for v in values])[0]


def cotangent_and_known(ct: Any, known: Any) -> tuple[Any, Any]:
    """Return both in one dtype: a cotangent has the dtype in which products accumulated.

    They are promoted even where the user asked for strict promotion: the difference is not theirs.
    """
    if ct.type.dtype is known.type.dtype:
        return ct, known
    dtype = under({"numpy_dtype_promotion": "standard"}, promote_dtypes_of, ct, known)
    return convert(ct, dtype), convert(known, dtype)


def promote_dtypes(caller: str, x: Any, y: Any, preferred: Any = None) -> tuple[Any, Any]:
    """Return both as values of one dtype, each of its own shape.

    Two floats of 8 bits have no dtype in common: they are multiplied in the preferred one.
    """
    x, y = as_value(x, caller, "x"), as_value(y, caller, "y")
    tx, ty = x.type, y.type
    if tx.dtype is ty.dtype and tx.weak_type == ty.weak_type:
        return x, y
    if preferred is not None and all(
        [t.kind == "float" and t.dtype.itemsize == 1 for t in (tx, ty)]
    ):
        dtype = dtype_argument(preferred, caller, "preferred_element_type")
        return convert(x, dtype), convert(y, dtype)
    dtype, weak = promote([(tx.dtype, tx.weak_type), (ty.dtype, ty.weak_type)], caller)
    return convert(x, dtype, weak), convert(y, dtype, weak)
