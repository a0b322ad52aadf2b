"""Axes and channels rearranged, windows laid out: PyTorch's figures, inverses, laws, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import laws
from stretto.laws import f32
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
CASES = [
    (
        "pixel_shuffle",
        {"input": (2, 8, 3, 2)},
        {"upscale_factor": 2},
        [(2, 2, 6, 4), 15.83849, 21.49374],
    ),
    (
        "pixel_unshuffle",
        {"input": (2, 2, 6, 3)},
        {"downscale_factor": 3},
        [(2, 18, 2, 1), -0.05377, 5.35489],
    ),
    ("channel_shuffle", {"input": (2, 6, 2, 2)}, {"groups": 3}, [(2, 6, 2, 2), 13.90806, 1.31076]),
    (
        "unfold",
        {"input": (2, 3, 5, 6)},
        {"kernel_size": (2, 3), "dilation": (2, 1), "padding": (1, 0), "stride": (1, 2)},
        [(2, 18, 10), -0.24548, 0.00752],
    ),
    ("unfold", {"input": (2, 4, 4)}, {"kernel_size": 2}, [(8, 9), -0.21683, 4.21384]),
    (
        "fold",
        {"input": (2, 12, 15)},
        {"output_size": (4, 6), "kernel_size": 2},
        [(2, 3, 4, 6), 17.43266, -6.27635],
    ),
    (
        "fold",
        {"input": (6, 6)},
        {
            "output_size": (5, 5),
            "kernel_size": (3, 2),
            "padding": (1, 0),
            "stride": 2,
            "dilation": (1, 1),
        },
        [(1, 5, 5), 4.3011, -0.67357],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


def test_flatten_and_unflatten():
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(F.flatten(x), x.ravel())
    np.testing.assert_array_equal(F.flatten(x, 1), x.reshape(2, 12))
    np.testing.assert_array_equal(F.flatten(x, -3, -2), x.reshape(6, 4))
    assert F.flatten(3.0).shape == (1,)
    np.testing.assert_array_equal(F.unflatten(F.flatten(x, 1), 1, (3, -1)), x)
    np.testing.assert_array_equal(F.unflatten(x, -1, (2, 2)), x.reshape(2, 3, 2, 2))
    assert F.unflatten(snp.ones((0, 2)), 0, (0, 3)).shape == (0, 3, 2)


def test_inverses():
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 4)).astype("f")
    np.testing.assert_array_equal(F.pixel_shuffle(F.pixel_unshuffle(x, 2), 2), x)
    np.testing.assert_array_equal(F.channel_shuffle(F.channel_shuffle(x, 3), 1), x)
    settings = {"kernel_size": (3, 2), "stride": (3, 2)}
    columns = F.unfold(x, **settings)
    np.testing.assert_array_equal(F.fold(columns, (6, 4), **settings), x)


def test_unfold_is_a_convolution_without_its_sum():
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 5)).astype("f")
    w = np.random.default_rng(1).normal(size=(4, 3, 3, 2)).astype("f")
    settings = {"dilation": (1, 2), "padding": 1, "stride": 2}
    for run in (lambda f: f, st.jit):
        columns = run(lambda x: F.unfold(x, (3, 2), **settings))(x)
        want = F.conv2d(x, w, **settings)
        got = (snp.array(w.reshape(4, -1)) @ columns).reshape(want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_laws():
    laws.check(lambda x: F.unfold(x, 2, padding=1, stride=2), [f32(2, 3, 4)])
    laws.check(lambda x: F.fold(x, (3, 4), 2), [f32(1, 4, 6)])
    laws.check(lambda x: F.pixel_shuffle(x, 2), [f32(1, 4, 2, 3)])


X = snp.ones((2, 6, 4, 4))
MESSAGES = [
    (lambda: F.flatten(X, 2, 1), "start_dim 2 comes after end_dim 1"),
    (lambda: F.unflatten(X, 1, (4, -1)), r"sizes \(4, -1\) do not make up axis 1"),
    (lambda: F.unflatten(X, 1, (-1, -1)), "do not make up"),
    (lambda: F.pixel_shuffle(X, 2), "2² does not divide the 6 channels"),
    (lambda: F.pixel_unshuffle(X, 3), "3 does not divide height and width"),
    (lambda: F.pixel_shuffle(X[0, 0], 2), "must be .*channels, height, width"),
    (lambda: F.channel_shuffle(X, 4), "channels that 4 groups divide"),
    (lambda: F.unfold(X, 5), r"do not fit \(4, 4\) with padding"),
    (
        lambda: F.fold(snp.ones((1, 3, 4)), (3, 3), 2),
        r"channels × 4 kernel elements, 4 windows\), got float32",
    ),
    (lambda: F.fold(snp.ones((1, 4, 5)), (3, 3), 2), "4 windows"),
]


@pytest.mark.parametrize("call, words", MESSAGES, ids=range(len(MESSAGES)))
def test_messages(call, words):
    with pytest.raises(ValueError, match=words):
        call()
