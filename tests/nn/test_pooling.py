"""Layers that pool: PyTorch's figures, settings, indices, messages."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import layer_digests, names, same, with_numbers

# Class, arguments, inputs; the names in state_dict; PyTorch's digests (``tests.nn.figures``).
CASES = [
    (
        "MaxPool1d",
        (3,),
        {"stride": 2, "padding": 1},
        [(2, 3, 8)],
        [],
        [(2, 3, 4), 3.05827, 0.73567],
    ),
    (
        "MaxPool2d",
        ((2, 3),),
        {"stride": (2, 1), "ceil_mode": True},
        [(2, 2, 5, 6)],
        [],
        [(2, 2, 3, 4), 0.14972, -0.80716],
    ),
    (
        "MaxPool3d",
        (2, 1, 1),
        {"dilation": 2},
        [(1, 2, 4, 4, 5)],
        [],
        [(1, 2, 4, 4, 5), 3.67965, 2.60926],
    ),
    (
        "AvgPool1d",
        (3, 2, 1),
        {"count_include_pad": False},
        [(2, 3, 8)],
        [],
        [(2, 3, 4), 1.58631, 0.86681],
    ),
    ("AvgPool2d", (2,), {"ceil_mode": True}, [(2, 2, 5, 6)], [], [(2, 2, 3, 3), 0.84464, 0.31726]),
    (
        "AvgPool3d",
        (2, 1, 1),
        {"divisor_override": 5},
        [(1, 2, 3, 3, 3)],
        [],
        [(1, 2, 4, 4, 4), -0.03863, 0.9545],
    ),
    ("LPPool1d", (2, 3), {}, [(2, 3, 8)], [], [(2, 3, 2), -1.28506, 5.0792]),
    ("LPPool2d", (4, 2), {"stride": 1}, [(2, 4, 5)], [], [(2, 3, 4), -0.54598, 2.0529]),
    ("LPPool3d", (2, 2), {}, [(2, 4, 4, 4)], [], [(2, 2, 2, 2), 1.56827, -3.93312]),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, args, settings, inputs, keys, want = case
    layer = with_numbers(name, args, settings)
    assert list(layer.state_dict()) == keys
    for run in (lambda f: f, st.jit):
        same(layer_digests(layer, inputs, run)[0], want)


def test_settings():
    layer = nn.MaxPool2d([2, 3], padding=(1, 1))
    assert layer.kernel_size == (2, 3) and layer.stride == (2, 3) and layer.ceil_mode is False
    assert repr(nn.AvgPool1d(2)).startswith("AvgPool1d(kernel_size=2, stride=2, padding=0, ")
    assert nn.LPPool1d(2, 3).stride is None


def test_indices():
    x = snp.array([[1.0, 3.0, 2.0, 5.0]])
    values, places = nn.MaxPool1d(2, return_indices=True)(x)
    assert values.tolist() == [[3, 5]] and places.tolist() == [[1, 3]]


def test_no_leaves():
    assert st.tree.leaves(nn.MaxPool2d(2)) == [] and nn.MaxPool2d(2).state_dict() == {}
    x = st.random.normal(st.random.PRNGKey(0), (3, 2, 4, 4))
    layer = nn.Sequential(nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1))
    np.testing.assert_allclose(st.jit(st.vmap(layer))(x), layer(x), rtol=1e-6)


def test_messages():
    with pytest.raises(ValueError, match=r"MaxPool2d\(kernel_size=2, .*got float32\[4,4\]"):
        nn.MaxPool2d(2)(snp.ones((4, 4)))


# Class, arguments, inputs; the names in state_dict; PyTorch's digests (``tests.nn.figures``).
ADAPTIVE = [
    ("AdaptiveAvgPool1d", (3,), {}, [(2, 3, 8)], [], [(2, 3, 3), -0.17052, 0.25136]),
    ("AdaptiveAvgPool2d", ((2, None),), {}, [(2, 2, 5, 6)], [], [(2, 2, 2, 6), 0.01094, -1.71623]),
    ("AdaptiveAvgPool3d", (2,), {}, [(1, 2, 3, 4, 5)], [], [(1, 2, 2, 2, 2), 0.0082, 0.0611]),
    ("AdaptiveMaxPool1d", (3,), {}, [(2, 3, 8)], [], [(2, 3, 3), -0.79327, -3.81045]),
    ("AdaptiveMaxPool2d", ((2, None),), {}, [(2, 2, 5, 6)], [], [(2, 2, 2, 6), -0.01386, -1.8595]),
    ("AdaptiveMaxPool3d", (2,), {}, [(1, 2, 3, 4, 5)], [], [(1, 2, 2, 2, 2), 1.26025, 1.87486]),
]


@pytest.mark.parametrize("case", ADAPTIVE, ids=names(ADAPTIVE))
def test_adaptive_equals_pytorch(case):
    name, args, settings, inputs, keys, want = case
    layer = with_numbers(name, args, settings)
    assert list(layer.state_dict()) == keys
    for run in (lambda f: f, st.jit):
        same(layer_digests(layer, inputs, run)[0], want)


def test_settings_of_adaptive():
    assert repr(nn.AdaptiveAvgPool2d((1, None))) == "AdaptiveAvgPool2d(output_size=(1, None))"


def test_indices_of_adaptive():
    x = snp.array([[1.0, 3.0, 2.0, 5.0]])
    values, places = nn.AdaptiveMaxPool1d(1, return_indices=True)(x)
    assert values.tolist() == [[5]] and places.tolist() == [[3]]


def test_messages_of_adaptive():
    with pytest.raises(ValueError, match=r"AdaptiveAvgPool1d\(output_size=3\): expected input"):
        nn.AdaptiveAvgPool1d(3)(snp.ones(4))
