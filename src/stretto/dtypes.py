"""``stretto.dtypes``: dtypes and their kinds, under the names of ``jax.dtypes``.

Besides the dtypes of numbers there are extended ones, at present those of typed keys;
``issubdtype`` knows both.

>>> import stretto as st
>>> st.dtypes.issubdtype(st.random.key(0).dtype, st.dtypes.prng_key)
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, overload

import numpy as np

from stretto._engine.core import types
from stretto._engine.core.errors import TypePromotionError
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import canonical_dtype, float0, kind_of, named_dtype, scalar_dtype
from stretto._engine.core.typing import ArrayLike, DType, DTypeLike
from stretto.numpy.dtypes import Extended as extended
from stretto.numpy.dtypes import bfloat16, issubdtype
from stretto.numpy.dtypes import result_type as _result_type
from stretto.numpy.floats import finfo, iinfo

__all__ = ["TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo",
           "float0", "iinfo", "issubdtype", "itemsize_bits", "prng_key", "result_type",
           "scalar_type_of"]  # fmt: skip

_PYTHON = {"bool": bool, "int": int, "uint": int, "float": float, "complex": complex}

if TYPE_CHECKING:

    class ExtendedDType(Protocol):
        """An extended dtype, such as that of typed keys."""

        extended_kind: ClassVar[type]


class prng_key(extended):
    """The kind that the dtypes of typed keys belong to, for ``issubdtype``.

    >>> import stretto as st
    >>> st.dtypes.issubdtype(st.random.key(0).dtype, st.dtypes.prng_key)
    True
    """


def _number_dtype(dtype: DTypeLike, caller: str) -> np.dtype:
    """Return the dtype of numbers that this names; ``TypeError`` for an extended one."""
    if hasattr(dtype, "extended_kind"):
        raise TypeError(f"dtypes.{caller}: expected a dtype of numbers, got {dtype}")
    if dtype.__class__ is type and dtype in (bool, int, float, complex):
        return scalar_dtype(dtype)
    # Of an array; the attribute ``dtype`` of NumPy's classes is not a dtype.
    own = getattr(dtype, "dtype", dtype)
    result = own if isinstance(own, np.dtype) else named_dtype(dtype)
    kind_of(result)  # refuses what is not a dtype of numbers
    return result


@overload
def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: Literal[False] = False) -> DType: ...
@overload
def canonicalize_dtype(
    dtype: DTypeLike | ExtendedDType, allow_extended_dtype: bool
) -> DType | ExtendedDType: ...
def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> DType | ExtendedDType:
    """Find the dtype that arrays of a dtype get: 32 bits for 64, unless ``enable_x64`` is set.

    Args:
        dtype: a dtype, or what names one.
        allow_extended_dtype: whether an extended dtype is returned as it is.

    Returns:
        A dtype.

    Raises:
        TypeError: ``dtype`` is extended, unless ``allow_extended_dtype``.

    As JAX's ``dtypes.canonicalize_dtype``.

    >>> canonicalize_dtype("float64")
    dtype('float32')
    """
    if allow_extended_dtype and hasattr(dtype, "extended_kind"):
        return dtype
    return canonical_dtype(_number_dtype(dtype, "canonicalize_dtype"))


def itemsize_bits(dtype: DTypeLike) -> int:
    """Count the bits of one number.

    Args:
        dtype: a dtype, or what names one.

    Returns:
        A Python integer; 8 for a boolean.

    Raises:
        TypeError: ``dtype`` is extended.

    As JAX's ``dtypes.itemsize_bits``.

    >>> itemsize_bits("float32"), itemsize_bits("int4"), itemsize_bits("float4_e2m1fn")
    (32, 4, 4)
    """
    number = _number_dtype(dtype, "itemsize_bits")
    kind = kind_of(number)
    if kind in ("int", "uint"):
        return int(iinfo(number).bits)
    return int(finfo(number).bits) if kind == "float" else 8 * number.itemsize


@overload
def result_type(*args: Any, return_weak_type_flag: Literal[False] = False) -> DType: ...
@overload
def result_type(*args: Any, return_weak_type_flag: Literal[True]) -> tuple[DType, bool]: ...
def result_type(*args: Any, return_weak_type_flag: bool = False) -> DType | tuple[DType, bool]:
    """Find the dtype that arrays, numbers and dtypes combine to.

    Args:
        *args: arrays, numbers, or dtypes.
        return_weak_type_flag: whether to say, too, whether the dtype is weak.

    Returns:
        A dtype, or a tuple of it and a boolean.

    Raises:
        TypePromotionError: they have no dtype in common.

    As JAX's ``dtypes.result_type``.

    >>> result_type(1, 2.0, return_weak_type_flag=True)
    (dtype('float32'), True)
    """
    dtype = _result_type(*args)
    if not return_weak_type_flag:
        return dtype
    return dtype, all(map(_is_weak, args))


def _is_weak(x: object) -> bool:
    if isinstance(x, Value):
        return x.weak_type
    return (x if x.__class__ is type else type(x)) in (int, float, complex)


def scalar_type_of(x: ArrayLike) -> type:
    """Find the Python type of an element.

    Args:
        x: an array, or a number.

    Returns:
        ``bool``, ``int``, ``float`` or ``complex``.

    As JAX's ``dtypes.scalar_type_of``.

    >>> import stretto.numpy as snp
    >>> scalar_type_of(snp.ones(3))
    <class 'float'>
    """
    return _PYTHON[types.kind_of(as_value(x, "dtypes.scalar_type_of").dtype)]


exports(__name__)
