"""Reshape and transpose: the same elements under other axes; checks of axes; places on a mesh.

Every other family's rules are written with these and those of ``broadcast``. ``laid_out`` puts a
result where ``out_sharding`` asks: in a program it is a constraint, the operation of
``sharding_constraint``; outside, the result is put there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine import ops
from stretto._engine.core.errors import SizeError
from stretto._engine.core.integers import axis_of, entries_of, integers
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import CARRIED, Kernel, Primitive
from stretto._engine.core.program import Atom, Equation
from stretto._engine.core.sizes import at_least, is_size
from stretto._engine.core.types import ArrayType
from stretto._engine.core.typing import Array, ArrayLike, ShardingLike


class Reshape(Primitive):
    """The same elements in row-major order, in another shape."""

    kernel = Kernel.VIEW
    light = True
    shape: tuple[int, ...]
    splat = True
    keeps_zeros = True
    rearranges = True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        first = _in_common(x.shape, out.shape)
        last = _in_common(x.shape[first:][::-1], out.shape[first:][::-1])
        between: tuple[None, ...] = (None,) * (out.ndim - first - last)
        return (*range(first), *between, *range(x.ndim - last, x.ndim))

    def infer(self, x: ArrayType) -> ArrayType:
        if math.prod(self.shape) != x.size:
            raise ValueError(f"reshape: {x} ({x.size} elements) does not fit shape {self.shape}")
        return x.with_shape(self.shape)

    def reference(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(self.shape)

    def splat_reference(self, x: np.ndarray) -> np.ndarray:
        return x

    def lower(self, b: Any, x: Any) -> Any:
        return b.reshape(x, b.outs[0])

    def simpler(self, x: Atom, maker: Equation | None) -> Any:
        """Only the last of several reshapes counts."""
        if self.shape == x.type.shape:
            return x
        return (self, maker.inputs) if maker and isinstance(maker.primitive, Reshape) else None

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        return (reshape(ct, x.shape),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return Reshape((size, *self.shape))(move_to_front(args[0], axes[0])), 0

    def by_rows(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> bool:
        return types[0].ndim > 0 and types[0].shape[0] == self.shape[0]

    def padded(self, at: Any, x: Any) -> Any:
        """Return the same order where sizes vary in front alone; else the elements, one by one."""
        (type,), shape = at.types, at.shape(self.shape)
        if in_order(type.shape, self.shape) and math.prod(shape) == x.size:
            return Reshape(shape)(x)
        return at.taken(x, type.shape, self.shape)


def _in_common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return the number of sizes in front that are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (n, m) in pairs if n != m), min(len(one), len(other)))


def in_order(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Say whether arrays of these shapes order elements alike, whatever is past the ends.

    The axes are put into groups with products that are equal. A size that varies may be the first
    of its group.
    """
    groups = _groups(one, other)
    return groups is not None and all(
        [not is_size(n) for part in groups for axes in part for n in axes[1:]]
    )


def _groups(
    one: Sequence[Any], other: Sequence[Any]
) -> list[tuple[Sequence[Any], Sequence[Any]]] | None:
    """Return the sizes other than 1 in groups of equal products, as small as can be."""
    sizes = [[n for n in shape if is_size(n) or n != 1] for shape in (one, other)]
    products = [[math.prod(part[: k + 1]) for k in range(len(part))] for part in sizes]
    found, first, second = [], 0, 0
    for i, product in enumerate(products[0]):
        for j in range(second, len(products[1])):
            if products[1][j] == product:
                found.append((sizes[0][first : i + 1], sizes[1][second : j + 1]))
                first, second = i + 1, j + 1
                break
    return found if (first, second) == (len(sizes[0]), len(sizes[1])) else None


class Transpose(Primitive):
    """The axes in another order."""

    padded = CARRIED

    light = True
    permutation: tuple[int, ...]
    splat = True
    keeps_zeros = True
    rearranges = True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        return self.permutation

    def by_rows(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> bool:
        return self.permutation[0] == 0

    def infer(self, x: ArrayType) -> ArrayType:
        if sorted(self.permutation) != list(range(x.ndim)):
            raise ValueError(
                f"transpose: {self.permutation} is not a permutation of the {x.ndim} axes of {x}"
            )
        return x.with_shape(tuple(x.shape[d] for d in self.permutation))

    def reference(self, x: np.ndarray) -> np.ndarray:
        return x.transpose(self.permutation)

    def splat_reference(self, x: np.ndarray) -> np.ndarray:
        return x

    def lower(self, b: Any, x: Any) -> Any:
        return b.transpose(x, self.permutation)

    def simpler(self, x: Atom, maker: Equation | None) -> Any:
        """Two transposes are one, and one that moves no axis is none."""
        if self.permutation == tuple(range(x.type.ndim)):
            return x
        if maker is None or not isinstance(maker.primitive, Transpose):
            return None
        first = maker.primitive.permutation
        return Transpose(tuple([first[d] for d in self.permutation])), maker.inputs

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        inverse = tuple(self.permutation.index(d) for d in range(x.ndim))
        return (Transpose(inverse)(ct),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        (axis,) = axes
        assert axis is not None
        rest = [d for d in range(args[0].ndim) if d != axis]
        return Transpose((axis, *(rest[d] for d in self.permutation)))(args[0]), 0


def check_axes(caller: str, x: ArrayType, axes: Sequence[int]) -> None:
    """Raise unless these are distinct, non-negative axes of ``x``."""
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.ndim for a in axes):
        raise ValueError(f"{caller}: axes {tuple(axes)} are not distinct axes of {x}")


def reduce_vmap(
    family: Any, reduced: tuple[int, ...], x: Any, axis: int | None, *settings: Any
) -> tuple[Any, int]:
    """Reduce over the axes of one example, numbered around the mapped axis."""
    assert axis is not None
    shifted = tuple(a if a < axis else a + 1 for a in reduced)
    out_axis = axis - sum(a < axis for a in shifted)
    return family(shifted, *settings)(x), out_axis


def canonical_axis(axis: Any, ndim: int, caller: str) -> int:
    """Return the axis counted from the front.

    Raises NumPy's ``AxisError`` where there is no such axis.

    That is a ``ValueError`` and an ``IndexError``.
    """
    a = axis_of(axis, caller)
    if not -ndim <= a < ndim:
        raise np.exceptions.AxisError(
            f"{caller}: axis {a} is out of bounds for an array of {ndim} dimensions"
        )
    return a % ndim


def canonical_axes(axis: Any, ndim: int, caller: str) -> tuple[int, ...]:
    """Return one axis or a sequence, counted from the front; all for ``None``."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple([canonical_axis(a, ndim, caller) for a in entries_of(axis)])
    if len(set(axes)) != len(axes):
        raise ValueError(f"{caller}: axis {axis} names an axis twice")
    return axes


def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[int] | int,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Give an array another shape, with its elements in row-major order.

    Args:
        operand: an array.
        new_sizes: the new shape; one size may be -1, and is then found from the others.
        dimensions: an order that the axes are put in first; by default as they are.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The array, of the new shape.

    Raises:
        TypeError: a size or an axis is not an integer.
        ValueError: the sizes do not multiply to that of ``operand``, or ``dimensions`` does not
            name each axis once; or the result cannot be split as ``out_sharding`` says.

    >>> import stretto.numpy as snp
    >>> snp.reshape(snp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    x = as_value(operand, "reshape", "operand")
    if out_sharding is not None:
        return laid_out(reshape(operand, new_sizes, dimensions), out_sharding, "reshape")
    if dimensions is not None:
        x = _permute(x, dimensions, "reshape", "dimensions")
    sizes = list(integers(entries_of(new_sizes), "reshape", "the new shape"))
    if sizes.count(-1) == 1:
        rest = math.prod(n for n in sizes if n != -1)
        if rest == 0 or x.size % rest:
            raise ValueError(
                f"reshape: {x.type} ({x.size} elements) does not fit shape {tuple(sizes)}"
            )
        sizes[sizes.index(-1)] = x.size // rest
    if math.prod(sizes) != x.size or any(n < 0 for n in sizes):
        raise ValueError(f"reshape: {x.type} ({x.size} elements) does not fit shape {tuple(sizes)}")
    return x if x.shape == tuple(sizes) else Reshape(tuple(sizes))(x)


def transpose(operand: ArrayLike, permutation: Sequence[int] | None = None) -> Array:
    """Put the axes of an array in another order.

    Args:
        operand: an array.
        permutation: the axes in their new order; reversed by default.

    Returns:
        The array with its axes in that order.

    Raises:
        TypeError: ``permutation`` is not a sequence of integers.
        ValueError: ``permutation`` does not name each axis once.

    >>> import stretto.numpy as snp
    >>> snp.transpose(snp.ones((2, 3))).shape
    (3, 2)
    """
    x = as_value(operand, "transpose", "operand")
    if permutation is None:
        permutation = range(x.ndim)[::-1]
    return _permute(x, permutation, "transpose", "the axes")


def _permute(x: Any, permutation: Sequence[int], caller: str, argument: str) -> Any:
    axes = integers(permutation, caller, argument)
    order = canonical_axes(axes, x.ndim, caller)
    if len(order) != x.ndim:
        two = f"; to exchange two use x.swapaxes{axes}" if len(order) == 2 else ""
        raise ValueError(f"{caller}: axes {axes} must name all {x.ndim} axes of {x.type}{two}")
    return x if order == tuple(range(x.ndim)) else Transpose(order)(x)


def move_axis(x: Any, source: int, destination: int) -> Any:
    """Move the axis ``source`` to ``destination`` (both non-negative), the others in order."""
    if source == destination:
        return x
    rest = [d for d in range(x.ndim) if d != source]
    rest.insert(destination, source)
    return Transpose(tuple(rest))(x)


def move_to_front(x: Any, axis: int | None) -> Any:
    """Move the mapped axis to the front."""
    assert axis is not None
    return move_axis(x, axis, 0)


def expand_dims(array: ArrayLike, dimensions: int | Sequence[int]) -> Array:
    """Insert axes of size 1.

    Args:
        array: an array.
        dimensions: the places of the new axes in the result, negative from the end.

    Returns:
        The array with the new axes.

    Raises:
        ValueError: a place is out of bounds, or is named twice.

    >>> import stretto.numpy as snp
    >>> snp.expand_dims(snp.ones(3), 0).shape
    (1, 3)
    """
    x = as_value(array, "expand_dims", "array")
    axes = entries_of(dimensions)
    ndim = x.ndim + len(axes)
    places = canonical_axes(axes, ndim, "expand_dims")
    dims = [d for d in range(ndim) if d not in places]
    shape = [1] * ndim
    for d, n in zip(dims, x.shape, strict=True):
        shape[d] = n
    return reshape(x, tuple(shape))


def squeeze(array: ArrayLike, dimensions: int | Sequence[int] | None = None) -> Array:
    """Remove axes of size 1.

    Args:
        array: an array.
        dimensions: the axes to remove; by default all of size 1.

    Returns:
        The array without these axes.

    Raises:
        ValueError: a named axis has another size, is out of bounds, or is named twice.
        SizeError: no axis is named, and one whose size varies may have size 1.

    >>> import stretto.numpy as snp
    >>> snp.squeeze(snp.ones((1, 3, 1))).shape
    (3,)
    """
    x = as_value(array, "squeeze", "array")
    if dimensions is None:
        if any([is_size(n) and at_least(n) <= 1 for n in x.shape]):
            raise SizeError(
                f"squeeze: an axis of {x.type} whose size varies may have size 1: name the axes "
                f"to remove"
            )
        axes: tuple[int, ...] = tuple(d for d, n in enumerate(x.shape) if n == 1)
    else:
        axes = canonical_axes(dimensions, x.ndim, "squeeze")
    if any(x.shape[a] != 1 for a in axes):
        raise ValueError(f"squeeze: axis {dimensions} of {x.type} has a size other than 1")
    return reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in axes))


def laid_out(result: Any, sharding: Any, caller: str, argument: str = "out_sharding") -> Any:
    """Return the result, where the argument of the caller says that it is to lie.

    Args:
        result: an array.
        sharding: a ``NamedSharding``, or a ``PartitionSpec`` over the mesh in use; None for none.
        caller: the function that was called, for messages.
        argument: what it calls ``sharding``.

    Returns:
        The same values.

    Raises:
        TypeError: ``sharding`` is none, or not over a mesh.
        ValueError: an axis cannot be split so, or there is no mesh in use.
    """
    if sharding is None:
        return result
    return ops.sharding_constraint.constrained(result, sharding, caller, argument, "the result")
