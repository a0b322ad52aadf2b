"""Layers that normalize each example: PyTorch's figures, settings in words, messages."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import digest, layer_digests, names, numbers, same, with_numbers

# Class, arguments, inputs; the names in state_dict; PyTorch's digests (``tests.nn.figures``); its
# buffers after the call, and the digest of the same input in evaluation mode.
CASES = [
    (
        "LayerNorm",
        ([3, 4],),
        {},
        [(2, 3, 4)],
        ["weight", "bias"],
        [(2, 3, 4), -3.83103, 3.71835, -0.2453, 11.2316],
        {},
        -3.83103,
    ),
    (
        "LayerNorm",
        (4,),
        {"bias": False, "eps": 0.1},
        [(2, 3, 4)],
        ["weight"],
        [(2, 3, 4), -0.81518, 0.45073, -0.7776],
        {},
        -0.81518,
    ),
    (
        "RMSNorm",
        (4,),
        {},
        [(2, 3, 4)],
        ["weight"],
        [(2, 3, 4), -0.58819, 0.06915, -0.53146],
        {},
        -0.58819,
    ),
    (
        "GroupNorm",
        (2, 4),
        {},
        [(2, 4, 3)],
        ["weight", "bias"],
        [(2, 4, 3), -0.89297, -1.1807, -2.11618, 3.48003],
        {},
        -0.89297,
    ),
    (
        "LocalResponseNorm",
        (3,),
        {"alpha": 0.5},
        [(2, 4, 3)],
        [],
        [(2, 4, 3), 0.6283, 8.73612],
        {},
        0.6283,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, args, settings, inputs, keys, want, _, evaluated = case
    layer = with_numbers(name, args, settings)
    assert list(layer.state_dict()) == keys
    for run in (lambda f: f, st.jit):
        got, after = layer_digests(layer, inputs, run)
        same(got, want)
        assert digest(after.eval()(numbers(inputs[0], 0))) == pytest.approx(evaluated, abs=2e-4)


def test_words():
    want = "LayerNorm((3, 4), eps=1e-05, elementwise_affine=True, bias=True)"
    assert repr(nn.LayerNorm([3, 4])) == want
    assert repr(nn.RMSNorm(4)) == "RMSNorm((4,), eps=None, elementwise_affine=True)"
    assert repr(nn.GroupNorm(2, 4)) == "GroupNorm(2, 4, eps=1e-05, affine=True)"
    assert repr(nn.LocalResponseNorm(2)) == "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)"


ONES = snp.ones((2, 3, 4))
MESSAGES = [
    (lambda: nn.LayerNorm((3, 5))(ONES), r"LayerNorm\(.*\(\.\.\., 3, 5\), got float32\[2,3,4\]"),
    (lambda: nn.RMSNorm(5)(ONES), r"RMSNorm\(.*\(\.\.\., 5\), got float32\[2,3,4\]"),
    (lambda: nn.GroupNorm(2, 4)(ONES), r"GroupNorm\(2, 4, .*4 channels"),
    (lambda: nn.GroupNorm(2, 3), "num_groups must divide num_channels, got 2 and 3"),
]


@pytest.mark.parametrize("call, words", MESSAGES, ids=range(len(MESSAGES)))
def test_messages(call, words):
    with pytest.raises(ValueError, match=words):
        call()
