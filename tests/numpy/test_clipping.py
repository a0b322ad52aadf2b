from __future__ import annotations

import numpy as np
import pytest

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
