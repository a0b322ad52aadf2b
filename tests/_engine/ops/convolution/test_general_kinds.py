"""Convolutions with fewer arguments, and the transposed one as the adjoint of a convolution."""

import itertools

import numpy as np
import pytest

import stretto as st
from stretto._engine.ops.convolution.general import (
    conv,
    conv_general_dilated,
    conv_transpose,
    conv_with_general_padding,
)


def numbers(seed, *shape):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def test_fewer_arguments():
    x, k = numbers(0, 2, 3, 7), numbers(1, 4, 3, 2)
    np.testing.assert_array_equal(
        conv(x, k, (2,), "SAME"), conv_general_dilated(x, k, (2,), "SAME")
    )
    np.testing.assert_array_equal(
        conv_with_general_padding(x, k, (1,), [(1, 2)], (2,), (3,)),
        conv_general_dilated(x, k, (1,), [(1, 2)], (2,), (3,)),
    )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_the_transposed_one_undoes_the_sizes(padding):
    for n, k, s in itertools.product((3, 4, 6), (1, 2, 3, 5), (1, 2, 3)):
        small = -(-n // s) if padding == "SAME" else max(0, (n - k) // s + 1)
        if not small:
            continue
        out = conv_transpose(np.ones((1, small, 1), "f4"), np.ones((k, 1, 1), "f4"), (s,), padding)
        assert out.shape[1] == (small * s if padding == "SAME" else (small - 1) * s + max(k, s))


def test_with_the_kernel_transposed_it_is_the_gradient():
    layout = ("NHWC", "HWIO", "NHWC")
    x, kernel = numbers(0, 2, 6, 8, 3), numbers(1, 3, 2, 3, 4)
    forward = lambda x: conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=layout)
    out, pull = st.vjp(forward, x)
    ct = numbers(2, *out.shape)
    got = conv_transpose(ct, kernel, (2, 2), "SAME", transpose_kernel=True)
    np.testing.assert_array_equal(got, *pull(ct))


def test_consistent_padding_crops():
    kernel, pairs = numbers(0, 3, 1, 1), [(1, 0)]
    x = numbers(1, 1, 8, 1)
    layout = ("NHC", "HIO", "NHC")
    forward = lambda x: conv_general_dilated(x, kernel, (2,), pairs, dimension_numbers=layout)
    out, pull = st.vjp(forward, x)
    ct = numbers(2, *out.shape)
    got = conv_transpose(
        ct, kernel, (2,), pairs, transpose_kernel=True, use_consistent_padding=True
    )
    (want,) = pull(ct)
    np.testing.assert_array_equal(got[:, :8], np.asarray(want)[:, : got.shape[1]])


@pytest.mark.parametrize("pair", [(1, 2), (0, 2), (2, 1)])
def test_consistent_padding_is_that_of_the_other_way_on_both_sides(pair):
    kernel, x = numbers(0, 3, 1, 1), numbers(1, 1, 8, 1)
    layout = ("NHC", "HIO", "NHC")
    forward = lambda x: conv_general_dilated(x, kernel, (1,), [pair], dimension_numbers=layout)
    out, pull = st.vjp(forward, x)
    ct = numbers(2, *out.shape)
    got = conv_transpose(
        ct, kernel, (1,), [pair], transpose_kernel=True, use_consistent_padding=True
    )
    np.testing.assert_array_equal(got, *pull(ct))


def test_layouts_by_default_up_to_three_spatial_axes():
    for n in range(1, 4):
        x, k = np.ones((1, *(3,) * n, 2), "f4"), np.ones((*(2,) * n, 2, 5), "f4")
        assert conv_transpose(x, k, (1,) * n, "VALID").shape == (1, *(4,) * n, 5)
    x, k = np.ones((1, *(3,) * 4, 2), "f4"), np.ones((*(2,) * 4, 2, 5), "f4")
    with pytest.raises(ValueError, match="conv_transpose: give dimension_numbers for lhs: float32"):
        conv_transpose(x, k, (1,) * 4, "VALID")
    x, k = x[:, 0, 0], k[0, 0]
    with pytest.raises(ValueError, match="conv_transpose: padding must be 'SAME', 'VALID' or"):
        conv_transpose(x, k, (1, 1), "FULL")


@pytest.mark.parametrize(
    "strides, padding, rest, message",
    [
        ((1, 1, 1), "SAME", {}, r"strides \(1, 1, 1\) must have 2 entries for lhs: float32\[1"),
        ((1,), [(1, 1)] * 2, {}, r"strides \(1,\) must have 2 entries"),
        ((1, 1), "SAME", {"rhs_dilation": (1,)}, r"rhs_dilation \(1,\) must have 2 entries"),
        ((1, 1), [(1, 1)], {"use_consistent_padding": True}, r"padding \(\(1, 1\),\) must have 2"),
        ((1, 1), [(1, 1)] * 3, {}, "padding .* must have 2 entries"),
        ((0, 1), "SAME", {}, "strides must be at least 1, got 0"),
        (2, "SAME", {}, "strides must be a sequence of integers, got 2"),
        ((1, 1), 3, {}, r"padding must be \(low, high\) pairs, got 3"),
    ],
)
def test_numbers_for_each_spatial_axis(strides, padding, rest, message):
    x, k = np.ones((1, 5, 5, 1), "f4"), np.ones((3, 3, 1, 1), "f4")
    with pytest.raises((TypeError, ValueError), match=f"conv_transpose: {message}"):
        conv_transpose(x, k, strides, padding, **rest)


@pytest.mark.parametrize("function", [conv, conv_with_general_padding, conv_general_dilated])
def test_errors_have_the_name_of_the_function(function):
    rest = (None, None) if function is conv_with_general_padding else ()
    x, k, name = np.ones((2, 3, 7), "f4"), np.ones((4, 2, 3), "f4"), function.__name__
    with pytest.raises(ValueError, match=rf"^{name}: lhs: float32\[2,3,7\] has 3 features"):
        function(x, k, (1,), [(0, 0)], *rest)
    with pytest.raises(TypeError, match=f"^{name}: expected numbers, got bool"):
        function(x > 0, k > 0, (1,), [(0, 0)], *rest)
