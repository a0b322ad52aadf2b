"""Polynomials as arrays of coefficients, that of the highest power first."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.types import inexact_dtype, is_complex, kind_of, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import NUMERIC, eager
from stretto._engine.higher_order.scan import scan
from stretto._engine.ops.arithmetic import conj
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.complex_parts import real
from stretto._engine.ops.contract import matmul, outer
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.exponential import sqrt
from stretto._engine.ops.fft import complex_dtype
from stretto._engine.ops.layout import expand_dims, reshape, transpose
from stretto._engine.ops.shape import concatenate, pad, slice_in_dim
from stretto.numpy.filled import zeros
from stretto.numpy.floats import finfo
from stretto.numpy.indexing import concrete_of
from stretto.numpy.linalg.factorizations import eigvals
from stretto.numpy.linalg.systems import inv, lstsq
from stretto.numpy.manipulation import atleast_1d, flip
from stretto.numpy.reductions import cumprod
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.searching import concrete

__all__ = ["poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul",
           "polysub", "polyval", "roots", "vander"]  # fmt: skip


def coefficients_of(x: ArrayLike, caller: str, argument: str) -> Array:
    """Return the coefficients as an array of rank 1, or raise ``ValueError``."""
    v = atleast_1d(as_value(x, caller, argument))
    if v.ndim != 1:
        raise ValueError(f"{caller}: {argument} must be of rank 1, got {v.type}")
    return v


def _number(x: Array) -> Array:
    """Return booleans as the default integer, as in arithmetic."""
    return convert(x, scalar_dtype(int)) if kind_of(x.dtype) == "bool" else x


def inexact_of(x: Array) -> Array:
    """Return the numbers as floats, complex ones as they are."""
    return convert(x, inexact_dtype(x.dtype), x.weak_type)


def _longer(x: Array, n: int) -> Array:
    """Put zeros in front, up to ``n`` coefficients."""
    return pad(x, 0, [(n - x.size, 0, 0)])


def _without_leading_zeros(x: Array, caller: str) -> Array:
    """Return the coefficients from the first one that is not zero; those must be known."""
    nonzero_places = np.flatnonzero(concrete(x, caller))
    return slice_in_dim(x, int(nonzero_places[0]) if nonzero_places.size else x.size, None)


# Values


@rounded_once
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Evaluate a polynomial at each element, by Horner's rule.

    Args:
        p: the coefficients, that of the highest power first; further axes broadcast with ``x``.
        x: an array, or a number.
        unroll: that of ``lax.scan``.

    Returns:
        An array of the promoted dtype and the shape of ``x``, broadcast.

    Raises:
        ValueError: ``p`` is of rank 0.

    As NumPy's ``polyval``.

    >>> import stretto.numpy as snp
    >>> snp.polyval(snp.array([1, 2, 3]), snp.array([0, 10]))
    Array([  3, 123], dtype=int32)
    """
    coefficients, value = promote_dtypes("polyval", p, x)
    if not coefficients.ndim:
        raise ValueError(f"polyval: p must be of rank 1 or more, got {coefficients.type}")
    return _horner(coefficients, value, unroll=unroll)


def _polyval(p: np.ndarray, x: np.ndarray, *, unroll: int) -> np.ndarray | None:
    del unroll
    return np.polyval(p, x) if p.ndim == 1 else None


@eager(_polyval, NUMERIC)
def _horner(coefficients: Array, value: Array, *, unroll: int) -> Array:
    shape = np.broadcast_shapes(coefficients.shape[1:], value.shape)
    start = broadcast_to(full_like(value, 0), shape)

    def step(total: Array, coefficient: Array) -> tuple[Array, None]:
        return total * value + coefficient, None

    return scan(step, start, coefficients, unroll=unroll)[0]


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Make a matrix of powers, with a row for each element.

    Args:
        x: an array ``[m]``.
        N: the number of powers; by default m.
        increasing: whether the powers rise from 0; if not, they fall to 0.

    Returns:
        A matrix ``[m, N]``.

    Raises:
        TypeError: ``N`` is not an integer.
        ValueError: the rank is not 1, or ``N`` is negative.

    As NumPy's ``vander``.

    >>> import stretto.numpy as snp
    >>> snp.vander(snp.array([1, 2, 3]), 3)
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    value = as_value(x, "vander")
    if value.ndim != 1:
        raise ValueError(f"vander: expected an array of rank 1, got {value.type}")
    n = value.size if N is None else integer(N, "vander", "N")
    if n < 0:
        raise ValueError(f"vander: N must not be negative, got {n}")
    value, shape = _number(value), (value.size, n)
    # 1, x, x, x, ...: their running products are the powers
    factors = broadcast_to(expand_dims(value, 1), (value.size, max(n - 1, 0)))
    ones = broadcast_to(full_like(value, 1, value.dtype), (min(n, 1), value.size))
    powers = cumprod(concatenate([transpose(ones), factors], 1), 1)
    return reshape(powers if increasing else flip(powers, 1), shape)


# Sums and products


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Add two polynomials.

    Args:
        a1: coefficients, that of the highest power first.
        a2: coefficients.

    Returns:
        The coefficients of the sum, as many as the longer one has.

    Raises:
        ValueError: an array is of rank 2 or more.

    As NumPy's ``polyadd``.

    >>> import stretto.numpy as snp
    >>> snp.polyadd(snp.array([1, 2]), snp.array([5, 0, 3]))
    Array([5, 1, 5], dtype=int32)
    """
    x, y = _same_length("polyadd", a1, a2)
    return x + y


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Subtract a polynomial from another.

    Args:
        a1: coefficients, that of the highest power first.
        a2: the coefficients to subtract.

    Returns:
        The coefficients of the difference, as many as the longer one has.

    Raises:
        ValueError: an array is of rank 2 or more.

    As NumPy's ``polysub``.

    >>> import stretto.numpy as snp
    >>> snp.polysub(snp.array([1, 2]), snp.array([5, 0, 3]))
    Array([-5,  1, -1], dtype=int32)
    """
    x, y = _same_length("polysub", a1, a2)
    return x - y


def _same_length(caller: str, a1: ArrayLike, a2: ArrayLike) -> tuple[Array, Array]:
    x, y = promote_dtypes(
        caller, coefficients_of(a1, caller, "a1"), coefficients_of(a2, caller, "a2")
    )
    n = max(x.size, y.size)
    return _longer(x, n), _longer(y, n)


@rounded_once
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Multiply two polynomials.

    Args:
        a1: coefficients, that of the highest power first.
        a2: coefficients.
        trim_leading_zeros: whether to leave out leading zeros of both, as NumPy does, which is not
            for traced arrays.

    Returns:
        The coefficients of the product.

    Raises:
        TracedValueError: an array is traced with ``trim_leading_zeros``.
        ValueError: an array is empty, or of rank 2 or more.

    As NumPy's ``polymul``; ``trim_leading_zeros`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.polymul(snp.array([1, 2]), snp.array([1, 0, 3]))
    Array([1, 2, 3, 6], dtype=int32)
    """
    x, y = promote_dtypes("polymul", coefficients_of(a1, "polymul", "a1"),
                          coefficients_of(a2, "polymul", "a2"))  # fmt: skip
    if trim_leading_zeros:
        x, y = (_without_leading_zeros(v, "polymul") for v in (x, y))
        x, y = (v if v.size else zeros(1, v.dtype) for v in (x, y))
    if not x.size or not y.size:
        raise ValueError(f"polymul: both need a coefficient, got {x.type} and {y.type}")
    return _product(x, y)


def _product(x: Array, y: Array) -> Array:
    """Sum x[i] y[k - i] over i: row i of the products is moved i places on, and all are summed."""
    n, m = x.size, y.size
    rows = pad(outer(x, y), 0, [(0, 0, 0), (0, n, 0)])
    moved = reshape(slice_in_dim(reshape(rows, (n * (m + n),)), 0, n * (m + n - 1)), (n, m + n - 1))
    return sum_(moved, 0, x.dtype)


@rounded_once
def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Divide a polynomial by another.

    Args:
        u: the coefficients to divide, that of the highest power first.
        v: the coefficients to divide by.
        trim_leading_zeros: whether to leave out leading zeros of the remainder, as NumPy does,
            which is not for traced arrays.

    Returns:
        The quotient, and the remainder with as many coefficients as ``u``.

    Raises:
        TracedValueError: an array is traced with ``trim_leading_zeros``.
        ValueError: ``v`` is empty, or an array is of rank 2 or more.

    As NumPy's ``polydiv``; ``trim_leading_zeros`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.polydiv(snp.array([3.0, 5.0, 2.0]), snp.array([2.0, 1.0]))
    (Array([1.5 , 1.75], dtype=float32), Array([0.  , 0.  , 0.25], dtype=float32))
    """
    x, y = promote_dtypes("polydiv", coefficients_of(u, "polydiv", "u"),
                          coefficients_of(v, "polydiv", "v"))  # fmt: skip
    x, y = inexact_of(x), inexact_of(y)
    if not y.size:
        raise ValueError("polydiv: the divisor has no coefficients")
    steps = x.size - y.size + 1
    if steps < 1:
        quotient, rest = full_like(x, 0)[:1], x
    else:
        divisor = pad(y, 0, [(0, steps - 1, 0)])

        def step(left: Array, _: Array) -> tuple[Array, Array]:
            factor = left[0] / y[0]
            left = left - factor * divisor
            return pad(slice_in_dim(left, 1, None), 0, [(0, 1, 0)]), factor

        left, quotient = scan(step, x, None, steps)
        rest = _longer(slice_in_dim(left, 0, y.size - 1), x.size)
    if trim_leading_zeros:
        rest = _without_leading_zeros(rest, "polydiv")
        rest = rest if rest.size else zeros(1, rest.dtype)
    return quotient, rest


# Derivatives and integrals


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Differentiate a polynomial.

    Args:
        p: coefficients, that of the highest power first.
        m: how many times.

    Returns:
        The coefficients of the derivative.

    Raises:
        TypeError: ``m`` is not an integer.
        ValueError: ``m`` is negative, or ``p`` is of rank 2 or more.

    As NumPy's ``polyder``.

    >>> import stretto.numpy as snp
    >>> snp.polyder(snp.array([1.0, 1.0, 1.0]))
    Array([2., 1.], dtype=float32)
    """
    x, m = _number(coefficients_of(p, "polyder", "p")), integer(m, "polyder", "m")
    if m < 0:
        raise ValueError(f"polyder: m must not be negative, got {m}; see polyint")
    if m == 0:
        return x
    # d^m/dz^m z^n = n (n - 1) ... (n - m + 1) z^(n - m)
    powers = range(x.size - 1, m - 1, -1)
    factors = np.array([math.perm(n, m) for n in powers]).astype(x.dtype)
    return slice_in_dim(x, 0, len(powers)) * factors


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """Integrate a polynomial.

    Args:
        p: coefficients, that of the highest power first.
        m: how many times.
        k: the constants of integration, one for all or one for each time, first to last; 0 by
            default.

    Returns:
        The coefficients of the integral.

    Raises:
        TypeError: ``m`` is not an integer.
        ValueError: ``m`` is negative, ``p`` is of rank 2 or more, or there are not ``m`` constants.

    As NumPy's ``polyint``.

    >>> import stretto.numpy as snp
    >>> snp.polyint(snp.array([3.0, 2.0, 1.0]), k=7)
    Array([1., 1., 1., 7.], dtype=float32)
    """
    x, m = coefficients_of(p, "polyint", "p"), integer(m, "polyint", "m")
    if m < 0:
        raise ValueError(f"polyint: m must not be negative, got {m}; see polyder")
    constants = atleast_1d(as_value(0 if k is None else k, "polyint", "k"))
    if constants.size == 1:
        constants = broadcast_to(reshape(constants, (1,)), (m,))
    if constants.shape != (m,):
        raise ValueError(f"polyint: k must be a number or {m} of them, got {constants.type}")
    x, constants = promote_dtypes("polyint", x, constants)
    x, constants = inexact_of(x), inexact_of(constants)
    terms = concatenate([x, constants], 0)
    # The integral of z^n, m times: z^(n + m) / ((n + 1) ... (n + m)); the i-th constant is
    # integrated m - 1 - i times.
    n = x.size
    divisors = [math.perm(power, m) for power in range(n + m - 1, m - 1, -1)]
    divisors += [math.factorial(m - 1 - i) for i in range(m)]
    return terms / np.array(divisors, np.float64).astype(terms.dtype)


# Roots of polynomials, and polynomials of roots.


@rounded_once
def poly(seq_of_zeros: ArrayLike) -> Array:
    """Find the coefficients of a polynomial from its roots, or from the eigenvalues of a matrix.

    Complex where the roots are, even if they come in conjugate pairs, since that depends on values.

    Args:
        seq_of_zeros: the roots ``[n]``, or a square matrix ``[n, n]``.

    Returns:
        The coefficients ``[n + 1]``, that of the highest power first.

    Raises:
        ValueError: the array is neither of rank 1 nor a square matrix.

    As NumPy's ``poly``.

    >>> import stretto.numpy as snp
    >>> snp.poly(snp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    x = inexact_of(atleast_1d(as_value(seq_of_zeros, "poly", "seq_of_zeros")))
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.shape[0]:
        # Those of a real matrix come in conjugate pairs, so that the coefficients are real.
        coefficients = poly(eigvals(x))
        return coefficients if is_complex(x.dtype) else real(coefficients)
    if x.ndim != 1:
        raise ValueError(f"poly: expected an array of rank 1 or a square matrix, got {x.type}")
    n = x.size
    start = pad(full_like(x, 1)[:1] if n else full_like(zeros(1, x.dtype), 1), 0, [(0, n, 0)])

    def step(a: Array, zero: Array) -> tuple[Array, None]:
        # a(z) (z - zero), with the coefficients from the left
        return a - zero * pad(slice_in_dim(a, 0, n), 0, [(1, 0, 0)]), None

    return scan(step, start, x)[0]


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Find the roots of a polynomial: the eigenvalues of its companion matrix.

    Args:
        p: coefficients, that of the highest power first.
        strip_zeros: whether to leave out leading zeros, and to count trailing ones as roots at
            zero. While tracing it must be False, and leading zeros give NaN.

    Returns:
        The roots, complex.

    Raises:
        TracedValueError: ``p`` is traced with ``strip_zeros``.
        ValueError: ``p`` is of rank 2 or more.

    As NumPy's ``roots``; ``strip_zeros`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.roots(snp.array([1.0, -3.0, 2.0])).real.sort()
    Array([1., 2.], dtype=float32)
    """
    x = inexact_of(coefficients_of(p, "roots", "p"))
    if not strip_zeros:
        return _eigenvalues(x)
    known = concrete_of(x)
    if known is None:
        raise TracedValueError(
            f"roots: how many zeros there are at the ends must be known, but this {x.type} is "
            f"traced: {x.origin()}. If there are none in front, pass strip_zeros=False"
        )
    nonzero_places = np.flatnonzero(known)
    if not nonzero_places.size:
        return _eigenvalues(slice_in_dim(x, 0, 0))
    first, last = int(nonzero_places[0]), int(nonzero_places[-1]) + 1
    return pad(_eigenvalues(slice_in_dim(x, first, last)), 0, [(0, x.size - last, 0)])


def _eigenvalues(x: Array) -> Array:
    """Return the eigenvalues of the companion matrix, whose first row holds the coefficients."""
    n = x.size - 1
    if n < 1:
        return zeros(0, complex_dtype(x.dtype))
    first = expand_dims(slice_in_dim(x, 1, None) / -x[0], 0)
    below = as_value(np.eye(n - 1, n, dtype=x.dtype))
    return eigvals(concatenate([first, below], 0))


# Polynomials fitted to points by least squares.


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    cov: Literal[False] = False,
) -> Array: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    *,
    cov: Literal[True, "unscaled"],
) -> tuple[Array, Array]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    *,
    full: Literal[True],
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> tuple[Array, Array, Array, Array, float]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[Array, Array] | tuple[Array, Array, Array, Array, float]: ...
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[Array, Array] | tuple[Array, Array, Array, Array, float]:
    """Fit a polynomial to points, by least squares of ``w (y - p(x))``.

    Args:
        x: an array ``[m]``.
        y: an array ``[m]``, or ``[m, k]`` for k fits at once.
        deg: the degree of the polynomial.
        rcond: up to what, relative to the greatest, singular values count as zero; by default ``m
            eps``.
        full: whether to return the sums of squared residuals, the rank, the singular values and
            ``rcond`` too.
        w: weights ``[m]``.
        cov: whether to return the covariance of the coefficients too, scaled by the reduced
            chi-square, or not if ``"unscaled"``.

    Returns:
        The coefficients ``[deg + 1]`` or ``[deg + 1, k]``, that of the highest power first; a tuple
        with what else is asked for.

    Raises:
        TypeError: ``deg`` is not an integer, or an array has another shape.
        ValueError: ``deg`` is negative, ``cov`` is another, or the points are too few for it.

    As NumPy's ``polyfit``.

    >>> import stretto.numpy as snp
    >>> snp.polyfit(snp.arange(5.0), 2 * snp.arange(5.0) + 1, 1).round(3)
    Array([2., 1.], dtype=float32)
    """
    order = integer(deg, "polyfit", "deg") + 1
    if order < 1:
        raise ValueError(f"polyfit: deg must not be negative, got {deg}")
    if cov not in (False, True, "unscaled"):
        raise ValueError(f"polyfit: cov must be False, True or 'unscaled', got {cov!r}")
    value, other = promote_dtypes("polyfit", x, y)
    value, other = inexact_of(value), inexact_of(other)
    m = value.size
    of_rank = value.ndim == 1 and other.ndim in (1, 2)
    if not of_rank or without_elements(m, "polyfit") or other.shape[0] != m:
        raise TypeError(
            f"polyfit: x must be of rank 1 and not empty, y of rank 1 or 2 and as long; got "
            f"{value.type} and {other.type}"
        )
    # The relative rounding error of a sum of m terms in the dtype of the data
    cutoff = m * float(finfo(value.dtype).eps) if rcond is None else rcond
    left, right = vander(value, order), other
    if w is not None:
        weights = convert(as_value(w, "polyfit", "w"), value.dtype)
        if weights.shape != (m,):
            raise TypeError(f"polyfit: w must be of shape {(m,)}, got {weights.type}")
        left = left * expand_dims(weights, 1)
        right = right * (weights if other.ndim == 1 else expand_dims(weights, 1))
    # Scaling the columns to length 1 conditions the problem nearly as well as any scaling can.
    scale = sqrt(sum_(_squared(left), 0))
    left = left / expand_dims(scale, 0)
    c, residuals, rank, singular = lstsq(left, right, cutoff)
    c = c / (scale if other.ndim == 1 else expand_dims(scale, 1))
    if full:
        return c, residuals, rank, singular, cutoff
    if not cov:
        return c
    base = inv(matmul(conj(transpose(left)), left)) / outer(scale, scale)
    if cov == "unscaled":
        factor: Any = 1
    else:
        if m <= order:
            raise ValueError(
                f"polyfit: {m} points are too few to scale the covariance of {order} coefficients; "
                f"pass cov='unscaled'"
            )
        factor = residuals / (m - order)
    if other.ndim == 1:
        return c, base * (factor if cov == "unscaled" else reshape(factor, ()))
    return c, expand_dims(base, 2) * factor


def _squared(x: Array) -> Array:
    return (conj(x) * x).real if is_complex(x.dtype) else x * x
