"""Conversion between element types, arguments that ask for one, and functions in a wider one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from stretto._engine import core
from stretto._engine.core.boundary import reraise_foreign
from stretto._engine.core.errors import ErrorState
from stretto._engine.core.integers import check_fits
from stretto._engine.core.interpreter import Linear, Value, as_value, constant, refuse_masked
from stretto._engine.core.primitive import CARRIED, Primitive
from stretto._engine.core.types import (
    ArrayType,
    array_type,
    as_dtype,
    inexact_dtype,
    is_complex,
    is_inexact,
    kind_of,
)
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike

F = TypeVar("F", bound=Callable[..., Any])

_FLOAT32 = np.dtype(np.float32)
_POWERS_OF_2 = np.dtype(ml_dtypes.float8_e8m0fnu)
_ARRAYS = (Value, np.ndarray, np.generic)
_SEVERAL = (list, tuple)


class ConvertElementType(Primitive):
    """Each element in another dtype; floats to integers truncate and saturate, as in XLA."""

    padded = CARRIED

    light = True
    dtype: np.dtype
    weak: bool = False
    splat = True
    keeps_zeros = True

    def by_rows(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> bool:
        return True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        """Keep all axes: each element is treated alone."""
        return range(out.ndim)

    def infer(self, x: ArrayType) -> ArrayType:
        return array_type(x.shape, self.dtype, self.weak)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Use NumPy's cast, with XLA's saturation from float to integer and NaN to zero.

        Complex to real drops the imaginary part; conversion to bool tests for nonzero.
        """
        target = kind_of(self.dtype)
        if target == "bool":
            return x != 0
        if is_complex(x.dtype) and target != "complex":
            x = np.real(x)
        if kind_of(x.dtype) == "float" and target in ("int", "uint"):
            return _whole(x if x.dtype.itemsize >= 4 else x.astype(np.float32), self.dtype)
        if not np.can_cast(x.dtype, self.dtype, "unsafe"):  # between two of the narrowest types
            x = x.astype(np.int32 if target in ("int", "uint") else np.float32)
        if self.dtype == _POWERS_OF_2 and x.dtype == np.float64:
            x = x.astype(np.float32)  # as XLA does, so that what is 0 there is NaN
        return x.astype(self.dtype)

    def lower(self, b: Any, x: Any) -> Any:
        """Write one ``convert``; to bool a comparison with zero."""
        if kind_of(self.dtype) == "bool":
            return b.compare("NE", x, b.splat(0, x.type))
        if is_complex(x.type.dtype) and not is_complex(self.dtype):
            real = np.dtype(np.float32 if x.type.dtype == np.complex64 else np.float64)
            x = b.emit("real", x, out=array_type(x.type.shape, real))
        return b.emit("convert", x)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Convert the tangent between inexact types; otherwise it is zero."""
        (x,), (dx,) = primals, tangents
        return self(x), self(dx) if is_inexact(self.dtype) else None

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        return (convert(ct, x.type.dtype, x.type.weak_type),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(*args), axes[0]


@functools.lru_cache(64)
def _bounds(dtype: np.dtype) -> tuple[int, int, np.dtype]:
    """Return the least and greatest number of an integer dtype, and a signed one that NumPy has."""
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max), np.dtype(np.int32 if info.max < 1 << 31 else np.int64)


_strict = ErrorState(over="ignore", under="ignore", invalid="raise")
_quiet = ErrorState(over="ignore", under="ignore", invalid="ignore")


def _whole(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Truncate towards zero, and keep in the dtype's range.

    The processor raises a flag when a conversion to 32 or 64 signed bits meets NaN, or a number
    out of range; only then are these looked for.
    """
    least, greatest, signed = _bounds(dtype)
    if greatest < 1 << 63:
        try:
            whole = _strict.run(x.astype, signed)
        except FloatingPointError as error:
            reraise_foreign(error)
        else:
            if dtype != signed:
                np.clip(whole, least, greatest, out=whole)
            return whole.astype(dtype, copy=False)
    return _saturate(x.astype(np.float64), dtype)


def _saturate(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Truncate towards zero; beyond the range the nearest bound; NaN to zero."""
    info = ml_dtypes.iinfo(dtype)
    wide = np.dtype(np.uint64 if kind_of(dtype) == "uint" else np.int64)
    low, high = np.asarray(int(info.min), wide), np.asarray(int(info.max), wide)
    inside = (x > float(low)) & (x < float(high))
    whole = np.where(inside, x, 0).astype(wide)
    return np.where(x >= float(high), high, np.where(x <= float(low), low, whole)).astype(dtype)


def as_inexact(x: Any, caller: str, argument: str = "x") -> Value:
    """Return the value of an argument; integers and booleans become the default float."""
    x = as_value(x, caller, argument)
    return x if is_inexact(x.dtype) else convert(x, inexact_dtype(x.dtype), x.weak_type)


def dtype_argument(dtype: DTypeLike, caller: str, argument: str = "dtype") -> np.dtype:
    """Give the canonical dtype that an argument asks for; its ``TypeError`` names the argument."""
    try:
        return as_dtype(dtype)
    except TypeError:
        raise TypeError(
            f"{caller}: {argument} must be a dtype of numbers or booleans, such as 'float32', got "
            f"{dtype!r}"
        ) from None


def convert(x: Any, dtype: np.dtype, weak_type: bool = False) -> Any:
    """Return the value in this canonical dtype; itself where nothing changes."""
    if x.type.dtype == dtype and x.type.weak_type == weak_type:
        return x
    return ConvertElementType(dtype, weak_type)(x)


def value_in(x: Any, dtype: np.dtype, caller: str, argument: str = "x", wrap: bool = False) -> Any:
    """Return the value of an argument in a canonical dtype that the user asked for.

    NumPy's integers become that at once, since those of 64 bits may fit there, and not in 32.
    ``wrap``: where they do not fit in an integer dtype they keep their low bits, as in C. Raises
    ``OverflowError`` otherwise, as for Python's integers.
    """
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "iu" and x.dtype != dtype:
        if x.__class__ is not np.ndarray:
            refuse_masked(x, caller, argument)
        if not wrap and kind_of(dtype) in ("int", "uint"):
            check_fits(x, dtype, caller, argument, asked=True)
        host = np.array(x, order="C", copy=None, subok=False)
        return constant(_quiet.run(ConvertElementType(dtype).reference, host))
    return convert(as_value(x, caller, argument), dtype)


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Convert each element to another dtype.

    Integers that do not fit in an integer dtype keep their low bits, as in C; floats become the
    nearest integer that does.

    Args:
        operand: an array.
        new_dtype: the dtype.

    Returns:
        The array in that dtype.

    Raises:
        TypeError: ``new_dtype`` is not a dtype of numbers or booleans.

    Source: StableHLO, ``convert``.

    >>> import stretto as st
    >>> st.lax.convert_element_type(st.numpy.array([1.7, -1.7]), int)
    Array([ 1, -1], dtype=int32)
    """
    caller = "convert_element_type"
    wanted = dtype_argument(new_dtype, caller, "new_dtype")
    return value_in(operand, wanted, caller, "operand", wrap=True)


def rounded_once(fun: F) -> F:
    """Make a function of narrow floats compute in float32, and round its results once.

    A square of 300 is infinite in float16, though the length of a vector of such numbers is not;
    and each step of a formula loses digits of which there are few.

    It does so where all its arrays of floats have one dtype narrower than float32: results of
    float32 then get that dtype. A ``dtype`` that the call names is the function's own business. So
    are calls that it refuses: its error speaks of what it was given.

    Args:
        fun: a function of arrays, given as arguments of their own, or in a list or tuple.

    >>> import stretto.numpy as snp
    >>> @rounded_once
    ... def length(x):
    ...     return snp.sqrt(snp.sum(x * x))
    >>> length(snp.full(64, 300, dtype="float16"))
    Array(2.4e+03, dtype=float16)
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            if x.__class__ in _SEVERAL or (isinstance(x, _ARRAYS) and x.dtype.itemsize < 4):
                break
        else:
            if not kwargs:
                return fun(*args, **kwargs)
        dtype = _narrow_dtype([*args, *kwargs.values()])
        if dtype is None or kwargs.get("dtype") is not None:
            return fun(*args, **kwargs)
        try:
            out = fun(
                *[_widened(x) for x in args], **{name: _widened(x) for name, x in kwargs.items()}
            )
        except (TypeError, ValueError):
            return fun(*args, **kwargs)
        return core.tree.map(lambda x: _rounded(x, dtype), out)

    return call  # type: ignore[return-value]


def _narrow_dtype(args: list[Any]) -> np.dtype | None:
    """Return the one dtype of all arrays of floats, if there is one and it is narrow."""
    found = None
    for x in [x for arg in args for x in (arg if arg.__class__ in _SEVERAL else (arg,))]:
        if isinstance(x, _ARRAYS) and is_inexact(x.dtype) and not getattr(x, "weak_type", False):
            if x.dtype.itemsize >= 4 or (found is not None and x.dtype != found):
                return None
            found = x.dtype
    return found


def _widened(x: Any) -> Any:
    if x.__class__ in _SEVERAL:
        return x.__class__(map(_widened, x))
    narrow = isinstance(x, _ARRAYS) and x.dtype.itemsize < 4 and kind_of(x.dtype) == "float"
    return convert(as_value(x), _FLOAT32) if narrow else x


def _rounded(x: Any, dtype: np.dtype) -> Any:
    return convert(x, dtype) if isinstance(x, Value) and x.dtype == _FLOAT32 else x
