"""Convolution and correlation: what the table of functions cannot say."""

import itertools

import numpy as np
import pytest

import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto.numpy.signals import MODES, checked_mode, part_of_convolution


def test_sums_in_the_preferred_dtype():
    x = np.full(3, 100, np.int8)
    out = snp.convolve(x, x, "valid", preferred_element_type=np.int32)
    assert out.dtype == np.int32
    np.testing.assert_array_equal(out, [30_000])


def test_refuses():
    x = np.ones(3, np.float32)
    with pytest.raises(ValueError, match="convolve: mode must be 'full', 'same' or 'valid'; got 1"):
        snp.convolve(x, x, 1)
    with pytest.raises(ValueError, match=r"correlate: .*rank 1.*float32\[3\] and float32\[0\]$"):
        snp.correlate(x, x[:0])
    with pytest.raises(ValueError, match=r"rank 1.*float32\[1,3\].*stretto.scipy.signal takes any"):
        snp.convolve(x, x[None])
    with pytest.raises(ValueError, match="precision must be None"):
        snp.convolve(x, x, precision="low")


def test_every_part_of_a_line():
    x, y = np.array([1.0, -2, 3, 5], np.float32), np.array([2.0, 7, -1], np.float32)
    full = np.convolve(x, y)
    for start, size in itertools.product(range(6), range(1, 7)):
        if start + size <= len(full):
            got = part_of_convolution(as_value(x), as_value(y), [start], [size])
            np.testing.assert_array_equal(got, full[start : start + size])


def test_two_axes_by_their_definition():
    random = np.random.default_rng(0)
    x, y = (random.integers(-4, 5, s).astype(np.float32) for s in ((3, 4), (2, 3)))
    full = np.zeros((4, 6))
    for i, j in np.ndindex(*x.shape):
        full[i : i + 2, j : j + 3] += x[i, j] * y
    got = part_of_convolution(as_value(x), as_value(y), (1, 2), (2, 3))
    np.testing.assert_array_equal(got, full[1:3, 2:5])


def test_booleans_by_and_and_or():
    x, y = np.array([True, False, False]), np.array([True, True])
    got = part_of_convolution(as_value(x), as_value(y), [0], [4])
    assert got.dtype == bool and got.tolist() == [True, True, False, False]


def test_the_preferred_dtype():
    x = np.full(3, 100, np.int8)
    got = part_of_convolution(as_value(x), as_value(x), [2], [1], None, np.dtype(np.int32))
    assert got.dtype == np.int32 and got.tolist() == [30_000]


def test_modes():
    assert [checked_mode("f", mode) for mode in MODES] == list(MODES)
    for bad in ("FULL", None, 2):
        with pytest.raises(ValueError, match="f: mode must be 'full', 'same' or 'valid'; got"):
            checked_mode("f", bad)
