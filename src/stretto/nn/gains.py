"""Gains and fans: what the initial size of weights depends on."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["calculate_gain", "fan_of", "fans_of"]

_GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Give the factor that keeps the variance of what goes through a nonlinearity.

    Args:
        nonlinearity: its name, such as ``"relu"``, ``"tanh"`` or ``"leaky_relu"``.
        param: the negative slope of ``leaky_relu``, 0.01 by default.

    Returns:
        The factor.

    Raises:
        ValueError: the name is not known.

    As PyTorch's ``nn.init.calculate_gain``.

    >>> from stretto import nn
    >>> round(nn.init.calculate_gain("relu"), 4)
    1.4142
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2 / (1 + slope * slope))
    if nonlinearity not in _GAINS:
        raise ValueError(
            f"calculate_gain: nonlinearity must be one of {', '.join(_GAINS)}, leaky_relu; got "
            f"{nonlinearity!r}"
        )
    return _GAINS[nonlinearity]


def fans_of(shape: Sequence[int], caller: str) -> tuple[int, int]:
    """How many inputs an output has and how many outputs an input, for a weight of this shape."""
    if len(shape) < 2:
        raise ValueError(
            f"{caller}: shape must be (outputs, inputs, ...), two axes at least, got {tuple(shape)}"
        )
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def fan_of(shape: Sequence[int], mode: str, caller: str) -> int:
    """The fan that ``mode`` names."""
    fan_in, fan_out = fans_of(shape, caller)
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"{caller}: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    return fan_in if mode == "fan_in" else fan_out
