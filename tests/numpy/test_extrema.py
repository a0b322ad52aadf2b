"""The greatest and the least element, and where they are."""

from __future__ import annotations

import numpy as np
import pytest

import stretto.numpy as snp

F = np.array(
    [[[1.5, -2.0, 0.5], [3.0, 0.0, -1.0]], [[2.0, 2.5, -0.5], [1.0, -3.0, 4.0]]], np.float32
)


INTS = np.array([[3, -1, 4], [1, 5, -9]], np.int32)


BOOLS = np.array([[True, False, True], [True, True, True]])


def test_nan_is_the_extremum(agree):
    x = np.array([[1.0, np.nan], [np.inf, -np.inf]], np.float32)
    agree("max", x, axis=1)
    agree("min", x, axis=0)
    agree("argmax", x, axis=1)
    agree("argmin", x, axis=1)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_arg_extrema(agree, name, axis):
    agree(name, F, axis=axis, dtype="int32")
    agree(name, INTS, axis=axis, keepdims=True, dtype="int32")
    agree(name, BOOLS, axis=axis, dtype="int32")


@pytest.mark.parametrize("f", [snp.max, snp.min], ids=lambda f: f.__name__)
def test_extrema_with_an_initial_value_keep_nan(f):
    x = np.array([1.0, np.nan], np.float32)
    assert np.isnan(float(f(x, initial=0.0)))
    assert np.isnan(float(f(x[:1], initial=np.nan)))


def test_complex_numbers_go_by_real_then_imaginary_parts(agree):
    x = np.array([[1 + 2j, 1 + 3j, -5j], [2 - 1j, 1 + 9j, 2 - 2j]], np.complex64)
    for name in ("max", "min"):
        agree(name, x)
        agree(name, x, axis=1)
        agree(name, x, axis=0, initial=1 + 2.5j)
    for name in ("maximum", "minimum"):
        agree(name, x[0], x[1])
        assert getattr(snp, name)(x[0], x[1])[0] == getattr(np, name)(x[0, 0], x[1, 0])
