"""Layers that rearrange and resize: PyTorch's figures, settings, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import layer_digests, names, same, with_numbers

# Class, arguments, inputs; the names in state_dict; PyTorch's digests (``tests.nn.figures``).
CASES = [
    ("Flatten", (), {}, [(2, 3, 4)], [], [(2, 12), 0.78052, 12.28671]),
    ("Unflatten", (1, (2, 2)), {}, [(2, 4, 3)], [], [(2, 2, 2, 3), 0.78052, 12.28671]),
    ("PixelShuffle", (2,), {}, [(1, 8, 2, 3)], [], [(1, 2, 4, 6), -0.63419, -1.80679]),
    ("PixelUnshuffle", (2,), {}, [(1, 2, 4, 6)], [], [(1, 8, 2, 3), 0.62866, -1.80679]),
    ("ChannelShuffle", (2,), {}, [(1, 6, 2, 2)], [], [(1, 6, 2, 2), 3.45919, 0.61602]),
    (
        "Unfold",
        (2,),
        {"stride": 2, "padding": 1},
        [(1, 2, 4, 5)],
        [],
        [(1, 8, 9), -0.09233, -1.74005],
    ),
    ("Fold", ((3, 4), 2), {}, [(1, 8, 6)], [], [(1, 2, 3, 4), 4.35783, 9.03863]),
    (
        "Upsample",
        (),
        {"scale_factor": 1.5, "mode": "bilinear"},
        [(1, 2, 4, 3)],
        [],
        [(1, 2, 6, 4), 1.47774, 6.91024],
    ),
    ("UpsamplingNearest2d", ((3, 5),), {}, [(1, 2, 4, 3)], [], [(1, 2, 3, 5), -8.02474, -0.30732]),
    ("UpsamplingBilinear2d", (None, 2), {}, [(1, 2, 4, 3)], [], [(1, 2, 8, 6), -1.02815, 0.43756]),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, args, settings, inputs, keys, want = case
    layer = with_numbers(name, args, settings)
    assert list(layer.state_dict()) == keys
    for run in (lambda f: f, st.jit):
        same(layer_digests(layer, inputs, run)[0], want)


def test_words():
    assert repr(nn.Flatten()) == "Flatten(start_dim=1, end_dim=-1)"
    assert repr(nn.Unflatten(1, [2, 3])) == "Unflatten(dim=1, unflattened_size=(2, 3))"
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2, mode='nearest')"
    assert repr(nn.Upsample([2, 3])) == "Upsample(size=(2, 3), mode='nearest')"
    for layer in (nn.PixelShuffle(2), nn.PixelUnshuffle(2), nn.ChannelShuffle(2), nn.Unfold(2)):
        assert "2" in repr(layer)
    assert repr(nn.Fold(4, 2)).startswith("Fold(output_size=4, kernel_size=2")


def test_compiled_and_mapped():
    x = st.random.normal(st.random.PRNGKey(0), (3, 2, 4, 4, 4))
    layer = nn.Sequential(nn.PixelShuffle(2), nn.Upsample(scale_factor=2), nn.Flatten())
    np.testing.assert_array_equal(st.jit(st.vmap(layer))(x), np.stack([layer(v) for v in x]))


def test_messages():
    with pytest.raises(ValueError, match="flatten: "):
        nn.Flatten()(snp.ones(3))
    with pytest.raises(ValueError, match="unflatten: sizes"):
        nn.Unflatten(1, (2, 2))(snp.ones((1, 5)))
    with pytest.raises(ValueError, match="interpolate: mode"):
        nn.UpsamplingBilinear2d(scale_factor=2)(snp.ones((1, 2, 3)))
