from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

F = np.array([[-2.5, 1.0, -0.0], [0.0, 1.5, np.nan]], np.float32)
G = np.array([1.0, 1.0, 0.0], np.float32)
INTS, OTHERS = np.array([6, -5, 0, 12], np.int32), np.array([3, 3, 7, -1], np.int32)
BOOLS, TRUTHS = np.array([True, True, False, False]), np.array([True, False, True, False])
COMPLEX = np.array([1 + 2j, 1 + 1j, 0.5], np.complex64)


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater",
                                  "greater_equal"])  # fmt: skip
def test_comparison(agree, name):
    agree(name, F, G, dtype=bool)
    agree(name, F, 1.0, dtype=bool)
    agree(name, 0, INTS, dtype=bool)
    agree(name, INTS, OTHERS, dtype=bool)
    agree(name, BOOLS, TRUTHS, dtype=bool)
    agree(name, INTS, 1.5, dtype=bool)
    agree(name, COMPLEX, COMPLEX[::-1].copy(), dtype=bool)


def test_comparison_with_other_things():
    x = snp.array([1, 2])
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    with pytest.raises(TypeError, match="array"):
        x == [1, 2]  # noqa: B015
    with pytest.raises(TypeError, match="array"):
        snp.equal(x, [1, 2])


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logical(agree, name):
    agree(name, BOOLS, TRUTHS, dtype=bool)
    agree(name, INTS, TRUTHS, dtype=bool)
    agree(name, F, 1, dtype=bool)


def test_logical_not(agree):
    agree("logical_not", F, dtype=bool)
    agree("logical_not", INTS, dtype=bool)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bitwise(agree, name):
    agree(name, INTS, OTHERS, dtype="int32")
    agree(name, INTS, 5, dtype="int32")
    agree(name, BOOLS, TRUTHS, dtype=bool)
    with pytest.raises(TypeError, match="kind"):
        getattr(snp, name)(snp.array(F), 1)


def test_shifts_and_counts(agree):
    agree("left_shift", INTS, 3, dtype="int32")
    agree("right_shift", INTS, 1, dtype="int32")
    agree("right_shift", INTS.astype(np.uint32), np.uint32([1, 2, 3, 4]), dtype="uint32")
    agree("invert", INTS, dtype="int32")
    agree("invert", BOOLS, dtype=bool)
    agree("bitwise_count", INTS, dtype="uint8")


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit"])
def test_tests_of_floats(agree, name):
    agree(name, np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], np.float32), dtype=bool)
    if name in ("isnan", "isinf", "isfinite"):
        agree(name, INTS, dtype=bool)
        agree(name, np.array([1j, np.nan, np.inf * 1j], np.complex64), dtype=bool)


def test_copysign(agree):
    x = np.array([1.0, -2.0, 0.0], np.float32)
    agree("copysign", x, np.array([-0.0, 1.0, -3.0], np.float32), dtype="float32")


@pytest.mark.parametrize("equal_nan", [False, True])
def test_isclose(agree, equal_nan):
    a = np.array([1.0, 2.0, np.nan, np.inf, -np.inf, 1e-9], np.float32)
    b = np.array([1.000001, 2.1, np.nan, np.inf, np.inf, 0.0], np.float32)
    agree("isclose", a, b, equal_nan=equal_nan, dtype=bool)
    agree("isclose", INTS, INTS + 1, dtype=bool)


def test_isreal_iscomplex(agree):
    agree("isreal", COMPLEX, dtype=bool)
    agree("iscomplex", COMPLEX, dtype=bool)
    assert st.vmap(snp.isreal)(snp.array(F)).all()
