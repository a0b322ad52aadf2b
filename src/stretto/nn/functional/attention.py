"""Attention: weighted means of values, by how well their keys fit the queries.

Names, arguments and defaults are those of PyTorch's ``torch.nn.functional``; as ``key`` is taken
here, the key of dropout is ``dropout_key``. Attention is two batched products with a softmax
between them, whose division comes after the second product, where there is less to divide.
"""

from __future__ import annotations

import math

import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import exceeds
from stretto._engine.core.types import ArrayType, inexact_dtype, is_complex, is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Key
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.reduce import widened
from stretto.nn.functional.arguments import as_float
from stretto.nn.functional.checks import key_or_next, probability
from stretto.nn.functional.dropouts import dropout

__all__ = ["scaled_dot_product_attention"]


def causal(queries: int, keys: int) -> Array:
    """Truth values (queries, keys): which keys do not come after the query, both counted from 0."""
    shape = (queries, keys)
    row, column = (broadcasted_iota(snp.int32, shape, d) for d in (0, 1))
    return snp.greater_equal(row, column)


def _exponentials(scores: Array, mask: Array | None) -> tuple[Array, Array]:
    """Unnormalized weights of keys, and their sums over the last axis; 1 for a sum of 0.

    A sum is 0 where a query may attend to nothing, for the largest exponential is 1 elsewhere. To
    add the 1 there, rather than to choose by the sum, leaves exponentials, sum and product with
    the values one kernel of XLA's.
    """
    if mask is not None:
        boolean = mask.dtype == snp.bool_
        scores = snp.where(mask, scores, -math.inf) if boolean else scores + mask
    lowest = None if exceeds(scores.shape[-1], 0) else -math.inf
    top = stop_gradient(snp.max(scores, -1, keepdims=True, initial=lowest))
    nothing = snp.isneginf(top)
    weights = snp.exp(scores - snp.where(nothing, 0.0, top))
    return weights, snp.sum(weights, -1, keepdims=True) + convert(nothing, weights.dtype)


def attend(
    caller: str,
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    p: float,
    key: Key | None,
    *,
    shared: bool = False,
) -> tuple[Array, Array, Array]:
    """The weighted means, (..., L, V), the weights, (..., L, S), and the divisors of the weights.

    The queries are scaled already. The mask is True for keys to attend to, or is added; a query
    that may attend to nothing has weights and derivatives of 0. With ``shared`` axis -3 is heads,
    and each of ``k`` and ``v`` serves several of ``q``.
    """
    dtype = snp.result_type(q, k, v)
    wide = widened(inexact_dtype(dtype))
    queries, keys = q.shape[-2], k.shape[-2]
    heads = q.shape[-3] if shared else 0
    if shared:
        # (..., heads, L, E) to (..., groups, heads / groups * L, E): no key is repeated.
        groups = k.shape[-3]
        q = reshape(q, (*q.shape[:-3], groups, heads // groups * queries, q.shape[-1]))
    scores = matmul(q, snp.swapaxes(k, -1, -2), preferred_element_type=wide)
    grouped = scores.shape
    if shared:
        scores = reshape(scores, (*grouped[:-3], heads, queries, keys))
    weights, total = _exponentials(scores, mask)
    if p:
        weights = dropout(weights, p, key=key_or_next(key, caller))
    narrow = convert(weights, dtype)
    if shared:
        narrow = reshape(narrow, (*weights.shape[:-3], *grouped[-3:]))
    out = matmul(narrow, convert(v, dtype), preferred_element_type=wide)
    if shared:
        out = reshape(out, (*out.shape[:-3], heads, queries, v.shape[-1]))
    return convert(out / total, dtype), weights, total


def _check(caller: str, q: ArrayType, k: ArrayType, v: ArrayType, gqa: bool) -> None:
    shapes = f"query {q}, key {k}, value {v}"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ValueError(f"{caller}: expected query, key and value of rank 2 or more, got {shapes}")
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"{caller}: query and key must have one size of features (the last axis), got {shapes}"
        )
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"{caller}: there must be a value for each key (the axis before the last), got {shapes}"
        )
    if not gqa:
        broadcast_shapes(caller, q.shape[:-2], k.shape[:-2], v.shape[:-2])
    elif (
        min(q.ndim, k.ndim, v.ndim) < 3
        or k.shape[-3] != v.shape[-3]
        or (not k.shape[-3] or q.shape[-3] % k.shape[-3])
    ):
        raise ValueError(
            f"{caller}: with enable_gqa the heads of query (the third axis from the end) must be a "
            f"multiple of those of key and value, got {shapes}"
        )


def _mask(
    caller: str, attn_mask: ArrayLike | None, is_causal: bool, queries: int, keys: int
) -> Array | None:
    """The mask as a value, or None."""
    if is_causal:
        if attn_mask is not None:
            raise ValueError(
                f"{caller}: give attn_mask or is_causal, not both; a causal attn_mask is "
                f"snp.tril(snp.ones(({queries}, {keys}), bool))"
            )
        return causal(queries, keys)
    if attn_mask is None:
        return None
    mask = as_value(attn_mask, caller, "attn_mask")
    if mask.dtype != snp.bool_ and (not is_inexact(mask.dtype) or is_complex(mask.dtype)):
        raise TypeError(
            f"{caller}: attn_mask must be boolean (True for keys to attend to) or floating "
            "(added to "
            f"the scores), got {mask.type}"
        )
    return mask


def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    dropout_key: Key | None = None,
) -> Array:
    """Average values by how well their keys fit the queries.

    The output is ``softmax(query @ key.T * scale + mask) @ value``. A query that may attend to
    nothing gives 0. Scores and sums are at least float32.

    Args:
        query: (..., L, E); leading axes broadcast.
        key: (..., S, E).
        value: (..., S, V).
        attn_mask: what broadcasts to (..., L, S): True for keys to attend to, or floats that are
            added.
        dropout_p: the probability with which weights are dropped, always (pass 0 when not
            training).
        is_causal: whether keys that come after the query are hidden.
        scale: the factor of the scores, ``1 / sqrt(E)`` by default.
        enable_gqa: whether axis -3 is heads, several of ``query`` sharing one of ``key`` and
            ``value``.
        dropout_key: the key of dropout; by default the ambient stream's next one.

    Returns:
        (..., L, V).

    Raises:
        RuntimeError: dropout has no key to draw from.
        TypeError: ``attn_mask`` is neither boolean nor floating, or ``dropout_p`` is not a number.
        ValueError: shapes do not fit, ``attn_mask`` comes with ``is_causal``, or ``dropout_p`` is
            not from 0 to 1.

    As PyTorch's ``nn.functional.scaled_dot_product_attention``. Source: Vaswani et al., Attention
    Is All You Need, 2017; Ainslie et al., GQA, 2023.

    >>> import stretto as st, stretto.numpy as snp
    >>> q, k, v = snp.zeros((1, 2)), snp.ones((3, 2)), snp.array([[0.0], [3.0], [6.0]])
    >>> st.nn.functional.scaled_dot_product_attention(q, k, v)
    Array([[3.]], dtype=float32)
    >>> st.nn.functional.scaled_dot_product_attention(q, k, v, snp.array([True, True, False]))
    Array([[1.5]], dtype=float32)
    """
    caller = "scaled_dot_product_attention"
    q, k, v = (
        as_float(query, caller, "query"),
        as_float(key, caller, "key"),
        as_float(value, caller, "value"),
    )
    p = probability(dropout_p, caller, "dropout_p")
    _check(caller, q.type, k.type, v.type, enable_gqa)
    mask = _mask(caller, attn_mask, is_causal, q.shape[-2], k.shape[-2])
    q = q * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    return attend(caller, q, k, v, mask, p, dropout_key, shared=enable_gqa)[0]
