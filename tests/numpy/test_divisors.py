"""Greatest common divisors and least common multiples, as NumPy has them."""

from __future__ import annotations

import numpy as np
import pytest

import stretto.numpy as snp


def test_gcd_lcm(agree):
    x = np.array([[12, -18, 0], [7, 100, 46368]], np.int32)
    y = np.array([[8, 27, 0], [0, -75, 28657]], np.int32)
    agree("gcd", x, y, dtype="int32")
    agree("lcm", x, y, dtype="int32")
    for name in ("gcd", "lcm"):
        with pytest.raises(TypeError, match=f"{name}: expected integers"):
            getattr(snp, name)(1.5, 2)


def test_the_least_integer_has_positive_divisors(agree):
    """Its magnitude does not fit: what divides it is not negative for that."""
    x = np.array([-(2**31), -(2**31), 6], np.int32)
    agree("gcd", x, np.array([6, 1, -(2**31)], np.int32), dtype="int32")
