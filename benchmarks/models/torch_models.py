"""One member of an ensemble, in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from benchmarks.workloads_ensembles import HEADS

__all__ = ["APPLY", "cross_entropy", "loss", "mlp"]


def mlp(params: Any, x: Any) -> Any:
    """Dense layers with ReLU between them."""
    for weights, bias in params[:-1]:
        x = torch.relu(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


def cnn(params: Any, x: Any) -> Any:
    """3×3 convolutions with ReLU, the mean over positions, a dense layer."""
    for kernel, bias in params[:-1]:
        x = torch.relu(functional.conv2d(x, kernel, bias, padding=1))
    weights, bias = params[-1]
    return torch.mean(x, dim=(2, 3)) @ weights + bias


def cnn_channels_last(params: Any, x: Any) -> Any:
    """The same for `[batch, height, width, channel]` and `[height, width, in, out]`.

    Turned to PyTorch's order of axes they are in its "channels last" format, which its
    convolutions take as it is.
    """
    *convolutions, dense = params
    turned = [(kernel.permute(3, 2, 0, 1), bias) for kernel, bias in convolutions]
    return cnn([*turned, dense], x.permute(0, 3, 1, 2))


def transformer(params: Any, x: Any) -> Any:
    """PyTorch's `TransformerEncoderLayer` without dropout: attention, two layers, post-norm."""
    batch, length, width = x.shape

    def dense(name: str, x: Any) -> Any:
        return x @ params[f"{name}_weight"] + params[f"{name}_bias"]

    def norm(name: str, x: Any) -> Any:
        weights, bias = params[f"{name}_weight"], params[f"{name}_bias"]
        return functional.layer_norm(x, (width,), weights, bias)

    def heads(x: Any) -> Any:
        return x.reshape(batch, length, HEADS, width // HEADS).transpose(1, 2)

    query, key, value = map(heads, dense("in_proj", x).chunk(3, dim=-1))
    mixed = attention(query, key, value).transpose(1, 2).reshape(x.shape)
    x = norm("norm1", x + dense("out_proj", mixed))
    return norm("norm2", x + dense("linear2", torch.relu(dense("linear1", x))))


def attention(query: Any, key: Any, value: Any) -> Any:
    """Softmax of the scaled products of queries and keys, times the values."""
    return functional.scaled_dot_product_attention(query, key, value)


APPLY = {"mlp": mlp, "cnn": cnn_channels_last, "cnn-nchw": cnn, "transformer": transformer}


def loss(apply: Any, params: Any, data: Any) -> Any:
    """Mean squared error of one member on one batch."""
    x, target = data
    return torch.mean((apply(params, x) - target) ** 2)


def cross_entropy(apply: Any, params: Any, data: Any) -> Any:
    """Softmax cross-entropy of one member; the targets are numbers of classes."""
    x, labels = data
    return functional.cross_entropy(apply(params, x), labels)
