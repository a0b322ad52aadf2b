"""Layers in JAX as functions of parameters by name; images are channels last.

`take(name, shape, axes)` gives the parameter whose shape is `shape` in PyTorch, with its axes
permuted by `axes`: kernels as HWIO, matrices as [in, out].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

__all__ = [
    "HWIO",
    "Take",
    "batch_norm",
    "conv",
    "dense",
    "embedding",
    "inside",
    "layer_norm",
    "recorded",
]

Take: TypeAlias = Callable[..., Any]
HWIO = (2, 3, 1, 0)


def recorded(apply: Callable[..., Any], *inputs: Any) -> dict[str, tuple[Any, Any]]:
    """Shape in PyTorch and permutation of each parameter that `apply(take, *inputs)` takes."""
    found: dict[str, tuple[Any, Any]] = {}

    def take(name: str, shape: tuple[int, ...], axes: tuple[int, ...] | None = None) -> Any:
        axes = axes or tuple(range(len(shape)))
        found[name] = shape, axes
        return jnp.zeros([shape[axis] for axis in axes])

    jax.eval_shape(lambda *inputs: apply(take, *inputs), *inputs)
    return found


def inside(take: Take, prefix: str) -> Take:
    """The parameters whose names begin so."""
    return lambda name, *shape: take(f"{prefix}.{name}", *shape)


def conv(
    take: Take,
    name: str,
    x: Any,
    out: int,
    size: int,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
    bias: bool = False,
) -> Any:
    """A convolution of `x` (N, H, W, C)."""
    kernel = take(f"{name}.weight", (out, x.shape[-1] // groups, size, size), HWIO)
    y = jax.lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        [(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )
    return y + take(f"{name}.bias", (out,)) if bias else y


def dense(take: Take, name: str, x: Any, out: int) -> Any:
    """A product with a matrix, and a bias."""
    weights = take(f"{name}.weight", (out, x.shape[-1]), (1, 0))
    return x @ weights + take(f"{name}.bias", (out,))


def embedding(take: Take, name: str, count: int, width: int) -> Any:
    """The table (count, width)."""
    return take(f"{name}.weight", (count, width))


def batch_norm(take: Take, name: str, x: Any, eps: float = 1e-5) -> Any:
    """Normalized by the statistics of the batch."""
    return _normalized(take, name, x, tuple(range(x.ndim - 1)), eps)


def layer_norm(take: Take, name: str, x: Any, eps: float = 1e-5) -> Any:
    """Normalized along the last axis."""
    return _normalized(take, name, x, -1, eps)


def _normalized(take: Take, name: str, x: Any, axes: Any, eps: float) -> Any:
    width = x.shape[-1]
    centered = x - jnp.mean(x, axis=axes, keepdims=True)
    scale = jax.lax.rsqrt(jnp.mean(centered * centered, axis=axes, keepdims=True) + eps)
    return centered * scale * take(f"{name}.weight", (width,)) + take(f"{name}.bias", (width,))
