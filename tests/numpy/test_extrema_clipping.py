from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

F = np.array([[-2.5, -1.0, -0.0], [0.0, 1.5, 3.0]], np.float32)
G = np.array([[2.0, -3.0, 4.0], [-1.5, 0.5, 3.0]], np.float32)
WILD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e30], np.float32)
INTS = np.array([[-7, -3, 0], [1, 5, 100]], np.int32)
COMPLEX = np.array([1 + 2j, -3j, 0.5], np.complex64)


def test_clip(agree):
    agree("clip", F, -1, 1, dtype="float32")
    agree("clip", F, None, 1, dtype="float32")
    agree("clip", F, G, None, dtype="float32")
    agree("clip", INTS, 0, 4, dtype="int32")
    np.testing.assert_array_equal(snp.clip(snp.array(F), min=0, max=1), np.clip(F, 0, 1))
    with pytest.raises(ValueError, match="complex numbers have no order"):
        snp.clip(snp.array(COMPLEX), 0, 1)


def test_nan_to_num(agree):
    agree("nan_to_num", F)
    agree("nan_to_num", INTS)
    agree("nan_to_num", WILD, dtype="float32")
    agree("nan_to_num", WILD, nan=1.0, posinf=2.0, neginf=3.0, dtype="float32")


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_messages_name_the_function_called(name):
    f = getattr(snp, name)
    for g in (f, st.jit(f)):
        with pytest.raises(ValueError, match=rf"^{name}: shapes \(3,\) and \(2,\)"):
            g(snp.ones(3), snp.ones(2))


def test_messages_of_clip_name_the_bound():
    x = snp.ones(3)
    for f in (snp.clip, st.jit(snp.clip)):
        with pytest.raises(ValueError, match=r"^clip: shapes \(3,\) and \(2,\)"):
            f(x, snp.ones(2), 3.0)
    with pytest.raises(TypeError, match=r"^clip: max must be an array or a number; got a list"):
        snp.clip(x, 0, [1.0])


def test_clip_keeps_the_signs_of_zeros():
    x = np.array([-0.0, 0.0, -1.0], np.float32)
    for low, high in ((0.0, 1.0), (-0.0, 1.0), (-1.0, 0.0), (-1.0, -0.0)):
        clipped = snp.clip(snp.array(x), low, high)
        traced = st.jit(lambda x, low=low, high=high: snp.clip(x, low, high))(x)
        np.testing.assert_array_equal(clipped, traced)
        np.testing.assert_array_equal(np.signbit(clipped), np.signbit(traced))
