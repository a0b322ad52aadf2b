"""Activations, softmaxes and gated units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stretto.numpy as snp
from stretto.nn import functional as F

__all__ = ["TABLE"]


def _softmax(function: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch's third argument is a dtype, or whether to compute in float32."""

    def softmax(x: Any, dim: int, dtype: Any = None) -> Any:
        if isinstance(dtype, bool):
            dtype = snp.float32 if dtype else None
        x = x if dtype is None else x.astype(dtype)
        return function(x, dim) if x.ndim else function(x[None], 0)[0]

    return softmax


def _safe_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    """The softmax, and 0 along lines of nothing but -inf."""
    x = x if dtype is None else x.astype(dtype)
    nothing = snp.all(x == -snp.inf, dim, keepdims=True)
    return snp.where(nothing, 0, F.softmax(snp.where(nothing, 0, x), dim))


def _elu(x: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    negative = snp.expm1(snp.where(x > 0, 0, x) * input_scale) * (alpha * scale)
    return snp.where(x > 0, x * scale, negative)


def _prelu(x: Any, weight: Any) -> Any:
    """The weight is of one element, or of as many as the input has along axis 1."""
    if weight.size > 1:
        weight = weight.reshape([-1 if axis == 1 else 1 for axis in range(max(x.ndim, 2))])
        weight = weight.reshape(weight.shape[-x.ndim :])
    return snp.where(x > 0, x, weight * x)


TABLE: dict[str, Callable[..., Any]] = {
    "aten.celu.default": F.celu,
    "aten.elu.default": _elu,
    "aten.gelu.default": lambda x, *, approximate="none": F.gelu(x, approximate),
    "aten.glu.default": F.glu,
    "aten.hardsigmoid.default": F.hardsigmoid,
    "aten.hardswish.default": F.hardswish,
    "aten.hardtanh.default": F.hardtanh,
    "aten.leaky_relu.default": F.leaky_relu,
    "aten.log_sigmoid_forward.default": lambda x: (F.logsigmoid(x), snp.exp(-snp.abs(x))),
    "aten.log_softmax.int": _softmax(F.log_softmax),
    "aten._log_softmax.default": _softmax(F.log_softmax),
    "aten.mish.default": F.mish,
    "aten.prelu.default": _prelu,
    "aten._prelu_kernel.default": lambda x, weight: snp.where(x > 0, x, weight * x),
    "aten.relu.default": F.relu,
    "aten.relu6.default": F.relu6,
    "aten.selu.default": F.selu,
    "aten.silu.default": F.silu,
    "aten.softmax.int": _softmax(F.softmax),
    "aten._softmax.default": _softmax(F.softmax),
    "aten._safe_softmax.default": _safe_softmax,
    "aten.softplus.default": F.softplus,
    "aten.softshrink.default": F.softshrink,
    "aten.hardshrink.default": F.hardshrink,
    "aten.threshold.default": F.threshold,
}
