"""Convolutions of integers and booleans are in floats, as JAX has them."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto import config
from stretto.compat.jax.arrays import floats, in_floats


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint8", "uint16", "uint32"])
def test_of_no_floats(dtype):
    x, y = snp.array([1, 0, 3]).astype(dtype), snp.array([1, 1]).astype(dtype)
    made = in_floats(snp.convolve)(x, v=y)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, np.convolve(np.float32(x), np.float32(y)))
    with config(enable_x64=True):
        assert in_floats(snp.convolve)(x, y, mode="same").dtype == np.float64


def test_one_float_is_enough():
    x, y = floats([1, 2], np.float32([0.5]))
    assert x.dtype == np.int32 and y.dtype == np.float32
    (x,) = floats(np.array([True]))
    assert x.dtype == np.float32 and x.tolist() == [1.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_floats_stay(dtype):
    x = snp.array([1, 2]).astype(dtype)
    assert in_floats(snp.correlate)(x, x).dtype == dtype
    assert in_floats(snp.convolve)(x, snp.array([1, 2])).dtype == dtype
