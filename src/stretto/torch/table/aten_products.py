"""Products of matrices, convolutions, attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto.nn import functional as F
from stretto.random.streams import next_key
from stretto.torch.slopes import every_greatest, power_norm

_CONVOLUTIONS = (F.conv1d, F.conv2d, F.conv3d)
_TRANSPOSED = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)


def _added(x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """``beta * x + alpha * product``; with a ``beta`` of 0 whatever ``x`` holds does not count."""
    if snp.issubdtype(product.dtype, snp.integer):
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else alpha * product
    if beta == 0:
        return product
    return (x if beta == 1 else beta * x) + product


def _sum_of_products(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, a, b, *, beta=1, alpha=1: _added(x, function(a, b), beta, alpha)


def _convolution(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """The operation that all of PyTorch's convolutions are made of."""
    n = weight.ndim - 2
    stride, padding, dilation, more = [
        tuple(sizes) * n if len(sizes) == 1 else tuple(sizes)
        for sizes in (stride, padding, dilation, output_padding)
    ]
    if not transposed:
        return _CONVOLUTIONS[n - 1](x, weight, bias, stride, padding, dilation, groups)
    return _TRANSPOSED[n - 1](x, weight, bias, stride, padding, more, groups, dilation)


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    drawn = next_key("scaled_dot_product_attention") if dropout_p else None
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, dropout_key=drawn
    )


def _cdist(x: Any, y: Any, p: float = 2.0, compute_mode: int | None = None) -> Any:
    return _distance(x[..., :, None, :] - y[..., None, :, :], p)


def _pdist(x: Any, p: float = 2.0) -> Any:
    """The distances of rows: of the first to all after it, of the second, and so on."""
    first, second = np.triu_indices(x.shape[0], 1)
    return _distance(x[first] - x[second], p)


def _distance(x: Any, p: float) -> Any:
    difference = snp.abs(x)
    if p == 0:
        return snp.sum(difference != 0, -1).astype(x.dtype)
    if p == float("inf"):
        return every_greatest(difference)
    return power_norm(difference, p, -1)


def _grouped(
    x: Any, weights: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """The rows of each group, which end at ``offs``, by the matrix of their group."""
    if x.ndim == 3 and weights.ndim == 3:
        return x @ weights
    group = snp.sum(snp.arange(x.shape[0])[:, None] >= offs[None, :], -1)
    return _by_group(x, weights, group)


def _by_group(x: Any, weights: Any, group: Any) -> Any:
    """Each group's product of all rows, and of it the group's own."""
    out = 0
    for k in range(weights.shape[0]):
        own = snp.where((group == k)[:, None], x, 0)
        out = out + own @ weights[k]
    return out


TABLE: dict[str, Callable[..., Any]] = {
    "aten.addbmm.default": _sum_of_products(lambda a, b: snp.sum(a @ b, 0)),
    "aten.addmm.default": _sum_of_products(snp.matmul),
    "aten.addmv.default": _sum_of_products(snp.matmul),
    "aten.addr.default": _sum_of_products(snp.outer),
    "aten.baddbmm.default": _sum_of_products(snp.matmul),
    "aten.bilinear.default": F.bilinear,
    "aten.bmm.default": snp.matmul,
    "aten.cdist.default": _cdist,
    "aten._cdist_forward.default": _cdist,
    "stretto.cdist.default": _cdist,
    "aten._pdist_forward.default": _pdist,
    "aten.convolution.default": _convolution,
    **{f"aten.conv{n + 1}d.default": f for n, f in enumerate(_CONVOLUTIONS)},
    **{f"aten.conv{n + 1}d.padding": f for n, f in enumerate(_CONVOLUTIONS)},
    "aten.conv_transpose1d.default": F.conv_transpose1d,
    "aten.conv_transpose2d.input": F.conv_transpose2d,
    "aten.conv_transpose3d.input": F.conv_transpose3d,
    "aten.dot.default": snp.dot,
    "aten.einsum.default": lambda equation, operands, path=None: snp.einsum(equation, *operands),
    "aten._grouped_mm.default": _grouped,
    "aten.linear.default": F.linear,
    "aten.matmul.default": snp.matmul,
    "aten.mm.default": snp.matmul,
    "aten.mv.default": snp.matmul,
    "aten.outer.default": snp.outer,
    "aten.scaled_dot_product_attention.default": _attention,
    "aten.vdot.default": snp.vdot,
    "transformers.grouped_mm_fallback.default": _grouped,
}
