"""Integers divided as Python divides them, but for what has no quotient or does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from stretto._engine.eager.interpreter import quiet
from stretto._engine.ops import arithmetic

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def wrapped(value, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    value %= 1 << bits
    signed = np.dtype(dtype).kind == "i"
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def expected(x, y, dtype):
    """Quotient and rest, truncated, and rounded down."""
    if not y:
        return (-1 if np.dtype(dtype).kind == "i" else int(np.iinfo(dtype).max)), x, 0, 0
    whole = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return tuple(wrapped(v, dtype) for v in (whole, x - whole * y, x // y, x % y))


def edges(dtype):
    bounds = np.iinfo(dtype)
    random = np.random.default_rng(0)
    near = [0, 1, 2, 3, 7, -1, -2, -7, bounds.max, bounds.max - 1, bounds.min, bounds.min + 1]
    known = [v for v in (*near, bounds.max // 2, bounds.max // 3) if bounds.min <= v <= bounds.max]
    drawn = random.integers(bounds.min, bounds.max, 12, dtype, endpoint=True)
    return np.array([*known, *map(int, drawn)], dtype)


FUNCTIONS = (arithmetic.quotient, arithmetic.rest, arithmetic.floor_quotient, arithmetic.modulo)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("zeros", [False, True], ids=["divisors", "zeros too"])
def test_edges(dtype, zeros):
    """With zeros all goes the slow way; without them by floats where those are exact."""
    values = edges(dtype)
    x, y = (v.reshape(-1) for v in np.meshgrid(values, values if zeros else values[values != 0]))
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    want = np.array([expected(*pair, dtype) for pair in pairs], dtype)
    for k, function in enumerate(FUNCTIONS):
        got = quiet.run(function, x, y)
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, want[:, k], err_msg=function.__name__)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_divisor(dtype):
    """A number, an array of rank 0, and one that repeats it."""
    x = edges(dtype)
    for y in edges(dtype)[:12]:
        want = np.array([expected(int(v), int(y), dtype) for v in x], dtype)
        for k, function in enumerate(FUNCTIONS):
            for form in (y, np.asarray(y), np.broadcast_to(y, x.shape)):
                np.testing.assert_array_equal(quiet.run(function, x, form), want[:, k])


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_quotients_next_to_whole_numbers(dtype):
    """x = k y + 0, 1, -1 is where a rounded quotient would be one too great or small."""
    random, bounds = np.random.default_rng(0), np.iinfo(dtype)
    size = (1 << 15) * 3 + 17  # several blocks
    y = random.integers(max(bounds.min, -(1 << 20)), 1 << 20, size).astype(np.int64)
    y[y == 0] = 1
    k = random.integers(max(bounds.min, -2000), 2000, size)
    x = np.clip(k * y + random.integers(-1, 2, size), bounds.min, bounds.max)
    floor = x // y
    truncated = floor + ((floor * y != x) & (floor < 0))
    narrow = [v.astype(dtype) for v in (x, y)]
    np.testing.assert_array_equal(arithmetic.quotient(*narrow), truncated)
    np.testing.assert_array_equal(arithmetic.rest(*narrow), x - truncated * y)
    np.testing.assert_array_equal(arithmetic.floor_quotient(*narrow), floor)
    np.testing.assert_array_equal(arithmetic.modulo(*narrow), x - floor * y)


def test_many_positive_divisors():
    x, y = np.arange(-50_000, 50_000, dtype=np.int32), np.full(100_000, 7, np.int32)
    np.testing.assert_array_equal(arithmetic.rest(x, y), np.fmod(x, 7))


def test_shapes_broadcast():
    x, y = np.arange(-6, 6, dtype=np.int32).reshape(3, 4), np.array([[2], [-3], [5]], np.int32)
    np.testing.assert_array_equal(arithmetic.floor_quotient(x, y), x // y)
    np.testing.assert_array_equal(arithmetic.modulo(x, y), x % y)


def test_many_are_divided_in_blocks():
    rng = np.random.default_rng(0)
    n = 2 * arithmetic._BLOCK + 5
    x, y = (rng.integers(1, 1000, n).astype("int32") for _ in range(2))
    for down in (False, True):
        np.testing.assert_array_equal(quiet.run(arithmetic._whole, x, y, down), x // y)
    y[-1] = 0  # the last block has a quotient that is none
    assert quiet.run(arithmetic._whole, x, y, True) is None
