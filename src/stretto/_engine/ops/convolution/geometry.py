"""Geometry of a convolution's windows, and its operands relaid, cut and multiplied.

Axes are named, padding is given by name, sizes follow. For the forms, axes are merged into others
and split out again; groups and mapped examples lie inside the axes of features or of the batch.
``op`` is a ``ConvGeneralDilated``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.integers import pairs_of, sizes_of
from stretto._engine.core.sizes import greater, is_size
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import move_axis, reshape, transpose
from stretto._engine.ops.shape import concatenate, pad, part_of, rev, slice_in_dim

Pairs: TypeAlias = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(NamedTuple):
    """Say which axis of each array is which.

    ``lhs_spec`` and ``out_spec`` give the axes of batch, features and the spatial ones;
    ``rhs_spec`` those of output features, input features and the spatial ones.
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def check_front(name: str, lows: Sequence[Any]) -> None:
    """Raise ``MissingRuleError`` if the padding in front varies with a size that does."""
    if any(map(is_size, lows)):
        raise MissingRuleError(
            f"{name}: the padding in front, {', '.join(map(str, lows))}, varies with the size, as "
            f"'SAME' does with strides: give it in numbers"
        )


def dilated(n: int, dilation: int) -> int:
    """Return the extent of ``n`` elements with ``dilation - 1`` gaps between neighbours."""
    return (n - 1) * dilation + 1 if n else 0


def letters(spec: tuple[int, ...], names: str) -> str:
    """Return the axes as StableHLO writes them: two by name, spatial ones by number."""
    out = [""] * len(spec)
    for place, axis in enumerate(spec):
        out[axis] = names[place] if place < 2 else str(place - 2)
    return f"[{', '.join(out)}]"


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Say which axes three strings name, such as ``("NHWC", "HWIO", "NHWC")``.

    Args:
        lhs_shape: the shape of the input.
        rhs_shape: the shape of the kernel.
        dimension_numbers: three strings, for input, kernel and output. ``N`` is the batch, ``C``
            the features, ``O`` and ``I`` the kernel's output and input features; other letters are
            spatial axes. None stands for ``NC...`` and ``OI...``; a ``ConvDimensionNumbers`` is
            returned as it is.

    Returns:
        The axes; spatial ones in the kernel's order.

    Raises:
        TypeError: a size is not an integer.
        ValueError: the ranks differ, or the strings do not fit them or each other.

    >>> import stretto as st
    >>> st.lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 16), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    return dimension_numbers_of("conv_dimension_numbers", lhs_shape, rhs_shape, dimension_numbers)


def dimension_numbers_of(
    caller: str, lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Return what ``conv_dimension_numbers`` gives; errors name the caller."""
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    lhs_shape, rhs_shape = (
        sizes_of(lhs_shape, caller, "lhs_shape"),
        sizes_of(rhs_shape, caller, "rhs_shape"),
    )
    n = len(lhs_shape)
    if len(rhs_shape) != n:
        raise ValueError(f"{caller}: ranks differ, shapes {lhs_shape} and {rhs_shape}")
    if dimension_numbers is None:
        plain = tuple(range(n))
        return ConvDimensionNumbers(plain, plain, plain)
    is_sequence = isinstance(dimension_numbers, (tuple, list))
    specs: tuple[Any, ...] = tuple(dimension_numbers) if is_sequence else ()
    fits = len(specs) == 3 and all(isinstance(s, str) and len({*s}) == len(s) == n for s in specs)
    spatial = [c for c in specs[1] if c not in "OI"] if fits else []
    if not fits or any(
        {*spec} != {*pair, *spatial} or len(spatial) != n - 2
        for spec, pair in zip(specs, ("NC", "OI", "NC"), strict=True)
    ):
        raise ValueError(
            f"{caller}: dimension_numbers must be three strings of {n} letters, with N and C, O "
            f"and I, N and C, and the same spatial letters, such as ('NCHW', 'OIHW', 'NCHW'); got "
            f"{dimension_numbers!r}"
        )
    return ConvDimensionNumbers(
        *[
            tuple(spec.index(c) for c in (*pair, *spatial))
            for spec, pair in zip(specs, ("NC", "OI", "NC"), strict=True)
        ]
    )


def _same(n: int, k: int, s: int, lower: bool) -> tuple[int, int]:
    """Pad for ceil(n / s) outputs; an odd element goes after, or with ``lower`` before."""
    total = greater((-(-n // s) - 1) * s + k - n, 0)
    low = total - total // 2 if lower else total // 2
    return low, total - low


def pads(
    padding: Any, sizes: Sequence[int], extents: Sequence[int], strides: Sequence[int], caller: str
) -> Pairs:
    """Return explicit padding for input sizes and dilated kernel extents."""
    if isinstance(padding, str):
        name = padding.upper()
        if name == "VALID":
            return ((0, 0),) * len(sizes)
        if name in ("SAME", "SAME_LOWER"):
            lower = name == "SAME_LOWER"
            each = zip(sizes, extents, strides, strict=True)
            return tuple(_same(n, k, s, lower) for n, k, s in each)
        raise ValueError(
            f"{caller}: padding must be 'SAME', 'SAME_LOWER', 'VALID' or (low, high) pairs; got "
            f"{padding!r}"
        )
    return pairs_of(padding, caller, "padding")


def transposed_pad(k: int, s: int, padding: str) -> tuple[int, int]:
    """Return the padding of the dilated input: (n-1) s + 1 + total - k + 1 outputs.

    ``SAME``: n s of them; ``VALID``: (n-1) s + max(k, s), where every product is used.
    """
    if padding == "SAME":
        total = k + s - 2
        low = k - 1 if s > k - 1 else -(-total // 2)
    elif padding == "VALID":
        total = k + s - 2 + max(k - s, 0)
        low = k - 1
    else:
        raise ValueError(
            f"conv_transpose: padding must be 'SAME', 'VALID' or (low, high) pairs; got {padding!r}"
        )
    return low, total - low


def split_axis(x: Any, axis: int, outer: int) -> Any:
    """Return the axis as two, of sizes ``outer`` and the rest."""
    n = x.shape[axis]
    return reshape(x, (*x.shape[:axis], outer, n // outer, *x.shape[axis + 1 :]))


def merge(x: Any, source: int, target: int) -> Any:
    """Give the axis ``source`` joined, as the outer one, to what is axis ``target`` without it."""
    x = move_axis(x, source, target)
    shape = x.shape
    return reshape(x, (*shape[:target], shape[target] * shape[target + 1], *shape[target + 2 :]))


def merge_inside(x: Any, source: int, target: int, groups: int) -> Any:
    """Do as ``merge``, but within each of the ``groups`` that the target axis is made of."""
    if groups == 1:
        return merge(x, source, target)
    x = split_axis(move_axis(x, source, 0), target + 1, groups)
    return merge(merge(x, 0, target + 1), target, target)


def order_of(source: Sequence[int], target: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that moves all axes, ``source``, to the places ``target``."""
    axes = dict(zip(target, source, strict=True))
    return tuple(axes[place] for place in range(len(axes)))


def relaid(x: Any, source: Sequence[int], target: Sequence[int]) -> Any:
    """Move all axes of the array, ``source``, to the places ``target``."""
    return transpose(x, order_of(source, target))


def spread(op: Any, lhs: Any) -> Any:
    """Return the image with its padding, and zeros between elements where it is dilated."""
    config = [(0, 0, 0)] * lhs.ndim
    for a, (low, high), d in zip(op.dims.lhs_spec[2:], op.padding, op.lhs_dilation, strict=True):
        config[a] = (low, high, d - 1)
    return lhs if config == [(0, 0, 0)] * lhs.ndim else pad(lhs, 0, config)


def cut(
    x: Any,
    axes: Sequence[int],
    starts: Sequence[int],
    counts: Sequence[int],
    steps: Sequence[int],
    hidden: bool = False,
) -> Any:
    """Return so many elements along these axes, from a start on, in steps.

    If their place is ``hidden``, kernels that read those at several places are compiled once.
    """
    low, high, by = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for a, start, count, step in zip(axes, starts, counts, steps, strict=True):
        low[a], high[a], by[a] = start, start + dilated(count, step), step
    return part_of(x, tuple(low), tuple(high), tuple(by), hidden)


def assemble(op: Any, parts: Sequence[Any], out: ArrayType) -> Any:
    """Return the output, of its elements at each position: (groups, own, others) features."""
    groups, own, others = parts[0].shape
    counts = [out.shape[a] for a in op.dims.out_spec[2:]]
    n = len(counts)
    total = concatenate([reshape(part, (1, groups, own, others)) for part in parts], 0)
    total = reshape(total, (*counts, groups, own, others))
    total = transpose(total, (n + 1, n, n + 2, *range(n)))  # own, groups, others, positions
    total = reshape(total, (own, groups * others, *counts))
    return convert(relaid(total, range(out.ndim), op.dims.out_spec), out.dtype)


MOST_GROUPS = 64
"""The most groups that are written out: each one takes the compiler time."""


def features_last(ndim: int) -> ConvDimensionNumbers:
    """Name the axes features last; those of kernels: positions, input features, output features."""
    positions = tuple(range(1, ndim - 1))
    image = (0, ndim - 1, *positions)
    return ConvDimensionNumbers(image, (ndim - 1, ndim - 2, *range(ndim - 2)), image)


def in_layout(
    layout: ConvDimensionNumbers,
    form: Callable[..., Any],
    op: Any,
    lhs: Any,
    rhs: Any,
    out: ArrayType,
) -> Any:
    """Convolve by the form, with operands put in that layout and the output back."""
    dims = op.dims
    shape = tuple(out.shape[a] for a in order_of(dims.out_spec, layout.out_spec))
    result = form(
        dataclasses.replace(op, dims=layout),
        relaid(lhs, dims.lhs_spec, layout.lhs_spec),
        relaid(rhs, dims.rhs_spec, layout.rhs_spec),
        out.with_shape(shape),
    )
    return relaid(result, layout.out_spec, dims.out_spec)


def with_features_last(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve with features last."""
    form = lambda op, lhs, rhs, out: op(lhs, rhs)
    return in_layout(features_last(lhs.ndim), form, op, lhs, rhs, out)


def group_of(
    op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType
) -> tuple[Any, ArrayType, ArrayType, ArrayType]:
    """Return the convolution of one group, and the types of its operands and of its result."""
    groups = max(op.feature_groups, op.batch_groups)
    one = dataclasses.replace(op, feature_groups=1, batch_groups=1)

    def part(type: ArrayType, axis: int) -> ArrayType:
        shape = list(type.shape)
        shape[axis] //= groups
        return type.with_shape(tuple(shape))

    axis = op.dims.lhs_spec[1 if op.batch_groups == 1 else 0]
    return one, part(lhs, axis), part(rhs, op.dims.rhs_spec[0]), part(out, op.dims.out_spec[1])


def by_group(op: Any, lhs: Any, rhs: Any) -> Any:
    """Convolve each group without groups, and join the outputs along the features."""
    groups = max(op.feature_groups, op.batch_groups)
    one = dataclasses.replace(op, feature_groups=1, batch_groups=1)
    axis = op.dims.lhs_spec[1 if op.batch_groups == 1 else 0]

    def part(x: Any, axis: int, g: int) -> Any:
        n = x.shape[axis] // groups
        return slice_in_dim(x, g * n, (g + 1) * n, axis=axis)

    outs = [one(part(lhs, axis, g), part(rhs, op.dims.rhs_spec[0], g)) for g in range(groups)]
    return concatenate(outs, op.dims.out_spec[1])


FEWEST_COLUMNS = 64
"""The fewest positions of an example that make a matrix of their own: fewer leave lanes idle."""


def along_features(op: Any, matrix: Any, summed: int, image: Any, axis: int) -> Any:
    """Give the image, batch first, with a matrix applied along the features, which lie at ``axis``.

    The matrix is summed along its axis ``summed``; the other one is the output features.

    Features last: one product of rows. Features before the positions: a product for each example,
    so that nothing is moved, or where the positions are few one product of columns; of rows if the
    matrix would have to be turned, which is the larger one then.
    """
    terms, outputs = matrix.shape[summed], matrix.shape[1 - summed]
    dot = lambda contracted, batch: DotGeneral(contracted, batch, op.precision, op.preferred)
    if axis == image.ndim - 1:
        rows = reshape(image, (image.size // terms, terms))
        matrix = matrix if summed == 0 else transpose(matrix, (1, 0))
        result = dot(((1,), (0,)), ((), ()))(rows, matrix)
        return reshape(result, (*image.shape[:-1], outputs))
    examples, positions = image.shape[0], math.prod(image.shape[2:])
    if positions >= FEWEST_COLUMNS or examples == 1:
        columns = reshape(image, (examples, terms, positions))
        matrices = broadcast_in_dim(matrix, (examples, *matrix.shape), (1, 2))
        result = dot(((1 + summed,), (1,)), ((0,), (0,)))(matrices, columns)
        return reshape(result, (examples, outputs, *image.shape[2:]))
    if summed == 0:
        last = image.ndim - 1
        return move_axis(along_features(op, matrix, 0, move_axis(image, 1, last), last), last, 1)
    columns = reshape(move_axis(image, 1, 0), (terms, examples * positions))
    result = dot(((1,), (0,)), ((), ()))(matrix, columns)
    return move_axis(reshape(result, (outputs, examples, *image.shape[2:])), 1, 0)


def as_matrix(op: Any, rhs: Any, reverse: bool = False) -> tuple[Any, int]:
    """Give the kernel as a matrix, and its axis of the input features, to apply ``along_features``.

    Along the other axis are the window's elements, perhaps in reverse, with the output features
    inside. The axes of features stay in the order that they have in the kernel.
    """
    outputs, inputs, *window = op.dims.rhs_spec
    first, size = inputs < outputs, rhs.shape[inputs]
    kernel = transpose(rhs, (inputs, *window, outputs) if first else (*window, outputs, inputs))
    if reverse:
        kernel = rev(kernel, tuple(range(first, first + len(window))))
    shape = (size, rhs.size // size)
    return (reshape(kernel, shape), 0) if first else (reshape(kernel, shape[::-1]), 1)


def batch_first(op: Any, image: Any, axis: int) -> tuple[Any, list[int]]:
    """Return the image, batch first and features at ``axis``, and where its positions lie."""
    batch, features, *spatial = op.dims.lhs_spec
    order = [batch, *spatial]
    order.insert(axis, features)
    places = [a for a in range(image.ndim) if a not in (0, axis)]
    return transpose(image, tuple(order)), places


def as_output(op: Any, result: Any, axis: int, places: Sequence[int]) -> Any:
    """Return a result in that order, in the order of the convolution's output."""
    return relaid(result, (0, axis, *places), op.dims.out_spec)
