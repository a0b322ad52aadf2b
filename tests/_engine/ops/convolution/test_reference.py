"""Convolution in NumPy: padding and dilation of the input, windows, the dtype of the sums."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from stretto._engine.ops.convolution.reference import _padded, _windows, convolve

LINE = ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))


def by_definition(x, k, stride, pair, spread, gap):
    """out[o] = sum of k[j] x[i] where i spread + low = o stride + j gap."""
    (low, high), n = pair, len(x)
    size = low + ((n - 1) * spread + 1 if n else 0) + high
    count = max(0, (size - ((len(k) - 1) * gap + 1)) // stride + 1)
    out = np.zeros(count)
    for o, i, j in itertools.product(range(count), range(n), range(len(k))):
        if i * spread + low == o * stride + j * gap:
            out[o] += k[j] * x[i]
    return out


def test_every_setting_of_one_axis_by_its_definition():
    k = np.array([1.0, -2.0, 4.0], np.float32)
    settings = itertools.product(
        (0, 1, 4), (1, 2, 3), ((0, 0), (2, 1), (-1, 2), (3, -2), (-3, 4)), (1, 2, 3), (1, 2)
    )
    for n, stride, pair, spread, gap in settings:
        x = np.arange(1, n + 1, dtype=np.float32)
        if pair[0] + ((n - 1) * spread + 1 if n else 0) + pair[1] < 0:
            continue
        op = ConvGeneralDilated((stride,), (pair,), (spread,), (gap,), LINE)
        got = convolve(op, x[None, None], k[None, None], np.dtype(np.float32))
        np.testing.assert_array_equal(got[0, 0], by_definition(x, k, stride, pair, spread, gap))


def test_nothing_is_copied_where_nothing_is_padded():
    x = np.ones((1, 1, 4), np.float32)
    assert _padded(x, ((0, 0),), (1,)) is x
    np.testing.assert_array_equal(_padded(x, ((-5, 3),), (1,)), np.zeros((1, 1, 2)))
    np.testing.assert_array_equal(_padded(x, ((-1, -1),), (2,))[0, 0], [0, 1, 0, 1, 0])


def test_windows_are_a_view_that_cannot_be_written():
    x = np.arange(6.0).reshape(1, 1, 6)
    view = _windows(x, np.zeros((1, 1, 2)), (2,), (3,))
    np.testing.assert_array_equal(view[0, 0], [[0, 3], [2, 5]])
    assert np.shares_memory(view, x) and not view.flags.writeable


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_add_up_in_32_bits(dtype):
    ones = np.ones((1, 1, 5000), dtype)
    op = ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), LINE)
    (((got,),),) = convolve(op, ones, ones, np.dtype(dtype))
    assert got.dtype == dtype and got == dtype(5000)
