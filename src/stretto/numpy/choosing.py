"""Choices among arrays, by number or by condition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import promote
from stretto._engine.core.typing import Array, ArrayLike, Axes, Axis
from stretto._engine.eager.twins import ANY, eager
from stretto._engine.ops import shape as ops
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import lt
from stretto._engine.ops.comparison import where as choose_by
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.index import primitives
from stretto._engine.ops.layout import canonical_axes, canonical_axis, expand_dims, reshape
from stretto._engine.ops.shape import concatenate
from stretto.numpy.arguments import refuse_out
from stretto.numpy.arithmetic import remainder
from stretto.numpy.extrema import clip
from stretto.numpy.indexing import concrete_of
from stretto.numpy.logic import truth
from stretto.numpy.manipulation import ravel
from stretto.numpy.searching import flatnonzero
from stretto.numpy.taking import take

__all__ = ["choose", "compress", "select", "trim_zeros"]

_INT32 = np.dtype(np.int32)


def _all_of(caller: str, arrays: Sequence[ArrayLike] | ArrayLike, what: str) -> list[Array]:
    """The arrays of a sequence, or along the first axis of one."""
    if isinstance(arrays, (Value, np.ndarray)) and arrays.ndim == 0:
        raise TypeError(f"{caller}: {what} must be a sequence of arrays, got one of rank 0")
    if not isinstance(arrays, Iterable):
        raise TypeError(f"{caller}: {what} must be a sequence of arrays, got {arrays!r}")
    return [as_value(x, caller, f"{what}[{i}]") for i, x in enumerate(arrays)]


def _promoted(caller: str, values: Sequence[Array]) -> list[Array]:
    dtype, weak = promote([(v.type.dtype, v.type.weak_type) for v in values], caller)
    return [convert(v, dtype, weak) for v in values]


def choose(
    a: ArrayLike, choices: Sequence[ArrayLike] | ArrayLike, out: None = None, mode: str = "raise"
) -> Array:
    """Choose each element among arrays by number.

    Args:
        a: integers, the numbers of the arrays.
        choices: a sequence of arrays, or an array of them along its first axis; they broadcast with
            ``a``.
        out: must be ``None``: arrays are immutable.
        mode: for numbers out of bounds: ``"raise"``, which is not for a traced ``a``; ``"wrap"``,
            which wraps around; ``"clip"``, which takes the nearest.

    Returns:
        The chosen elements, of the promoted dtype of the choices and the broadcast shape.

    Raises:
        TypeError: ``a`` does not hold integers, or ``choices`` is not a sequence of arrays.
        ValueError: a number is out of bounds, or traced, with ``mode="raise"``; there is no such
            mode; or the shapes do not broadcast.
        NotImplementedError: ``out`` is given.

    As NumPy's ``choose``.

    >>> import stretto.numpy as snp
    >>> snp.choose(snp.array([1, 0]), [snp.array([1, 2]), snp.array([10, 20])])
    Array([10,  2], dtype=int32)
    """
    refuse_out("choose", out)
    x = as_value(a, "choose", "a")
    if x.type.kind not in ("int", "uint", "bool"):
        raise TypeError(f"choose: a must hold integers, got {x.type}")
    arrays = _all_of("choose", choices, "choices")
    if not arrays:
        raise ValueError("choose: expected at least one array in choices, got none")
    values = _promoted("choose", arrays)
    n = len(values)
    if mode == "wrap":
        x = remainder(x, n)
    elif mode == "clip":
        x = clip(convert(x, _INT32), 0, n - 1)
    elif mode == "raise":
        known = concrete_of(x)
        if known is None:
            raise ValueError(
                f"choose: a is traced, {x.type}, so whether it is out of bounds is unknown; "
                f"pass mode='clip' or mode='wrap'"
            )
        if known.size and not 0 <= known.min() <= known.max() < n:
            raise ValueError(f"choose: the numbers must be from 0 to {n - 1}; got {known}")
    else:
        raise ValueError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    shape = broadcast_shapes("choose", x.shape, *[v.shape for v in values])
    every = concatenate([expand_dims(broadcast_to(v, shape), 0) for v in values], 0)
    number = expand_dims(broadcast_to(convert(x, _INT32), shape), 0)
    return reshape(primitives.take_along_axis(every, number, 0), shape)


def select(
    condlist: Sequence[ArrayLike] | ArrayLike,
    choicelist: Sequence[ArrayLike] | ArrayLike,
    default: ArrayLike = 0,
) -> Array:
    """Choose each element by the first condition that holds there.

    Args:
        condlist: a sequence of boolean arrays.
        choicelist: as many arrays as there are conditions; all broadcast.
        default: the elements where no condition holds.

    Returns:
        The chosen elements, of the promoted dtype of the choices and the broadcast shape.

    Raises:
        ValueError: the numbers of choices and conditions differ, or are zero; or the shapes do not
            broadcast.
        TypeError: a condition is not boolean, or an argument is not a sequence of arrays.

    As NumPy's ``select``.

    >>> import stretto.numpy as snp
    >>> x = snp.arange(5)
    >>> snp.select([x < 2, x > 2], [-x, x * x], 42)
    Array([ 0, -1, 42,  9, 16], dtype=int32)
    """
    conditions = _all_of("select", condlist, "condlist")
    choices = _all_of("select", choicelist, "choicelist")
    if len(conditions) != len(choices) or not choices:
        raise ValueError(
            f"select: expected as many conditions as choices, and at least one; got "
            f"{len(conditions)} and {len(choices)}"
        )
    for i, condition in enumerate(conditions):
        if condition.type.kind != "bool":
            raise TypeError(f"select: condlist[{i}] must be boolean, got {condition.type}")
    *values, result = _promoted("select", [*choices, as_value(default, "select", "default")])
    for condition, value in zip(conditions[::-1], values[::-1], strict=True):
        result = choose_by(condition, value, result)
    return result


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Keep the parts of an array along an axis for which a condition holds.

    Args:
        condition: booleans, of rank 1; parts past its end are left out.
        a: an array.
        axis: the axis; by default the elements of ``a`` in row-major order.
        out: must be ``None``: arrays are immutable.
        size: the number of parts in the result, filled up with ``fill_value`` where fewer are
            kept; needed while ``condition`` is traced.
        fill_value: see ``size``.

    Returns:
        The parts, of the dtype of ``a``.

    Raises:
        ValueError: ``condition`` is not of rank 1, or ``axis`` is out of bounds.
        IndexError: the condition holds past the end of the axis.
        TracedValueError: ``condition`` is traced, without ``size``.
        NotImplementedError: ``out`` is given.

    As NumPy's ``compress``.

    >>> import stretto.numpy as snp
    >>> snp.compress(snp.array([False, True]), snp.array([[1, 2], [3, 4]]), axis=0)
    Array([[3, 4]], dtype=int32)
    """
    refuse_out("compress", out)
    x, mask = as_value(a, "compress", "a"), truth(condition, "compress", "condition")
    if mask.ndim != 1:
        raise ValueError(f"compress: condition must be of rank 1, got {mask.type}")
    if axis is None:
        x, axis = ravel(x), 0
    along = canonical_axis(axis, x.ndim, "compress")
    n = x.shape[along]
    known = concrete_of(mask)
    if mask.size > n and known is not None and known[n:].any():
        raise IndexError(f"compress: the condition holds past the {n} parts of {x.type}")
    if size is None and known is not None:
        return _compress(x, condition=np.asarray(known), axis=along)
    mask = ops.slice_in_dim(mask, 0, min(mask.size, n))
    if size is None:
        raise TracedValueError(
            f"compress: how many parts are kept depends on condition, a traced {mask.type}: "
            f"{mask.origin()}. Pass size="
        )
    at = flatnonzero(mask, size=size, fill_value=n)
    parts = take(x, at, along, mode="clip")
    inside = reshape(lt(at, n), tuple([at.size if d == along else 1 for d in range(x.ndim)]))
    filling = as_value(fill_value, "compress", "fill_value")
    return choose_by(inside, parts, convert(filling, x.dtype))


def _compress_host(x: np.ndarray, *, condition: np.ndarray, axis: int) -> np.ndarray:
    return np.compress(condition, x, axis)


@eager(_compress_host, ANY)
def _compress(x: Array, *, condition: np.ndarray, axis: int) -> Array:
    return take(x, np.flatnonzero(condition).astype(np.int32), axis, mode="clip")


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axes = None) -> Array:
    """Trim the zeros at the front and the back of an array.

    Args:
        filt: an array; not a traced one, since the shape of the result depends on its values.
        trim: which ends to trim, ``"f"``, ``"b"`` or both.
        axis: the axes to trim along, all by default.

    Returns:
        The part between the zeros, of the dtype of ``filt``.

    Raises:
        ValueError: ``trim`` is something else, or an axis is out of bounds.
        TracedValueError: ``filt`` is traced.

    As NumPy's ``trim_zeros``.

    >>> import stretto.numpy as snp
    >>> snp.trim_zeros(snp.array([0, 0, 1, 2, 0]))
    Array([1, 2], dtype=int32)
    """
    ends = trim.lower() if isinstance(trim, str) else ""
    if not ends or set(ends) - {"f", "b"}:
        raise ValueError(f"trim_zeros: trim must be 'f', 'b' or 'fb', got {trim!r}")
    x = as_value(filt, "trim_zeros", "filt")
    known = concrete_of(x)
    if known is None:
        raise TracedValueError(
            f"trim_zeros: the shape of the result depends on values, but this {x.type} is traced: "
            f"{x.origin()}. Trim outside, or slice with bounds that are known"
        )
    places = np.argwhere(known)
    for d in canonical_axes(axis, x.ndim, "trim_zeros"):
        if not len(places):
            x = ops.slice_in_dim(x, 0, 0, axis=d)
            continue
        first = int(places[:, d].min()) if "f" in ends else 0
        last = int(places[:, d].max()) + 1 if "b" in ends else None
        x = ops.slice_in_dim(x, first, last, axis=d)
    return x
