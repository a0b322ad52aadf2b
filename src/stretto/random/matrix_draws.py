"""Draws of vectors and matrices whose elements depend on each other.

By factorizations of ``stretto.numpy.linalg``.
"""

from __future__ import annotations

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import as_dtype, inexact_dtype, kind_of, promote, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, ShapeLike, ShardingLike
from stretto._engine.ops.arithmetic import sign
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.exponential import sqrt
from stretto._engine.ops.layout import expand_dims, laid_out, squeeze
from stretto.numpy.linalg import cholesky, eigh, qr, svd
from stretto.numpy.manipulation import matrix_transpose
from stretto.random.distributions import normal
from stretto.random.draw_arguments import draw, float_dtype, rounded, static_shape, wide
from stretto.random.keys import checked

__all__ = ["multivariate_normal", "orthogonal"]


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
        vectors, values = _factored(spread_, method)
        factor = vectors * sqrt(expand_dims(values, (values.ndim - 1,)))
    x = normal(checked(key, caller), (*sizes, n), wide(target))
    moved = squeeze(factor @ expand_dims(x, (x.ndim,)), (len(sizes) + 1,))
    return rounded(center + moved, result)


def _factored(cov: Array, method: str) -> tuple[Array, Array]:
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
    z = normal(checked(key, caller), (*sizes, max(rows, columns), min(rows, columns)), wide(target))
    q, r = qr(z)
    # With the diagonal of r made positive, q is that of no particular algorithm.
    x = q * expand_dims(sign(r.diagonal(axis1=-2, axis2=-1)), (len(sizes),))
    return rounded(matrix_transpose(x) if rows < columns else x, target)
