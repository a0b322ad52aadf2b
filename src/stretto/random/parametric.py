"""Draws from continuous distributions with parameters, and of vectors and matrices.

By formulas of uniform and normal numbers, each with a derivative with respect to its parameters,
that of the formula; vectors and matrices by factorizations of ``stretto.numpy.linalg``.
"""

from __future__ import annotations

import ml_dtypes

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import (
    as_dtype,
    inexact_dtype,
    is_inexact,
    kind_of,
    promote,
    scalar_dtype,
)
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, ShapeLike, ShardingLike
from stretto._engine.ops.arithmetic import sign
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.comparison import full_like, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.exponential import exp, log, sqrt
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.layout import expand_dims, laid_out, squeeze
from stretto.numpy.linalg import cholesky, eigh, qr, svd
from stretto.numpy.manipulation import matrix_transpose
from stretto.random.discrete_draws import rademacher
from stretto.random.distributions import exponential, maxwell, normal, uniform
from stretto.random.draw_arguments import (
    draw,
    draw_of_parameters,
    drawing_as_jax,
    float_dtype,
    parameter,
    round_draw,
    shape_of,
    spread,
    static_shape,
    wide,
)
from stretto.random.keys import as_key, parts

__all__ = ["double_sided_maxwell", "lognormal", "multivariate_normal", "orthogonal", "pareto",
           "rayleigh", "triangular", "wald", "weibull_min"]  # fmt: skip


@draw
def lognormal(
    key: Key,
    sigma: ArrayLike = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw numbers whose logarithm is normal, of mean 0.

    Args:
        sigma: the standard deviation of the logarithm.
        shape: of the result; by default that of ``sigma``.
        dtype: floating, or complex, for the exponential of complex normal numbers; the default
            float by default.

    Raises:
        TypeError: ``key`` is not one key, ``dtype`` is neither floating nor complex, or
            (``TypePromotionError``) ``sigma`` is of a wider dtype.
        ValueError: a size is negative, or a parameter does not broadcast to ``shape``.

    >>> from stretto import random
    >>> bool((random.lognormal(random.key(0), shape=(9,)) > 0).all())
    True
    """
    caller = "lognormal"
    if out_sharding is not None:
        return laid_out(lognormal(key, sigma, shape, dtype), out_sharding, f"random.{caller}")
    target = scalar_dtype(float) if dtype is None else as_dtype(dtype)
    if not is_inexact(target):
        raise TypeError(f"random.{caller}: dtype must be floating or complex, got {target}")
    scale = parameter(sigma, target, caller, "sigma", lossless=True, nonnegative=True)
    sizes = shape_of(shape, caller, scale)
    z = normal(as_key(key, caller), sizes, wide(target))
    return round_draw(exp(z * spread(scale, sizes, caller, "sigma")), target)


@draw_of_parameters
def pareto(
    key: Key,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the Pareto distribution on [1, ∞).

    Args:
        b: the exponent.
        shape: of the result; by default that of ``b``.

    >>> from stretto import random
    >>> bool((random.pareto(random.key(0), 2.0, (9,)) >= 1).all())
    True
    """
    if out_sharding is not None:
        return laid_out(pareto(key, b, shape, dtype), out_sharding, "random.pareto")
    target = float_dtype(dtype, "pareto")
    power = parameter(b, target, "pareto", "b", lossless=True, nonnegative=True)
    sizes = shape_of(shape, "pareto", power)
    logs = exponential(as_key(key, "pareto"), sizes, wide(target))
    return round_draw(exp(logs / spread(power, sizes, "pareto", "b")), target)


@draw_of_parameters
def rayleigh(
    key: Key,
    scale: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the Rayleigh distribution: ``scale * sqrt(-2 log(u))``.

    Args:
        shape: of the result; by default that of ``scale``.

    >>> from stretto import random
    >>> bool((random.rayleigh(random.key(0), 2.0, (9,)) >= 0).all())
    True
    """
    if out_sharding is not None:
        return laid_out(rayleigh(key, scale, shape, dtype), out_sharding, "random.rayleigh")
    target = float_dtype(dtype, "rayleigh")
    factor = parameter(scale, target, "rayleigh", "scale", lossless=True, nonnegative=True)
    sizes = shape_of(shape, "rayleigh", factor)
    u = uniform(as_key(key, "rayleigh"), sizes, wide(target))
    if not drawing_as_jax():  # one draw in 2**23 is 0, and would be infinite
        u = maximum(u, full_like(u, float(ml_dtypes.finfo(u.dtype).epsneg) / 2))
    length = spread(factor, sizes, "rayleigh", "scale") * sqrt(log(u) * -2)
    return round_draw(length, target)


@draw
def weibull_min(
    key: Key,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw from the Weibull distribution: ``scale * (-log(1 - u)) ** (1 / concentration)``.

    Args:
        concentration: the exponent.
        shape: that of ``u``, which broadcasts with the parameters, as in JAX.

    Returns:
        Numbers of the shape to which ``shape`` and the parameters broadcast.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative.

    >>> from stretto import random
    >>> random.weibull_min(random.key(0), 1.0, 2.0, (3,)).shape
    (3,)
    """
    caller = "weibull_min"
    target, sizes = float_dtype(dtype, caller), static_shape(shape, caller)
    factor = parameter(scale, target, caller, "scale", nonnegative=True)
    shaping = parameter(concentration, target, caller, "concentration", nonnegative=True)
    broadcast_shapes(f"random.{caller}", sizes, factor.shape, shaping.shape)
    waiting = exponential(as_key(key, caller), sizes, wide(target))
    return round_draw(waiting ** (1.0 / shaping) * factor, target)


@draw
def double_sided_maxwell(
    key: Key,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw from the Maxwell distribution and its mirror image, scaled and moved.

    The sign is drawn, then ``scale`` multiplies and ``loc`` is added.

    Args:
        loc: the centre.
        shape: what comes before the shape to which the parameters broadcast; without ``shape``,
            that shape twice, as in JAX.

    Returns:
        Numbers of this dtype.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative.

    >>> from stretto import random
    >>> random.double_sided_maxwell(random.key(0), 0.0, 1.0, (3,)).shape
    (3,)
    """
    caller = "double_sided_maxwell"
    target = float_dtype(dtype, caller)
    middle = parameter(loc, target, caller, "loc", lossless=True)
    factor = parameter(scale, target, caller, "scale", lossless=True, nonnegative=True)
    own = shape_of(None, caller, middle, factor)
    sizes = (*(static_shape(shape, caller) or own), *own)
    length_key, sign_key = parts(key, 2, caller)
    work = wide(target)
    length = maxwell(length_key, sizes, work)
    factor, middle = of_rank(factor, len(sizes)), of_rank(middle, len(sizes))
    return round_draw(rademacher(sign_key, sizes, work) * length * factor + middle, target)


@draw_of_parameters
def wald(
    key: Key,
    mean: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the Wald (inverse Gaussian) distribution of scale 1.

    Args:
        mean: its mean.
        shape: of the result; by default that of ``mean``.

    Source: Michael, Schucany, Haas, "Generating random variates using transformations with
    multiple roots", The American Statistician 30, 1976.

    >>> from stretto import random
    >>> bool((random.wald(random.key(0), 2.0, (9,)) > 0).all())
    True
    """
    if out_sharding is not None:
        return laid_out(wald(key, mean, shape, dtype), out_sharding, "random.wald")
    target = float_dtype(dtype, "wald")
    m = parameter(mean, target, "wald", "mean", lossless=True, nonnegative=True)
    sizes = shape_of(shape, "wald", m)
    m = spread(m, sizes, "wald", "mean")
    normal_key, uniform_key = parts(key, 2, "wald")
    v = normal(normal_key, sizes, wide(target))
    z = uniform(uniform_key, sizes, wide(target))
    # The roots of (x - m)**2 / (m**2 x) = v**2 are x and m**2 / x.
    y = v * v
    x = m + m * m * y / 2 - m / 2 * sqrt(4 * m * y + m * m * (y * y))
    return round_draw(select(z <= m / (m + x), x, m * m / x), target)


@draw_of_parameters
def triangular(
    key: Key,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw numbers whose density is a triangle.

    By the inverse of the distribution function.

    Args:
        left: where the density begins.
        mode: where it is greatest.
        right: where it ends.
        shape: of the result; by default that to which the parameters broadcast.

    >>> from stretto import random
    >>> x = random.triangular(random.key(0), 0.0, 1.0, 3.0, (9,))
    >>> bool(((x >= 0) & (x <= 3)).all())
    True
    """
    caller = "triangular"
    if out_sharding is not None:
        result = triangular(key, left, mode, right, shape, dtype)
        return laid_out(result, out_sharding, f"random.{caller}")
    target = float_dtype(dtype, caller)
    corners = [("left", left), ("mode", mode), ("right", right)]
    values = [parameter(x, target, caller, name, lossless=True) for name, x in corners]
    sizes = shape_of(shape, caller, *values)
    a, c, b = (spread(x, sizes, caller, name) for x, (name, _) in zip(values, corners, strict=True))
    u = uniform(as_key(key, caller), sizes, wide(target))
    rising = a + sqrt(u * (b - a) * (c - a))
    falling = b - sqrt((1 - u) * (b - a) * (b - c))
    return round_draw(select(u < (c - a) / (b - a), rising, falling), target)


@draw
def multivariate_normal(
    key: Key,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw vectors from a normal distribution.

    Args:
        mean: (..., n).
        cov: (..., n, n), the covariance.
        shape: that of the result without its last axis; by default that to which the leading axes
            broadcast.
        dtype: floating; that of the parameters by default.
        method: how the covariance is factored: ``"cholesky"``, or ``"eigh"`` or ``"svd"`` for one
            that is singular.

    Returns:
        (*shape, n).

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: shapes do not match, or ``method`` is none of these.

    >>> from stretto import random
    >>> import stretto.numpy as snp
    >>> random.multivariate_normal(random.key(0), snp.zeros(2), snp.eye(2), (3,)).shape
    (3, 2)
    """
    caller = "multivariate_normal"
    if out_sharding is not None:
        result = multivariate_normal(key, mean, cov, shape, dtype, method)
        return laid_out(result, out_sharding, f"random.{caller}")
    if method not in ("cholesky", "eigh", "svd"):
        raise ValueError(
            f"random.{caller}: method must be 'cholesky', 'eigh' or 'svd', got {method!r}"
        )
    center, spread_ = (
        as_value(mean, f"random.{caller}", "mean"),
        as_value(cov, f"random.{caller}", "cov"),
    )
    own = [(x.dtype, x.weak_type) for x in (center, spread_)]
    common = inexact_dtype(promote(own, f"random.{caller}")[0])
    target = float_dtype(common if dtype is None else dtype, caller)
    result = promote([(common, False), (target, False)], f"random.{caller}")[0]
    center, spread_ = convert(center, wide(common)), convert(spread_, wide(common))
    n = center.shape[-1] if center.ndim else 0
    if not center.ndim or spread_.shape[-2:] != (n, n):
        raise ValueError(
            f"random.{caller}: expected mean [..., n] and cov [..., n, n], got {center.type} and "
            f"{spread_.type}"
        )
    batch = broadcast_shapes(f"random.{caller}", center.shape[:-1], spread_.shape[:-2])
    sizes = batch if shape is None else static_shape(shape, caller)
    if broadcast_shapes(f"random.{caller}", batch, sizes) != sizes:
        raise ValueError(
            f"random.{caller}: mean {center.type} and cov {spread_.type} do not broadcast to shape "
            f"{sizes}, which is the result's without its last axis"
        )
    if method == "cholesky":
        factor = cholesky(spread_)
    else:
        vectors, values = _factor(spread_, method)
        factor = vectors * sqrt(expand_dims(values, (values.ndim - 1,)))
    x = normal(as_key(key, caller), (*sizes, n), wide(target))
    moved = squeeze(factor @ expand_dims(x, (x.ndim,)), (len(sizes) + 1,))
    return round_draw(center + moved, result)


def _factor(cov: Array, method: str) -> tuple[Array, Array]:
    if method == "svd":
        return svd(cov)[:2]
    values, vectors = eigh(cov)
    return vectors, values


@draw
def orthogonal(
    key: Key,
    n: int,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw matrices with orthonormal rows or columns, all equally likely.

    Args:
        n: the number of rows.
        shape: that of the result without its last two axes.
        dtype: floating, or complex for unitary matrices; the default float by default.
        m: the number of columns; ``n`` by default.

    Returns:
        (*shape, n, m).

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is neither floating nor complex.
        ValueError: a size is negative.

    Source: Mezzadri, "How to generate random matrices from the classical compact groups", Notices
    of the AMS 54, 2007.

    >>> from stretto import random
    >>> import stretto.numpy as snp
    >>> q = random.orthogonal(random.key(0), 3)
    >>> snp.allclose(q @ q.T, snp.eye(3), atol=1e-5)
    Array(True, dtype=bool)
    """
    caller = "orthogonal"
    if out_sharding is not None:
        return laid_out(orthogonal(key, n, shape, dtype, m), out_sharding, f"random.{caller}")
    target = scalar_dtype(float) if dtype is None else as_dtype(dtype)
    if kind_of(target) not in ("float", "complex"):
        raise TypeError(f"random.{caller}: dtype must be floating or complex, got {target}")
    (rows,) = static_shape(n, caller)
    (columns,) = (rows,) if m is None else static_shape(m, caller)
    sizes = static_shape(shape, caller)
    z = normal(as_key(key, caller), (*sizes, max(rows, columns), min(rows, columns)), wide(target))
    q, r = qr(z)
    # With the diagonal of r made positive, q is that of no particular algorithm.
    x = q * expand_dims(sign(r.diagonal(axis1=-2, axis2=-1)), (len(sizes),))
    return round_draw(matrix_transpose(x) if rows < columns else x, target)
