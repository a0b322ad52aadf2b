"""Fourier transforms over the last axes, of complex numbers and of real ones.

One primitive of four kinds. Each is linear, and the two real kinds are each other's transposes, up
to weights for the frequencies that stand for two.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, inexact_dtype, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import thresholds
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import INEXACT
from stretto._engine.ops.layout import move_to_front


class FftType(enum.IntEnum):
    """The kinds of Fourier transform, under StableHLO's names.

    >>> import stretto as st
    >>> st.lax.fft(st.numpy.array([1.0, 2.0]), st.lax.FftType.RFFT, (2,))
    Array([ 3.+0.j, -1.+0.j], dtype=complex64)
    """

    FFT = 0
    """Complex numbers to complex ones: the sum of x[n] exp(-2 pi i k n / N)."""
    IFFT = 1
    """Its inverse: the mean of x[k] exp(2 pi i k n / N)."""
    RFFT = 2
    """Real numbers to the frequencies 0 to N // 2 of the last axis; the others are conjugates."""
    IRFFT = 3
    """Its inverse: N // 2 + 1 frequencies to N real numbers."""


_REFERENCES = {
    FftType.FFT: np.fft.fftn,
    FftType.IFFT: np.fft.ifftn,
    FftType.RFFT: np.fft.rfftn,
    FftType.IRFFT: np.fft.irfftn,
}


_EXPECTED = f"fft_type must be one of {', '.join(FftType.__members__)}"


class Fft(Primitive):
    """The transform of a kind over the last ``len(lengths)`` axes, one to three.

    ``lengths`` are the numbers of points: the sizes of those axes, for RFFT and IRFFT on the real
    side. Their complex side has ``n // 2 + 1`` along the last axis.
    """

    kind: FftType
    lengths: tuple[int, ...]
    accepts: ClassVar[frozenset[str]] = INEXACT

    def infer(self, x: ArrayType) -> ArrayType:
        """Return a complex type, for IRFFT a real one; refuse dtypes and sizes that do not fit."""
        self._check(x)
        outer, lengths = x.shape[: x.ndim - len(self.lengths)], self.lengths
        if self.kind is FftType.IRFFT:
            return array_type((*outer, *lengths), real_dtype(x.dtype))
        if self.kind is FftType.RFFT:
            return array_type((*outer, *lengths[:-1], lengths[-1] // 2 + 1), complex_dtype(x.dtype))
        return array_type(x.shape, x.dtype)

    def _check(self, x: ArrayType) -> None:
        name, lengths = f"fft: kind {self.kind.name}", self.lengths
        dtypes = (
            ("float32", "float64") if self.kind is FftType.RFFT else ("complex64", "complex128")
        )
        if x.dtype.name not in dtypes:
            raise TypeError(f"{name} takes {' or '.join(dtypes)}, got {x}; use .astype(...)")
        if not 1 <= len(lengths) <= min(3, x.ndim) or min(lengths) < 1:
            raise ValueError(
                f"{name}: expected 1 to 3 positive lengths, for the last axes of {x}; got {lengths}"
            )
        last = lengths[-1] // 2 + 1 if self.kind is FftType.IRFFT else lengths[-1]
        sizes = (*lengths[:-1], last)
        if x.shape[x.ndim - len(lengths) :] != sizes:
            raise ValueError(
                f"{name} with lengths {lengths} takes last axes of sizes {sizes}, got {x}"
            )

    def reference(self, x: np.ndarray) -> np.ndarray:
        (out,) = self.out_types((array_type(x.shape, x.dtype),))
        if not x.size:
            return np.zeros(out.shape, out.dtype)
        axes = tuple(range(x.ndim - len(self.lengths), x.ndim))
        y = _REFERENCES[self.kind](x, self.lengths, axes)
        return y.astype(out.dtype, copy=False)

    def lower(self, b: Any, x: Any) -> Any:
        """Write StableHLO ``fft``; zeros where there is nothing to transform."""
        if not x.type.size:
            return b.splat(0, b.outs[0])
        return b.emit(
            "fft",
            x,
            attributes=f"fft_type = #stablehlo<fft_type {self.kind.name}>, "
            f"fft_length = {b.ints(self.lengths)}",
        )

    def onnx(self, b: Any, x: Any) -> Any:
        """Write ``DFT`` for each axis."""
        (out,) = b.outs
        if not out.varies and not x.type.size:
            return b.splat(0, out)
        return b.fourier(x, self.kind.name, self.lengths, out)

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile for large arrays in single precision, where XLA takes about half the time."""
        points, size = math.prod(self.lengths), types[0].size
        if points < thresholds.FFT_SHORT or self.kind is FftType.IRFFT:
            return False
        if self.kind is FftType.RFFT:
            return types[0].dtype == np.float32 and size >= thresholds.FFT_REAL_FROM
        long = points >= thresholds.FFT_LONG
        least = thresholds.FFT_LONG_FROM if long else thresholds.FFT_SHORT_FROM
        return types[0].dtype == np.complex64 and size >= least

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        """Count at least four products for each element and each doubling of the length."""
        size = max(types[0].size, outs[0].size)
        return 8 * size * (1 + math.log2(math.prod(self.lengths)))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        """The matrices of FFT and IFFT are symmetric; those of the real kinds form a pair.

        With N numbers in all and the weight w[k] = 1 where k = -k modulo the last length, else 2:
        Re(sum ct RFFT(v)) = sum v N IRFFT(conj(ct) / w), and
        sum ct IRFFT(v) = Re(sum v conj(RFFT(ct)) w / N).
        """
        count = math.prod(self.lengths)
        if self.kind is FftType.RFFT:
            weights = self._weights(ct.shape, real_dtype(ct.dtype))
            out = Fft(FftType.IRFFT, self.lengths)(conj(ct) * convert(count / weights, ct.dtype))
            return (out,)
        if self.kind is FftType.IRFFT:
            out = conj(Fft(FftType.RFFT, self.lengths)(ct))
            return (out * convert(self._weights(out.shape, ct.dtype) / count, out.dtype),)
        return (self(ct),)

    def _weights(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """Say how many of all frequencies each of those kept along the last axis stands for."""
        n = self.lengths[-1]
        frequency = np.arange(n // 2 + 1)
        weights = np.where(2 * frequency % n == 0, 1, 2).astype(dtype)
        return broadcast_in_dim(weights, shape, (len(shape) - 1,))

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(move_to_front(args[0], axes[0])), 0

    def padded(self, at: Any, x: Any) -> Any:
        """Treat each line by itself; a transform of a size that varies is another for each size."""
        if any(map(is_size, self.lengths)):
            raise MissingRuleError(
                f"fft takes no axes of a size that varies, {at.types[0]}: give it a fixed number "
                f"of points, as n= does, which pads with zeros"
            )
        return self(x)


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """Return the complex dtype that holds this one; of integers, that of the default float."""
    dtype = inexact_dtype(dtype)
    if is_complex(dtype):
        return dtype
    return np.dtype(np.complex128 if dtype.itemsize == 8 else np.complex64)


def fft(x: ArrayLike, fft_type: FftType | str | int, fft_lengths: Sequence[int]) -> Array:
    """Compute a Fourier transform over the last axes, one to three.

    Args:
        x: an array; of real numbers for ``RFFT``.
        fft_type: an ``FftType`` or its name. FFT and IFFT take complex numbers to complex ones;
            RFFT gives ``n // 2 + 1`` frequencies along the last axis, and IRFFT takes those back.
        fft_lengths: the sizes of these axes, for ``IRFFT`` those of the result.

    Returns:
        The transform; IFFT and IRFFT divide by the number of points.

    Raises:
        TypeError: ``x`` is complex for ``RFFT``.
        ValueError: there is no such type, or ``fft_lengths`` are not the sizes of these axes.

    Source: StableHLO, ``fft``.

    >>> import stretto as st
    >>> st.lax.fft(st.numpy.array([1.0, 2.0, 3.0]), "RFFT", (3,))
    Array([ 6. +0.j       , -1.5+0.8660254j], dtype=complex64)
    """
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__:
            raise ValueError(f"fft: {_EXPECTED}; got {fft_type!r}")
        kind = FftType[fft_type.upper()]
    else:
        try:
            kind = FftType(fft_type)
        except ValueError:
            raise ValueError(f"fft: {_EXPECTED}; got {fft_type!r}") from None
    value = as_value(x, "fft")
    if kind is not FftType.RFFT:
        value = convert(value, complex_dtype(value.dtype))
    elif is_complex(value.dtype):
        raise TypeError(f"fft: kind RFFT takes real numbers, got {value.type}; use FFT, or x.real")
    else:
        value = convert(value, real_dtype(complex_dtype(value.dtype)))
    return Fft(kind, integers(fft_lengths, "fft", "fft_lengths"))(value)
