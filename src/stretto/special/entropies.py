"""Products with logarithms, entropies, softmax, and the transformations of statistics.

Written so that values are right where a factor vanishes, with derivative rules of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike, Axes
from stretto._engine.higher_order.custom_derivatives import custom_jvp
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.bits import bitwise_and
from stretto._engine.ops.comparison import eq, full_like, ge, gt, lt, select, zeros_like
from stretto._engine.ops.convert import rounded_once
from stretto._engine.ops.elementwise import FLOAT, check_kind, promote_values, unary
from stretto._engine.ops.exponential import LOGISTIC, exp, expm1, log, log1p, power
from stretto.numpy import normalized
from stretto.numpy.normalized import logsumexp

__all__ = ["boxcox", "boxcox1p", "entr", "expit", "kl_div", "log_softmax", "logit", "logsumexp",
           "rel_entr", "softmax", "xlog1py", "xlogy"]  # fmt: skip


def _pair(caller: str, x: ArrayLike, y: ArrayLike) -> list[Array]:
    return promote_values(caller, x, y, inexact=True)


def _real(caller: str, *arguments: ArrayLike) -> list[Array]:
    """Return the arguments as floats of one dtype and shape; refuses complex numbers."""
    values = promote_values(caller, *arguments, inexact=True)
    check_kind(caller, FLOAT, values[0].type)
    return values


def _is_zero_product(x: Array, y: Array) -> Array:
    """Say whether x is zero and y is not NaN."""
    return bitwise_and(eq(x, zeros_like(x)), eq(y, y))


def _product(x: Array, y: Array, logarithm: Callable[[Array], Array]) -> Array:
    """x logarithm(y), zero where x is zero."""
    is_zero = _is_zero_product(x, y)
    return select(is_zero, zeros_like(x), x * logarithm(select(is_zero, full_like(y, 1), y)))


def _ratio(x: Array, y: Array) -> Array:
    """x / y, zero where both are; where x alone is zero, the derivative in x is still 1 / y."""
    is_zero = bitwise_and(eq(x, zeros_like(x)), eq(y, zeros_like(y)))
    return select(is_zero, zeros_like(x), x / select(is_zero, full_like(y, 1), y))


def _both_positive(p: Array, q: Array) -> tuple[Array, Array, Array]:
    """Say whether both are positive; then both, replaced by 1 where they are not."""
    positive = bitwise_and(gt(p, zeros_like(p)), gt(q, zeros_like(q)))
    return positive, select(positive, p, full_like(p, 1)), select(positive, q, full_like(q, 1))


def _border(p: Array, q: Array, positive: Array, inside: Array, at_zero: Array) -> Array:
    """``inside`` where both are positive, ``at_zero`` where p = 0 <= q, else inf; NaN for NaN."""
    zero = bitwise_and(eq(p, zeros_like(p)), ge(q, zeros_like(q)))
    out = select(positive, inside, select(zero, at_zero, full_like(p, math.inf)))
    return select(bitwise_and(eq(p, p), eq(q, q)), out, p + q)


@custom_jvp
def _xlogy(x: Array, y: Array) -> Array:
    return _product(x, y, log)


@custom_jvp
def _xlog1py(x: Array, y: Array) -> Array:
    return _product(x, y, log1p)


@custom_jvp
def _entr(x: Array) -> Array:
    out = -_product(x, x, log)
    return select(lt(x, zeros_like(x)), full_like(x, -math.inf), out)


@custom_jvp
def _rel_entr(p: Array, q: Array) -> Array:
    positive, p_, q_ = _both_positive(p, q)
    return _border(p, q, positive, p_ * log(p_ / q_), zeros_like(p))


@custom_jvp
def _kl_div(p: Array, q: Array) -> Array:
    positive, p_, q_ = _both_positive(p, q)
    # p log(p / q) - p + q = p (r - log(1 + r)), r = (q - p) / p, where both are close
    r = (q_ - p_) / p_
    near = lt(absolute(r), full_like(r, 0.5))
    close = p_ * _excess(select(near, r, zeros_like(r)))
    plain = p_ * log(p_ / q_) - p_ + q_
    return _border(p, q, positive, select(near, close, plain), q)


def _excess(r: Array) -> Array:
    """r - log(1 + r) for |r| <= 1/2, by 2 artanh(s), s = r / (2 + r): s r - 2 (s^3 / 3 + ...)."""
    s = r / (r + full_like(r, 2))
    square = s * s
    total = full_like(s, 2 / 35)
    for k in range(33, 1, -2):
        total = total * square + full_like(s, 2 / k)
    return s * r - s * square * total


@custom_jvp
def _logit(p: Array) -> Array:
    one, half = full_like(p, 1), full_like(p, 0.5)
    s = (p - half) * full_like(p, 2)
    near = lt(absolute(s), half)
    close = select(near, s, zeros_like(s))
    return select(near, log1p(close) - log1p(-close), log(p / (one - p)))


def _power_over(logarithm: Array, c: Array) -> Array:
    """(e^(l c) - 1) / c for the logarithm l; l where c is zero."""
    is_zero = eq(c, zeros_like(c))
    divisor = select(is_zero, full_like(c, 1), c)
    return select(is_zero, logarithm, expm1(divisor * logarithm) / divisor)


def _power_over_slope(logarithm: Array, c: Array) -> Array:
    """Differentiate ``_power_over`` in c: l^2 (u e^u - (e^u - 1)) / u^2, u = l c.

    Near u = 0 its series: l^2 Σ u^k / (k! (k + 2)).
    """
    u = logarithm * c
    is_infinite = eq(u, full_like(u, -math.inf))  # 1 / c^2
    logarithm = select(is_infinite, zeros_like(u), logarithm)
    u = select(is_infinite, zeros_like(u), u)
    near = lt(absolute(u), full_like(u, 0.5))
    close, far = select(near, u, zeros_like(u)), select(near, full_like(u, 1), u)
    series = full_like(u, 1 / (math.factorial(14) * 16))
    for k in range(13, -1, -1):
        series = series * close + full_like(u, 1 / (math.factorial(k) * (k + 2)))
    plain = (far * exp(far) - expm1(far)) / (far * far)
    inner = logarithm * logarithm * select(near, series, plain)
    divisor = select(is_infinite, c, full_like(u, 1))
    return select(is_infinite, full_like(u, 1) / (divisor * divisor), inner)


@custom_jvp
def _boxcox(x: Array, c: Array) -> Array:
    return _power_over(log(x), c)


@custom_jvp
def _boxcox1p(x: Array, c: Array) -> Array:
    return _power_over(log1p(x), c)


_xlogy.defjvps(lambda dx, out, x, y: dx * log(y), lambda dy, out, x, y: dy * _ratio(x, y))
_xlog1py.defjvps(
    lambda dx, out, x, y: dx * log1p(y), lambda dy, out, x, y: dy * _ratio(x, full_like(y, 1) + y)
)
_entr.defjvps(lambda dx, out, x: -(dx * (log(x) + full_like(x, 1))))
_rel_entr.defjvps(
    lambda dp, out, p, q: dp * (log(p / q) + full_like(p, 1)),
    lambda dq, out, p, q: -(dq * _ratio(p, q)),
)
_kl_div.defjvps(
    lambda dp, out, p, q: dp * log(p / q),
    lambda dq, out, p, q: dq * (full_like(q, 1) - _ratio(p, q)),
)
_logit.defjvps(lambda dp, out, p: dp / (p * (full_like(p, 1) - p)))
_boxcox.defjvps(
    lambda dx, out, x, c: dx * power(x, c - full_like(c, 1)),
    lambda dc, out, x, c: dc * _power_over_slope(log(x), c),
)
_boxcox1p.defjvps(
    lambda dx, out, x, c: dx * power(full_like(x, 1) + x, c - full_like(c, 1)),
    lambda dc, out, x, c: dc * _power_over_slope(log1p(x), c),
)


def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute ``x * log(y)``, zero where ``x`` is zero.

    Args:
        x: real numbers.
        y: real numbers, promoted and broadcast with ``x``.

    Returns:
        The values; NaN where ``y`` is.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``xlogy``.

    >>> import stretto as st
    >>> st.special.xlogy(st.numpy.array([0.0, 2.0]), st.numpy.array([0.0, 1.0]))
    Array([0., 0.], dtype=float32)
    """
    return _xlogy(*_pair("xlogy", x, y))


@described_like(xlogy)
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute ``x * log1p(y)``, zero where ``x`` is zero.

    As SciPy's ``xlog1py``.

    >>> import stretto as st
    >>> st.special.xlog1py(st.numpy.array([0.0, 2.0]), st.numpy.array([-1.0, 0.0]))
    Array([0., 0.], dtype=float32)
    """
    return _xlog1py(*_pair("xlog1py", x, y))


def entr(x: ArrayLike) -> Array:
    """Compute the entropy ``-x * log(x)`` of each element.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The values, of the shape of ``x``; zero at zero, -infinity below.

    As SciPy's ``entr``.

    >>> import stretto as st
    >>> st.special.entr(st.numpy.array([-1.0, 0.0, 0.5])).round(4)
    Array([   -inf, -0.    ,  0.3466], dtype=float32)
    """
    return _entr(_real("entr", x)[0])


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute the relative entropy ``p * log(p / q)``, element by element.

    Args:
        p: real numbers.
        q: real numbers, promoted and broadcast with ``p``.

    Returns:
        The values; zero where ``p`` is 0 and ``q`` is not negative, infinite for other signs.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``rel_entr``.

    >>> import stretto as st
    >>> st.special.rel_entr(st.numpy.array([0.0, 1.0, 1.0]), st.numpy.array([1.0, 1.0, 0.0]))
    Array([ 0.,  0., inf], dtype=float32)
    """
    return _rel_entr(*_real("rel_entr", p, q))


@described_like(rel_entr)
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute ``p * log(p / q) - p + q``, element by element.

    Returns:
        The values; ``q`` where ``p`` is 0 and ``q`` is not negative, infinite for other signs.

    As SciPy's ``kl_div``.

    >>> import stretto as st
    >>> st.special.kl_div(st.numpy.array([0.0, 1.0, 1.0]), st.numpy.array([1.0, 1.0, 0.0]))
    Array([ 1.,  0., inf], dtype=float32)
    """
    return _kl_div(*_real("kl_div", p, q))


def logit(x: ArrayLike) -> Array:
    """Compute ``log(x / (1 - x))`` of each element, exact near 1/2.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The values, of the shape of ``x``; infinite at 0 and 1, NaN beyond.

    As SciPy's ``logit``.

    >>> import stretto as st
    >>> st.special.logit(st.numpy.array([0.0, 0.5, 2.0]))
    Array([-inf,   0.,  nan], dtype=float32)
    """
    return _logit(_real("logit", x)[0])


def expit(x: ArrayLike) -> Array:
    """Compute ``1 / (1 + exp(-x))``, the inverse of ``logit``, of each element.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The values, from 0 to 1, of the shape of ``x``.

    As SciPy's ``expit``.

    >>> import stretto as st
    >>> st.special.expit(st.numpy.array([0.0, 100.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return unary(LOGISTIC, x, "expit")


@rounded_once
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute ``(x**lmbda - 1) / lmbda``, and ``log(x)`` where ``lmbda`` is zero.

    Args:
        x: real numbers, not negative.
        lmbda: the exponents, promoted and broadcast with ``x``.

    Returns:
        The values, of the broadcast shape.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``boxcox``. Source: Box and Cox, "An analysis of transformations", 1964.

    >>> import stretto as st
    >>> st.special.boxcox(st.numpy.array([1.0, 4.0]), 0.5)
    Array([0., 2.], dtype=float32)
    """
    return _boxcox(*_pair("boxcox", x, lmbda))


@rounded_once
@described_like(boxcox)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute ``boxcox(1 + x, lmbda)``, exact near zero.

    Args:
        x: real numbers, at least -1.

    As SciPy's ``boxcox1p``.

    >>> import stretto as st
    >>> st.special.boxcox1p(st.numpy.array([0.0, 3.0]), 0.5)
    Array([0., 2.], dtype=float32)
    """
    return _boxcox1p(*_pair("boxcox1p", x, lmbda))


def softmax(x: ArrayLike, /, *, axis: Axes = None) -> Array:
    """Compute ``exp(x) / sum(exp(x))`` over axes, without overflow.

    Args:
        x: an array.
        axis: the axes to add over, negative from the end; all by default.

    Returns:
        The shares, of the shape of ``x``, which add up to 1 over the axes.

    Raises:
        ValueError: an axis is out of bounds, or is named twice.

    As SciPy's ``softmax``.

    >>> import stretto as st
    >>> st.special.softmax(st.numpy.array([[0.0, 1000.0], [0.0, 0.0]]), axis=1)
    Array([[0. , 1. ],
           [0.5, 0.5]], dtype=float32)
    """
    return normalized.softmax(x, axis)


@described_like(softmax)
def log_softmax(x: ArrayLike, /, *, axis: Axes = None) -> Array:
    """Compute ``x - logsumexp(x)`` over axes.

    Returns:
        The logarithms of ``softmax``, of the shape of ``x``.

    As SciPy's ``log_softmax``.

    >>> import stretto as st
    >>> st.special.log_softmax(st.numpy.array([0.0, 1000.0]))
    Array([-1000.,     0.], dtype=float32)
    """
    return normalized.log_softmax(x, axis)
