"""The frequency of each element, and frequency zero moved to the middle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import default_dtype
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, ShardingLike
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import canonical_axes
from stretto.numpy.arguments import put_result
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.manipulation import roll

if TYPE_CHECKING:
    from stretto._engine.xla.device import Device

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _spaced(
    caller: str, places: np.ndarray, n: int, d: ArrayLike, dtype: DTypeLike | None
) -> Array:
    wanted = default_dtype("float") if dtype is None else as_dtype(dtype)
    if isinstance(d, (int, float)):
        return as_value((places / (n * d)).astype(wanted))
    step = as_value(d, caller, "d")
    return convert(as_value(places.astype(np.float64)) / (step * n), wanted)


def _count(caller: str, n: int) -> int:
    count = integer(n, caller, "n")
    if count < 1:
        raise ValueError(f"{caller}: n must be positive, got {count}")
    return count


def fftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device | ShardingLike | str | None = None,
) -> Array:
    """List the frequency of each element of a transform.

    Args:
        n: the number of points.
        d: the distance of points; may be traced.
        dtype: the dtype of the result; by default the default float.
        device: the device, its name, or a sharding; by default the first device.

    Returns:
        ``[n]``: 0, 1, ... and then the negative frequencies, times ``1 / (n d)``, in cycles a unit
        of ``d``; ``n / 2`` is negative.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: ``device`` is not there; or ``n`` is not positive.

    As NumPy's ``fft.fftfreq``.

    >>> import stretto.numpy as snp
    >>> snp.fft.fftfreq(5, 0.5)
    Array([ 0. ,  0.4,  0.8, -0.8, -0.4], dtype=float32)
    """
    if device is not None:
        return put_result(fftfreq(n, d, dtype=dtype), device, None, "fftfreq")
    n = _count("fftfreq", n)
    places = np.arange(n)
    return _spaced("fftfreq", places - n * (places >= (n + 1) // 2), n, d, dtype)


@described_like(fftfreq)
def rfftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device | ShardingLike | str | None = None,
) -> Array:
    """List the frequency of each element of a transform of real numbers.

    Returns:
        ``[n // 2 + 1]``: 0 to ``n // 2``, times ``1 / (n d)``, in cycles a unit of ``d``.

    As NumPy's ``fft.rfftfreq``.

    >>> import stretto.numpy as snp
    >>> snp.fft.rfftfreq(5, 0.5)
    Array([0. , 0.4, 0.8], dtype=float32)
    """
    if device is not None:
        return put_result(rfftfreq(n, d, dtype=dtype), device, None, "rfftfreq")
    n = _count("rfftfreq", n)
    return _spaced("rfftfreq", np.arange(n // 2 + 1), n, d, dtype)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move frequency 0 from the start to the middle, ``n // 2``, of axes.

    Args:
        x: an array.
        axes: the axes to move along; all by default.

    Returns:
        An array of the shape of ``x``.

    Raises:
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's ``fft.fftshift``.

    >>> import stretto.numpy as snp
    >>> snp.fft.fftshift(snp.array([0, 1, 2, -2, -1]))
    Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    value = as_value(x, "fftshift")
    places = canonical_axes(axes, value.ndim, "fftshift")
    return roll(value, [value.shape[d] // 2 for d in places], places)


@described_like(fftshift)
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move frequency 0 from the middle back to the start of axes: the inverse of ``fftshift``.

    As NumPy's ``fft.ifftshift``.

    >>> import stretto.numpy as snp
    >>> snp.fft.ifftshift(snp.array([-2, -1, 0, 1, 2]))
    Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    value = as_value(x, "ifftshift")
    places = canonical_axes(axes, value.ndim, "ifftshift")
    return roll(value, [-(value.shape[d] // 2) for d in places], places)
