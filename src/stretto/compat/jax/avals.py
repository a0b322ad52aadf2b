"""Abstract values, ``ShapedArray``, of any array, number or key; and classes for ``isinstance``.

An abstract value is made for each ``ArrayType`` when first asked for. Nothing is made of
``jax.Array`` and ``jax.core.Tracer``. In jaxprs variables say that they are keys, and equations
work on the keys' words.
"""

from __future__ import annotations

import abc
import functools
import math
from types import FunctionType
from typing import Any

import numpy as np

from stretto._engine.core import interpreter
from stretto._engine.core.interpreter import Value, type_of
from stretto._engine.core.mesh import Mesh, PartitionSpec
from stretto._engine.core.recorder import Traced
from stretto._engine.core.shardings import NamedSharding
from stretto._engine.core.types import (
    ArrayType,
    array_type,
    canonical_dtype,
    float0,
    is_inexact,
    short_name,
)
from stretto._engine.higher_order.refs import Ref
from stretto._engine.xla.array import SHARDED
from stretto._engine.xla.array import Array as Concrete
from stretto._engine.xla.device import default_device
from stretto.dtypes import extended, issubdtype
from stretto.random.key_arrays import KeyArray

_ARRAYS = {Concrete, Traced, KeyArray}
_OTHERS = {np.ndarray, bool, int, float, complex, str, type(None), FunctionType}
"""Classes that clients ask about for each leaf of a tree."""


class _WithMethods(abc.ABCMeta):
    """Methods can be read off the class, as libraries do that wrap each of them."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Array:
            kind = type(instance)
            if kind in _ARRAYS:
                return True
            if kind in _OTHERS:
                return False
        return super().__instancecheck__(instance)

    def __getattr__(cls, name: str) -> Any:
        return getattr(Concrete, name)


class Array(metaclass=_WithMethods):
    """Arrays, traced values, and typed keys."""

    __module__ = "jax"


Array.register(Value)
Array.register(KeyArray)


def is_key(x: object) -> bool:
    """Say whether it is an array of typed keys."""
    return isinstance(x, KeyArray)


class _Traced(type):
    def __instancecheck__(cls, x: Any) -> bool:
        if cls is not Tracer:  # a class that a library derives from it
            return type.__instancecheck__(cls, x)
        if type(x) is Concrete or type(x) in _OTHERS:
            return False
        if isinstance(x, KeyArray):
            x = x._words
        return isinstance(x, interpreter.Tracer)

    def __subclasscheck__(cls, subclass: type) -> bool:
        if cls is not Tracer:
            return type.__subclasscheck__(cls, subclass)
        return issubclass(subclass, interpreter.Tracer) or subclass is cls


class Tracer(interpreter.Tracer, metaclass=_Traced):
    """Traced values, and typed keys whose words are traced.

    Libraries derive the values of their own ``Trace`` from it.

    Args:
        trace: the trace that it belongs to.
        aval: its abstract value.
    """

    __module__ = "jax.core"
    position = None

    def __init__(self, trace: Any, aval: Any) -> None:
        self.interpreter = trace
        self.type = _type_of(aval)

    def __getattr__(self, name: str) -> Any:
        if name != "type":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.type = made = _type_of(self.aval)  # of a class that has an ``aval`` of its own
        return made


def _type_of(aval: Any) -> Any:
    return array_type(aval.shape, np.dtype(aval.dtype), bool(aval.weak_type))


class AbstractValue:
    """Holds what is known of a value while tracing."""

    __slots__: tuple[str, ...] = ()
    is_high = False

    def to_tangent_aval(self) -> Any:
        """Return that of tangents: of the same dtype, or of none if it is not differentiated."""
        return self

    def normalize(self) -> Any:
        """Return the type without what does not matter to programs, such as weakness."""
        return self

    def lo_ty(self) -> list[Any]:
        """Return the types of arrays that values of it consist of."""
        return [self]

    def lower_val(self, hi_val: Any) -> list[Any]:
        """Return the arrays that a value consists of."""
        return [hi_val]

    def raise_val(self, *lo_vals: Any) -> Any:
        """Return the value of these arrays."""
        return lo_vals[0]


class AbstractToken(AbstractValue):
    """Stands for the order of effects, which has no value."""

    __slots__ = ()


class AbstractRef(AbstractValue):
    """The abstract value of a mutable reference.

    Args:
        inner_aval: that of the array that it holds.
    """

    __slots__ = ("inner_aval",)

    def __init__(self, inner_aval: Any, memory_space: Any = None, kind: Any = None) -> None:
        del memory_space, kind
        self.inner_aval = inner_aval

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self.inner_aval == other.inner_aval

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner_aval":
            raise AttributeError(name)
        return getattr(self.inner_aval, name)

    def update(self, inner_aval: Any = None, **changes: Any) -> AbstractRef:
        """Return a copy, of another array."""
        del changes
        return AbstractRef(self.inner_aval if inner_aval is None else inner_aval)

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval.str_short()}}}"

    __str__ = __repr__


class ShapedArray(AbstractValue):
    """Shape, dtype and weak type of an array.

    Args:
        shape: the sizes of its axes.
        dtype: a dtype of numbers, or of typed keys.
        weak_type: whether the dtype gives way in promotion.
        sharding: where it is, if that is known.

    >>> ShapedArray((2, 3), "float32")
    ShapedArray(float32[2,3])
    """

    __slots__ = ("_sharding", "dtype", "shape", "vma", "weak_type")
    array_abstraction_level = 2

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        weak_type: bool = False,
        *,
        sharding: Any = None,
        vma: frozenset[Any] = frozenset(),
        memory_space: Any = None,
    ) -> None:
        del memory_space
        self.shape = tuple(shape)
        self.dtype = dtype if hasattr(dtype, "extended_kind") else canonical(dtype)
        self.weak_type, self._sharding, self.vma = weak_type, sharding, vma

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.weak_type, self._sharding

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def sharding(self) -> Any:
        """The place where it is; over a mesh without axes, where nothing is known."""
        return self._sharding or _anywhere(len(self.shape))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an abstract value of rank 0")
        return self.shape[0]

    def update(self, **changes: Any) -> ShapedArray:
        """Return a copy with some of its parameters replaced."""
        given = {
            "shape": self.shape,
            "dtype": self.dtype,
            "weak_type": self.weak_type,
            "sharding": self._sharding,
            "vma": self.vma,
        } | changes
        return type(self)(**given)

    def strip_weak_type(self) -> ShapedArray:
        """Return the same with a dtype that does not give way."""
        return self.update(weak_type=False) if self.weak_type else self

    normalize = strip_weak_type

    def to_tangent_aval(self) -> ShapedArray:
        """Return that of tangents: of the same dtype, or of none if it is not differentiated."""
        kept = not hasattr(self.dtype, "extended_kind") and is_inexact(self.dtype)
        return self if kept else ShapedArray(self.shape, float0)

    at_least_vspace = to_cotangent_aval = to_tangent_aval

    def to_ct_aval(self) -> ShapedArray:
        """Return the abstract value of cotangents."""
        return self.to_tangent_aval()

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """Return the text that programs print, such as ``float32[2,3]``."""
        del mesh_axis_types
        extra = issubdtype(self.dtype, extended) or self.dtype == float0
        name = short_name(self.dtype) if short_dtypes and not extra else self.dtype.name
        return f"{name}[{','.join(map(str, self.shape))}]"

    def __str__(self) -> str:
        weak = "~" if self.weak_type else ""
        return weak + self.str_short()

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"


@functools.cache
def _anywhere(ndim: int) -> NamedSharding:
    return NamedSharding(Mesh(np.array(default_device()), ()), PartitionSpec(*[None] * ndim))


def canonical(dtype: Any) -> np.dtype:
    """Return the dtype of numbers that arrays of this one get."""
    dtype = np.dtype(dtype)
    return dtype if dtype == float0 else canonical_dtype(dtype)


@functools.lru_cache(4096)
def _of_type(type: ArrayType) -> ShapedArray:
    return ShapedArray(type.shape, type.dtype, type.weak_type)


def aval_of(type: ArrayType) -> ShapedArray:
    """Return the abstract value for a type of Stretto's."""
    return _of_type(type)


def get_aval(x: Any) -> Any:
    """Return the abstract value of an array, a number, a key, or what is one already."""
    if isinstance(x, Value):
        aval = _of_type(x.type)
        return aval.update(sharding=x.sharding) if x.__class__ in SHARDED else aval
    if is_key(x):
        return ShapedArray(x.shape, x.dtype)
    if isinstance(x, Ref):
        return AbstractRef(ShapedArray(x.shape, x.dtype))
    if isinstance(x, AbstractValue):
        return x
    of_library = pytype_aval_mappings.get(type(x))
    if of_library is not None:
        return of_library(x)
    dtype = getattr(x, "dtype", None)
    if hasattr(dtype, "extended_kind") or (dtype is not None and dtype == float0):
        return ShapedArray(x.shape, dtype)
    return _array_aval(x)


def _array_aval(x: Any) -> ShapedArray:
    """Return the abstract value of what has a shape and a dtype, or is a number."""
    return _of_type(type_of(x, "get_aval"))


pytype_aval_mappings: dict[type, Any] = dict.fromkeys(
    (np.ndarray, np.generic, bool, int, float, complex), _array_aval
)
"""The function, by class, that gives the abstract value of one; libraries add classes of theirs."""


_WORD = np.dtype(np.uint32)


def type_of_aval(aval: Any) -> ArrayType:
    """Return the type for an abstract value; for that of keys, the type of their words."""
    implementation = getattr(aval.dtype, "implementation", None)
    if implementation is not None:
        return array_type((*aval.shape, implementation.size), _WORD)
    return array_type(aval.shape, np.dtype(aval.dtype), bool(aval.weak_type))


def unwrap_keys(x: Any) -> Any:
    """Return the words of keys; anything else as it is."""
    return x._words if is_key(x) else x


def wrap_keys(words: Any, aval: Any) -> Any:
    """Return the keys of these words, if that is what the abstract value says."""
    implementation = getattr(aval.dtype, "implementation", None)
    return words if implementation is None or is_key(words) else KeyArray(words, implementation)


def as_aval(keys: Any) -> ShapedArray:
    """Return the abstract value of keys."""
    return ShapedArray(keys.shape, keys.dtype)
