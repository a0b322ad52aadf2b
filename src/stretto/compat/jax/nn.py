"""``jax.nn``: its functions, with JAX's names, arguments, defaults and derivatives at corners.

Where PyTorch's function of ``stretto.nn.functional`` computes the same, it is called.
``initializers`` has ``jax.nn.initializers``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import ArrayType
from stretto._engine.core.typing import Array, ArrayLike, Axes, DTypeLike, Tree
from stretto._engine.ops.broadcast import canonical_axes
from stretto._engine.ops.comparison import eq, full_like, select, zeros_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import as_inexact, rounded_once
from stretto._engine.ops.exponential import log, rsqrt, sqrt
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import reshape
from stretto.nn import functional as F
from stretto.nn.functional.activations import indicator
from stretto.nn.functional.attention import attend
from stretto.nn.functional.checks import as_float
from stretto.numpy.creation import listed
from stretto.numpy.elementary import tanh
from stretto.numpy.logic import isfinite, mask_of_where
from stretto.numpy.normalized import log1mexp, log_softmax, logsumexp, softmax, softplus
from stretto.numpy.statistics import mean_about_first

__all__ = ["celu", "dot_product_attention", "elu", "gelu", "glu", "hard_sigmoid",
           "hard_silu", "hard_swish", "hard_tanh", "identity", "leaky_relu", "log1mexp",
           "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish", "one_hot",
           "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax",
           "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "squareplus",
           "standardize", "swish", "tanh"]  # fmt: skip


# Computed as PyTorch's


def identity(x: ArrayLike) -> Array:
    """Return ``x`` itself, as an array."""
    return as_value(x, "identity")


def relu(x: ArrayLike) -> Array:
    """Take ``max(x, 0)``; the derivative at 0 is 0."""
    return F.relu(as_value(x, "relu"))


def relu6(x: ArrayLike) -> Array:
    """Take ``min(max(x, 0), 6)``; the derivative at 0 and 6 is 0."""
    return F.relu6(as_value(x, "relu6"))


def sigmoid(x: ArrayLike) -> Array:
    """Take ``1 / (1 + exp(-x))``."""
    return F.sigmoid(as_value(x, "sigmoid"))


def log_sigmoid(x: ArrayLike) -> Array:
    """Take ``log(sigmoid(x))``, exact for large negative elements."""
    return F.logsigmoid(as_value(x, "log_sigmoid"))


def soft_sign(x: ArrayLike) -> Array:
    """Take ``x / (1 + |x|)``."""
    return F.softsign(as_value(x, "soft_sign"))


def silu(x: ArrayLike) -> Array:
    """Take ``x * sigmoid(x)``, also called swish."""
    return F.silu(as_value(x, "silu"))


def mish(x: ArrayLike) -> Array:
    """Take ``x * tanh(softplus(x))``."""
    return F.mish(as_value(x, "mish"))


def selu(x: ArrayLike) -> Array:
    """Take ``elu``, scaled so that deep networks keep mean 0 and variance 1."""
    return F.selu(as_value(x, "selu"))


def hard_sigmoid(x: ArrayLike) -> Array:
    """Take ``relu6(x + 3) / 6``."""
    return F.hardsigmoid(as_value(x, "hard_sigmoid"))


def hard_silu(x: ArrayLike) -> Array:
    """Take ``x * hard_sigmoid(x)``, also called hard swish."""
    return F.hardswish(as_value(x, "hard_silu"))


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Keep positive elements, and take ``alpha * (exp(x) - 1)`` of the others."""
    return F.elu(as_value(x, "elu"), alpha)


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Keep positive elements, and take ``alpha * (exp(x / alpha) - 1)`` of the others."""
    return F.celu(as_value(x, "celu"), alpha)


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Multiply each element by the normal distribution's cumulative function, or nearly so."""
    return F.gelu(as_value(x, "gelu"), "tanh" if approximate else "none")


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Multiply the first half along an axis by ``sigmoid`` of the second half."""
    return F.glu(as_value(x, "glu"), axis)


hard_swish, softsign, swish = hard_silu, soft_sign, silu


# Of JAX's own meaning


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """Multiply negative elements by a slope; at 0 the derivative is 1, and PyTorch's the slope."""
    x = as_inexact(x, "leaky_relu")
    return choose(snp.greater_equal(x, 0), x, x * negative_slope)


def hard_tanh(x: ArrayLike) -> Array:
    """Keep each element between -1 and 1; the derivative there is 1, where PyTorch's is 0."""
    x = as_value(x, "hard_tanh")
    inside = select(snp.less(x, -1), full_like(x, -1), x)
    return select(snp.greater(x, 1), full_like(x, 1), inside)


@rounded_once
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Take ``(x + sqrt(x**2 + b)) / 2`` of each element.

    Source: Barron, Squareplus: A Softplus-Like Algebraic Rectifier, 2021.
    """
    x = as_inexact(x, "squareplus")
    # (x + r) / 2 = max(x, 0) + b / 2 (r + |x|), which keeps its digits where r is nearly |x|
    root, zero = sqrt(x * x + b), eq(x, zeros_like(x))
    size = choose(zero, 1.0, choose(snp.less(x, 0), -x, x))
    away = choose(snp.less(x, 0), 0.0, x) + b / (2 * (root + size))
    return choose(zero, (x + root) * 0.5, away)


@rounded_once
def sparse_plus(x: ArrayLike) -> Array:
    """Take 0 up to -1, ``x`` from 1 on, and ``(x + 1)² / 4`` between them.

    Source: Martins and Astudillo, From Softmax to Sparsemax, 2016.
    """
    x = as_inexact(x, "sparse_plus")
    curve = (x + 1) * (x + 1) / 4
    return choose(snp.less_equal(x, -1), 0.0, choose(snp.greater_equal(x, 1), x, curve))


def sparse_sigmoid(x: ArrayLike) -> Array:
    """Take 0 up to -1, 1 from 1 on, and ``(x + 1) / 2`` between: the slope of ``sparse_plus``."""
    x = as_inexact(x, "sparse_sigmoid")
    return choose(snp.less_equal(x, -1), 0.0, choose(snp.greater_equal(x, 1), 1.0, (x + 1) / 2))


@rounded_once
def logmeanexp(
    x: ArrayLike, axis: Axes | None = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """Take ``log(mean(exp(x)))`` over axes, without overflow."""
    x = as_inexact(x, "logmeanexp")
    axes = canonical_axes(axis, x.ndim, "logmeanexp")
    mask = None if where is None else mask_of_where(where, "logmeanexp")
    total = logsumexp(x, axes, where=mask, keepdims=keepdims)
    count = snp.sum(full_like(x, 1), axes, keepdims=keepdims, where=mask)
    return total - log(count)


@rounded_once
def standardize(
    x: ArrayLike,
    axis: Axes = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "stable",
) -> Array:
    """Take ``(x - mean) / sqrt(variance + epsilon)``, by default with those of ``x`` over ``axis``.

    Args:
        x: an array of any shape; integers become floats.
        axis: the axes of mean and variance; all for None.
        mean: the mean, which broadcasts to ``x``.
        variance: the variance, which broadcasts to ``x``.
        epsilon: what is added to the variance.
        where: boolean, which elements count; others that are not finite stay as they are.
        algorithm: how to find the variance: ``"stable"`` averages ``(x - mean)**2``; ``"fast"``
            (JAX's default) subtracts ``mean**2`` from the average of ``x**2``, which cancels where
            the mean is much greater than the deviation, and is the same only with the mean of ``x``
            itself.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``where`` is not boolean.
        ValueError: ``algorithm`` is unknown, or an axis is out of bounds.

    As ``jax.nn.standardize``.

    >>> import stretto as st
    >>> from stretto.compat.jax.nn import standardize
    >>> standardize(st.numpy.array([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    x = finite = as_inexact(x, "standardize")
    axes = canonical_axes(axis, x.ndim, "standardize")
    mask = safe = None
    if where is not None:
        # What the mask leaves out may be NaN or infinite: it stays, and derivatives do not see it.
        mask = mask_of_where(where, "standardize")
        safe = mask | isfinite(x)
        finite = choose(safe, x, 0)
    center: Any = mean
    if mean is None and mask is None:
        center = mean_about_first(finite, axes)
    elif mean is None:
        center = snp.mean(finite, axes, keepdims=True, where=mask)
    spread: Any = variance
    if spread is None and algorithm == "stable":
        spread = snp.mean((finite - center) ** 2, axes, keepdims=True, where=mask)
    elif spread is None:
        square = snp.mean(finite * finite, axes, keepdims=True, where=mask)
        spread = maximum(square - center * center, zeros_like(square))
    out = (finite - center) * rsqrt(as_inexact(spread, "standardize", "variance") + epsilon)
    return out if safe is None else choose(safe, out, x)


def one_hot(
    x: ArrayLike | Sequence[Any], num_classes: int, *, dtype: DTypeLike = float, axis: int = -1
) -> Array:
    """Turn each index into a vector along a new axis: 1 at it; nowhere, if it is out of bounds."""
    return indicator(listed(x, "one_hot", "x"), num_classes, dtype, axis)


# Attention

_CALLER = "dot_product_attention"


def _check(q: ArrayType, k: ArrayType, v: ArrayType) -> None:
    if (
        q.ndim not in (3, 4)
        or not q.ndim == k.ndim == v.ndim
        or k.shape != v.shape
        or q.shape[-1] != k.shape[-1]
        or q.shape[:-3] != k.shape[:-3]
        or not k.shape[-2]
        or q.shape[-2] % k.shape[-2]
    ):
        raise ValueError(
            f"{_CALLER}: expected query (B, T, N, H), key and value (B, S, K, H), where K divides "
            f"N, all with or without B; got {q}, {k}, {v}"
        )


def _mask_of(
    shape: tuple[int, int],
    mask: Array | None,
    is_causal: bool,
    lengths: tuple[ArrayLike | None, ArrayLike | None],
    window: int | tuple[int, int] | None,
) -> Array | None:
    """Return what each query may attend to, as one mask, or None."""
    row, column = (broadcasted_iota(snp.int32, shape, d) for d in (0, 1))
    parts = []
    if mask is not None:
        parts.append(mask)
    if is_causal:
        parts.append(snp.greater_equal(row, column))
    if window is not None:
        before, after = window if isinstance(window, tuple) else (window, window)
        parts.append(snp.less_equal(row - column, before) & snp.less_equal(column - row, after))
    for length, position, name in zip(
        lengths, (row, column), ("query_seq_lengths", "key_value_seq_lengths"), strict=True
    ):
        if length is not None:
            n = as_value(length, _CALLER, name)
            if n.ndim != 1:
                raise ValueError(
                    f"{_CALLER}: expected {name} (B,), a length for each example, got {n.type}"
                )
            parts.append(snp.less(position, reshape(n, (n.size, 1, 1, 1))))
    out = None
    for part in parts:
        out = part if out is None else snp.logical_and(out, part)
    return out


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Tree:
    """Average values by how well their keys fit the queries, head by head.

    The output is ``softmax(query @ key.T * scale + bias) @ value``. A query that may attend to
    nothing gives 0.

    Args:
        query: (B, T, N, H), or without B.
        key: (B, S, K, H), or without B; each of K heads serves N / K of ``query``.
        value: (B, S, K, H), or without B.
        bias: floats that are added to scores; what broadcasts to (B, N, T, S).
        mask: booleans, True for keys to attend to; what broadcasts to (B, N, T, S).
        scale: the factor of the scores, 1 / √H by default.
        is_causal: whether keys that come after the query are hidden.
        query_seq_lengths: how many queries of each example count, (B,).
        key_value_seq_lengths: how many keys of each example count, (B,).
        local_window_size: how far keys may be from the query: a number, or (before, after).
        implementation: None or ``"xla"``.
        return_residual: whether to return the logarithms of the sums of exponentials as well.

    Returns:
        (B, T, N, H), or without B; with ``return_residual`` also the logarithms (B, T, N).

    Raises:
        TypeError: ``mask`` is not boolean.
        ValueError: shapes do not fit, or ``implementation`` is unknown.

    As ``jax.nn.dot_product_attention``. Source: Vaswani et al., Attention Is All You Need, 2017.

    >>> import stretto.numpy as snp
    >>> from stretto.compat.jax.nn import dot_product_attention
    >>> q, k = snp.zeros((1, 1, 1, 2)), snp.ones((1, 3, 1, 2))
    >>> v = snp.array([0.0, 3.0, 6.0]).reshape(1, 3, 1, 1) * snp.ones(2)
    >>> dot_product_attention(q, k, v)[0, 0, 0]
    Array([3., 3.], dtype=float32)
    """
    if implementation not in (None, "xla"):
        raise ValueError(f"{_CALLER}: implementation must be None or 'xla', got {implementation!r}")
    q, k, v = (
        as_float(x, _CALLER, name) for x, name in ((query, "query"), (key, "key"), (value, "value"))
    )
    _check(q.type, k.type, v.type)
    single = q.ndim == 3
    if single:
        q, k, v = (reshape(x, (1, *x.shape)) for x in (q, k, v))
    shown = None if mask is None else as_value(mask, _CALLER, "mask")
    if shown is not None and shown.dtype != snp.bool_:
        raise TypeError(f"{_CALLER}: mask must be boolean, got {shown.type}; floats go into bias")
    q, k, v = (snp.swapaxes(x, 1, 2) for x in (q, k, v))
    q = q * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    shape = (q.shape[-2], k.shape[-2])
    lengths = (query_seq_lengths, key_value_seq_lengths)
    allowed = _mask_of(shape, shown, is_causal, lengths, local_window_size)
    if bias is not None:
        bias = as_float(bias, _CALLER, "bias")
        allowed = bias if allowed is None else snp.where(allowed, bias, -math.inf)
    out, _, _ = attend(_CALLER, q, k, v, allowed, 0.0, None, shared=True)
    out = snp.swapaxes(out, 1, 2)
    out = out[0] if single else out
    if not return_residual:
        return out
    residual = snp.swapaxes(_log_sums(q, k, allowed), 1, 2)
    return out, residual[0] if single else residual


def _log_sums(q: Array, k: Array, allowed: Array | None) -> Array:
    """Return the logarithm of the sum of the exponentials of each query's scores."""
    groups = k.shape[1]
    lines = reshape(q, (q.shape[0], groups, q.shape[1] // groups * q.shape[2], q.shape[3]))
    scores = matmul(lines, snp.swapaxes(k, -1, -2))
    scores = reshape(scores, (*q.shape[:3], k.shape[-2]))
    if allowed is not None:
        hide = allowed.dtype == snp.bool_
        scores = snp.where(allowed, scores, -math.inf) if hide else scores + allowed
    return logsumexp(scores, -1)


def __dir__() -> list[str]:
    return __all__


exports(__name__)
