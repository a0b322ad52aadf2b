"""Geometry of a convolution's windows: named axes, padding by name, sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.integers import pairs_of, sizes_of
from stretto._engine.core.sizes import greater, is_size

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
    """Padding for ceil(n / s) outputs; an odd element goes after, or with ``lower`` before."""
    total = greater((-(-n // s) - 1) * s + k - n, 0)
    low = total - total // 2 if lower else total // 2
    return low, total - low


def pads(
    padding: Any, sizes: Sequence[int], extents: Sequence[int], strides: Sequence[int], caller: str
) -> Pairs:
    """Explicit padding for input sizes and dilated kernel extents."""
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
    """Padding of the dilated input: (n-1) s + 1 + total - k + 1 outputs.

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
