"""All rows, and what of `stretto.nn` has none, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.layers.row import Row, Task, tasks_of
from benchmarks.layers.rows_features import FEATURES
from benchmarks.layers.rows_images import IMAGES
from benchmarks.layers.rows_losses import LOSSES
from benchmarks.layers.rows_operations import OPERATIONS
from benchmarks.layers.rows_sequences import SEQUENCES
from benchmarks.parity.layers_plain import DROPOUTS, SAME
from benchmarks.worker import Case, Registry

__all__ = ["EXCEPTIONS", "ROWS", "TASKS", "registry"]

ROWS: list[Row] = [*IMAGES, *FEATURES, *SEQUENCES, *LOSSES, *OPERATIONS]

TASKS: dict[str, Task] = {task.name: task for row in ROWS for task in tasks_of(row)}
"""What is timed, by the workload's name."""

MEASURED = {row.target for row in ROWS}
"""Layers, functions and operations that have rows."""

STRUCTURE = "it computes nothing itself"
VIEW = "no work: another shape of the same numbers"
RANK = "the operation of {} over another number of axes"
PART = "the layer {} calls it"
SAME_FORMULA = "the formula of {}"

LAYERS = {
    **dict.fromkeys(
        ("Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"),
        STRUCTURE,
    ),
    **dict.fromkeys(("Identity", "Flatten", "Unflatten"), VIEW),
    **{
        f"{kind}Pad{n}d": RANK.format(f"{kind}Pad2d")
        for kind in ("Zero", "Constant", "Circular", "Reflection", "Replication")
        for n in (1, 3)
    },
    **{
        f"{name}{n}d": RANK.format(f"{name}2d")
        for name in ("LPPool", "AdaptiveMaxPool", "InstanceNorm", "Dropout")
        for n in (1, 3)
    },
    "Softmin": "Softmax of the negative",
    "TransformerEncoder": "TransformerEncoderLayer after itself; Transformer has one",
    "TransformerDecoder": "TransformerDecoderLayer after itself; Transformer has one",
    "CTCLoss": "the function ctc_loss, of log-probabilities, is measured",
}

FUNCTIONS = {
    **{
        function: PART.format(layer)
        for layer, function in {**SAME, **DROPOUTS}.items()
        if function not in MEASURED
    },
    **{f"conv{n}d": PART.format(f"Conv{n}d") for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": PART.format(f"ConvTranspose{n}d") for n in (1, 2, 3)},
    **{
        name: PART.format(layer)
        for name, layer in {
            "linear": "Linear",
            "bilinear": "Bilinear",
            "embedding": "Embedding",
            "embedding_bag": "EmbeddingBag",
            "batch_norm": "BatchNorm2d",
            "batch_statistics": "BatchNorm2d",
            "instance_norm": "InstanceNorm2d",
            "layer_norm": "LayerNorm",
            "rms_norm": "RMSNorm",
            "group_norm": "GroupNorm",
            "prelu": "PReLU",
            "pad": "ZeroPad2d",
            "upsample": "Upsample",
            "multi_head_attention_forward": "MultiheadAttention",
            "rnn_tanh": "RNN",
            "rnn_relu": "RNN",
            "rnn_tanh_cell": "RNNCell",
            "rnn_relu_cell": "RNNCell",
            "lstm": "LSTM",
            "lstm_cell": "LSTMCell",
            "gru": "GRU",
            "gru_cell": "GRUCell",
        }.items()
    },
    **dict.fromkeys(("flatten", "unflatten"), VIEW),
}

IN_FRONT = {
    **{
        name: SAME_FORMULA.format(target)
        for name, target in {
            "celu": "CELU",
            "elu": "ELU",
            "gelu": "GELU",
            "glu": "GLU",
            "leaky_relu": "LeakyReLU",
            "log_softmax": "LogSoftmax",
            "mish": "Mish",
            "relu": "ReLU",
            "relu6": "ReLU6",
            "selu": "SELU",
            "sigmoid": "Sigmoid",
            "silu": "SiLU",
            "softmax": "Softmax",
            "softplus": "Softplus",
            "softsign": "Softsign",
            "tanh": "Tanh",
        }.items()
    },
    "keys": STRUCTURE,
    "stateful_call": STRUCTURE,
}

EXCEPTIONS = {**LAYERS, **FUNCTIONS, **IN_FRONT}
"""Layers and functions of `stretto.nn` and `stretto.nn.functional` without a row of their own."""


def registry(framework: str, make: Callable[[Task], Case]) -> Registry:
    """What the framework times, each task's case made by `make`."""
    cases = Registry()
    for task in TASKS.values():
        if framework not in task.workload.left_out:
            cases.add(task.name)(partial(make, task))
    return cases
