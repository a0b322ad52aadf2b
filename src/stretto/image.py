"""``stretto.image``: images, and arrays of any rank, at other sizes, scales and places.

The functions are JAX's; PyTorch's are in ``nn/functional/reshaping``. Along each axis that changes,
an image is multiplied by a matrix of weights.

>>> import stretto as st
>>> st.image.resize(st.numpy.array([1.0, 2.0, 3.0, 4.0]), (2,), "linear", antialias=False)
Array([1.5, 3.5], dtype=float32)
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import stretto.numpy as snp
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.types import inexact_dtype, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.contract import tensordot
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.layout import canonical_axes, move_axis

if TYPE_CHECKING:
    from stretto.lax.products import PrecisionLike

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """Says how a value between the elements of an image is made from those around it.

    >>> import stretto as st
    >>> st.image.ResizeMethod.from_string("bilinear").name
    'LINEAR'
    """

    NEAREST = 0
    """The nearest element."""
    LINEAR = 1
    """Linear interpolation: a triangle of radius 1."""
    LANCZOS3 = 2
    """A windowed sinc of radius 3."""
    LANCZOS5 = 3
    """A windowed sinc of radius 5."""
    CUBIC = 4
    """The cubic of Keys with a = -1/2, of radius 2."""
    CUBIC_PYTORCH = 5
    """PyTorch's cubic: without antialiasing a = -3/4, and the edge is repeated outside."""
    AREA = 6
    """The mean of what an element of the result covers."""

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """Find the method of a name.

        Args:
            s: the name, such as ``"linear"``, ``"bicubic"`` or ``"lanczos3"``.

        Returns:
            The method.

        Raises:
            ValueError: there is no method of that name.
        """
        if s not in _NAMES:
            raise ValueError(f"from_string: s must be one of {', '.join(_NAMES)}; got {s!r}")
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


# The weight of an element at a distance, in elements


def _triangle(x: Array) -> Array:
    return snp.maximum(1 - x, 0)


def _keys(a: float) -> Callable[[Array], Array]:
    """Source: Keys, Cubic convolution interpolation for digital image processing (1981)."""

    def weight(x: Array) -> Array:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = a * (((x - 5) * x + 8) * x - 4)
        return snp.where(x < 1, near, snp.where(x < 2, far, 0))

    return weight


def _lanczos(radius: int) -> Callable[[Array], Array]:
    def weight(x: Array) -> Array:
        return snp.where(x < radius, snp.sinc(x) * snp.sinc(x / radius), 0)

    return weight


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
    ResizeMethod.CUBIC: _keys(-0.5),
}


_EDGE = 2
"""The distance that PyTorch's cubic reads outside."""


def _by_distance(n: int, at: Array, wide: Array | int, method: ResizeMethod) -> Array:
    return _KERNELS[method](abs(at[None] - np.arange(n, dtype=at.dtype)[:, None]) / wide)


def _with_edges(n: int, at: Array) -> Array:
    """Return weights by PyTorch's cubic: what lies outside adds to the weights of the edges."""
    places = np.arange(-_EDGE, n + _EDGE, dtype=at.dtype)
    weights = _keys(-0.75)(abs(at[None] - places[:, None]))
    low, high = (snp.sum(w, 0, keepdims=True) for w in (weights[:_EDGE], weights[n + _EDGE :]))
    inside = weights[_EDGE : n + _EDGE]
    return inside + snp.pad(low, ((0, n - 1), (0, 0))) + snp.pad(high, ((n - 1, 0), (0, 0)))


def _overlaps(n: int, left: Array, width: Array) -> Array:
    """Return how much of each element lies in the intervals that begin at ``left``."""
    element, left = np.arange(n, dtype=left.dtype)[:, None], left[None]
    ends = snp.minimum(left + width, element + 1) - snp.maximum(left, element)
    return snp.maximum(ends, 0)


def _weights(
    n: int, m: int, scale: Array, translation: Array, method: ResizeMethod, antialias: bool
) -> Array:
    """Return ``[n, m]``: how much of each of ``n`` elements goes into each of ``m``."""
    # The middle of output j lies at (j + 1/2 - translation) / scale - 1/2, counted in inputs.
    dtype = scale.dtype
    places: Any = np.arange(m, dtype=dtype)
    at = (places + 0.5 - translation) / scale - 0.5
    if method is ResizeMethod.AREA:
        weights = _overlaps(n, (places - translation) / scale, 1 / scale)
    elif method is ResizeMethod.CUBIC_PYTORCH:
        weights = _with_edges(n, at)
    else:
        # Where the image shrinks, the kernel widens as much, so that no element is passed over.
        wide = snp.maximum(1 / scale, 1) if antialias else 1
        weights = _by_distance(n, at, wide, method)
    total: Any = snp.sum(weights, 0)
    nonzero = abs(total) > 1000 * float(ml_dtypes.finfo(dtype).eps)
    inside = nonzero
    if method is not ResizeMethod.CUBIC_PYTORCH:
        inside = inside & (at >= -0.5) & (at <= n - 0.5)
    return snp.where(inside, weights / snp.where(nonzero, total, 1)[None], 0)


def _method(caller: str, method: str | ResizeMethod) -> ResizeMethod:
    if isinstance(method, ResizeMethod):
        return method
    try:
        return ResizeMethod.from_string(method)
    except (TypeError, ValueError):
        names = ", ".join(_NAMES)
        raise ValueError(
            f"{caller}: method must be a ResizeMethod or one of {names}; got {method!r}"
        ) from None


def _shape(caller: str, x: Array, shape: Sequence[int]) -> tuple[int, ...]:
    sizes = integers(shape, caller, "shape")
    if len(sizes) != x.ndim or any(n < 0 for n in sizes):
        raise ValueError(f"{caller}: shape must have a size for each axis of {x.type}, got {sizes}")
    return sizes


def _scale(
    x: Array,
    sizes: tuple[int, ...],
    axes: Sequence[int],
    scales: Sequence[ArrayLike],
    translations: Sequence[ArrayLike],
    method: ResizeMethod,
    antialias: bool,
    precision: PrecisionLike,
) -> Array:
    if method is ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    dtype = inexact_dtype(x.dtype)
    out = convert(x, dtype)
    at_least = np.dtype(np.float64 if real_dtype(dtype).itemsize == 8 else np.float32)
    for d, scale, translation in zip(axes, scales, translations, strict=True):
        scale, translation = (convert(snp.asarray(v), at_least) for v in (scale, translation))
        weights = _weights(x.shape[d], sizes[d], scale, translation, method, antialias)
        out = tensordot(out, convert(weights, dtype), ((d,), (0,)), precision=precision)
        out = move_axis(out, out.ndim - 1, d)
    return out


# Functions


def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = "highest",
) -> Array:
    """Resize an image, or an array of any rank, to another shape.

    Args:
        image: an array.
        shape: the sizes of the result, one for each axis.
        method: ``"nearest"``, ``"linear"`` (also ``"bilinear"``, ``"trilinear"``, ``"triangle"``),
            ``"cubic"`` (``"bicubic"``, ``"tricubic"``), ``"cubic-pytorch"``
            (``"bicubic-pytorch"``), ``"lanczos3"``, ``"lanczos5"`` or ``"area"``; or a
            ``ResizeMethod``.
        antialias: whether the kernel is widened along axes that shrink, so that all elements count.
        precision: that of ``lax.dot``.

    Returns:
        An array of that shape and the dtype of ``image``; integers become floats, unless
        ``method`` is ``"nearest"``.

    Raises:
        TypeError: a size is not an integer.
        ValueError: there is no such ``method``, there is not one size for each axis, or an axis to
            resize is empty.

    As JAX's ``image.resize``.

    >>> import stretto as st
    >>> st.image.resize(st.numpy.array([1.0, 2.0, 3.0, 4.0]), (2,), "linear")
    Array([1.7142857, 3.2857144], dtype=float32)
    """
    caller = "resize"
    x = as_value(image, caller, "image")
    sizes, kind = _shape(caller, x, shape), _method(caller, method)
    axes = [d for d in range(x.ndim) if sizes[d] != x.shape[d]]
    if any([without_elements(x.shape[d], caller) for d in axes]):
        raise ValueError(
            f"{caller}: an axis of {x.type} is empty, so {sizes} cannot be made from it"
        )
    if kind is ResizeMethod.NEAREST:
        for d in axes:
            places = (np.arange(sizes[d]) + 0.5) * (x.shape[d] / sizes[d])
            x = snp.take(x, np.floor(places).astype(np.int32), d)
        return x
    scales = [sizes[d] / x.shape[d] if sizes[d] else math.inf for d in axes]
    return _scale(x, sizes, axes, scales, [0.0] * len(axes), kind, antialias, precision)


@rounded_once
def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = "highest",
) -> Array:
    """Scale an image and then move it, along some axes.

    The point y of the image moves to ``y * scale + translation``, where the first element reaches
    from 0 to 1. Outside, the image is 0; with ``"cubic-pytorch"``, without ``antialias``, its edge
    is repeated for two elements.

    Args:
        image: an array.
        shape: the sizes of the result, equal to those of ``image`` along other axes.
        spatial_dims: the axes to scale and move along.
        scale: an array with an element for each of these axes; may be traced and differentiated.
        translation: an array with an element for each of these axes, in elements of the result.
        method: as for ``resize``, except ``"nearest"``.
        antialias: whether the kernel is widened along axes that shrink, so that all elements count.
        precision: that of ``lax.dot``.

    Returns:
        An array of that shape and the dtype of ``image``; integers become floats.

    Raises:
        TypeError: a size is not an integer.
        ValueError: an axis is out of bounds, or is named twice; there is no such ``method``; sizes
            differ along other axes; or ``scale`` or ``translation`` has another shape.

    As JAX's ``image.scale_and_translate``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> x, one = snp.array([1.0, 2.0, 3.0]), snp.ones(1)
    >>> st.image.scale_and_translate(x, (3,), (0,), one, one, "linear")
    Array([0., 1., 2.], dtype=float32)
    """
    caller = "scale_and_translate"
    x = as_value(image, caller, "image")
    sizes, kind = _shape(caller, x, shape), _method(caller, method)
    if kind is ResizeMethod.NEAREST:
        raise ValueError(f"{caller}: method 'nearest' is not available here; use resize")
    axes = canonical_axes(tuple(spatial_dims), x.ndim, caller)
    same = [d for d in range(x.ndim) if d not in axes and sizes[d] != x.shape[d]]
    if same:
        raise ValueError(
            f"{caller}: axes {same} are not in spatial_dims, so {x.type} keeps its sizes there; "
            f"got shape {sizes}"
        )
    scale_value, translation_value = (
        as_value(scale, caller, "scale"),
        as_value(translation, caller, "translation"),
    )
    for name, v in (("scale", scale_value), ("translation", translation_value)):
        if v.shape != (len(axes),):
            raise ValueError(f"{caller}: {name} must have shape ({len(axes)},), got {v.type}")
    scales, translations = (
        [v[i] for i in range(len(axes))] for v in (scale_value, translation_value)
    )
    return _scale(x, sizes, axes, scales, translations, kind, antialias, precision)


exports(__name__)
