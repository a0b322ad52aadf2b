"""What operators, methods and properties arrays have, for type checkers and editors.

``numpy/methods.py`` attaches them to the class of values when the package is wired together;
nothing imports this module at run time. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Never

if TYPE_CHECKING:
    from types import ModuleType

    from stretto._engine.core.array_updates import At, Index
    from stretto._engine.core.typing import (
        Array,
        ArrayLike,
        Axes,
        Axis,
        DTypeLike,
        ShapeLike,
        ShardingLike,
    )


class ArrayMethods:
    """The operators, methods and properties of arrays: each the function of its name."""

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
    def at(self) -> At:
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
    def device(self) -> Any:
        """The device that the array is on, a ``Device``; its sharding where there are several."""
        ...

    @property
    def sharding(self) -> Any:
        """Where the array is, a ``Sharding``; None for a traced value."""
        ...

    @property
    def addressable_shards(self) -> list[Any]:
        """The parts on devices of this process."""
        ...

    @property
    def committed(self) -> bool:
        """Whether the array was put on its devices, and what is computed from it stays there."""
        ...

    @property
    def is_fully_addressable(self) -> bool:
        """Whether no part is with another process."""
        ...

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each of its devices has all elements."""
        ...

    # Reducing

    def all(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """Whether all elements over ``axis`` are true."""
        ...

    def any(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """Whether any element over ``axis`` is true."""
        ...

    def argmax(self, axis: Axis = None, out: None = None, keepdims: bool | None = None) -> Array:
        """The index of the greatest element along ``axis``."""
        ...

    def argmin(self, axis: Axis = None, out: None = None, keepdims: bool | None = None) -> Array:
        """The index of the least element along ``axis``."""
        ...

    def cumprod(self, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """The product of the elements up to each along ``axis``."""
        ...

    def cumsum(self, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """The sum of the elements up to each along ``axis``."""
        ...

    def max(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The greatest element over ``axis``."""
        ...

    def mean(
        self,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """The mean over ``axis``."""
        ...

    def min(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The least element over ``axis``."""
        ...

    def prod(
        self,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """The product over ``axis``."""
        ...

    def ptp(self, axis: Axes = None, out: None = None, keepdims: bool = False) -> Array:
        """The greatest element less the least, over ``axis``."""
        ...

    def std(
        self,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: ArrayLike = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: ArrayLike | None = None,
    ) -> Array:
        """The standard deviation over ``axis``."""
        ...

    def sum(
        self,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """The sum over ``axis``."""
        ...

    def trace(
        self,
        offset: ArrayLike = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """The sum of a diagonal."""
        ...

    def var(
        self,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: ArrayLike = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: ArrayLike | None = None,
    ) -> Array:
        """The variance over ``axis``."""
        ...

    # Shapes

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """The diagonals of the matrices in two axes, along a last axis."""
        ...

    def flatten(self, order: str = "C", *, out_sharding: ShardingLike | None = None) -> Array:
        """All elements along one axis."""
        ...

    def ravel(self, order: str = "C", *, out_sharding: ShardingLike | None = None) -> Array:
        """All elements along one axis."""
        ...

    def repeat(
        self,
        repeats: ArrayLike | Sequence[int],
        axis: Axis = None,
        *,
        total_repeat_length: int | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        """Each element, or part along ``axis``, several times in a row."""
        ...

    def reshape(
        self,
        *shape: ShapeLike,
        order: str = "C",
        copy: bool | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        """The elements in another shape; one size may be -1."""
        ...

    def squeeze(self, axis: Axes = None) -> Array:
        """The array without its axes of size 1, all or those named."""
        ...

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """Two axes exchanged."""
        ...

    def transpose(self, *axes: Axes) -> Array:
        """The axes in another order, reversed by default."""
        ...

    # Elements

    def argpartition(
        self,
        kth: int | Sequence[int],
        axis: Axis = -1,
        kind: str = "introselect",
        order: None = None,
    ) -> Array:
        """The indices of a partition about the element at ``kth``."""
        ...

    def argsort(
        self,
        axis: Axis = -1,
        kind: str | None = None,
        order: None = None,
        *,
        stable: bool | None = True,
        descending: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Array:
        """The indices that sort the elements along ``axis``."""
        ...

    def choose(
        self, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise"
    ) -> Array:
        """For each element its entry in the array it numbers."""
        ...

    def clip(
        self,
        a_min: ArrayLike | None = None,
        a_max: ArrayLike | None = None,
        *,
        min: ArrayLike | None = None,
        max: ArrayLike | None = None,
    ) -> Array:
        """Each element, kept between bounds; ``None`` is no bound."""
        ...

    def compress(
        self,
        condition: ArrayLike | Sequence[bool],
        axis: Axis = None,
        out: None = None,
        *,
        size: int | None = None,
        fill_value: ArrayLike = 0,
    ) -> Array:
        """The parts along ``axis`` for which ``condition`` holds."""
        ...

    def conj(self) -> Array:
        """The complex conjugate of each element."""
        ...

    def conjugate(self) -> Array:
        """The complex conjugate of each element."""
        ...

    def dot(
        self,
        b: ArrayLike,
        *,
        precision: Any = None,
        preferred_element_type: DTypeLike | None = None,
    ) -> Array:
        """The product over the last axis and the last but one of ``b``."""
        ...

    def nonzero(
        self, *, size: int | None = None, fill_value: ArrayLike | Sequence[ArrayLike] | None = None
    ) -> tuple[Array, ...]:
        """The indices of the elements that are not zero, an array for each axis."""
        ...

    def round(self, decimals: int = 0, out: None = None) -> Array:
        """Each element to the nearest multiple of ``10 ** -decimals``."""
        ...

    def searchsorted(
        self,
        v: ArrayLike,
        side: str = "left",
        sorter: ArrayLike | None = None,
        *,
        method: str = "scan",
    ) -> Array:
        """The place of each element of ``v`` in this sorted array."""
        ...

    def sort(
        self,
        axis: Axis = -1,
        kind: str | None = None,
        order: None = None,
        *,
        stable: bool | None = True,
        descending: bool = False,
    ) -> Array:
        """The elements in rising order along ``axis``."""
        ...

    def take(
        self,
        indices: ArrayLike | Sequence[int],
        axis: Axis = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: ArrayLike | None = None,
    ) -> Array:
        """The parts at ``indices`` along ``axis``."""
        ...

    # Memory

    def addressable_data(self, index: int = 0) -> Array:
        """The part on one of its devices in this process."""
        ...

    def astype(self, dtype: DTypeLike, copy: bool = False, device: Any = None) -> Array:
        """The elements in another dtype."""
        ...

    def byteswap(self, inplace: bool = False) -> Array:
        """Each element with its bytes in the other order."""
        ...

    def copy(self, order: str | None = None) -> Array:
        """An array of its own with the same elements."""
        ...

    def copy_to_host_async(self) -> None:
        """Nothing to do: the elements are in the host's memory."""
        ...

    def devices(self) -> set[Any]:
        """The devices that the array lies on."""
        ...

    def to_device(self, device: Any, /, *, stream: None = None) -> Array:
        """The array on a device."""
        ...

    def tobytes(self, order: str = "C") -> bytes:
        """The bytes of the elements, in row-major order, or ``"F"``."""
        ...

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """Write the elements to a file."""
        ...

    def view(self, dtype: DTypeLike | None = None, type: None = None, *sizes: Never) -> Array:
        """The bytes of the elements as elements of ``dtype``."""
        ...

    # Operators

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
    def __round__(self, ndigits: int | None = None) -> Array: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __contains__(self, element: ArrayLike) -> bool: ...
    def __getitem__(self, index: Index) -> Array: ...
    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType: ...
