"""One member of an ensemble, in Stretto."""

from __future__ import annotations

from functools import partial
from typing import Any

import stretto as st
import stretto.numpy as snp
from benchmarks.workloads_ensembles import HEADS, AdamW
from stretto import optim

__all__ = ["APPLY", "loss", "mlp", "optimizer", "train_step"]


def mlp(params: Any, x: Any) -> Any:
    """Dense layers with ReLU between them."""
    for weights, bias in params[:-1]:
        x = st.nn.relu(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


def cnn(params: Any, x: Any, layout: str, kernels: str) -> Any:
    """3×3 convolutions with ReLU, the mean over positions, a dense layer."""
    for kernel, bias in params[:-1]:
        x = st.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=(layout, kernels, layout)
        )
        x = st.nn.relu(x + (bias if layout == "NHWC" else bias[:, None, None]))
    weights, bias = params[-1]
    positions = layout.index("H"), layout.index("W")
    return snp.mean(x, axis=positions) @ weights + bias


def transformer(params: Any, x: Any) -> Any:
    """PyTorch's `TransformerEncoderLayer` without dropout: attention, two layers, post-norm."""
    batch, length, width = x.shape

    def dense(name: str, x: Any) -> Any:
        return x @ params[f"{name}_weight"] + params[f"{name}_bias"]

    def norm(name: str, x: Any) -> Any:
        x = x - snp.mean(x, axis=-1, keepdims=True)
        x = x * st.lax.rsqrt(snp.mean(x * x, axis=-1, keepdims=True) + 1e-5)
        return x * params[f"{name}_weight"] + params[f"{name}_bias"]

    def heads(x: Any) -> Any:
        return x.reshape(batch, length, HEADS, width // HEADS).transpose(0, 2, 1, 3)

    query, key, value = map(heads, snp.split(dense("in_proj", x), 3, axis=-1))
    scores = query @ key.swapaxes(-1, -2) / (width // HEADS) ** 0.5
    mixed = (st.nn.softmax(scores, dim=-1) @ value).transpose(0, 2, 1, 3).reshape(x.shape)
    x = norm("norm1", x + dense("out_proj", mixed))
    return norm("norm2", x + dense("linear2", st.nn.relu(dense("linear1", x))))


APPLY = {
    "mlp": mlp,
    "cnn": partial(cnn, layout="NHWC", kernels="HWIO"),
    "cnn-nchw": partial(cnn, layout="NCHW", kernels="OIHW"),
    "transformer": transformer,
}


def loss(apply: Any, params: Any, data: Any) -> Any:
    """Mean squared error of one member on one batch."""
    x, target = data
    return snp.mean((apply(params, x) - target) ** 2)


def cross_entropy(apply: Any, params: Any, data: Any) -> Any:
    """Softmax cross-entropy of one member; the targets are numbers of classes."""
    x, labels = data
    log_probabilities = st.nn.log_softmax(apply(params, x), -1)
    return -snp.mean(snp.take_along_axis(log_probabilities, labels[:, None], axis=1))


def optimizer() -> Any:
    """AdamW, as the rows of the training step have it."""
    how = AdamW()
    return optim.adamw(
        how.learning_rate, how.decay_1, how.decay_2, how.epsilon, weight_decay=how.weight_decay
    )


def train_step(apply: Any, state: Any, data: Any) -> tuple[Any, Any]:
    """One update by AdamW: the new parameters and optimizer state, and the loss before it."""
    params, memory = state
    value, slope = st.value_and_grad(lambda params: cross_entropy(apply, params, data))(params)
    updates, memory = optimizer().update(slope, memory, params)
    return (optim.apply_updates(params, updates), memory), value
