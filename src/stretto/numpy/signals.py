"""Signals: convolution and correlation of sequences, covariance of variables, tapering windows.

Convolutions of arrays of any rank are in ``scipy/signal``. Each window is symmetric, of ``M``
elements; a single element is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.sizes import exceeds, greater, is_size, lesser
from stretto._engine.core.types import array_type, default_dtype, is_complex, kind_of, real_dtype
from stretto._engine.core.typing import ArrayLike, DTypeLike
from stretto._engine.eager.twins import FLOAT, NUMERIC, eager
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.comparison import gt
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.complex_parts import complex_, conj, imag, real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.convolution.general import conv_general_dilated
from stretto._engine.ops.exponential import exp, sqrt
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.shape import rev
from stretto._engine.ops.special.bessel import I0, bessel_i0, bessel_i0e
from stretto._engine.xla.array import Array
from stretto.numpy.arguments import inexact_values
from stretto.numpy.arithmetic import absolute
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.extrema import clip
from stretto.numpy.joining import concatenate
from stretto.numpy.manipulation import diagonal, transpose
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.statistics import average

if TYPE_CHECKING:
    from stretto.lax.products import PrecisionLike

__all__ = ["bartlett", "blackman", "convolve", "corrcoef", "correlate", "cov",
           "hamming", "hanning", "i0", "kaiser"]  # fmt: skip

MODES = ("full", "same", "valid")


def checked_mode(caller: str, mode: str) -> str:
    """Return the mode; raise ``ValueError`` for any other."""
    if mode not in MODES:
        raise ValueError(f"{caller}: mode must be 'full', 'same' or 'valid'; got {mode!r}")
    return mode


def part_of_convolution(
    x: Array, y: Array, starts: Sequence[int], sizes: Sequence[int], *options: Any
) -> Array:
    """Return the part of the full convolution that begins at ``starts`` and has these ``sizes``.

    Along an axis of n and m elements the full one has n + m - 1: element k is the sum of
    x[i] y[k - i]. The arrays have one dtype and one rank; booleans are combined by "and" and "or".
    ``options`` are the precision and the preferred dtype of ``conv_general_dilated``.
    """
    boolean = x.dtype == np.dtype(bool)
    if boolean:
        x, y = (convert(v, np.dtype(np.int32)) for v in (x, y))
    pads = []
    for n, m, start, size in zip(x.shape, y.shape, starts, sizes, strict=True):
        low = m - 1 - start
        pads.append((low, size - 1 - (n + low - m)))
    lhs, rhs = (reshape(v, (1, 1, *v.shape)) for v in (x, rev(y, tuple(range(y.ndim)))))
    precision, preferred = options or (None, None)
    out = conv_general_dilated(
        lhs, rhs, (1,) * len(pads), pads, precision=precision, preferred_element_type=preferred
    )
    out = reshape(out, out.shape[2:])
    return convert(out, np.dtype(bool)) if boolean else out


def _sequences(caller: str, a: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    x, y = as_value(a, caller, "a"), as_value(v, caller, "v")
    of_rank_1 = x.ndim == y.ndim == 1
    if not of_rank_1 or any([without_elements(n, caller) for n in (x.size, y.size)]):
        raise ValueError(
            f"{caller}: expected non-empty arrays of rank 1, got {x.type} and {y.type}"
            + ("" if x.ndim == y.ndim == 1 else "; stretto.scipy.signal takes any rank")
        )
    return promote_dtypes(caller, x, y)


def _part(x: Array, y: Array, mode: str, middle: int, *options: Any) -> Array:
    """Return the part of the convolution that ``mode`` names; ``"same"`` begins at ``middle``."""
    n, m = x.shape[0], y.shape[0]
    least, most = lesser(n, m), greater(n, m)
    start, size = {
        "full": (0, least + most - 1),
        "same": (middle, most),
        "valid": (least - 1, most - least + 1),
    }[mode]
    if not exceeds(n - m, -1) and (is_size(m) or not is_size(n)):
        x, y = y, x
    return part_of_convolution(x, y, (start,), (size,), *options)


def _of_sequences(
    caller: str,
    a: ArrayLike,
    v: ArrayLike,
    mode: str,
    quick: Callable[..., Array],
    general: Callable[..., Array],
    *options: Any,
) -> Array:
    """Apply the function that has a twin in NumPy; with options, the one that has none."""
    mode = checked_mode(caller, mode)
    x, y = _sequences(caller, a, v)
    if any(option is not None for option in options):
        return general(x, y, mode, *options)
    return quick(x, y, mode=mode)


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve two sequences: element k is the sum of ``a[i] v[k - i]``.

    Takes n m products: for long sequences ``stretto.scipy.signal.fftconvolve`` is faster.

    Args:
        a: an array of rank 1 and n elements.
        v: an array of rank 1 and m elements.
        mode: ``"full"``: all n + m - 1 elements. ``"same"``: the middle ones, as many as the longer
            sequence has. ``"valid"``: those where the sequences overlap entirely.
        precision: the precision of the products, as for ``lax.conv``.
        preferred_element_type: the dtype of the sums, as for ``lax.conv``.

    Returns:
        The convolution, of rank 1 and the promoted dtype.

    Raises:
        ValueError: an argument is not of rank 1, or is empty; or there is no such mode.
        TypeError: an argument is not an array.

    As NumPy's ``convolve``.

    >>> import stretto.numpy as snp
    >>> snp.convolve(snp.array([1, 2, 3]), snp.array([0, 1, 2]))
    Array([0, 1, 4, 7, 6], dtype=int32)
    """
    options = precision, preferred_element_type
    return _of_sequences("convolve", a, v, mode, _convolve, _convolution, *options)


@eager(np.convolve, NUMERIC)
def _convolve(x: Array, y: Array, *, mode: str) -> Array:
    return _convolution(x, y, mode)


def _convolution(x: Array, y: Array, mode: str, *options: Any) -> Array:
    return _part(x, y, mode, (lesser(x.shape[0], y.shape[0]) - 1) // 2, *options)


@described_like(convolve)
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Correlate two sequences: element k is the sum of ``a[i + k] conj(v[i])``.

    k begins below 0, where the sequences first overlap.

    Args:
        a: an array of rank 1.
        v: an array of rank 1.
        mode: as for ``convolve``.

    Returns:
        The correlation, of rank 1 and the promoted dtype.

    As NumPy's ``correlate``.

    >>> import stretto.numpy as snp
    >>> snp.correlate(snp.array([1, 2, 3]), snp.array([0, 1, 2]), "full")
    Array([2, 5, 8, 3, 0], dtype=int32)
    """
    options = precision, preferred_element_type
    return _of_sequences("correlate", a, v, mode, _correlate, _correlation, *options)


@eager(np.correlate, NUMERIC)
def _correlate(x: Array, y: Array, *, mode: str) -> Array:
    return _correlation(x, y, mode)


def _correlation(x: Array, y: Array, mode: str, *options: Any) -> Array:
    n, m = x.shape[0], y.shape[0]
    middle = 0
    if mode == "same":
        middle = (m - 1) // 2 if n >= m else n // 2
    return _part(x, rev(conj(y), (0,)), mode, middle, *options)


def _variables(
    caller: str, m: ArrayLike, y: ArrayLike | None, rowvar: bool, dtype: DTypeLike | None
) -> Array:
    """Return a row for each variable, of a float or complex dtype."""
    parts = []
    for name, argument in (("m" if caller == "cov" else "x", m), ("y", y)):
        if argument is None and name == "y":
            continue
        x = as_value(argument, caller, name)
        if x.ndim > 2:
            raise ValueError(f"{caller}: expected {name} of rank 2 or less, got {x.type}")
        if x.ndim < 2:
            x = reshape(x, (1, x.size))
        elif not rowvar and not (name == "y" and x.shape[0] == 1):
            x = transpose(x)
        parts.append(x)
    if len(parts) == 2:
        x, y = inexact_values(caller, m=parts[0], y=parts[1])
        if x.shape[1] != y.shape[1]:
            raise ValueError(
                f"{caller}: both must have the same number of observations; got "
                f"{parts[0].type} and {parts[1].type}, a row for each variable"
            )
        out = concatenate([x, y], 0)
    else:
        (out,) = inexact_values(caller, m=parts[0])
    return out if dtype is None else convert(out, as_dtype(dtype))


def _weights(x: Array, weights: ArrayLike, name: str) -> Array:
    w = as_value(weights, "cov", name)
    if w.shape != (x.shape[1],):
        raise ValueError(
            f"cov: {name} must be one for each of {x.shape[1]} observations, got {w.type}"
        )
    if name == "fweights" and kind_of(w.dtype) not in ("int", "uint", "bool"):
        raise TypeError(f"cov: fweights, which count observations, must be integers; got {w.type}")
    return convert(w, real_dtype(x.dtype))


@rounded_once
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Estimate the covariance of each pair of variables.

    Args:
        m: the observations of the variables, of rank 2 or less.
        y: more variables with as many observations.
        rowvar: whether each row is a variable and each column an observation, or the other way
            round.
        bias: whether to divide by the n observations; by default by n - 1.
        ddof: divide by n - ``ddof`` instead.
        fweights: how often each observation occurs, integers of shape (n,).
        aweights: how much each observation weighs, of shape (n,).
        dtype: the dtype to compute in, by default the promoted float or complex dtype.

    Returns:
        The matrix of covariances; a number for one variable.

    Raises:
        ValueError: an array is of a higher rank, ``y`` has another number of observations, the
            weights are of another shape, or ``ddof`` is not an integer.
        TypeError: ``fweights`` are not integers.

    As NumPy's ``cov``.

    >>> import stretto.numpy as snp
    >>> snp.cov(snp.array([[1.0, 2.0, 3.0], [4.0, 0.0, 2.0]]))
    Array([[ 1., -1.],
           [-1.,  4.]], dtype=float32)
    """
    if ddof is not None and int(ddof) != ddof:
        raise ValueError(f"cov: ddof must be an integer, got {ddof!r}")
    x = _variables("cov", m, y, rowvar, dtype)
    freedom = (0 if bias else 1) if ddof is None else ddof
    f = None if fweights is None else _weights(x, fweights, "fweights")
    a = None if aweights is None else _weights(x, aweights, "aweights")
    w = f if a is None else a if f is None else f * a
    if w is None:
        total: Any = x.shape[1]
        over: Any = total - freedom if exceeds(total, freedom) else math.nan
        if is_size(total) and not exceeds(total, freedom):
            over = choose(gt(as_value(total), freedom), as_value(total) - freedom, math.nan)
        center = sum_(x, 1, keepdims=True) / total if total else math.nan
        away = x - center
        weighted = away
    else:
        center, totals = average(x, 1, w, returned=True, keepdims=True)
        total = reshape(totals, (totals.size,))[0]
        total = real(total) if is_complex(total.dtype) else total
        lost = freedom if a is None else freedom * sum_(w * a) / total
        over = total - lost
        away = x - center
        weighted = away * w
    out = matmul(weighted, conj(transpose(away)) if is_complex(x.dtype) else transpose(away)) / over
    return reshape(out, ()) if out.shape == (1, 1) else out


@rounded_once
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Estimate the correlation of each pair of variables: covariance over both deviations.

    Args:
        x: the observations of the variables, of rank 2 or less.
        y: more variables with as many observations.
        rowvar: whether each row is a variable and each column an observation, or the other way
            round.
        dtype: the dtype to compute in, by default the promoted float or complex dtype.

    Returns:
        The matrix of correlations, from -1 to 1; a number for one variable.

    Raises:
        ValueError: an array is of a higher rank, or ``y`` has another number of observations.

    As NumPy's ``corrcoef``.

    >>> import stretto.numpy as snp
    >>> snp.corrcoef(snp.array([[1.0, 2.0, 3.0], [4.0, 0.0, 2.0]]))
    Array([[ 1. , -0.5],
           [-0.5,  1. ]], dtype=float32)
    """
    c = cov(_variables("corrcoef", x, y, rowvar, dtype))
    if not c.ndim:
        return c / c
    spread = diagonal(c)
    deviation = sqrt(real(spread) if is_complex(c.dtype) else spread)
    deviation = convert(deviation, c.dtype)
    out = c / reshape(deviation, (-1, 1)) / reshape(deviation, (1, -1))
    if is_complex(c.dtype):
        return complex_(clip(real(out), -1, 1), clip(imag(out), -1, 1))
    return clip(out, -1, 1)


def _window(host: np.ndarray) -> Array:
    dtype = default_dtype("float")
    return Array(host.astype(dtype), array_type(host.shape, dtype))


def bartlett(M: int) -> Array:
    """Make the triangular window, from 0 to 1 and back.

    Args:
        M: the number of points.

    Returns:
        ``[M]``, of the default float.

    Raises:
        TypeError: ``M`` is not an integer.

    As NumPy's ``bartlett``.

    >>> import stretto.numpy as snp
    >>> snp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window(np.bartlett(integer(M, "bartlett", "M")))


@described_like(bartlett)
def blackman(M: int) -> Array:
    """Make Blackman's window: 0.42 - 0.5 cos(2πn / (M - 1)) + 0.08 cos(4πn / (M - 1)).

    As NumPy's ``blackman``.

    >>> import stretto.numpy as snp
    >>> snp.blackman(3).round(3)
    Array([-0.,  1., -0.], dtype=float32)
    """
    return _window(np.blackman(integer(M, "blackman", "M")))


@described_like(bartlett)
def hamming(M: int) -> Array:
    """Make Hamming's window: 0.54 - 0.46 cos(2πn / (M - 1)).

    As NumPy's ``hamming``.

    >>> import stretto.numpy as snp
    >>> snp.hamming(3)
    Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _window(np.hamming(integer(M, "hamming", "M")))


@described_like(bartlett)
def hanning(M: int) -> Array:
    """Make Hann's window: 0.5 - 0.5 cos(2πn / (M - 1)).

    As NumPy's ``hanning``.

    >>> import stretto.numpy as snp
    >>> snp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window(np.hanning(integer(M, "hanning", "M")))


@rounded_once
def kaiser(M: int, beta: ArrayLike) -> Array:
    """Make Kaiser's window: I₀(β √(1 - (2n / (M - 1) - 1)²)) / I₀(β).

    Args:
        M: the number of points.
        beta: β, one number; may be traced and differentiated.

    Returns:
        ``[M]``, of the default float.

    Raises:
        TypeError: ``M`` is not an integer.
        ValueError: ``beta`` is not one number.

    As NumPy's ``kaiser``.

    >>> import stretto.numpy as snp
    >>> snp.kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    M, shape_parameter = integer(M, "kaiser", "M"), as_value(beta, "kaiser", "beta")
    if shape_parameter.ndim:
        raise ValueError(f"kaiser: expected one number in beta, got {shape_parameter.type}")
    if M <= 1:
        return _window(np.ones(max(M, 0)))
    # Beyond 700 NumPy divides infinities, and the rest is another form of the same.
    if not isinstance(shape_parameter, Tracer) and abs(float(shape_parameter)) < 700:
        return _window(np.kaiser(M, float(shape_parameter)))
    (shape_parameter,) = inexact_values("kaiser", beta=shape_parameter)
    shape_parameter = convert(absolute(shape_parameter), shape_parameter.dtype)
    rise = np.sqrt(1 - np.linspace(-1, 1, M) ** 2)
    z = shape_parameter * _window(rise)
    return bessel_i0e(z) * exp(z - shape_parameter) / bessel_i0e(shape_parameter)


def _i0(x: np.ndarray) -> np.ndarray | None:
    """Call NumPy's ``i0``, in its own precision, unless a compiled program is faster."""
    if I0.compiled((array_type(x.shape, x.dtype),)):
        return None
    # NumPy gives NaN for infinities; from 714 on the value is one in float64.
    return np.i0(np.minimum(np.abs(x.astype(np.float64)), 1000.0))


@eager(_i0, FLOAT)
def i0(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of the first kind, of order zero.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the float dtype and shape of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    As NumPy's ``i0``.

    >>> import stretto.numpy as snp
    >>> snp.i0(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return bessel_i0(x)
