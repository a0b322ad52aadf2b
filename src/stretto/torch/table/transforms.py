"""Derivatives and maps of parts of a graph: ``torch.autograd.grad`` and ``torch.func`` inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import stretto.numpy as snp
from stretto import random
from stretto._engine.api.autodiff.derivatives import jvp, vjp
from stretto._engine.api.vectorize import vmap
from stretto.random.streams import next_key

__all__ = ["TABLE"]


def _grad(
    part: Callable[..., Any],
    free: Sequence[Any],
    inputs: Sequence[Any],
    cotangents: Sequence[Any],
) -> tuple[Any, ...]:
    """The gradients of a part by its inputs; a missing cotangent is of ones."""
    outs, pull_back = vjp(lambda *xs: tuple(part(*xs, *free)), *inputs)
    given = [
        snp.ones_like(out) if ct is None else snp.broadcast_to(ct, out.shape).astype(out.dtype)
        for out, ct in zip(outs, cotangents, strict=True)
    ]
    return tuple(pull_back(tuple(given)))


def _jvp(
    part: Callable[..., Any],
    free: Sequence[Any],
    inputs: Sequence[Any],
    tangents: Sequence[Any],
) -> tuple[Any, ...]:
    moving = tuple([dx.astype(x.dtype) for x, dx in zip(inputs, tangents, strict=True)])
    return tuple(jvp(lambda *xs: tuple(part(*xs, *free)), tuple(inputs), moving)[1])


def _vmap(
    part: Callable[..., Any],
    free: Sequence[Any],
    examples: Sequence[Any],
    operands: Sequence[Any],
    in_dims: Sequence[int],
    out_dims: Sequence[int],
    randomness: str,
) -> tuple[Any, ...]:
    """The results of a part for each example along these axes of the operands."""
    axes = tuple(in_dims)
    if randomness == "error":  # nothing is drawn
        mapped = vmap(lambda *xs: tuple(part(*xs, *free)), axes, tuple(out_dims))
        return tuple(mapped(*operands))

    def with_key(key: Any, *xs: Any) -> tuple[Any, ...]:
        with random.keys(key):
            return tuple(part(*xs, *free))

    key, own = next_key("vmap"), None
    if randomness == "different":
        key, own = random.split(key, operands[0].shape[axes[0]]), 0
    return tuple(vmap(with_key, (own, *axes), tuple(out_dims))(key, *operands))


TABLE: dict[str, Callable[..., Any]] = {
    "stretto.example.default": lambda x, dim: snp.take(x, 0, dim),
    "stretto.fresh.default": lambda x: x,
    "stretto.grad.default": _grad,
    "stretto.jvp.default": _jvp,
    "stretto.vmap.default": _vmap,
}
