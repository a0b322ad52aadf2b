from __future__ import annotations

import numpy as np
import pytest

F = np.array([[-2.5, -1.0, -0.0], [0.0, 1.5, 3.0]], np.float32)
WILD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e30], np.float32)
INTS = np.array([[-7, -3, 0], [1, 5, 100]], np.int32)
COMPLEX = np.array([1 + 2j, -3j, 0.5], np.complex64)


@pytest.mark.parametrize("name", ["real", "imag", "conj"])
def test_of_real_numbers(agree, name):
    agree(name, F)
    agree(name, WILD, rtol=1e-5)
    agree(name, INTS)


@pytest.mark.parametrize("name", ["real", "imag", "conj", "angle"])
def test_of_complex_numbers(agree, name):
    agree(name, COMPLEX + 0.25)
