"""Layers that pool to a given size: PyTorch's figures, settings, indices, messages."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import layer_digests, names, same, with_numbers

# Class, arguments, inputs; the names in state_dict; PyTorch's digests (``tests.nn.figures``).
CASES = [
    ("AdaptiveAvgPool1d", (3,), {}, [(2, 3, 8)], [], [(2, 3, 3), -0.17052, 0.25136]),
    ("AdaptiveAvgPool2d", ((2, None),), {}, [(2, 2, 5, 6)], [], [(2, 2, 2, 6), 0.01094, -1.71623]),
    ("AdaptiveAvgPool3d", (2,), {}, [(1, 2, 3, 4, 5)], [], [(1, 2, 2, 2, 2), 0.0082, 0.0611]),
    ("AdaptiveMaxPool1d", (3,), {}, [(2, 3, 8)], [], [(2, 3, 3), -0.79327, -3.81045]),
    ("AdaptiveMaxPool2d", ((2, None),), {}, [(2, 2, 5, 6)], [], [(2, 2, 2, 6), -0.01386, -1.8595]),
    ("AdaptiveMaxPool3d", (2,), {}, [(1, 2, 3, 4, 5)], [], [(1, 2, 2, 2, 2), 1.26025, 1.87486]),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, args, settings, inputs, keys, want = case
    layer = with_numbers(name, args, settings)
    assert list(layer.state_dict()) == keys
    for run in (lambda f: f, st.jit):
        same(layer_digests(layer, inputs, run)[0], want)


def test_settings():
    assert repr(nn.AdaptiveAvgPool2d((1, None))) == "AdaptiveAvgPool2d(output_size=(1, None))"


def test_indices():
    x = snp.array([[1.0, 3.0, 2.0, 5.0]])
    values, places = nn.AdaptiveMaxPool1d(1, return_indices=True)(x)
    assert values.tolist() == [[5]] and places.tolist() == [[3]]


def test_messages():
    with pytest.raises(ValueError, match=r"AdaptiveAvgPool1d\(output_size=3\): expected input"):
        nn.AdaptiveAvgPool1d(3)(snp.ones(4))
