"""The dtypes by name, their kinds, and how they promote.

A dtype's name is also what makes arrays of it: ``snp.float32(3)``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core import types
from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Value, as_value, refuse_masked
from stretto._engine.core.types import canonical_dtype, kind_of, named_dtype, promote, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike, DType, DTypeLike
from stretto._engine.ops.convert import convert, value_in

__all__ = ["ComplexWarning", "ScalarType", "as_dtype", "bfloat16", "bool_", "byte",
           "can_cast", "cdouble", "character", "common_type", "complex64",
           "complex128", "complex_", "complexfloating", "csingle", "double", "dtype",
           "flexible", "float4_e2m1fn", "float8_e3m4", "float8_e4m3",
           "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
           "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "float32", "float64",
           "float_", "floating", "generic", "half", "inexact", "int2", "int4", "int8",
           "int16", "int32", "int64", "int_", "intc", "integer", "intp", "isdtype",
           "issubdtype", "long", "longlong", "number", "object_", "promote_types",
           "result_type", "short", "signedinteger", "single", "ubyte", "uint", "uint2",
           "uint4", "uint8", "uint16", "uint32", "uint64", "uintc", "uintp", "ulong",
           "ulonglong", "unsignedinteger", "ushort"]  # fmt: skip

_PYTHON = (bool, int, float, complex)


def as_dtype(dtype: DTypeLike | None) -> DType:
    """Give the dtype that a type, a name, a scalar class or a dtype stands for.

    Args:
        dtype: what names it; ``None`` is the default float. 64 bits become 32, with a warning,
            unless ``enable_x64`` is set.

    Returns:
        The dtype.

    Raises:
        TypeError: there is no such dtype, or it is not numeric.

    >>> import stretto.numpy as snp
    >>> from stretto.numpy.dtypes import as_dtype
    >>> as_dtype("int8"), as_dtype(float), as_dtype(snp.float16)
    (dtype('int8'), dtype('float32'), dtype('float16'))
    """
    named: Any = dtype
    if isinstance(named, ScalarType):
        named = named.dtype
    elif named is None:
        named = float
    if named.__class__ is type and named in _PYTHON:
        return scalar_dtype(named)
    asked = named_dtype(named)
    kind_of(asked)
    return asked if canonical_dtype(asked) is asked else types.as_dtype(asked.type)


class ScalarType(type):
    """A named dtype: it stands for the dtype wherever one is expected, and makes arrays of it.

    It is a class, as NumPy's are, for annotations and code that asks; but its calls make arrays.

    Args:
        name: the name in ``stretto.numpy``.
        dtype: the dtype.

    >>> import stretto.numpy as snp
    >>> snp.float16(1.5)
    Array(1.5, dtype=float16)
    >>> snp.ones(2).dtype == snp.float32
    True
    >>> isinstance(snp.float32, type), isinstance(np.float32(1), snp.float32)
    (True, True)
    """

    dtype: DType

    def __new__(cls, name: str, dtype: DType) -> ScalarType:
        """Make the class, as a part of ``stretto.numpy``, so that pickles refer to it."""
        return super().__new__(cls, name, (), {"dtype": dtype, "__module__": "stretto.numpy"})

    def __init__(self, name: str, dtype: DType) -> None:
        super().__init__(name, (), {})

    def __instancecheck__(self, x: object) -> bool:
        return isinstance(x, self.dtype.type)

    def __call__(self, x: ArrayLike | Sequence[Any] = 0) -> Array:
        """Make an array of this dtype.

        Args:
            x: an array, a number, or nested sequences of numbers; 0 by default.

        Returns:
            The array, of the shape of ``x``.

        Raises:
            ValueError: ``x`` cannot be read as numbers, or its sequences differ in length.
        """
        wanted = as_dtype(self)
        if isinstance(x, Value):
            return convert(x, wanted)
        if isinstance(x, (np.ndarray, np.generic)):
            return value_in(x, wanted, self.__name__)
        refuse_masked(x, self.__name__, "x")
        return convert(as_value(np.asarray(x).astype(wanted), self.__name__), wanted)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ScalarType):
            return self.dtype == other.dtype  # type: ignore[attr-defined]
        if other is None or isinstance(other, (Value, np.ndarray, np.generic)):
            return False
        try:
            return self.dtype == named_dtype(other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"stretto.numpy.{self.__name__}"


bool_ = ScalarType("bool_", np.dtype(bool))
int2 = ScalarType("int2", np.dtype(ml_dtypes.int2))
int4 = ScalarType("int4", np.dtype(ml_dtypes.int4))
int8 = ScalarType("int8", np.dtype(np.int8))
int16 = ScalarType("int16", np.dtype(np.int16))
int32 = ScalarType("int32", np.dtype(np.int32))
int64 = ScalarType("int64", np.dtype(np.int64))
uint2 = ScalarType("uint2", np.dtype(ml_dtypes.uint2))
uint4 = ScalarType("uint4", np.dtype(ml_dtypes.uint4))
uint8 = ScalarType("uint8", np.dtype(np.uint8))
uint16 = ScalarType("uint16", np.dtype(np.uint16))
uint32 = ScalarType("uint32", np.dtype(np.uint32))
uint64 = ScalarType("uint64", np.dtype(np.uint64))
float4_e2m1fn = ScalarType("float4_e2m1fn", np.dtype(ml_dtypes.float4_e2m1fn))
float8_e3m4 = ScalarType("float8_e3m4", np.dtype(ml_dtypes.float8_e3m4))
float8_e4m3 = ScalarType("float8_e4m3", np.dtype(ml_dtypes.float8_e4m3))
float8_e4m3b11fnuz = ScalarType("float8_e4m3b11fnuz", np.dtype(ml_dtypes.float8_e4m3b11fnuz))
float8_e4m3fn = ScalarType("float8_e4m3fn", np.dtype(ml_dtypes.float8_e4m3fn))
float8_e4m3fnuz = ScalarType("float8_e4m3fnuz", np.dtype(ml_dtypes.float8_e4m3fnuz))
float8_e5m2 = ScalarType("float8_e5m2", np.dtype(ml_dtypes.float8_e5m2))
float8_e5m2fnuz = ScalarType("float8_e5m2fnuz", np.dtype(ml_dtypes.float8_e5m2fnuz))
float8_e8m0fnu = ScalarType("float8_e8m0fnu", np.dtype(ml_dtypes.float8_e8m0fnu))
bfloat16 = ScalarType("bfloat16", np.dtype(ml_dtypes.bfloat16))
float16 = ScalarType("float16", np.dtype(np.float16))
float32 = ScalarType("float32", np.dtype(np.float32))
float64 = ScalarType("float64", np.dtype(np.float64))
complex64 = ScalarType("complex64", np.dtype(np.complex64))
complex128 = ScalarType("complex128", np.dtype(np.complex128))

# NumPy's other names for some of them; those of C, as on a 64-bit machine
byte, short, intc, long, longlong = int8, int16, int32, int64, int64
ubyte, ushort, uintc, ulong, ulonglong = uint8, uint16, uint32, uint64, uint64
half, single, double, csingle, cdouble = float16, float32, float64, complex64, complex128
int_, intp, uint, uintp, float_, complex_ = int64, int64, uint64, uint64, float64, complex128

dtype = np.dtype
ComplexWarning = np.exceptions.ComplexWarning

# The abstract kinds are NumPy's own classes; ``issubdtype`` knows where bfloat16 stands.
generic = np.generic
number = np.number
integer = np.integer
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
inexact = np.inexact
floating = np.floating
complexfloating = np.complexfloating
flexible = np.flexible
character = np.character
object_ = np.object_

_ABSTRACT = {
    "bool": (np.generic,),
    "int": (np.signedinteger, np.integer, np.number, np.generic),
    "uint": (np.unsignedinteger, np.integer, np.number, np.generic),
    "float": (np.floating, np.inexact, np.number, np.generic),
    "complex": (np.complexfloating, np.inexact, np.number, np.generic),
}


_CLASSES = frozenset((np.flexible, np.character)).union(*(kinds for kinds in _ABSTRACT.values()))
_NOT_NUMBERS = "OSUMm"
"""NumPy's dtypes that are not numbers: objects, strings and dates."""


class Extended(np.generic):
    """The kind of dtypes that are not numbers, such as keys': in their ``extended_kind``.

    >>> import stretto as st
    >>> st.dtypes.issubdtype(st.random.key(0).dtype, st.dtypes.extended)
    True
    """


def plain_dtype(dtype: DTypeLike) -> np.dtype:
    """Return the dtype named, 64 bits or not."""
    named: Any = dtype
    return named.dtype if isinstance(named, ScalarType) else named_dtype(named)


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Say whether a dtype is another, or of an abstract kind.

    Args:
        arg1: a dtype, or an abstract kind.
        arg2: a dtype, or an abstract kind such as ``snp.floating``.

    Returns:
        Whether ``arg1`` is ``arg2`` or belongs to it.

    Raises:
        TypeError: an argument names no dtype.

    As NumPy's ``issubdtype``.

    >>> import stretto.numpy as snp
    >>> snp.issubdtype(snp.bfloat16, snp.floating)
    True
    """
    if isinstance(arg1, np.dtype) and isinstance(arg2, type):
        return _is_subdtype(arg1, arg2)
    return _is_any_subdtype(arg1, arg2)


def _is_any_subdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    extended = getattr(arg1, "extended_kind", arg1)
    if isinstance(extended, type) and issubclass(extended, Extended):
        return arg1 == arg2 or (isinstance(arg2, type) and issubclass(extended, arg2))
    if hasattr(arg2, "extended_kind") or (isinstance(arg2, type) and issubclass(arg2, Extended)):
        return False
    if isinstance(arg1, type) and arg1 in _CLASSES:
        return isinstance(arg2, type) and issubclass(arg1, arg2)
    dtype = plain_dtype(arg1)
    if not isinstance(arg2, type) or arg2 not in _CLASSES:
        return dtype == plain_dtype(arg2)
    if dtype.kind in _NOT_NUMBERS:
        return issubclass(dtype.type, arg2)
    return arg2 in _ABSTRACT[kind_of(dtype)]


_is_subdtype = functools.lru_cache(1024)(_is_any_subdtype)
"""The same for dtypes and classes, which programs ask about for each array."""


_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int",),
    "unsigned integer": ("uint",),
    "integral": ("int", "uint"),
    "real floating": ("float",),
    "complex floating": ("complex",),
    "numeric": ("int", "uint", "float", "complex"),
}


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Say whether a dtype is of a kind, or of one of several.

    Args:
        dtype: the dtype.
        kind: a dtype; one of ``"bool"``, ``"signed integer"``, ``"unsigned integer"``,
            ``"integral"``, ``"real floating"``, ``"complex floating"`` and ``"numeric"``; or a
            tuple of these.

    Returns:
        Whether it is.

    Raises:
        ValueError: ``kind`` is another name.
        TypeError: ``dtype`` names no dtype.

    As the array API standard's ``isdtype``.

    >>> import stretto.numpy as snp
    >>> snp.isdtype(snp.float32, ("integral", "real floating"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return kind_of(plain_dtype(dtype)) in _KINDS[kind]
    if isinstance(kind, str):
        raise ValueError(f"isdtype: kind must be a dtype or one of {list(_KINDS)}; got {kind!r}")
    return plain_dtype(dtype) == plain_dtype(kind)


def _weak(x: ArrayLike | DTypeLike) -> tuple[np.dtype, bool]:
    """Return the dtype and weakness of an array, a number or a dtype."""
    if isinstance(x, Value):
        return x.type.dtype, x.type.weak_type
    if isinstance(x, (np.ndarray, np.generic)):
        return canonical_dtype(x.dtype), False
    if type(x) in _PYTHON:
        return scalar_dtype(type(x)), type(x) is not bool
    if x.__class__ is type and x in _PYTHON:
        return scalar_dtype(x), x is not bool
    named: Any = x
    dtype = plain_dtype(named)
    kind_of(dtype)
    return canonical_dtype(dtype), False


def result_type(*args: ArrayLike | DTypeLike) -> DType:
    """Give the dtype that arrays, numbers and dtypes promote to.

    Args:
        *args: arrays, numbers and dtypes, at least one.

    Returns:
        The dtype.

    Raises:
        ValueError: there are no arguments.
        TypePromotionError: the dtypes have no common one.

    As NumPy's ``result_type``.

    >>> import stretto.numpy as snp
    >>> snp.result_type(snp.int8, 1.0)
    dtype('float32')
    """
    if not args:
        raise ValueError("result_type: expected at least one array or dtype, got none")
    return promote([_weak(x) for x in args], "result_type")[0]


def promote_types(a: DTypeLike, b: DTypeLike) -> DType:
    """Give the dtype that arrays of two dtypes promote to.

    Args:
        a: a dtype.
        b: a dtype.

    Returns:
        The dtype.

    Raises:
        TypePromotionError: the dtypes have no common one.

    As NumPy's ``promote_types``.

    >>> import stretto.numpy as snp
    >>> snp.promote_types("int8", "bfloat16")
    dtype(bfloat16)
    """
    return promote([_weak(a), _weak(b)], "promote_types")[0]


@described_like(result_type)
def common_type(*arrays: ArrayLike | DTypeLike) -> DType:
    """Give the float or complex dtype that arrays promote to.

    Args:
        *arrays: arrays and numbers, at least one; integers count as floats.

    As NumPy's ``common_type``.

    >>> import stretto.numpy as snp
    >>> snp.common_type(snp.ones(2, dtype=int), snp.ones(2, dtype=snp.float16))
    dtype('float16')
    """
    return types.inexact_dtype(result_type(*arrays))


def can_cast(from_: ArrayLike | DTypeLike, to: DTypeLike, casting: str = "safe") -> bool:
    """Say whether a dtype converts to another under a casting rule.

    Args:
        from_: a dtype, or an array or a number of it.
        to: the dtype to convert to.
        casting: ``"safe"``: by promotion, so that nothing is lost. ``"same_kind"``: also to
            narrower dtypes of one kind, and from booleans by way of integers and floats to complex
            numbers. ``"unsafe"``: always. ``"no"`` and ``"equiv"``: only to the same dtype.

    Returns:
        Whether it does.

    Raises:
        ValueError: there is no such casting rule.
        TypeError: ``to`` names no dtype.

    As NumPy's ``can_cast``.

    >>> import stretto.numpy as snp
    >>> snp.can_cast(snp.int8, snp.int16), snp.can_cast(snp.float32, snp.int32)
    (True, False)
    """
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise ValueError(
            f"can_cast: casting must be 'no', 'equiv', 'safe', 'same_kind' or 'unsafe'; got "
            f"{casting!r}"
        )
    source, target = _weak(from_), _weak(to)
    if casting == "unsafe" or source[0] == target[0]:
        return True
    if casting in ("no", "equiv"):
        return False
    if casting == "same_kind":
        kinds = ("bool", "uint", "int", "float", "complex")
        return kinds.index(kind_of(source[0])) <= kinds.index(kind_of(target[0]))
    try:
        return promote([source, target], "can_cast")[0] == target[0]
    except TypeError:
        return False
