"""Arguments of draws: shapes, dtypes, parameters, and where the results lie."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.errors import TracedValueError, TypePromotionError
from stretto._engine.core.functions import described
from stretto._engine.core.integers import sizes_of
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.types import as_dtype, default_dtype, kind_of, promote, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, ShapeLike
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full_like, lt, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.extrema import clamp

_ARGUMENTS = {
    "key": "a key, typed or raw.",
    "shape": "of the result.",
    "dtype": "floating; the default float by default.",
    "out_sharding": "where the result is to be, a ``NamedSharding`` or a ``PartitionSpec``; "
    "raises\n        ``ValueError`` where it cannot be split so.",
    "scale": "the scale.",
}
_RETURNS = "Numbers of this shape and dtype."
_FLOATING = "TypeError: ``key`` is not one key, or ``dtype`` is not floating.\n"

draw = described(_ARGUMENTS, _RETURNS, f"{_FLOATING}    ValueError: a size is negative.")
"""Complete the docstring of a function that draws."""

draw_of_parameters = described(
    _ARGUMENTS,
    _RETURNS,
    f"{_FLOATING}    ValueError: a size is negative, or a parameter does not broadcast to "
    "``shape``.",
)
"""Complete the docstring of a function that draws from a distribution with parameters."""

_FLOAT32 = np.dtype(np.float32)


class _Local(threading.local):
    as_jax = False


_local = _Local()


@contextlib.contextmanager
def draws_as_jax() -> Iterator[None]:
    """Draw in this block as JAX does to the last bit: narrow floats in their own dtype."""
    before, _local.as_jax = _local.as_jax, True
    try:
        yield
    finally:
        _local.as_jax = before


def drawing_as_jax() -> bool:
    """Return whether draws are JAX's, also where its numbers are not of the distribution."""
    return _local.as_jax


def wide(dtype: np.dtype) -> np.dtype:
    """Return the dtype to draw in: float32 for narrower floats, which are rounded last.

    bfloat16 has 128 numbers in [1, 2): of so many, uniform numbers know no chance below 0.8 %, and
    normal ones end at 2.5 standard deviations.
    """
    if dtype.itemsize >= 4 or _local.as_jax or kind_of(dtype) != "float":
        return dtype
    return _FLOAT32


def round_draw(x: Array, dtype: np.dtype) -> Array:
    """Round a draw to the dtype that was asked for.

    A number beyond the greatest finite one, as Cauchy numbers are in float16, becomes that: no draw
    is infinite by rounding.
    """
    if x.dtype == dtype:
        return x
    most = float(ml_dtypes.finfo(dtype).max)
    if most < 1e38:
        limit = full_like(x, most)
        finite = lt(absolute(x), full_like(x, math.inf))
        x = select(finite, clamp(full_like(x, -most), x, limit), x)
    return convert(x, dtype)


def static_shape(shape: ShapeLike | Array | np.ndarray, caller: str) -> tuple[int, ...]:
    """Return the shape as a tuple of Python integers; refuses traced sizes."""
    if isinstance(shape, Tracer):
        raise TracedValueError(
            f"random.{caller}: shape must be known while tracing, but is traced: {shape.origin()}. "
            f"Name the argument in static_argnums"
        )
    sizes = sizes_of(shape, f"random.{caller}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"random.{caller}: sizes must not be negative, got shape {sizes}")
    return sizes


def float_dtype(dtype: DTypeLike | None, caller: str) -> np.dtype:
    """Return the floating dtype asked for, the default for None."""
    target = scalar_dtype(float) if dtype is None else as_dtype(dtype)
    if kind_of(target) != "float":
        raise TypeError(f"random.{caller}: dtype must be floating, got {target}")
    return target


def integer_dtype(dtype: DTypeLike | None, caller: str) -> np.dtype:
    """Return the integer dtype asked for, of 8 to 64 bits; the default for None."""
    target = default_dtype("int") if dtype is None else as_dtype(dtype)
    if target.kind not in "iu":
        raise TypeError(f"random.{caller}: dtype must be an integer of 8 to 64 bits, got {target}")
    return target


def in_range(
    x: ArrayLike,
    caller: str,
    name: str,
    most: float = math.inf,
    *,
    whole: bool = False,
    nan: bool = False,
) -> None:
    """Raise ``ValueError`` for a parameter that is known, and not from 0 to ``most``.

    One number is looked at, and the elements of an array only where it is one parameter as a
    ``whole``, such as the probabilities of several outcomes: those of other arrays have a draw
    each, which is NaN for what is out of range, as it is for traced ones.
    """
    worst: Any
    if x.__class__ in (int, float):
        worst = x
    else:
        value = as_value(x, f"random.{caller}", name)
        if isinstance(value, Tracer) or (value.ndim and not whole) or not value.size:
            return
        host = np.asarray(value)
        worst = host.min() if not host.min() >= 0 else host.max()
    if worst < 0 or worst > most or (np.isnan(worst) and not nan):
        expected = "not be negative or NaN" if most == math.inf else f"be from 0 to {most:g}"
        raise ValueError(f"random.{caller}: {name} must {expected}, got {worst}")


def parameter(
    x: ArrayLike,
    dtype: np.dtype,
    caller: str,
    name: str,
    lossless: bool = False,
    nonnegative: bool = False,
) -> Array:
    """Return a parameter in the dtype to draw in; checks that it is ``nonnegative`` if it must.

    Where it must be ``lossless``, ``TypePromotionError`` if ``dtype``, that of the result, is not
    what the two promote to.
    """
    if nonnegative:
        in_range(x, caller, name, nan=True)
    value = as_value(x, f"random.{caller}", name)
    if lossless:
        own = (value.dtype, value.weak_type)
        if promote([own, (dtype, False)], f"random.{caller}")[0] != dtype:
            raise TypePromotionError(
                f"random.{caller}: {name} of type {value.type} does not convert to {dtype} without "
                f"loss; pass dtype=, or convert it with .astype({dtype.name!r})"
            )
    return convert(value, wide(dtype))


def shape_of(shape: ShapeLike | None, caller: str, *parameters: Any) -> tuple[int, ...]:
    """Return the shape asked for; for None that to which the parameters broadcast."""
    if shape is None:
        return broadcast_shapes(f"random.{caller}", *[p.shape for p in parameters])
    return static_shape(shape, caller)


def spread(x: Array, shape: tuple[int, ...], caller: str, name: str) -> Array:
    """Return a parameter of a distribution at the shape of the draw.

    Raises ``ValueError`` where it does not broadcast to that.
    """
    extra = len(shape) - x.ndim
    if extra < 0 or any(n not in (1, m) for n, m in zip(x.shape, shape[extra:], strict=True)):
        raise ValueError(f"random.{caller}: {name} {x.type} does not broadcast to shape {shape}")
    return broadcast_to(x, shape)
