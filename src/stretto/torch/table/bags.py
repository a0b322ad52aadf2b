"""Rows of a table of weights, reduced in bags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stretto.numpy as snp
from stretto import lax

__all__ = ["TABLE"]

_SUM, _MEAN, _MAX = 0, 1, 2


def _embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """The sums, means or maxima of bags that begin at ``offsets``; an empty one is 0.

    What PyTorch keeps beside them for its backward pass, of sizes that go by how it computed them,
    is None.
    """
    if scale_grad_by_freq:
        raise NotImplementedError(
            "embedding_bag: gradients divided by how often an index occurs are not supported"
        )
    starts = offsets[:-1] if include_last_offset else offsets
    bag = snp.sum(snp.arange(indices.shape[0])[:, None] >= starts[None, :], -1) - 1
    counts = indices != padding_idx if padding_idx >= 0 else snp.ones(indices.shape, bool)
    shape = (starts.shape[0], weight.shape[1])
    rows = weight[indices]
    if mode == _MAX:
        return _greatest(rows, bag, counts, shape), None, None, None
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    out = snp.zeros(shape, rows.dtype).at[bag].add(snp.where(counts[:, None], rows, 0))
    if mode == _MEAN:
        many = snp.zeros(shape[0], snp.int32).at[bag].add(counts.astype(snp.int32))
        out = out / snp.maximum(many, 1)[:, None]
    return out, None, None, None


def _greatest(rows: Any, bag: Any, counts: Any, shape: tuple[int, int]) -> Any:
    """The greatest element of each bag and column: the first of equal ones, as is its slope."""
    n = rows.shape[0]
    still = snp.where(counts[:, None], lax.stop_gradient(rows), -snp.inf)
    most = snp.full(shape, -snp.inf, rows.dtype).at[bag].max(still)
    here = counts[:, None] & (still == most[bag])
    places = snp.where(here, snp.arange(n)[:, None], n)
    first = snp.full(shape, n, places.dtype).at[bag].min(places)
    if not n:
        return snp.zeros(shape, rows.dtype)
    found = snp.take_along_axis(rows, snp.minimum(first, n - 1), 0)
    return snp.where(first < n, found, 0)


TABLE: dict[str, Callable[..., Any]] = {
    "aten._embedding_bag.default": _embedding_bag,
    "aten._embedding_bag_forward_only.default": _embedding_bag,
}
