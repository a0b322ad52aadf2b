"""Functions whose derivatives at kinks, ties and poles are those that PyTorch defines.

Their values are those of ``stretto.numpy``; where a derivative is a convention, an imported module
follows PyTorch's. ``docs/pytorch.md`` lists the few that are not followed.
"""

from __future__ import annotations

import math
from typing import Any

import stretto.numpy as snp
from stretto import lax, special
from stretto._engine.higher_order.custom_derivatives import custom_jvp


def _alike(x: Any, y: Any) -> list[Any]:
    """Return two arrays, or an array and a number, in one shape and one dtype of floats."""
    dtype = _floats(x, y)
    return snp.broadcast_arrays(snp.asarray(x, dtype), snp.asarray(y, dtype))


def _floats(*xs: Any) -> Any:
    """Return the dtype of floats to compute numbers in: float32 for integers, as in PyTorch."""
    dtype = snp.result_type(*xs)
    return dtype if snp.issubdtype(dtype, snp.inexact) else snp.float32


def _are_floats(*xs: Any) -> bool:
    return snp.issubdtype(snp.result_type(*xs), snp.floating)


# Of one or two elements


@custom_jvp
def _remainder(x: Any, y: Any) -> Any:
    return snp.remainder(x, y)


# r = x - y floor(x / y), where the floor is constant, at multiples as well.
_remainder.defjvps(lambda dx, out, x, y: dx, lambda dy, out, x, y: -dy * snp.floor_divide(x, y))


def remainder(x: Any, y: Any) -> Any:
    """Compute the remainder with the sign of ``y``; by ``x`` its derivative is 1 throughout."""
    return _remainder(*_alike(x, y)) if _are_floats(x, y) else snp.remainder(x, y)


def fmax(x: Any, y: Any) -> Any:
    """Take the greater of two elements, not NaN if one is a number; of equal ones the first."""
    if not _are_floats(x, y):
        return snp.fmax(x, y)
    return snp.where((x >= y) | snp.isnan(y), x, y)


def fmin(x: Any, y: Any) -> Any:
    """Take the less of two elements, not NaN if one is a number; of equal ones the first."""
    if not _are_floats(x, y):
        return snp.fmin(x, y)
    return snp.where((x <= y) | snp.isnan(y), x, y)


def arctan2(y: Any, x: Any) -> Any:
    """Compute the angle of a point, with a derivative of 0 at the origin."""
    zero = (y == 0) & (x == 0)
    still = lax.stop_gradient(snp.arctan2(y, x))
    return snp.where(zero, still, snp.arctan2(y, snp.where(zero, 1, x)))


def angle(x: Any) -> Any:
    """Compute the angle of complex numbers: constant for real ones, with derivative 0 at 0."""
    if not snp.issubdtype(x.dtype, snp.complexfloating):
        return snp.angle(lax.stop_gradient(x))
    zero = x == 0
    still = lax.stop_gradient(snp.angle(x))
    return snp.where(zero, still, snp.angle(snp.where(zero, 1, x)))


def root(x: Any) -> Any:
    """Compute the square root, with a derivative of 0 at 0, as norms and deviations have it."""
    zero = x == 0
    return snp.where(zero, 0, snp.sqrt(snp.where(zero, 1, x)))


@custom_jvp
def _bounded(x: Any, low: float, high: float) -> Any:
    return snp.clip(x, low, high)


_bounded.defjvps(lambda dx, out, x, low, high: snp.where((x > low) & (x < high), dx, 0), None, None)


def bounded(x: Any, low: float, high: float) -> Any:
    """Clip elements, with a derivative of 0 at the bounds themselves."""
    return _bounded(x, low, high)


@custom_jvp
def _logit(x: Any) -> Any:
    return special.logit(x)


_logit.defjvps(lambda dx, out, x: dx / (x * (1 - x)))


def logit(x: Any) -> Any:
    """Compute log(x / (1 - x)), of infinite slope at 0 and 1."""
    return _logit(snp.asarray(x, _floats(x)))


def log_of_sum(x: Any, y: Any) -> Any:
    """Compute log(exp(x) + exp(y)); of complex numbers not the principal value, but PyTorch's."""
    if not snp.issubdtype(snp.result_type(x, y), snp.complexfloating):
        return snp.logaddexp(x, y)
    first = snp.real(x) > snp.real(y)
    top, less = snp.where(first, x, y), snp.where(first, y, x)
    infinite = snp.isinf(snp.real(x)) & (snp.real(x) == snp.real(y))
    return snp.where(infinite, top, top + snp.log1p(snp.exp(snp.where(infinite, 0, less - top))))


def running_log_of_sum(x: Any, axis: int) -> Any:
    """Compute the logarithm of the running sum of exponentials."""
    if not snp.issubdtype(x.dtype, snp.complexfloating):
        return lax.cumlogsumexp(x, axis=axis)
    if not x.shape[axis]:
        return x
    lines = snp.moveaxis(x, axis, 0)
    _, rest = lax.scan(lambda y, z: (log_of_sum(z, y),) * 2, lines[0], lines[1:])
    return snp.moveaxis(snp.concatenate([lines[:1], rest]), 0, axis)


@custom_jvp
def _entropy(x: Any) -> Any:
    return special.entr(x)


_entropy.defjvps(lambda dx, out, x: dx * (-snp.log(x) - 1))


def entropy(x: Any) -> Any:
    """Compute -x log(x), of infinite slope at 0."""
    return _entropy(snp.asarray(x, _floats(x)))


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    return special.xlogy(x, y)


_xlogy.defjvps(
    lambda dx, out, x, y: dx * snp.where((x == 0) & (y <= 0), 0, snp.log(y)),
    lambda dy, out, x, y: dy * _over(x, y),
)


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    return special.xlog1py(x, y)


_xlog1py.defjvps(
    lambda dx, out, x, y: dx * snp.where((x == 0) & (y <= -1), 0, snp.log1p(y)),
    lambda dy, out, x, y: dy * _over(x, 1 + y),
)


def _over(x: Any, y: Any) -> Any:
    """Return x / y, and 0 where both are 0."""
    nothing = (x == 0) & (y == 0)
    return snp.where(nothing, 0, x / snp.where(nothing, 1, y))


def xlogy(x: Any, y: Any) -> Any:
    """Compute x log(y), 0 where x is; its derivative by x is log(y) there, too."""
    return _xlogy(*_alike(x, y))


def xlog1py(x: Any, y: Any) -> Any:
    """Compute x log(1 + y), 0 where x is; its derivative by x is log(1 + y) there, too."""
    return _xlog1py(*_alike(x, y))


@custom_jvp
def _cross_entropy(p: Any, target: Any) -> Any:
    return -(target * _log(p) + (1 - target) * _log1p(-p))


def _log(p: Any) -> Any:
    return snp.maximum(snp.log(p), -100)


def _log1p(p: Any) -> Any:
    return snp.maximum(snp.log1p(p), -100)


# d/dp = (p - t) / (p (1 - p)), where the divisor is at least 1e-12.
_cross_entropy.defjvps(
    lambda dp, out, p, t: dp * (p - t) / snp.maximum(p * (1 - p), 1e-12),
    lambda dt, out, p, t: dt * (snp.log1p(-p) - snp.log(p)),
)


def binary_cross_entropy(p: Any, target: Any) -> Any:
    """Compute the loss of each probability, whose logarithms are at least -100.

    Its slope grows up to 1e12 towards 0 and 1, where the logarithms no longer change.
    """
    return _cross_entropy(*_alike(p, target))


@custom_jvp
def _written(x: Any, value: Any) -> Any:
    return value


_written.defjvps(lambda dx, out, *_: dx, None)


def written(x: Any, value: Any) -> Any:
    """Give a value in the place of ``x``, with the slope of ``x``."""
    return _written(x, lax.stop_gradient(value))


# Along axes


@custom_jvp
def _shared(x: Any, value: Any) -> Any:
    return value


def _mean_of_equal(dx: Any, out: Any, x: Any, value: Any) -> Any:
    same = (x == value) | (snp.isnan(x) & snp.isnan(value))
    return snp.sum(snp.where(same, dx, 0)) / snp.sum(same)


_shared.defjvps(_mean_of_equal, None)


def shared(x: Any, value: Any) -> Any:
    """Give ``value``, one of the elements of ``x``: all that are equal to it share its slope."""
    return _shared(x, lax.stop_gradient(value)) if _are_floats(x) else value


@custom_jvp
def _every_greatest(x: Any) -> Any:
    return snp.max(x, -1)


_every_greatest.defjvps(lambda dx, out, x: snp.sum(snp.where(x == out[..., None], dx, 0), -1))


def every_greatest(x: Any) -> Any:
    """Take the greatest element along the last axis: each that is equal to it has slope 1."""
    return _every_greatest(x)


def power_norm(size: Any, p: float, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute the p-norm of numbers that are not negative: elements of 0 have slope 0."""
    zero = size == 0
    powers = snp.where(zero, 0.0 if p > 0 else math.inf, snp.where(zero, 1, size) ** p)
    total = snp.sum(powers, axis, keepdims=keepdims)
    nothing = total == 0
    return snp.where(nothing, 0, snp.where(nothing, 1, total) ** (1 / p))
