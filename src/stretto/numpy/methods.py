"""The operators and methods of arrays, attached to the class of values when wiring.

Each is the function of the same name, with the array first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core.interpreter import Value, gives_array
from stretto._engine.core.migration import is_pytorch
from stretto._engine.core.types import array_type
from stretto._engine.core.typing import ArrayLike, Axes, DTypeLike, ShapeLike, ShardingLike, Tree
from stretto._engine.eager.table import OPERATORS, eager_call
from stretto._engine.eager.twins import matrix_product
from stretto._engine.ops.contract import dot, matmul
from stretto._engine.xla.array import Array
from stretto.numpy import (
    arithmetic,
    bits,
    elementary,
    extrema,
    logic,
    manipulation,
    reductions,
    searching,
    sorting,
    statistics,
    storage,
    taking,
)
from stretto.numpy.creation import copy
from stretto.numpy.indexing import getitem, setitem
from stretto.numpy.updating import At, refuse_changes

if TYPE_CHECKING:
    from stretto._engine.core import typing
    from stretto._engine.core.typing import Index
    from stretto._engine.xla.device import Device
    from stretto.lax.products import PrecisionLike

_NUMBERS = (bool, int, float, complex, Value, np.ndarray, np.generic)
_AT_ONCE = frozenset((bool, int, float, complex, Array, np.ndarray))

_BINARY: dict[str, Callable[[ArrayLike, ArrayLike], Tree]] = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "truediv": arithmetic.true_divide,
    "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.remainder,
    "divmod": arithmetic.divmod,
    "pow": arithmetic.power,
    "matmul": matrix_product(matmul),
    "and": bits.bitwise_and,
    "or": bits.bitwise_or,
    "xor": bits.bitwise_xor,
    "lshift": bits.left_shift,
    "rshift": bits.right_shift,
}
_COMPARISONS: dict[str, Callable[[ArrayLike, ArrayLike], Tree]] = {
    "eq": logic.equal,
    "ne": logic.not_equal,
    "lt": logic.less,
    "le": logic.less_equal,
    "gt": logic.greater,
    "ge": logic.greater_equal,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": arithmetic.negative,
    "pos": arithmetic.positive,
    "abs": arithmetic.absolute,
    "invert": bits.bitwise_not,
}


def _takes(other: object) -> bool:
    """Say whether an operator accepts this operand, or a list, which the function refuses."""
    return (
        other.__class__ in _AT_ONCE
        or isinstance(other, _NUMBERS)
        or other.__class__ in (list, tuple)
        or gives_array(other)
    )


def _not_taken(name: str, other: object) -> Array:
    """Return ``NotImplemented``, for Python to ask the other operand; refuse PyTorch's tensors."""
    if is_pytorch(other):
        raise TypeError(
            f"{name}: one operand is an array and one a PyTorch {type(other).__name__}; use "
            f"`snp.asarray(tensor)` for an array of its elements"
        )
    return NotImplemented  # what type checkers take for any type


def _operator(name: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(self: Array, other: ArrayLike) -> Array:
        if isinstance(other, Value) or _takes(other):
            return function(self, other)
        return _not_taken(name, other)

    apply.__name__ = apply.__qualname__ = f"__{name}__"
    return apply


def _reflected(name: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(self: Array, other: ArrayLike) -> Array:
        return function(other, self) if _takes(other) else _not_taken(name, other)

    apply.__name__ = apply.__qualname__ = f"__r{name}__"
    return apply


def _round(self: Array, ndigits: int | None = None) -> Array:
    """Round, to integers where no digits are asked for, as Python's numbers do."""
    if ndigits is None and self.type.kind == "float":
        return manipulation.astype(arithmetic.round(self), int)
    return arithmetic.round(self, 0 if ndigits is None else ndigits)


def _length(self: Array) -> int:
    if not self.type.shape:
        raise TypeError(f"len() of an array of rank 0, {self.type}")
    return self.type.shape[0]


def _iterate(self: Array) -> Iterator[Array]:
    type = self.type
    if not type.shape:
        raise TypeError(f"an array of rank 0, {type}, has no axis to iterate over")
    if self.__class__ is Array:
        part = array_type(type.shape[1:], type.dtype, type.weak_type)
        return iter([Array(np.asarray(row), part) for row in self.to_host()])
    return iter([getitem(self, i) for i in range(type.shape[0])])


def _contains(self: Array, element: ArrayLike) -> bool:
    return bool(reductions.any(logic.equal(self, element)))


def _one_sequence(shape: tuple[Any, ...]) -> Tree:
    """Return sizes or axes as one sequence, whether they came so or one by one."""
    return shape[0] if len(shape) == 1 and shape[0].__class__ is not int else shape


def _astype(
    self: Array,
    dtype: DTypeLike | None,
    copy: bool = False,
    device: Device | ShardingLike | str | None = None,
) -> Array:
    """Convert the elements to another dtype; floats lose their fraction as integers.

    Args:
        self: the array.
        dtype: the dtype of the result; None is the default float.
        copy: has no effect: arrays are immutable.
        device: the device, its name, or a sharding; by default where the array is.

    Returns:
        An array of the same shape.

    Raises:
        ValueError: ``device`` is not there.

    As NumPy's ``ndarray.astype``.

    >>> import stretto.numpy as snp
    >>> snp.array([1.7, -1.7]).astype(dtype=int)
    Array([ 1, -1], dtype=int32)
    """
    del copy  # arrays are immutable
    return manipulation.astype(self, dtype, device=device)


def _dot(
    self: Array,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiply over the last axis and the last but one of ``b``.

    Args:
        self: the array.
        b: an array, or a number; of a vector its only axis counts.
        precision: that of ``lax.dot``.
        preferred_element_type: the dtype of the result; by default that of the operands.

    Returns:
        An array of the other axes of both.

    Raises:
        ValueError: the sizes differ.

    As ``stretto.numpy.dot``.

    >>> import stretto.numpy as snp
    >>> snp.array([1.0, 2.0]).dot(snp.array([3.0, 4.0]))
    Array(11., dtype=float32)
    """
    return dot(self, b, precision, preferred_element_type)


def _reshape(
    self: Array,
    *shape: ShapeLike,
    order: str = "C",
    copy: bool | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Give the elements another shape.

    Args:
        self: the array.
        *shape: the sizes of the result, one by one or as a sequence; one may be -1.
        order: ``"C"`` or ``"A"``, row-major, or ``"F"``, column-major.
        copy: has no effect: arrays are immutable.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        An array of the same dtype.

    Raises:
        ValueError: the sizes do not multiply to that of the array, or ``order`` is another; or the
            result cannot be split as ``out_sharding`` says.

    As ``stretto.numpy.reshape``.

    >>> import stretto.numpy as snp
    >>> snp.arange(4).reshape(2, -1)
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    return manipulation.reshape(self, _one_sequence(shape), order, out_sharding=out_sharding)


def _transpose(self: Array, *axes: Axes) -> Array:
    """Reorder the axes.

    Args:
        self: the array.
        *axes: for each axis of the result, that of the array, one by one or as a sequence; reversed
            by default.

    Returns:
        An array of the same elements.

    Raises:
        ValueError: ``axes`` does not name each axis once.

    As ``stretto.numpy.transpose``.

    >>> import stretto.numpy as snp
    >>> snp.ones((2, 3, 4)).transpose(2, 0, 1).shape
    (4, 2, 3)
    """
    return manipulation.transpose(self, _one_sequence(axes) if axes else None)


def _flatten(self: Array, order: str = "C", *, out_sharding: ShardingLike | None = None) -> Array:
    """Lay all elements along one axis.

    Args:
        self: the array.
        order: ``"C"`` or ``"A"``, row-major, or ``"F"``, column-major.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        An array of rank 1.

    Raises:
        ValueError: ``order`` is another; or the result cannot be split as ``out_sharding`` says.

    As NumPy's ``ndarray.flatten``.

    >>> import stretto.numpy as snp
    >>> snp.array([[1, 2], [3, 4]]).flatten()
    Array([1, 2, 3, 4], dtype=int32)
    """
    if isinstance(order, int):
        raise ValueError(
            f"flatten: order must be 'C' or 'F', got {order}; PyTorch's x.flatten({order}) is "
            f"x.reshape(*x.shape[:{order}], -1)"
        )
    return manipulation.ravel(self, order, out_sharding=out_sharding)


def _compress(
    self: Array,
    condition: ArrayLike,
    axis: int | None = None,
    out: None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Take the parts along an axis for which a condition holds.

    Args:
        self: the array.
        condition: an array of rank 1; elements that are not zero hold.
        axis: the axis of the parts; by default all elements, in row-major order.
        out: must be None: arrays are immutable.
        size: how many to take, which must be given while tracing; all by default.
        fill_value: what stands for missing parts.

    Returns:
        An array of the same dtype.

    Raises:
        NotImplementedError: ``out`` is given.
        TracedValueError: ``condition`` is traced, and ``size`` is not given.
        ValueError: ``axis`` is out of bounds.

    As ``stretto.numpy.compress``.

    >>> import stretto.numpy as snp
    >>> snp.array([1, 2, 3]).compress(snp.array([True, False, True]))
    Array([1, 3], dtype=int32)
    """
    return searching.compress(condition, self, axis, out, size=size, fill_value=fill_value)


_GETTERS: dict[str, Callable[[Any], Any]] = {
    "T": manipulation.transpose,
    "mT": manipulation.matrix_transpose,
    "real": elementary.real,
    "imag": elementary.imag,
    "device": storage.device,
    "flat": manipulation.ravel,
    "addressable_shards": storage.addressable_shards,
    "is_fully_addressable": storage.is_fully_addressable,
    "is_fully_replicated": storage.is_fully_replicated,
    "committed": storage.committed,
    "sharding": storage.sharding,
    "at": At,
    "itemsize": lambda self: self.type.dtype.itemsize,
    "nbytes": lambda self: self.type.size * self.type.dtype.itemsize,
}
"""The functions behind the properties, which are called without one more in front."""


class ArrayMethods:
    """The operators, methods and properties of arrays: each the function of its name.

    ``attach`` gives them to the class of values; for type checkers it is its base class.
    """

    __array_namespace__ = storage.namespace
    __round__ = _round
    addressable_data = storage.addressable_data
    all = reductions.all
    any = reductions.any
    argmax = extrema.argmax
    argmin = extrema.argmin
    argpartition = sorting.argpartition
    argsort = sorting.argsort
    astype = _astype
    byteswap = storage.byteswap
    choose = searching.choose
    clip = extrema.clip
    compress = _compress
    conj = elementary.conj
    conjugate = elementary.conj
    copy = copy
    copy_to_host_async = storage.copy_to_host_async
    cumprod = reductions.cumprod
    cumsum = reductions.cumsum
    devices = storage.devices
    diagonal = manipulation.diagonal
    dot = _dot
    flatten = _flatten
    max = extrema.max
    mean = statistics.mean
    min = extrema.min
    nonzero = searching.nonzero
    prod = reductions.prod
    ptp = extrema.ptp
    ravel = manipulation.ravel
    repeat = taking.repeat
    reshape = _reshape
    round = arithmetic.round
    searchsorted = searching.searchsorted
    sort = sorting.sort
    squeeze = manipulation.squeeze
    std = statistics.std
    sum = reductions.sum
    swapaxes = manipulation.swapaxes
    take = taking.take
    to_device = storage.to_device
    tobytes = storage.tobytes
    tofile = storage.tofile
    trace = manipulation.trace
    transpose = _transpose
    var = statistics.var
    view = storage.view

    @property
    def T(self) -> Array:
        """The axes reversed."""
        ...

    @property
    def mT(self) -> Array:
        """The last two axes exchanged."""
        ...

    @property
    def real(self) -> Array:
        """The real part of each element."""
        ...

    @property
    def imag(self) -> Array:
        """The imaginary part of each element."""
        ...

    @property
    def flat(self) -> Array:
        """All elements along one axis, to iterate over or index."""
        ...

    @property
    def at(self) -> typing.At:
        """``x.at[index].set(y)`` and its like: a copy changed at an index."""
        ...

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        ...

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        ...

    @property
    def device(self) -> Any:  # noqa: ANN401 (what arrays of one device narrow)
        """The device that the array is on; its sharding where there are several."""
        ...

    @property
    def sharding(self) -> Any:  # noqa: ANN401 (None for traced values)
        """Say where the array is, a ``Sharding``; None for a traced value."""
        ...

    @property
    def addressable_shards(self) -> list[Any]:
        """The parts on devices of this process."""
        ...

    @property
    def committed(self) -> bool:
        """Say whether the array was put on its devices; what is computed from it stays there."""
        ...

    @property
    def is_fully_addressable(self) -> bool:
        """Say whether no part is with another process."""
        ...

    @property
    def is_fully_replicated(self) -> bool:
        """Say whether each of its devices has all elements."""
        ...

    if TYPE_CHECKING:  # made from the tables of operators above

        def __neg__(self) -> Array: ...
        def __pos__(self) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...
        def __add__(self, other: ArrayLike) -> Array: ...
        def __radd__(self, other: ArrayLike) -> Array: ...
        def __sub__(self, other: ArrayLike) -> Array: ...
        def __rsub__(self, other: ArrayLike) -> Array: ...
        def __mul__(self, other: ArrayLike) -> Array: ...
        def __rmul__(self, other: ArrayLike) -> Array: ...
        def __truediv__(self, other: ArrayLike) -> Array: ...
        def __rtruediv__(self, other: ArrayLike) -> Array: ...
        def __floordiv__(self, other: ArrayLike) -> Array: ...
        def __rfloordiv__(self, other: ArrayLike) -> Array: ...
        def __mod__(self, other: ArrayLike) -> Array: ...
        def __rmod__(self, other: ArrayLike) -> Array: ...
        def __divmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
        def __rdivmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
        def __pow__(self, other: ArrayLike) -> Array: ...
        def __rpow__(self, other: ArrayLike) -> Array: ...
        def __matmul__(self, other: ArrayLike) -> Array: ...
        def __rmatmul__(self, other: ArrayLike) -> Array: ...
        def __and__(self, other: ArrayLike) -> Array: ...
        def __rand__(self, other: ArrayLike) -> Array: ...
        def __or__(self, other: ArrayLike) -> Array: ...
        def __ror__(self, other: ArrayLike) -> Array: ...
        def __xor__(self, other: ArrayLike) -> Array: ...
        def __rxor__(self, other: ArrayLike) -> Array: ...
        def __lshift__(self, other: ArrayLike) -> Array: ...
        def __rlshift__(self, other: ArrayLike) -> Array: ...
        def __rshift__(self, other: ArrayLike) -> Array: ...
        def __rrshift__(self, other: ArrayLike) -> Array: ...
        def __lt__(self, other: ArrayLike) -> Array: ...
        def __le__(self, other: ArrayLike) -> Array: ...
        def __gt__(self, other: ArrayLike) -> Array: ...
        def __ge__(self, other: ArrayLike) -> Array: ...
        def __eq__(self, other: ArrayLike) -> Array: ...  # type: ignore[override]

        def __ne__(self, other: ArrayLike) -> Array: ...  # type: ignore[override]

        def __hash__(self) -> int: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Array]: ...
        def __contains__(self, element: ArrayLike) -> bool: ...
        def __getitem__(self, index: Index) -> Array: ...


def attach(cls: type) -> None:
    """Give a class of values NumPy's operators, methods and properties."""

    def give(name: str, member: object) -> None:
        setattr(cls, name, member)

    for name, function in (_BINARY | _COMPARISONS).items():
        # The short way itself: the function of that name would only call it.
        below = OPERATORS[name].apply if name in OPERATORS else function
        give(f"__{name}__", _operator(name, below))
        if name in _BINARY:
            give(f"__r{name}__", _reflected(name, below))
    for name, operator in OPERATORS.items():
        setattr(Array, f"__{name}__", eager_call(getattr(cls, f"__{name}__"), operator))
        if name in _BINARY:
            setattr(Array, f"__r{name}__", eager_call(getattr(cls, f"__r{name}__"), operator, True))
    for name, one in _UNARY.items():
        give(f"__{name}__", one)
    for name, member in vars(ArrayMethods).items():
        if isinstance(member, property):
            give(name, property(_GETTERS[name], doc=member.__doc__))
        elif isinstance(member, FunctionType):
            give(name, member)
    refuse_changes(cls)
    give("__getitem__", getitem)
    give("__setitem__", setitem)
    give("__iter__", _iterate)
    give("__contains__", _contains)
    give("__array_priority__", 1000)  # NumPy's operators give way
    if "__len__" not in cls.__dict__:
        give("__len__", _length)
