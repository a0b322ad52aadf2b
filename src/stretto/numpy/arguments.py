"""Checks of arguments that several families share."""

from __future__ import annotations

from typing import Any

from stretto._engine import api
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.types import inexact_dtype, is_inexact, kind_of, promote, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.layout import laid_out


def integer_or_traced(x: ArrayLike, caller: str, argument: str) -> int | Array:
    """Return the integer, in Python where it is known, else traced; refuse all else."""
    known: Any = x
    while isinstance(known, Tracer):
        known = known.concrete()
    if isinstance(x, Tracer) and known is None:
        if x.ndim or x.type.kind not in ("int", "uint"):
            raise TypeError(f"{caller}: {argument} must be an integer, got {x.type}")
        traced: Any = x
        return traced
    return integer(known, caller, argument)


def put_result(x: Array, device: object, out_sharding: object, caller: str) -> Array:
    """Put the result where ``device`` or ``out_sharding`` asks for it, if either does.

    Raises ``TypeError`` or ``ValueError`` for what is no such place, or if both are given.
    """
    if out_sharding is None:
        return api.sharding.placement.put_on(x, device, caller)
    if device is not None:
        raise ValueError(
            f"{caller}: device and out_sharding both say where the result is to be: give one of "
            f"them; got {device!r} and {out_sharding!r}"
        )
    return laid_out(x, out_sharding, caller)


def refuse_out(caller: str, out: object) -> None:
    """Raise unless ``out`` is ``None``: there is nothing to write into."""
    if out is not None:
        raise NotImplementedError(
            f"{caller}: arrays are immutable, so there is no out=; use the value that is returned"
        )


def inexact_values(caller: str, **arguments: Any) -> list[Array]:
    """Return the arguments as values of one float or complex dtype, each of its own shape."""
    values = [as_value(x, caller, name) for name, x in arguments.items()]
    dtype, weak = promote([(v.type.dtype, v.type.weak_type) for v in values], caller)
    return [convert(v, inexact_dtype(dtype), weak) for v in values]


def weakly_inexact(x: Array) -> Array:
    """Return the array, with integers and booleans as floats of weak type.

    They combine with floats to the same dtypes as before, and also where promotion is strict.
    """
    return x if is_inexact(x.dtype) else convert(x, scalar_dtype(float), weak_type=True)


def numeric_values(caller: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Return both arguments as values of one dtype and shape; booleans as integers."""
    value, other = promote_values(caller, x, y)
    if kind_of(value.dtype) == "bool":
        value, other = (convert(v, scalar_dtype(int)) for v in (value, other))
    return value, other


def refuse_complex(caller: str, **arguments: Any) -> None:
    """Raise ``TypeError`` where one of the arguments is complex, which has no such result."""
    for name, x in arguments.items():
        value = as_value(x, caller, name)
        if value.type.kind == "complex":
            raise TypeError(
                f"{caller}: {name} must be real, got {value.type}; take its .real, its .imag or "
                "its modulus (snp.abs)"
            )


def refuse_inplace(caller: str, inplace: bool) -> None:
    """Raise unless ``inplace`` is false: the array itself cannot change."""
    if inplace:
        raise ValueError(
            f"{caller}: arrays are immutable; with inplace=False the updated array is returned: "
            f"x = {caller}(x, ..., inplace=False)"
        )
