"""Products with logarithms, entropies, and the transformations of statistics.

Written so that values are right where a factor vanishes, with derivatives of their own. Next, read
``sums``.
"""

from __future__ import annotations

import math
from typing import Any

from stretto._engine.control.custom_jvp import custom_jvp
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.bitwise import bitwise_and
from stretto._engine.ops.comparison import eq, full_like, ge, gt, lt, select, zeros_like
from stretto._engine.ops.elementwise import FLOAT, check_kind, promote_values, unary
from stretto._engine.ops.exponential import LOGISTIC, exp, expm1, log, log1p
from stretto._engine.ops.powers import power

__all__ = [
    "boxcox",
    "boxcox1p",
    "entr",
    "expit",
    "kl_div",
    "logit",
    "rel_entr",
    "xlog1py",
    "xlogy",
]


def _pair(caller: str, x: Any, y: Any) -> list[Any]:
    return promote_values(caller, x, y, inexact=True)


def _real(caller: str, *arguments: Any) -> list[Any]:
    """The arguments as floats of one dtype and shape; refuses complex numbers."""
    values = promote_values(caller, *arguments, inexact=True)
    check_kind(caller, FLOAT, values[0].type)
    return values


def _none(x: Any, y: Any) -> Any:
    """Whether x is zero, and y a number."""
    return bitwise_and(eq(x, zeros_like(x)), eq(y, y))


def _product(x: Any, y: Any, logarithm: Any) -> Any:
    """x logarithm(y), zero where x is zero."""
    none = _none(x, y)
    return select(none, zeros_like(x), x * logarithm(select(none, full_like(y, 1), y)))


def _ratio(x: Any, y: Any) -> Any:
    """x / y, zero where both are: where x alone is, the derivative by it is 1 / y."""
    none = bitwise_and(eq(x, zeros_like(x)), eq(y, zeros_like(y)))
    return select(none, zeros_like(x), x / select(none, full_like(y, 1), y))


def _both_positive(p: Any, q: Any) -> tuple[Any, Any, Any]:
    """Whether both are positive; both, as 1 where they are not."""
    some = bitwise_and(gt(p, zeros_like(p)), gt(q, zeros_like(q)))
    return some, select(some, p, full_like(p, 1)), select(some, q, full_like(q, 1))


def _border(p: Any, q: Any, some: Any, inside: Any, at_zero: Any) -> Any:
    """The value inside, at p = 0 <= q, infinity elsewhere; NaN of NaN."""
    zero = bitwise_and(eq(p, zeros_like(p)), ge(q, zeros_like(q)))
    out = select(some, inside, select(zero, at_zero, full_like(p, math.inf)))
    return select(bitwise_and(eq(p, p), eq(q, q)), out, p + q)


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    return _product(x, y, log)


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    return _product(x, y, log1p)


@custom_jvp
def _entr(x: Any) -> Any:
    out = -_product(x, x, log)
    return select(lt(x, zeros_like(x)), full_like(x, -math.inf), out)


@custom_jvp
def _rel_entr(p: Any, q: Any) -> Any:
    some, p_, q_ = _both_positive(p, q)
    return _border(p, q, some, p_ * log(p_ / q_), zeros_like(p))


@custom_jvp
def _kl_div(p: Any, q: Any) -> Any:
    some, p_, q_ = _both_positive(p, q)
    # p log(p / q) - p + q = p (r - log(1 + r)), r = (q - p) / p, where both are close
    r = (q_ - p_) / p_
    near = lt(absolute(r), full_like(r, 0.5))
    close = p_ * _excess(select(near, r, zeros_like(r)))
    plain = p_ * log(p_ / q_) - p_ + q_
    return _border(p, q, some, select(near, close, plain), q)


def _excess(r: Any) -> Any:
    """r - log(1 + r) for |r| <= 1/2, by 2 artanh(s), s = r / (2 + r): s r - 2 (s^3 / 3 + ...)."""
    s = r / (r + full_like(r, 2))
    square = s * s
    total = full_like(s, 2 / 35)
    for k in range(33, 1, -2):
        total = total * square + full_like(s, 2 / k)
    return s * r - s * square * total


@custom_jvp
def _logit(p: Any) -> Any:
    one, half = full_like(p, 1), full_like(p, 0.5)
    s = (p - half) * full_like(p, 2)
    near = lt(absolute(s), half)
    close = select(near, s, zeros_like(s))
    return select(near, log1p(close) - log1p(-close), log(p / (one - p)))


def _powered(logarithm: Any, c: Any) -> Any:
    """(e^(l c) - 1) / c for l and c, l where c is zero."""
    none = eq(c, zeros_like(c))
    divisor = select(none, full_like(c, 1), c)
    return select(none, logarithm, expm1(divisor * logarithm) / divisor)


def _tilted(logarithm: Any, c: Any) -> Any:
    """Its derivative in c: l^2 (u e^u - (e^u - 1)) / u^2, u = l c; Σ u^k / (k! (k + 2)) near 0."""
    u = logarithm * c
    endless = eq(u, full_like(u, -math.inf))  # 1 / c^2
    logarithm = select(endless, zeros_like(u), logarithm)
    u = select(endless, zeros_like(u), u)
    near = lt(absolute(u), full_like(u, 0.5))
    close, far = select(near, u, zeros_like(u)), select(near, full_like(u, 1), u)
    series = full_like(u, 1 / (math.factorial(14) * 16))
    for k in range(13, -1, -1):
        series = series * close + full_like(u, 1 / (math.factorial(k) * (k + 2)))
    plain = (far * exp(far) - expm1(far)) / (far * far)
    inner = logarithm * logarithm * select(near, series, plain)
    divisor = select(endless, c, full_like(u, 1))
    return select(endless, full_like(u, 1) / (divisor * divisor), inner)


@custom_jvp
def _boxcox(x: Any, c: Any) -> Any:
    return _powered(log(x), c)


@custom_jvp
def _boxcox1p(x: Any, c: Any) -> Any:
    return _powered(log1p(x), c)


_xlogy.defjvps(
    lambda dx, out, x, y: dx * log(y),
    lambda dy, out, x, y: dy * _ratio(x, y),
)
_xlog1py.defjvps(
    lambda dx, out, x, y: dx * log1p(y),
    lambda dy, out, x, y: dy * _ratio(x, full_like(y, 1) + y),
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
    lambda dc, out, x, c: dc * _tilted(log(x), c),
)
_boxcox1p.defjvps(
    lambda dx, out, x, c: dx * power(full_like(x, 1) + x, c - full_like(c, 1)),
    lambda dc, out, x, c: dc * _tilted(log1p(x), c),
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


def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute ``x * log1p(y)``, zero where ``x`` is zero.

    Args:
        x: real numbers.
        y: real numbers, promoted and broadcast with ``x``.

    Returns:
        The values; NaN where ``y`` is.

    Raises:
        ValueError: the shapes cannot be broadcast together.

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


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute ``p * log(p / q) - p + q``, element by element.

    Args:
        p: real numbers.
        q: real numbers, promoted and broadcast with ``p``.

    Returns:
        The values; ``q`` where ``p`` is 0 and ``q`` is not negative, infinite for other signs.

    Raises:
        ValueError: the shapes cannot be broadcast together.

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


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute ``boxcox(1 + x, lmbda)``, exact near zero.

    Args:
        x: real numbers, at least -1.
        lmbda: the exponents, promoted and broadcast with ``x``.

    Returns:
        The values, of the broadcast shape.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``boxcox1p``.

    >>> import stretto as st
    >>> st.special.boxcox1p(st.numpy.array([0.0, 3.0]), 0.5)
    Array([0., 2.], dtype=float32)
    """
    return _boxcox1p(*_pair("boxcox1p", x, lmbda))
