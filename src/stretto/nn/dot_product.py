"""Attention in the form of ``jax.nn``: heads after positions, masks by length and window.

The work is done in ``functional.attention``.
"""

from __future__ import annotations

import math
from typing import Literal, overload

import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import ArrayType
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import reshape
from stretto.nn.functional.arguments import as_float
from stretto.nn.functional.attention import attend
from stretto.numpy.normalized import logsumexp

__all__ = ["dot_product_attention"]

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


def _allowed(
    shape: tuple[int, int],
    mask: Array | None,
    is_causal: bool,
    lengths: tuple[ArrayLike | None, ArrayLike | None],
    window: int | tuple[int, int] | None,
) -> Array | None:
    """What each query may attend to, as one mask, or None."""
    row, column = (broadcasted_iota(snp.int32, shape, d) for d in (0, 1))
    parts = []
    if mask is not None:
        parts.append(mask)
    if is_causal:
        parts.append(snp.greater_equal(row, column))
    if window is not None:
        before, after = window if isinstance(window, tuple) else (window, window)
        parts.append(snp.less_equal(row - column, before) & snp.less_equal(column - row, after))
    for length, place, name in zip(
        lengths, (row, column), ("query_seq_lengths", "key_value_seq_lengths"), strict=True
    ):
        if length is not None:
            n = as_value(length, _CALLER, name)
            if n.ndim != 1:
                raise ValueError(
                    f"{_CALLER}: expected {name} (B,), a length for each example, got {n.type}"
                )
            parts.append(snp.less(place, reshape(n, (n.size, 1, 1, 1))))
    out = None
    for part in parts:
        out = part if out is None else snp.logical_and(out, part)
    return out


@overload
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
    return_residual: Literal[False] = False,
) -> Array: ...
@overload
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
    return_residual: Literal[True],
) -> tuple[Array, Array]: ...
@overload
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
) -> Tree: ...
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

    >>> import stretto as st, stretto.numpy as snp
    >>> q, k = snp.zeros((1, 1, 1, 2)), snp.ones((1, 3, 1, 2))
    >>> v = snp.array([0.0, 3.0, 6.0]).reshape(1, 3, 1, 1) * snp.ones(2)
    >>> st.nn.dot_product_attention(q, k, v)[0, 0, 0]
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
    allowed = _allowed(shape, shown, is_causal, lengths, local_window_size)
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
    """The logarithm of the sum of the exponentials of each query's scores."""
    groups = k.shape[1]
    lines = reshape(q, (q.shape[0], groups, q.shape[1] // groups * q.shape[2], q.shape[3]))
    scores = matmul(lines, snp.swapaxes(k, -1, -2))
    scores = reshape(scores, (*q.shape[:3], k.shape[-2]))
    if allowed is not None:
        hide = allowed.dtype == snp.bool_
        scores = snp.where(allowed, scores, -math.inf) if hide else scores + allowed
    return logsumexp(scores, -1)
