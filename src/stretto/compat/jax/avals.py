"""Abstract values: ``ShapedArray``, and that of any array, number or key.

One is made for each ``ArrayType`` when first asked for.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Value, type_of
from stretto._engine.core.mesh import Mesh, PartitionSpec
from stretto._engine.core.shardings import NamedSharding
from stretto._engine.core.types import ArrayType, canonical_dtype, float0, is_inexact, short_name
from stretto._engine.higher_order.refs import Ref
from stretto._engine.xla.array import SHARDED
from stretto._engine.xla.device import default_device
from stretto.compat.jax.types import is_key
from stretto.dtypes import extended, issubdtype

__all__ = [
    "AbstractRef",
    "AbstractToken",
    "AbstractValue",
    "ShapedArray",
    "aval_of",
    "get_aval",
    "pytype_aval_mappings",
]


class AbstractValue:
    """What is known of a value while tracing."""

    __slots__: tuple[str, ...] = ()
    is_high = False

    def to_tangent_aval(self) -> Any:
        """The abstract value of its tangent."""
        return self

    def normalize(self) -> Any:
        """The type without what does not matter to programs, such as weakness."""
        return self

    def lo_ty(self) -> list[Any]:
        """The types of arrays that values of it consist of."""
        return [self]

    def lower_val(self, hi_val: Any) -> list[Any]:
        """The arrays that a value consists of."""
        return [hi_val]

    def raise_val(self, *lo_vals: Any) -> Any:
        """The value of these arrays."""
        return lo_vals[0]


class AbstractToken(AbstractValue):
    """Stands for the order of effects, which has no value."""

    __slots__ = ()


class AbstractRef(AbstractValue):
    """That of a mutable reference.

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
        """A copy, of another array."""
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
        """Where it is; over a mesh without axes, where nothing is known."""
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
        """A copy with some of its parameters replaced."""
        given = {
            "shape": self.shape,
            "dtype": self.dtype,
            "weak_type": self.weak_type,
            "sharding": self._sharding,
            "vma": self.vma,
        } | changes
        return type(self)(**given)

    def strip_weak_type(self) -> ShapedArray:
        """The same with a dtype that does not give way."""
        return self.update(weak_type=False) if self.weak_type else self

    normalize = strip_weak_type

    def to_tangent_aval(self) -> ShapedArray:
        """That of tangents: of the same dtype, or of none for what is not differentiated."""
        kept = not hasattr(self.dtype, "extended_kind") and is_inexact(self.dtype)
        return self if kept else ShapedArray(self.shape, float0)

    at_least_vspace = to_cotangent_aval = to_tangent_aval

    def to_ct_aval(self) -> ShapedArray:
        """That of cotangents."""
        return self.to_tangent_aval()

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """As programs print it, such as ``float32[2,3]``."""
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
    """The dtype of numbers that arrays of this one get."""
    dtype = np.dtype(dtype)
    return dtype if dtype == float0 else canonical_dtype(dtype)


@functools.lru_cache(4096)
def _of_type(type: ArrayType) -> ShapedArray:
    return ShapedArray(type.shape, type.dtype, type.weak_type)


def aval_of(type: ArrayType) -> ShapedArray:
    """The abstract value for a type of Stretto's."""
    return _of_type(type)


def get_aval(x: Any) -> Any:
    """The abstract value of an array, a number, a key, or what is one already."""
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
    """That of what has a shape and a dtype, or is a number."""
    return _of_type(type_of(x, "get_aval"))


pytype_aval_mappings: dict[type, Any] = dict.fromkeys(
    (np.ndarray, np.generic, bool, int, float, complex), _array_aval
)
"""By class: the function that gives the abstract value of one; libraries add classes of theirs."""
