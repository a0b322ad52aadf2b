"""Gains and fans: PyTorch's factors, sizes of weights, messages."""

import math

import pytest

from stretto.nn import init
from stretto.nn.gains import fan_of, fans_of

# torch.nn.init.calculate_gain of PyTorch 2.13.0.
GAINS = {"linear": 1, "conv2d": 1, "sigmoid": 1, "tanh": 5 / 3, "relu": 2**0.5, "selu": 0.75}


def test_gains():
    for name, gain in GAINS.items():
        assert init.calculate_gain(name) == pytest.approx(gain)
    assert init.calculate_gain("leaky_relu") == pytest.approx(math.sqrt(2 / (1 + 1e-4)))
    assert init.calculate_gain("leaky_relu", 1) == pytest.approx(1)


def test_fans():
    assert fans_of((4, 3, 5, 2), "f") == (30, 40)
    assert fan_of((4, 3), "fan_in", "f") == 3 and fan_of((4, 3), "fan_out", "f") == 4


def test_messages():
    with pytest.raises(ValueError, match="calculate_gain: nonlinearity must be one of linear"):
        init.calculate_gain("gelu")
    with pytest.raises(ValueError, match=r"f: shape must be .*, two axes at least, got \(3,\)"):
        fans_of((3,), "f")
    with pytest.raises(ValueError, match="f: mode must be 'fan_in' or 'fan_out', got 'both'"):
        fan_of((3, 2), "both", "f")
