"""What kind of number each element is."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

F = np.array([[-2.5, 1.0, -0.0], [0.0, 1.5, np.nan]], np.float32)


INTS, OTHERS = np.array([6, -5, 0, 12], np.int32), np.array([3, 3, 7, -1], np.int32)


COMPLEX = np.array([1 + 2j, 1 + 1j, 0.5], np.complex64)


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
