"""Tensors of numbers that are known: ranges, constants, identity matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import stretto.numpy as snp

__all__ = ["TABLE"]


def _full(size: Sequence[int], fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
    return snp.full(tuple(size), fill_value, dtype)


def _full_like(x: Any, fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
    return snp.full(x.shape, fill_value, x.dtype if dtype is None else dtype)


def _of(value: int) -> Callable[..., Any]:
    return lambda size, *, dtype=None, **_: snp.full(tuple(size), value, dtype)


def _like(value: int) -> Callable[..., Any]:
    return lambda x, *, dtype=None, **_: _full_like(x, value, dtype=dtype)


def _new(value: int) -> Callable[..., Any]:
    return lambda x, size, *, dtype=None, **_: snp.full(
        tuple(size), value, x.dtype if dtype is None else dtype
    )


def _whole(dtype: Any) -> bool:
    return dtype is not None and snp.issubdtype(dtype, snp.integer)


def _arange(*bounds: Any, dtype: Any = None, **_: Any) -> Any:
    """Bounds that are no integers are truncated where the result is of integers."""
    return snp.arange(*(map(int, bounds) if _whole(dtype) else bounds), dtype=dtype)


def _linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, **_: Any) -> Any:
    """Integers are floats between integers, truncated."""
    if _whole(dtype):
        start, end, dtype = int(start), int(end), None
    return snp.linspace(start, end, steps, dtype=dtype)


def _logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, **_: Any
) -> Any:
    if _whole(dtype):
        start, end, dtype = int(start), int(end), None
    return snp.logspace(start, end, steps, base=base, dtype=dtype)


def _triangle(offset_of: Callable[..., Any]) -> Callable[..., Any]:
    def indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, **_: Any) -> Any:
        return snp.stack(offset_of(row, offset, col))

    return indices


TABLE: dict[str, Callable[..., Any]] = {
    "aten.arange.default": _arange,
    "aten.arange.start": _arange,
    "aten.arange.start_step": _arange,
    "aten.empty.memory_format": _of(0),
    "aten.empty_like.default": _like(0),
    "aten.empty_permuted.default": lambda size, physical_layout, *, dtype=None, **_: snp.zeros(
        tuple(size), dtype
    ),
    "aten.empty_strided.default": lambda size, stride, *, dtype=None, **_: snp.zeros(
        tuple(size), dtype
    ),
    "aten.eye.default": lambda n, *, dtype=None, **_: snp.eye(n, dtype=dtype),
    "aten.eye.m": lambda n, m, *, dtype=None, **_: snp.eye(n, m, dtype=dtype),
    "aten.full.default": _full,
    "aten.full_like.default": _full_like,
    "aten.linspace.default": _linspace,
    "aten.logspace.default": _logspace,
    "aten.new_empty.default": _new(0),
    "aten.new_full.default": lambda x, size, value, *, dtype=None, **_: snp.full(
        tuple(size), value, x.dtype if dtype is None else dtype
    ),
    "aten.new_ones.default": _new(1),
    "aten.new_zeros.default": _new(0),
    "aten.ones.default": _of(1),
    "aten.ones_like.default": _like(1),
    "aten.scalar_tensor.default": lambda value, *, dtype=None, **_: snp.asarray(value, dtype),
    "aten.tril_indices.default": _triangle(snp.tril_indices),
    "aten.triu_indices.default": _triangle(snp.triu_indices),
    "aten.zeros.default": _of(0),
    "aten.zeros_like.default": _like(0),
}
