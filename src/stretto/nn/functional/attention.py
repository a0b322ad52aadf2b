"""Attention: weighted means of values, by how well their keys fit the queries; also of many heads.

Names, arguments and defaults are those of PyTorch's ``torch.nn.functional``; as ``key`` is taken
here, the key of dropout is ``dropout_key``. Attention is two batched products with a softmax
between them, whose division comes after the second product, where there is less to divide.
"""

from __future__ import annotations

import math
from typing import Any

import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import exceeds
from stretto._engine.core.types import ArrayType, inexact_dtype, is_complex, is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Key
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.comparison import zeros_like
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import reshape, transpose
from stretto._engine.ops.reducing.reduce import widened
from stretto._engine.ops.shape import concatenate, pad, slice_in_dim
from stretto.nn.functional.affine import linear
from stretto.nn.functional.checks import as_float, key_or_next, probability
from stretto.nn.functional.dropouts import dropout


def causal(queries: int, keys: int) -> Array:
    """Say of (queries, keys) which keys do not come after the query, both counted from 0."""
    shape = (queries, keys)
    row, column = (broadcasted_iota(snp.int32, shape, d) for d in (0, 1))
    return snp.greater_equal(row, column)


def _exponentials(scores: Array, mask: Array | None) -> tuple[Array, Array]:
    """Return unnormalized weights of keys, and their sums over the last axis; 1 for a sum of 0.

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
    """Return weighted means, (..., L, V), weights, (..., L, S), and the divisors of the weights.

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
    """Return the mask as a value, or None."""
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
            f"(added to the scores), got {mask.type}"
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


def _slices(x: ArrayLike, sizes: tuple[int, ...], axis: int) -> list[Array]:
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [slice_in_dim(x, end - n, end, axis=axis) for end, n in zip(ends, sizes, strict=True)]


def _project_together(
    query: Array,
    key: Array,
    value: Array,
    weight: Array,
    bias: ArrayLike | None,
    same: tuple[bool, bool],
) -> list[Array]:
    """Multiply queries, keys, values by one weight (3 E, E): at once where inputs are the same."""
    e = weight.shape[0] // 3
    if all(same):
        return _slices(linear(query, weight, bias), (e, e, e), query.ndim - 1)
    of_keys_and_values = same[1]
    sizes = (e, 2 * e) if of_keys_and_values else (e, e, e)
    weights = _slices(weight, sizes, 0)
    biases = [None] * 3 if bias is None else _slices(bias, sizes, 0)
    inputs = (query, key) if of_keys_and_values else (query, key, value)
    out = [linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=False)]
    return [out[0], *_slices(out[1], (e, e), key.ndim - 1)] if of_keys_and_values else out


def _mask_of_heads(
    caller: str, name: str, mask: ArrayLike, shapes: tuple[tuple[int, ...], ...]
) -> Array:
    value = as_value(mask, caller, name)
    if value.dtype != snp.bool_ and (not is_inexact(value.dtype) or is_complex(value.dtype)):
        raise TypeError(
            f"{caller}: {name} must be boolean (True for keys to leave out) or floating (added to "
            f"the scores), got {value.type}"
        )
    if value.shape not in shapes:
        expected = " or ".join(map(str, shapes))
        raise ValueError(f"{caller}: expected {name} of shape {expected}, got {value.type}")
    return value


def _join_masks(masks: list[Array], extra: int) -> Array | None:
    """Join masks: True for keys to attend to, or floats to add; ``extra`` more keys are allowed."""
    if not masks:
        return None
    masks = [of_rank(m, max(m.ndim for m in masks)) for m in masks]
    if all(m.dtype == snp.bool_ for m in masks):
        out = snp.logical_not(masks[0])
        for m in masks[1:]:
            out = snp.logical_and(out, snp.logical_not(m))
    else:
        added = [snp.where(m, -math.inf, 0.0) if m.dtype == snp.bool_ else m for m in masks]
        out = added[0] if len(added) == 1 else added[0] + added[1]
    if not extra:
        return out
    allowed = True if out.dtype == snp.bool_ else 0.0
    return pad(out, allowed, [(0, 0, 0)] * (out.ndim - 1) + [(0, extra, 0)])


def _heads(x: Array, heads: int, batch_first: bool) -> Array:
    """Rearrange (N, L, E) or (L, N, E) to (N, heads, L, E / heads)."""
    x = reshape(x, (*x.shape[:2], heads, x.shape[2] // heads))
    return transpose(x, (0, 2, 1, 3) if batch_first else (1, 2, 0, 3))


def _check_heads(
    caller: str, query: Array, key: Array, value: Array, features: tuple[int, int, int], axis: int
) -> None:
    got = f"query {query.type}, key {key.type}, value {value.type}"
    if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
        raise ValueError(f"{caller}: expected query, key and value all of rank 3 or 2, got {got}")
    if (query.shape[-1], key.shape[-1], value.shape[-1]) != features:
        raise ValueError(
            f"{caller}: expected sizes of the last axes embed_dim={features[0]}, "
            f"kdim={features[1]}, vdim={features[2]}, got {got}"
        )
    batch = 1 - axis
    if key.shape[:-1] != value.shape[:-1] or (
        query.ndim == 3 and query.shape[batch] != key.shape[batch]
    ):
        order = "(batch, length, features)" if axis else "(length, batch, features)"
        raise ValueError(
            f"{caller}: expected key and value of one length, and one batch size, as {order}; got "
            f"{got}"
        )


def _with_biases(
    caller: str,
    both: tuple[Array, Array],
    biases: tuple[ArrayLike | None, ArrayLike | None],
    one: tuple[int, ...],
    axis: int,
) -> list[Array]:
    """Return keys and values, each with its bias as one more along the axis."""
    out = []
    for name, x, bias in zip(("bias_k", "bias_v"), both, biases, strict=True):
        if bias is None:
            raise ValueError(f"{caller}: bias_k and bias_v go together, and {name} is None")
        out.append(concatenate([x, snp.broadcast_to(bias, one)], axis))
    return out


def multi_head_attention_forward(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: ArrayLike | None,
    in_proj_bias: ArrayLike | None,
    bias_k: ArrayLike | None,
    bias_v: ArrayLike | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: ArrayLike,
    out_proj_bias: ArrayLike | None,
    training: bool = True,
    key_padding_mask: ArrayLike | None = None,
    need_weights: bool = True,
    attn_mask: ArrayLike | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: ArrayLike | None = None,
    k_proj_weight: ArrayLike | None = None,
    v_proj_weight: ArrayLike | None = None,
    *,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    batch_first: bool = False,
    dropout_key: Key | None = None,
) -> tuple[Array, Array | None]:
    """Project, attend with several heads, and project their outputs.

    Inputs are (length, batch, features), with ``batch_first`` (batch, length, features), or without
    the batch.

    Args:
        query: (L, N, E).
        key: (S, N, kdim).
        value: (S, N, vdim).
        embed_dim_to_check: E.
        num_heads: the number of heads, a divisor of E.
        in_proj_weight: (3 E, E); None with ``use_separate_proj_weight``.
        in_proj_bias: (3 E,), or None.
        bias_k: (1, 1, E), an additional key, or None.
        bias_v: (1, 1, E), its value, or None.
        add_zero_attn: whether there is an additional key and value of zeros.
        dropout_p: the probability with which weights, those returned as well, are dropped while
            ``training``.
        out_proj_weight: (E, E).
        out_proj_bias: (E,), or None.
        training: whether there is dropout.
        key_padding_mask: (N, S), True for keys to leave out, or floats that are added to scores.
        need_weights: whether the weights are returned.
        attn_mask: (L, S) or (N num_heads, L, S), of the same meaning.
        use_separate_proj_weight: whether the next three stand in place of ``in_proj_weight``.
        q_proj_weight: (E, E).
        k_proj_weight: (E, kdim).
        v_proj_weight: (E, vdim).
        average_attn_weights: whether the weights returned are the mean over heads.
        is_causal: leaves out keys after the query; beside an ``attn_mask`` it only says that this
            does so.
        batch_first: whether the batch is the first axis.
        dropout_key: the key of dropout; by default the ambient stream's next one.

    Returns:
        The outputs, in the shape of ``query``; and the weights (N, L, S), or (N, num_heads, L, S)
        if not averaged, or None if not needed.

    Raises:
        RuntimeError: dropout has no key to draw from.
        TypeError: a mask is neither boolean nor floating.
        ValueError: shapes do not fit, or only one of ``bias_k`` and ``bias_v`` is given.

    As PyTorch's function of this name. Source: Vaswani et al., Attention Is All You Need, 2017.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, eye = snp.ones((3, 2)), snp.eye(2)
    >>> weight = snp.concatenate([eye, eye, 2 * eye])
    >>> out, weights = st.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, weight, None, None, None, False, 0.0, eye, None
    ... )
    >>> out
    Array([[2., 2.],
           [2., 2.],
           [2., 2.]], dtype=float32)
    >>> weights.shape
    (3, 3)
    """
    return project_and_attend("multi_head_attention_forward", **locals())


def project_and_attend(
    caller: str,
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: ArrayLike | None,
    in_proj_bias: ArrayLike | None,
    bias_k: ArrayLike | None,
    bias_v: ArrayLike | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: ArrayLike,
    out_proj_bias: ArrayLike | None,
    training: bool,
    key_padding_mask: ArrayLike | None,
    need_weights: bool,
    attn_mask: ArrayLike | None,
    use_separate_proj_weight: bool,
    q_proj_weight: ArrayLike | None,
    k_proj_weight: ArrayLike | None,
    v_proj_weight: ArrayLike | None,
    *,
    average_attn_weights: bool,
    is_causal: bool,
    batch_first: bool,
    dropout_key: Key | None,
) -> tuple[Array, Array | None]:
    """Compute ``multi_head_attention_forward`` for a caller, whom its messages name."""
    same = (query is key, key is value)
    query, key, value = (
        as_float(x, caller, name) for x, name in ((query, "query"), (key, "key"), (value, "value"))
    )
    p = probability(dropout_p, caller, "dropout_p") if training else 0.0
    e, heads = embed_dim_to_check, num_heads
    if heads < 1 or e % heads:
        raise ValueError(f"{caller}: embed_dim {e} is not a multiple of num_heads {heads}")
    separate: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
    features: Any = tuple(w.shape[-1] for w in separate) if use_separate_proj_weight else (e, e, e)
    add_batch_axis, axis = query.ndim == 3, 1 if batch_first and query.ndim == 3 else 0
    _check_heads(caller, query, key, value, features, axis)
    if use_separate_proj_weight:
        biases = [None] * 3 if in_proj_bias is None else _slices(in_proj_bias, (e, e, e), 0)
        q, k, v = map(linear, (query, key, value), separate, biases)
    else:
        packed: Any = in_proj_weight
        q, k, v = _project_together(query, key, value, packed, in_proj_bias, same)
    if not add_batch_axis:
        axis, batch_first = 1, True
        q, k, v = (reshape(x, (1, *x.shape)) for x in (q, k, v))
    batch, queries, keys = q.shape[1 - axis], q.shape[axis], k.shape[axis]

    masks = []
    if attn_mask is not None:
        shapes = ((queries, keys), (batch * heads, queries, keys))
        mask = _mask_of_heads(caller, "attn_mask", attn_mask, shapes)
        full = (batch, heads, queries, keys)
        masks.append(reshape(mask, full) if mask.ndim == 3 else mask)
    elif is_causal:
        masks.append(snp.logical_not(causal(queries, keys)))
    if key_padding_mask is not None:
        shape = (batch, keys) if add_batch_axis else (keys,)
        mask = _mask_of_heads(caller, "key_padding_mask", key_padding_mask, (shape,))
        masks.append(reshape(mask, (batch, 1, 1, keys)))

    if bias_k is not None or bias_v is not None:
        one = (batch, 1, e) if batch_first else (1, batch, e)
        k, v = _with_biases(caller, (k, v), (bias_k, bias_v), one, axis)
    if add_zero_attn:
        zeros = zeros_like(slice_in_dim(k, 0, 1, axis=axis))
        k, v = concatenate([k, zeros], axis), concatenate([v, zeros], axis)
    q, k, v = (_heads(x, heads, batch_first) for x in (q * math.sqrt(heads / e), k, v))
    out, weights, total = attend(
        caller, q, k, v, _join_masks(masks, k.shape[-2] - keys), p, dropout_key
    )
    # (N, heads, L, E / heads) back to the order of the query
    out = transpose(out, (0, 2, 1, 3) if batch_first else (2, 0, 1, 3))
    out = linear(reshape(out, (*out.shape[:2], e)), out_proj_weight, out_proj_bias)
    if not add_batch_axis:
        out = reshape(out, out.shape[1:])
    if not need_weights:
        return out, None
    weights = weights / total
    if average_attn_weights:
        weights = snp.mean(weights, 1)
    weights = convert(weights, out.dtype)
    return out, (weights if add_batch_axis else weights[0])
