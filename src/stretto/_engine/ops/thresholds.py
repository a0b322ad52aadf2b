"""The size from which an eager operation is compiled: the one rule, and its measurements.

A compiled operation must be ``LEAD`` times as fast as its rule in NumPy, both in elapsed time and
in the time of all cores together, including the copies of its operands; and ``CALLS`` calls must
repay its compilation. Decisions follow from types alone, so that a call always gives the same bits
on a kind of processor (``core/cost``).
``python -m benchmarks.eager --primitives`` repeats the measurements; decision 32 has the reasons.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import ml_dtypes
import numpy as np

from stretto._engine.core.cost import CPU

LEAD = 1.3
"""A compiled operation must be so many times as fast; less is lost in a machine's noise."""

CALLS = 16
"""So many calls must repay a compilation, which is paid once for each shape, or read from disk."""

NARROW = 1 << 15
"""Below this size nothing is compiled, whatever an element costs."""


class Cost(NamedTuple):
    """Nanoseconds an element on one core, in NumPy and compiled; milliseconds to compile."""

    numpy: float
    compiled: float
    compiling: float = 40.0


class Costs(NamedTuple):
    """Costs of an element-wise operation, by dtype; None where NumPy is as fast or faster."""

    float32: Cost | None = None
    float64: Cost | None = None
    bfloat16: Cost | None = None
    float16: Cost | None = None
    complex64: Cost | None = None

    def sizes(self, slower: float = CPU.vectors) -> dict[np.dtype, int]:
        """Return for each dtype the number of elements from which on to compile.

        NumPy computes what is listed an element at a time, and XLA in vectors: with ``slower``
        ones, by so much, an operation that no longer leads is not compiled.

        >>> Costs(float32=Cost(15.0, 2.5, 40.0), float16=Cost(5.0, 2.0)).sizes(slower=2.0)
        {dtype('float32'): 250000}
        """
        return {
            np.dtype(getattr(ml_dtypes, dtype, dtype)): from_size(here)
            for dtype, cost in zip(self._fields, self, strict=True)
            if cost is not None
            and cost.numpy
            >= LEAD * (here := cost._replace(compiled=slower * cost.compiled)).compiled
        }


def from_size(cost: Cost, least: int = NARROW) -> int:
    """Return the number of elements, but at least ``least``, from which on compiling is repaid.

    >>> from_size(Cost(numpy=15.0, compiled=2.5, compiling=40.0))
    200000
    """
    repaid = 1e6 * cost.compiling / (CALLS * (cost.numpy - cost.compiled))
    return max(math.ceil(repaid), least)


# Measured with 200,000 elements, once about 0 and once between 0 and 1, on two cores of an AMD EPYC
# (AVX-512), NumPy 2.4, SciPy 1.17, jaxlib 0.10.2; the lesser saving of the two is given. NumPy is
# as fast or faster at what is not listed: most functions of float32 and float64 take it 0.1 to 3
# ns. For complex128, and erfc in float64, it depends on the numbers.

_BESSEL = Cost(37.0, 9.0, 60.0)
_BESSEL_GROWING = Cost(45.0, 11.5, 60.0)

# Arithmetic
HALF = Costs(float16=Cost(5.2, 1.1))
EXTREMUM = Costs(float16=Cost(6.9, 0.8))
ROUNDED = Costs(float16=Cost(5.2, 1.9))
NEXTAFTER = Costs(float32=Cost(8.6, 1.2), float64=Cost(10.1, 2.3))
SQRT = Costs(float16=Cost(4.9, 1.8), complex64=Cost(23.0, 5.2, 150.0))

# Exponential and trigonometric functions
EXP = Costs(complex64=Cost(29.0, 5.2))
EXP2 = Costs(complex64=Cost(37.0, 8.2))
LOG = Costs(complex64=Cost(55.0, 10.0, 60.0))
LOGISTIC = Costs(complex64=Cost(37.0, 5.2))
POW = Costs(complex64=Cost(131.0, 41.0, 60.0))
CIRCULAR = Costs(complex64=Cost(39.0, 10.6, 60.0))
HYPERBOLIC = Costs(complex64=Cost(59.0, 5.3, 60.0))
ARC = Costs(complex64=Cost(83.0, 31.4, 300.0))
ATAN = Costs(complex64=Cost(88.0, 31.4, 100.0))
ATANH = Costs(complex64=Cost(62.0, 13.2, 100.0))

# Special functions
ERF = Costs(float32=Cost(5.6, 1.5), bfloat16=Cost(6.4, 0.9), float16=Cost(12.4, 1.6))
ERFC = Costs(float32=Cost(5.1, 1.9), bfloat16=Cost(9.1, 2.9), float16=Cost(14.6, 2.5))
ERF_INV = Costs(float32=Cost(17.0, 3.3), bfloat16=Cost(16.0, 3.5), float16=Cost(19.9, 4.2))
BESSEL = Costs(float32=_BESSEL, float64=_BESSEL, bfloat16=_BESSEL, float16=Cost(43.0, 19.1, 60.0))
BESSEL_GROWING = Costs(
    float32=_BESSEL_GROWING,
    float64=_BESSEL_GROWING,
    bfloat16=_BESSEL_GROWING,
    float16=Cost(56.0, 23.0, 60.0),
)

TOP_K = from_size(Cost(80.0, 8.0, 50.0))
"""Elements to choose the greatest of. NumPy sorts them: 50 ns each in rows of 1,000, 120 ns in rows
of a million."""

WINDOW_PLACES = from_size(Cost(7.0, 2.0, 60.0))
"""Elements of all windows whose places are found, read or written: 3 to 11 ns against 1 to 3.

Sums and extrema of windows are not compiled: one call of NumPy for each element of a window takes a
quarter of the time."""

FFT_SHORT, FFT_SHORT_FROM = 64, from_size(Cost(9.0, 5.7, 12.0))
FFT_LONG, FFT_LONG_FROM = 1 << 14, from_size(Cost(31.0, 15.0, 12.0))
"""Points of complex transforms in single precision, and elements in all, from which to compile.

NumPy is as fast at shorter ones, and in double precision."""

FFT_REAL_FROM = 1 << 20
"""Elements of real transforms, of at least ``FFT_SHORT`` points: 2.5 ns each against 1.5. NumPy
takes two thirds of the time for the inverse."""

CONVOLUTION_PRODUCTS, CONVOLUTION_FEATURES = 1 << 26, 16
"""Products in single precision, and features to sum over: 0.10 ns each in NumPy, where windows are
laid out and multiplied as matrices, 0.06 compiled; 100 ms to compile. With fewer features NumPy
takes half the time."""

CONVOLUTION_PATCHES = 1 << 24
"""Elements of windows laid out, from which on they would take too much memory."""

MATRICES, MATRICES_OF = from_size(Cost(3000.0, 700.0, 60.0), least=1), 32 * 32
"""Matrices that LAPACK factorizes one by one, of up to so many elements: the loop in Python takes 2
to 5 microseconds a matrix, a compiled one 0.4 to 2. For larger ones the time is LAPACK's."""

INTEGER_PRODUCTS = from_size(Cost(0.6, 0.27, 30.0))
"""Products of integers, of 64 bits or of matrices with vectors. Others are multiplied as floats in
NumPy, which multiplies floats as fast."""
